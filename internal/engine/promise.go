package engine

// Promise is a completion that Settle brings about: of a result that comes from elsewhere than a
// request. It follows from nothing that Sluice knows of, so that no object holds up what waits
// for it.
type Promise struct {
	Join
	// Withdraw is called by WithdrawAll, and reports whether there was anything to
	// withdraw.
	Withdraw func(err error) bool
}

// WithdrawAll implements Awaited.
func (p *Promise) WithdrawAll(err error) bool { return p.Withdraw(err) }

// Settle makes the completion come. What follows from it is done by a worker. Only
// the first call has an effect.
func (p *Promise) Settle(workers Dispatcher) {
	first, last := p.complete()
	follow(first, last, workers)
}
