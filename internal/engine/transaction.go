package engine

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/sluice-go/sluice/internal/waitgraph"
	"github.com/sluice-go/sluice/mailbox"
)

// Transaction is a transaction as the objects know it. Its requests are those that are made with its
// context, at objects that take part: when their bodies have ended, the objects retain them until the
// end of the transaction.
//
//	       Join                  Undo                      Quiesce            Undone      Release
//	open ────────► a request ───────────► its body has ended … ────► at rest ──────────────────────► over
//	               runs or waits          and it is retained                   (if rolled back)
//
// In the call chain, and in the graph of waits, a transaction is a body that runs in no object, and has
// called those that are made with its context. It blocks what conflicts with a request of its that runs
// or is retained.
//
// # What may touch the state
//
// What has been done is undone under the same footprints: an object retains the request until Release.
// So no body runs beside Undone which would conflict with the body that is undone; Quiesce has waited
// for those of the transaction itself. Undone takes mu of the transaction after the body that has left
// the step took it, and Release takes mu of the object before anything starts that conflicts.
//
// # Order of locks
//
// The mu of a transaction is taken under graph, and under that of a mailbox, and nothing is taken under it.
type Transaction struct {
	// Age orders transactions by their beginning: the younger has the greater.
	Age uint64
	Owner

	frame  Frame   // the root of the call chains of its requests
	r      Request // the Record of what is retained
	box    Mailbox // in which frame runs, and nothing else does
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	first    *participation
	last     *participation
	steps    []Step
	open     int               // requests that have been made and have not ended
	rest     chan struct{}     // closed when there are none; nil unless Quiesce waits for that
	posted   map[*Request]bool // those of them that no caller waits for
	resting  bool              // Quiesce waits for them, and has a wait in the graph
	cause    error             // why it can only be rolled back; nil if it can be committed
	ended    error             // why it takes no more requests
	frozen   bool              // its end is being decided
	gone     bool              // Release has been called, and returned
	released chan struct{}     // closed then; nil unless something waits for it

	// Room for what a small transaction needs.
	atRoom   [2]participation
	stepRoom [2]Step
}

// Owner is what a transaction belongs to.
type Owner interface {
	// String names the transaction in explanations and errors.
	String() string
	// Choose returns which of several transactions in a circle of waits is rolled back; that of the
	// transaction is asked whose wait closes the circle, or of one of the others. It must neither wait nor
	// call an object.
	Choose(circle []*Transaction) *Transaction
	// Doomed is called once, on a goroutine of its own, when the transaction can only be rolled back.
	Doomed(cause error)
}

// participation is an object that has been called on behalf of a transaction.
type participation struct {
	box  *Mailbox
	as   mailbox.Transaction
	next *participation
}

// Step is what a body has done on behalf of a transaction.
type Step struct {
	Box *Mailbox
	// Undoes undoes it.
	Undoes Undoer
	// Saves says that it is a copy of the state before the body.
	Saves bool
}

// Undoer undoes what a body has done. Undo returns an error if it cannot; it must neither panic nor end the
// goroutine.
type Undoer interface{ Undo() error }

// inNothing is the configuration of the mailboxes of transactions.
var inNothing = &Config{Rules: &mailbox.Rules{Operations: make([]mailbox.Operation, 1)}}

// Start begins the transaction. It returns the context of its requests, which is derived from ctx and
// ends with the transaction.
func (t *Transaction) Start(ctx context.Context) context.Context {
	outer := ChainOf(ctx)
	inner, cancel := context.WithCancelCause(Tame(ctx))
	t.cancel = cancel
	t.box.config, t.box.host = inNothing, nowhere{}
	t.frame = Frame{Context: inner, parent: outer, box: &t.box, r: &t.r, tame: true, tx: t}
	if !Tamed(ctx) { // its values are those of the caller's own context
		t.frame.Context, t.frame.tame = withValues{inner, ctx}, false
	}
	t.r.Record, t.r.frame = &t.r, &t.frame
	t.r.box.Store(&t.box)
	return &t.frame
}

// withValues is a context with the values of another one.
type withValues struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (c withValues) Value(key any) any {
	if key == parentKey {
		return c.Context.Value(key)
	}
	return c.values.Value(key)
}

// TransactionOf returns the transaction that requests made with ctx belong to, or nil. It may be over.
func TransactionOf(ctx context.Context) *Transaction {
	f, tame := innermost(ctx)
	if !tame {
		f, _ = ctx.Value(frameKey{}).(*Frame)
	}
	if f == nil {
		return nil
	}
	return f.tx
}

// Outermost reports whether ctx is in no body that the transaction has called.
func (t *Transaction) Outermost(ctx context.Context) bool {
	f := ChainOf(ctx)
	return f == nil || f.tx != t || f == &t.frame
}

// Join says that a request is made on behalf of the transaction, which Left ends. It fails if the
// transaction takes none any more. As long as Quiesce waits for some, these may make others.
func (t *Transaction) Join() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil && (t.cause != nil || t.open == 0) {
		return t.ended
	}
	t.open++
	return nil
}

// Left says that a request of the transaction has ended.
func (t *Transaction) Left() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left()
}

func (t *Transaction) left() {
	if t.open--; t.open == 0 && t.rest != nil {
		close(t.rest)
		t.rest = nil
	}
}

// post notes that r, which has joined, has been posted, and unpost that it has ended.
func (t *Transaction) post(r *Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.posted == nil {
		t.posted = map[*Request]bool{}
	}
	t.posted[r] = true
}

// unpost takes graph if Quiesce waits: then a search may be looking at r, whose record is about to be that of
// another request.
func (t *Transaction) unpost(r *Request) {
	t.mu.Lock()
	if t.resting {
		t.mu.Unlock()
		graph.Lock()
		defer graph.Unlock()
		t.mu.Lock()
	}
	defer t.mu.Unlock()
	delete(t.posted, r)
	t.left()
}

// At returns what the transaction is at an object that takes part.
func (t *Transaction) At(m *Mailbox) *mailbox.Transaction {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := t.first; p != nil; p = p.next {
		if p.box == m {
			return &p.as
		}
	}
	var p *participation
	switch {
	case t.first == nil:
		p = &t.atRoom[0]
		t.first = p
	case t.last == &t.atRoom[0]:
		p = &t.atRoom[1]
		t.last.next = p
	default:
		p = new(participation)
		t.last.next = p
	}
	p.box, p.as.Named, p.as.Record = m, t.Owner, &t.r
	t.last = p
	return &p.as
}

// Undo adds what a body has done. It is called before the body ends for the scheduler.
func (t *Transaction) Undo(s Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.steps == nil {
		t.steps = t.stepRoom[:0]
	}
	t.steps = append(t.steps, s)
}

// Steps returns how much has been done, and can be undone: the work of the transaction.
func (t *Transaction) Steps() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.steps)
}

// Saved reports whether a copy of the object's state has been added.
func (t *Transaction) Saved(m *Mailbox) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.steps, func(s Step) bool { return s.Box == m && s.Saves })
}

// Objects returns the objects that take part.
func (t *Transaction) Objects() []*Mailbox {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*Mailbox
	for p := t.first; p != nil; p = p.next {
		all = append(all, p.box)
	}
	return all
}

// Cause returns why the transaction can only be rolled back; nil if it can be committed.
func (t *Transaction) Cause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

// Ended returns why the transaction takes no more requests; nil if it does.
func (t *Transaction) Ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// Doom says that the transaction can only be rolled back, and why. It takes no more requests, and those
// that wait leave their queues. Only the first call counts. It reports false if that comes too late, as the end
// is being decided, or has come. Doom may be called with any lock held.
func (t *Transaction) Doom(cause error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.frozen || t.frame.over.Load() {
		return false
	}
	if t.cause != nil {
		return true
	}
	t.cause = cause
	if t.ended == nil {
		t.ended = cause
	}
	go func() { // functions of other packages may be called when a context ends
		t.cancel(cause)
		t.Doomed(cause)
	}()
	return true
}

// Freeze says that the end is about to be decided. From then on the transaction cannot be doomed. It fails if the
// transaction can only be rolled back, with the cause.
func (t *Transaction) Freeze() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frozen = t.cause == nil
	return t.cause
}

// Quiesce lets the transaction take no more requests, which fail with the error, and waits until those
// that there are have ended. If the transaction can still be committed, it returns the context's error if that ends
// first; or, if the requests wait for what waits for the transaction, and it is to be rolled back for that, a
// *DeadlockError.
func (t *Transaction) Quiesce(ctx context.Context, ended error) error {
	t.mu.Lock()
	if t.ended == nil {
		t.ended = ended
	}
	if t.open == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.rest == nil {
		t.rest = make(chan struct{})
	}
	rest := t.rest
	if t.cause != nil { // those that wait leave their queues, so that it comes to rest
		t.mu.Unlock()
		<-rest
		return nil
	}
	t.resting = true
	t.mu.Unlock()
	r := &resting{t: t, aborted: make(chan error, 1)}
	w, err := t.frame.enter(r, r)
	defer func() {
		w.leave()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.resting = false
	}()
	if err != nil {
		return err
	}
	defer comesBack(leaves(ctx))
	select {
	case <-rest:
		return nil
	case err := <-r.aborted:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// resting is what a transaction waits for that is about to end: its posted requests.
type resting struct {
	t       *Transaction
	aborted chan error
}

// cancel implements canceler.
func (r *resting) cancel(error) bool { return true }

// abort implements canceler.
func (r *resting) abort(err error) { r.aborted <- err }

// Pending implements waitgraph.Goal.
func (r *resting) Pending() bool {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	return r.t.open > 0
}

// Parts implements waitgraph.Join.
func (r *resting) Parts() iter.Seq[waitgraph.Goal] {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	var all []waitgraph.Goal
	for p := range r.t.posted {
		all = append(all, p)
	}
	return slices.Values(all)
}

// First implements waitgraph.Join.
func (r *resting) First() bool { return false }

// Undone undoes what has been done, in reverse order, as it has been decided that the transaction is rolled back. It
// returns the errors of steps that could not be undone. Nothing may run on behalf of the transaction.
func (t *Transaction) Undone() (failed []error) {
	for {
		t.mu.Lock()
		t.frozen = false
		last := len(t.steps) - 1
		if last < 0 {
			t.mu.Unlock()
			return failed
		}
		s := t.steps[last]
		t.steps[last] = Step{}
		t.steps = t.steps[:last]
		t.mu.Unlock()
		if err := s.Box.undo(s.Undoes); err != nil {
			failed = append(failed, err)
		}
	}
}

// undo undoes something on a thread of the object, or on a worker, which it may end. An object that has ended has no
// threads any more. One that has not does not end before the transaction has let go of it: see undoes.
func (m *Mailbox) undo(do Undoer) error {
	u := &undoing{do: do, done: make(chan struct{})}
	m.mu.Lock()
	by := m.workers()
	if c := m.closed; c != nil && c.over {
		by = m.config.Workers
	}
	m.mu.Unlock()
	by.Dispatch(u)
	<-u.done
	return u.err
}

// errUndoExited is the error of what does not return from being undone.
var errUndoExited = errors.New("sluice: it ended its goroutine (runtime.Goexit) while it was undone")

// undoing is something that is undone on a thread.
type undoing struct {
	do   Undoer
	err  error
	done chan struct{}
}

// Run implements Task.
func (u *undoing) Run() {
	defer close(u.done)
	u.err = errUndoExited // unless Undo returns
	u.err = u.do.Undo()
}

// over returns a channel that is closed when the objects do not retain requests of the transaction any more.
func (t *Transaction) over() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.released == nil {
		if t.released = make(chan struct{}); t.gone {
			close(t.released)
		}
	}
	return t.released
}

// Release ends the transaction: the objects do not retain its requests any more, and what waited for
// that can start. Changed says that something has been undone.
func (t *Transaction) Release(changed bool) {
	t.mu.Lock()
	all, ended := t.first, t.ended
	t.frame.over.Store(true)
	t.steps = nil
	t.mu.Unlock()
	defer func() {
		t.cancel(ended)
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.gone = true; t.released != nil {
			close(t.released)
		}
	}()
	release(all, changed)
}

// release is Release at the objects, the rest of them also if a guard that is evaluated at one ends the
// goroutine.
func release(at *participation, changed bool) {
	if at != nil {
		defer release(at.next, changed)
		at.box.releaseRetained(&at.as, changed)
	}
}

// releaseRetained lets go of what the object retains on behalf of a transaction.
func (m *Mailbox) releaseRetained(as *mailbox.Transaction, changed bool) {
	m.mu.Lock()
	k := m.scheduler()
	owner := m.engage()
	k.Release(as, changed)
	switch {
	case !owner:
		m.changed()
		m.mu.Unlock()
	case m.config.Dispatcher != nil:
		m.changed()
		m.mu.Unlock()
		m.config.Dispatcher.Dispatch(m)
	default:
		m.serve(nil, 0, false) // no bodies of others: one might end the goroutine, which has more to do
	}
}

// held returns what r, which waits at m, waits for, and what its transaction keeps waiting meanwhile; nil if it
// has no transaction, or that is to be rolled back.
func (r *Request) held(m *Mailbox) *mailbox.WaitError {
	if !m.config.Rules.Transactional {
		return nil
	}
	t := TransactionOf(r.ctx) // and not r.Transaction: rare is guarded by mu while r waits
	if t == nil || t.Cause() != nil {
		return nil
	}
	e := &mailbox.WaitError{Object: m.Name(), Operation: m.config.Rules.Operations[r.Op].Name, Transaction: t.Owner.String()}
	e.Reason, _ = r.why()
	for other := range t.KeepsWaiting() {
		if e.KeepsWaiting = append(e.KeepsWaiting, other.Name()); len(e.KeepsWaiting) == mostKept {
			break
		}
	}
	return e
}

// mostKept is how many requests that a transaction keeps waiting a WaitError names.
const mostKept = 8

// KeepsWaiting yields the requests that wait for what the transaction holds.
func (t *Transaction) KeepsWaiting() iter.Seq[mailbox.WaitingAt] {
	return func(yield func(mailbox.WaitingAt) bool) {
		id := t.Owner.String()
		for _, m := range t.Objects() {
			for _, w := range m.Explain().Waiting {
				if w.Reason.HeldBy(id) && !yield(mailbox.WaitingAt{Object: m.Name(), Waiting: w}) {
					return
				}
			}
		}
	}
}

// retain tells the scheduler that a body which has come by the fast path has ended, and is retained. Unknown says
// that the scheduler has not been told of it. The caller owns the object, and holds mu.
func (m *Mailbox) retain(unknown bool, l *Leaving) {
	k := m.scheduler()
	if unknown {
		k.Begin(l.Op)
	}
	k.EndFor(l.Op, l.Opens, l.For)
}

// retains reports whether the object retains any request. The caller holds mu.
func (m *Mailbox) retains() bool {
	k := m.queues.Load()
	return k != nil && k.Retains()
}

// holders returns the transactions on whose behalf the object retains requests. The caller holds mu.
func (m *Mailbox) holders() (all []*Transaction) {
	k := m.queues.Load()
	if k == nil || !k.Retains() {
		return nil
	}
	for r := range k.Running() {
		if t := r.Record.(*Request).frame; r.State() == mailbox.StateRetained && !slices.Contains(all, t.tx) {
			all = append(all, t.tx)
		}
	}
	return all
}

// undoes reports whether a transaction holds the object that is to be rolled back. The end of the object waits for
// that, as it may take a thread of the object. The caller holds mu.
func (m *Mailbox) undoes() bool {
	return slices.ContainsFunc(m.holders(), func(t *Transaction) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return !t.frozen
	})
}

// stopped dooms the transactions that hold the object, which is stopped. The caller holds mu.
func (m *Mailbox) stopped() {
	k := m.queues.Load()
	if k == nil || !k.Transacts() {
		return
	}
	for r := range k.Running() { // and will be retained
		if t := transactionOf(r); t != nil {
			t.Record.(*Request).frame.tx.Doom(&mailbox.StateLostError{Object: m.host.Name(), What: "stopped"})
		}
	}
}

// restarts dooms the transactions that hold the object, which is about to be restarted, and waits until they
// have been rolled back, and so have released it. One whose end is being decided is not waited for: what it
// has done here is forgotten, as the state is. The caller holds mu, which is released meanwhile.
func (m *Mailbox) restarts() {
	for _, t := range m.holders() {
		if !t.Doom(&mailbox.StateLostError{Object: m.host.Name(), What: "restarted"}) {
			as := t.At(m)
			t.mu.Lock()
			t.steps = slices.DeleteFunc(t.steps, func(s Step) bool { return s.Box == m })
			t.mu.Unlock()
			m.scheduler().Release(as, true)
			continue
		}
		m.mu.Unlock()
		<-t.over()
		m.mu.Lock()
	}
}

// String implements fmt.Stringer.
func (t *Transaction) String() string { return "transaction " + t.Owner.String() }

// root reports whether f is no body but a transaction.
func (f *Frame) root() bool { return f.tx != nil && f == &f.tx.frame }

// blocking appends the nodes of what blocks others by r, which runs or is retained: the body, and the
// transaction that r belongs to, which will retain it; unless the others belong to that, too.
func blocking(nodes []*waitgraph.Node, r *mailbox.Request, others *mailbox.Transaction) []*waitgraph.Node {
	f := r.Record.(*Request).frame
	nodes = f.appendTo(nodes)
	if t := transactionOf(r); t != nil && t != others && r.State() == mailbox.StateRunning {
		nodes = t.Record.(*Request).frame.appendTo(nodes)
	}
	return nodes
}

// transactionOf returns the transaction of r at its object, or nil.
func transactionOf(r *mailbox.Request) *mailbox.Transaction {
	if r.Claim == nil {
		return nil
	}
	return r.Claim.Transaction
}

// victim returns the transaction that is to be rolled back to break a circle that w has closed; nil if
// there is none in the circle.
func (w *waiter) victim(circle []waitgraph.Link) *Transaction {
	var all []*Transaction
	add := func(f *Frame) {
		if t := f.tx; t != nil && !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	for _, link := range circle {
		if link.Waits != nil {
			add(link.Waits.Body().(*Frame))
		}
	}
	if len(all) == 0 {
		return nil
	}
	choose := all[0].Choose
	if own := w.From().Body().(*Frame).tx; own != nil {
		choose = own.Choose
	}
	return choose(all)
}

// sacrifices erases the waits of the transaction in a circle, and adds their waiters to those that are to
// be aborted. It reports false if there is none that can be canceled. The caller holds graph.
func (t *Transaction) sacrifices(circle []waitgraph.Link, err *mailbox.DeadlockError, broken *[]*waiter) (some bool) {
	for _, link := range circle {
		if link.Waits == nil || link.Waits.Body().(*Frame).tx != t {
			continue
		}
		for _, wait := range slices.Clone(link.Waits.Waits()) {
			w := wait.Owner.(*waiter)
			if w.by != nil && !w.by.cancel(err) {
				continue
			}
			w.erase()
			w.err = err
			*broken = append(*broken, w)
			some = true
		}
	}
	return some
}
