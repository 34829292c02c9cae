package mailbox

import (
	"time"

	"github.com/sluice-go/sluice/mailbox/kernel"
)

// The watchdog looks for requests that wait too long. It sleeps while nobody
// waits: the first arrival at an object that is not watched sets a timer, and
// when that goes off whoever has waited long enough is reported, once; as long as
// anybody waits who has not been reported, it is set again for the next of them.

// guard sees to it that r is looked at in time. The caller holds mu.
func (m *Mailbox) guard(r *Request) {
	r.overdue = false
	x := m.extras.Load()
	if x.unseen = true; !x.guarded {
		x.guarded = true
		time.AfterFunc(m.config.Patience, m.look)
	}
}

// look reports the requests that are overdue, and arranges for the next look.
func (m *Mailbox) look() {
	var late []Waiting
	next := time.Duration(-1)
	now := Now()
	m.mu.Lock()
	x := m.extras.Load()
	x.unseen = false
	k := m.kernel()
	c := k.Inspect()
	for c.Next(chunk, func(kr *kernel.Request, position int) {
		r := kr.Record.(*Request)
		age := now - r.since
		switch {
		case r.overdue:
		case age >= m.config.Patience:
			r.overdue = true
			late = append(late, Waiting{})
			m.describe(r, &late[len(late)-1], position, now)
		case next < 0 || m.config.Patience-age < next:
			next = m.config.Patience - age
		}
	}) {
		m.mu.Unlock()
		m.mu.Lock()
	}
	c.Close()
	if x.unseen && next < 0 {
		next = m.config.Patience // it came while we looked, perhaps where we had been
	}
	if x.guarded = next >= 0; x.guarded {
		time.AfterFunc(next, m.look)
	}
	m.mu.Unlock()
	if len(late) > 0 {
		running := m.Explain().Running
		for _, w := range late {
			m.config.Overdue(m.host.Name(), w, running)
		}
	}
}
