package mailbox

import (
	"sync/atomic"

	"github.com/sluice-go/sluice/guards"
)

// queue holds the waiting requests of one operation.
type queue struct {
	in    pool // admitted
	entry list // in the entry queue, in order of arrival
	out   pool // in the overflow queue

	length length
	joined atomic.Uint64 // requests that have been admitted so far
	runs   int32         // how many run, those announced by Begin and those retained included

	retained, transacted int32 // how many of them are retained, and how many belong to transactions

	line    // of its requests, unless the operation is a family
	members map[any]*line

	// What the rules say of the operation.
	op      int
	row     guards.Set // operations that it conflicts with
	near    guards.Set // the same, and isolated
	guard   string     // its name; empty if there is none
	shared  bool       // the guard looks at no argument: all requests share its result
	own     bool       // the guard is evaluated for each request, or for the head of line
	each    bool       // for each: a request is a line
	one     bool       // there is one line
	headed  bool       // of which only the head is considered
	family  bool       // there is a line per key
	sorted  bool       // by a tree: a family, or requests that a policy orders
	changes bool       // it changes the state
	counts  bool       // the guard looks at waiting counts
	resumes bool       // its requests are the rests of bodies: see Operation.Resumes
	// together says that the requests of the operation start by one decision: they change
	// nothing and run beside each other.
	together bool
	// bare says that there is one line in order of arrival, and neither bypasses nor requests
	// are counted; joins that Come may admit one at once whose guard is known to
	// be false.
	bare, joins bool

	// Of a scoped operation, requests are lines whatever the guard: not all conflict with the
	// same. Each conflicts with all of always, and with some of scopes.
	scoped         bool
	always, scopes guards.Set
	here           []*Request // those that run, if each may have to be compared by a predicate

	// isolated are the operations that requests of other transactions, and of none, conflict with, if
	// that is not for row and scopes to say. See isolate.
	isolated guards.Set

	// Of a family, see declared.go.
	kept   bool   // some operation declares which keys it opens
	fresh  uint64 // if kept: the version since which every result that was false stands
	stands uint64 // what fresh was before the keys are told that were opened

	// Requests that are counted one by one and have been bypassed as often as allowed:
	// admitted, and in the entry queue.
	due, dueEntering int32
	threadless       int // in the overflow queue, and without a thread
	counters
}

// length is how many requests of an operation wait, and how many of them are admitted: two
// numbers in one word, as they change together. It can be read without the scheduler's exclusion.
type length struct{ atomic.Uint64 }

const (
	one        uint64 = 1       // request that waits
	isAdmitted uint64 = 1 << 32 // one that is admitted
)

func (l *length) all() int    { return int(uint32(l.Load())) }
func (l *length) inside() int { return int(l.Load() >> 32) }

// pool holds the requests of an operation that wait in one place, by lines.
type pool struct {
	list         // in order of arrival
	order places // in order of consideration, if they are sorted: the lines of a family, or the requests
	where int    // inQueue or inOverflow

	// If each request is a line, and they are not sorted: the first that is not known to be
	// closed since the stamp. A list and this pointer, and not a tree: evaluating all guards again
	// after a change is the common case, and takes a third of the time.
	unseen *Request
	since  uint64
}

const (
	inQueue    = iota // admitted
	inOverflow        // in the overflow queue
)

// line is the set of waiting requests that share operation, footprint and guard result. (Where
// a request is a line, it has the result itself, and is its own first.)
type line struct {
	result result
	latest uint64 // the greatest order number that has been admitted; of scoped operations, that has been requeued

	// For each start that bypassed some of the line while it was open, the last
	// order number that it bypassed; of these the greatest, at most as many as are
	// counted.
	passed []uint64

	// Of a family:
	key           any
	at            [2]home
	failing       bool  // all of it: it is not worth a new place
	loose         bool  // without a place: see loosen
	before, after *line // among the loose ones
}

// home is the requests of a line in one place, and the line's own place there.
type home struct {
	members places
	node    placeNode
}

// lines is a doubly linked list through the lines themselves.
type lines struct{ first, last *line }

func (a *lines) push(l *line) {
	l.loose, l.before, l.after = true, a.last, nil
	if a.last == nil {
		a.first = l
	} else {
		a.last.after = l
	}
	a.last = l
}

func (a *lines) remove(l *line) {
	if l.before == nil {
		a.first = l.after
	} else {
		l.before.after = l.after
	}
	if l.after == nil {
		a.last = l.before
	} else {
		l.after.before = l.before
	}
	l.loose, l.before, l.after = false, nil, nil
}

// lineOf returns the line of requests like r; nil if there is none, as nothing waits for its key.
func (q *queue) lineOf(r *Request) *line {
	if !q.family {
		return &q.line
	}
	if l := r.line(); l != nil {
		return l
	}
	return q.members[r.Key]
}

// lineFor returns the line that r is to join.
func (s *Scheduler) lineFor(q *queue, r *Request) *line {
	l := q.lineOf(r)
	if l == nil {
		if n := len(s.spare); n > 0 {
			l, s.spare = s.spare[n-1], s.spare[:n-1]
		} else {
			l = &line{}
		}
		l.key, l.latest = r.Key, 0
		l.at[inQueue].node.v.line, l.at[inOverflow].node.v.line = l, l
		q.members[r.Key] = l
	}
	return l
}

// eldest returns the admitted request of the line that arrived first, or nil.
func (q *queue) eldest(l *line) *Request {
	switch members := &l.at[inQueue].members; {
	case !q.family:
		return q.in.first
	case members.root == nil:
		return nil
	default:
		return members.root.v.eldest
	}
}

// len returns how many requests of a family's line are admitted.
func (l *line) len() int {
	if root := l.at[inQueue].members.root; root != nil {
		return int(root.v.size)
	}
	return 0
}

// front returns the request of the line that starts first, if its guard holds (R6); or nil.
func (s *Scheduler) front(q *queue, p *pool, l *line) *Request {
	if s.bound > 0 && p.where == inQueue {
		if s.rules.AllCompatible {
			if due := s.frontDue(q, l); due != nil {
				return due
			}
		} else if old := q.eldest(l); old != nil && s.due(old) {
			return old
		}
	}
	t := &p.order
	if q.family {
		t = &l.at[p.where].members
	} else if t.root == nil {
		r := p.first
		for r != nil && r.marks.has(threadless) {
			r = r.next
		}
		return r
	}
	if n := t.first(); n != nil {
		return n.v.r
	}
	return nil
}

// first returns the first request of the first line that stands before others (R4), of an
// operation whose requests conflict with the same; or nil. A line is asked once, also if one
// fails meanwhile, by which the waiting counts change; in the overflow queue it is told first.
func (s *Scheduler) first(q *queue, p *pool, how knowledge) *Request {
	switch {
	case p.list.first == nil:
		return nil
	case q.one:
		r := p.list.first
		if !q.bare {
			r = s.front(q, p, &q.line)
		}
		if r == nil || s.holds(q, r, how) {
			return r
		}
		return nil
	}
	fresh := s.fresh(q)
	if q.family || p.order.root != nil {
		for n := firstNot(&p.order, fresh); n != nil; n = firstNot(&p.order, fresh) {
			r := n.v.r
			if n.v.line != nil {
				r = s.front(q, p, n.v.line)
			}
			if s.holds(q, r, how) {
				return r
			}
			if p.where == inOverflow && s.failed.first != nil {
				return nil
			}
		}
		return nil
	}
	if p.since != fresh {
		p.since, p.unseen = fresh, p.list.first
	}
	for r := p.unseen; r != nil; r = p.unseen {
		if !r.marks.has(threadless) && s.holds(q, r, how) {
			return r
		}
		if p.unseen == r { // it has not failed
			p.unseen = r.next
		} else if p.where == inOverflow {
			return nil
		}
	}
	return nil
}

// visit calls f with each line of admitted requests, by the one that goes first in it, until it
// returns false: of a scoped operation, or where each has its own guard, in order of arrival,
// and else in order of consideration. The line that f is called with may leave, and no other.
func (s *Scheduler) visit(q *queue, f func(r *Request) bool) {
	var head *Request
	switch {
	case q.in.first == nil:
		return
	case q.scoped && q.headed:
		if head = s.front(q, &q.in, &q.line); !s.rules.Reentrant && !s.rules.Transactional {
			f(head)
			return
		}
	case q.scoped, q.each:
	case q.family:
		for n := q.in.order.first(); n != nil; {
			l := n.v.line
			n = n.next()
			if !f(s.front(q, &q.in, l)) {
				return
			}
		}
		return
	default:
		f(s.front(q, &q.in, &q.line))
		return
	}
	for r := q.in.first; r != nil; {
		next := r.next
		if (head == nil || r == head || s.nested(r)) && !f(r) {
			return
		}
		r = next
	}
}

// unsee notes that the guard of r, which is a line by itself in the pool, is to be evaluated.
func (p *pool) unsee(q *queue, r *Request) {
	if q.each && (p.unseen == nil || r.seq < p.unseen.seq) {
		p.unseen = r
	}
}

// lineUp puts r, which is in the list of the pool, into the order of consideration. If the
// policy fails, so has r.
func (s *Scheduler) lineUp(q *queue, p *pool, r *Request) {
	if p.where == inOverflow && q.scoped {
		return // they are considered one by one
	}
	t, before, no := &p.order, s.within, uint64(0)
	if p.where == inOverflow {
		before = arrived
	}
	if q.family {
		l := s.lineFor(q, r)
		if s.insert(&l.at[p.where].members, r, 0, before) {
			r.node.v.line = l
			s.place(q, p, l)
		}
		return
	}
	if q.sorted && p.where == inQueue {
		if q.own {
			no = r.result.no()
		}
		s.insert(t, r, no, before)
		return
	}
	p.unsee(q, r)
}

// insert puts r into a tree. If the policy fails it reports false, and r has failed.
func (s *Scheduler) insert(t *places, r *Request, no uint64, before func(a, b *place) (bool, error)) bool {
	if r.node == nil {
		r.node = &placeNode{v: place{r: r}}
	}
	r.node.v.no = no
	if err := t.insert(r.node, scatter(r.seq), before); err != nil {
		s.fail(r, err)
		return false
	}
	return true
}

// lineDown takes r out of the order of consideration.
func (s *Scheduler) lineDown(q *queue, p *pool, r *Request) {
	if p.unseen == r {
		p.unseen = r.next
	}
	switch {
	case !r.placed():
	case q.family:
		r.line().at[p.where].members.remove(r.node)
		r.node.v.line = nil
	default:
		p.order.remove(r.node)
	}
}

// place puts a line of a family where its first request belongs.
func (s *Scheduler) place(q *queue, p *pool, l *line) {
	n := &l.at[p.where].node
	first := l.at[p.where].members.first()
	if first != nil && n.placed && n.v.r == first.v.r {
		return
	}
	s.displace(p, l)
	if n.v.r = nil; first == nil {
		return
	}
	before := s.within
	if p.where == inOverflow {
		before = arrived
	}
	n.v.r, n.v.no = first.v.r, l.result.no()
	if err := p.order.insert(n, scatter(first.v.r.seq), before); err != nil {
		s.failLine(q, l, err)
	}
}

// displace takes a line from its place among the others.
func (s *Scheduler) displace(p *pool, l *line) {
	if l.at[p.where].node.placed {
		p.order.remove(&l.at[p.where].node)
	}
	if p.where == inQueue && l.loose {
		s.loose.remove(l)
	}
}

// loosen is called when an admitted request has left a line of a family. If another request is
// its first now, the line needs another place; but not yet: the policy that is asked for that may
// not return, and the request that is leaving would be lost.
func (s *Scheduler) loosen(q *queue, l *line) {
	n := &l.at[inQueue].node
	switch first := l.at[inQueue].members.first(); {
	case first == nil:
		s.displace(&q.in, l)
		n.v.r, l.latest = nil, 0
		s.dissolve(q, l)
		s.disbelieve(l)
	case l.failing || l.loose || n.placed && n.v.r == first.v.r:
	default:
		s.displace(&q.in, l)
		n.v.r = first.v.r
		s.loose.push(l)
	}
}

// dissolve forgets a line of a family that has no requests any more.
func (s *Scheduler) dissolve(q *queue, l *line) {
	if l.at[inQueue].members.root != nil || l.at[inOverflow].members.root != nil {
		return
	}
	delete(q.members, l.key)
	*l = line{passed: l.passed[:0]}
	if len(s.spare) < 16 {
		s.spare = append(s.spare, l)
	}
}

// tidy puts lines that have lost their first request into their new places.
func (s *Scheduler) tidy() {
	for l := s.loose.first; l != nil; l = s.loose.first {
		q := &s.queues[l.at[inQueue].members.first().v.r.Op]
		s.place(q, &q.in, l)
	}
}

// failLine fails all admitted requests of a line, in order of arrival.
func (s *Scheduler) failLine(q *queue, l *line, err error) {
	l.failing = true
	for r := q.eldest(l); r != nil; r = q.eldest(l) {
		s.fail(r, err)
	}
	l.failing = false
}

// noted tells the trees that a line of a family is in what its guard has said.
func (l *line) noted() {
	noteNo(&l.at[inQueue].node, l.result.no())
	noteNo(&l.at[inOverflow].node, l.result.no())
}
