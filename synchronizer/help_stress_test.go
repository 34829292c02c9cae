package synchronizer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer"
)

// A bank is a shared object in drawers, most of whose operations are leaves. Each body notes
// what it meets, and that it has run.
type bank struct {
	*vault
	open bool
}

// vault is what the states of one object have in common when it is restarted.
type vault struct{ drawers [3]drawer }

type drawer struct {
	total   int  // without atomics: the table keeps its writers apart
	writing bool // likewise
	readers atomic.Int32
	sum     atomic.Int64 // what total must be
}

// slip is a request: what its body is to do, and what has become of it.
type slip struct {
	id, drawer, amount int

	then  fate
	there *activeobject.Object[bank] // for moves
	body  func(context.Context)      // of an operation that takes a context

	by   string       // the goroutine that calls, if it is to be compared; "" if not
	want int32        // how many bodies run for it if nothing comes between
	runs atomic.Int32 // how many have run
}

type fate uint8

const (
	returns fate = iota
	panicking
	exiting
	moves // to another object, or to its own
)

type banks struct {
	*activeobject.Type[bank]
	put, move  *activeobject.Operation[bank, *slip, int] // leaves that write
	get        *activeobject.Operation[bank, *slip, int] // a leaf that reads
	pass       *activeobject.Operation[bank, *slip, int] // a leaf with a guard
	work, look *activeobject.Operation[bank, *slip, int] // take a context
	set        *activeobject.Operation[bank, bool, None]
}

// helping counts the bodies that helpers run, and the goroutines that bodies end.
type helping struct {
	t       *testing.T
	callers sync.Map     // by goroutine: how many bodies it is in that call others; written by itself only
	helped  atomic.Int64 // bodies that a helper has run
	exits   atomic.Int64 // bodies that have ended the goroutine of a caller
	ended   atomic.Int64 // callers whose goroutine has been ended
}

// own is called by a body that takes a context.
func (h *helping) own(s *slip) {
	if s.by != "" && goroutine() != s.by {
		h.t.Error("a body that takes a context runs on another caller's goroutine")
	}
}

// end does what a body does last.
func (h *helping) end(s *slip) (int, error) {
	if s.by != "" && goroutine() != s.by {
		inside, caller := h.callers.Load(goroutine())
		if caller {
			h.helped.Add(1)
		}
		if caller && *inside.(*int) > 0 {
			h.t.Error("a caller that is inside of an object helps")
		}
	}
	switch s.then {
	case panicking:
		panic("cause")
	case exiting:
		if _, caller := h.callers.Load(goroutine()); caller {
			h.exits.Add(1)
		}
		runtime.Goexit()
	}
	return s.id, nil
}

func (b *bank) write(h *helping, s *slip) {
	s.runs.Add(1)
	d := &b.drawers[s.drawer]
	if d.writing || d.readers.Load() != 0 {
		h.t.Error("two bodies at once that conflict")
	}
	d.writing = true
	d.total += s.amount
	d.sum.Add(int64(s.amount))
	if s.id%5 == 0 {
		runtime.Gosched()
	}
	d.writing = false
}

func (b *bank) read(h *helping, s *slip) {
	s.runs.Add(1)
	d := &b.drawers[s.drawer]
	d.readers.Add(1)
	if d.writing || int64(d.total) != d.sum.Load() {
		h.t.Error("a body beside one that it conflicts with")
	}
	if s.id%3 == 0 {
		runtime.Gosched()
	}
	d.readers.Add(-1)
}

func newBanks(h *helping) *banks {
	bs := &banks{Type: activeobject.NewType[bank]("bank")}
	bs.put = activeobject.Procedure(bs.Type, "put", func(b *bank, s *slip) (int, error) { b.write(h, s); return h.end(s) })
	bs.get = activeobject.Function(bs.Type, "get", func(b *bank, s *slip) (int, error) { b.read(h, s); return h.end(s) })
	bs.pass = activeobject.Entry(bs.Type, "pass", func(b *bank, s *slip) (int, error) { b.write(h, s); return h.end(s) }).
		When("open", func(b *bank) bool { return b.open })
	bs.move = activeobject.Procedure(bs.Type, "move", func(b *bank, s *slip) (int, error) {
		b.write(h, s)
		how := []activeobject.Requeuing{0, activeobject.KeepPlace, activeobject.Commit}[s.id%3]
		next := bs.put
		if s.id%2 == 0 {
			next = bs.get
		}
		s.then = returns
		if s.there == nil {
			return next.Requeue(s, how)
		}
		return next.RequeueTo(s.there, s, how)
	})
	bs.work = activeobject.ProcedureCtx(bs.Type, "work", func(b *bank, ctx context.Context, s *slip) (int, error) {
		h.own(s)
		b.write(h, s)
		s.body(ctx)
		return h.end(s)
	})
	bs.look = activeobject.FunctionCtx(bs.Type, "look", func(b *bank, ctx context.Context, s *slip) (int, error) {
		h.own(s)
		b.read(h, s)
		s.body(ctx)
		return h.end(s)
	})
	bs.set = activeobject.Procedure(bs.Type, "set", activeobject.Arg(func(b *bank, open bool) { b.open = open }))
	return bs
}

// byDrawer is a table in which only requests for the same drawer conflict.
func (bs *banks) byDrawer() guards.Table {
	drawer := func(s *slip) int { return s.drawer }
	return bs.Conflicts().EqualKeys(guards.Key(bs.put, drawer), guards.Key(bs.get, drawer), guards.Key(bs.pass, drawer), guards.Key(bs.move, drawer))
}

// Callers run the bodies of others and have theirs run by others, while requests are withdrawn,
// requeued and chosen, bodies fail and end their goroutines, and objects are restarted and
// stopped. Whichever goroutine runs them, as many bodies run as each request says; its result is its own, and
// the states are those of bodies that were kept apart; and for each body that ends the goroutine
// of a caller one caller is ended.
func TestARequestWhoseBodyAHelperRunsIsAccountedFor(t *testing.T) {
	type options = []activeobject.Option
	helped := 0
	for _, c := range []struct {
		name    string
		options func(bs *banks) options
		bounded bool
	}{
		{name: "as it is", options: func(*banks) options { return nil }},
		{name: "by drawer", options: func(bs *banks) options { return options{synchronizer.Conflicts(bs.byDrawer())} }},
		{name: "limit", options: func(*banks) options { return options{synchronizer.Limit(2)} }},
		{name: "reentrant", options: func(*banks) options { return options{synchronizer.Reentrant()} }},
		{name: "last in first out", options: func(*banks) options { return options{activeobject.ByLatest(), activeobject.MaxBypass(3)} }},
		{name: "bounded", options: func(*banks) options { return options{activeobject.Bound(3, activeobject.DropOldest)} }, bounded: true},
		{name: "all that are compatible", options: func(*banks) options { return options{synchronizer.AllCompatible()} }},
		{name: "without fast path", options: func(*banks) options { return options{activeobject.NoFastPath()} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(4) {
				h := &helping{t: t}
				bs := newBanks(h)
				bankAll(t, h, bs, seed, c.bounded, c.options(bs))
				helped += int(h.helped.Load())
			}
		})
	}
	require.NotZero(t, helped, "no caller has helped")
}

func bankAll(t *testing.T, h *helping, bs *banks, seed uint64, bounded bool, options []activeobject.Option) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + int(seed%4)))
	s := newSystem(t)
	options = append(options, activeobject.Supervisor(proto.NewOneForOneStrategy(1<<30, time.Hour, func(any) proto.Directive { return proto.RestartDirective })))
	var ids, calls, over, queued, done atomic.Int64
	var all [3]*activeobject.Object[bank]
	var vaults [len(all)]*vault
	for i := range all {
		vaults[i] = &vault{}
		own := options
		if i == 1 && seed%2 == 1 { // a request that is requeued there passes its interceptors, on its caller's goroutine
			own = append(slices.Clone(options), activeobject.Interceptors(activeobject.Interceptor{
				Queue: func(ctx context.Context, _ activeobject.Intercepted) (context.Context, error) {
					queued.Add(1)
					return ctx, nil
				},
				Done: func(context.Context, activeobject.Intercepted, error) { done.Add(1) },
			}))
		}
		var err error
		all[i], err = synchronizer.NewFrom(s, bs.Type, func() (*bank, error) { return &bank{vault: vaults[i]}, nil }, own...)
		require.NoError(t, err)
	}
	const stopped = 2 // which is, in the middle
	var told sync.Map // slips without a waiting caller

	newSlip := func(r *rand.Rand, op *activeobject.Operation[bank, *slip, int]) *slip {
		s := &slip{id: int(ids.Add(1)), drawer: r.IntN(3), amount: 1 + r.IntN(9), want: 1}
		switch n := r.IntN(40); {
		case op == bs.move:
			if s.then, s.want = moves, 2; r.IntN(2) == 0 {
				s.there = all[r.IntN(len(all))]
			}
		case n == 0:
			s.then = panicking
		case n == 1:
			s.then = exiting
		}
		return s
	}
	judge := func(s *slip, result int, err error) {
		runs, none := s.runs.Load(), false
		switch e := err.(type) {
		case nil:
			if runs != s.want || result != s.id {
				t.Errorf("%d bodies of %d, result %d of %d", runs, s.want, result, s.id)
			}
		case *activeobject.PanicError, *activeobject.ExitError:
			if runs != s.want {
				t.Errorf("%d bodies of %d, and yet: %v", runs, s.want, err)
			}
		case *activeobject.RequeuedError:
			if int(runs) != len(e.Ran) {
				t.Errorf("%d bodies: %v", runs, err)
			}
		case *activeobject.RefusedError, *activeobject.FullError, *activeobject.StoppedError, *activeobject.DeadlockError:
			none = true
		default:
			if none = errors.Is(err, context.Canceled); !none {
				t.Error(err)
			}
		}
		if none && runs != 0 {
			t.Errorf("%d bodies, and yet: %v", runs, err)
		}
	}
	ops := []*activeobject.Operation[bank, *slip, int]{bs.put, bs.put, bs.get, bs.get, bs.get, bs.get, bs.get, bs.move}
	var one func(r *rand.Rand, chain context.Context)
	one = func(r *rand.Rand, chain context.Context) {
		op, o, how := ops[r.IntN(len(ops))], all[r.IntN(len(all))], r.IntN(24)
		if r.IntN(3) > 0 {
			o = all[0] // where most requests go
		}
		switch inside := chain != background; {
		case inside && how < 15: // a request that waits for a guard from inside may keep out those that open it
			how = 15
		case how < 2:
			op = bs.pass
		case how == 2:
			op = bs.work
		case how < 6:
			op = bs.look
		}
		s := newSlip(r, op)
		ctx, cancel := context.WithCancel(chain)
		defer cancel()
		calls.Add(1)
		returned := false
		defer func() {
			if over.Add(1); !returned && s.runs.Load() > s.want {
				t.Errorf("%d bodies of %d", s.runs.Load(), s.want)
			}
		}()
		if r.IntN(4) == 0 {
			s.by = goroutine()
		}
		n, sub := r.IntN(4), rand.New(rand.NewPCG(r.Uint64(), seed))
		s.body = func(ctx context.Context) {
			for range n {
				runtime.Gosched()
			}
			if n == 0 {
				if inside, caller := h.callers.Load(goroutine()); caller {
					*inside.(*int)++
					defer func() { *inside.(*int)-- }()
				}
				one(sub, ctx)
			}
		}
		var result int
		var err error
		switch how {
		case 0, 6, 7, 8, 15, 16:
			go cancel()
			result, err = op.Call(ctx, o, s)
		case 9, 17:
			result, err = op.Try(chain, o, s)
		case 10:
			s.by = ""
			result, err = op.Send(background, o, s).Await(chain)
		case 11:
			s.by = ""
			ticket := op.Begin(background, o, s)
			result, err = ticket.Await(chain)
		case 12:
			s.by = ""
			if err = op.Tell(background, o, s); err == nil {
				told.Store(s, o)
				returned = true
				return
			}
		case 13:
			second := newSlip(r, bs.get)
			first, other := op.Case(o, s), bs.get.Case(all[r.IntN(len(all))], second)
			if r.IntN(2) == 0 {
				go cancel()
			}
			n, never := 0, second
			switch n, err = activeobject.Select(ctx, first, other); {
			case err != nil:
			case n == 0:
				result, err = first.Result()
			default:
				s, never = second, s
				result, err = other.Result()
			}
			if never.runs.Load() != 0 {
				t.Error("a body of a case that was not chosen")
			}
		case 14:
			o.Explain()
			returned = true
			return
		default:
			result, err = op.Call(chain, o, s)
		}
		judge(s, result, err)
		returned = true
	}
	stopOpening := make(chan None)
	openers := toggle(t, all[:], stopOpening, func(o *activeobject.Object[bank], open bool) error {
		_, err := bs.set.Send(background, o, open).Await(background) // not Call: a body that the goroutine runs as a helper may end it
		return err
	})
	var callers sync.WaitGroup
	for c := range uint64(8) {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(seed, c))
			for left := 150; left > 0; {
				done := make(chan None)
				go func() { // which a body may end
					returned := false
					h.callers.Store(goroutine(), new(int))
					defer func() {
						h.callers.Delete(goroutine())
						if !returned {
							h.ended.Add(1)
						}
						close(done)
					}()
					for ; left > 0; left-- {
						if c == 0 && left == 30 && seed%2 == 0 {
							all[stopped].Stop()
						}
						one(r, background)
					}
					returned = true
				}()
				<-done
				left--
			}
		})
	}
	finish(t, &callers, all[:])
	close(stopOpening)
	openers.Wait()
	for _, o := range all {
		until(t, "something still runs or waits", func() bool { x := o.Explain(); return len(x.Running)+len(x.Waiting) == 0 })
	}
	told.Range(func(key, value any) bool {
		s, o := key.(*slip), value.(*activeobject.Object[bank])
		if !bounded && o != all[stopped] && s.there != all[stopped] {
			until(t, "a request that was told is lost", func() bool { return s.runs.Load() == s.want })
		} else if s.runs.Load() > s.want {
			t.Errorf("%d bodies of %d", s.runs.Load(), s.want)
		}
		return true
	})
	require.Equal(t, calls.Load(), over.Load())
	until(t, "an interceptor has not heard of an end", func() bool { return queued.Load() == done.Load() })
	require.Equal(t, h.exits.Load(), h.ended.Load(), "bodies that ended a caller's goroutine, and callers whose goroutine ended")
	for _, v := range vaults {
		for i := range v.drawers {
			d := &v.drawers[i]
			require.False(t, d.writing)
			require.Zero(t, d.readers.Load())
			require.EqualValues(t, d.sum.Load(), d.total)
		}
	}
}
