package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/mailbox"
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
	tame   bool        // the context that it is made from is: see Tame
	parked bool        // its thread is idle meanwhile, and not counted: see Parallel; guarded by mu of the box
	node   *node       // guarded by graph; nil as long as neither the body nor one that it has called has waited
}

// node is the place of a body in the graph of waits. It is guarded by graph.
type node struct {
	root  *Frame   // the outermost body of its chain
	waits []edge   // what the body itself waits for now
	below []*Frame // bodies that it has called, and that have a node; some may have returned
	idle  int      // the waits, its own and those below, for which its thread is idle: see edge.top
	idles bool     // such waits are counted here, or further out
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
//
// # What serialises here, and for how long
//
// It is one lock for the process, since a circle may lead through any objects. A wait from inside
// an object takes it twice, to draw the edge and to erase it; a goal that moves or fails while
// bodies wait for it, and an explanation of bodies that wait, once. A call from outside, and
// one that finds its object idle, never take it. It is held for
//
//   - a constant time, if nothing waits for the caller's chain, and that is short, or its wait
//     leads to few bodies;
//   - in general a time in proportion to the smaller of the two, the chain and what its wait leads
//     to; and if a wait leads into the chain, to both (see circle.go);
//   - once in the life of each body that waits, or has called one that does, a step to give it
//     a node;
//   - where threads are lent or limited, a step for each body of the chain.
var graph sync.Mutex

// pending is how many have entered, and not left. Who finds none, having changed under the mu
// of a mailbox what may close a circle there, need not look: who enters later sees the change.
var pending atomic.Int64

// edge says that the body from waits for the goal. The bodies that it was called from wait
// with it, and have no edge of their own for that (a call that found its object idle never
// had to wait): to follow what one of these waits for is to go down to those that it has
// called. A body with several edges waits for all of them. One that waits for any of several
// has one edge, to a Join of these.
type edge struct {
	from *Frame
	goal goal
	at   *Mailbox    // where the goal's request is, as sought counts it; nil if there are none or several
	more *[]*Mailbox // where they are, if there are several
	open bool        // as loose counts it
	top  *Frame      // the first body, from inside outwards, whose thread is not idle for this
}

// goal is what a body can wait for. The methods are called with graph held.
type goal interface {
	// walk visits the requests behind it, and the joins on the way, each of these
	// once: a future may well be used in several others.
	walk(seen map[*Join]bool, visit func(*Request))
	// seek tells e where the requests behind it are.
	seek(e *edge, seen map[*Join]bool)
	// vertex returns what it ends with, or nil if it can end now.
	vertex(s *search) *vertex
	// way says what a body waits for that waits for it, and how it goes on from there.
	way(s *search, to *vertex, body string)
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
	f := &Frame{Context: ctx, r: r, box: box, op: r.Op, tame: Tamed(ctx)}
	if r.called() {
		f.parent = ChainOf(ctx)
	}
	if outer, ok := ctx.(*Frame); ok {
		f.Context = outer.Context // or else it would take longer to ask, the deeper the chain
	}
	r.frame = f
	return f
}

// InsideAgain is Inside for a request that has been handed in, and has another turn. It may be
// called with mu held.
func (r *Request) InsideAgain(box *Mailbox) context.Context {
	f := &Frame{Context: original(r.ctx), r: r, box: box, op: r.Op, tame: original(r.ctx) == r.ctx}
	if r.called() {
		f.parent = ChainOf(r.ctx)
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
	f, tame := innermost(ctx)
	if !tame {
		f, _ = ctx.Value(frameKey{}).(*Frame)
	}
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
	case *ending:
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
// Edges are drawn and followed under graph, so of several bodies that close a
// circle together the last one sees all the others' edges.
func (f *Frame) enter(goal goal, by quitter) (*vigil, error) {
	pending.Add(1)
	graph.Lock()
	defer graph.Unlock()
	var v *vigil
	if by == nil {
		// The vigil comes before it is looked where the goal is: see moved.
		v = &vigil{frame: f, goal: goal, doomed: make(chan error, 1)}
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
	}
	f.draw(goal)
	if err := f.check(goal, by); err != nil {
		if v != nil {
			v.end()
		}
		return nil, err
	}
	return v, nil
}

// draw draws the edge from f to the goal. The caller holds graph.
func (f *Frame) draw(goal goal) {
	n := f.place()
	e := edge{from: f, goal: goal}
	e.seek()
	e.top = f
	for e.top != nil && e.top.node.idles && (e.top == f || !e.top.over.Load()) {
		g := e.top
		e.top = g.parent
		if g.box.config.idles {
			if g.node.idle++; g.node.idle == 1 {
				g.park()
			}
		}
		if e.top != nil && e.top.waitsFor(g.r) {
			break // the thread of that one is idle already
		}
	}
	n.waits = append(n.waits, e)
}

// erase erases the edge from f to the goal, if there is one. The caller holds graph.
func (f *Frame) erase(goal goal) {
	n := f.node
	i := slices.IndexFunc(n.waits, func(e edge) bool { return e.goal == goal })
	if i < 0 {
		return
	}
	e := n.waits[i]
	n.waits = slices.Delete(n.waits, i, i+1)
	e.unseek()
	for g := f; g != e.top; g = g.parent {
		if g.box.config.idles {
			if g.node.idle--; g.node.idle == 0 {
				g.unpark()
			}
		}
	}
}

// place returns the node of f. If it has none it gets one, and so do the bodies that it was
// called from: so that is done once for each. The caller holds graph.
func (f *Frame) place() *node {
	if f.node != nil {
		return f.node
	}
	f.node = &node{root: f, idles: f.box.config.idles}
	if f.parent != nil {
		above := f.parent.place()
		f.node.root = above.root
		f.node.idles = f.node.idles || above.idles
		if len(above.below) == cap(above.below) { // else they would pile up, and now the effort is in proportion
			above.below = slices.DeleteFunc(above.below, func(g *Frame) bool { return g.over.Load() })
		}
		above.below = append(above.below, f)
	}
	return f.node
}

// waitsFor reports whether f itself waits for r. The caller holds graph.
func (f *Frame) waitsFor(r *Request) bool {
	return slices.ContainsFunc(f.node.waits, func(e edge) bool { return e.goal == goal(r) })
}

// moved tells those who wait for r from inside of objects, if it can only end now
// when they have gone on: it has arrived at another object than the one at which it
// was when their waits began.
//
// Nobody is missed. Whoever enters stores his vigil before he looks where r is, and r
// has arrived before vigils is read here. So either he is seen, or he sees r here.
//
// Until then sought counts r where it was. A body that begins to wait meanwhile, inside the
// object that r has come to, may not see that r leads there; but its edge is drawn by the time
// that the waits for r are looked at here.
func (r *Request) moved() {
	if r.vigils.Load() == nil {
		return
	}
	graph.Lock()
	defer graph.Unlock()
	if all := r.vigils.Load(); all != nil {
		for _, v := range *all {
			v.frame.seek(v.goal)
		}
	}
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
func (f *Frame) leave(goal goal, v *vigil) {
	graph.Lock()
	defer graph.Unlock()
	pending.Add(-1)
	f.erase(goal)
	if v != nil {
		v.end()
	}
}

// check looks for a circle through the edge from f to the goal. If there is one it
// erases the edge and returns an error, unless by could not leave. The caller holds
// graph.
func (f *Frame) check(goal goal, by quitter) error {
	circle := f.circle(goal)
	if circle == nil || by != nil && !by.quit() { // too late: it is about to run
		return nil
	}
	f.erase(goal)
	return &mailbox.DeadlockError{Circle: circle}
}

// frames appends the bodies that are in the way of requests of the object now and may
// call others: those that run there, and, if it waits for the end of its children, those
// that run in any object below it. The caller holds graph.
func (m *Mailbox) frames(frames []*Frame) []*Frame {
	frames, children := m.running(frames)
	if children != nil {
		for below := range children.within() {
			frames, _ = below.box.running(frames)
		}
	}
	return frames
}

// running appends the bodies that run in the object now and may call others. If the
// object waits for the end of its children it returns its subtree, too.
func (m *Mailbox) running(frames []*Frame) (_ []*Frame, children *Subtree) {
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
	return !r.Ended() && r.State() != mailbox.StateFresh
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
