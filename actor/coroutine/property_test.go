package coroutine_test

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

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/sluice-go/sluice/actor/coroutine"
)

// A scheduler by hand does what a naive model does, in which each blocker is a number of tokens and
// a list of routines: those that have been announced to, and whose tokens are there, go on from the
// front.
func TestTheSchedulerDoesWhatANaiveModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := NewScheduler()
		require.NoError(t, err)
		const blockers = 3
		type line struct {
			b         *Blocker
			tokens    int
			waiting   []int // what the model expects
			announced bool
			ran, want []int
			free      int // tokens, as the model counts them
		}
		lines := make([]line, blockers)
		for i := range lines {
			l := &lines[i]
			l.b, err = NewBlocker(s, func() bool { return l.tokens == 0 })
			require.NoError(t, err)
		}
		tasks := map[int]*Task{}
		made, ended := 0, 0
		audit := func() { require.NoError(t, s.Audit(false)) }
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { audit() },
			"task": func(t *rapid.T) {
				l, i := &lines[rapid.IntRange(0, blockers-1).Draw(t, "blocker")], made
				made++
				tasks[i], err = s.SetRoutineContinuation(l.b, func(err error) {
					require.NoError(t, err)
					require.Positive(t, l.tokens)
					l.tokens--
					l.ran = append(l.ran, i)
					ended++
				})
				require.NoError(t, err)
				l.announced = l.announced || len(l.waiting) == 0 // the first of a line is examined
				l.waiting = append(l.waiting, i)
			},
			"coroutine": func(t *rapid.T) {
				// It visits two blockers; to the model it is two routines, so it comes only when
				// nothing else can happen in between.
				l, i := &lines[rapid.IntRange(0, blockers-1).Draw(t, "blocker")], made
				made++
				_, err := s.Go(background, func(c *Coroutine) error {
					if err := l.b.WaitUntilNotBlocked(c); err != nil {
						return err
					}
					l.tokens--
					l.ran = append(l.ran, i)
					ended++
					return nil
				})
				require.NoError(t, err)
				settle(s, func() {})
				model := func(l *line) {
					for l.announced && l.free > 0 && len(l.waiting) > 0 {
						l.free--
						l.want = append(l.want, l.waiting[0])
						l.waiting = l.waiting[1:]
					}
					l.announced = false
				}
				for k := range lines {
					if k := &lines[k]; k != l {
						model(k)
					}
				}
				// What was runnable before it ran before it; it then finds the line empty or not.
				model(l)
				if len(l.waiting) == 0 && l.free > 0 {
					l.free--
					l.want = append(l.want, i)
				} else {
					l.waiting = append(l.waiting, i)
				}
			},
			"change": func(t *rapid.T) {
				l := &lines[rapid.IntRange(0, blockers-1).Draw(t, "blocker")]
				n := rapid.IntRange(1, 3).Draw(t, "tokens")
				l.tokens += n
				l.free += n
				l.b.Unblocked()
				l.announced = true
			},
			"spurious": func(t *rapid.T) {
				l := &lines[rapid.IntRange(0, blockers-1).Draw(t, "blocker")]
				l.b.Unblocked()
				l.announced = true
			},
			"withdraw": func(t *rapid.T) {
				if made == 0 {
					return
				}
				i := rapid.IntRange(0, made-1).Draw(t, "task")
				if tasks[i] == nil {
					return
				}
				waits := false
				for k := range lines {
					if j := slices.Index(lines[k].waiting, i); j >= 0 {
						lines[k].waiting = slices.Delete(lines[k].waiting, j, j+1)
						waits = true
					}
				}
				require.Equal(t, waits, tasks[i].Withdraw())
				if waits {
					ended++
				}
			},
			"settle": func(*rapid.T) {
				settle(s, audit)
				for i := range lines {
					l := &lines[i]
					for l.announced && l.free > 0 && len(l.waiting) > 0 {
						l.free--
						l.want = append(l.want, l.waiting[0])
						l.waiting = l.waiting[1:]
					}
					l.announced = false
					require.Equal(t, l.want, l.ran)
					require.Equal(t, len(l.waiting), l.b.Waiting())
				}
			},
		})
		left := s.Stats().Live
		require.Equal(t, made-ended, left)
		for _, task := range tasks {
			if task.Withdraw() {
				left--
			}
		}
		require.NoError(t, s.Close(background))
	})
}

// settle runs by hand until nothing can run.
func settle(s *Scheduler, between func()) {
	for s.RunNextUnblockedRoutine() == RanOneRoutine {
		between()
	}
}

// Everything at once: coroutines and tasks over small queues, workers that change in number,
// routines that panic, exit, lock their threads, are withdrawn or canceled. Each item comes out
// once, and each routine is accounted for.
func TestUnderLoadEachItemAndEachRoutineIsAccountedFor(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := map[uint64][]Option{0: {Workers(1)}, 1: {Workers(2)}, 2: {Workers(4)}, 3: {Dispatcher(goroutines{}, 3)}, 4: {Workers(8)}}[seed]
			s := newScheduler(t, w...)
			if w == nil {
				ctx, stop := context.WithCancel(background)
				var drivers sync.WaitGroup
				for range 2 {
					drivers.Go(func() {
						for ctx.Err() == nil {
							if s.RunNextUnblockedRoutine() != RanOneRoutine {
								runtime.Gosched()
							}
						}
					})
				}
				defer func() { stop(); drivers.Wait() }()
			}
			const clients, rounds = 40, 50
			var queues [3]*Queue[int]
			for i := range queues {
				var err error
				queues[i], err = NewQueue[int](s, i+1)
				require.NoError(t, err)
			}
			var in, out, sum, told, made, withdrawn atomic.Int64
			var routines []interface{ Await(context.Context) error }
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			for i := range clients {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				q := queues[r.IntN(len(queues))]
				body := func(c *Coroutine) error {
					for k := range rounds {
						switch r.IntN(12) {
						case 0, 1, 2, 3:
							if err := q.BlockingEnqueue(c, k); err != nil {
								return err
							}
							in.Add(1)
							sum.Add(int64(k))
						case 4, 5, 6, 7:
							x, err := q.BlockingDequeue(c)
							if err != nil {
								return err
							}
							out.Add(1)
							sum.Add(int64(-x))
						case 8:
							runtime.LockOSThread()
						case 9:
							if x, ok := q.TryDequeue(); ok {
								out.Add(1)
								sum.Add(int64(-x))
							}
						case 10:
							made.Add(1)
							if task, err := q.EnqueueThen(k, func(err error) {
								if err == nil {
									in.Add(1)
									sum.Add(int64(k))
								}
								told.Add(1)
							}); err != nil {
								made.Add(-1)
							} else if k%3 == 0 && task.Withdraw() {
								withdrawn.Add(1)
							}
						default:
							if err := c.Yield(); err != nil {
								return err
							}
						}
						if k == rounds-10 {
							switch r.IntN(20) {
							case 0:
								panic("cause")
							case 1:
								runtime.Goexit()
							}
						}
					}
					return nil
				}
				var err error
				var c *Coroutine
				if i%3 == 0 {
					c, err = s.Go(ctx, body)
				} else {
					c, err = s.Go(background, body)
				}
				require.NoError(t, err)
				routines = append(routines, c)
			}
			for i := range 60 {
				require.NoError(t, s.Audit(false))
				if s.Stats().Limit > 0 {
					require.NoError(t, s.Resize(1+i%5))
				}
				if i == 40 {
					cancel()
				}
				runtime.Gosched()
			}
			until(t, "it does not come to rest", s.Idle)
			require.NoError(t, s.Audit(true))
			closed(t, s)
			for _, r := range routines {
				if err := awaited(t, r); err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, context.Canceled) && !errors.As(err, new(*RoutineError)) {
					t.Error(err)
				}
			}
			left := 0
			for _, q := range queues {
				for x, ok := q.TryDequeue(); ok; x, ok = q.TryDequeue() {
					sum.Add(int64(-x))
					left++
				}
			}
			require.EqualValues(t, left, in.Load()-out.Load())
			require.Zero(t, sum.Load())
			require.Equal(t, made.Load(), told.Load()+withdrawn.Load())
			require.Zero(t, s.Stats().Live)
		})
	}
}
