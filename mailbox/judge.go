package mailbox

// knowledge says what may be found out for a verdict.
type knowledge uint8

const (
	// evaluate: guards and predicates are evaluated if their results are not known.
	evaluate knowledge = iota
	// recall: nothing is evaluated. A guard holds unless it is known to be false; of predicates
	// it is known with which request the last conflict was found.
	recall
	// certain is recall, and predicates are taken to find no conflict.
	certain
)

// verdict says what stands between a request and its start, but for others that wait.
type verdict struct {
	conflict bool // something runs that the request conflicts with, or the object is held (R1, R8)
	closed   bool // its guard is false (R2)
}

// ready reports whether nothing but order stands between the request and its start.
func (v verdict) ready() bool { return !v.conflict && !v.closed }

// judge is the one rule for what stands between a line and its start, for r, which goes first
// in it. A guard is evaluated only if nothing that runs conflicts with r. A line that is not
// closed stands before others, also if it conflicts with what runs (R4). If a guard or a
// predicate fails, r may have failed.
func (s *Scheduler) judge(q *queue, r *Request, how knowledge) verdict {
	if s.blocked(q, r, how) {
		return verdict{conflict: true, closed: s.closed(q, r)}
	}
	return verdict{closed: !s.holds(q, r, how)}
}

// ahead calls yield with requests that wait, come before r, conflict with it and are not
// closed, and with the head of its line, until it returns false (R4, R5). This is walk for one
// request; it asks for no more than it needs. If it must not evaluate, and nothing can start
// though nothing is sure to come first, a policy that is not asked says so; then yield is called
// with one that perhaps comes first. If a request fails meanwhile by which nothing is certain any
// more, ahead reports false.
func (s *Scheduler) ahead(r *Request, how knowledge, yield func(first *Request, sure bool) (more bool)) bool {
	if s.nested(r) {
		return true // R10
	}
	var perhaps *Request
	all, known, more := s.rules.AllCompatible, false, true
	consider := func(w *Request) bool {
		switch {
		case w == r:
		case s.before(w, r, how):
			known, more = true, yield(w, true)
			return false
		default:
			perhaps = w
		}
		return true
	}
	own := &s.queues[r.Op]
	for op := s.admitted.Next(0); op >= 0 && more; op = s.admitted.Next(op + 1) {
		q, failed := &s.queues[op], s.failed.last
		switch {
		case !own.near.Has(op) || all && q.due == 0:
		case q.scoped:
			s.visit(q, func(w *Request) bool {
				if w != r && (how != evaluate || s.before(w, r, how)) && s.conflict(r, w, how) && s.failed.last == failed && !s.judge(q, w, how).closed && s.failed.last == failed {
					consider(w)
				}
				return more && s.failed.last == failed
			})
			if s.failed.last != failed {
				return !more
			}
		case all && !s.anyBefore(q, r):
		default:
			// Of a request that is not admitted it is asked whether it passes the first.
			h := s.candidates(s.heads[:0], q, how, all || how != evaluate)
			s.heads = h
			if all && s.failed.last != failed {
				return false
			}
			for _, c := range h {
				if !consider(c.r) {
					break
				}
			}
			clear(h) // pin none
		}
	}
	if more && s.entering.n > 0 {
		by := r
		if how != evaluate && !all && r.state == StateAdmitted && !own.scoped && !s.behindEntering(r, how) {
			if first := s.first(own, &own.in, how); first != nil {
				by = first // r waits with the first of its line, which may be behind others
			}
		}
		s.enteringAhead(by, how, func(w *Request) bool {
			known, more = true, yield(w, true)
			return more
		})
	}
	if more && own.headed && own.in.first != nil {
		if head := s.front(own, &own.in, &own.line); head != r {
			known, more = true, yield(head, true)
		}
	}
	if !known && perhaps != nil && how != evaluate && !all && s.settled == s.step {
		yield(perhaps, false)
	}
	return true
}

// before reports whether w, which waits and conflicts with r, comes before it (R4, R6).
func (s *Scheduler) before(w, r *Request, how knowledge) bool {
	switch {
	case s.rules.AllCompatible:
		return s.atBound(w) && (!s.atBound(r) || w.seq < r.seq)
	case w.state == StateEntry:
		return w.seq < r.came
	case how == evaluate:
		// r is not admitted, and so comes after w, unless it has kept an older place.
		return r.came != 0 || w.seq < r.seq || s.due(w)
	case r.state != StateAdmitted && w.came <= r.came:
		return true
	}
	return s.guess(candidate{r: w, due: s.due(w)}, candidate{r: r, due: s.due(r)}) < 0
}

// anyBefore reports whether one of the operation's admitted requests comes before r.
func (s *Scheduler) anyBefore(q *queue, r *Request) bool {
	for w := q.in.first; w != nil; w = w.next {
		if s.before(w, r, recall) {
			return true
		}
	}
	return false
}

// enteringAhead calls yield with the requests in the entry queue that come before r and conflict with
// it, until it returns false. Their guards have not been evaluated; but one over the state alone
// is as false for them as for those admitted. (One over waiting counts may open when they are.)
// Of an object without scopes one stands for all of its operation.
func (s *Scheduler) enteringAhead(r *Request, how knowledge, yield func(w *Request) (more bool)) {
	all := s.rules.AllCompatible
	row := s.queues[r.Op].near
	for op := s.entering.Next(0); op >= 0; op = s.entering.Next(op + 1) {
		q := &s.queues[op]
		w := q.entry.first
		if !row.Has(op) || all && q.dueEntering == 0 || !all && w.seq >= r.came || q.closedEntering(s) {
			continue
		}
		for ; w != nil && (all || w.seq < r.came); w = w.next {
			if w == r || !s.before(w, r, how) || !s.conflict(r, w, how) {
				continue
			}
			if !yield(w) {
				return
			}
			if s.index == nil && !all {
				break
			}
		}
	}
}

// behindEntering reports whether there is such a request.
func (s *Scheduler) behindEntering(r *Request, how knowledge) (behind bool) {
	if s.entering.n > 0 {
		s.enteringAhead(r, how, func(*Request) bool { behind = true; return false })
	}
	return behind
}

// closedEntering reports whether the guard of those in the entry queue is known to be false.
func (q *queue) closedEntering(s *Scheduler) bool {
	return q.shared && !q.counts && q.result.falsePart != "" && q.result.stamp == s.version
}
