package mailbox

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/sluice-go/sluice/mailbox/kernel"
)

// Snapshot is what runs and what waits at one object, and why.
type Snapshot struct {
	Object string `json:"object"`
	// Step is the number of inputs the object's kernel had seen.
	Step    uint64 `json:"step"`
	Stopped bool   `json:"stopped,omitempty"`
	// Suspended says why nothing starts, if a step in the object's life is to be
	// taken: the failure that somebody has to decide about, if there is one; or what
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
	// Waits is what its body waits for in other objects.
	Waits []Far `json:"waits,omitempty"`
}

// Waiting is a request that waits.
type Waiting struct {
	Operation string `json:"operation"`
	Arrival   uint64 `json:"arrival"`
	// Position is the request's place among those of its operation, from 1.
	Position int `json:"position"`
	// Outside requests have not been let in: they arrived while something ran
	// that they conflict with, or at a queue that was full.
	Outside bool `json:"outside,omitempty"`
	// Thread says that the request keeps a thread while it waits: see synchronizer.Monitor.
	Thread bool `json:"thread,omitempty"`
	// Leaving requests will not run, as their context has ended; somebody is about to
	// withdraw them.
	Leaving bool          `json:"leaving,omitempty"`
	Age     time.Duration `json:"age_ns"`
	// Bypassed is how often later arrivals started while the guard was open.
	// It is counted, up to the bound, where a bound is set.
	Bypassed int           `json:"bypassed,omitempty"`
	Reason   kernel.Reason `json:"reason"`
}

// Far is a wait of a running body at another object, followed to its end.
type Far struct {
	Request string `json:"request"` // object and operation
	// Reason is why that request waits; it has no cause if the request runs.
	Reason kernel.Reason `json:"reason"`
	// Behind is what the bodies in its way wait for in turn.
	Behind []Far `json:"behind,omitempty"`
}

// chunk is how many waiting requests are inspected without letting anybody
// else in between: some tens of microseconds' worth.
const chunk = 256

// spare is for how many more than are counted room is made at first, as some may come.
const spare = 16

// Explain returns what runs and what waits at the object, and why. It asks no
// guard and waits for no body. It notes what runs, so that the next one knows it again: see
// sighting. Of very many waiting requests it inspects some at
// a time, so that the object can work in between; requests that come or go
// meanwhile may be missing, those that wait throughout are not.
func (m *Mailbox) Explain() Snapshot {
	now := Now()
	ops := m.config.Rules.Operations
	expected := 0
	for op := range ops {
		expected += m.Queued(op)
	}
	if expected > 0 { // or else the object is idle, as most are, and needs no room
		expected += spare
	}
	room := make([]Waiting, expected)
	s := Snapshot{Object: m.host.Name(), Running: []Running{}, Waiting: room[:0]}

	m.mu.Lock()
	s.Stopped = m.closed != nil
	if halt := m.suspended(); halt != nil {
		if s.Suspended = "on request"; halt.failure != nil {
			s.Suspended = halt.failure.Error()
		}
		if halt.children != nil {
			s.Suspended = "its restart waits for the end of its children"
		}
	}
	runs := m.sight(now)
	k := m.queues.Load()
	if k == nil {
		m.mu.Unlock()
		return s
	}
	s.Step = k.Step()
	if len(runs) == 0 && !k.Waits() {
		m.mu.Unlock()
		return s
	}
	c := k.Inspect()
	n := 0
	for c.Next(min(chunk, len(room)-n), func(kr *kernel.Request, position int) {
		m.describe(kr.Record.(*Request), &room[n], position, now)
		n++
	}) {
		m.mu.Unlock()
		// Whoever waits for mu is first, and room is made while it is free.
		runtime.Gosched()
		if n == len(room) {
			room = append(room, make([]Waiting, chunk)...)
		}
		m.mu.Lock()
	}
	c.Close()
	m.mu.Unlock()
	s.Waiting = room[:n]

	s.Running = m.waitsOf(runs)
	return s
}

// waitsOf returns the bodies that run with what they wait for.
func (m *Mailbox) waitsOf(runs []run) []Running {
	all := make([]Running, len(runs))
	if len(runs) == 0 {
		return all
	}
	graph.Lock()
	defer graph.Unlock()
	for i, r := range runs {
		all[i] = r.Running
		all[i].Waits = r.frame.far(map[*Mailbox]bool{m: true})
	}
	return all
}

// describe says of a request that waits what there is to say, in w, which is zero: of very
// many, copying it would take longer than finding it out. The caller holds mu.
func (m *Mailbox) describe(r *Request, w *Waiting, position int, now time.Duration) {
	k := m.kernel()
	w.Operation, w.Arrival, w.Position = m.config.Rules.Operations[r.Op].Name, r.Arrival(), position
	w.Outside, w.Thread, w.Leaving = r.State() != kernel.Inside, r.thread() != nil, r.gone() != nil
	w.Age, w.Bypassed = max(now-r.since, 0), k.Bypassed(&r.Request)
	m.because(k, r, &w.Reason)
}

// far follows what the body, or one that it has called, waits for now. The caller holds graph, so that the
// edges stand; whether a request at the other end still waits is looked up
// there.
func (f *Frame) far(seen map[*Mailbox]bool) (out []Far) {
	if f == nil || f.node == nil {
		return nil
	}
	follow := func(far Far, box *Mailbox, at site) {
		if !seen[box] {
			seen[box] = true
			for _, g := range at.frames(nil) {
				far.Behind = append(far.Behind, g.far(seen)...)
			}
		}
		out = append(out, far)
	}
	for _, e := range f.node.waits {
		if end, ok := e.goal.(*ending); ok {
			if reason, pending := end.why(); pending {
				follow(Far{Request: end.String(), Reason: reason}, end.box, site{box: end.box})
			}
			continue
		}
		e.goal.walk(map[*Join]bool{}, func(w *Request) {
			if w.box.Load() == nil {
				return // one of several that has not been handed in
			}
			if reason, pending := w.why(); pending {
				box := w.box.Load()
				follow(Far{Request: w.String(), Reason: reason}, box, w.site(box))
			}
		})
	}
	for _, g := range f.node.below {
		if !g.over.Load() {
			out = append(out, g.far(seen)...)
		}
	}
	return out
}

// why returns why the request waits, and whether it has not ended.
func (r *Request) why() (kernel.Reason, bool) {
	m := r.lock()
	defer m.mu.Unlock()
	if r.Waits() {
		var why kernel.Reason
		m.because(m.kernel(), r, &why)
		return why, true
	}
	return kernel.Reason{}, r.State() == kernel.Running
}

// because is Kernel.Explain, with who has the threads that the kernel knows nothing of. The
// caller holds mu.
func (m *Mailbox) because(k *kernel.Kernel, r *Request, why *kernel.Reason) {
	k.Explain(&r.Request, why)
	if why.Threads != "" {
		if t, ok := m.config.Fan.Threads.(Keeper); ok {
			why.Threads = t.Taken()
		}
	}
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
		thread := ""
		if w.Thread {
			thread = ", with a thread"
		}
		fmt.Fprintf(&b, "  waiting  %s (no. %d in its queue, for %v%s): %s\n",
			w.Operation, w.Position, w.Age.Round(time.Microsecond), thread, w.Reason)
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
		fmt.Fprintf(&b, "  running  %s%s\n", r.Operation, long)
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
