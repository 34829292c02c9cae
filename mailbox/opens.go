package mailbox

import (
	"slices"
)

// opening is a declaration to be checked: op has ended, and says that it can open
// only certain keys of the family.
type opening struct{ op, family int }

// check asks the guards of families that are taken to be false because what ended
// cannot have opened them.
func (k *Scheduler) check() {
	for len(k.checks) > 0 {
		c := k.checks[0]
		if k.barred(c.family) {
			return
		}
		k.checks = k.checks[1:]
		q := &k.queues[c.family]
		for n := q.lines.first(); n != nil; {
			l := n.line
			n = n.next()
			r := k.front(q, l)
			if a := &l.answer; !k.current(c.family, a) || a.falsePart == "" || a.stamp == k.stamp(c.family) {
				continue
			}
			if falsePart, err := k.object.AskRequest(r); err != nil || falsePart == "" {
				if err == nil {
					err = &UndeclaredError{Operation: k.rules.Operations[c.op].Name, Family: k.rules.Operations[c.family].Name, Key: l.key}
				}
				k.failLine(q, l, err)
			}
		}
	}
}

// disbelieve forgets what the guard of a line at the door has answered, if declarations
// are checked: check asks the lines inside, and these are asked in any case.
func (k *Scheduler) disbelieve(l *line) {
	if k.rules.Check {
		l.answer.stamp = 0
		l.noted()
	}
}

// disbelieveAtDoor is disbelieve for the lines of a family that wait at the door only.
func (k *Scheduler) disbelieveAtDoor(q *queue) {
	if !k.rules.Check {
		return
	}
	for n := q.door.lines.first(); n != nil; n = n.next() {
		if n.line.tree.root == nil {
			k.disbelieve(n.line)
		}
	}
}

// AnyKey stands for all keys of a family: for a request of which nobody can tell
// any more which keys it can have opened.
var AnyKey any = new(int)

// outdate makes the answers old that are kept, but for the families of which the
// operation, which begins, declares what it opens.
func (k *Scheduler) outdate(op int) {
	o := &k.rules.Operations[op]
	for _, family := range k.kept {
		if !slices.Contains(o.Opens, family) {
			k.queues[family].fresh = k.version
		}
		k.disbelieveAtDoor(&k.queues[family])
	}
}

// opened makes the answers old that are kept, but for those about keys that the
// operation, which has ended, has not opened, as far as it declares that.
func (k *Scheduler) opened(op int, opens Opener) {
	o := &k.rules.Operations[op]
	for _, family := range k.kept { // all of them, in case opens does not return
		q := &k.queues[family]
		q.stands, q.fresh = q.fresh, k.version
	}
	for _, family := range k.kept {
		q := &k.queues[family]
		if opens == nil || !slices.Contains(o.Opens, family) {
			continue
		}
		opens(family, func(key any) {
			if key == AnyKey {
				q.stands = k.version
			} else if l := q.members[key]; l != nil {
				l.answer.stamp = 0
				l.noted()
			}
		})
		q.fresh = q.stands
		k.disbelieveAtDoor(q)
		if k.rules.Check {
			k.checks = append(k.checks, opening{op, family})
		}
	}
}

// opener returns what says which keys r can have opened, or nil.
func (k *Scheduler) opener(r *Request) Opener {
	if len(k.kept) == 0 || len(k.rules.Operations[r.Op].Opens) == 0 {
		return nil
	}
	return func(family int, open func(any)) { k.object.(KeyOpener).Opens(r, family, open) }
}
