//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/internal/poll"
	"github.com/sluice-go/sluice/synchronizer/conflicttest"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

// patience is how long a test waits for what has to come.
const patience = 30 * time.Second

// over runs a test over epoll, where it is, and over the portable implementation.
func over(t *testing.T, test func(t *testing.T)) {
	t.Run("system", test)
	t.Run("portable", func(t *testing.T) {
		poll.Portable.Store(true)
		defer poll.Portable.Store(false)
		test(t)
	})
}

// start starts a server, and checks at the end that it has left nothing open.
func start(t *testing.T, threads, max int, limit time.Duration) *server {
	t.Helper()
	system := objecttest.NewSystem(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := serve(system, l, threads, max, limit)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, s.close(ctx))
		require.Zero(t, s.open.Load(), "connections are left open")
		require.Zero(t, s.pool.Handles().Len(), "handles are left")
	})
	return s
}

// client is a client that sends lines and reads answers.
type client struct {
	*net.TCPConn
	in *bufio.Reader
}

func dial(t testing.TB, s *server) client {
	t.Helper()
	c, err := net.Dial("tcp", s.listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = c.Close() })
	return client{c.(*net.TCPConn), bufio.NewReader(c)}
}

func (c client) send(t testing.TB, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

func (c client) answer(t testing.TB) string {
	t.Helper()
	line, err := c.in.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSuffix(line, "\n")
}

// ended checks that the server has closed the connection, and sent nothing more.
func (c client) ended(t testing.TB) {
	t.Helper()
	_, err := c.in.ReadByte()
	require.Equal(t, io.EOF, err)
}

// none waits until the server has no connection.
func none(t testing.TB, s *server) {
	t.Helper()
	for end := time.Now().Add(patience); s.open.Load() > 0; time.Sleep(time.Millisecond) {
		require.False(t, time.Now().After(end), "a connection is left open")
	}
}

func TestTheServerAnswersEveryCommand(t *testing.T) {
	over(t, func(t *testing.T) {
		s := start(t, 2, 100, patience)
		c := dial(t, s)
		for _, line := range [][2]string{
			{"GET a", "ERR no such key"}, {"SET a 1 and more", "OK"}, {"GET a", "OK 1 and more"}, {"get a\r", "OK 1 and more"},
			{"LEN", "OK 1"}, {"WAIT 1000 a", "OK 1 and more"}, {"WAIT 1 b", "ERR no such key after 1 ms"},
			{"WAIT a", "ERR WAIT takes up to 60000 milliseconds and a key"}, {"DEL a", "OK"}, {"DEL a", "ERR no such key"}, {"SET a", "ERR SET takes a key and a value"},
			{"", "ERR there is no such command: GET key, SET key value, DEL key, WAIT milliseconds key, LEN"},
		} {
			c.send(t, line[0]+"\n")
			require.Equal(t, line[1], c.answer(t), line[0])
		}
		require.NoError(t, c.Close())
		none(t, s)
	})
}

// A session that waits for a key has its thread replaced: so even one thread serves the client that
// brings the key.
func TestSessionsThatWaitDoNotUseUpTheThreads(t *testing.T) {
	over(t, func(t *testing.T) {
		s := start(t, 1, 100, patience)
		var waiting []client
		for range 10 {
			c := dial(t, s)
			c.send(t, "WAIT 30000 key\n")
			waiting = append(waiting, c)
		}
		c := dial(t, s)
		c.send(t, "LEN\nSET key value\n")
		require.Equal(t, "OK 0", c.answer(t))
		require.Equal(t, "OK", c.answer(t))
		for _, w := range waiting {
			require.Equal(t, "OK value", w.answer(t))
		}
	})
}

func TestASlowWriterIsServedWhenItsLineIsComplete(t *testing.T) {
	over(t, func(t *testing.T) {
		s := start(t, 1, 100, patience)
		slow, quick := dial(t, s), dial(t, s)
		for _, b := range "SET key value\nGET key\nGE" {
			slow.send(t, string(b))
			quick.send(t, "LEN\n") // meanwhile the others are
			require.Contains(t, quick.answer(t), "OK")
		}
		require.Equal(t, "OK", slow.answer(t))
		require.Equal(t, "OK value", slow.answer(t))
	})
}

func TestAClientThatSendsNoWholeLineIsClosed(t *testing.T) {
	over(t, func(t *testing.T) {
		s := start(t, 1, 100, 30*time.Millisecond)
		silent, half := dial(t, s), dial(t, s)
		half.send(t, "GET ")
		silent.ended(t)
		half.ended(t)
		none(t, s)
	})
}

// A client that does not read its answers is not read from, and keeps no thread; when it reads, it
// gets all of them, in order.
func TestASlowReaderGetsItsAnswers(t *testing.T) {
	over(t, func(t *testing.T) {
		s := start(t, 1, 100, patience)
		value := strings.Repeat("x", 4000)
		slow, quick := dial(t, s), dial(t, s)
		quick.send(t, "SET key "+value+"\n")
		require.Equal(t, "OK", quick.answer(t))
		const n = 5000 // 20 MB of answers, more than the system has room for
		var sent sync.WaitGroup
		sent.Go(func() {
			for range n {
				if _, err := io.WriteString(slow, "GET key\n"); err != nil {
					t.Error(err)
					return
				}
			}
		})
		for range 100 {
			quick.send(t, "LEN\n")
			require.Equal(t, "OK 1", quick.answer(t))
		}
		for range n {
			require.Equal(t, "OK "+value, slow.answer(t))
		}
		sent.Wait()
	})
}

func TestASlowReaderThatReadsNothingIsClosed(t *testing.T) {
	over(t, func(t *testing.T) {
		s := start(t, 1, 100, 50*time.Millisecond)
		c := dial(t, s)
		c.send(t, "SET key "+strings.Repeat("x", 4000)+"\n")
		require.Equal(t, "OK", c.answer(t))
		require.NoError(t, c.SetReadBuffer(4096))
		for {
			if _, err := io.WriteString(c, strings.Repeat("GET key\n", 100)); err != nil {
				break // the server has closed it
			}
		}
		none(t, s)
	})
}

func TestAHalfClosedConnectionIsAnsweredToTheEnd(t *testing.T) {
	over(t, func(t *testing.T) {
		s := start(t, 1, 100, patience)
		c := dial(t, s)
		c.send(t, "SET a 1\nGET a\n")
		require.NoError(t, c.CloseWrite())
		require.Equal(t, "OK", c.answer(t))
		require.Equal(t, "OK 1", c.answer(t))
		c.ended(t)
		torn := dial(t, s)
		torn.send(t, "GET a\nGET")
		require.NoError(t, torn.CloseWrite())
		require.Equal(t, "OK 1", torn.answer(t))
		require.Equal(t, "ERR the last line has no end", torn.answer(t))
		torn.ended(t)
		none(t, s)
	})
}

func TestAnOversizedLineIsRefusedAndTheConnectionClosed(t *testing.T) {
	over(t, func(t *testing.T) {
		s := start(t, 1, 100, patience)
		c := dial(t, s)
		c.send(t, "LEN\n"+strings.Repeat("x", 3*maxLine)+"\n")
		require.Equal(t, "OK 0", c.answer(t))
		require.Equal(t, "ERR line too long", c.answer(t))
		c.ended(t)
		require.NoError(t, c.CloseWrite())
		none(t, s)
		longest := dial(t, s)
		longest.send(t, "SET a "+strings.Repeat("x", maxLine-len("SET a "))+"\n")
		require.Equal(t, "OK", longest.answer(t))
	})
}

func TestOneConnectionTooManyIsRefused(t *testing.T) {
	over(t, func(t *testing.T) {
		s := start(t, 2, 2, patience)
		a, b := dial(t, s), dial(t, s)
		for _, c := range []client{a, b} {
			c.send(t, "LEN\n")
			require.Equal(t, "OK 0", c.answer(t))
		}
		c := dial(t, s)
		require.Equal(t, "ERR busy", c.answer(t))
		c.ended(t)
		require.NoError(t, a.Close())
		for end := time.Now().Add(patience); s.open.Load() > 1; time.Sleep(time.Millisecond) {
			require.False(t, time.Now().After(end))
		}
		d := dial(t, s)
		d.send(t, "LEN\n")
		require.Equal(t, "OK 0", d.answer(t))
	})
}

// Two thousand connections, or as many as the process may have, all of them busy at once.
func TestThousandsOfConnectionsAreServed(t *testing.T) {
	over(t, func(t *testing.T) {
		var limit syscall.Rlimit
		require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
		n := int(min(2000, (limit.Cur-100)/2))
		s := start(t, 2, n, patience)
		all := make([]client, n)
		for i := range all {
			all[i] = dial(t, s)
		}
		var done sync.WaitGroup
		for k := range 16 {
			done.Go(func() {
				for round := range 3 {
					for i := k; i < n; i += 16 {
						all[i].send(t, fmt.Sprintf("SET key-%d %d\nGET key-%d\n", i, round, i))
					}
					for i := k; i < n; i += 16 {
						if a, b := all[i].answer(t), all[i].answer(t); a != "OK" || b != fmt.Sprint("OK ", round) {
							t.Error(a, b)
						}
					}
				}
			})
		}
		done.Wait()
		all[0].send(t, "LEN\n")
		require.Equal(t, fmt.Sprint("OK ", n), all[0].answer(t))
		for _, c := range all {
			require.NoError(t, c.Close())
		}
		none(t, s)
	})
}

// When the process has no descriptors left, the first client that comes then is refused with an
// answer; others wait, and are served when there are descriptors again. The server goes on.
func TestTheServerSurvivesTheEndOfItsDescriptors(t *testing.T) {
	over(t, func(t *testing.T) {
		s := start(t, 2, 1000, patience)
		before := dial(t, s)
		before.send(t, "SET a 1\n")
		require.Equal(t, "OK", before.answer(t))

		// The clients' sockets are made before there are no more.
		const n = 5
		var sockets []int
		for range n {
			fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
			require.NoError(t, err)
			sockets = append(sockets, fd)
		}
		at := s.listener.Addr().(*net.TCPAddr)
		address := &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}
		give := exhaust(t)
		for _, fd := range sockets {
			require.NoError(t, syscall.Connect(fd, address))
		}
		for end := time.Now().Add(patience); s.refused.Load() == 0; time.Sleep(time.Millisecond) {
			require.False(t, time.Now().After(end), "none has been refused")
		}
		before.send(t, "GET a\n")
		require.Equal(t, "OK 1", before.answer(t))
		give()

		refused := 0
		for _, fd := range sockets {
			f := os.NewFile(uintptr(fd), "client")
			_, err := f.WriteString("GET a\n")
			if err == nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
				answer := make([]byte, 64)
				k, err := f.Read(answer)
				switch {
				case err == nil && string(answer[:k]) == "OK 1\n":
				case err == nil && string(answer[:k]) == "ERR busy\n", errors.Is(err, syscall.ECONNRESET):
					refused++
				default:
					t.Error(string(answer[:k]), err)
				}
			}
			require.NoError(t, f.Close())
		}
		require.Positive(t, refused)
		require.EqualValues(t, s.refused.Load(), refused)
		require.NoError(t, before.Close())
		none(t, s)
	})
}

// exhaust uses up the descriptors of the process, and returns what gives them back.
func exhaust(t *testing.T) (give func()) {
	var old syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	probe, err := os.Open(os.DevNull)
	require.NoError(t, err)
	low := old
	low.Cur = uint64(probe.Fd()) + 64
	require.NoError(t, probe.Close())
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
	var taken []int
	for {
		fd, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			require.ErrorIs(t, err, syscall.EMFILE)
			break
		}
		taken = append(taken, fd)
	}
	return func() {
		for _, fd := range taken {
			_ = syscall.Close(fd)
		}
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old))
	}
}

func TestTheServerEndsWithClientsConnected(t *testing.T) {
	over(t, func(t *testing.T) {
		s := start(t, 2, 100, patience)
		c, waits := dial(t, s), dial(t, s)
		c.send(t, "LEN\n")
		require.Equal(t, "OK 0", c.answer(t))
		waits.send(t, "WAIT 20 key\n")
		for len(s.store.object.Explain().Waiting) == 0 {
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, s.close(ctx))
		require.Equal(t, "ERR no such key after 20 ms", waits.answer(t)) // it was under way
		waits.ended(t)
		c.ended(t)
	})
}

func TestWhatTheTableLetsRunAtOnceIsSafe(t *testing.T) {
	keys, texts := rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"1", "2"})
	pairs := rapid.Custom(func(t *rapid.T) pair { return pair{keys.Draw(t, "key"), texts.Draw(t, "value")} })
	states := func(t *rapid.T) func() *store {
		values := rapid.MapOf(keys, texts).Draw(t, "values")
		return func() *store {
			s := &store{}
			for k, v := range values {
				s.set(pair{k, v})
			}
			return s
		}
	}
	contents := func(s *store) string {
		all := map[any]any{}
		s.values.Range(func(k, v any) bool { all[k] = v; return true })
		return fmt.Sprint(all)
	}
	conflicttest.Check(t, stores, table(), states, conflicttest.Fingerprint(contents),
		conflicttest.Arguments(get, keys), conflicttest.Arguments(wait, keys), conflicttest.Arguments(remove, keys), conflicttest.Arguments(set, pairs))
}
