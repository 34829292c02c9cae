package engine

import (
	"fmt"
	"reflect"
	"runtime"
	"time"

	"github.com/sluice-go/sluice/internal/waitgraph"
	"github.com/sluice-go/sluice/mailbox"
)

// chunk is how many waiting requests are inspected under one hold of mu: some tens of
// microseconds' worth.
const chunk = 256

// spare is how many more requests than are counted room is made for at first, as some may arrive.
const spare = 16

// Explain returns what runs and what waits at the object, and why. It evaluates no guard and
// waits for no body. It notes what runs, so that the next call recognizes it: see sighting. Of
// very many waiting requests it inspects some at a time, so that the object can work in between.
// Requests that come or go meanwhile may be missing; those that wait throughout are not.
func (m *Mailbox) Explain() mailbox.Snapshot {
	now := Now()
	ops := m.config.Rules.Operations
	expected := 0
	for op := range ops {
		expected += m.Queued(op)
	}
	if expected > 0 { // else the object is idle, as most are, and needs no room
		expected += spare
	}
	room := make([]mailbox.Waiting, expected)
	var keys []any // of the first requests in room; written when mu is free, as a key may have methods
	s := mailbox.Snapshot{Object: m.host.Name(), Running: []mailbox.Running{}, Waiting: room[:0]}

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
	for c.Next(min(chunk, len(room)-n), func(kr *mailbox.Request, position int) {
		m.describe(kr.Record.(*Request), &room[n], position, now)
		if n++; kr.Key != nil && ops[kr.Op].Family {
			keys = append(append(keys, make([]any, n-1-len(keys))...), kr.Key)
		}
	}) {
		m.mu.Unlock()
		// Goroutines that wait for mu take it first, and room is made while it is free.
		runtime.Gosched()
		if n == len(room) {
			room = append(room, make([]mailbox.Waiting, chunk)...)
		}
		m.mu.Lock()
	}
	c.Close()
	m.mu.Unlock()
	s.Waiting = room[:n]
	for i, key := range keys {
		if key != nil && reflect.TypeOf(key).Kind() != reflect.Pointer { // a pointer tells nothing; the key of an undeclared operation is one
			room[i].Key = fmt.Sprint(key)
		}
	}

	s.Running = m.waitsOf(runs)
	return s
}

// waitsOf returns the bodies that run, each with what it waits for.
func (m *Mailbox) waitsOf(runs []run) []mailbox.Running {
	all := make([]mailbox.Running, len(runs))
	if len(runs) == 0 {
		return all
	}
	graph.Lock()
	defer graph.Unlock()
	for i, r := range runs {
		all[i] = r.Running
		if r.frame != nil && r.frame.node != nil {
			all[i].Waits = far(r.frame.node, map[waitgraph.Point]bool{m: true})
		}
	}
	return all
}

// describe writes what a snapshot says of a waiting request to w, which is zero. It is not
// returned: of very many requests, copying would take longer than finding out. The caller holds
// mu.
func (m *Mailbox) describe(r *Request, w *mailbox.Waiting, position int, now time.Duration) {
	k := m.scheduler()
	w.Operation, w.Arrival, w.Position = m.config.Rules.Operations[r.Op].Name, r.Arrival(), position
	w.Outside, w.Thread, w.Leaving = r.State() != mailbox.StateAdmitted, r.thread() != nil, r.gone() != nil
	if t := transactionOf(&r.Request); t != nil {
		w.Transaction = t.Named.String()
	}
	w.Age, w.Bypassed = max(now-r.since, 0), k.Bypassed(&r.Request)
	m.because(k, r, &w.Reason)
}

// far returns what the body, or one that it has called, waits for now, and so on from there. The
// caller holds graph, so that no wait is erased. Whether a request at the other end still waits is
// looked up there.
func far(n *waitgraph.Node, seen map[waitgraph.Point]bool) (out []mailbox.Far) {
	for _, w := range n.Waits() {
		waitgraph.Events(w.Goal(), func(e waitgraph.Event) {
			if e.Object() == nil {
				return // a request of a selection that has not been handed in
			}
			reason, pending := e.(interface{ why() (mailbox.Reason, bool) }).why()
			if !pending {
				return
			}
			one := mailbox.Far{Request: e.String(), Reason: reason}
			if at := e.Object(); !seen[at] {
				seen[at] = true
				for _, blocker := range e.Point().Blockers(nil) {
					one.Behind = append(one.Behind, far(blocker, seen)...)
				}
			}
			out = append(out, one)
		})
	}
	for _, inner := range n.Called() {
		if !inner.Body().Returned() {
			out = append(out, far(inner, seen)...)
		}
	}
	return out
}

// why returns why the request waits, if it does, and whether it is yet to end.
func (r *Request) why() (mailbox.Reason, bool) {
	m := r.lock()
	defer m.mu.Unlock()
	if r.Waits() {
		var why mailbox.Reason
		m.because(m.scheduler(), r, &why)
		return why, true
	}
	return mailbox.Reason{}, r.State() == mailbox.StateRunning
}

// because is Scheduler.Explain, and adds what has the threads, which the scheduler does not know.
// The caller holds mu.
func (m *Mailbox) because(k *mailbox.Scheduler, r *Request, why *mailbox.Reason) {
	k.Explain(&r.Request, why)
	if why.Threads != "" {
		if t, ok := m.config.Parallel.Threads.(Keeper); ok {
			why.Threads = t.Taken()
		}
	}
}
