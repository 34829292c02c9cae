package soak_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

// round is one life of a system: objects are made, kept at work, fail, are restarted
// and stopped, until the system is closed and the books are audited.
type round struct {
	t      *testing.T
	rng    *rand.Rand // of who sets up the round
	system *actor.System
	ledger *ledger
	slots  []atomic.Pointer[site]
	judge  *judge
	reaper *reaper
	// nursery is an actor with objects as children, and relay one that passes
	// messages on.
	nursery, relay *actor.PID
	names          atomic.Int64
	closing        atomic.Bool
	steps          atomic.Int64
	clients        sync.WaitGroup
	watches        sync.WaitGroup // and what else was started by clients

	mu    sync.Mutex
	sites []*site
}

// site is a place that the round knows.
type site struct {
	place
	host  *host
	ended <-chan struct{} // of a watch
}

// judge is a supervisor without principles.
type judge struct {
	round *round
	n     atomic.Uint64
	seed  uint64
}

// HandleFailure implements actor.Strategy.
func (j *judge) HandleFailure(_ *proto.ActorSystem, s proto.Supervisor, child *proto.PID, _ *proto.RestartStatistics, reason, message any) {
	r := rand.New(rand.NewPCG(j.seed, j.n.Add(1)))
	decide := func() { s.ResumeChildren(child) }
	switch r.IntN(12) {
	case 0, 1, 2:
	case 3:
		s.EscalateFailure(reason, message)
		return
	case 4:
		decide = func() { s.StopChildren(child) }
	default:
		decide = func() { s.RestartChildren(child) }
	}
	if r.IntN(4) != 0 {
		decide()
		return
	}
	j.round.watches.Go(func() { // later
		for range r.IntN(20) {
			runtime.Gosched()
		}
		decide()
	})
}

// reaper cancels contexts: each some time after it was made, and the earlier the less
// goes on, so that nobody waits for ever.
type reaper struct {
	contexts chan context.CancelFunc
	ended    chan struct{}
}

func newReaper() *reaper {
	r := &reaper{contexts: make(chan context.CancelFunc, 1), ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		var waiting []context.CancelFunc
		idle := time.NewTicker(2 * time.Millisecond)
		defer idle.Stop()
		for {
			oldest := 0
			select {
			case c, more := <-r.contexts:
				if !more {
					for _, cancel := range waiting {
						cancel()
					}
					return
				}
				waiting = append(waiting, c)
				oldest = len(waiting) - 300
			case <-idle.C:
				oldest = min(3, len(waiting))
			}
			for ; oldest > 0; oldest-- {
				waiting[0]()
				waiting = waiting[1:]
			}
		}
	}()
	return r
}

// hatch asks the nursery to make an object.
type hatch func(actor.Spawner) (place, error)

// parcel is what the relay passes on.
type parcel struct {
	to     *actor.PID
	invoke *actor.Invoke
}

const objects, clientsAtWork = 150, 24

func newRound(t *testing.T, seed uint64, nth, steps int) *round {
	r := &round{t: t, rng: rand.New(rand.NewPCG(seed, uint64(nth))), slots: make([]atomic.Pointer[site], objects)}
	r.ledger = newLedger(t, steps*8+1000)
	r.system = actor.NewSystem(actor.Logger(slog.New(r.ledger)))
	r.judge = &judge{round: r, seed: r.rng.Uint64()}
	r.reaper = newReaper()
	r.steps.Store(int64(steps))
	actors := r.system.Actors()
	actors.EventStream.Subscribe(r.ledger.bury)
	r.nursery = actors.Root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
		if h, ok := c.Message().(hatch); ok {
			p, err := h(c)
			c.Respond(&actor.Reply{Value: p, Err: err})
		}
	}, proto.WithSupervisor(r.judge)))
	r.relay = actors.Root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
		if p, ok := c.Message().(parcel); ok {
			// Not on the actor's own goroutine, which a body may end; and protoactor would not
			// notice.
			sender := c.Sender()
			go actors.Root.RequestWithCustomSender(p.to, p.invoke, sender)
		}
	}))
	for i := range r.slots {
		for r.slots[i].Load() == nil {
			r.spawn(r.rng, i)
		}
	}
	return r
}

// options are those of an object, and what is to be known of them.
func (r *round) options(rng *rand.Rand, h *host) (options []activeobject.Option) {
	switch rng.IntN(8) {
	case 0:
		options = append(options, activeobject.PooledThreads())
	case 1:
		options = append(options, activeobject.DedicatedThread())
	case 2:
		options = append(options, activeobject.NoFastPath())
	}
	switch rng.IntN(16) {
	case 0:
		options = append(options, activeobject.ByPriority())
	case 1:
		options = append(options, activeobject.ByDeadline())
	case 2:
		options = append(options, activeobject.ByLatest(), activeobject.MaxBypass(3))
	case 3:
		options = append(options, activeobject.ByRotation())
	case 4:
		options = append(options, activeobject.ByOrder(func(a, b *activeobject.Candidate) bool {
			x, _ := a.Argument.(order)
			y, _ := b.Argument.(order)
			if x.n == 13 || y.n == 13 {
				panic("thirteen")
			}
			return x.n < y.n
		}))
	case 5:
		options = append(options, activeobject.ByChoice(func(eligible []*activeobject.Candidate) int {
			o, _ := eligible[0].Argument.(order)
			return int(o.n) % (len(eligible) + 1) // which is a choice of nobody, at times
		}))
	}
	switch rng.IntN(12) {
	case 0:
		options = append(options, activeobject.Bound(3, activeobject.Refuse))
	case 1:
		options = append(options, activeobject.Bound(3, activeobject.DropOldest))
	case 2:
		options = append(options, activeobject.Bound(3, activeobject.Wait))
	}
	if rng.IntN(6) == 0 {
		options = append(options, activeobject.Counters())
	}
	if rng.IntN(6) == 0 {
		options = append(options, activeobject.Interceptors(activeobject.Interceptor{
			Queue: func(ctx context.Context, i activeobject.Intercepted) (context.Context, error) {
				if o, ok := i.Argument.(order); ok && o.n == 7 {
					return nil, errTurnedAway
				}
				h.passed.Add(1)
				return ctx, nil
			},
			Run: func(_ context.Context, i activeobject.Intercepted, body func() error) error {
				if o, ok := i.Argument.(order); ok && o.n == 17 && len(o.turns) == 0 && o.id%2 == 0 {
					if h.ledger.entry(o.id).must == 1 {
						return errTurnedAway
					}
				}
				return body()
			},
			Done: func(context.Context, activeobject.Intercepted, error) { h.over.Add(1) },
		}))
	}
	return options
}

// spawn makes an object for the slot, in one of many ways. None need succeed.
func (r *round) spawn(rng *rand.Rand, slot int) {
	h := &host{ledger: r.ledger, reaper: r.reaper}
	options := r.options(rng, h)
	fails := func(nth int) error {
		switch n := rand.New(rand.NewPCG(r.judge.seed, r.judge.n.Add(1))).IntN(20); {
		case nth == 0:
		case n == 0:
			return errors.New("the factory is on strike")
		case n == 1:
			panic("the factory is on fire")
		}
		return nil
	}
	if rng.IntN(3) == 0 {
		options = append(options, activeobject.Name(fmt.Sprintf("object-%d", r.names.Add(1))))
	}
	if rng.IntN(3) == 0 {
		options = append(options, activeobject.ChildSupervisor(r.judge))
	}
	safe, plain := rng.IntN(2) == 0, rng.IntN(2) == 0
	build := func(more ...activeobject.Option) (place, error) {
		plain, options := plain && len(more) == 0, append(options, more...)
		if safe {
			return newPlace(r.system, vaults, &factory[vault]{h, func(p page) *vault { return &vault{page: p} }, vaults.page, fails}, plain, options)
		}
		return newPlace(r.system, tills, &factory[till]{h, func(p page) *till { return &till{page: p} }, tills.page, fails}, plain, options)
	}
	var p place
	var err error
	switch rng.IntN(5) {
	case 0:
		p, err = build()
	case 1, 2:
		p, err = build(activeobject.Supervisor(r.judge))
	case 3:
		parent := r.slots[rng.IntN(len(r.slots))].Load()
		if parent == nil {
			return
		}
		p, err = build(activeobject.Parent(parent))
	case 4:
		ctx, cancel := context.WithCancel(background)
		r.reaper.contexts <- cancel
		var made any
		made, err = r.system.Request(ctx, r.nursery, hatch(func(s actor.Spawner) (place, error) { return build(activeobject.Parent(s)) })).Await(ctx)
		if err == context.Canceled || errors.Is(err, activeobject.ErrStopped) {
			return // the object may be made all the same; the system's end is its own
		}
		p, _ = made.(place)
	}
	if err != nil {
		var refused *actor.SpawnError
		if !errors.As(err, &refused) && !errors.Is(err, actor.ErrClosed) {
			r.ledger.fault([]*host{h}, "spawning fails: %v", err)
		}
		return
	}
	h.name = p.Name()
	s := &site{place: p, host: h}
	if pid := (*actor.PID)(nil); rng.IntN(4) == 0 {
		if pid = p.PID(); pid != nil {
			ended, _ := r.system.Watch(pid)
			s.ended = ended
			r.watches.Go(func() {
				<-ended
				if h.inside.Load() != 0 && !r.closing.Load() {
					r.ledger.fault([]*host{h}, "the end of %s is told before its last body has returned", h)
				}
			})
		}
	}
	r.mu.Lock()
	r.sites = append(r.sites, s)
	r.mu.Unlock()
	r.slots[slot].Store(s)
}

// newPlace makes an object.
func newPlace[T any](system *actor.System, k *kind[T], f *factory[T], plain bool, options []activeobject.Option) (place, error) {
	if plain {
		s, err := f.next()
		if err != nil {
			return nil, err
		}
		o, err := activeobject.New(system, k.Type, s, options...)
		return at[T]{o, k}, err
	}
	o, err := activeobject.NewFrom(system, k.Type, f.next, options...)
	return at[T]{o, k}, err
}

// client makes one request after another.
type client struct {
	*round
	rng     *rand.Rand
	current uint32          // what it waits for
	later   []func(*client) // waits that are to come
}

// work goes on until there is nothing more to do, on one goroutine after another: who
// lends himself to others may end in their bodies.
func (c *client) work() {
	over := false
	defer func() {
		if !over {
			c.settle(0, errEnded)
			go c.work()
		}
	}()
	for c.steps.Add(-1) >= 0 {
		c.step()
		if len(c.later) > 8 {
			c.wait()
		}
	}
	for len(c.later) > 0 {
		c.wait()
	}
	over = true
	c.clients.Done()
}

// wait waits for one of the things that are to be waited for later.
func (c *client) wait() {
	i := c.rng.IntN(len(c.later))
	wait := c.later[i]
	c.later = slices.Delete(c.later, i, i+1)
	wait(c)
}

// settle books the end of the current request.
func (c *client) settle(result uint32, err error) {
	if c.current != 0 {
		id := c.current
		c.current = 0
		c.ledger.end(id, result, err)
	}
}

// site returns any object, mostly one that has not stopped.
func (c *client) site() *site {
	slot := c.rng.IntN(len(c.slots))
	if c.slots[slot].Load().host.stopped.Load() && c.rng.IntN(4) != 0 {
		c.spawn(c.rng, slot)
	}
	return c.slots[slot].Load()
}

// ctx returns a context that ends some time.
func (c *client) ctx() context.Context {
	ctx, cancel := context.WithCancel(background)
	switch c.rng.IntN(12) {
	case 0:
		cancel()
	case 1, 2:
		go cancel()
	case 3:
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.rng.IntN(int(time.Millisecond))))
	case 4:
		ctx, cancel = context.WithTimeout(ctx, time.Hour+time.Duration(c.rng.IntN(1000)))
	}
	if c.rng.IntN(4) == 0 {
		ctx = activeobject.WithPriority(ctx, c.rng.IntN(5))
	}
	c.reaper.contexts <- cancel
	return ctx
}

// order makes an order, and opens its entry.
func (c *client) order(s *site, op int, how way) order {
	id, e := c.ledger.open()
	o := order{id: id, n: 1 + int64(c.rng.IntN(20))}
	if c.rng.IntN(8) == 0 {
		o.n *= 10
	}
	switch c.rng.IntN(30) {
	case 0, 1:
		o.plan = declines
	case 2:
		o.plan = panics
	case 3:
		o.plan = exits
	}
	e.way, e.op, e.at, e.must = how, opNames[op], s.host, 1
	switch {
	case op == transfer:
		if to := c.site(); to != s {
			o.to = to.place
		}
	case op == wire:
		o.to = c.site().place
		e.must, e.debt = 2, o.n
		if o.plan == declines {
			o.plan = succeeds // the debit would have to be undone
		}
	case op == queue || c.rng.IntN(10) == 0 && op != rig:
		// Some turns, and then perhaps at other objects, with the last operation any.
		for range c.rng.IntN(4) {
			t := turn{op: []int{put, putCtx, look, queue, take, takeCtx, note, draw}[c.rng.IntN(8)]}
			if how == future && !open(t.op) {
				t.op = put
			}
			if c.rng.IntN(2) == 0 {
				t.at = c.site().place
			}
			if c.rng.IntN(3) == 0 {
				t.how |= activeobject.KeepPlace
			}
			if c.rng.IntN(4) == 0 && (t.op == put || t.op == putCtx || t.op == look) {
				t.how |= activeobject.Commit
			}
			o.turns = append(o.turns, t)
		}
		e.must += len(o.turns)
	}
	last := op
	if len(o.turns) > 0 {
		last = o.turns[len(o.turns)-1].op
	}
	e.plan = o.plan
	if o.plan == succeeds {
		e.want = moves(last, o.n)
	} else if op == wire {
		e.want = -o.n
	}
	return o
}

func (c *client) step() {
	s := c.site()
	switch c.rng.IntN(100) {
	case 0, 1:
		c.lifecycle(s)
		return
	case 2:
		s.Explain()
		return
	case 3, 4, 5:
		c.derives()
		return
	}
	how := way(c.rng.IntN(int(ways)))
	op := c.rng.IntN(operations)
	if op == rig && c.rng.IntN(4) != 0 {
		op = put
	}
	if how == leg {
		how = call
	}
	if how == future && !open(op) {
		op = putCtx // since it has no context that could end
	}
	if how == adhoc {
		c.adhoc(s)
		return
	}
	o := c.order(s, op, how)
	e := c.ledger.entry(o.id)
	c.current = o.id
	switch how {
	case call:
		c.settle(s.call(c.ctx(), op, o))
	case try:
		c.settle(s.try(c.ctx(), op, o))
	case send:
		f := s.send(c.ctx(), op, o)
		withdraw := c.rng.IntN(5) == 0
		c.postpone(func(c *client) {
			withdrawn := withdraw && f.Withdraw()
			if c.rng.IntN(4) == 0 {
				f.SetPriority(c.rng.IntN(5))
			}
			result, err := f.Await(background)
			if withdrawn && !errors.Is(err, context.Canceled) {
				c.ledger.fault([]*host{s.host}, "request %d was withdrawn, and ended with %v", o.id, err)
			}
			c.settle(result, err)
		})
	case begin:
		t := s.begin(c.ctx(), op, o)
		withdraw := c.rng.IntN(5) == 0
		c.postpone(func(c *client) {
			withdrawn := withdraw && t.Withdraw()
			result, err := t.Await(background)
			if withdrawn && !errors.Is(err, context.Canceled) {
				c.ledger.fault([]*host{s.host}, "request %d was withdrawn, and ended with %v", o.id, err)
			}
			// A result that was there at once is in the ticket itself.
			if v, again := t.Await(background); again != activeobject.ErrAwaited && !reflect.DeepEqual([]any{v, again}, []any{result, err}) {
				c.ledger.fault([]*host{s.host}, "the ticket of %d is good for another result: %v", o.id, again)
			}
			c.settle(result, err)
		})
	case selecting:
		c.selects(s, op, o)
	case ask, forward:
		to, m := s.PID(), any(&actor.Invoke{Operation: opNames[op], Argument: o})
		if how == forward && to != nil {
			m, to = parcel{to, m.(*actor.Invoke)}, c.relay
		}
		f := c.system.Request(c.ctx(), to, m)
		c.postpone(func(c *client) {
			value, err := f.Await(background)
			result, _ := value.(uint32)
			c.settle(result, err)
		})
	case future:
		pid := s.PID()
		if pid == nil {
			c.settle(0, errNotTaken)
			return
		}
		f := c.system.Actors().Root.RequestFuture(pid, &actor.Invoke{Operation: opNames[op], Argument: o}, 10*time.Minute)
		c.postpone(func(c *client) {
			value, err := f.Result()
			result := uint32(0)
			if reply, ok := value.(*actor.Reply); ok {
				result, _ = reply.Value.(uint32)
				err = reply.Err
			}
			c.settle(result, err)
		})
	case tell:
		ctx := context.Context(background)
		if e.bound = c.rng.IntN(2) == 0; !e.bound {
			ctx = c.ctx()
		}
		err := s.tell(ctx, op, o)
		if err != nil && endingOf(err) != never {
			c.ledger.fault([]*host{s.host}, "tell of %d: %v", o.id, err)
		} else if err != nil {
			err = errNotTaken
		}
		c.settle(o.id, err)
	case message:
		pid := s.PID()
		if pid == nil {
			c.settle(0, errNotTaken)
			return
		}
		e.bound = true
		c.system.Actors().Root.Send(pid, &actor.Invoke{Operation: opNames[op], Argument: o})
		c.settle(o.id, nil)
	}
}

// open reports whether requests for the operation never wait for a guard.
func open(op int) bool {
	switch op {
	case put, putCtx, look, transfer, rig:
		return true
	}
	return false
}

// postpone has the wait for the current request done later.
func (c *client) postpone(wait func(*client)) {
	id := c.current
	c.current = 0
	c.later = append(c.later, func(c *client) {
		c.current = id
		wait(c)
	})
	if c.rng.IntN(2) == 0 {
		c.wait()
	}
}

// selects has one of several requests made, of which the others must never run.
func (c *client) selects(s *site, op int, o order) {
	sites, ids := []*site{s}, []uint32{o.id}
	cases := []choice{s.choice(op, o)}
	for range c.rng.IntN(3) {
		other, op := c.site(), c.rng.IntN(operations)
		if op == rig {
			op = put
		}
		o := c.order(other, op, selecting)
		sites, ids, cases = append(sites, other), append(ids, o.id), append(cases, other.choice(op, o))
	}
	alternatives := make([]activeobject.Alternative, len(cases))
	for i, one := range cases {
		alternatives[i] = one
	}
	if c.rng.IntN(4) == 0 {
		alternatives = append(alternatives, activeobject.Otherwise)
	}
	// Whatever comes, all have their ends; also if this goroutine ends.
	chosen, err := -1, errEnded
	c.current = 0
	defer func() {
		for i, id := range ids {
			switch {
			case err == errEnded, err != nil:
				c.ledger.end(id, 0, err)
			case i != chosen:
				c.ledger.end(id, 0, errNotTaken)
			default:
				result, err := cases[i].Result()
				c.ledger.end(id, result, err)
			}
		}
	}()
	chosen, err = activeobject.Select(c.ctx(), alternatives...)
}

// adhoc makes a request of an operation that is not declared.
func (c *client) adhoc(s *site) {
	id, e := c.ledger.open()
	e.way, e.at, e.must = adhoc, s.host, 1
	c.current = id
	o := order{id: id, n: int64(c.rng.IntN(20))}
	if c.rng.IntN(20) == 0 {
		o.plan = panics
	}
	e.plan = o.plan
	do := func(p *page) error { _, err := p.work(e.op, o, e.want); return err }
	switch c.rng.IntN(4) {
	case 0:
		e.op, e.want = "do", o.n
		if o.plan != succeeds {
			e.want = 0
		}
		c.settle(id, s.Do(c.ctx(), do))
	case 1:
		e.op = "do"
		c.settle(id, s.DoWhen(c.ctx(), do))
	case 2:
		e.op = "view"
		c.settle(id, s.View(c.ctx(), do))
	default:
		e.op, e.must, e.plan = "until", 0, succeeds
		err := s.Until(c.ctx())
		if err == nil {
			err = errNotTaken // there is no body that could be counted
		}
		c.settle(id, err)
	}
}

// lifecycle does something to the object.
func (c *client) lifecycle(s *site) {
	pid := s.PID()
	system := func(m any) {
		if process, ok := c.system.Actors().ProcessRegistry.Get(pid); ok && pid != nil {
			process.SendSystemMessage(pid, m)
		}
	}
	switch c.rng.IntN(12) {
	case 0:
		s.host.note("stop", 0)
		s.Stop()
	case 1:
		s.host.note("close", 0)
		if err := s.Close(c.ctx()); err != nil && endingOf(err) != never {
			c.ledger.fault([]*host{s.host}, "close: %v", err)
		}
	case 2:
		if pid != nil {
			s.host.note("poison", 0)
			c.system.Poison(pid)
		}
	case 3, 4, 5, 6, 7:
		s.host.note("suspend", 0)
		system(&proto.SuspendMailbox{})
		defer func() { // also if this goroutine ends, in what was still let in
			s.host.note("resume", 0)
			system(&proto.ResumeMailbox{})
		}()
		for range c.rng.IntN(4) { // which cannot start
			o := c.order(s, put, tell)
			c.current = o.id
			c.ledger.entry(o.id).bound = true
			err := s.tell(background, put, o)
			if err != nil {
				err = errNotTaken
			}
			c.settle(o.id, err)
		}
	default:
		s.host.note("restart", 0)
		system(&proto.Restart{})
	}
}

// close ends the round, in one of several ways, and audits the books.
func (r *round) close(nth int) map[string]int {
	done := make(chan struct{})
	go func() { r.clients.Wait(); close(done) }()
	if nth%3 != 0 { // in the midst
		for few := r.steps.Load() / 6; r.steps.Load() > few; {
			runtime.Gosched()
		}
	} else {
		<-done
	}
	switch nth % 3 {
	case 1:
		ctx, cancel := context.WithCancel(background)
		r.watches.Go(func() { <-done; cancel() }) // who waits for nothing but clients that have gone may take long
		if err := r.system.Shutdown(ctx); err != nil && err != context.Canceled {
			r.ledger.fault(nil, "shutdown: %v", err)
		}
	}
	r.closing.Store(true)
	if err := r.system.Close(background); err != nil {
		r.ledger.fault(nil, "close: %v", err)
	}
	<-done
	close(r.reaper.contexts)
	<-r.reaper.ended
	r.watches.Wait()
	left := 0
	for range r.system.Objects() {
		left++
	}
	if left != 0 {
		r.ledger.fault(nil, "%d objects are left", left)
	}
	counts := r.ledger.audit()
	r.conserve(counts)
	return counts
}

// conserve finds out whether what all states have gained is what requests have moved.
func (r *round) conserve(counts map[string]int) {
	var booked, there int64
	for id := uint32(1); id <= r.ledger.n.Load(); id++ {
		booked += r.ledger.entry(id).moved.Load()
	}
	for _, s := range r.sites {
		for _, p := range s.host.pages {
			there += p.balance - p.opened
		}
		counts["states"] += len(s.host.pages)
		if s.host.inside.Load() != 0 {
			r.ledger.fault([]*host{s.host}, "a body is still inside of %s", s)
		}
		if snapshot := s.Explain(); len(snapshot.Running)+len(snapshot.Waiting) > 0 {
			r.ledger.fault([]*host{s.host}, "%s is not idle: %v", s, snapshot)
		}
		if passed, over := s.host.passed.Load(), s.host.over.Load(); passed != over {
			r.ledger.fault([]*host{s.host}, "%d requests have passed the interceptor of %s, and it was told of the end of %d", passed, s, over)
		}
		select {
		case <-s.Stop():
		default:
			r.ledger.fault([]*host{s.host}, "%s has not ended", s)
		}
	}
	counts["objects"] += len(r.sites)
	if booked != there {
		r.ledger.fault(nil, "the requests have moved %d, the states have gained %d", booked, there)
	}
}

func (s *site) String() string { return s.host.name }

// Whatever happens to requests and objects: every request has one end, which is the
// result of a body that has run once, or a documented error; what has failed so has
// never run; nothing is lost, and nothing is left.
func TestEveryRequestIsInTheLedger(t *testing.T) {
	seed := seed(t)
	steps := 2500
	if *length > 0 {
		steps = 20000
	}
	total := map[string]int{}
	var heap uint64
	requests := 0
	for nth := range rounds(3, 2) {
		r := newRound(t, seed, nth, steps)
		calledOff := hangs(t, r.system, r.explain)
		for i := range clientsAtWork {
			r.clients.Add(1)
			c := &client{round: r, rng: rand.New(rand.NewPCG(seed+uint64(nth), uint64(i)+1))}
			go c.work()
		}
		for what, n := range r.close(nth) {
			total[what] += n
		}
		calledOff()
		requests += int(r.ledger.n.Load())
		if t.Failed() {
			t.Logf("in round %d", nth)
			return
		}
		if err := objecttest.NoLeaks(); err != nil {
			t.Fatal(err)
		}
		heap = grown(t, heap, nth)
	}
	whats := make([]string, 0, len(total))
	for what := range total {
		whats = append(whats, what)
	}
	slices.Sort(whats)
	t.Logf("%d requests", requests)
	for _, what := range whats {
		t.Logf("%8d %s", total[what], what)
	}
}

// explain says how far the round is.
func (r *round) explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d steps are left\n", r.steps.Load())
	n := 0
	for id := uint32(1); id <= r.ledger.n.Load() && n < 100; id++ {
		if e := r.ledger.entry(id); e.ends.Load() == 0 {
			n++
			fmt.Fprintf(&b, "request %d, %s %s of %v, has run %d times\n", id, wayNames[e.way], e.op, e.at, e.runs.Load())
		}
	}
	return b.String()
}

// grown compares the heap with that after the second round.
func grown(t *testing.T, first uint64, nth int) uint64 {
	if nth == 0 {
		return 0
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if nth == 1 {
		return m.HeapAlloc
	}
	if m.HeapAlloc > 2*first+(32<<20) {
		t.Errorf("the heap has grown from %d to %d bytes in %d rounds", first, m.HeapAlloc, nth)
	}
	return first
}
