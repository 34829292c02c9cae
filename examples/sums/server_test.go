package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject/objecttest"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

// serving starts a server that has ended, and has left nothing, when the test has ended.
func serving(t *testing.T, workers int) (*Server, func() *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := Serve(objecttest.NewSystem(t), l, workers)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(t, s.Close(ctx))
		require.Zero(t, s.scheduler.Stats().Live)
	})
	return s, func() *net.TCPConn {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return c.(*net.TCPConn)
	}
}

func TestEachClientHasItsOwnSumAndAllHaveOneTogether(t *testing.T) {
	s, dial := serving(t, 1)
	const clients, numbers = 200, 20
	var all sync.WaitGroup
	for i := range clients {
		c := dial()
		all.Go(func() {
			in := bufio.NewScanner(c)
			for k := range numbers {
				fmt.Fprintln(c, i)
				var you, everyone int64
				if !in.Scan() {
					t.Errorf("no answer: %v", in.Err())
					return
				}
				if _, err := fmt.Sscanf(in.Text(), "you %d, all %d", &you, &everyone); err != nil || you != int64(i*(k+1)) || everyone < you {
					t.Errorf("%q: %v", in.Text(), err)
				}
			}
		})
	}
	require.NoError(t, s.Workers(3)) // while they run
	all.Wait()
	last := dial()
	fmt.Fprintln(last, 0)
	line, err := bufio.NewReader(last).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("you 0, all %d\n", numbers*clients*(clients-1)/2), line)
}

func TestAClientThatHasHalfClosedGetsItsAnswers(t *testing.T) {
	_, dial := serving(t, 2)
	c := dial()
	_, err := c.Write([]byte("1\r\n2\nthree\n4")) // the last line has no end
	require.NoError(t, err)
	require.NoError(t, c.CloseWrite())
	answers, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "you 1, all 1\nyou 3, all 3\nnot a number\nyou 7, all 7\n", string(answers))
}

func TestAClientThatSendsByteByByteIsAnsweredLineByLine(t *testing.T) {
	_, dial := serving(t, 1)
	c := dial()
	in := bufio.NewReader(c)
	for i, sum := range []int{12, 24, 36} {
		for _, b := range []byte("12\n") {
			_, err := c.Write([]byte{b})
			require.NoError(t, err)
		}
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("you %d, all %d\n", sum, sum), line, i)
	}
}

func TestALineThatIsTooLongEndsItsConnectionOnly(t *testing.T) {
	_, dial := serving(t, 1)
	bad, good := dial(), dial()
	_, err := bad.Write(bytes.Repeat([]byte("1"), maxLine+300))
	require.NoError(t, err)
	answers, _ := io.ReadAll(bad) // its end, or a reset, as there was more to read
	require.Empty(t, answers)
	fmt.Fprintln(good, 5)
	line, err := bufio.NewReader(good).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "you 5, all 5\n", line)
}

// A client that sends, and never reads, is kept waiting; others are served, and the server can be closed.
func TestAClientThatDoesNotReadKeepsNoOtherWaiting(t *testing.T) {
	_, dial := serving(t, 1)
	deaf, good := dial(), dial()
	go func() {
		lines := bytes.Repeat([]byte("1\n"), 1<<20)
		_, _ = deaf.Write(lines) // until the server is closed
	}()
	in := bufio.NewReader(good)
	for range 100 {
		fmt.Fprintln(good, 0)
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "you 0, all ")
	}
}
