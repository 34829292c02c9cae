package conflicttest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/internal/engine"
)

// request is an operation with an argument, which runs on a state without an object.
type request[T any] struct {
	op  activeobject.Declaration[T]
	arg any
}

func (c *checker[T]) request(t *rapid.T, i int) request[T] {
	op := c.operations[i]
	return request[T]{op, c.arguments[op.Name].draw(t)}
}

func (r request[T]) String() string {
	if _, none := r.arg.(activeobject.None); none {
		return r.op.Name + "()"
	}
	return fmt.Sprintf("%s(%#v)", r.op.Name, r.arg)
}

// open reports whether the guard holds.
func (r request[T]) open(s *T) bool { return r.op.Guard.Ask(s, r.arg) == "" }

// guard names the guard.
func (r request[T]) guard() string {
	return fmt.Sprintf("guard %q of %s", r.op.Guard.Name(), r.op.Name)
}

// waits is the outcome of a request that cannot start.
const waits = "waits"

// answer is what a body has come to. The zero one is that of a body that has ended its
// goroutine.
type answer struct {
	returned bool
	until    string // what it waits for, if it has suspended and does not go on
	value    any
	err      error
	panicked any
}

// body runs it on a goroutine of the caller's, which it may end. Whenever the body suspends, meanwhile is called, if it is not nil;
// if what the body waits for has not come then, it does not go on.
func (r request[T]) body(s *T, a *answer, meanwhile func()) {
	ctx := engine.WithStage(context.Background(), func(name string, holds func() bool) bool {
		if meanwhile != nil {
			meanwhile()
		}
		if !holds() {
			a.until = name
		}
		return a.until == ""
	})
	defer func() {
		if !a.returned {
			a.panicked = engine.Panicked(recover())
		}
	}()
	a.value, a.err = r.op.Body(s, ctx, r.arg)
	a.returned = true
}

// run runs the body, whatever it does, and describes its result.
func (r request[T]) run(s *T) string {
	a := r.answer(s, nil)
	return a.String()
}

// answer runs the body, whatever it does, and meanwhile when it suspends, if that is not nil.
func (r request[T]) answer(s *T, meanwhile func()) (a answer) {
	var done sync.WaitGroup
	done.Go(func() { r.body(s, &a, meanwhile) })
	done.Wait()
	return a
}

// undo undoes what the body has done that has come to the answer, and reports what that comes to, if it fails.
func (r request[T]) undo(s *T, a answer) (problem string) {
	var done sync.WaitGroup
	done.Go(func() {
		returned := false
		defer func() {
			if !returned {
				problem = fmt.Sprintf("panicked: %v", engine.Panicked(recover()))
			}
		}()
		r.op.Undo(s, r.arg, a.value)
		returned = true
	})
	done.Wait()
	return problem
}

// String describes the result. It looks at what that leads to, which may be a part of
// the state: so nothing must run.
func (a *answer) String() string {
	switch {
	case a.panicked != nil:
		return fmt.Sprintf("panicked: %v", a.panicked)
	case a.until != "":
		return fmt.Sprintf("suspended until %q", a.until)
	case !a.returned:
		return "ended its goroutine"
	case a.err != nil:
		return fmt.Sprintf("error %q", a.err)
	}
	if _, none := a.value.(activeobject.None); none {
		return "done"
	}
	return flat(objecttest.Dump(a.value))
}

// flat writes a dump on one line.
func flat(dump string) string {
	return strings.TrimPrefix(strings.ReplaceAll(dump, "\n", ", "), ". = ")
}

// outcome is what two requests have come to.
type outcome struct {
	results [2]string // by the position in the pair
	state   string
}

func (o outcome) ran() bool { return o.results[0] != waits && o.results[1] != waits }

// trial is a generated state and two requests.
type trial[T any] struct {
	*checker[T]
	make     func() *T
	requests [2]request[T]
}

// trial makes one of a pair. It reports false if the requests conflict, by their arguments.
func (c *checker[T]) trial(t *rapid.T, p pair) (*trial[T], bool) {
	a, b := c.request(t, p[0]), c.request(t, p[1])
	return &trial[T]{c, c.states(t), [2]request[T]{a, b}}, !c.table.Clash(p[0], a.arg, p[1], b.arg)
}

// inOrder runs one request of the two, and then the other. If patient, a request whose guard is
// false is tried again after the other. While the first is suspended the other one runs.
func (t *trial[T]) inOrder(first int, patient bool) outcome {
	s := t.make()
	o := outcome{results: [2]string{waits, waits}}
	turns := []int{first, 1 - first}
	if patient {
		turns = append(turns, first)
	}
	running := [2]bool{}
	var run func(i int)
	run = func(i int) {
		if !running[i] && o.results[i] == waits && t.requests[i].open(s) {
			running[i] = true
			a := t.requests[i].answer(s, func() { run(1 - i) })
			o.results[i] = a.String()
		}
	}
	for _, i := range turns {
		run(i)
	}
	o.state = t.fingerprint(s)
	return o
}
