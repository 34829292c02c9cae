package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/activeobject/semaphore"
	"github.com/sluice-go/sluice/actor"
)

// model is a semaphore that shows its whole line.
type model struct {
	fair       bool
	size, held int
	line       []*waiter
	over       map[*waiter]string // how those have ended that have
}

type waiter struct {
	n      int
	future activeobject.Future[None]
}

func (m *model) free() int { return max(m.size-m.held, 0) }

// settle ends all waits that are over, as the rules say.
func (m *model) settle() {
	for i := 0; i < len(m.line); {
		switch w := m.line[i]; {
		case w.n > m.size:
			m.over[w] = "too large"
			m.line = slices.Delete(m.line, i, i+1)
		case w.n <= m.free():
			m.held += w.n
			m.over[w] = "acquired"
			m.line = slices.Delete(m.line, i, i+1)
		case m.fair:
			return // none passes the head
		default:
			i++
		}
	}
}

func (m *model) acquire(w *waiter) {
	m.line = append(m.line, w)
	m.settle()
}

// try returns how an attempt ends.
func (m *model) try(n int) string {
	switch {
	case m.fair && len(m.line) > 0:
		return "refused"
	case n > m.size:
		return "too large"
	case n > m.free():
		return "refused"
	}
	m.held += n
	return "acquired"
}

func ending(err error) string {
	switch {
	case err == nil:
		return "acquired"
	case errors.As(err, new(*semaphore.SizeError)):
		return "too large"
	case errors.Is(err, activeobject.ErrRefused):
		return "refused"
	case errors.Is(err, context.Canceled):
		return "withdrawn"
	}
	return err.Error()
}

// Whatever is done to a semaphore, in whatever order, it does what its rules say: of
// those that wait exactly the right ones are admitted, fail and stay.
func TestASemaphoreKeepsToItsRules(t *testing.T) {
	for name, build := range kinds {
		for thread, option := range map[string]activeobject.Option{"borrowed": activeobject.CallerThreads(), "scheduler": activeobject.NoFastPath(), "pooled": activeobject.PooledThreads()} {
			t.Run(name+"/"+thread, func(t *testing.T) {
				system := objecttest.NewSystem(t, objecttest.AllowWaiting())
				rapid.Check(t, func(t *rapid.T) {
					size := rapid.IntRange(1, 5).Draw(t, "size")
					s, err := build(system, size, option)
					require.NoError(t, err)
					defer s.Object().Stop()
					m := &model{fair: name == "fair", size: size, over: map[*waiter]string{}}
					weight := rapid.IntRange(1, 5)
					var all []*waiter
					t.Repeat(map[string]func(*rapid.T){
						"acquire": func(t *rapid.T) {
							n := weight.Draw(t, "n")
							w := &waiter{n, s.Acquires().Send(background, n)}
							all = append(all, w)
							m.acquire(w)
						},
						"try": func(t *rapid.T) {
							n := weight.Draw(t, "n")
							require.Equal(t, m.try(n), ending(try(s.Acquires(), n)))
						},
						"release": func(t *rapid.T) {
							n := weight.Draw(t, "n")
							err := s.Release(n)
							if n > m.held {
								require.Equal(t, &semaphore.ReleaseError{Semaphore: s.Object().Name(), Permits: n, Held: m.held}, err)
								return
							}
							require.NoError(t, err)
							m.held -= n
							m.settle()
						},
						"resize": func(t *rapid.T) {
							m.size = weight.Draw(t, "n")
							require.NoError(t, s.Resize(m.size))
							m.settle()
						},
						"drain": func(t *rapid.T) {
							n, err := s.Drain()
							require.NoError(t, err)
							require.Equal(t, m.free(), n)
							m.held += n
						},
						"withdraw": func(t *rapid.T) {
							if len(m.line) == 0 {
								t.Skip("none waits")
							}
							i := rapid.IntRange(0, len(m.line)-1).Draw(t, "which")
							w := m.line[i]
							require.True(t, w.future.Withdraw())
							m.line = slices.Delete(m.line, i, i+1)
							m.over[w] = "withdrawn"
							m.settle()
						},
						"": func(t *rapid.T) {
							for _, w := range all {
								if how := m.over[w]; how != "" {
									require.Equal(t, how, ending(over(t, w.future)))
								}
							}
							held, err := s.Held() // after which nothing of before is under way
							require.NoError(t, err)
							available, err := s.Available()
							require.NoError(t, err)
							require.Equal(t, []int{m.held, m.free(), len(m.line)}, []int{held, available, s.Waiting()}, "held, available, waiting")
							for _, w := range m.line {
								require.False(t, w.future.Ready())
							}
						},
					})
				})
			})
		}
	}
}

// A history of requests is right if there is an order of them, each between its
// call and its return, in which a semaphore without concurrency gives the same answers.

type ask struct {
	operation string
	n         int
}

type answer struct {
	how string
	n   int
}

type state struct{ size, held int }

func (s state) free() int { return max(s.size-s.held, 0) }

var sequential = porcupine.Model{
	Init: func() any { return state{size: 3} },
	Step: func(st, input, output any) (bool, any) {
		s, in, out := st.(state), input.(ask), output.(answer)
		switch in.operation {
		case "acquire":
			if in.n > s.size {
				return out.how == "too large", s
			}
			return out.how == "acquired" && in.n <= s.free(), state{s.size, s.held + in.n}
		case "try":
			switch {
			case out.how == "refused": // maybe behind another request, which is not in the state
				return true, s
			case in.n > s.size:
				return out.how == "too large", s
			}
			return out.how == "acquired" && in.n <= s.free(), state{s.size, s.held + in.n}
		case "release":
			if in.n > s.held {
				return out.how == "not held" && out.n == s.held, s
			}
			return out.how == "released", state{s.size, s.held - in.n}
		case "resize":
			return true, state{in.n, s.held}
		case "drain":
			return out.n == s.free(), state{s.size, s.held + s.free()}
		}
		return out.n == s.held, s
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}

func TestHistoriesAreThoseOfASequentialSemaphore(t *testing.T) {
	each(t, func(t *testing.T, build func(int, ...activeobject.Option) *semaphore.Semaphore) {
		for range 20 {
			const clients, steps = 6, 16
			s := build(3)
			var clock atomic.Int64
			var mu sync.Mutex
			var history []porcupine.Operation
			var cancels [clients]atomic.Pointer[context.CancelFunc]
			var all sync.WaitGroup
			for client := range clients {
				all.Go(func() {
					for range steps {
						ctx, cancel := context.WithCancel(background)
						cancels[client].Store(&cancel)
						in := ask{[]string{"acquire", "acquire", "try", "release", "release", "release", "resize", "drain", "held"}[rand.N(9)], 1 + rand.N(4)}
						called := clock.Add(1)
						out := answer{}
						var err error
						switch in.operation {
						case "acquire":
							if rand.N(2) == 0 {
								err = s.Acquire(ctx, in.n)
							} else {
								_, err = s.Acquires().Send(ctx, in.n).Await(background)
							}
							out.how = ending(err)
						case "try":
							out.how = ending(try(s.Acquires(), in.n))
						case "release":
							out.how = "released"
							if e, ok := errors.AsType[*semaphore.ReleaseError](s.Release(in.n)); ok {
								out = answer{"not held", e.Held}
							}
						case "resize":
							err = s.Resize(in.n)
						case "drain":
							out.n, err = s.Drain()
						case "held":
							out.n, err = s.Held()
						}
						returned := clock.Add(1)
						cancel()
						if out.how != "withdrawn" { // which has had no effect, or the others could not be explained
							mu.Lock()
							history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: called, Output: out, Return: returned})
							mu.Unlock()
						}
						if out.how == "" && err != nil {
							t.Error(err)
						}
					}
				})
			}
			done := make(chan struct{})
			go func() { all.Wait(); close(done) }()
			for running := true; running; {
				select {
				case <-done:
					running = false
				default: // now and then a context ends, so that no request waits for ever
					for range rand.N(100) {
						runtime.Gosched()
					}
					if cancel := cancels[rand.N(clients)].Load(); cancel != nil {
						(*cancel)()
					}
				}
			}
			result := porcupine.CheckOperationsTimeout(sequential, history, time.Minute)
			require.Equal(t, porcupine.Ok, result, "%v", history)
		}
	})
}

// Many acquire, hold and release while the semaphore is resized and they lose patience:
// all that was acquired is accounted for.
func TestNothingIsLostUnderCancellationAndResizing(t *testing.T) {
	for name, build := range kinds {
		t.Run(name, func(t *testing.T) {
			const most, workers, rounds = 6, 16, 300
			system := actor.NewSystem(quiet)
			defer system.Close(background)
			s := made(t)(build(system, most))
			var inside, acquired, withdrawn, tooLarge atomic.Int64
			var all sync.WaitGroup
			for w := range workers {
				all.Go(func() {
					for i := range rounds {
						n := 1 + (w+i)%most
						ctx, cancel := context.WithCancel(background)
						if i%3 == 0 {
							go cancel()
						}
						switch err := s.Acquire(ctx, n); {
						case err == nil:
							acquired.Add(1)
							if now := inside.Add(int64(n)); now > most {
								t.Errorf("%d are held", now)
							}
							if i%2 == 0 {
								runtime.Gosched()
							}
							inside.Add(int64(-n))
							if err := s.Release(n); err != nil {
								t.Error(err)
							}
						case err == context.Canceled:
							withdrawn.Add(1)
						case errors.As(err, new(*semaphore.SizeError)):
							tooLarge.Add(1)
						default:
							t.Error(err)
						}
						cancel()
					}
				})
			}
			resized := make(chan struct{})
			go func() {
				defer close(resized)
				for i := range 10 * rounds {
					if err := s.Resize(1 + i%most); err != nil { // the last is the largest
						t.Error(err)
					}
					runtime.Gosched()
				}
			}()
			all.Wait()
			<-resized
			require.EqualValues(t, workers*rounds, acquired.Load()+withdrawn.Load()+tooLarge.Load())
			require.Positive(t, acquired.Load())
			counts(t, s, most, 0, 0)
		})
	}
}
