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
			if f := trial.erases(p, i); f != nil {
				return f
			}
		}
		if !c.commutes() {
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

// undone checks that what undoes an operation brings back the state that was before; that a body which is
// not undone, as it has returned an error, has changed nothing; and that the copy of a state is one.
func (c *checker[T]) undone(i int) (*finding, error) {
	op := c.operations[i]
	if op.Undo == nil && op.Save == nil {
		return nil, nil
	}
	return falsify(c.name+"/"+op.Name+" undone", func(t *rapid.T) *finding {
		s := c.states(t)()
		r := c.request(t, i)
		if !r.open(s) {
			return nil
		}
		before := c.fingerprint(s)
		wrong := func(problem, result string) *finding {
			return &finding{fmt.Sprintf("type %s: %s", c.typ.Name(), problem), []line{
				{"state", flat(before)}, {"request", r.String() + ": " + result}, {"afterwards", flat(c.fingerprint(s))},
			}}
		}
		var restore func()
		if op.Undo == nil {
			restore = op.Save(s)
		}
		a := r.answer(s, nil)
		result := a.String()
		switch {
		case restore != nil:
			if restore(); c.fingerprint(s) != before {
				return wrong("the copy of a state is changed by "+op.Name+", with which it shares something", result)
			}
		case op.Function || !a.returned:
		case a.err != nil:
			if c.fingerprint(s) != before {
				return wrong(op.Name+" returns an error, so that it is not undone, and has changed the state", result)
			}
		default:
			if problem := r.undo(s, a); problem != "" {
				return wrong("the Undo of "+op.Name+" "+problem, result)
			}
			if c.fingerprint(s) != before {
				return wrong("the Undo of "+op.Name+" does not bring back the state", result)
			}
		}
		return nil
	})
}

// commutes reports whether it is to be checked that compatible operations commute.
func (c *checker[T]) commutes() bool {
	return c.commuting || len(c.operations) > 0 && c.operations[0].Commutes
}

// erases looks for a request whose undoing takes back something of the other one, which has run meanwhile: the
// two, and then what undoes the first, have to equal the other alone.
func (t *trial[T]) erases(p pair, i int) *finding {
	first, other := t.requests[i], t.requests[1-i]
	if first.op.Undo == nil || !t.commutes() {
		return nil
	}
	alone, s := t.make(), t.make()
	if !other.open(alone) || !first.open(s) {
		return nil
	}
	expected := other.run(alone)
	a := first.answer(s, nil)
	if !a.returned || a.err != nil || !other.open(s) {
		return nil
	}
	result := other.run(s)
	problem := first.undo(s, a)
	if problem == "" && result == expected && t.fingerprint(s) == t.fingerprint(alone) {
		return nil
	}
	if problem == "" {
		problem = "done"
	}
	return t.finding(p, fmt.Sprintf("%s undone after %s does not leave %s alone", first.op.Name, other.op.Name, other.op.Name),
		line{"alone", fmt.Sprintf("%s: %s; then the state is %s", other, expected, flat(t.fingerprint(alone)))},
		line{"undone", fmt.Sprintf("%s, then %s: %s, then undone: %s; then the state is %s", first, other, result, problem, flat(t.fingerprint(s)))})
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
