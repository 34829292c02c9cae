package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Pattern is how requests arrive.
type Pattern string

// The patterns. Callers that are late, as they still waited, call at once; the
// latency of a request counts from when it was due.
const (
	Closed  Pattern = "closed"  // each caller makes the next request when it has its answer
	Even    Pattern = "even"    // at equal distances, the callers in turn
	Bursts  Pattern = "bursts"  // all callers at the same time, at equal distances
	Poisson Pattern = "poisson" // at random, independently of each other
)

var patterns = []Pattern{Closed, Even, Bursts, Poisson}

// Arrival says when requests arrive.
type Arrival struct {
	Pattern Pattern // none is Closed
	Rate    float64 // requests per second of all callers together; 0 if Closed
}

// String says when requests arrive.
func (a Arrival) String() string {
	if a.Rate == 0 {
		return "each as soon as the one before is answered"
	}
	return fmt.Sprintf("%s, %g per second", a.Pattern, a.Rate)
}

// Clock tells one caller when its requests are due.
type Clock struct {
	arrival Arrival
	period  time.Duration // between the requests of this caller
	due     time.Time
	chance  *rand.Rand
}

// Clock returns the clock of one of so many callers, which starts at the given time.
// It is nil if nothing is ever due before the caller is ready.
func (a Arrival) Clock(caller, callers int, start time.Time) *Clock {
	if a.Rate == 0 {
		return nil
	}
	c := &Clock{arrival: a, due: start, chance: rand.New(rand.NewPCG(2, uint64(caller)))}
	c.period = time.Duration(float64(callers) / a.Rate * float64(time.Second))
	if a.Pattern == Even {
		c.due = start.Add(c.period * time.Duration(caller) / time.Duration(callers))
	}
	if a.Pattern == Poisson {
		c.next()
	}
	return c
}

// Wait waits until the next request is due, and returns when that was. It is false
// if the context ends first.
func (c *Clock) Wait(ctx context.Context) (time.Time, bool) {
	due := c.due
	if early := time.Until(due); early > 0 {
		t := time.NewTimer(early)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return due, false
		}
	}
	c.next()
	return due, ctx.Err() == nil
}

func (c *Clock) next() {
	step := c.period
	if c.arrival.Pattern == Poisson {
		step = time.Duration(c.chance.ExpFloat64() * float64(c.period))
	}
	c.due = c.due.Add(step)
}
