package conflicttest

import (
	"runtime"
	"sync"
	"sync/atomic"

	"pgregory.net/rapid"
)

// repeated is how often a trial is made at once, each way.
const repeated = 25

// parallel checks a pair that runs at once. Every trial is first told to begin.
//
// It does so on one processor first, where one body runs after the other, most of the
// time: nothing orders the two all the same, so the detector finds what it would find
// else, but a body finds no state in which another has stopped in the middle. So a race
// is found, and made small, that would otherwise end the process: the runtime does not
// survive two writers of a map.
func (c *checker[T]) parallel(p pair, begin func([]line), raced func() string) (found *finding, err error) {
	name := c.name + "/" + c.both(p) + " at once"
	if detecting {
		was := runtime.GOMAXPROCS(1)
		found, err = falsify(name, func(t *rapid.T) *finding { return c.tried(t, p, 1, begin, raced) })
		runtime.GOMAXPROCS(was)
	}
	if found == nil && err == nil {
		found, err = falsify(name, func(t *rapid.T) *finding { return c.tried(t, p, repeated, begin, raced) })
	}
	return found, err
}

// tried makes a trial at once several times.
func (c *checker[T]) tried(t *rapid.T, p pair, times int, begin func([]line), raced func() string) *finding {
	trial, ok := c.trial(t, p)
	if !ok {
		return nil
	}
	begin(trial.shown())
	orders := [2]outcome{trial.inOrder(0, true), trial.inOrder(1, true)}
	for range times {
		for first := range p {
			before := races()
			o, ok := trial.atOnce(first)
			switch {
			case races() > before:
				return trial.finding(p, "beside each other they race", line{"detector", raced()})
			case ok && o != orders[0] && o != orders[1]:
				return trial.finding(p, "run at once they equal neither order", append(trial.orders(p, orders), line{"at once", trial.text(o)})...)
			}
		}
	}
	return nil
}

// atOnce runs the two requests as an object would: the first has been admitted, and while
// its body runs the guard of the second is evaluated and, if it holds, that one runs too. It
// reports false if the first cannot start.
func (t *trial[T]) atOnce(first int) (o outcome, ok bool) {
	s := t.make()
	if !t.requests[first].open(s) {
		return o, false
	}
	var (
		answers [2]answer
		entered bool
		ready   atomic.Int32   // what follows it is in no order
		still   [2]atomic.Bool // which have ended, or are suspended
		both    sync.WaitGroup
		second  = 1 - first
	)
	start := func(i int, body func()) {
		both.Go(func() {
			ready.Add(1)
			for ready.Load() < 2 {
				runtime.Gosched()
			}
			defer still[i].Store(true)
			body()
		})
	}
	meanwhile := func(i int) func() {
		return func() { // the other one runs, until it ends or is suspended, too
			for still[i].Store(true); !still[1-i].Load(); {
				runtime.Gosched()
			}
			still[i].Store(false)
		}
	}
	start(first, func() { t.requests[first].body(s, &answers[first], meanwhile(first)) })
	start(second, func() {
		if entered = t.requests[second].open(s); entered {
			t.requests[second].body(s, &answers[second], meanwhile(second))
		}
	})
	both.Wait()
	o.results[first], o.results[second] = answers[first].String(), waits
	if entered {
		o.results[second] = answers[second].String()
	} else if t.requests[second].open(s) {
		o.results[second] = t.requests[second].run(s)
	}
	o.state = t.fingerprint(s)
	return o, true
}
