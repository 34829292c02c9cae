package mailbox

// counts returns how far bypasses are counted.
func (k *Scheduler) counts() int { return k.counted }

// due reports whether a request whose guard holds has been bypassed as often as
// the rules allow.
func (k *Scheduler) due(r *Request) bool {
	return k.rules.MaxBypass > 0 && k.bypasses(r) >= k.rules.MaxBypass
}

// overtaken reports whether r is one of its queue's due.
func (k *Scheduler) overtaken(r *Request) bool {
	return k.rules.MaxBypass > 0 && int(r.bypassed) >= k.rules.MaxBypass
}

// bypasses returns how often later arrivals started while r waited inside and
// its guard was open, as far as that is counted.
//
// Requests with a guard of their own are counted one by one. Those in a line
// share their guard, so whatever started while it was open has bypassed all that
// had arrived before: the line keeps the greatest order numbers that did, and
// those not below r's are r's. (A request that comes in later has a greater
// number than all that have passed the line; one that kept its place counts as if
// it had been there.) Where all start that are compatible they are counted one by one,
// too: see Rules.AllCompatible.
func (k *Scheduler) bypasses(r *Request) int {
	n := int(r.bypassed)
	if l := k.lineAt(&k.queues[r.Op], r.Key); l != nil {
		for _, seq := range l.passed {
			if seq >= r.seq {
				n++
			}
		}
	}
	return n
}

// bypass books the start of r, which is about to happen, with all that have
// waited longer and could start as well; or, if it is not to count them yet, only asks
// who they are. Those that something running conflicts with count as open unless they
// are known to be false: a stream of functions must not starve an entry whose guard
// holds.
//
// It first asks and then counts, in one step of the scheduler. Counting evaluates nothing: the
// guards' answers still stand, and those of scoped operations, whose predicates would be
// asked again, have been noted in passes.
func (k *Scheduler) bypass(r *Request, count bool) {
	if k.counts() == 0 {
		return
	}
	if !count {
		clear(k.passes) // of a start that something has failed before
		k.passes = k.passes[:0]
	}
	for op := k.inside.Next(0); op >= 0; op = k.inside.Next(op + 1) {
		q := &k.queues[op]
		wall := k.barred(op)
		switch {
		case q.scoped:
			if !count {
				k.bypassEach(op, r)
			}
		case q.each:
			for w := q.inside.first; w != nil && w.seq < r.seq; {
				next := w.next
				if (wall && k.mayHold(w) || !wall && k.askRequest(w) && w.answer.falsePart == "") && count {
					k.overtake(w)
				}
				w = next
			}
		case q.members != nil:
			for n := q.lines.first(); n != nil; {
				l := n.line
				n = n.next()
				if l.oldest(q).seq < r.seq && k.lineOpen(q, l, wall) && count {
					k.pass(q, l, r.seq)
				}
			}
		default:
			if q.inside.first.seq < r.seq && (wall && k.notFalse(op) != nil || !wall && k.firstOpen(op) != nil) && count {
				k.pass(q, &q.line, r.seq)
			}
		}
	}
	if !count {
		return
	}
	for _, w := range k.passes {
		if k.mayHold(w) { // else the guard that it shares has been asked for another one
			k.overtake(w)
		}
	}
	clear(k.passes) // pin none
	k.passes = k.passes[:0]
	if k.rules.AllCompatible {
		k.overtakeOutside(r)
	}
}

// pass notes that the start of a request with the order number bypassed those in the line that
// have less.
func (k *Scheduler) pass(q *queue, l *line, seq uint64) {
	if k.rules.AllCompatible {
		k.overtakeLine(q, l, seq)
	} else {
		l.pass(seq, k.counts())
	}
}

// lineOpen reports whether a line of a family is open, or, if it must not be
// asked, not known to be closed.
func (k *Scheduler) lineOpen(q *queue, l *line, wall bool) bool {
	r := k.front(q, l)
	if wall {
		return k.mayHold(r)
	}
	falsePart, err := k.askLine(q, l, r)
	return falsePart == "" && err == nil
}

// pass notes that a start bypassed those in the line that arrived up to seq. Only
// the greatest bound numbers are kept: of those, as many are not below a
// request's own as have passed it, up to the bound.
func (l *line) pass(seq uint64, bound int) {
	seq = min(seq, l.latest)
	if len(l.passed) < bound {
		l.passed = append(l.passed, seq)
		return
	}
	least := 0
	for i, s := range l.passed {
		if s < l.passed[least] {
			least = i
		}
	}
	l.passed[least] = max(l.passed[least], seq)
}
