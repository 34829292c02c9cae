package actor

import (
	"context"
	"sync"
)

// Ticket is a Future whose result is handed out once. Use it where one goroutine awaits a
// result: the record that a waiting request needs is then reused, and nothing is allocated
// for it. A ticket that is never awaited costs only its record.
//
// It is a value, and a copy is the same ticket: if the request had to wait, only one Await of all
// copies gets the result. (A result that was available at once is in the Ticket itself, so that every Await
// gets it.) The zero Ticket has the zero result and no error.
type Ticket[R any] struct {
	_ [0]func() // not to be compared
	// A Ticket[int] is four words, like a Future[int]. Therefore err holds the record until
	// the error is known.
	generation uint64 // of the record; 0 if the result is in the ticket itself
	result     R
	err        error // the error, or requested if generation is not 0
}

// Issued returns the ticket of a result that is available.
func Issued[R any](result R, err error) Ticket[R] {
	return Ticket[R]{result: result, err: err}
}

// Ticketed returns the ticket of a request that was made with one and has not ended yet, as far
// as its caller knows.
func Ticketed[R any](p *Pending) Ticket[R] {
	return Ticket[R]{generation: generationOf(&p.tickets), err: requested{p}}
}

// Await waits for the result and takes it. If the request had to wait, every other Await, at the
// same time or later, fails with ErrAwaited. If ctx ends first, Await returns its error, the request goes on, and
// the ticket can be awaited again. The same holds if Await fails with *mailbox.DeadlockError,
// because the request waits for an object that the caller is inside of.
func (t Ticket[R]) Await(ctx context.Context) (R, error) {
	var none R
	if t.generation == 0 {
		return t.result, t.err
	}
	p := t.err.(requested).pending
	if err := p.awaitTicket(ctx, t.generation); err != nil {
		return none, err
	}
	result, err := *p.Place.(*R), p.Err
	p.tickets.finish()
	p.Request.Recycle()
	return result, err
}

// awaitTicket waits for the end of the request on behalf of the ticket of the given generation.
// If it returns nil, the caller alone may read the result.
func (p *Pending) awaitTicket(ctx context.Context, generation uint64) error {
	if !p.tickets.beginAwait(generation) {
		return ErrAwaited
	}
	err := p.Request.Redeem(ctx)
	if err != nil {
		p.tickets.cancelAwait()
	}
	return err
}

// Withdraw takes the request out of its queue if it still waits. Then it reports
// true, the request never runs, and Await returns context.Canceled. If the request
// runs or has ended, it reports false and changes nothing. It may be called while
// another goroutine awaits the ticket.
func (t Ticket[R]) Withdraw() bool {
	return t.generation != 0 && t.err.(requested).pending.withdrawTicket(t.generation)
}

func (p *Pending) withdrawTicket(generation uint64) bool {
	// The generation does not end while mu is held.
	p.tickets.mu.Lock()
	defer p.tickets.mu.Unlock()
	return p.tickets.current(generation) && p.Request.WithdrawAll(context.Canceled)
}

// ticketState says which ticket a pooled record belongs to. A record is used for many requests,
// one after another; each use is a generation, and a ticket is valid for one of them: the next
// after those that had ended when the ticket was made.
//
// A generation ends when its result is handed out: by the one goroutine that has begun to await
// it, and before the record is put back into the pool. So during a ticket's generation the
// record is that of its request, and a goroutine that sees under mu that the generation is
// current may use the record until it unlocks mu. Generations are never reused, and a ticket
// keeps its record from being collected. Therefore a ticket whose generation has ended is
// refused, whatever the record is used for by then.
type ticketState struct {
	mu      sync.Mutex
	ended   uint64 // how many generations have ended; written under mu by the goroutine that has begun the Await
	awaited bool   // a goroutine waits for the result
}

// generationOf returns the generation of a new ticket. It makes the ticketState with the record's
// first ticket, when no other goroutine can have a ticket of it; the record keeps it. It is not
// inlined, as its callers are compiled anew for every operation.
//
//go:noinline
func generationOf(c **ticketState) uint64 {
	if *c == nil {
		*c = new(ticketState)
	}
	return (*c).ended + 1
}

// current reports whether the generation has not ended. The caller holds mu.
func (c *ticketState) current(generation uint64) bool { return c.ended+1 == generation }

// beginAwait gives the caller the exclusive right to await the result. It reports false if the
// generation has ended, or another goroutine has that right.
func (c *ticketState) beginAwait(generation uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.current(generation) || c.awaited {
		return false
	}
	c.awaited = true
	return true
}

// cancelAwait gives up the right to await the result, so that another Await can have it.
func (c *ticketState) cancelAwait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited = false
}

// finish ends the current generation.
func (c *ticketState) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended++
	c.awaited = false
}
