package engine

import (
	"slices"

	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// observer is a function that is told of every change of the load until it has seen enough.
type observer struct {
	told func(mailbox.Load) (enough bool)
}

// Observe has f told the load of the object, now and after every change, until f reports that it
// has seen enough, or stop is called. F is called with mu held: it must be quick, not panic, and
// neither call the object nor stop the observation. It may call Queued and Waiting.
//
// An object that is observed has no fast path, so that f sees every change: from now on the
// object is taken under mu only. A goroutine that has taken it before finds Engaged set when it
// releases the object, and comes by Yield. The fast path opens again when the object is next
// released without an observer.
func (m *Mailbox) Observe(f func(mailbox.Load) (enough bool)) (stop func()) {
	o := &observer{f}
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.special()
	x.observers = append(x.observers, o)
	m.closeFastPath()
	m.changed()
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		x.observers = slices.DeleteFunc(x.observers, func(other *observer) bool { return other == o })
		m.reopen()
	}
}

// observed reports whether the object has observers. The caller holds mu.
func (m *Mailbox) observed() bool {
	x := m.extras.Load()
	return x != nil && len(x.observers) > 0
}

// closeFastPath lets the object be taken under mu only. An owner that has taken it by the fast
// path has to release it under mu. The caller holds mu.
func (m *Mailbox) closeFastPath() {
	if m.config.Parallel != nil {
		if m.engage() {
			m.release()
		}
		return
	}
	for {
		w := m.Word.Load()
		switch {
		case !w.Has(word.Held):
			if m.Word.CompareAndSwap(w, w.Close()) {
				return
			}
		case w.Has(word.Engaged):
			return // release sees that the object is observed
		case m.Word.CompareAndSwap(w, w.Engage()):
			m.scheduler().Begin(w.Operation())
			return
		}
	}
}

// reopen opens the fast path of an object that is not observed any more, if the object is free
// and nothing waits; else release does. The caller holds mu.
func (m *Mailbox) reopen() {
	w, k := m.Word.Load(), m.queues.Load()
	if m.config.Parallel != nil {
		if !m.observed() && m.engage() {
			m.release()
		}
		return
	}
	if !w.Has(word.Held) && !m.observed() && (k == nil || !k.Waits()) {
		m.Word.CompareAndSwap(w, m.rest())
	}
}

// changed tells the observers and the recorder. It is called where the load has changed, by the
// goroutine that holds mu and is about to release it.
func (m *Mailbox) changed() {
	x := m.extras.Load()
	if x == nil {
		return
	}
	if x.recorder != nil {
		m.record(x.recorder)
	}
	if len(x.observers) > 0 {
		m.tell()
	}
}

func (m *Mailbox) tell() {
	l := m.load()
	x := m.extras.Load()
	x.observers = slices.DeleteFunc(x.observers, func(o *observer) bool { return o.told(l) })
	m.reopen()
}

// load returns the load of the object. The caller holds mu.
func (m *Mailbox) load() (l mailbox.Load) {
	held := m.Word.Load().Has(word.Held)
	if k := m.queues.Load(); k != nil {
		for op := range m.config.Rules.Operations {
			l.Waiting += k.Queued(op)
		}
		for r := range k.Running() {
			if r.State() == mailbox.StateRunning {
				l.Running++
			}
		}
		for _, n := range k.Untracked() {
			l.Running += n
		}
	}
	// While a body runs at an active object, nothing is left to decide.
	l.Deciding = held && (l.Running == 0 || m.config.Parallel != nil)
	return l
}
