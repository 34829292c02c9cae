package engine

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/waitgraph"
	"github.com/sluice-go/sluice/mailbox"
)

// Frame is one link of a call chain: a body that runs in an object and may call others. It is the
// context that the body receives, and is found in all contexts that are derived from it.
type Frame struct {
	context.Context
	parent *Frame // the body that called this one, or nil
	r      *Request
	box    *Mailbox
	op     int32
	tx     *Transaction    // that the body runs on behalf of, or nil; see Frame.root
	over   atomic.Bool     // the body has returned
	away   atomic.Bool     // it has suspended, and so is not inside of the object
	apart  *Apart          // of a body that may suspend; or nil
	tame   bool            // the context that it is made from is tame: see Tame
	parked bool            // its thread is idle meanwhile, and not counted: see Parallel; guarded by mu of the box
	idles  bool            // waits for which threads are idle are counted here, or further out; guarded by graph
	idle   int32           // the waits, its own and those below, for which its thread is idle: see waiter.top; guarded by graph
	node   *waitgraph.Node // guarded by graph; nil as long as neither the body nor one that it has called has waited
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
	f := &Frame{Context: ctx, r: r, box: box, op: int32(r.Op), tame: Tamed(ctx), tx: TransactionOf(ctx)}
	f.parent = r.caller(ctx, f.tx)
	if outer, ok := ctx.(*Frame); ok {
		f.Context = outer.Context // else a look-up would take longer, the deeper the chain
	}
	r.frame = f
	return f
}

// InsideAgain is Inside for a request that has been handed in, and has another turn. It may be
// called with mu held.
func (r *Request) InsideAgain(box *Mailbox) context.Context {
	f := &Frame{Context: original(r.ctx), r: r, box: box, op: int32(r.Op), tame: original(r.ctx) == r.ctx, tx: TransactionOf(r.ctx)}
	f.parent = r.caller(r.ctx, f.tx)
	r.frame = f
	return f
}

// caller returns what has called the body of r, in its call chain: a body that waits for it, or, if r
// has been posted, the transaction that it belongs to, which waits for it in the end; or nil.
func (r *Request) caller(ctx context.Context, tx *Transaction) *Frame {
	switch {
	case r.called():
		return ChainOf(ctx)
	case tx != nil && !tx.frame.over.Load():
		return &tx.frame
	}
	return nil
}

// BodyContext returns the context that Inside has made for the body that r waits for, or nil if
// the body takes none.
func (r *Request) BodyContext() context.Context {
	if r.frame == nil {
		return nil
	}
	return r.frame
}

// Left says that the body of r has returned: code that still has the body's context is not inside
// the object any more.
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
		return nil // the body has returned, and ctx is used after it
	}
	return f
}

// within returns the link of the chain that is inside the object, or nil.
func (f *Frame) within(box *Mailbox) *Frame {
	for ; f != nil && !f.over.Load(); f = f.parent {
		if f.box == box && !f.away.Load() {
			return f
		}
	}
	return nil
}

// String implements fmt.Stringer.
func (f *Frame) String() string {
	if f.root() {
		return f.tx.String()
	}
	return f.box.host.Name() + "." + f.box.config.Rules.Operations[f.op].Name
}

// Object implements waitgraph.Body.
func (f *Frame) Object() waitgraph.Point { return f.box }

// Elsewhere implements waitgraph.Body.
func (f *Frame) Elsewhere() []waitgraph.Point {
	if !f.root() {
		return nil
	}
	var all []waitgraph.Point
	for _, m := range f.tx.Objects() {
		all = append(all, m)
	}
	return all
}

// Request implements waitgraph.Body.
func (f *Frame) Request() waitgraph.Goal { return f.r }

// Returned implements waitgraph.Body.
func (f *Frame) Returned() bool { return f.over.Load() }

// place returns the node of f. If it has none it gets one, and so do the bodies that it was
// called from. The caller holds graph.
func (f *Frame) place() *waitgraph.Node {
	if f.node == nil {
		f.idles = f.box.config.idles
		var caller *waitgraph.Node
		if f.parent != nil {
			caller = f.parent.place()
			f.idles = f.idles || f.parent.idles
		}
		f.node = waitgraph.NewNode(f, caller)
	}
	return f.node
}

// between returns the links of a chain from one body to another that it has called,
// perhaps by way of others.
func between(outer, inner *Frame) (links []mailbox.Link) {
	for g := inner; g != outer; g = g.parent {
		links = append(links, mailbox.Link{Body: g.parent.String(), For: g.String()})
	}
	slices.Reverse(links)
	return links
}
