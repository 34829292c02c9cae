package coroutine_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/sluice-go/sluice/actor/coroutine"
)

// Every benchmark of time runs a peer and this package in turn, in one process, and reports the
// median of the rounds' ratios as "×peer", as those of activeobject do.

// side is one side of a comparison: run makes n operations.
type side struct {
	name string
	run  func(n int)
}

// versus runs the two sides in turn and reports what ours costs in units of the peer's.
func versus(b *testing.B, peer, ours side) { versusOf(b, max(b.N/rounds, 2), peer, ours) }

// rounds is how often both sides run.
const rounds = 11

// versusOf is versus with n operations in each round.
func versusOf(b *testing.B, n int, peer, ours side) {
	var walls, cpus, peerNs, ourNs []float64
	for range rounds {
		pw, pc := timed(peer.run, n)
		ow, oc := timed(ours.run, n)
		walls = append(walls, ow/pw)
		if pc > 0 && oc > 0 {
			cpus = append(cpus, oc/pc)
		}
		peerNs, ourNs = append(peerNs, pw/float64(n)), append(ourNs, ow/float64(n))
	}
	b.ReportMetric(median(ourNs), "ns/op")
	b.ReportMetric(median(peerNs), peer.name+"-ns")
	b.ReportMetric(median(walls), "×peer")
	if len(cpus) > 0 {
		b.ReportMetric(median(cpus), "cpu×")
	}
}

func timed(run func(int), n int) (wall, cpu float64) {
	c := cpuTime()
	start := time.Now()
	run(n)
	return float64(time.Since(start)), float64(cpuTime() - c)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// channelSwitches switches n times between two goroutines that hand a value to and fro through
// channels.
func channelSwitches(n int) {
	to, fro := make(chan int), make(chan int)
	go func() {
		for v := range to {
			fro <- v
		}
		close(fro)
	}()
	for i := range n / 2 {
		to <- i
		<-fro
	}
	close(to)
	<-fro
}

// A switch from one coroutine to another, against one from a goroutine to another through a
// channel.
func BenchmarkSwitch(b *testing.B) {
	s := newScheduler(b, Workers(1))
	versus(b, side{"channel", channelSwitches}, side{"coroutine", func(n int) {
		var both [2]*Coroutine
		for i := range both {
			both[i] = started(b, s, func(c *Coroutine) error {
				for range n / 2 {
					if err := c.Yield(); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for _, c := range both {
			require.NoError(b, c.Await(background))
		}
	}})
}

// The same where each coroutine waits for a blocker until the other unblocks it.
func BenchmarkWait(b *testing.B) {
	for name, workers := range map[string]int{"1": 1, "2": 2} {
		b.Run(name, func(b *testing.B) {
			s := newScheduler(b, Workers(workers))
			var turn atomic.Int32
			var mine [2]*Blocker
			for i := range mine {
				mine[i] = newBlocker(b, s, func() bool { return turn.Load() != int32(i) })
			}
			versus(b, side{"channel", channelSwitches}, side{"coroutine", func(n int) {
				turn.Store(0)
				var both [2]*Coroutine
				for i := range both {
					both[i] = started(b, s, func(c *Coroutine) error {
						for range n / 2 {
							if err := mine[i].WaitUntilNotBlocked(c); err != nil {
								return err
							}
							turn.Store(1 - int32(i))
							mine[1-i].Unblocked()
						}
						return nil
					})
				}
				for _, c := range both {
					require.NoError(b, c.Await(background))
				}
			}})
		})
	}
}

// An item through a queue of one between two coroutines, against a channel of one between two
// goroutines.
func BenchmarkQueue(b *testing.B) {
	for name, capacity := range map[string]int{"1": 1, "64": 64} {
		b.Run(name, func(b *testing.B) {
			s := newScheduler(b, Workers(1))
			q, err := NewQueue[int](s, capacity)
			require.NoError(b, err)
			versus(b, side{"channel", func(n int) {
				c, sum := make(chan int, capacity), 0
				go func() {
					for i := range n {
						c <- i
					}
					close(c)
				}()
				for x := range c {
					sum += x
				}
				require.Equal(b, n*(n-1)/2, sum)
			}}, side{"queue", func(n int) {
				sum := 0
				puts := started(b, s, func(c *Coroutine) error {
					for i := range n {
						if err := q.BlockingEnqueue(c, i); err != nil {
							return err
						}
					}
					return nil
				})
				gets := started(b, s, func(c *Coroutine) error {
					for range n {
						x, err := q.BlockingDequeue(c)
						if err != nil {
							return err
						}
						sum += x
					}
					return nil
				})
				require.NoError(b, puts.Await(background))
				require.NoError(b, gets.Await(background))
				require.Equal(b, n*(n-1)/2, sum)
			}})
		})
	}
}

// Unblocking one task, running it, and blocking another in its place: with a million blocked
// against ten. They wait for a blocker each, of which one is unblocked again and again; or all for
// the same.
func BenchmarkUnblock(b *testing.B) {
	const few, many = 10, 1_000_000
	for _, together := range []bool{false, true} {
		name := map[bool]string{false: "apart", true: "together"}[together]
		b.Run(name, func(b *testing.B) {
			with := func(blocked int) func(n int) {
				s := newScheduler(b)
				free := false
				condition := func() bool { return !free }
				one := newBlocker(b, s, condition)
				run := func(error) { free = false }
				for i := range blocked {
					to := one
					if !together && i > 0 {
						to = newBlocker(b, s, func() bool { return true })
					}
					task(b, s, to, run)
				}
				require.Equal(b, SomeRoutinesBlocked, s.RunNextUnblockedRoutine())
				return func(n int) {
					for range n {
						free = true
						one.Unblocked()
						if s.RunNextUnblockedRoutine() != RanOneRoutine {
							b.Fatal("nothing has run")
						}
						task(b, s, one, run)
						if s.RunNextUnblockedRoutine() != SomeRoutinesBlocked {
							b.Fatal("it is not blocked")
						}
					}
				}
			}
			versusOf(b, 50_000, side{"ten", with(few)}, side{"million", with(many)})
		})
	}
}

// What a blocked routine takes in memory, its closure included.
func BenchmarkMemory(b *testing.B) {
	used := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	measure := func(b *testing.B, n, most int, options []Option, block func(s *Scheduler, wait *Blocker, i int)) {
		for range b.N {
			s := newScheduler(b, options...)
			var open atomic.Bool
			wait := newBlocker(b, s, func() bool { return !open.Load() })
			before := used()
			for i := range n {
				block(s, wait, i)
			}
			until(b, "they do not wait", func() bool { s.RunNextUnblockedRoutine(); return wait.Waiting() == n })
			each := float64(used()-before) / float64(n)
			b.ReportMetric(each, "B/routine")
			require.Less(b, each, float64(most))
			open.Store(true)
			wait.Unblocked()
			closed(b, s)
		}
	}
	b.Run("task", func(b *testing.B) {
		sum := 0
		measure(b, 1_000_000, 800, nil, func(s *Scheduler, wait *Blocker, i int) { task(b, s, wait, func(error) { sum += i }) })
	})
	b.Run("coroutine", func(b *testing.B) {
		var sum atomic.Int64
		measure(b, 50_000, 3<<10, []Option{Workers(1)}, func(s *Scheduler, wait *Blocker, i int) {
			started(b, s, func(c *Coroutine) error { err := wait.WaitUntilNotBlocked(c); sum.Add(int64(i)); return err })
		})
	})
	b.Run("goroutine", func(b *testing.B) { // the peer
		for range b.N {
			const n = 50_000
			before, gate := used(), make(chan struct{})
			var ended, sum atomic.Int64
			for i := range n {
				go func() { <-gate; sum.Add(int64(i)); ended.Add(1) }()
			}
			runtime.Gosched()
			b.ReportMetric(float64(used()-before)/n, "B/routine")
			close(gate)
			until(b, "they do not end", func() bool { return ended.Load() == n })
		}
	})
}

// The echo of 64 bytes over loopback, with a coroutine for each connection over a Selector, against
// a goroutine for each over net.Conn.
func BenchmarkSelector(b *testing.B) {
	for _, connections := range []int{1, 64} {
		b.Run(fmt.Sprint(connections), func(b *testing.B) {
			s := newScheduler(b, Workers(2))
			n := newSelector(b, s)
			echoed := func(clients []*net.TCPConn) func(int) {
				return func(n int) {
					var all sync.WaitGroup
					for _, c := range clients {
						all.Go(func() {
							var p [64]byte
							for range max(n/len(clients), 1) {
								if _, err := c.Write(p[:]); err != nil {
									b.Error(err)
								}
								if _, err := io.ReadFull(c, p[:]); err != nil {
									b.Error(err)
								}
							}
						})
					}
					all.Wait()
				}
			}
			var peers, ours []*net.TCPConn
			for range connections {
				c, client := connected(b, n)
				ours = append(ours, client)
				started(b, s, func(co *Coroutine) error {
					var p [64]byte
					for {
						k, err := c.Read(co, p[:])
						if err != nil {
							return err
						}
						if _, err := c.Write(co, p[:k]); err != nil {
							return err
						}
					}
				})
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(b, err)
			defer l.Close()
			for range connections {
				client, err := net.Dial("tcp", l.Addr().String())
				require.NoError(b, err)
				defer client.Close()
				peers = append(peers, client.(*net.TCPConn))
				conn, err := l.Accept()
				require.NoError(b, err)
				go func() {
					defer conn.Close()
					_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}, make([]byte, 64))
				}()
			}
			versus(b, side{"goroutines", echoed(peers)}, side{"selector", echoed(ours)})
		})
	}
}
