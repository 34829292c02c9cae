package activeobject

import (
	"fmt"

	"github.com/sluice-go/sluice/mailbox"
)

// Overflow is what happens to a request that would have to wait in a full queue.
type Overflow = mailbox.Overflow

const (
	// Refuse fails the request with a *FullError.
	Refuse = mailbox.Refuse
	// DropOldest fails the request that has waited longest, with a *FullError, and
	// lets the new one wait in its place.
	DropOldest = mailbox.DropOldest
	// Wait makes a Call, or a Select, wait for room in an overflow queue, from which it can be
	// withdrawn. What has no goroutine that could wait (Send, Begin, Tell, a message) is
	// refused; so is a requeue.
	Wait = mailbox.Wait
)

// Bound returns how many requests may wait at the object, and what happens to one too many;
// bounded is false if any number may. Its operations may have bounds of their own.
func (o *Object[T]) Bound() (n int, overflow Overflow, bounded bool) {
	b := o.config.engine.Rules.Bound
	return b.Max, b.Overflow, b.Overflow != mailbox.Unbounded
}

// Bound lets no more than n requests wait for the operation at one object;
// otherwise it is like the option Bound. It returns the operation, and panics if
// the bound is negative or the overflow none of Refuse, DropOldest and Wait.
func (op *Operation[T, A, R]) Bound(n int, overflow Overflow) *Operation[T, A, R] {
	op.info.boundBy(n, overflow)
	return op
}

func (op *operationInfo) boundBy(n int, overflow Overflow) {
	switch {
	case n < 0:
		panic(fmt.Sprintf("%s gets the bound %d: it must not be negative", op.where(), n))
	case overflow < Refuse || overflow > Wait:
		panic(op.where() + " gets a bound but is not told what to do with one too many: pass Refuse, DropOldest or Wait")
	}
	defer op.declaring("a bound")()
	op.bound = mailbox.Bound{Max: n, Overflow: overflow}
}
