package transaction

import (
	"container/list"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/internal/engine"
)

// Manager begins transactions, and decides their outcome. One is enough for a system; transactions of
// several managers may call the same objects, but a transaction belongs to one.
type Manager struct {
	system   *actor.System
	settings *commitSettings
	lease    time.Duration
	attempts int
	choose   func([]*engine.Transaction) *engine.Transaction

	mu     sync.Mutex
	closed error
	open   map[uuid.UUID]*Transaction
	began  list.List   // the same, by their beginning
	timer  *time.Timer // for the end of the oldest one's lease; nil unless there is a lease
	armed  bool
	random *rand.ChaCha8 // of the identifiers: seeded from the system, whose own generator takes longer
	idle   chan struct{} // closed when none is open; nil unless Close waits for it
}

// ages is how many transactions of all managers have begun, which may meet at an object.
var ages atomic.Uint64

// Option sets what a Manager does.
type Option func(*options)

type options struct {
	lease, wait time.Duration
	attempts    int
	log         Log
	victim      Victim
	wrong       string
}

// Lease is how long a transaction may last, from its beginning to its end: after that it is rolled back, and
// that is logged. The default is a minute. 0 sets no end.
func Lease(d time.Duration) Option {
	return func(o *options) {
		if o.lease = d; d < 0 {
			o.wrong = "Lease is negative"
		}
	}
}

// Attempts is how often Run runs a transaction that is rolled back because of a deadlock, before it returns
// the error. The default is 100.
func Attempts(n int) Option {
	return func(o *options) {
		if o.attempts = n; n < 1 {
			o.wrong = "Attempts is less than 1"
		}
	}
}

// DecisionLog is the log in which decisions over several resources are kept. Without one, a transaction
// with two resources that can prepare is rolled back (ErrNoLog).
func DecisionLog(l Log) Option {
	return func(o *options) {
		if o.log = l; l == nil {
			o.wrong = "DecisionLog is given nil"
		}
	}
}

// Patience is how long the end of a transaction waits for a resource to decide, or to be told; one that has
// not answered by then is reported as unfinished, or the outcome as in doubt. The default is half a minute.
func Patience(d time.Duration) Option {
	return func(o *options) {
		if o.wait = d; d <= 0 {
			o.wrong = "Patience is not positive"
		}
	}
}

// Victim says which transaction of a deadlock is rolled back.
type Victim uint8

const (
	// Youngest is the one that was begun last. A transaction that Run runs again is as old as at first, so
	// that it is not chosen for ever.
	Youngest Victim = iota
	// LeastWork is the one of which the least has to be undone; of several the youngest. One that does little
	// may be chosen again and again, as often as Attempts allows.
	LeastWork
)

// Sacrifice has the given transaction of a deadlock rolled back, instead of the youngest.
func Sacrifice(v Victim) Option {
	return func(o *options) {
		if o.victim = v; v > LeastWork {
			o.wrong = "Sacrifice is given no Victim"
		}
	}
}

// NewManager returns a manager for the objects of a system, by whose logger it tells what is not told by an
// error. It fails with an *OptionError if an option makes no sense.
func NewManager(system *actor.System, opts ...Option) (*Manager, error) {
	o := options{lease: time.Minute, attempts: 100}
	for _, opt := range opts {
		opt(&o)
	}
	if system == nil {
		o.wrong = "the system is nil: make one with actor.NewSystem"
	}
	if o.wrong != "" {
		return nil, &OptionError{Problem: o.wrong}
	}
	m := &Manager{system: system, lease: o.lease, attempts: o.attempts, choose: youngest, open: map[uuid.UUID]*Transaction{}}
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // which never fails
	m.random = rand.NewChaCha8(seed)
	if o.victim == LeastWork {
		m.choose = leastWork
	}
	m.settings = newCommitSettings(o.log, o.wait, func(err error) { system.Logger().Warn("sluice: " + err.Error()) })
	return m, nil
}

// youngest returns the transaction that was begun last.
func youngest(circle []*engine.Transaction) *engine.Transaction {
	return slices.MaxFunc(circle, func(a, b *engine.Transaction) int { return int(int64(a.Age - b.Age)) })
}

// leastWork returns the transaction that has done least; of several the youngest.
func leastWork(circle []*engine.Transaction) *engine.Transaction {
	return slices.MaxFunc(circle, func(a, b *engine.Transaction) int {
		if d := b.Steps() - a.Steps(); d != 0 {
			return d
		}
		return int(int64(a.Age - b.Age))
	})
}

// Begin begins a transaction by hand. Requests belong to it that are made with the context that Begin
// returns, which is derived from ctx, and ends with the transaction. It ends by Commit or Rollback, or with
// its lease.
//
// It fails with a *NestedError if ctx is that of another transaction that is open, with the reason of its end if it is
// that of one which has ended, and with a *ClosedError if the manager is closed.
func (m *Manager) Begin(ctx context.Context) (context.Context, *Transaction, error) {
	return m.begin(ctx, 0)
}

// begin is Begin for a transaction as old as another one; an age of 0 is that of a new one.
func (m *Manager) begin(ctx context.Context, age uint64) (context.Context, *Transaction, error) {
	if outer := From(ctx); outer != nil {
		if err := outer.tx.Ended(); err != nil {
			return nil, nil, err
		}
		return nil, nil, &NestedError{Transaction: outer.id, Foreign: outer.manager != m}
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	t := &Transaction{manager: m, began: time.Now()}
	t.tx.Owner = (*coordinator)(t)
	t.objects[0] = (*coordinator)(t)
	inner := t.tx.Start(ctx) // which calls methods of ctx
	m.mu.Lock()
	if m.closed != nil {
		m.mu.Unlock()
		t.tx.Release(false)
		return nil, nil, m.closed
	}
	id := uuid.Must(uuid.NewV7FromReader(m.random)) // the reader never fails
	t.id, t.over.Transaction = id, id
	t.parts.id, t.parts.settings, t.parts.open, t.parts.volatile = id, m.settings, true, t.objects[:]
	if t.tx.Age = age; age == 0 {
		t.tx.Age = ages.Add(1)
	}
	m.open[id] = t
	if t.place = m.began.PushBack(t); m.lease > 0 && !m.armed {
		m.arm(m.lease)
	}
	m.mu.Unlock()
	return inner, t, nil
}

// arm sets the timer. The caller holds mu.
func (m *Manager) arm(d time.Duration) {
	m.armed = true
	if m.timer == nil {
		m.timer = time.AfterFunc(d, m.expire)
	} else {
		m.timer.Reset(d)
	}
}

// expire rolls back the transactions whose lease has ended, of which the oldest come first, and sets the timer
// for the next one.
func (m *Manager) expire() {
	var expired []*Transaction
	m.mu.Lock()
	m.armed = false
	for at := m.began.Front(); at != nil; at = at.Next() {
		t := at.Value.(*Transaction)
		if left := m.lease - time.Since(t.began); left > 0 {
			m.arm(left)
			break
		}
		expired = append(expired, t)
	}
	m.mu.Unlock()
	for _, t := range expired {
		if t.tx.Cause() != nil {
			continue // it is being rolled back
		}
		if err := (&LeaseError{Transaction: t.id, Lease: m.lease}); t.tx.Doom(err) { // else its end is being decided, or in doubt
			m.log(t, "is rolled back", err)
		}
	}
}

// Transactions yields the transactions that have not ended, the oldest first: those that are in doubt among
// them.
func (m *Manager) Transactions() iter.Seq[*Transaction] {
	return func(yield func(*Transaction) bool) {
		m.mu.Lock()
		all := make([]*Transaction, 0, len(m.open))
		for at := m.began.Front(); at != nil; at = at.Next() {
			all = append(all, at.Value.(*Transaction))
		}
		m.mu.Unlock()
		for _, t := range all {
			if !yield(t) {
				return
			}
		}
	}
}

// Find returns the transaction with the identifier, if it has not ended, or nil.
func (m *Manager) Find(id uuid.UUID) *Transaction {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open[id]
}

// Resolve tries again to find out the outcomes that are in doubt, and to tell resources that have not
// confirmed one. It returns what is left, as *OutcomeErrors; nil if nothing is.
func (m *Manager) Resolve(ctx context.Context) error {
	var left []error
	for t := range m.Transactions() {
		t.mu.Lock()
		ended := t.ended
		t.mu.Unlock()
		if ended {
			left = append(left, t.parts.resolve(ctx))
			m.forget(t)
		}
	}
	return errors.Join(left...)
}

// Recover is the function Recover, with the manager's log and the given ones. It may be called while
// transactions run, and leaves those alone.
func (m *Manager) Recover(ctx context.Context, logs []Log, resources ...Recoverable) ([]Recovered, error) {
	if m.settings.log != nil {
		logs = append(slices.Clip(logs), m.settings.log)
	}
	return recoverBranches(ctx, logs, resources, func(id uuid.UUID) bool { return m.Find(id) != nil })
}

// Close lets no transaction begin any more, and waits for the end of those that are open. If ctx ends before,
// these are rolled back, and Close returns the context's error.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	if m.closed == nil {
		m.closed = &ClosedError{}
	}
	if m.idle == nil {
		if m.idle = make(chan struct{}); len(m.open) == 0 {
			close(m.idle)
		}
	}
	idle := m.idle
	m.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	for t := range m.Transactions() {
		_ = t.rollback(&ClosedError{})
	}
	return ctx.Err()
}

// forget takes a transaction that has ended off the list, unless something is left to be done for it.
func (m *Manager) forget(t *Transaction) {
	unfinished := t.parts.unfinished()
	m.mu.Lock()
	defer m.mu.Unlock()
	if unfinished || m.open[t.id] == nil {
		return
	}
	delete(m.open, t.id)
	m.began.Remove(t.place)
	if m.idle != nil && len(m.open) == 0 {
		select {
		case <-m.idle:
		default:
			close(m.idle)
		}
	}
}

// log tells the system's logger what has become of a transaction.
func (m *Manager) log(t *Transaction, what string, err error) {
	m.system.Logger().Warn("sluice: "+t.String()+" "+what, "transaction", t.id.String(), "error", err)
}

// OptionError says that NewManager was given an option that makes no sense. There is no manager.
type OptionError struct{ Problem string }

// Error implements error.
func (e *OptionError) Error() string { return "sluice: NewManager: " + e.Problem }

// NestedError fails the beginning of a transaction inside another one, which goes on. Run inside a transaction
// of the same manager belongs to that transaction, and does not fail.
type NestedError struct {
	Transaction uuid.UUID
	Foreign     bool // it belongs to another manager
}

// Error implements error.
func (e *NestedError) Error() string {
	if e.Foreign {
		return fmt.Sprintf("sluice: the context is that of transaction %v, of another manager: pass one from outside of it", e.Transaction)
	}
	return fmt.Sprintf("sluice: the context is that of transaction %v, which is open: use Run to be a part of it", e.Transaction)
}

// ClosedError says that the manager has been closed: no transaction begins, and one that had not ended in time
// has been rolled back.
type ClosedError struct{}

// Error implements error.
func (e *ClosedError) Error() string { return "sluice: the transaction manager is closed" }

// LeaseError is why a transaction has been rolled back that has lasted for too long.
type LeaseError struct {
	Transaction uuid.UUID
	Lease       time.Duration
}

// Error implements error.
func (e *LeaseError) Error() string {
	return fmt.Sprintf("sluice: transaction %v has not ended within %v", e.Transaction, e.Lease)
}
