package soak_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

type futureOf = activeobject.Future[uint32]

// derives makes some requests, and has futures follow from theirs. Each request is
// accounted for like any other; and each future that follows has one outcome, which is
// what the functions make of those of the requests.
func (c *client) derives() {
	var sites []*site
	var ids []uint32
	var ops []int
	var orders []order
	for range 1 + c.rng.IntN(3) {
		s, op := c.site(), c.rng.IntN(rig)
		o := c.order(s, op, send)
		sites, ops, orders, ids = append(sites, s), append(ops, op), append(orders, o), append(ids, o.id)
	}
	sent := false
	defer func() {
		if !sent { // this goroutine ends
			for _, id := range ids {
				c.ledger.end(id, 0, errEnded)
			}
		}
	}()
	futures := make([]futureOf, len(ids))
	for i, s := range sites {
		futures[i] = s.send(c.ctx(), ops[i], orders[i])
	}
	sent = true
	withdraw := c.rng.IntN(4) == 0
	check := c.derive(futures)
	c.later = append(c.later, func(c *client) {
		if withdraw {
			futures[0].Withdraw()
		}
		check(c, sites[0].host)
		for i, f := range futures {
			result, err := f.Await(background)
			c.ledger.end(ids[i], result, err)
		}
	})
	if c.rng.IntN(2) == 0 {
		c.wait()
	}
}

// derive makes a future of the given ones, and returns what waits for it and finds out
// whether it is as it should be.
func (c *client) derive(futures []futureOf) (check func(*client, *host)) {
	switch c.rng.IntN(5) {
	case 0:
		f, wrong := c.then(futures[0])
		return checked(f, func(uint32, error) string { return wrong() })
	case 1:
		f := actor.All(futures...)
		return checked(f, func(results []uint32, err error) string { return wrongAll(futures, results, err) })
	case 2:
		f := actor.First(futures...)
		return checked(f, func(result uint32, err error) string { return wrongFirst(futures, result, err) })
	case 3: // one after another
		f, wrong := c.then(futures[0])
		g, also := c.then(f)
		h := g.OnDone(func(uint32, error) {})
		return checked(h, func(result uint32, err error) string {
			if r, e := g.Await(background); r != result || e != err {
				return "OnDone has another outcome"
			}
			return wrong() + also()
		})
	default: // the first of those that follow
		var some []futureOf
		var wrongs []func() string
		for _, f := range futures {
			g, wrong := c.then(f)
			some, wrongs = append(some, g), append(wrongs, wrong)
		}
		f := actor.First(some...)
		return checked(f, func(result uint32, err error) (wrong string) {
			wrong = wrongFirst(some, result, err)
			for _, also := range wrongs {
				wrong += also()
			}
			return wrong
		})
	}
}

// checked waits for the future, and says what is wrong with it.
func checked[R any](f activeobject.Future[R], wrong func(R, error) string) func(*client, *host) {
	return func(c *client, h *host) {
		result, err := f.Await(background)
		if w := wrong(result, err); w != "" {
			c.ledger.fault([]*host{h}, "a future that follows from others ends with %v, %v: %s", result, err, w)
		}
		if again, same := f.Await(background); same != err {
			c.ledger.fault([]*host{h}, "a future ends with %v, %v and then with %v, %v", result, err, again, same)
		}
		c.ledger.derived.Add(1)
	}
}

// then makes a future that follows from f, by a function that may fail.
func (c *client) then(f futureOf) (g futureOf, wrong func() string) {
	how := plan(c.rng.IntN(int(exits) + 1))
	var calls atomic.Int32
	var making atomic.Bool // so that it may be this goroutine, which has more to do
	making.Store(true)
	var exited atomic.Bool
	g = actor.Then(f, func(result uint32, err error) (uint32, error) {
		calls.Add(1)
		switch how {
		case declines:
			return result, errDeclined
		case panics:
			panic(bang{result})
		case exits:
			if !making.Load() {
				exited.Store(true)
				runtime.Goexit()
			}
		}
		return result, err
	})
	making.Store(false)
	return g, func() string {
		result, err := g.Await(background)
		r, e := f.Await(background)
		failed, fails := err.(*actor.ContinuationError)
		switch {
		case calls.Load() != 1:
			return "a continuation has not run once"
		case how == panics && (!fails || failed.Value != bang{r}):
			return "a panic is missing"
		case how == declines && (result != r || err != errDeclined):
			return "it is not what the continuation has returned"
		case exited.Load() && (!fails || failed.Value != nil):
			return "an exit is missing"
		case (how == succeeds || how == exits && !exited.Load()) && (result != r || err != e):
			return "it is not what it follows from"
		}
		return ""
	}
}

func wrongAll(futures []futureOf, results []uint32, err error) string {
	failed := false
	for i, f := range futures {
		if !f.Ready() {
			return "one has not ended"
		}
		switch r, e := f.Await(background); {
		case e == nil && results[i] != r:
			return "a result is another one's"
		case e != nil && !errors.Is(err, e):
			return "an error is missing"
		default:
			failed = failed || e != nil
		}
	}
	if !failed && err != nil {
		return "none has failed"
	}
	return ""
}

func wrongFirst(futures []futureOf, result uint32, err error) string {
	ended, cancel := context.WithCancel(background)
	cancel()
	for _, f := range futures {
		r, e := f.Await(ended)
		switch {
		case !f.Ready():
			if err != nil {
				return "one may still succeed"
			}
		case err == nil && e == nil && r == result:
			return ""
		case err != nil && e == nil:
			return "one has succeeded"
		case err != nil && !errors.Is(err, e):
			return "an error is missing"
		}
	}
	if err == nil {
		return "it is nobody's result"
	}
	return ""
}
