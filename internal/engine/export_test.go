package engine

import "context"

// What becomes of a request that has been granted, and what its caller finds, for tests that take
// these steps one by one.
const (
	Own      = own
	Done     = done
	Returned = returned
)

// HandIn is Call without the wait, at a parallel object.
func (m *Mailbox) HandIn(r *Request) {
	r.Prepare(context.Background(), Now())
	m.mu.Lock()
	if m.arrive(r, m.engage(), "") {
		m.serve(nil, 0, false)
	}
}

func (m *Mailbox) Grant(r *Request)   { r.at(m); m.grant(r) }
func (m *Mailbox) RunLent(r *Request) { m.runHelped(r) }
func (m *Mailbox) Unbegun() int32     { return m.parallel().unbegun.Load() }
func (r *Request) Begin() uint32      { <-r.wake; return r.outcomeSlow() }
func (r *Request) Borrow() bool       { return r.claimHelp() }
func (r *Request) Leave(s uint32)     { r.setOutcome(s) }

// Awaited reports whether the caller of r, which a helper runs, has come.
func (r *Request) Awaited() bool { return r.stage.Load() == awaited }

// AtRest reports whether r can be used for another call: no other goroutine will touch it.
func (r *Request) AtRest() bool { return r.stage.Load() == own && len(r.wake) == 0 }

// Looked returns how much has been looked at so far in searches for circles.
func Looked() int {
	graph.Lock()
	defer graph.Unlock()
	return graph.Looked()
}

// Edges returns how many requests bodies wait for, each as often as that is so, and how many of the
// waits may come to follow from others; and how many objects wait for their children.
func Edges() (sum, unknown, restarting int) {
	graph.Lock()
	defer graph.Unlock()
	return graph.Counts()
}
