package engine

import "context"

// Thread is a thread of a pool that a goroutine runs on outside of all bodies, such as that of an
// event handler. While the goroutine waits for a request, the pool has another thread in its place.
type Thread interface {
	// Park says that the goroutine begins to wait; Unpark, that it goes on. Neither waits for
	// anything. Each Park is followed by an Unpark. There may be several at a time: of goroutines
	// that have been started with the thread's context.
	Park()
	Unpark()
}

// Lender is a Dispatcher that has another thread in the place of one whose body waits. Its Park and
// Unpark are those of any of its threads; Unpark may be called with the mu of an object held, Park
// with graph held.
type Lender interface {
	Dispatcher
	Thread
}

type threadKey struct{}

// OnThread returns a context that says which thread the code runs on that it is given to.
func OnThread(ctx context.Context, t Thread) context.Context {
	return context.WithValue(ctx, threadKey{}, t)
}

// ThreadOf returns the thread of OnThread, or nil.
func ThreadOf(ctx context.Context) Thread {
	t, _ := ctx.Value(threadKey{}).(Thread)
	return t
}

// leaves says that the calling goroutine begins to wait, and returns the thread that it runs on by ctx, or nil. ComesBack
// says that it goes on. Both are called where a goroutine parks, which is the only place that looks for a thread:
//
//	defer comesBack(leaves(ctx))
func leaves(ctx context.Context) Thread {
	t := ThreadOf(ctx)
	if t != nil {
		t.Park()
	}
	return t
}

func comesBack(t Thread) {
	if t != nil {
		t.Unpark()
	}
}

// lendsItself is a Lender as a lender.
type lendsItself struct{ Lender }

func (l lendsItself) park()           { l.Park() }
func (l lendsItself) unpark()         { l.Unpark() }
func (l lendsItself) own() Dispatcher { return l.Lender }
