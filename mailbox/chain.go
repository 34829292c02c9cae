package mailbox

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Frame is one link of a call chain: a body that runs in an object and may call
// others. It travels in the context that the body receives.
type Frame struct {
	parent *Frame // the body that called this one, or nil
	r      *Request
	box    *Mailbox
	op     int
	over   atomic.Bool // the body has returned
	waits  []edge      // what the body, or one it has called, waits for now; guarded by graph
}

// graph guards the edges from bodies to the requests they wait for. An edge
// exists from before its caller parks until after it has been told the result,
// and a record is not used again while an edge leads to it; so whoever holds
// graph can follow edges without meeting a record in its next life.
//
// Only calls from inside an object that have to wait come here. Order of locks:
// graph, then the mu of one mailbox at a time.
var graph sync.Mutex

// edge says that a body waits for r, because from, itself or a body it has called,
// does.
type edge struct {
	from *Frame
	r    *Request
}

// stands reports whether f still waits for what e says: none of the bodies
// between has returned and left the waiting to a goroutine it started.
func (e edge) stands(f *Frame) bool {
	for g := e.from; g != f; g = g.parent {
		if g.over.Load() {
			return false
		}
	}
	return e.r.pending()
}

type frameKey struct{}

type bodyContext struct {
	context.Context
	frame Frame
}

// Value implements context.Context.
func (c *bodyContext) Value(key any) any {
	if key == (frameKey{}) {
		return &c.frame
	}
	return c.Context.Value(key)
}

// Inside returns the context for the body of r, which is about to be handed to
// box: ctx with a link added to its call chain. A request that is posted begins a
// chain of its own: its sender does not wait for it, unless by Await.
func (r *Request) Inside(ctx context.Context, box *Mailbox) context.Context {
	c := &bodyContext{Context: ctx, frame: Frame{r: r, box: box, op: r.Op}}
	if r.wake != nil {
		c.frame.parent = ChainOf(ctx)
	}
	r.frame = &c.frame
	return c
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

// enter draws the edge from the body f to the request r that it is about to wait
// for, and returns an error that names the circle if that closes one. The edge
// stays until leave. The bodies that f was called from wait with it: they get the
// edge too, up to one that has an edge to the call below it already (a call that
// found its object idle never had to wait, and has none).
//
// Edges are drawn and followed under graph, so of several bodies that close a
// circle together the last one sees all the others' edges.
func (f *Frame) enter(r *Request) error {
	graph.Lock()
	defer graph.Unlock()
	for g := f; g != nil && (g == f || !g.over.Load()); g = g.parent {
		g.waits = append(g.waits, edge{f, r})
		if g.parent != nil && slices.ContainsFunc(g.parent.waits, func(e edge) bool { return e.from == g.parent && e.r == g.r }) {
			break
		}
	}
	if !r.pending() {
		return nil
	}
	if circle := f.find(r, nil, map[*Mailbox]bool{}); circle != nil {
		return &DeadlockError{Circle: circle}
	}
	return nil
}

// leave erases the edge from f to r.
func (f *Frame) leave(r *Request) {
	graph.Lock()
	defer graph.Unlock()
	for g := f; g != nil; g = g.parent {
		if i := slices.Index(g.waits, edge{f, r}); i >= 0 {
			g.waits = slices.Delete(g.waits, i, i+1)
		}
	}
}

// find follows the edges from the request r, which a body waits for at the end
// of the path, until it comes to an object that the chain f is inside of. It
// returns the whole circle, or nil. The caller holds graph.
func (f *Frame) find(r *Request, path []Link, seen map[*Mailbox]bool) []Link {
	if in := f.within(r.box); in != nil {
		// Out of that object along the own chain, and through the others back.
		var own []Link
		target := f.waits[len(f.waits)-1].r.String()
		for g := f; g != in.parent; g = g.parent {
			own = append(own, Link{Body: g.String(), For: target})
			target = g.String()
		}
		slices.Reverse(own)
		return append(own, path...)
	}
	if seen[r.box] {
		return nil
	}
	seen[r.box] = true
	for _, g := range r.box.frames() {
		for _, w := range g.waits {
			if w.stands(g) {
				if found := f.find(w.r, append(path, Link{Body: g.String(), For: w.r.String()}), seen); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

// frames returns the bodies that run in the object now and may call others.
func (m *Mailbox) frames() (frames []*Frame) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.queues.Load(); k != nil {
		for r := range k.Running() {
			if f := r.Record.(*Request).frame; f != nil {
				frames = append(frames, f)
			}
		}
	}
	return frames
}

// pending reports whether the request has not ended. One that has been answered
// holds nobody up, though its caller may not have taken notice yet.
func (r *Request) pending() bool {
	r.box.mu.Lock()
	defer r.box.mu.Unlock()
	return !r.Ended()
}

// String names the request: object and operation.
func (r *Request) String() string {
	return r.box.host.Name() + "." + r.box.config.Rules.Operations[r.Op].Name
}
