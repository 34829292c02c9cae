package kernel

import "fmt"

// opening is a declaration to be checked: op has ended, and says that it can open
// only certain keys of the family.
type opening struct{ op, family int }

// UndeclaredError says that an operation has opened a key of a family that, by
// its declaration, it cannot open. Without the check the requests that wait for
// that key would go on waiting.
type UndeclaredError struct {
	Operation string // that opened it
	Family    string
	Key       any
}

// Error implements error.
func (e *UndeclaredError) Error() string {
	return fmt.Sprintf("%s opened key %v of %s, which it does not declare that it can open", e.Operation, e.Key, e.Family)
}

// check asks the guards of families that are taken to be false because what ended
// cannot have opened them.
func (k *Kernel) check() {
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
