package mailbox

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/mailbox/kernel"
)

// Frame is one link of a call chain: a body that runs in an object and may call
// others. It is the context that the body receives, and travels in those that are
// made from it.
type Frame struct {
	context.Context
	parent *Frame // the body that called this one, or nil
	r      *Request
	box    *Mailbox
	op     int
	over   atomic.Bool // the body has returned
	waits  []edge      // what the body, or one it has called, waits for now; guarded by graph
	parked bool        // its thread is idle meanwhile, and not counted: see Fan; guarded by mu of the box
}

// graph guards the edges from bodies to what they wait for. An edge exists from
// before its caller parks until after it has been told the result, and a record is
// not used again while an edge leads to it; so whoever holds graph can follow edges
// without meeting a record in its next life.
//
// Whenever graph is free there is no circle: who closes one finds it before he lets
// go of graph, and erases his edge.
//
// Only waits from inside an object come here. Order of locks: graph, then the mu of
// one mailbox at a time.
var graph sync.Mutex

// pending is how many have entered, and not left. Who finds none, having changed under the mu
// of a mailbox what may close a circle there, need not look: who enters later sees the change.
var pending atomic.Int64

// edge says that a body waits for the goal, because from, itself or a body it has
// called, does. A body with several edges waits for all of them. One that waits for
// any of several has one edge, to a Join of these.
type edge struct {
	from *Frame
	goal Awaited
}

// stands reports whether f waits for what e says, if that has not ended: neither f
// nor one of the bodies between has returned and left the waiting to a goroutine it
// started.
func (e edge) stands(f *Frame) bool {
	for g := e.from; ; g = g.parent {
		switch {
		case g.over.Load():
			return false
		case g == f:
			return true
		}
	}
}

type frameKey struct{}

// Value implements context.Context.
func (f *Frame) Value(key any) any {
	if key == (frameKey{}) {
		return f
	}
	return f.Context.Value(key)
}

// Inside returns the context for the body of r, which is about to be handed to
// box: ctx with a link added to its call chain. A request that is posted begins a
// chain of its own: its sender does not wait for it, unless by Await.
func (r *Request) Inside(ctx context.Context, box *Mailbox) context.Context {
	f := &Frame{Context: ctx, r: r, box: box, op: r.Op}
	if r.called() {
		f.parent = ChainOf(ctx)
	}
	r.frame = f
	return f
}

// BodyContext returns the context that Inside has made for the body that r waits
// for; or nil, if that takes none.
func (r *Request) BodyContext() context.Context {
	if r.frame == nil {
		return nil
	}
	return r.frame
}

// Left says that the body of r has returned: whoever still has its context is
// not inside the object any more.
func (r *Request) Left() {
	if r.frame != nil {
		r.frame.over.Store(true)
	}
}

// ChainOf returns the innermost link of the call chain that ctx belongs to, or
// nil outside of any object.
func ChainOf(ctx context.Context) *Frame {
	f, _ := ctx.Value(frameKey{}).(*Frame)
	if f != nil && f.over.Load() {
		return nil // left behind by that body: nobody waits for it
	}
	return f
}

// within returns the link of the chain that is inside the object, or nil.
func (f *Frame) within(box *Mailbox) *Frame {
	for ; f != nil && !f.over.Load(); f = f.parent {
		if f.box == box {
			return f
		}
	}
	return nil
}

// String implements fmt.Stringer.
func (f *Frame) String() string {
	return f.box.host.Name() + "." + f.box.config.Rules.Operations[f.op].Name
}

// quitter is a caller who can leave what it waits for, so that it will not run. It is
// asked with graph held, and reports false if it is too late for that.
type quitter interface {
	quit() bool
	// doom tells the caller, who has been made to leave by somebody else, why.
	doom(err error)
}

// quit takes the request of a caller out of its queue. That it is committed does
// not matter: it would wait for ever.
func (r *Request) quit() bool { return r.lock().remove(r) }

// doom implements quitter. The caller waits for the token, whatever becomes of its
// context, since the request is in no queue any more.
func (r *Request) doom(err error) {
	r.fail(err)
	r.settle()
}

// quitter returns who waits, if that is a caller, who has no vigil.
func (e edge) quitter() quitter {
	switch g := e.goal.(type) {
	case *Request:
		if g.called() {
			return g
		}
	case *choice:
		return g
	}
	return nil
}

// enter draws the edge from the body f to what it is about to wait for, until
// leave. If that closes a circle it returns an error that names the circle, and
// there is no edge: by, if it is not nil, has left then; if by cannot, the wait is
// over soon, and goes on. Whoever waits at several objects at once, for the first to
// take it, enters a Join of these requests.
//
// A goal that was posted may become hopeless later: it is requeued to another object,
// which waits for f; or it is the first of several, of which the others fail. So it
// comes with a vigil, which says so. (A called request is taken to another object by
// its own caller, who enters again.)
//
// The bodies that f was called from wait with it: they get the edge too, up to one
// that has an edge to the call below it already (a call that found its object idle
// never had to wait, and has none).
//
// Edges are drawn and followed under graph, so of several bodies that close a
// circle together the last one sees all the others' edges.
func (f *Frame) enter(goal Awaited, by quitter) (*vigil, error) {
	pending.Add(1)
	graph.Lock()
	defer graph.Unlock()
	for g := f; g != nil && (g == f || !g.over.Load()); g = g.parent {
		if g.waits = append(g.waits, edge{f, goal}); len(g.waits) == 1 {
			g.park()
		}
		if g.parent != nil && slices.Contains(g.parent.waits, edge{g.parent, g.r}) {
			break
		}
	}
	if by != nil {
		return nil, f.check(goal, by)
	}
	// The vigil comes before the check: see moved.
	v := &vigil{frame: f, goal: goal, doomed: make(chan error, 1)}
	joins := map[*Join]bool(nil)
	if _, simple := goal.(*Request); !simple {
		joins = map[*Join]bool{}
	}
	goal.walk(joins, func(r *Request) {
		r.watch(v)
		v.of = append(v.of, r)
	})
	for j := range joins {
		if j.first {
			j.vigils = append(j.vigils, v)
			v.at = append(v.at, j)
		}
	}
	if err := f.check(goal, nil); err != nil {
		v.end()
		return nil, err
	}
	return v, nil
}

// moved tells those who wait for r from inside of objects, if it can only end now
// when they have gone on: it has arrived at another object than the one at which it
// was when their waits began.
//
// Nobody is missed. Whoever enters stores his vigil before he looks where r is, and r
// has arrived before vigils is read here. So either he is seen, or he sees r here.
func (r *Request) moved() {
	if r.vigils.Load() == nil {
		return
	}
	graph.Lock()
	defer graph.Unlock()
	r.alarm()
}

// alarm tells those of the waits for r that have become hopeless. The caller holds graph.
func (r *Request) alarm() {
	if all := r.vigils.Load(); all != nil {
		alarm(*all)
	}
}

// watch adds a vigil over r, and unwatched takes it away, if it is one. The caller
// holds graph.
func (r *Request) watch(v *vigil) {
	var all []*vigil
	if old := r.vigils.Load(); old != nil {
		all = slices.Clone(*old)
	}
	all = append(all, v)
	r.vigils.Store(&all)
}

func (r *Request) unwatched(v *vigil) {
	old := r.vigils.Load()
	if old == nil {
		return
	}
	left := slices.DeleteFunc(slices.Clone(*old), func(other *vigil) bool { return other == v })
	if len(left) == 0 {
		r.vigils.Store(nil)
	} else {
		r.vigils.Store(&left)
	}
}

// leave ends what enter began.
func (f *Frame) leave(goal Awaited, v *vigil) {
	graph.Lock()
	defer graph.Unlock()
	pending.Add(-1)
	f.erase(goal)
	if v != nil {
		v.end()
	}
}

// erase erases the edge from f to the goal, if there is one.
func (f *Frame) erase(goal Awaited) {
	for g := f; g != nil; g = g.parent {
		if i := slices.Index(g.waits, edge{f, goal}); i >= 0 {
			if g.waits = slices.Delete(g.waits, i, i+1); len(g.waits) == 0 {
				g.unpark()
			}
		}
	}
}

// check looks for a circle through the edge from f to the goal. If there is one it
// erases the edge and returns an error, unless by could not leave. The caller holds
// graph.
func (f *Frame) check(goal Awaited, by quitter) error {
	circle := f.circle(goal)
	if circle == nil || by != nil && !by.quit() { // too late: it is about to run
		return nil
	}
	f.erase(goal)
	return &DeadlockError{Circle: circle}
}

// search looks for a circle through the goal of one body.
type search struct {
	frame *Frame
	// held are the objects on the way that no request can get into, as far as is
	// known, and the bodies that are in the way there.
	held  map[site][]*Frame
	joins map[*Join]bool // what has been found out about those, since held last changed
	// For writing down the circle: the objects and joins that are in it, and where in
	// the body's own chain it begins, once it has come back there.
	told  map[any]bool
	start *Frame
}

// circle returns the circle that the wait of f for the goal closes, or nil. The
// caller holds graph.
//
// Whoever waits for one of several is held up only if all of them are, so it does
// not do to follow edges until one leads back. Instead, every object on the way
// counts as held up at first; then those are struck out that are not, as each body
// in them can go on, until nothing changes. What is left is held up for good.
//
// Of several things of which each would do to hold up another the first is told of.
// As there was no circle before, whatever is told leads back to the chain in the end.
func (f *Frame) circle(goal Awaited) []Link {
	s := &search{frame: f, held: map[site][]*Frame{}, joins: map[*Join]bool{}}
	s.collect(goal)
	for again := true; again; {
		again = false
		clear(s.joins)
		for at, frames := range s.held {
			if !slices.ContainsFunc(frames, s.stuck) {
				delete(s.held, at)
				again = true
			}
		}
	}
	if !goal.stuck(s) {
		return nil
	}
	s.told = map[any]bool{}
	path := goal.way(s, f.String())
	if s.start == nil {
		return nil
	}
	// Out of the object along the own chain, and through the others back.
	return append(between(s.start, f), path...)
}

// between returns the links of a chain from one body to another that it has called,
// perhaps by way of others.
func between(outer, inner *Frame) (links []Link) {
	for g := inner; g != outer; g = g.parent {
		links = append(links, Link{Body: g.parent.String(), For: g.String()})
	}
	slices.Reverse(links)
	return links
}

// collect finds the objects on the way from the goal. Where it comes back to the
// body's own chain it ends.
func (s *search) collect(goal Awaited) {
	goal.walk(s.joins, func(r *Request) {
		box := r.box.Load()
		if box == nil {
			return // one of several that has not been handed in
		}
		at := r.site(box)
		if _, known := s.held[at]; known || !r.pending() || s.inside(at) {
			return
		}
		frames := at.frames()
		s.held[at] = frames
		for _, f := range frames {
			for _, e := range f.waits {
				if e.stands(f) {
					s.collect(e.goal)
				}
			}
		}
	})
}

// site is where requests wait for the same bodies: an object; or, as it runs several at
// once, a request at an object that fans out.
type site struct {
	box *Mailbox
	r   *Request
}

// site returns the site of r, which is in the box.
func (r *Request) site(box *Mailbox) site {
	if box.config.Fan == nil {
		return site{box: box}
	}
	return site{box, r}
}

// frames returns the bodies that are in the way there. The caller holds graph.
func (at site) frames() []*Frame {
	if at.r == nil {
		return at.box.frames()
	}
	return at.box.against(at.r)
}

// inside reports whether the chain is inside the object, which keeps everybody else out.
func (s *search) inside(at site) bool { return at.r == nil && s.frame.within(at.box) != nil }

// stuck reports whether the body waits for something that is held up, or is one of
// the chain.
func (s *search) stuck(f *Frame) bool {
	_, stuck := s.hold(f)
	return stuck || s.own(f)
}

// hold returns what the body waits for that is held up.
func (s *search) hold(f *Frame) (e edge, stuck bool) {
	i := slices.IndexFunc(f.waits, func(e edge) bool { return e.stands(f) && e.goal.stuck(s) })
	if i < 0 {
		return edge{}, false
	}
	return f.waits[i], true
}

// holds returns the link by which the body is in the way of requests of the object, if
// it does not run there.
func (f *Frame) holds(box *Mailbox) []Link {
	if f.box == box {
		return nil
	}
	return []Link{{Body: "the restart of " + box.host.Name(), For: f.String()}}
}

// own reports whether the body is one of the chain.
func (s *search) own(f *Frame) bool {
	for g := s.frame; g != nil && !g.over.Load(); g = g.parent {
		if g == f {
			return true
		}
	}
	return false
}

// came notes that the circle comes back to the body's chain at the link in.
func (s *search) came(in *Frame) {
	for g := in; g != nil; g = g.parent {
		if g == s.start {
			return // which is further out
		}
	}
	s.start = in
}

// frames returns the bodies that are in the way of requests of the object now and may
// call others: those that run there, and, if it waits for the end of its children, those
// that run in any object below it. The caller holds graph.
func (m *Mailbox) frames() []*Frame {
	frames, children := m.running(nil)
	if children != nil {
		for p := range children.within() {
			frames, _ = p.box.running(frames)
		}
	}
	return frames
}

// running appends the bodies that run in the object now and may call others. If the
// object waits for the end of its children it returns its plug, too.
func (m *Mailbox) running(frames []*Frame) (_ []*Frame, children *Plug) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.queues.Load(); k != nil {
		for r := range k.Running() {
			if f := r.Record.(*Request).frame; f != nil {
				frames = append(frames, f)
			}
		}
	}
	if s := m.suspended(); s != nil {
		children = s.children
	}
	return frames, children
}

// pending reports whether the request waits or runs. One that has been answered
// holds nobody up, though its caller may not have taken notice yet; nor does one of
// several that has not been handed in.
func (r *Request) pending() bool {
	m := r.lock()
	defer m.mu.Unlock()
	return !r.Ended() && r.State() != kernel.Fresh
}

// String names the request: object and operation.
func (r *Request) String() string {
	m := r.lock()
	defer m.mu.Unlock()
	return m.nameOf(r)
}

// Names returns the names of the object and the operation of the request, and its arrival. Of
// a request that has ended and was posted only the turn that followed from it, if it is not
// nil, knows the object.
func (r *Request) Names(t *Turn) (object, operation string, arrival uint64) {
	m := r.lock()
	defer m.mu.Unlock()
	if t != nil && t.of == r {
		return t.at.host.Name(), t.at.config.Rules.Operations[r.Op].Name, r.Arrival()
	}
	return m.host.Name(), m.config.Rules.Operations[r.Op].Name, r.Arrival()
}

// Workers returns the workers of the object that the request is at.
func (r *Request) Workers() Dispatcher { return r.box.Load().config.Workers }

// nameOf names a request of this object. The caller holds mu.
func (m *Mailbox) nameOf(r *Request) string {
	return m.host.Name() + "." + m.config.Rules.Operations[r.Op].Name
}
