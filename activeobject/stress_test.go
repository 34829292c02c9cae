package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// A works is the object of the stress test. It counts what runs.
type works struct {
	stock int
	runs  [len(workNames)]int
	told  [len(workNames)]int // runs on behalf of a Tell
}

var workNames = [...]string{"make", "use", "use-much", "make-ctx", "use-ctx", "count", "burst", "burst-ctx", "use-next"}

// An order is the argument of every operation of the works.
type order struct {
	n    int
	told bool

	hops  int // of use-next
	at    int
	round []*activeobject.Object[works]
}

func (w *works) run(i int, o order) (int, error) {
	if o.told {
		w.told[i]++
	} else {
		w.runs[i]++
	}
	return w.stock, nil
}

// opens reports whether the operation never waits for a guard.
func opens(i int) bool { return !strings.HasPrefix(workNames[i], "use") }

type worksOp = activeobject.Operation[works, order, int]

func newWorks() (*activeobject.Type[works], []*worksOp) {
	t := activeobject.NewType[works]("works")
	change := func(i, sign int) func(w *works, o order) (int, error) {
		return func(w *works, o order) (int, error) { w.stock += sign * o.n; return w.run(i, o) }
	}
	ctx := func(body func(w *works, o order) (int, error)) func(*works, context.Context, order) (int, error) {
		return func(w *works, _ context.Context, o order) (int, error) { return body(w, o) }
	}
	burst := func(i int) func(w *works, o order) (int, error) {
		return func(w *works, o order) (int, error) { w.run(i, o); panic("burst") }
	}
	covered := func(w *works, o order) bool { return w.stock >= o.n }
	// A request for this runs here first, which changes nothing and is not counted, and
	// then as often as it is told to at one of the next objects, or waits here again.
	var next *worksOp
	next = activeobject.Entry(t, workNames[8], func(w *works, o order) (int, error) {
		if o.hops == 0 {
			w.stock -= o.n
			return w.run(8, o)
		}
		o.hops--
		if o.at = (o.at + 1) % len(o.round); o.hops%2 == 0 {
			return next.RequeueTo(o.round[o.at], o)
		}
		return next.Requeue(o)
	}).WhenArg("enough", covered)
	return t, []*worksOp{
		activeobject.Procedure(t, workNames[0], change(0, 1)),
		activeobject.Entry(t, workNames[1], change(1, -1)).When("any", func(w *works) bool { return w.stock >= 5 }),
		activeobject.Entry(t, workNames[2], change(2, -1)).WhenArg("enough", covered),
		activeobject.ProcedureCtx(t, workNames[3], ctx(change(3, 1))),
		activeobject.EntryCtx(t, workNames[4], ctx(change(4, -1))).WhenArg("enough", covered),
		activeobject.Function(t, workNames[5], func(w *works, o order) (int, error) { return w.run(5, o) }),
		activeobject.Procedure(t, workNames[6], burst(6)),
		activeobject.ProcedureCtx(t, workNames[7], ctx(burst(7))),
		next,
	}
}

// balance is what has become of the requests of one operation at one object.
type balance struct {
	calls, returned, withdrawn, refused, stopped atomic.Int64 // of requests that a goroutine waited for
	tells, lost                                  atomic.Int64 // taken that must run, and those that may have been withdrawn or failed
}

// enter books the outcome of a request that was waited for.
func (b *balance) enter(err error) error {
	b.calls.Add(1)
	var panicked *activeobject.PanicError
	switch {
	case err == nil, errors.As(err, &panicked):
		b.returned.Add(1)
	case errors.Is(err, context.Canceled):
		b.withdrawn.Add(1)
	case errors.Is(err, activeobject.ErrRefused):
		b.refused.Add(1)
	case errors.Is(err, activeobject.ErrStopped), errors.Is(err, proto.ErrDeadLetter):
		b.stopped.Add(1)
	default:
		return err
	}
	return nil
}

// Every request of every caller has exactly one end, whatever happens: it ran, was
// withdrawn, was refused, or failed as its object stopped.
func TestEveryRequestIsAccountedFor(t *testing.T) {
	typ, ops := newWorks()
	deadline := time.Now().Add(*stress)
	var total [len(workNames)]balance
	var ran, told [len(workNames)]int
	rounds := 0
	for ; rounds == 0 || time.Now().Before(deadline); rounds++ {
		accountRound(t, typ, ops, &total, &ran, &told)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d rounds", rounds)
	for i, name := range workNames {
		b := &total[i]
		calls := b.calls.Load()
		t.Logf("%-10s %8d calls = %8d ran + %7d withdrawn + %7d refused + %7d stopped; %6d tells that must run, and %6d that may: %6d ran",
			name, calls, ran[i], b.withdrawn.Load(), b.refused.Load(), b.stopped.Load(), b.tells.Load(), b.lost.Load(), told[i])
		if sum := int64(ran[i]) + b.withdrawn.Load() + b.refused.Load() + b.stopped.Load(); sum != calls {
			t.Errorf("%s: %d calls, %d accounted for", name, calls, sum)
		}
	}
}

// accountRound has a thousand callers at work at eight objects until half of these
// are stopped in the middle and the others at the end.
func accountRound(t *testing.T, typ *activeobject.Type[works], ops []*worksOp, total *[len(workNames)]balance, ran, told *[len(workNames)]int) {
	const callers, requests = 1000, 30
	system := actor.NewSystem(actor.Logger(quiet))
	watchdog := time.AfterFunc(time.Minute, func() {
		fmt.Fprintf(os.Stderr, "the stress test hangs\n%s", state(system))
		os.Exit(1)
	})
	defer watchdog.Stop()

	type member struct {
		object  *activeobject.Object[works]
		state   *works
		balance [len(workNames)]balance
		stop    bool // in the middle
	}
	var objects []*member
	for i, options := range [][]activeobject.Option{
		nil, {activeobject.NoFastPath()}, {activeobject.PooledThreads()}, {activeobject.DedicatedThread()},
		nil, {activeobject.ByRotation(), activeobject.MaxBypass(3)}, {activeobject.PooledThreads()}, {activeobject.DedicatedThread()},
	} {
		m := &member{state: &works{stock: 100}, stop: i >= 4}
		m.object = activeobject.Must(activeobject.New(system, typ, m.state, options...))
		objects = append(objects, m)
	}

	var round []*activeobject.Object[works]
	for _, m := range objects {
		round = append(round, m.object)
	}
	over, end := context.WithCancel(background) // cancels all that wait at the end
	var made atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(rand.Uint64(), 1))
			for range requests {
				if made.Add(1) == callers*requests/2 {
					for _, m := range objects {
						if m.stop {
							m.object.Stop()
						}
					}
				}
				m, i := objects[r.IntN(len(objects))], r.IntN(len(ops))
				op, b, o := ops[i], &m.balance[i], order{n: 1 + r.IntN(20)}
				if op.Name() == "use-next" {
					// It ends somewhere, so that its balance is that of all objects.
					b, o.hops, o.round = &objects[0].balance[i], r.IntN(5), round
				}
				ctx, cancel := context.WithCancel(over)
				var err error
				switch way := r.IntN(11); way {
				case 0, 1, 2: // a call, which another goroutine may cancel at any time
					if r.IntN(2) == 0 {
						go cancel()
					}
					_, err = op.Call(ctx, m.object, o)
				case 3:
					_, err = op.Try(ctx, m.object, o)
				case 4, 5: // a future that may be withdrawn, or whose context may end
					f := op.Send(ctx, m.object, o)
					if r.IntN(2) == 0 {
						f.Withdraw()
					} else if r.IntN(2) == 0 {
						go cancel()
					}
					_, err = f.Await(background)
				case 6:
					o.told = true
					taken := &b.tells
					if !opens(i) || m.stop {
						// It may wait, or its object stop. Its context ends here.
						taken = &b.lost
					}
					told := ctx
					if taken == &b.tells {
						told = background // it must run
					}
					if err := op.Tell(told, m.object, o); err == nil {
						taken.Add(1)
					} else if taken == &b.tells || !errors.Is(err, activeobject.ErrStopped) && !errors.Is(err, context.Canceled) {
						t.Errorf("tell %s: %v", op.Name(), err)
					}
					cancel()
					continue
				case 7: // by message, to an operation that does not wait for ever
					if !opens(i) {
						cancel()
						continue
					}
					var answer any
					if answer, err = system.Actors().Root.RequestFuture(m.object.PID(), &actor.Invoke{Operation: op.Name(), Argument: o}, time.Minute).Result(); err == nil {
						err = answer.(*actor.Reply).Err
					}
				case 8:
					if r.IntN(20) == 0 {
						m.object.Explain()
					}
					_, err = op.Call(ctx, m.object, o)
				case 9: // one of several, of which the one that is chosen counts
					others := []int{r.IntN(len(objects)), r.IntN(len(objects))}
					cases := []*activeobject.Case[int]{op.Case(m.object, o), op.Case(objects[others[0]].object, o), op.Case(objects[others[1]].object, o)}
					if r.IntN(2) == 0 {
						go cancel()
					}
					var n int
					if n, err = activeobject.Select(ctx, cases[0], cases[1], cases[2]); n >= 0 {
						_, err = cases[n].Result()
						if n > 0 && op.Name() != "use-next" {
							b = &objects[others[n-1]].balance[i]
						}
					}
				default: // a wait ended from outside while many others go on
					stop := time.AfterFunc(time.Duration(r.IntN(int(time.Millisecond))), cancel)
					_, err = op.Call(ctx, m.object, o)
					stop.Stop()
				}
				cancel()
				if err := b.enter(err); err != nil {
					t.Errorf("%s of %s: %v", op.Name(), m.object, err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	// Requests that wait for a guard which nothing opens any more are canceled when
	// nothing else goes on.
	for last := int64(-1); ; {
		select {
		case <-done:
		case <-time.After(50 * time.Millisecond):
			if now := made.Load(); now == last {
				end()
			} else {
				last = now
			}
			continue
		}
		break
	}
	end()
	for _, m := range objects {
		eventually(t, "all that can start has run", func() bool {
			s := m.object.Explain()
			return len(s.Running) == 0 && !slices.ContainsFunc(s.Waiting, func(w mailbox.Waiting) bool {
				return opens(slices.Index(workNames[:], w.Operation))
			})
		})
	}
	if err := system.Close(background); err != nil {
		t.Error(err)
	}
	last := len(workNames) - 1 // use-next
	for _, m := range objects[1:] {
		objects[0].state.runs[last] += m.state.runs[last]
		objects[0].state.told[last] += m.state.told[last]
		m.state.runs[last], m.state.told[last] = 0, 0
		objects[0].balance[last].lost.Add(m.balance[last].lost.Swap(0))
	}
	for _, m := range objects {
		for i, name := range workNames {
			b, sum := &m.balance[i], &total[i]
			if returned := b.returned.Load(); returned != int64(m.state.runs[i]) {
				t.Errorf("%s of %v: %d results of %d runs", name, m.object, returned, m.state.runs[i])
			}
			if tells, lost := b.tells.Load(), b.lost.Load(); int64(m.state.told[i]) < tells || int64(m.state.told[i]) > tells+lost {
				t.Errorf("%s of %v: %d ran of %d that were told, and %d that may have been", name, m.object, m.state.told[i], tells, lost)
			}
			ran[i] += m.state.runs[i]
			told[i] += m.state.told[i]
			sum.calls.Add(b.calls.Load())
			sum.returned.Add(b.returned.Load())
			sum.withdrawn.Add(b.withdrawn.Load())
			sum.refused.Add(b.refused.Load())
			sum.stopped.Add(b.stopped.Load())
			sum.tells.Add(b.tells.Load())
			sum.lost.Add(b.lost.Load())
		}
	}
}
