package transaction

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/sluice-go/sluice/mailbox"
)

// Explanation is what a transaction holds, what it waits for, and what waits for it.
type Explanation struct {
	ID    uuid.UUID           `json:"id"`
	Age   time.Duration       `json:"age_ns"`
	Ended error               `json:"-"` // why it takes no more requests; nil if it does
	Holds []At                `json:"holds,omitempty"`
	Runs  []At                `json:"runs,omitempty"`
	Waits []mailbox.WaitingAt `json:"waits,omitempty"`
	// KeepsWaiting are the requests that wait for what the transaction holds: their Reasons say so.
	KeepsWaiting []mailbox.WaitingAt `json:"keeps_waiting,omitempty"`
}

// At is an operation at an object.
type At struct {
	Object    string `json:"object"`
	Operation string `json:"operation"`
}

// Explain returns what the transaction holds and waits for, and what waits for it. It evaluates no guard and
// waits for no body. The objects are looked at one after the other, so that it is no picture of one moment.
func (t *Transaction) Explain() Explanation {
	e := Explanation{ID: t.id, Age: time.Since(t.began), Ended: t.tx.Ended()}
	id := t.id.String()
	for _, m := range t.tx.Objects() {
		s := m.Explain()
		for _, r := range s.Running {
			switch at := (At{s.Object, r.Operation}); {
			case r.Transaction != id:
			case r.Held:
				e.Holds = append(e.Holds, at)
			default:
				e.Runs = append(e.Runs, at)
			}
		}
		for _, w := range s.Waiting {
			at := mailbox.WaitingAt{Object: s.Object, Waiting: w}
			if w.Transaction == id {
				e.Waits = append(e.Waits, at)
			}
			if w.Reason.HeldBy(id) {
				e.KeepsWaiting = append(e.KeepsWaiting, at)
			}
		}
	}
	return e
}

// String returns the explanation as text for a person: a line for each thing.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "transaction %v, for %v\n", e.ID, e.Age.Round(time.Microsecond))
	if e.Ended != nil {
		fmt.Fprintf(&b, "  takes no requests: %v\n", e.Ended)
	}
	for _, at := range e.Holds {
		fmt.Fprintf(&b, "  holds    %s.%s\n", at.Object, at.Operation)
	}
	for _, at := range e.Runs {
		fmt.Fprintf(&b, "  runs     %s.%s\n", at.Object, at.Operation)
	}
	for _, w := range e.Waits {
		fmt.Fprintf(&b, "  waits for %s.%s: %v\n", w.Object, w.Operation, w.Reason)
	}
	for _, w := range e.KeepsWaiting {
		fmt.Fprintf(&b, "  keeps waiting %s, for %v\n", w.Name(), w.Age.Round(time.Microsecond))
	}
	return b.String()
}
