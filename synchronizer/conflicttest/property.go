package conflicttest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject/objecttest"
)

// alone checks an operation by itself: that its guard, and a function's body, change
// nothing, and that everything here is the same if it is done again, without which there
// is nothing to compare.
func (c *checker[T]) alone(i int) (*finding, error) {
	ran := false
	op := c.operations[i]
	found, err := falsify(c.name+"/"+op.Name, func(t *rapid.T) *finding {
		make := c.states(t)
		r := c.request(t, i)
		state, s := make(), make()
		before, arg := c.fingerprint(state), objecttest.Dump(r.arg)
		wrong := func(problem string, more ...line) *finding {
			return &finding{fmt.Sprintf("type %s: %s", c.typ.Name(), problem),
				append([]line{{"state", flat(before)}, {"request", r.String()}}, more...)}
		}
		if other := c.fingerprint(s); other != before {
			return wrong("the states that a generated function makes differ: they share something, or Fingerprint should leave something out",
				line{"another", flat(other)})
		}
		open := r.open(s)
		switch after := c.fingerprint(s); {
		case after != before:
			return wrong(r.guard()+" changes the state", line{"afterwards", flat(after)})
		case r.open(s) != open:
			return wrong(r.guard() + " says yes and no of the same state")
		case !open:
			return nil
		}
		ran = true
		result := r.run(s)
		after := c.fingerprint(s)
		switch {
		case op.Function && after != before:
			return wrong("function "+op.Name+" changes the state", line{"afterwards", flat(after)})
		case objecttest.Dump(r.arg) != arg:
			return wrong(op.Name+" changes what its argument leads to: here it is used several times", line{"it was", flat(arg)})
		}
		again := r.run(state)
		if afterwards := c.fingerprint(state); again != result || afterwards != after {
			return wrong("the outcome of "+op.Name+" is not always the same for equal states",
				line{"once", result + "; then the state is " + flat(after)}, line{"then", again + "; then the state is " + flat(afterwards)})
		}
		return nil
	})
	if found == nil && err == nil && !ran && !op.Guard.Looks().Lapses() {
		err = fmt.Errorf("conflicttest: %s: guard %q of %s holds in none of the generated states: nothing of it has been checked", c.name, op.Guard.Name(), op.Name)
	}
	return found, err
}

// inTurn checks of a pair what shows if one runs after the other.
func (c *checker[T]) inTurn(p pair) (*finding, error) {
	made := false
	found, err := falsify(c.name+"/"+c.both(p)+" in turn", func(t *rapid.T) *finding {
		trial, ok := c.trial(t, p)
		if !ok {
			return nil
		}
		made = true
		for i := range p {
			if f := trial.closes(p, i); f != nil {
				return f
			}
		}
		if !c.commuting {
			return nil
		}
		orders := [2]outcome{trial.inOrder(0, false), trial.inOrder(1, false)}
		if orders[0] != orders[1] && (orders[0].ran() || orders[1].ran()) {
			return trial.finding(p, "do not commute", trial.orders(p, orders)...)
		}
		return nil
	})
	if found == nil && err == nil && !made {
		err = fmt.Errorf("conflicttest: %s: requests of %s conflict for all of the generated arguments: nothing of the pair has been checked", c.name, c.both(p))
	}
	return found, err
}

// closes looks for a request that was admitted by its guard, and whose guard does not hold
// any more when its body begins: the other one, also admitted, has run meanwhile.
func (t *trial[T]) closes(p pair, i int) *finding {
	s := t.make()
	waiter, other := t.requests[i], t.requests[1-i]
	if waiter.op.Guard.IsZero() || !waiter.open(s) || !other.open(s) {
		return nil
	}
	result := other.run(s)
	if waiter.open(s) {
		return nil
	}
	return t.finding(p, fmt.Sprintf("%s closes %s behind the check", other.op.Name, waiter.guard()),
		line{"checked", fmt.Sprintf("%s: the guard holds, so it starts", waiter)},
		line{"meanwhile", fmt.Sprintf("%s: %s; then the state is %s", other, result, flat(t.fingerprint(s)))},
		line{"then", fmt.Sprintf("%s: %s, though the guard is false; then the state is %s", waiter, waiter.run(s), flat(t.fingerprint(s)))})
}
