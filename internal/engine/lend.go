package engine

import (
	"runtime"

	"github.com/sluice-go/sluice/internal/word"
)

// Lending at an object that fans out.
//
// A request that has been granted runs from then on, as far as the scheduler is concerned. But its
// caller's goroutine, which is to run it, may stand far back among those that are ready to run; and
// until it comes, who conflicts with it waits, and so does everybody behind him. Those are
// granted at once later, stand far back in turn, and whoever comes then finds the next convoy.
//
// So who is about to wait at the object lends his goroutine first to those whom he waits for, who have
// been granted and have not begun, and whose caller finds the result when he comes:
//
//	         grant              the caller comes
//	(own) ──────────► granted ───────────────────► (own), and runs
//	                     │
//	                     │ somebody lends himself
//	                     ▼               the body has returned
//	                    lent ──────────────────────────────────────────► done, or returned
//	                     │                                                  ▲
//	                     └────────────────► awaited ────────────────────────┘ and a second token
//	                       the caller comes
//
// # Who may touch the request
//
// The grant is written by the owner before the token is sent. Then one compare-and-swap decides
// whether the caller runs the body or another goroutine does: with that one are the body, the
// result and the completion from then on. It gives the request up by a swap, which is the last that
// it does with it, unless that says that the caller waits; then the token is. The caller
// looks at the request after he has seen the swap or taken the token, and not before; so the
// record is not in its next life before everybody else has let go of it.
//
// # No wake-up is lost
//
// Either the caller says that he waits before the swap, and is sent a token, or he finds what has been
// swapped in. The channel has room for a token: the first, for the grant, has been taken by
// then, as the caller has come.
//
// # Nobody is kept from what he could do
//
// Whoever lends himself runs what his own request conflicts with, so that it cannot be granted
// before that has ended: he would have stood still. Or he runs what one conflicts with that comes
// before his. If that one is withdrawn then, his may be granted meanwhile, and is late by what is
// left of one leaf body, unless somebody lends himself to it in turn.
//
// If he took whatever has been granted, two bodies that are compatible could have to run one after
// the other, on one goroutine; and for ever, if the first is to meet the second.
//
// What it costs him is that he sees the end of his context only between two bodies, and that his
// goroutine ends with a body that calls runtime.Goexit.
const (
	own      uint32 = iota // nobody but the caller runs it
	granted                // its caller has been told to run it, and has not begun
	lent                   // somebody else runs it
	awaited                // and the caller has come, and waits for that
	done                   // it has ended
	returned               // its body has returned, and asks for a Hop: its caller has to go on
)

// lends reports whether those who are about to wait here run what has been granted to others: bodies
// run on callers' goroutines, and have none of their own before they start.
func (c *Config) lends() bool { return c.Fan != nil && c.Fan.Threads == nil && !c.Fan.OnArrival }

// grant tells r's caller, who waits for it, to run it. It is called by the owner outside mu.
func (m *Mailbox) grant(r *Request) {
	r.granted = true
	if m.config.lends() && r.Leaf && r.selection() == nil {
		r.stage.Store(granted)
		m.fanned().unbegun.Add(1)
	}
	r.wake <- struct{}{}
}

// found is begin, for one that was probably not to be lent.
func (r *Request) found() uint32 {
	if r.stage.Load() == own {
		return own
	}
	return r.begin()
}

// begin returns what the caller of r, which has been granted to him, finds: own, if he is to run
// it; or done or returned.
func (r *Request) begin() uint32 {
	if r.stage.CompareAndSwap(granted, own) {
		r.box.Load().fanned().unbegun.Add(-1)
		return own
	}
	if r.stage.CompareAndSwap(lent, awaited) {
		<-r.wake
	}
	return r.stage.Swap(own)
}

// borrow makes the calling goroutine the one that runs the body of r, and reports false if it is
// not to be lent any more. The caller holds mu, and has found r among those that run: so r is still
// the request that he has found.
func (r *Request) borrow() bool {
	if !r.stage.CompareAndSwap(granted, lent) {
		return false
	}
	r.box.Load().fanned().unbegun.Add(-1)
	return true
}

// leave says to the caller of r what he is to find. It is the last that who was lent to r does.
func (r *Request) leave(stage uint32) {
	if r.stage.Swap(stage) == awaited {
		r.wake <- struct{}{}
	}
}

// help lends the goroutine of r's caller, who is inside no object and is about to wait for r.
//
// If one of them ends the goroutine, r is forsaken. So who may not withdraw r is not lent: he would
// have to wait for it, dying, and then nobody would be there to run it.
func (m *Mailbox) help(r *Request) {
	if r.committed {
		return
	}
	m.attend(r)
	x := m.fanned()
	for n := m.config.Lend; n > 0 && x.unbegun.Load() > 0 && len(r.wake) == 0 && r.gone() == nil; n-- {
		m.mu.Lock()
		other := m.unbegun(r)
		m.mu.Unlock()
		if other == nil {
			return
		}
		m.runLent(other)
	}
}

// runLent runs the body of r, which the calling goroutine has borrowed.
func (m *Mailbox) runLent(r *Request) {
	r.Body.Run()
	if r.hop() != nil {
		r.leave(returned)
		return
	}
	m.mu.Lock()
	m.scheduler().Complete(&r.Request)
	if m.left(r, nil) {
		m.fan(r)
	} else {
		m.mu.Unlock()
		r.settle()
	}
}

// attend waits awake, for some microseconds at most, as long as somebody decides who is to start: r
// may be among those, and then need not park.
func (m *Mailbox) attend(r *Request) {
	const probes, gap = 100, 100
	if !m.Word.Load().Has(word.Held) || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	for i := 0; i < probes && m.Word.Load().Has(word.Held) && len(r.wake) == 0; i++ {
		for range gap {
		}
	}
}

// unbegun returns a request that r waits for, that has been granted, and that r's caller, who
// holds mu, is to run now; or nil. It looks at the last ones, whose goroutines will be the last
// to come.
func (m *Mailbox) unbegun(r *Request) *Request {
	const far = 16
	for next := range m.scheduler().Holding(&r.Request, far) {
		other := next.Record.(*Request)
		if other.stage.Load() == granted && other.gone() == nil && other.borrow() {
			return other
		}
	}
	return nil
}
