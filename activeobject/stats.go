package activeobject

import (
	"log/slog"

	"github.com/sluice-go/sluice/mailbox"
)

// Stats are the counts of one operation of an object since it was made. Each is whole, or
// NotCounted.
type Stats = mailbox.Stats

// Count is how often something has happened, or NotCounted.
type Count = mailbox.Count

// NotCounted stands for a figure that an object does not count; see Counters. It is printed
// as "not counted", and null in JSON.
const NotCounted = mailbox.NotCounted

// bypassesCounted is how far bypasses are counted without a bound.
const bypassesCounted = 100

// Stats returns the counts of the object's operations, in the order of their
// declaration. It waits for no body.
//
// Waits, withdrawals and refusals are always counted. Requests that find the object idle
// pass its scheduler by, and to count them costs time: so starts and evaluations are
// NotCounted, unless the object is made with Counters, or has no fast path (as one with a
// dispatcher or interceptors has none). The longest bypass is counted up to the object's
// MaxBypass; without one, up to 100 with Counters, else not at all. Waiting times are nil
// without Counters.
func (o *Object[T]) Stats() []Stats {
	all := make([]Stats, len(o.config.typ.all))
	for i := range all {
		all[i] = o.box.Stats(i)
	}
	return all
}

// Stats returns the operation's counts at an object, as Object.Stats does; of an
// object of another type they are zero.
func (op *Operation[T, A, R]) Stats(o *Object[T]) Stats {
	return op.info.stats(&o.objectHeader)
}

func (op *operationInfo) stats(o *objectHeader) Stats {
	if !o.config.typ.extends(op.typ) {
		return Stats{Operation: op.name}
	}
	return o.box.Stats(op.index)
}

// overdue returns what logs a request that has waited too long.
func overdue(logger *slog.Logger) func(string, mailbox.Waiting, []mailbox.Running) {
	return func(object string, w mailbox.Waiting, running []mailbox.Running) {
		defer func() { _ = recover() }() // a panic of a log handler; it cannot be reported
		logger.Warn("sluice: a request waits for long", "object", object, "operation", w.Operation,
			"request", w.Arrival, "position", w.Position, "age", w.Age, "because", w.Reason.String(),
			"running", mailbox.Snapshot{Running: running}.Runners())
	}
}

// overlong returns what logs a body that has run too long.
func overlong(logger *slog.Logger) func(string, mailbox.Running) {
	return func(object string, r mailbox.Running) {
		defer func() { _ = recover() }()
		logger.Warn("sluice: a body runs for long", "object", object, "operation", r.Operation,
			"request", r.Arrival, "for", r.For, "running", mailbox.Snapshot{Running: []mailbox.Running{r}}.Runners())
	}
}
