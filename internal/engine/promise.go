package engine

// Promise is the completion of a result that does not come from a request; Settle makes it come.
// It follows from nothing that Sluice knows of, so that no object blocks what waits for it.
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
