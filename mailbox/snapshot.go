package mailbox

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Snapshot is what runs and what waits at one object, and why.
type Snapshot struct {
	Object string `json:"object"`
	// Step is the number of inputs the object's scheduler had seen.
	Step    uint64 `json:"step"`
	Stopped bool   `json:"stopped,omitempty"`
	// Suspended says why nothing starts, if a step in the object's life is to be
	// taken: the failure that has to be decided about, if there is one; or what
	// the step waits for.
	Suspended string    `json:"suspended,omitempty"`
	Running   []Running `json:"running"`
	Waiting   []Waiting `json:"waiting"`
}

// Running is a request that runs.
type Running struct {
	Operation string `json:"operation"`
	// Arrival is the request's place in the order of arrivals, from 1; 0 if it
	// found the object idle and never had to arrive.
	Arrival uint64 `json:"arrival,omitempty"`
	// Age is the time since it arrived; or, if it never had to, For.
	Age time.Duration `json:"age_ns,omitempty"`
	// For is how long its body has run at least: since Explain, or a watchdog, saw it for
	// the first time; 0 if that is now.
	For time.Duration `json:"for_ns,omitempty"`
	// Transaction is the transaction that the request belongs to. Held says that its body has ended, and
	// the transaction retains it.
	Transaction string `json:"transaction,omitempty"`
	Held        bool   `json:"held,omitempty"`
	// Waits is what its body, or its transaction, waits for in other objects.
	Waits []Far `json:"waits,omitempty"`
}

// Waiting is a request that waits.
type Waiting struct {
	Operation string `json:"operation"`
	// Key is the key of the request, of an entry family; empty of any other.
	Key     string `json:"key,omitempty"`
	Arrival uint64 `json:"arrival"`
	// Position is the request's place among those of its operation, from 1.
	Position int `json:"position"`
	// Transaction is the transaction that the request belongs to.
	Transaction string `json:"transaction,omitempty"`
	// Outside requests have not been admitted: they arrived while something ran
	// that they conflict with, or at a queue that was full.
	Outside bool `json:"outside,omitempty"`
	// Thread says that the request keeps a thread while it waits: see synchronizer.Monitor.
	Thread bool `json:"thread,omitempty"`
	// Leaving requests will not run, as their context has ended; they are about to
	// be withdrawn.
	Leaving bool          `json:"leaving,omitempty"`
	Age     time.Duration `json:"age_ns"`
	// Bypassed is how often later arrivals started while the guard was open.
	// It is counted, up to the bound, where a bound is set.
	Bypassed int    `json:"bypassed,omitempty"`
	Reason   Reason `json:"reason"`
}

// WaitingAt is a request that waits at an object.
type WaitingAt struct {
	Object string `json:"object"`
	Waiting
}

// Name names the request: by its object, operation and transaction.
func (w WaitingAt) Name() string {
	name := w.Object + "." + w.Operation
	if w.Transaction != "" {
		name += " of transaction " + w.Transaction
	}
	return name
}

// Far is a wait of a running body at another object, followed to its end.
type Far struct {
	Request string `json:"request"` // object and operation
	// Reason is why that request waits; it has no cause if the request runs.
	Reason Reason `json:"reason"`
	// Behind is what the bodies in its way wait for in turn.
	Behind []Far `json:"behind,omitempty"`
}

// WriteTo writes the snapshot as text for a person.
func (s Snapshot) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, s.String())
	return int64(n), err
}

// JSON returns the snapshot as indented JSON with stable field names.
func (s Snapshot) JSON() ([]byte, error) { return json.MarshalIndent(s, "", "  ") }

// String returns the snapshot as text for a person: a line per request.
func (s Snapshot) String() string {
	var b strings.Builder
	state := ""
	if s.Stopped {
		state = " (stopped)"
	}
	if s.Suspended != "" {
		state += " (suspended: " + s.Suspended + ")"
	}
	fmt.Fprintf(&b, "%s%s: %d running, %d waiting\n", s.Object, state, len(s.Running), len(s.Waiting))
	b.WriteString(s.Runners())
	for _, w := range s.Waiting {
		key, thread := "", ""
		if w.Key != "" {
			key = "[" + w.Key + "]"
		}
		if w.Thread {
			thread = ", with a thread"
		}
		if w.Transaction != "" {
			thread += ", in transaction " + w.Transaction
		}
		fmt.Fprintf(&b, "  waiting  %s%s (no. %d in its queue, for %v%s): %s\n",
			w.Operation, key, w.Position, w.Age.Round(time.Microsecond), thread, w.Reason)
	}
	return b.String()
}

// Runners returns the part of String that is about the requests that run.
func (s Snapshot) Runners() string {
	var b strings.Builder
	for _, r := range s.Running {
		long := ""
		if r.For >= time.Second {
			long = fmt.Sprintf(" (for at least %v)", r.For.Round(time.Millisecond))
		}
		state := "running"
		if r.Held {
			state, long = "held   ", " by transaction "+r.Transaction
		}
		fmt.Fprintf(&b, "  %s  %s%s\n", state, r.Operation, long)
		far(&b, r.Waits, "    ")
	}
	return b.String()
}

func far(b *strings.Builder, waits []Far, indent string) {
	for _, f := range waits {
		if f.Reason.Cause == "" {
			fmt.Fprintf(b, "%swaits for %s, which runs\n", indent, f.Request)
		} else {
			fmt.Fprintf(b, "%swaits for %s: %s\n", indent, f.Request, f.Reason)
		}
		far(b, f.Behind, indent+"  ")
	}
}
