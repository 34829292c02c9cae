package engine

import (
	"runtime"

	"github.com/sluice-go/sluice/internal/word"
)

// Helping at a parallel object.
//
// A request that has been granted runs, as far as the scheduler is concerned. But its caller's
// goroutine, which is to run it, may be far back among those that are ready to run. Until it
// comes, all that conflict with the request wait, and so do the requests behind them. Those are
// later granted together, are far back in turn, and the next arrivals meet the next convoy.
//
// So a goroutine that is about to wait at the object first helps: it runs the requests that block
// its own and have been granted and not begun. Their callers find the results when they come:
//
//	         grant              the caller comes
//	(own) ──────────► granted ───────────────────► (own), and runs
//	                     │
//	                     │ another goroutine helps
//	                     ▼                 the body has returned
//	                   helped ─────────────────────────────────────────► done, or returned
//	                     │                                                  ▲
//	                     └────────────────► awaited ────────────────────────┘ and a second token
//	                       the caller comes
//
// # What may touch the request
//
// The owner writes the grant before it sends the token. Then one compare-and-swap decides whether
// the caller or a helper runs the body. The body, the result and the completion belong to that
// goroutine from then on. A helper gives the request up by a swap, which is the last that it does
// with the request; if the swap says that the caller waits, the token is the last. The caller
// looks at the request after it has seen the swap or taken the token, and not before. So the
// record is not reused before all others have let go of it.
//
// # No wake-up is lost
//
// Either the caller says that it waits before the swap, and is sent a token, or it finds the
// value that has been swapped in. The channel has room for the token: the first one, of the
// grant, has been taken by then, as the caller has come.
//
// # Helping delays no request
//
// A helper runs only bodies that block its own request, which could not be granted before they
// have ended: the helper would only have waited. Or it runs a body that conflicts with a request
// that goes before its own. If that request is withdrawn then, the helper's own may be granted
// meanwhile, and is late by the rest of one leaf body, unless it is helped in turn.
//
// If a helper ran whatever has been granted, two compatible bodies might have to run one after
// the other, on one goroutine; and never end, if the first waits for the second.
//
// The helper pays in two ways: it sees the end of its context only between two bodies, and its
// goroutine ends with a body that calls runtime.Goexit.
const (
	own      uint32 = iota // only the caller runs it
	granted                // its caller has been told to run it, and has not begun
	helped                 // a helper runs it
	awaited                // a helper runs it, and the caller has come and waits for that
	done                   // it has ended
	returned               // its body has returned and asks for a Hop: the caller has to go on
)

// helps reports whether goroutines that are about to wait here run what has been granted to
// others: bodies run on callers' goroutines, and get no thread before they start.
func (c *Config) helps() bool {
	return c.Parallel != nil && c.Parallel.Threads == nil && !c.Parallel.OnArrival
}

// grant tells r's caller, which waits for it, to run it. The owner calls it without mu.
func (m *Mailbox) grant(r *Request) {
	r.granted = true
	if m.config.helps() && r.Leaf && r.selection() == nil {
		r.stage.Store(granted)
		m.parallel().unbegun.Add(1)
	}
	r.wake <- struct{}{}
}

// outcome returns what the caller of r, which has been granted, finds: own, if the caller is to
// run it; or done or returned. It is for a request that probably has no helper.
func (r *Request) outcome() uint32 {
	if r.stage.Load() == own {
		return own
	}
	return r.outcomeSlow()
}

// outcomeSlow is outcome for a request that a helper may run.
func (r *Request) outcomeSlow() uint32 {
	if r.stage.CompareAndSwap(granted, own) {
		r.box.Load().parallel().unbegun.Add(-1)
		return own
	}
	if r.stage.CompareAndSwap(helped, awaited) {
		<-r.wake
	}
	return r.stage.Swap(own)
}

// claimHelp makes the calling goroutine the one that runs the body of r. It reports false if the
// caller of r, or another helper, runs it. The caller holds mu, and has found r among those that
// run: so the record has not been reused since.
func (r *Request) claimHelp() bool {
	if !r.stage.CompareAndSwap(granted, helped) {
		return false
	}
	r.box.Load().parallel().unbegun.Add(-1)
	return true
}

// setOutcome tells the caller of r what it finds. It is the last that a helper does with r.
func (r *Request) setOutcome(stage uint32) {
	if r.stage.Swap(stage) == awaited {
		r.wake <- struct{}{}
	}
}

// help has the goroutine of r's caller, which is inside no object and is about to wait for r, run
// the requests that block r and have not begun.
//
// If one of their bodies ends the goroutine, r is forsaken. So the caller of a request that may
// not be withdrawn does not help: its dying goroutine would have to wait for r, and could not run
// it.
func (m *Mailbox) help(r *Request) {
	if r.committed {
		return
	}
	m.spin(r)
	x := m.parallel()
	for n := m.config.HelpLimit; n > 0 && x.unbegun.Load() > 0 && len(r.wake) == 0 && r.gone() == nil; n-- {
		m.mu.Lock()
		other := m.unbegun(r)
		m.mu.Unlock()
		if other == nil {
			return
		}
		m.runHelped(other)
	}
}

// runHelped runs the body of r, which the calling goroutine has claimed.
func (m *Mailbox) runHelped(r *Request) {
	r.Body.Run()
	if r.hop() != nil {
		r.setOutcome(returned)
		return
	}
	m.mu.Lock()
	m.scheduler().Complete(&r.Request)
	if m.left(r, nil) {
		m.startAll(r)
	} else {
		m.mu.Unlock()
		r.settle()
	}
}

// spin waits awake, for some microseconds at most, as long as an owner decides what starts. R may
// be among the requests that start, and then need not park.
func (m *Mailbox) spin(r *Request) {
	const probes, gap = 100, 100
	if !m.Word.Load().Has(word.Held) || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	for i := 0; i < probes && m.Word.Load().Has(word.Held) && len(r.wake) == 0; i++ {
		for range gap {
		}
	}
}

// unbegun returns a request that r waits for, that has been granted, and that the caller, which
// holds mu, has claimed and is to run now; or nil. It looks at the ones granted last, whose
// goroutines will be the last to come.
func (m *Mailbox) unbegun(r *Request) *Request {
	const far = 16
	for next := range m.scheduler().Holding(&r.Request, far) {
		other := next.Record.(*Request)
		if other.stage.Load() == granted && other.gone() == nil && other.claimHelp() {
			return other
		}
	}
	return nil
}
