package engine

import (
	"reflect"
	"runtime"
	"sync"
	"weak"
)

// lender is a dispatcher that lends its threads while the bodies on them wait for other requests.
// So a fixed number of threads does not stand still when all of them wait for what needs one.
type lender interface {
	Dispatcher
	// park says that a body on one of the threads begins to wait; unpark that it goes on, or has
	// returned. Neither waits for anything. Unpark may be called with the mu of an object held,
	// park only with graph held.
	park()
	unpark()
	// own returns the dispatcher that Lend was given.
	own() Dispatcher
}

// Lend returns the dispatcher for a Config whose threads are those of d, lent while bodies on
// them wait for other requests: a goroutine of Config.Workers then takes the next turn in place
// of one of them. When the wait is over the body goes on at once, even if that makes one more
// than there are threads. All objects on d share its threads. If d has the method Lends() bool,
// and that reports false, Lend returns d itself: no other goroutine may stand in for its threads.
func Lend(d Dispatcher) Dispatcher {
	if l, ok := d.(interface{ Lends() bool }); ok && !l.Lends() {
		return d
	}
	if t, ok := d.(Threads); ok {
		return &reserving{t}
	}
	if l, ok := d.(Lender); ok {
		return lendsItself{l}
	}
	if !reflect.ValueOf(d).Comparable() {
		return &lending{d: d}
	}
	lendings.mu.Lock()
	defer lendings.mu.Unlock()
	if l := lendings.of[d].Value(); l != nil {
		return l
	}
	if lendings.of == nil {
		lendings.of = map[Dispatcher]weak.Pointer[lending]{}
	}
	l := &lending{d: d}
	lendings.of[d] = weak.Make(l)
	runtime.AddCleanup(l, forgetLending, d)
	return l
}

// lendings has the lending of each dispatcher that objects use. An entry is deleted when the last
// object on its dispatcher has been collected.
var lendings struct {
	mu sync.Mutex
	of map[Dispatcher]weak.Pointer[lending]
}

func forgetLending(d Dispatcher) {
	lendings.mu.Lock()
	defer lendings.mu.Unlock()
	if lendings.of[d].Value() == nil { // or else there is a new one
		delete(lendings.of, d)
	}
}

// lending keeps the turns of the objects on a dispatcher until one of its threads begins them.
//
//	Dispatch ──► queue ──► a thread of d, in slot.Run
//	                └────► a worker in place of a thread whose body waits, in standIn.Run
//
// No turn is lost. A turn leaves the queue under mu, to the goroutine that runs it. D has been
// given a slot for each turn in the queue (slots >= len(queue)). A slot takes the first turn that
// is in the queue when a thread comes to it, or none if workers have taken them. A slot that is
// left over serves the next turn instead of a new one, so that d's own queue does not fill with
// stale slots.
//
// No more turns run than there are threads, except for bodies that go on after a wait: a worker
// takes a turn only while room is positive, and lowers it.
type lending struct {
	d Dispatcher

	mu    sync.Mutex
	queue []*Mailbox // objects whose turn is to come
	slots int        // that d has, or is about to get, and that have not begun
	room  int        // threads whose bodies wait, less those that workers stand in for
}

// Dispatch implements Dispatcher.
func (l *lending) Dispatch(t Task) {
	m := t.(*Mailbox)
	l.mu.Lock()
	if l.room > 0 {
		l.room--
		l.mu.Unlock()
		l.standIn(m)
		return
	}
	l.queue = append(l.queue, m)
	more := l.slots < len(l.queue)
	if more {
		l.slots++
	}
	l.mu.Unlock()
	if more {
		l.d.Dispatch((*slot)(l))
	}
}

// next takes the first turn from the queue; it returns nil if there is none. The caller holds mu.
func (l *lending) next() (m *Mailbox) {
	if len(l.queue) == 0 {
		return nil
	}
	m, l.queue[0] = l.queue[0], nil
	if l.queue = l.queue[1:]; len(l.queue) == 0 {
		l.queue = nil
	}
	return m
}

// slot is a lending as the turn of a thread.
type slot lending

// Run implements Task.
func (s *slot) Run() {
	l := (*lending)(s)
	l.mu.Lock()
	l.slots--
	m := l.next()
	l.mu.Unlock()
	if m != nil {
		m.Run()
	}
}

// lent makes room for one more turn, and has a worker take the next one if there is one.
func (l *lending) lent() {
	l.mu.Lock()
	var m *Mailbox
	if l.room++; l.room > 0 {
		if m = l.next(); m != nil {
			l.room--
		}
	}
	l.mu.Unlock()
	if m != nil {
		l.standIn(m)
	}
}

// standIn has a worker of m's system run the turn of m.
func (l *lending) standIn(m *Mailbox) { m.config.Workers.Dispatch(standIn{l, m}) }

// standIn is a turn of an object on a worker, in place of a thread whose body waits.
type standIn struct {
	l *lending
	m *Mailbox
}

// Run implements Task.
func (s standIn) Run() {
	defer s.l.lent() // also if a body ends the goroutine
	s.m.Run()
}

func (l *lending) park() { l.lent() }

func (l *lending) unpark() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.room--
}

func (l *lending) own() Dispatcher { return l.d }

// reserving is a dispatcher whose threads have to be reserved, one for each turn of an object.
type reserving struct{ threads Threads }

// Dispatch implements Dispatcher. If no thread is free now, an Offer will come.
func (l *reserving) Dispatch(t Task) {
	if m := t.(*Mailbox); l.threads.Take(m) {
		l.offered(m)
	}
}

// offered has a reserved thread run the object's turn.
func (l *reserving) offered(m *Mailbox) { l.threads.Dispatch(&reserved{l.threads, m}) }

// reserved is a turn of an object on a thread that has been reserved for it.
type reserved struct {
	threads Threads
	m       *Mailbox
}

// Run implements Task.
func (t *reserved) Run() {
	defer t.threads.Return(t) // also if a body ends the goroutine
	t.m.Run()
}

func (l *reserving) park()           { l.threads.Return(nil) }
func (l *reserving) unpark()         { l.threads.Retake() }
func (l *reserving) own() Dispatcher { return l.threads }

// regain counts the thread of f's body as one in use again. The body has returned, though a
// goroutine that it has started still waits. The caller holds mu.
func (m *Mailbox) regain(f *Frame) {
	if f == nil || !f.parked || m.config.Parallel != nil {
		return
	}
	f.parked = false
	m.config.Dispatcher.(lender).unpark()
}
