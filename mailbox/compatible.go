package mailbox

import "iter"

// Where all start that are compatible (Rules.AllCompatible), a request that waits for what
// runs stands in nobody's way: the rule of the Synchronizer's text, by which a stream of
// readers starves a writer. What is left of the order is
//
//   - that of those who could start: the policy's word; and nobody inside passes one at the
//     gate who has come before it and could be let in,
//   - the places in a line, and heads of line,
//   - the bound on bypasses.
//
// So the only one that stands in the way of others for long is who is at its bound.
//
// # Bypasses at the gate
//
// Who conflicts with what runs may stay at the gate as long as others pass it. So it is bypassed
// there, too: by whoever starts that came to the gate after it, unless its guard is known to
// be false; and takes its count inside. At the bound, be it inside or outside, nothing starts that
// conflicts with it: whether that came before or after, or has been requeued. Only one that is
// at the bound itself does, and has the lesser order number.
//
// Who is requeued is inside before all at the gate, by the eggshell, whatever its order number
// says: so its start is no bypass of them. (Their number may be a new one when they come in: see
// admit. What they have been bypassed stays.) And it has not been bypassed itself, also if
// it keeps its place. In a line, therefore, the one with the least number need not be the one that
// has been bypassed most often, as it is elsewhere: another may have been at the gate for longer.
// So bypasses are counted one by one, and the front of a line is the first of those that are at
// the bound.
//
// # Who could come in
//
// One at the gate that could be let in is to be considered with those inside. So when it is the
// turn of one that came after it, and conflicts with it, nobody starts any more before admit has
// let it in. (Not by skipping the one whose turn it is: it may stand for others of its operation,
// who came before, and whom the policy prefers to those that would be next.)
//
// A Try is considered last: it is decided when nobody can start who waits inside, and all have
// been let in who can be. Then whoever waits, waits for what runs, for its guard, or for one that
// is at its bound; and only the latter are in the way.

// overtake counts a bypass of r, which waits at the gate or inside.
func (k *Scheduler) overtake(r *Request) {
	r.bypassed++
	if int(r.bypassed) != k.rules.MaxBypass {
		return
	}
	q := &k.queues[r.Op]
	if r.state == StateAtGate {
		q.dueOutside++
	} else {
		q.due++
	}
	k.found = true // it is in the way of others from now on
}

// overtakeLine counts a bypass of all those inside that share a line, with an order number
// less than the given.
func (k *Scheduler) overtakeLine(q *queue, l *line, seq uint64) {
	for r := q.inside.first; r != nil && r.seq < seq; r = r.next {
		if k.lineAt(q, r.Key) == l {
			k.overtake(r)
		}
	}
}

// overtakeOutside counts a bypass of those at the gate that r passes by starting.
func (k *Scheduler) overtakeOutside(r *Request) {
	for op := k.gated.Next(0); op >= 0; op = k.gated.Next(op + 1) {
		if k.refutedOutside(op) {
			continue
		}
		for w := k.queues[op].gate.first; w != nil && w.seq < r.came; w = w.next {
			k.overtake(w)
		}
	}
}

// leftGate is called when r, which was bypassed there, has left the gate.
func (k *Scheduler) leftGate(q *queue, r *Request) {
	if k.overtaken(r) {
		q.dueOutside--
	}
	q.longest = max(q.longest, min(int(r.bypassed), k.counts()))
}

// cameIn is called when r, which was bypassed at the gate, has come inside.
func (k *Scheduler) cameIn(q *queue, r *Request) {
	if k.overtaken(r) {
		q.dueOutside--
		q.due++
	}
}

// frontDue returns the first of a line, by its order number, that is at the bound; or nil.
func (k *Scheduler) frontDue(q *queue, l *line) *Request {
	if q.due == 0 {
		return nil
	}
	for r := q.inside.first; r != nil; r = r.next {
		if k.overtaken(r) && k.lineAt(q, r.Key) == l {
			return r
		}
	}
	return nil
}

// precedes reports whether w, which waits, is in the way of r by being at the bound: of two
// that are, the first by its number is in the way of the other.
func (k *Scheduler) precedes(w, r *Request) bool {
	return k.overtaken(w) && (!k.overtaken(r) || w.seq < r.seq)
}

// reserved yields those at the gate that are in the way of r by being at the bound, and
// conflict with it.
func (k *Scheduler) reserved(r *Request, clash func(r, other *Request) bool) iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		for op := k.gated.Next(0); op >= 0; op = k.gated.Next(op + 1) {
			q := &k.queues[op]
			if q.dueOutside == 0 || !k.rules.Conflicts.Between(r.Op, op) || k.refutedOutside(op) {
				continue
			}
			for w := q.gate.first; w != nil; w = w.next {
				if w != r && k.precedes(w, r) && clash(r, w) && !yield(w) {
					return
				}
			}
		}
	}
}

// reservedFor returns one such, or nil.
func (k *Scheduler) reservedFor(r *Request, clash func(r, other *Request) bool) *Request {
	for w := range k.reserved(r, clash) {
		return w
	}
	return nil
}

// enters reports whether somebody at the gate who arrived before r, and conflicts with it, could
// come in. It asks predicates, which may fail.
func (k *Scheduler) enters(r *Request) bool {
	for op := k.gated.Next(0); op >= 0; op = k.gated.Next(op + 1) {
		q := &k.queues[op]
		if !k.rules.Conflicts.Between(r.Op, op) || k.refutedOutside(op) || !q.scoped && k.barred(op) {
			continue
		}
		for w := q.gate.first; w != nil && w.seq < r.came; {
			next := w.next // a predicate that fails takes w with it
			if !w.Try && !k.bars(w) && k.clash(r, w) {
				return true
			}
			w = next
		}
	}
	return false
}

// dueAhead returns one inside that is in the way of r, which is not, by being at the bound, may
// be open, and conflicts with it; or nil, also if somebody fails meanwhile.
func (k *Scheduler) dueAhead(op int, r *Request) *Request {
	q, failed := &k.queues[op], k.failed.last
	if q.due == 0 {
		return nil
	}
	if q.scoped {
		for w := range k.considered(op) {
			if k.precedes(w, r) && k.clash(r, w) && k.failed.last == failed && k.openOrBarred(w) {
				return w
			}
			if k.failed.last != failed {
				return nil
			}
		}
		return nil
	}
	if !k.anyPrecedes(q, r) {
		return nil // so that no guard is evaluated for what does not come first
	}
	h := k.candidates(k.heads[:0], op, false)
	k.heads = h
	first := (*Request)(nil)
	for _, c := range h {
		if first == nil && k.failed.last == failed && k.precedes(c.r, r) {
			first = c.r
		}
	}
	clear(h) // pin nobody
	return first
}

// anyPrecedes reports whether one inside the queue precedes r, open or not.
func (k *Scheduler) anyPrecedes(q *queue, r *Request) bool {
	for w := q.inside.first; w != nil; w = w.next {
		if k.precedes(w, r) {
			return true
		}
	}
	return false
}

// firstToEnter returns the first at the gate that can be let in and does not try, or nil, also
// if a predicate fails.
func (k *Scheduler) firstToEnter() (first *Request) {
	for op := k.gated.Next(0); op >= 0; op = k.gated.Next(op + 1) {
		q := &k.queues[op]
		if !q.scoped && k.barred(op) {
			continue
		}
		for r := q.gate.first; r != nil && (first == nil || r.seq < first.seq); {
			next := r.next
			if !r.Try && !k.bars(r) {
				first = r
				break
			}
			if k.failed.first != nil {
				return nil
			}
			r = next
		}
	}
	return first
}

// dueInFront is inFront: those that are at the bound, as far as they conflict with r and come
// first, and the head of its line.
func (k *Scheduler) dueInFront(r *Request) iter.Seq2[*Request, bool] {
	return func(yield func(first *Request, sure bool) bool) {
		if k.inner(r) {
			return // it passes all that wait
		}
		for first := range k.reserved(r, k.known) {
			if !yield(first, true) {
				return
			}
		}
		if first := k.headOf(r); first != nil && !yield(first, true) {
			return
		}
		for op := k.inside.Next(0); op >= 0; op = k.inside.Next(op + 1) {
			if !k.rules.Conflicts.Between(r.Op, op) || k.queues[op].due == 0 {
				continue
			}
			if k.queues[op].scoped {
				for w := range k.considered(op) {
					if w != r && k.precedes(w, r) && k.known(r, w) && k.mayHold(w) && !yield(w, true) {
						return
					}
				}
				continue
			}
			first := k.notFalse(op)
			if first == nil {
				continue
			}
			for _, c := range k.alsoDue([]candidate{{r: first}}, first, false) {
				if c.r == r || !k.precedes(c.r, r) {
					continue
				}
				if !yield(c.r, true) {
					return
				}
				break
			}
		}
	}
}
