//go:build unix

package poll_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/poll"
)

// systems are the ways to wait that this operating system has.
var systems = map[string]func() (*poll.Set, error){"system": poll.New, "portable": func() (*poll.Set, error) {
	poll.Portable.Store(true)
	defer poll.Portable.Store(false)
	return poll.New()
}}

// over runs a test over each of the systems.
func over(t *testing.T, test func(t *testing.T, s *poll.Set)) {
	for name, system := range systems {
		t.Run(name, func(t *testing.T) {
			s, err := system()
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			test(t, s)
		})
	}
}

// pair returns the two ends of a connection, which do not block.
func pair(t *testing.T) (a, b uintptr) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	for _, fd := range fds {
		require.NoError(t, syscall.SetNonblock(fd, true))
		t.Cleanup(func() { _ = syscall.Close(fd) })
	}
	return uintptr(fds[0]), uintptr(fds[1])
}

func write(t *testing.T, fd uintptr, text string) {
	t.Helper()
	n, err := poll.WriteFD(fd, []byte(text))
	require.NoError(t, err)
	require.Equal(t, len(text), n)
}

// next returns the one event that comes, or fails.
func next(t *testing.T, s *poll.Set) poll.Event {
	t.Helper()
	events := make([]poll.Event, 8)
	for range 1000 {
		n, err := s.Wait(events, 10*time.Second)
		require.NoError(t, err)
		if n > 0 {
			require.Equal(t, 1, n)
			return events[0]
		}
	}
	t.Fatal("no event")
	return poll.Event{}
}

// nothing checks that no event is there.
func nothing(t *testing.T, s *poll.Set) {
	t.Helper()
	n, err := s.Wait(make([]poll.Event, 8), 0)
	require.NoError(t, err)
	require.Zero(t, n)
}

func add(t *testing.T, s *poll.Set, fd uintptr, owner any, r poll.Ready) *poll.Descriptor {
	t.Helper()
	d, err := s.Add(fd, owner, r)
	require.NoError(t, err)
	return d
}

func TestADescriptorIsReportedOnceForEachArm(t *testing.T) {
	over(t, func(t *testing.T, s *poll.Set) {
		a, b := pair(t)
		d := add(t, s, a, "a", 0)
		write(t, b, "one")
		nothing(t, s) // it is not armed
		for range 3 { // and what is there when it is armed counts
			require.NoError(t, d.Arm(poll.Read))
			e := next(t, s)
			require.Equal(t, d, e.Descriptor)
			require.Equal(t, "a", e.Descriptor.Owner)
			require.Equal(t, poll.Read, e.Ready)
			nothing(t, s)
		}
		p := make([]byte, 8)
		n, err := poll.ReadFD(a, p)
		require.NoError(t, err)
		require.Equal(t, "one", string(p[:n]))
		_, err = poll.ReadFD(a, p)
		require.ErrorIs(t, err, poll.ErrWouldBlock)
		require.NoError(t, d.Arm(poll.Read))
		nothing(t, s)
		require.NoError(t, d.Arm(poll.Read|poll.Write))
		require.Equal(t, poll.Write, next(t, s).Ready)
	})
}

func TestWhetherADescriptorIsReadyCanBeAskedWithoutASet(t *testing.T) {
	a, b := pair(t)
	require.False(t, poll.IsReady(a, poll.Read))
	require.True(t, poll.IsReady(a, poll.Read|poll.Write))
	write(t, b, "x")
	require.True(t, poll.IsReady(a, poll.Read))
}

// What has been read to the end need not be armed again: the next event comes by itself.
func TestAnEdgeIsReportedWithoutAnotherArm(t *testing.T) {
	s, err := poll.New()
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	a, b := pair(t)
	write(t, b, "x")
	d := add(t, s, a, nil, 0)
	edges, err := d.ArmEdge()
	require.NoError(t, err)
	if !edges {
		return // the system has no such events
	}
	p := make([]byte, 8)
	for range 3 {
		require.Equal(t, poll.Read, next(t, s).Ready)
		nothing(t, s)
		n, err := poll.ReadFD(a, p)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		write(t, b, "x")
	}
	next(t, s)
	_, err = d.ArmEdge() // nothing has been read: what is there is reported again
	require.NoError(t, err)
	require.Equal(t, poll.Read, next(t, s).Ready)
	_, err = poll.ReadFD(a, p)
	require.NoError(t, err)
	require.NoError(t, syscall.Shutdown(int(b), syscall.SHUT_WR))
	require.Equal(t, poll.Read|poll.Ended, next(t, s).Ready)
	require.NoError(t, d.Arm(poll.Write)) // once again
	require.Equal(t, poll.Write, next(t, s).Ready&poll.Write)
	nothing(t, s)
	require.NoError(t, d.Remove())
	_, err = d.ArmEdge()
	require.ErrorIs(t, err, poll.ErrRemoved)
}

func TestAWaitThatHasBegunFindsWhatIsArmedLater(t *testing.T) {
	over(t, func(t *testing.T, s *poll.Set) {
		a, b := pair(t)
		d := add(t, s, a, nil, 0)
		for range 200 {
			found := make(chan poll.Event, 1)
			go func() { found <- next(t, s) }()
			runtime.Gosched()
			require.NoError(t, d.Arm(poll.Write))
			require.Equal(t, poll.Write, (<-found).Ready)
			go func() { found <- next(t, s) }()
			require.NoError(t, d.Arm(poll.Read))
			write(t, b, "x")
			require.Equal(t, poll.Read, (<-found).Ready)
			_, err := poll.ReadFD(a, make([]byte, 8))
			require.NoError(t, err)
		}
	})
}

func TestAWakeIsSeenByTheWaitUnderWayOrTheNext(t *testing.T) {
	over(t, func(t *testing.T, s *poll.Set) {
		events := make([]poll.Event, 1)
		s.Wake()
		s.Wake()
		n, err := s.Wait(events, -1)
		require.NoError(t, err)
		require.Zero(t, n)
		for range 1000 {
			woken := make(chan error)
			go func() {
				_, err := s.Wait(events, -1)
				woken <- err
			}()
			s.Wake()
			require.NoError(t, <-woken)
		}
	})
}

func TestWakesDoNotKeepEventsWaiting(t *testing.T) {
	over(t, func(t *testing.T, s *poll.Set) {
		a, b := pair(t)
		d := add(t, s, a, nil, poll.Read)
		write(t, b, "x")
		events := make([]poll.Event, 1)
		for seen := false; !seen; {
			s.Wake()
			n, err := s.Wait(events, -1)
			require.NoError(t, err)
			seen = n == 1 && events[0].Descriptor == d
		}
	})
}

func TestAWaitEndsWithItsTimeout(t *testing.T) {
	over(t, func(t *testing.T, s *poll.Set) {
		a, _ := pair(t)
		add(t, s, a, nil, poll.Read)
		for _, timeout := range []time.Duration{0, 1, time.Microsecond, 3 * time.Millisecond} {
			before := time.Now()
			n, err := s.Wait(make([]poll.Event, 1), timeout)
			require.NoError(t, err)
			require.Zero(t, n)
			require.GreaterOrEqual(t, time.Since(before), timeout)
		}
	})
}

func TestTheEndOfAConnectionIsReported(t *testing.T) {
	over(t, func(t *testing.T, s *poll.Set) {
		a, b := pair(t)
		d := add(t, s, a, nil, poll.Read)
		write(t, b, "last")
		require.NoError(t, syscall.Shutdown(int(b), syscall.SHUT_WR))
		require.Equal(t, poll.Read, next(t, s).Ready&poll.Read)
		p := make([]byte, 8)
		n, err := poll.ReadFD(a, p)
		require.NoError(t, err)
		require.Equal(t, "last", string(p[:n]))
		require.NoError(t, d.Arm(poll.Read))
		require.Equal(t, poll.Read, next(t, s).Ready&poll.Read)
		_, err = poll.ReadFD(a, p)
		require.Equal(t, io.EOF, err)
		write(t, a, "it is half closed only")

		c, e := pair(t)
		add(t, s, c, nil, poll.Write)
		require.Equal(t, poll.Write, next(t, s).Ready)
		full := make([]byte, 1<<20)
		n, err = poll.WriteFD(c, full)
		require.ErrorIs(t, err, poll.ErrWouldBlock)
		require.Positive(t, n)
		require.Less(t, n, len(full))
		require.NoError(t, syscall.Close(int(e)))
	})
}

func TestARegularFileIsRefusedByAnErrorThatSaysSo(t *testing.T) {
	over(t, func(t *testing.T, s *poll.Set) {
		f, err := os.Create(filepath.Join(t.TempDir(), "file"))
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		dir, err := os.Open(t.TempDir())
		require.NoError(t, err)
		defer func() { require.NoError(t, dir.Close()) }()
		for _, f := range []*os.File{f, dir} {
			for _, r := range []poll.Ready{0, poll.Read} {
				_, err = s.Add(f.Fd(), nil, r)
				refused, ok := errors.AsType[*poll.NotPollableError](err)
				require.True(t, ok, err)
				require.Equal(t, f.Fd(), refused.FD)
			}
		}
		require.Zero(t, s.Len())
	})
}

func TestADescriptorIsAddedOnceAndRemovedOnce(t *testing.T) {
	over(t, func(t *testing.T, s *poll.Set) {
		a, b := pair(t)
		d := add(t, s, a, nil, poll.Read)
		_, err := s.Add(a, nil, poll.Read)
		require.ErrorIs(t, err, poll.ErrRegistered)
		_, err = s.Add(99999, nil, poll.Read)
		require.ErrorIs(t, err, syscall.EBADF)
		require.Equal(t, 1, s.Len())

		write(t, b, "x")
		require.NoError(t, d.Remove())
		require.NoError(t, d.Remove())
		nothing(t, s)
		require.ErrorIs(t, d.Arm(poll.Read), poll.ErrRemoved)
		again := add(t, s, a, nil, poll.Read)
		require.Equal(t, again, next(t, s).Descriptor)
		require.NoError(t, again.Remove())
	})
}

// An event of a descriptor that has been removed is not taken for one of a later descriptor that has
// got the same number.
func TestANumberThatIsUsedAgainIsAnotherDescriptor(t *testing.T) {
	over(t, func(t *testing.T, s *poll.Set) {
		for range 100 {
			fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
			require.NoError(t, err)
			require.NoError(t, syscall.SetNonblock(fds[0], true))
			d := add(t, s, uintptr(fds[0]), "old", poll.Read)
			write(t, uintptr(fds[1]), "x")
			require.NoError(t, d.Remove())
			require.NoError(t, syscall.Close(fds[0]))
			a, _ := pair(t)
			e := add(t, s, a, "new", poll.Read)
			nothing(t, s)
			require.NoError(t, e.Remove())
			require.NoError(t, syscall.Close(fds[1]))
		}
	})
}

func TestCloseEndsTheWaitUnderWay(t *testing.T) {
	for name, system := range systems {
		t.Run(name, func(t *testing.T) {
			for range 100 {
				s, err := system()
				require.NoError(t, err)
				a, _ := pair(t)
				d := add(t, s, a, nil, poll.Read)
				ended := make(chan error)
				go func() {
					for {
						if _, err := s.Wait(make([]poll.Event, 1), -1); err != nil {
							ended <- err
							return
						}
					}
				}()
				runtime.Gosched()
				require.NoError(t, s.Close())
				require.ErrorIs(t, <-ended, poll.ErrClosed)
				require.NoError(t, s.Close())
				require.ErrorIs(t, d.Arm(poll.Read), poll.ErrClosed)
				require.NoError(t, d.Remove())
				_, err = s.Add(a, nil, poll.Read)
				require.ErrorIs(t, err, poll.ErrClosed)
				_, err = s.Wait(make([]poll.Event, 1), 0)
				require.ErrorIs(t, err, poll.ErrClosed)
				s.Wake()
			}
		})
	}
}

// Many descriptors, several goroutines that answer what is reported, and one at a time that waits:
// each byte is read once, by the goroutine that has the event, and none is left.
func TestEveryEventIsHandledOnce(t *testing.T) {
	over(t, func(t *testing.T, s *poll.Set) {
		const connections, bytes, threads = 20, 200, 3
		var handled atomic.Int64
		var busy [connections]atomic.Bool
		var others []uintptr
		for i := range connections {
			a, b := pair(t)
			others = append(others, b)
			add(t, s, a, i, poll.Read)
		}
		var leading sync.Mutex
		var all sync.WaitGroup
		for range threads {
			all.Go(func() {
				events, p := make([]poll.Event, 1), make([]byte, 1)
				for handled.Load() < connections*bytes {
					leading.Lock()
					n, err := s.Wait(events, time.Millisecond)
					leading.Unlock()
					if err != nil || n == 0 {
						continue
					}
					d := events[0].Descriptor
					if !busy[d.Owner.(int)].CompareAndSwap(false, true) {
						t.Error("two threads have one descriptor")
					}
					if n, err := poll.ReadFD(d.FD(), p); n != 1 || err != nil {
						t.Error("an event without anything to read", err)
					}
					handled.Add(1)
					busy[d.Owner.(int)].Store(false)
					if err := d.Arm(poll.Read); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range bytes {
			for _, b := range others {
				write(t, b, "x")
			}
		}
		all.Wait()
		require.EqualValues(t, connections*bytes, handled.Load())
	})
}

func TestReadyIsReadable(t *testing.T) {
	var all []string
	for _, r := range []poll.Ready{0, poll.Read, poll.Read | poll.Write, poll.Failed} {
		all = append(all, r.String())
	}
	require.True(t, slices.Equal(all, []string{"nothing", "read", "read+write", "failed"}), all)
}
