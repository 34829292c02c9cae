package engine

import (
	"github.com/sluice-go/sluice/internal/waitgraph"
	"github.com/sluice-go/sluice/mailbox"
)

// A mailbox is the wait point of all requests of its object, and of the object's end; but if the object
// is parallel, takes part in transactions, or has bodies that suspend, each request is its own.
var (
	_ waitgraph.Point = (*Mailbox)(nil)
	_ waitgraph.Point = (*Request)(nil)
	_ waitgraph.Event = (*Request)(nil)
	_ waitgraph.Event = (*ending)(nil)
	_ waitgraph.Join  = (*Join)(nil)
)

// Blockers implements waitgraph.Point: they are the bodies that run in the object and may call others,
// and, if it waits for the end of its children, those that run in any object below it.
func (m *Mailbox) Blockers(nodes []*waitgraph.Node) []*waitgraph.Node {
	nodes, children := m.running(nodes)
	if children != nil {
		for below := range children.within() {
			nodes, _ = below.box.running(nodes)
		}
	}
	return nodes
}

// running appends the bodies that run in the object now and may call others, and the transactions on
// whose behalf requests run, or are retained. If the object waits for the end of its children it returns its subtree, too. The caller holds graph.
func (m *Mailbox) running(nodes []*waitgraph.Node) (_ []*waitgraph.Node, children *Subtree) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.queues.Load(); k != nil {
		for r := range k.Running() {
			nodes = blocking(nodes, r, nil)
		}
	}
	if s := m.suspended(); s != nil {
		children = s.children
	}
	return nodes, children
}

// appendTo appends the node of the body, if there is such a body, it has a node, and it is inside of its object.
func (f *Frame) appendTo(nodes []*waitgraph.Node) []*waitgraph.Node {
	if f == nil || f.away.Load() {
		return nodes
	}
	return f.inAnyCase(nodes)
}

// inAnyCase is appendTo, also for a body that has suspended until it has a result: it is in the way of its own request only.
func (f *Frame) inAnyCase(nodes []*waitgraph.Node) []*waitgraph.Node {
	if f == nil || f.node == nil {
		return nodes
	}
	if f.away.Load() {
		if rest := f.apart.rest.Load(); rest != nil && !rest.awaits() {
			return nodes
		}
	}
	return append(nodes, f.node)
}

// Via implements waitgraph.Point.
func (m *Mailbox) Via(body waitgraph.Body) string {
	if f := body.(*Frame); f.box == m || f.root() {
		return ""
	}
	return "the restart of " + m.host.Name()
}

// Blockers implements waitgraph.Point for a request at an object where each request is its own wait point. They are its own body, if that runs; else the bodies that run and conflict with it, or
// with a request that goes before it, and the transactions that they belong to; and all that run, if the
// object is suspended. Where one body runs at a time, that body is in the way of all requests. A body that has
// suspended until it has a result is in the way of its own request.
//
// A request may also wait for its guard alone, which any request may open; or for a thread, of
// which all may be in use for good under a hard limit. Then there are no blockers.
func (r *Request) Blockers(nodes []*waitgraph.Node) []*waitgraph.Node {
	m := r.lock()
	if rest := r.rest(); rest != nil && rest.awaits() {
		nodes = r.frame.inAnyCase(nodes)
	}
	switch {
	case m.suspended() != nil && r.Waits():
		m.mu.Unlock()
		return m.Blockers(nodes)
	case r.Waits():
		for other := range m.scheduler().Blockers(&r.Request) {
			nodes = blocking(nodes, other, transactionOf(&r.Request))
		}
		if m.config.Parallel == nil {
			for other := range m.scheduler().Running() {
				if other.State() == mailbox.StateRunning {
					nodes = other.Record.(*Request).frame.appendTo(nodes)
				}
			}
		}
	case r.State() == mailbox.StateRunning:
		nodes = r.frame.inAnyCase(nodes)
	}
	m.mu.Unlock()
	return nodes
}

// Via implements waitgraph.Point.
func (r *Request) Via(body waitgraph.Body) string { return r.box.Load().Via(body) }

// Pending implements waitgraph.Goal. A request that has ended blocks nothing, though its caller may
// not have been told yet; nor does one that has not been handed in.
func (r *Request) Pending() bool {
	if r.box.Load() == nil {
		return false
	}
	m := r.lock()
	defer m.mu.Unlock()
	return !r.Ended() && r.State() != mailbox.StateFresh
}

// Object implements waitgraph.Event.
func (r *Request) Object() waitgraph.Point {
	if m := r.box.Load(); m != nil {
		return m
	}
	return nil
}

// Point implements waitgraph.Event.
func (r *Request) Point() waitgraph.Point {
	if m := r.box.Load(); !m.ownPoints() {
		return m
	}
	return r
}

// ownPoints reports whether each request of the object is its own wait point, as different bodies block them.
func (m *Mailbox) ownPoints() bool { return m.config.distinct }

func (r *Request) goal() waitgraph.Goal { return r }
