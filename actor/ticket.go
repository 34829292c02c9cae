package actor

import (
	"context"
	"sync"
)

// Ticket is a Future for one: its result is handed out once. In return the record
// that a waiting request needs is used again, and nothing is allocated for it. A
// ticket that is never awaited costs its record, no more.
//
// A copy is the same ticket: if the request had to wait, the result goes to one of
// them only. (A result that was there at once is in the Ticket itself, so that a
// copy has one of its own.) The zero Ticket has the zero result and no error.
type Ticket[R any] struct {
	_ [0]func() // not to be compared
	// Four words for a Ticket[int], as for a Future[int]. So the record is where the
	// error will be.
	life   uint64 // of the record; 0 if the result is in the ticket itself
	result R
	err    error // until then requested
}

// Issued returns the ticket for a result that is there.
func Issued[R any](result R, err error) Ticket[R] {
	return Ticket[R]{result: result, err: err}
}

// Ticketed returns the ticket of a request that was made with one and is on its way.
func Ticketed[R any](p *Pending) Ticket[R] {
	return Ticket[R]{life: lifeOf(&p.claim), err: requested{p}}
}

// Await waits for the result and takes it; every other Await, at the same time or
// later, fails with ErrAwaited. If ctx ends first its error is returned, the request
// goes its way, and the ticket stays good. So it does if Await fails with
// *mailbox.DeadlockError, as the request waits for an object that the caller is
// inside of.
func (t *Ticket[R]) Await(ctx context.Context) (R, error) {
	var none R
	if t.life == 0 {
		result, err := t.result, t.err
		t.result, t.err = none, ErrAwaited
		return result, err
	}
	p := t.err.(requested).pending
	if err := p.claimed(ctx, t.life); err != nil {
		return none, err
	}
	result, err := *p.Place.(*R), p.Err
	p.claim.end()
	p.Request.Recycle()
	return result, err
}

// claimed waits for the request's end, for the life of a ticket, and takes the result.
func (p *Pending) claimed(ctx context.Context, life uint64) error {
	if !p.claim.take(life) {
		return ErrAwaited
	}
	err := p.Request.Redeem(ctx)
	if err != nil {
		p.claim.giveBack()
	}
	return err
}

// Withdraw takes the request out of its queue if it still waits. Then it reports
// true, the request never runs, and Await returns context.Canceled. If the request
// runs or has ended, it reports false and changes nothing. It may be called while
// another goroutine awaits the ticket.
func (t *Ticket[R]) Withdraw() bool {
	return t.life != 0 && t.err.(requested).pending.withdraw(t.life)
}

func (p *Pending) withdraw(life uint64) bool {
	// The life does not end while the lock is held.
	p.claim.mu.Lock()
	defer p.claim.mu.Unlock()
	return p.claim.is(life) && p.Request.WithdrawAll(context.Canceled)
}

// claim says whose a record with a ticket is. A record lives many times, one for
// each request; a ticket is good for one life, the next after those that had ended
// when it was made. A life ends when its result is handed out, by the only one who
// may do that, and before the record is put where it can be made use of again. So
// as long as a ticket's life lasts the record is that of its request, and whoever
// finds under mu that it does may touch it until he lets go. No life comes twice,
// and a ticket keeps its record from being collected; therefore a ticket whose life
// is over is told so, whatever has become of the record since.
type claim struct {
	mu    sync.Mutex
	ended uint64 // lives; written under mu by whoever has taken the claim
	taken bool   // somebody waits for the result
}

// lifeOf returns the life that begins with a ticket. The claim is made with the first
// one of the record, which nobody else has a ticket of then, and stays with it. It is not
// inlined into what every operation has of its own.
//
//go:noinline
func lifeOf(c **claim) uint64 {
	if *c == nil {
		*c = new(claim)
	}
	return (*c).ended + 1
}

// is reports whether the life is the current one. The caller holds mu.
func (c *claim) is(life uint64) bool { return c.ended+1 == life }

// take gives the caller alone the right to wait, if the life is the current one and
// nobody has it.
func (c *claim) take(life uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.is(life) || c.taken {
		return false
	}
	c.taken = true
	return true
}

// giveBack lets others wait.
func (c *claim) giveBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = false
}

// end ends the life.
func (c *claim) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended++
	c.taken = false
}
