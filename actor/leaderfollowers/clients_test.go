package leaderfollowers_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The clients of an echo server, in a process of their own, so that what the server's process uses is
// the server's. The test's binary is that process if clientsOf is set, to the server's address and the
// number of connections. It reads how many requests it is to send in all, and writes how long that took
// and the 99th percentile of a request, in nanoseconds.
const clientsOf = "SLUICE_ECHO_CLIENTS"

// request is how long a request is.
const request = 64

func clients(at string) int {
	server, text, _ := strings.Cut(at, " ")
	count := 0
	_, _ = fmt.Sscan(text, &count)
	all := make([]net.Conn, count)
	for i := range all {
		c, err := net.Dial("tcp", server)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		all[i] = c
	}
	fmt.Println("ready")
	for {
		n := 0
		if _, err := fmt.Scan(&n); err != nil {
			return 0
		}
		took := make([][]int64, count)
		var done sync.WaitGroup
		start := time.Now()
		for i, c := range all {
			done.Go(func() {
				var p [request]byte
				for range max(n/count, 1) {
					before := time.Now()
					if _, err := c.Write(p[:]); err != nil {
						fmt.Println(err)
						os.Exit(1)
					}
					if _, err := io.ReadFull(c, p[:]); err != nil {
						fmt.Println(err)
						os.Exit(1)
					}
					took[i] = append(took[i], int64(time.Since(before)))
				}
			})
		}
		done.Wait()
		wall := time.Since(start)
		latencies := slices.Concat(took...)
		slices.Sort(latencies)
		fmt.Println(int64(wall), latencies[len(latencies)*99/100])
	}
}

// remote is a process of clients.
type remote struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// startClients starts clients of a server, and returns when they are connected.
func startClients(t testing.TB, server string, count int) *remote {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", clientsOf, server, count))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	r := &remote{in, bufio.NewReader(out)}
	line, err := r.out.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, c.Wait())
	})
	return r
}

// send has the clients send n requests in all, and returns what they say.
func (r *remote) send(t testing.TB, n int) (wall, p99 time.Duration) {
	_, err := fmt.Fprintln(r.in, n)
	require.NoError(t, err)
	line, err := r.out.ReadString('\n')
	require.NoError(t, err)
	_, err = fmt.Sscan(line, (*int64)(&wall), (*int64)(&p99))
	require.NoError(t, err, line)
	return wall, p99
}
