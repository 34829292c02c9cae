package activeobject

import (
	"sync"
	"time"

	"github.com/sluice-go/sluice/internal/engine"
)

// Clock lets guards depend on time. Embed it in the state; New connects it. A guard calls Reached,
// and is declared by WhenTime:
//
//	// limiter lets one request pass in each interval.
//	type limiter struct {
//		activeobject.Clock
//		interval time.Duration
//		next     time.Time
//	}
//
//	func (l *limiter) ready() bool { return l.Reached(l.next) }
//	func (l *limiter) take()       { l.next = l.Now().Add(l.interval) }
//
// When a time comes for which a guard has called Reached, the guards of the object are evaluated
// again: there is one timer for each Clock. Then requests of one operation start in order of arrival,
// those of several operations in the order in which their guards are evaluated. A guard that calls
// Reached and looks at the argument is made by guards.Of, with guards.AtArgument|guards.AtTime. A
// guard that is made otherwise may be evaluated too late. Until New has connected it the
// Clock only tells the time, so that the state can be tested as plain Go. In a testing/synctest
// bubble it is the bubble's time.
type Clock struct{ alarm *alarm }

// Now returns the time.
func (c *Clock) Now() time.Time { return time.Now() }

// Reached reports whether the time t has come. If it has not, the guards of the object are evaluated
// when it does.
func (c *Clock) Reached(t time.Time) bool {
	now := time.Now()
	if !now.Before(t) {
		return true
	}
	if c.alarm != nil {
		c.alarm.set(t, t.Sub(now))
	}
	return false
}

// bindClock gives the embedded Clock of the state its object.
func (c *Clock) bindClock(box *engine.Mailbox) { c.alarm = &alarm{box: box} }

// stopClock stops the timer, so that it does not keep an object that has ended or has got another
// state.
func (c *Clock) stopClock() {
	if a := c.alarm; a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.timer != nil {
			a.timer.Stop()
		}
	}
}

// alarm has the guards of an object evaluated at a time.
//
// No time is missed. A guard that finds a time to come sets the alarm before it has been found
// false. A request that waits has had its guard evaluated with the mutex of the scheduler held (see
// request.arrive), which the alarm takes when it goes off: either its guard is evaluated again then, or
// it was evaluated after that, when the time had come. A guard that is still false (it waits for a later
// time, or the clock has been set back) sets the alarm anew. An alarm that has gone off and has yet to say
// so, while it is set for another time, goes off for that, too.
type alarm struct {
	box *engine.Mailbox

	mu    sync.Mutex
	due   time.Time // of the timer; zero if that does not run
	timer *time.Timer
}

// set has the alarm go off at t, after d, or earlier if it is set for that.
func (a *alarm) set(t time.Time, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.due.IsZero() && !t.Before(a.due) {
		return
	}
	a.due = t
	if a.timer == nil {
		a.timer = time.AfterFunc(d, a.ring)
	} else {
		a.timer.Reset(d)
	}
}

func (a *alarm) ring() {
	a.mu.Lock()
	a.due = time.Time{}
	a.mu.Unlock()
	a.box.Lapse()
}
