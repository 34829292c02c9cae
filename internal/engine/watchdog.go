package engine

import (
	"time"

	"github.com/sluice-go/sluice/mailbox"
)

// The watchdog looks for requests that wait too long, and for bodies that run too long. A timer
// goes off when the next of the waiting requests is due, or after Patience, whichever is first.
// So a request that arrives meanwhile is looked at in time, and need not set the timer. A look at
// an object at which nothing runs or waits is a few loads. Requests that come and go between two
// looks pay nothing.

// watch sets the timer for the first look.
func (m *Mailbox) watch() {
	m.mu.Lock() // so that the look finds the timer
	defer m.mu.Unlock()
	m.extras.Load().timer = time.AfterFunc(m.config.Patience, m.look)
}

// unwatch ends the looks when the object has ended. The caller holds mu.
func (m *Mailbox) unwatch() {
	if x := m.extras.Load(); x != nil && x.timer != nil {
		x.timer.Stop()
	}
}

// look reports the requests and the bodies that are overdue, and sets the timer anew.
func (m *Mailbox) look() {
	now := Now()
	m.mu.Lock()
	runs := m.sight(now)
	late, next := m.late(now)
	if c := m.closed; c == nil || !c.over {
		m.extras.Load().timer.Reset(next)
	}
	var long []run
	for _, r := range runs {
		if r.For >= m.config.Patience && !r.reported {
			long = append(long, r)
		}
	}
	for _, r := range long {
		r.reported = true // now, as those in counters have one note
	}
	m.mu.Unlock()
	for _, r := range m.waitsOf(long) {
		m.config.Overlong(m.host.Name(), r)
	}
	if len(late) > 0 {
		running := m.waitsOf(runs)
		for _, w := range late {
			m.config.Overdue(m.host.Name(), w, running)
		}
	}
}

// late returns the requests that have waited too long and have not been reported, and in which
// time the next one is due, or Patience if that is less. The caller holds mu; late releases it in
// between.
func (m *Mailbox) late(now time.Duration) (late []mailbox.Waiting, next time.Duration) {
	next = m.config.Patience
	k := m.queues.Load()
	if k == nil || !k.Waits() {
		return nil, next
	}
	c := k.Inspect()
	for c.Next(chunk, func(kr *mailbox.Request, position int) {
		r := kr.Record.(*Request)
		age := now - r.since
		switch {
		case r.overdue:
		case age >= m.config.Patience:
			r.overdue = true
			late = append(late, mailbox.Waiting{})
			m.describe(r, &late[len(late)-1], position, now)
		default:
			next = min(next, m.config.Patience-age)
		}
	}) {
		m.mu.Unlock()
		m.mu.Lock()
	}
	c.Close()
	return late, next
}
