package mailbox

import "slices"

// What an operation declares to open: the guards of a family that it cannot have opened, if
// false, stay so (R2).

// opening is a declaration to be checked: op has ended, and says that it can open
// only certain keys of the family.
type opening struct{ op, family int }

// check asks the guards of families that are taken to be false because what ended
// cannot have opened them.
func (s *Scheduler) check() {
	for len(s.checks) > 0 {
		c := s.checks[0]
		q := &s.queues[c.family]
		if s.barred(q) {
			return
		}
		s.checks = s.checks[1:]
		for n := q.in.order.first(); n != nil; {
			l := n.v.line
			n = n.next()
			r := s.front(q, &q.in, l)
			if !s.closed(q, r) || l.result.stamp == s.stamp(q) {
				continue
			}
			if falsePart, err := s.object.AskRequest(r); err != nil || falsePart == "" {
				if err == nil {
					err = &UndeclaredError{Operation: s.rules.Operations[c.op].Name, Family: s.rules.Operations[c.family].Name, Key: l.key}
				}
				s.failLine(q, l, err)
			}
		}
	}
}

// disbelieve forgets what the guard of a line said of which no request is admitted, if
// declarations are checked: check asks the lines of those that are, and the guards of the others are
// asked in any case.
func (s *Scheduler) disbelieve(l *line) {
	if s.rules.Check && l.at[inQueue].members.root == nil {
		l.result.stamp = 0
		l.noted()
	}
}

// disbelieveOverflow is disbelieve for all lines of a family.
func (s *Scheduler) disbelieveOverflow(q *queue) {
	for n := q.out.order.first(); n != nil && s.rules.Check; n = n.next() {
		s.disbelieve(n.v.line)
	}
}

// AnyKey stands for all keys of a family: for a request of which it cannot be told
// any more which keys it can have opened.
var AnyKey any = new(int)

// outdate makes the answers old that are kept, but for the families of which the
// operation, which begins, declares what it opens.
func (s *Scheduler) outdate(op int) {
	o := &s.rules.Operations[op]
	for _, family := range s.kept {
		if !slices.Contains(o.Opens, family) {
			s.queues[family].fresh = s.version
		}
		s.disbelieveOverflow(&s.queues[family])
	}
}

// opened makes the answers old that are kept, but for those about keys that the
// operation, which has ended, has not opened, as far as it declares that.
func (s *Scheduler) opened(op int, opens Opener) {
	o := &s.rules.Operations[op]
	for _, family := range s.kept { // all of them, in case opens does not return
		q := &s.queues[family]
		q.stands, q.fresh = q.fresh, s.version
	}
	for _, family := range s.kept {
		q := &s.queues[family]
		if opens == nil || !slices.Contains(o.Opens, family) {
			continue
		}
		opens(family, func(key any) {
			if key == AnyKey {
				q.stands = s.version
			} else if l := q.members[key]; l != nil {
				l.result.stamp = 0
				l.noted()
			}
		})
		q.fresh = q.stands
		s.disbelieveOverflow(q)
		if s.rules.Check {
			s.checks = append(s.checks, opening{op, family})
		}
	}
}

// opener returns what says which keys r can have opened, or nil.
func (s *Scheduler) opener(r *Request) Opener {
	if len(s.kept) == 0 || len(s.rules.Operations[r.Op].Opens) == 0 {
		return nil
	}
	return func(family int, open func(any)) { s.object.(KeyOpener).Opens(r, family, open) }
}
