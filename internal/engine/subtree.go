package engine

import "iter"

// An object that is restarted waits until its children have ended, and they do not end before their
// bodies have returned. So in the search for circles these bodies block its requests like one of
// its own: the bodies of the children, and of all objects below them.
//
//	child.visit ──waits for──► parent.visit ──blocked by───► the restart of parent
//	     ▲                                                          │
//	     └──────────────────────waits for───────────────────────────┘
//
// A body that begins to wait may close the circle, as usual: it sees the wait for the children as
// long as suspension.children is set. Or the wait for the children closes it. That cannot be
// refused, so the waits for the object that are in such a circle are aborted (see breakCircles).
// All of that happens under graph, so that one of the two sees the other.
//
// A stop makes no such circle, as nothing waits at an object that has been stopped. An actor among
// the children that is no object is not known, nor what it waits for.

// Subtree is an object with the objects below it in the tree of supervision that have not ended. A
// nil Subtree is that of an actor that is no object.
type Subtree struct {
	box      *Mailbox
	parent   *Subtree
	children map[string]*Subtree // by their ids; guarded by graph
}

// NewSubtree returns the subtree of the object with the mailbox, which is about to become a child of
// the parent. Parent is nil if that is no object, or there is none.
func NewSubtree(box *Mailbox, parent *Subtree) *Subtree { return &Subtree{box: box, parent: parent} }

// Add makes the object, which has the id, a child of its parent. It is called when protoactor makes
// the actor a child of the parent's, while the parent's context is held; Remove is called when the
// parent handles the Terminated.
func (t *Subtree) Add(id string) {
	if t.parent == nil {
		return
	}
	graph.Lock()
	defer graph.Unlock()
	if t.parent.children == nil {
		t.parent.children = map[string]*Subtree{}
	}
	t.parent.children[id] = t
}

// Remove forgets the child with the id.
func (t *Subtree) Remove(id string) {
	if t == nil {
		return
	}
	graph.Lock()
	defer graph.Unlock()
	delete(t.children, id)
}

// within yields the subtrees of the objects below t. The caller holds graph.
func (t *Subtree) within() iter.Seq[*Subtree] {
	return func(yield func(*Subtree) bool) { t.visit(yield) }
}

func (t *Subtree) visit(yield func(*Subtree) bool) bool {
	for _, child := range t.children {
		if !yield(child) || !child.visit(yield) {
			return false
		}
	}
	return true
}

// Recheck looks for the circles that the suspension of the object may have closed.
func (t *Subtree) Recheck() {
	if t != nil {
		t.box.mu.Lock()
		t.box.recheck()
		t.box.mu.Unlock()
	}
}

// AwaitChildren says whether the object waits for the end of its children.
func (t *Subtree) AwaitChildren(waits bool) {
	if t == nil {
		return
	}
	graph.Lock()
	set := t.box.awaits(t, waits)
	var broken []*waiter
	if set && waits {
		broken = breakCircles(graph.Waits(t.box))
	}
	graph.Unlock()
	abort(broken)
}

// awaits is AwaitChildren for the object; it reports false if that changes nothing. The
// caller holds graph.
func (m *Mailbox) awaits(t *Subtree, children bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.suspended()
	if s == nil || children == (s.children != nil) {
		return false
	}
	if s.children = nil; children {
		s.children = t
		graph.Elsewhere(1)
	} else {
		graph.Elsewhere(-1)
	}
	return true
}
