package mailbox

import (
	"sync/atomic"

	"github.com/sluice-go/sluice/guards"
)

// queue holds the waiting requests of one operation.
type queue struct {
	inside, gate list // in order of arrival
	door         door
	length       length
	joined       atomic.Uint64 // requests that have come inside so far
	runs         int32         // how many run, those begun by Begin included

	line          // of those inside, unless the operation is a family
	guard  string // its name; empty if there is none
	shared bool   // it is over the state alone: there is one line
	plain  bool   // there is one line, in order of arrival, and neither bypasses nor requests are counted
	each   bool   // every request is asked by itself
	sorted bool   // by a tree; or else the order of consideration is that of arrival
	// together says that the requests of the operation start by one decision: they change
	// nothing and run beside each other.
	together bool
	// Of a scoped operation each request is considered by itself, as not all conflict with
	// the same: with all of always, and some of scopes. Here are those that run, if each may
	// have to be compared.
	scoped         bool
	always, scopes guards.Set
	here           []*Request
	// changes says that the operation changes the state, watchful that its guard looks
	// at waiting counts, joins that Join may be of use.
	changes, watchful, joins bool
	// If each is asked, in order of arrival: the first inside that has not been
	// asked since the stamp. Those before it have, and said no.
	unasked *Request
	since   uint64
	// Requests inside that are counted one by one, and have been bypassed as often as allowed;
	// and likewise at the gate, where all start that are compatible.
	due, dueOutside int32

	members map[any]*line
	lines   tree   // the members, by their first requests
	kept    bool   // some operation declares which keys it opens
	fresh   uint64 // if kept: the version since which every no stands
	stands  uint64 // what fresh was before the keys are told that were opened

	counters
}

// length is how many requests of an operation wait, those at the door included, and
// how many of them inside: two numbers in one word, as they change together. It can
// be read without the scheduler's exclusion.
type length struct{ atomic.Uint64 }

const (
	one     uint64 = 1       // request that waits
	indoors uint64 = 1 << 32 // one that is inside
)

func (l *length) all() int    { return int(uint32(l.Load())) }
func (l *length) inside() int { return int(l.Load() >> 32) }

// line holds the waiting requests that share a guard's answer: of an entry, or of
// one key of a family. (If every request is asked by itself, they share a line
// but no answer.)
type line struct {
	*node         // its place among the lines of its family; nil if there is none
	key    any    // of the family
	tree   tree   // its requests in the order of consideration, if they are sorted
	door   *node  // its place among the lines at the door; nil if it never had one
	out    tree   // those of its requests that wait there, in order of arrival
	answer answer // of the guard
	latest uint64 // the greatest order number that has come in; of scoped operations, that has been requeued

	// For each start that bypassed some of the line while it was open, the last
	// order number that it bypassed; of these the greatest, at most as many as are
	// counted.
	passed  []uint64
	failing bool // all of it: it is not worth a new place

	// Among the lines without a place: see Scheduler.loosen.
	loose         bool
	before, after *line
}

// lines is a doubly linked list through the lines themselves, in the order in which they
// joined, so that joining and leaving cost the same however many there are.
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

// lineOf returns the line in which r waits or is to wait.
func (k *Scheduler) lineOf(q *queue, r *Request) *line {
	if q.members == nil {
		return &q.line
	}
	l := q.members[r.Key]
	if l == nil {
		if n := len(k.spare); n > 0 {
			l, k.spare = k.spare[n-1], k.spare[:n-1]
		} else {
			l = &line{node: &node{}}
		}
		l.line, l.key, l.latest = l, r.Key, 0
		q.members[r.Key] = l
	}
	return l
}

// lineAt returns the line of a key; nil if nobody waits there.
func (k *Scheduler) lineAt(q *queue, key any) *line {
	if q.members == nil {
		return &q.line
	}
	return q.members[key]
}

// first returns the request of the line that is considered first, or nil.
func (l *line) first(q *queue) *Request {
	if !q.sorted {
		return q.inside.first
	}
	if n := l.tree.first(); n != nil {
		return n.r
	}
	return nil
}

// oldest returns the request of the line that arrived first, or nil.
func (l *line) oldest(q *queue) *Request {
	if q.members == nil {
		return q.inside.first
	}
	if l.tree.root == nil {
		return nil
	}
	return l.tree.root.eldest
}

// noted tells the trees that a line of a family is in what its guard has answered.
func (l *line) noted() {
	l.note(no(l.answer))
	if l.door != nil {
		l.door.note(no(l.answer))
	}
}

// len returns how many wait in a line of a family.
func (l *line) len() int {
	if l.tree.root == nil {
		return 0
	}
	return int(l.tree.root.size)
}

// sort puts r, which is inside, into the order of its line. If the policy fails,
// so has r.
func (k *Scheduler) sort(q *queue, l *line, r *Request) {
	if r.node == nil {
		r.node = &node{r: r}
	}
	r.node.no = no(r.answer)
	if err := l.tree.insert(r.node, k.before); err != nil {
		k.fail(r, err)
		return
	}
	if q.members != nil {
		k.place(q, l)
	}
}

// before is the order of consideration of two requests of one operation.
func (k *Scheduler) before(a, b *Request) (bool, error) {
	if p := k.rules.Policy; p != nil && p.Within {
		first, err := p.Before(a, b, -1)
		if first || err != nil {
			return first, err
		}
		if last, err := p.Before(b, a, -1); last || err != nil {
			return false, err
		}
	}
	return a.seq < b.seq, nil
}

// place puts a line of a family where its first request belongs.
func (k *Scheduler) place(q *queue, l *line) {
	first := l.first(q)
	if l.placed && l.r == first {
		return
	}
	k.displace(q, l)
	l.r, l.no = first, no(l.answer)
	if err := q.lines.insert(l.node, k.before); err != nil {
		k.failLine(q, l, err)
	}
}

// displace takes a line from its place among the others.
func (k *Scheduler) displace(q *queue, l *line) {
	if l.placed {
		q.lines.remove(l.node)
	}
	if l.loose {
		k.loose.remove(l)
	}
}

// loosen is called when a request has left a line of a family. Without requests,
// inside or at the door, it is no member any more. If another request is its first
// now, it will need another place, but not yet: the policy that is asked for it may
// not return, and the request that is leaving would be lost.
func (k *Scheduler) loosen(q *queue, l *line) {
	switch first := l.first(q); {
	case first == nil && l.out.root != nil:
		k.displace(q, l)
		l.r, l.latest = nil, 0
		k.disbelieve(l)
	case first == nil:
		k.displace(q, l)
		delete(q.members, l.key)
		*l.node = node{}
		*l = line{node: l.node, door: l.door, passed: l.passed[:0]}
		if len(k.spare) < 16 {
			k.spare = append(k.spare, l)
		}
	case l.failing || l.loose || l.placed && l.r == first:
	default:
		k.displace(q, l)
		l.r = first
		k.loose.push(l)
	}
}

// tidy puts lines that have lost their first request into their new places.
func (k *Scheduler) tidy() {
	for l := k.loose.first; l != nil; l = k.loose.first {
		first := l.tree.first().r
		k.place(&k.queues[first.Op], l)
	}
}

// failLine fails all requests of a line, in order of arrival.
func (k *Scheduler) failLine(q *queue, l *line, err error) {
	l.failing = true
	for r := l.oldest(q); r != nil; r = l.oldest(q) {
		k.fail(r, err)
	}
	l.failing = false
}

// front returns the request of a line that would start first if its guard held.
func (k *Scheduler) front(q *queue, l *line) *Request {
	if k.rules.MaxBypass > 0 {
		if k.rules.AllCompatible {
			if due := k.frontDue(q, l); due != nil {
				return due
			}
		} else if old := l.oldest(q); old != nil && k.due(old) {
			return old
		}
	}
	return l.first(q)
}

// firstOpen returns the first request inside the operation's queue whose guard
// holds, asking what has not been asked since the state changed. A guard that
// fails takes the requests it guards with it.
func (k *Scheduler) firstOpen(op int) *Request {
	q := &k.queues[op]
	if q.plain {
		if r := q.inside.first; r == nil || k.lets(q, r) {
			return r
		}
		return nil
	}
	fresh := k.fresh(op) // also if one fails, which changes the waiting counts: once round is enough
	switch {
	case q.members != nil:
		for {
			n := q.lines.firstNot(fresh)
			if n == nil {
				return nil
			}
			l := n.line
			r := k.front(q, l)
			if falsePart, err := k.askLine(q, l, r); falsePart == "" && err == nil {
				return r
			}
		}
	case q.each && q.sorted:
		for {
			n := q.tree.firstNot(fresh)
			if n == nil {
				return nil
			}
			if r := n.r; k.askRequest(r) && r.answer.falsePart == "" {
				return r
			}
		}
	case q.each:
		stamp := k.stamp(op)
		for q.restart(fresh); q.unasked != nil; {
			r := q.unasked
			if a := &r.answer; a.stamp != stamp && !k.ask(q, r) {
				stamp = k.stamp(op)
				continue // it has failed, which moved unasked on
			}
			if r.answer.falsePart == "" {
				return r
			}
			q.unasked = r.next
		}
		return nil
	default:
		r := k.front(q, &q.line)
		if r == nil || q.guard == "" {
			return r
		}
		if falsePart, err := k.askLine(q, &q.line, r); falsePart != "" || err != nil {
			return nil
		}
		return r
	}
}

// restart goes back to the first request if answers have become old.
func (q *queue) restart(fresh uint64) {
	if q.since != fresh {
		q.since, q.unasked = fresh, q.inside.first
	}
}

// notFalse returns the first request inside the operation's queue whose guard is
// not known to be false, without asking.
func (k *Scheduler) notFalse(op int) *Request {
	q := &k.queues[op]
	switch {
	case q.members != nil:
		if n := q.lines.firstNot(k.fresh(op)); n != nil {
			return k.front(q, n.line)
		}
		return nil
	case q.each && q.sorted:
		if n := q.tree.firstNot(k.fresh(op)); n != nil {
			return n.r
		}
		return nil
	case q.each:
		q.restart(k.fresh(op))
		r := q.unasked
		for r != nil && !k.mayHold(r) { // some after the first that holds may have been asked too
			r = r.next
		}
		return r
	}
	r := k.front(q, &q.line)
	if r == nil || !k.mayHold(r) {
		return nil
	}
	return r
}
