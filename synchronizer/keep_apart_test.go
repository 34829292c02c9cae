package synchronizer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
)

// A job takes up a stretch of a quay, and does what it says.
type job struct {
	from, to int
	in       []*presence // those that it has been called from inside of
	bad      bool        // its condition panics
	do       func(ctx context.Context, here *presence) error
}

type quay struct{ open bool }

// presence is a body that runs in a quay.
type presence struct {
	op  int
	job job
}

// quays records which requests are inside of one quay.
type quays struct {
	*activeobject.Type[quay]
	ops   []*activeobject.Operation[quay, job, None]
	set   *activeobject.Operation[quay, bool, None]
	table guards.Table

	mu     sync.Mutex
	inside []*presence
	wrong  []string
	ran    map[string]int
}

func (y *quays) enter(op int, j job) *presence {
	p := &presence{op, j}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.ran[y.name(op)]++
	for _, other := range y.inside {
		if !slices.Contains(j.in, other) && y.clash(p, other) {
			y.wrong = append(y.wrong, y.name(op)+" beside "+y.name(other.op))
		}
	}
	y.inside = append(y.inside, p)
	return p
}

func (y *quays) leave(p *presence) {
	y.mu.Lock()
	defer y.mu.Unlock()
	i := slices.Index(y.inside, p)
	y.inside = slices.Delete(y.inside, i, i+1)
}

func (y *quays) empty() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return len(y.inside) == 0
}

const (
	ofDo   = -1
	ofView = -2
)

func (y *quays) name(op int) string {
	switch op {
	case ofDo:
		return "do"
	case ofView:
		return "view"
	}
	return y.ops[op].Name()
}

// reads: the operations that change nothing.
var reads = []string{"get", "scan", "look"}

func (y *quays) clash(a, b *presence) bool {
	if a.op >= 0 && b.op >= 0 {
		a.job.bad, b.job.bad = false, false
		return y.table.Clash(a.op, a.job, b.op, b.job)
	}
	function := func(p *presence) bool {
		return p.op == ofView || p.op >= 0 && slices.Contains(reads, y.ops[p.op].Name())
	}
	return !function(a) || !function(b)
}

// work runs the body of a job.
func (y *quays) work(op int, ctx context.Context, j job) (_ None, err error) {
	here := y.enter(op, j)
	defer y.leave(here)
	if j.do != nil {
		err = j.do(ctx, here)
	}
	return none, err
}

func newQuays() *quays {
	y := &quays{Type: activeobject.NewType[quay]("quay"), ran: map[string]int{}}
	withContext := func(op int) func(*quay, context.Context, job) (None, error) {
		return func(_ *quay, ctx context.Context, j job) (None, error) { return y.work(op, ctx, j) }
	}
	leaf := func(op int) func(*quay, job) (None, error) {
		return func(_ *quay, j job) (None, error) { return y.work(op, background, j) }
	}
	put := activeobject.ProcedureCtx(y.Type, "put", withContext(0))
	get := activeobject.FunctionCtx(y.Type, "get", withContext(1))
	span := activeobject.ProcedureCtx(y.Type, "span", withContext(2))
	scan := activeobject.Function(y.Type, "scan", leaf(3))
	cross := activeobject.ProcedureCtx(y.Type, "cross", withContext(4))
	look := activeobject.Function(y.Type, "look", leaf(5))
	tick := activeobject.Procedure(y.Type, "tick", leaf(6))
	wipe := activeobject.Procedure(y.Type, "wipe", leaf(7))
	pass := activeobject.EntryCtx(y.Type, "pass", withContext(8)).When("open", func(y *quay) bool { return y.open })
	y.ops = []*activeobject.Operation[quay, job, None]{put, get, span, scan, cross, look, tick, wipe, pass}
	y.set = activeobject.Procedure(y.Type, "set", activeobject.Arg(func(y *quay, open bool) { y.open = open }))

	bounds := func(j job) (int, int) { return j.from, j.to }
	key := func(j job) int { return j.from % 3 }
	y.table = guards.NewTable(y.Operations()...).
		Conflict(put, put, get).Conflict(span, span, scan).Conflict(cross, cross, tick).Conflict(tick, tick, pass).
		Exclusive(wipe, y.set).Conflict(pass, pass, put).
		EqualKeys(guards.Key(put, key), guards.Key(get, key), guards.Key(pass, key)).
		Overlapping(guards.Interval(span, bounds), guards.Interval(scan, bounds)).
		OnlyIf(guards.Pair(cross, cross, func(a, b job) bool {
			if a.bad {
				panic("bad")
			}
			return (a.from+b.from)%3 == 0
		}))
	return y
}

// Whatever comes together at an object with conflicts of all kinds (calls, from inside too,
// and what is sent, tried, selected, withdrawn, requeued; panics, restarts, the end of the object), no
// two bodies that conflict are inside at once, each request ends, and the object comes to
// rest.
func TestWhateverComesThoseThatConflictAreKeptApart(t *testing.T) {
	for name, options := range map[string]func(p *synchronizer.Pool) []activeobject.Option{
		"callers": func(*synchronizer.Pool) []activeobject.Option { return nil },
		"inside": func(*synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{synchronizer.Reentrant()}
		},
		"spawned, inside": func(*synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{synchronizer.Goroutines(), synchronizer.Limit(3), synchronizer.Reentrant()}
		},
		"pool": func(p *synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{synchronizer.Workers(p), activeobject.MaxBypass(3)}
		},
		"last in first out, inside": func(*synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{activeobject.ByLatest(), activeobject.MaxBypass(2), synchronizer.Reentrant()}
		},
		"all compatible": func(*synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{synchronizer.AllCompatible()}
		},
		"all compatible, inside, bypasses": func(*synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{synchronizer.AllCompatible(), activeobject.ByLatest(), activeobject.MaxBypass(2), synchronizer.Reentrant()}
		},
		"bounded, inside": func(*synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{activeobject.Bound(4, activeobject.DropOldest), synchronizer.Reentrant()}
		},
		"patient": func(*synchronizer.Pool) []activeobject.Option {
			return []activeobject.Option{activeobject.Bound(3, activeobject.Wait)}
		},
	} {
		for _, end := range []string{"idle", "stop", "poison"} {
			t.Run(name+"/"+end, func(t *testing.T) {
				s := newSystem(t)
				y := newQuays()
				o, err := synchronizer.NewFrom(s, y.Type, func() (*quay, error) { return &quay{}, nil },
					append(options(newPool(t, s, 3)), synchronizer.Conflicts(y.table),
						activeobject.Supervisor(proto.NewOneForOneStrategy(1<<30, time.Hour, func(any) proto.Directive { return proto.RestartDirective })))...)
				require.NoError(t, err)
				const callers, rounds = 10, 150
				ended := make(chan None, callers)
				for c := range callers {
					r := rand.New(rand.NewPCG(uint64(c), 7))
					go func() {
						for range rounds {
							y.round(r, o)
						}
						ended <- none
					}()
				}
				opened := make(chan None)
				go func() {
					for i := 0; ; i++ {
						if _, err := y.set.Call(background, o, i%2 == 0); errors.Is(err, activeobject.ErrStopped) {
							break
						}
						select {
						case <-opened:
							opened <- none
							return
						default:
							runtime.Gosched()
						}
					}
					<-opened
					opened <- none
				}()
				for n := range callers {
					soon(t, ended)
					if n == callers/2 {
						switch end {
						case "stop":
							o.Stop()
						case "poison":
							o.Retire()
						}
					}
				}
				opened <- none
				<-opened
				until(t, "a request is still inside", y.empty) // what was told
				y.mu.Lock()
				defer y.mu.Unlock()
				require.Empty(t, y.wrong)
				for _, op := range y.ops {
					if end != "idle" {
						break // perhaps before all have had their turn
					}
					require.NotZero(t, y.ran[op.Name()], op.Name())
				}
			})
		}
	}
}

// round makes some request, and waits for its end.
func (y *quays) round(r *rand.Rand, o *activeobject.Object[quay]) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	op, j := y.ops[r.IntN(len(y.ops))], y.draw(r, o, 0)
	switch op.Name() {
	case "pass":
		c, late := context.WithTimeout(ctx, time.Millisecond)
		defer late()
		ctx = c
	default:
		if r.IntN(6) == 0 {
			go cancel()
		}
	}
	switch r.IntN(12) {
	case 0, 1, 2, 3, 4:
		_, _ = op.Call(ctx, o, j)
	case 5:
		_, _ = op.Try(ctx, o, j)
	case 6:
		_, _ = op.Send(ctx, o, j).Await(background)
	case 7:
		ticket := op.Begin(ctx, o, j)
		_, _ = ticket.Await(background)
	case 8:
		f := op.Send(background, o, j)
		f.Withdraw()
		_, _ = f.Await(background)
	case 9:
		_ = op.Tell(background, o, j)
	case 10:
		_, _ = activeobject.Select(ctx, op.Case(o, j), y.ops[r.IntN(len(y.ops))].Case(o, y.draw(r, o, 0)))
	case 11:
		body := func(op int) func(*quay) error {
			return func(*quay) error { _, err := y.work(op, background, job{}); return err }
		}
		if r.IntN(2) == 0 {
			_ = o.Do(ctx, body(ofDo))
		} else {
			_ = o.View(ctx, body(ofView))
		}
	}
}

// draw draws a job.
func (y *quays) draw(r *rand.Rand, o *activeobject.Object[quay], depth int) job {
	j := job{from: r.IntN(6), bad: r.IntN(20) == 0}
	j.to = j.from + r.IntN(4)
	next := y.ops[r.IntN(8)]
	switch n := r.IntN(14); {
	case n < 3:
		j.do = func(context.Context, *presence) error { runtime.Gosched(); return nil }
	case n == 3:
		j.do = func(context.Context, *presence) error { panic("a body") }
	case n == 4:
		inner := y.draw(r, o, 2)
		j.do = func(_ context.Context, here *presence) error {
			inner := inner
			inner.in = here.job.in
			_, err := next.Requeue(inner)
			return err
		}
	case n < 9 && depth < 2:
		inner, how := y.draw(r, o, depth+1), r.IntN(4)
		j.do = func(ctx context.Context, here *presence) error {
			if ctx == background {
				return nil // a leaf
			}
			inner := inner
			inner.in = append(slices.Clone(here.job.in), here)
			var err error
			switch how {
			case 0:
				_, err = next.Try(ctx, o, inner)
			case 1:
				_, err = activeobject.Select(ctx, next.Case(o, inner))
			default:
				_, err = next.Call(ctx, o, inner)
			}
			return err
		}
	}
	return j
}
