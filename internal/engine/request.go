package engine

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// Body is the typed part of a request: the operation with its arguments, and
// room for the result.
type Body interface {
	// Run executes the operation and keeps its result. A panic must not leave
	// it; if runtime.Goexit does, it calls Request.Exit on the way.
	Run()
	// AskGuard evaluates the guard over the request's argument, and returns the part
	// of it that is false. It may panic.
	AskGuard() (falsePart string)
	// Fail keeps err as the result of a request that will not run.
	Fail(err error)
	// Argument returns the request's argument.
	Argument() any
	// Recycle is called when the request has ended. Afterwards only the result is read, and only
	// if the request was posted. A record that will not be used again calls Request.Release.
	Recycle()
}

// Request is one call on its way through a mailbox. The code that makes it fills in the exported
// fields. It can be used again once it has ended.
type Request struct {
	Body Body
	mailbox.Request

	ctx     context.Context          // the caller's, tamed (T1)
	since   time.Duration            // when the request arrived, on Now's clock
	frame   *Frame                   // of a body that may call other objects
	waits   atomic.Pointer[waitList] // of bodies that wait for the request, which was posted; written under graph
	unwatch func() bool              // ends the watch over ctx, if that may end; guarded by mu until the request runs
	wake    chan struct{}            // if tokens is set: gets a token when the request is granted, or has ended

	// To withdraw one of very many requests takes as long as to fetch from memory what the
	// withdrawal reads. So what it reads is together: in the fields from here on, in the error
	// that follows the Request in a Pending, and at the beginning of the scheduler's request.

	// Leaf bodies neither block nor call out, so that any goroutine may run
	// them on behalf of their caller.
	Leaf bool
	// Told says that no goroutine waits for the end of the request.
	Told bool
	// Ticket says that the request is posted, and that a token tells its end to the goroutine
	// that calls Redeem. ForCall has prepared it.
	Ticket bool

	tokens bool    // the request has a caller in Call or Select, or a Ticket: it is told by a token
	sender replies // what waits for the request, though it is Told

	granted bool // the token says: run, as the owner; or, at a parallel object, run
	ended   bool // the request has ended, as its caller knows, whose goroutine alone uses this
	lapsed  lapse
	ends    bool // ctx may end

	committed bool // may not be withdrawn any more
	underWay  bool // posted, and about to be admitted by another object
	overdue   bool // has been reported to wait for too long

	stage atomic.Uint32 // which goroutine runs it, once it has been granted at a parallel object: see grant

	// box is the mailbox that the request is in, or was in last. A posted request that is requeued
	// goes from one to another. Box changes under the mu of the mailbox that the request leaves;
	// what the scheduler knows of the request changes under the mu of the one that it is in. So a
	// goroutine that has locked the box, and finds box unchanged, may read that: see lock.
	box  atomic.Pointer[Mailbox]
	rare *rare // nil unless the record has needed it, for this request or an earlier one

	Completion // of a Post
}

// lapse says what is known of the end of a request's context.
type lapse uint8

const (
	early   lapse = 1 << iota // it came before any body ran
	unasked                   // the Err of the context is yet to be called (T3)
)

// replies says what waits for the reply to a request that is Told.
type replies uint8

const (
	answered replies = 1 << iota // the sender of the message that the request came by
	followed                     // a body may wait for what follows from the request
)

// rare is what few requests have. It may be used where the request may be.
type rare struct {
	sel   *Selection         // the selection that the request belongs to
	view  *mailbox.Candidate // the request as its policy sees it, if Config.Views
	hop   *Hop               // the requeue that its body has asked for as it returned, or suspended
	rest  *Rest              // of its body, which has suspended; guarded by mu, and kept until the next turn
	trail *trail             // its history, if it has been requeued
	kept  *trail             // the same, or that of an earlier request with this record
	// thread is reserved for the request, at a parallel object; guarded by mu.
	thread *thread
	tx     *Transaction // that the request has joined
	posted bool         // and it was not known then that its caller waits for it
}

// special returns what few requests have. R gets it if it has none.
func (r *Request) special() *rare {
	if r.rare == nil {
		r.rare = new(rare)
	}
	return r.rare
}

// selection returns the selection that r belongs to, or nil.
func (r *Request) selection() *Selection {
	if r.rare == nil {
		return nil
	}
	return r.rare.sel
}

// hop returns the requeue that r's body has asked for as it returned, until board applies it; or
// nil.
func (r *Request) hop() *Hop {
	if r.rare == nil {
		return nil
	}
	return r.rare.hop
}

// trail returns the history of r, if it has been requeued, or nil.
func (r *Request) trail() *trail {
	if r.rare == nil {
		return nil
	}
	return r.rare.trail
}

// thread returns the thread that is reserved for r, or nil. The caller holds mu.
func (r *Request) thread() *thread {
	if r.rare == nil {
		return nil
	}
	return r.rare.thread
}

// trail is the history of a request that has been requeued.
type trail struct {
	home Body  // that with which the request was made
	ran  Turns // the bodies that have run
	room [2]turn
}

// Init prepares the parts of a request that survive its reuse.
func (r *Request) Init(body Body) {
	r.Body = body
	r.Record = r
}

// ForCall makes r a request for which its caller waits with Mailbox.Call or, if it has a Ticket,
// with Redeem. Now is the time. A record that has a channel keeps it, except in a testing/synctest
// bubble, as the channel may have been made outside of it.
func (r *Request) ForCall(now time.Duration) {
	if !r.tokens || Bubbled(now) {
		r.wake, r.tokens = make(chan struct{}, 1), true
	}
}

// called reports whether the caller's goroutine waits for r in Mailbox.Call or Selection.Select,
// and so can run r's body. No goroutine need wait for a request with a Ticket.
func (r *Request) called() bool { return r.tokens && !r.Ticket }

// Forget drops what belonged to a call, so that the record can be kept for another. It keeps the
// box: the next call is probably to the same object, and an atomic store is expensive.
func (r *Request) Forget() {
	r.ctx = nil
	if r.frame != nil {
		r.frame = nil
	}
	if r.rare != nil {
		r.Body = r.Home()
		if r.rare.sel != nil {
			r.wake, r.tokens = nil, false // the channel is the selection's
		}
		kept := r.rare.kept
		if r.rare.trail != nil {
			*kept = trail{}
		}
		*r.rare = rare{kept: kept}
	}
	r.Fresh()
}

// Release drops what belonged to the request, which has ended. So a future that is kept for its
// result keeps no argument, context or object.
//
// The calling goroutine is the last that acts on the request. Others may still try to withdraw
// it, or look where it is. They find it in a mailbox that belongs to no object, and read nothing
// but its state, which says that it has ended. They do not miss that: either they have locked the
// box that it was in, under whose mu the state was written; or they have seen the new box, which
// is stored last.
func (r *Request) Release() {
	r.ctx, r.frame, r.Key, r.Claim = nil, nil, nil, nil
	if r.rare != nil {
		r.Body, r.rare = r.Home(), nil
	}
	if m := r.box.Load(); m != nil {
		r.box.Store(m.config.nowhere)
	}
}

// at makes m the box of the request, which is in no other mailbox.
func (r *Request) at(m *Mailbox) {
	if r.box.Load() != m {
		r.box.Store(m)
	}
}

// Recycle says that the request is not used any more.
func (r *Request) Recycle() { r.Home().Recycle() }

// Context returns the context of the request's caller.
func (r *Request) Context() context.Context { return original(r.ctx) }

// Lapsed reports whether err, with which the request has ended, is that of its context.
func (r *Request) Lapsed(err error) bool {
	return err != nil && (r.lapsed&early != 0 || err == r.ctx.Err())
}

// String names the request: object and operation.
func (r *Request) String() string {
	m := r.lock()
	defer m.mu.Unlock()
	return m.nameOf(r)
}

// Names returns the names of the object and the operation of the request, and its arrival. Of
// a request that has ended and was posted only the turn that followed from it, if it is not
// nil, knows the object.
func (r *Request) Names(t *Turn) (object, operation string, arrival uint64) {
	m := r.lock()
	defer m.mu.Unlock()
	if t != nil && t.of == r {
		return t.at.host.Name(), t.at.config.Rules.Operations[r.Op].Name, r.Arrival()
	}
	return m.host.Name(), m.config.Rules.Operations[r.Op].Name, r.Arrival()
}

// Workers returns the workers of the object that the request is at.
func (r *Request) Workers() Dispatcher { return r.box.Load().config.Workers }

// nameOf names a request of this object. The caller holds mu.
func (m *Mailbox) nameOf(r *Request) string {
	return m.host.Name() + "." + m.config.Rules.Operations[r.Op].Name
}

// lock locks the mailbox that the request is in, and returns it.
func (r *Request) lock() *Mailbox {
	for {
		m := r.box.Load()
		m.mu.Lock()
		if r.box.Load() == m {
			return m
		}
		m.mu.Unlock()
	}
}

// fail keeps err as the result of the request, which is not to run. The calling goroutine is the
// only one that acts on the request.
func (r *Request) fail(err error) {
	if err == errEnded {
		r.lapsed |= unasked
		return
	}
	err = mailbox.Named(err, func() string { return r.box.Load().host.Name() })
	if t := r.trail(); t != nil {
		err = t.ran.Failed(err)
	}
	r.Body.Fail(err)
}

// lapse is fail for a request whose context has ended.
func (r *Request) lapse(err error) {
	r.lapses()
	r.fail(err)
}

// lapses notes that the context of r has ended, before r is failed.
func (r *Request) lapses() {
	if r.lapsed = 0; r.trail() == nil {
		r.lapsed = early
	}
}

// conclude fails a request whose context has ended and has yet to be asked for its error (T3). It
// is called by the caller's goroutine, which holds nothing.
func (r *Request) conclude() {
	if r.lapsed&unasked != 0 {
		r.lapsed &^= unasked
		r.fail(ended(r.ctx))
	}
}

// conclusion is conclude and settle for a request that was posted, on a worker.
type conclusion Request

// Run implements Task.
func (c *conclusion) Run() {
	r := (*Request)(c)
	r.lapsed &^= unasked
	Ended(r.ctx, r.box.Load().nameOf(r), func(err error) {
		r.fail(err)
		r.settle()
	})
}

// gone returns why the request is to be withdrawn: the error of its context, if that has ended,
// or that of Config.Unwanted, if its sender has gone. Of a committed request it returns nil.
func (r *Request) gone() error {
	if !r.ends && r.sender&answered == 0 || r.committed {
		return nil
	}
	return r.unwanted()
}

// unwanted is gone for a request that is not committed.
func (r *Request) unwanted() error {
	if r.sender&answered != 0 {
		if err := r.box.Load().config.Unwanted(r); err != nil {
			return err
		}
	}
	if !r.ends {
		return nil
	}
	return r.ctx.Err()
}

// Transaction returns the transaction that r has joined, or nil.
func (r *Request) Transaction() *Transaction {
	if r.rare == nil {
		return nil
	}
	return r.rare.tx
}

// JoinTransaction makes r, which is about to be handed in, a request of the transaction. It fails if that
// takes none any more.
func (r *Request) JoinTransaction(t *Transaction) error {
	err := t.Join()
	if err == nil {
		r.special().tx = t
		if r.rare.posted = !r.called(); r.rare.posted {
			t.post(r)
		}
	}
	return err
}

// LeaveTransaction says that r has ended, if it has joined a transaction. For a request that is posted that
// is done when it ends.
func (r *Request) LeaveTransaction() {
	t := r.Transaction()
	if t == nil {
		return
	}
	if r.rare.tx = nil; r.rare.posted {
		t.unpost(r)
	} else {
		t.Left()
	}
}

// Answers says whether r, which is Told, has come by message from a sender that waits for the
// reply. If so, Config.Unwanted is asked about it.
func (r *Request) Answers(sender bool) {
	r.sender = 0
	if sender {
		r.sender = answered
	}
}

// started is when this process began, on a clock outside of any synctest bubble.
var started = time.Now()

// Now returns the time since the process began. It is the clock of all ages.
func Now() time.Duration { return time.Since(started) }

// Bubbled reports whether a reading of Now was taken inside a testing/synctest
// bubble. What is pooled must not be used both inside and outside of a bubble: a channel that is
// kills the process. A bubble's clock starts in the year 2000, long before this process did;
// outside of bubbles Now is monotonic and never negative. (A bubble that has slept for decades is
// not recognized.)
func Bubbled(now time.Duration) bool { return now < 0 }

// Call hands in a request and waits until it has ended; its result is with its body then. If the
// context ends while the request waits, the request leaves its queue, never runs, and fails with
// the context's error at once.
func (m *Mailbox) Call(ctx context.Context, r *Request, now time.Duration) {
	r.Prepare(ctx, now)
	m.mu.Lock()
	r.at(m) // for fail
	if c := m.closed; c != nil {
		err := c.err // a Close after a Drain may change it
		m.mu.Unlock()
		r.fail(err)
		return
	}
	if err := m.reentered(r); err != nil {
		m.mu.Unlock()
		r.fail(err)
		return
	}
	m.call(r, m.engage(), "")
	r.follow()
}

// CallHeld is Call for an entry for which the calling goroutine has taken the object on the fast
// path, and whose guard is false. CallHeld ends the ownership.
func (m *Mailbox) CallHeld(ctx context.Context, r *Request, falsePart string, now time.Duration) {
	if m.config.Parallel != nil {
		m.Yield(Leaving{Op: r.Op})
		m.Call(ctx, r, now)
		return
	}
	r.Prepare(ctx, now)
	m.mu.Lock()
	m.disown(r.Op)
	m.call(r, true, falsePart)
	r.follow()
}

// disown makes the scheduler forget the operation for which the calling goroutine has taken the
// object on the fast path, if the scheduler has been told of it: no body has run. The goroutine
// still owns the object, and holds mu. The word need not be engaged before arrive makes it so: until
// then nothing is called that could end the goroutine, as Come evaluates no guard if it is given the
// false part of one.
func (m *Mailbox) disown(op int) {
	if m.Word.Load().Has(word.Engaged) {
		m.scheduler().Abandon(op)
	}
}

// call hands in a request and waits for it: see arrive and wait. It is called with mu held, and
// returns with mu released.
func (m *Mailbox) call(r *Request, owner bool, falsePart string) {
	if m.arrive(r, owner, falsePart) { // r may have ended, but its record is reused only by this goroutine
		m.serve(r, m.helpLimit(ChainOf(r.ctx) == nil), false)
	}
	m.wait(r)
}

// wait waits until a request that has arrived has ended, or has to go on at another object: see
// follow. If the request is granted, wait runs its body; if that asks to be requeued here, wait
// goes on waiting.
func (m *Mailbox) wait(r *Request) {
	if r.ended {
		return
	}
	chain := ChainOf(r.ctx)
	if chain != nil {
		w, err := chain.enter(r, r)
		defer w.leave()
		if err != nil { // r has left its queue
			r.fail(err)
			return
		}
	} else if m.config.helps() {
		m.help(r)
	}
	for !r.ended && m.awaitToken(r) {
		m.told(r, chain)
	}
}

// awaitToken waits for the token of r. It reports false if the context of r has ended before, and r has left its queue.
func (m *Mailbox) awaitToken(r *Request) (token bool) {
	defer comesBack(leaves(r.ctx))
	if !r.ends {
		<-r.wake
		return true
	}
	select {
	case <-r.wake:
		return true
	case <-r.ctx.Done():
	}
	held := r.held(m)
	if !m.Withdraw(r) {
		// It runs, or has been granted, or may not be withdrawn: there will be a token.
		<-r.wake
		return true
	}
	if held == nil {
		r.fail(r.ctx.Err())
	} else {
		held.Cause = ended(r.ctx)
		r.lapse(held)
	}
	return false
}

// told acts on the token of r, which has been taken: if r has been granted, told runs its body,
// unless a helper has, and completes r. It reports false if r has been granted and does not run,
// as its context has ended.
func (m *Mailbox) told(r *Request, chain *Frame) bool {
	r.ended = true // no token is due, and Forsake has nothing to do
	if !r.granted {
		return true
	}
	switch r.outcome() {
	case done:
		return true
	case own: // this goroutine runs the body; it owns the object, unless that is parallel
		if err := r.gone(); err != nil {
			m.mu.Lock()
			m.scheduler().Decline(&r.Request)
			m.goOnServing(r, r.frame, nil, 0) // no others here: the call is to return at once
			r.lapse(err)
			return false
		}
		r.Body.Run()
	}
	m.mu.Lock()
	self, may, f := r, chain == nil, r.frame
	if r.granted = false; m.over(r) {
		self, may = nil, may && r.hop() == nil // with a hop r first goes on at another object
	} else {
		r.ended = false
	}
	m.goOnServing(r, f, self, m.helpLimit(may))
	return true
}

// goOnServing is serve for the goroutine on which r has run, with the frame f. R has left the
// running queue. The goroutine owns the object, unless that is parallel.
func (m *Mailbox) goOnServing(r *Request, f *Frame, self *Request, budget int) {
	m.serveIf(m.config.Parallel == nil || m.left(r, f), self, budget)
}

// over tells the scheduler that the body of r has returned, and requeues r if the body asks for
// that here. It reports false if r waits here again. (A request whose context has ended fails
// instead.) The caller owns the object, unless that is parallel, and holds mu.
func (m *Mailbox) over(r *Request) bool {
	if h := r.hop(); h != nil && (h.Box == nil || h.Box == m) {
		return !m.requeue(r, h)
	}
	m.scheduler().Complete(&r.Request)
	return true
}

// Prepare makes r a new request, which is about to be handed in.
func (r *Request) Prepare(ctx context.Context, now time.Duration) {
	r.ctx = Tame(ctx)
	r.ends, r.since = r.ctx.Done() != nil, now
	r.granted, r.ended, r.committed, r.lapsed = false, false, false, 0
}

// present makes r a request of this object. The caller holds mu.
func (m *Mailbox) present(r *Request) {
	if r.at(m); m.config.noted {
		m.note(r)
	}
}

// note takes down what the object's configuration wants to be known of each request: see
// Config.noted.
func (m *Mailbox) note(r *Request) {
	if m.config.Rank != nil || m.config.Views {
		m.appraise(r)
	}
	if m.config.Patience > 0 {
		r.overdue = false
	}
	if m.config.Rules.Reentrant && r.called() {
		m.nest(r)
	}
}

// arrive hands r to the scheduler. It is called with mu held, after engage or by the owner; owner
// says that the caller owns the object, and may evaluate guards. It may know that the guard of r is
// false as the state is: then falsePart is the part of the guard that is, and else it is empty.
// Arrive reports whether the owner is to serve the object, with mu held. Else mu is released, and
// the owner is none any more.
//
// If r is posted and Told, it may have ended when arrive returns, and its record may be that of
// another request: requests that find a queue full are told so here, with mu released meanwhile.
func (m *Mailbox) arrive(r *Request, owner bool, falsePart string) (serve bool) {
	m.present(r)
	posted := !r.called()
	if posted {
		r.heed()
	} else if s := r.selection(); s != nil && r.ends && s.watched && s.winner.Load() == nil {
		r.unwatch = context.AfterFunc(r.ctx, r.expire)
	}
	k := m.scheduler()
	switch parallel := m.config.Parallel; {
	case parallel != nil && parallel.OnArrival && !(parallel.Threads == nil && r.called()):
		k.ArriveAwaitingThread(&r.Request) // the owner gives it a thread, if there is one
	case owner && parallel == nil && m.config.Dispatcher == nil: // a Dispatcher's threads evaluate the guards of its objects
		if k.Come(&r.Request, falsePart) {
			m.release()
			m.mu.Unlock()
			return false
		}
		m.own() // the scheduler knows of all that runs
	default:
		k.Arrive(&r.Request)
	}
	if m.config.Rules.Policy != nil && k.Runs() {
		m.recheck()
	}
	m.changed()
	if m.config.bounded {
		m.report(m.scheduler().Failed) // without waiting for the owner
	}
	switch {
	case !owner:
		backlog := k.Backlog()
		m.mu.Unlock()
		if posted {
			giveWay(backlog)
		}
		return false
	case m.config.Dispatcher != nil:
		m.mu.Unlock()
		m.config.Dispatcher.Dispatch(m)
		return false
	}
	return true
}

// report tells the callers of the requests that failed returns. It is called with mu held, and
// releases it meanwhile. The scheduler has nothing to do with a failed request any more, so that
// the holder of mu need not own the object.
func (m *Mailbox) report(failed func() (*mailbox.Request, error)) {
	for next, err := failed(); next != nil; next, err = failed() {
		r := next.Record.(*Request)
		m.dismissThread(r)
		if !r.claim() {
			continue
		}
		m.mu.Unlock()
		r.retire()
		r.fail(err)
		r.settle()
		m.mu.Lock()
		m.changed()
	}
}

// Post hands in a request without waiting for it. If the context ends while the
// request waits, it leaves its queue and fails with the context's error. An error
// means that the request was not taken and nothing has changed.
func (m *Mailbox) Post(ctx context.Context, r *Request, now time.Duration) error {
	r.Prepare(ctx, now)
	m.mu.Lock()
	if c := m.closed; c != nil {
		err := c.err
		m.mu.Unlock()
		return err
	}
	m.post(r, m.engage(), "")
	return nil
}

// PostHeld is Post for an entry for which the calling goroutine has taken the object on the fast
// path, and whose guard is false. PostHeld ends the ownership.
func (m *Mailbox) PostHeld(ctx context.Context, r *Request, falsePart string, now time.Duration) {
	if m.config.Parallel != nil {
		m.Yield(Leaving{Op: r.Op})
		if err := m.Post(ctx, r, now); err != nil {
			r.at(m)
			r.fail(err)
			r.settle()
		}
		return
	}
	r.Prepare(ctx, now)
	m.mu.Lock()
	m.disown(r.Op)
	m.post(r, true, falsePart)
}

// post hands in a request, and serves the object if arrive says so. It is called with mu held, and
// returns with mu released.
func (m *Mailbox) post(r *Request, owner bool, falsePart string) {
	leaf, chain := r.Leaf, ChainOf(r.ctx)
	switch { // from here on r is only compared with other requests: it may have ended
	case !m.arrive(r, owner, falsePart):
	case leaf:
		m.serve(r, m.helpLimit(chain == nil), false)
	default:
		m.serve(nil, 0, false)
	}
}

// giveWay yields the processor now and then, if very many requests wait. A goroutine that posts
// does not wait, and would use up its time slice, which is long. Meanwhile the goroutine that
// serves the object may be ready to run and not run, and the queue would grow by thousands.
func giveWay(backlog int) {
	const many, often = 64, 32
	if backlog >= many && backlog%often == 0 {
		runtime.Gosched()
	}
}

// heed begins the watch over the context of a posted request, which withdraws the request when the
// context ends. It is called with mu held, before the request can start. So the watch is in place
// before the request runs; what it calls takes mu first.
func (r *Request) heed() {
	if r.ends && r.unwatch == nil {
		ctx := r.ctx // a requeue may give r another one
		r.unwatch = context.AfterFunc(ctx, func() { r.withdrawAll(ctx.Err(), true) })
	}
}

// Withdraw takes a waiting request out of its queue. It reports whether the request was there; if
// so, its body will not run.
func (m *Mailbox) Withdraw(r *Request) bool {
	m.mu.Lock()
	return m.withdraw(r)
}

// withdraw is Withdraw with mu held, and releases it.
func (m *Mailbox) withdraw(r *Request) bool {
	if r.committed {
		m.mu.Unlock()
		return false
	}
	return m.remove(r)
}

// remove is withdraw, also for a committed request.
func (m *Mailbox) remove(r *Request) bool {
	if !m.scheduler().Withdraw(&r.Request) {
		m.mu.Unlock()
		return false
	}
	m.dismissThread(r)
	m.reconsider()
	return true
}

// reconsider has a worker start what can start, after a withdrawal or a new rank, if that may be
// something. If no request waits any more, it clears the flags of the word. It is called with mu
// held, and releases it.
//
// An owner that has taken the object on the fast path would put the flags that it found back into
// the word, and guards of requests that have gone would go on being evaluated. Engage makes it
// come to the scheduler instead.
func (m *Mailbox) reconsider() {
	k := m.scheduler()
	switch {
	case k.NeedsScheduling() && m.engage():
		// Guards over waiting counts see one request less, or another request is the first of
		// its queue. A worker considers them.
		m.changed()
		m.mu.Unlock()
		m.workers().Dispatch(m)
		return
	case m.Word.Load().Has(word.Parked) && !k.Waits() && m.engage():
		m.release()
	default:
		m.changed()
	}
	m.mu.Unlock()
}

// WithdrawAll withdraws a posted request and completes it with err. It reports false if it cannot:
// the request runs or has ended, is committed, or is Told.
func (r *Request) WithdrawAll(err error) bool { return !r.Told && r.withdrawAll(err, false) }

// withdrawAll is WithdrawAll, also for a request that is Told. Ended says that the context of the
// request has ended.
func (r *Request) withdrawAll(err error, ended bool) bool {
	if r.Record == nil { // never: the processor fetches what the scheduler reads, while it still waits for the box
		return false
	}
	m := r.lock()
	if r.underWay {
		left := r.giveUp(err)
		m.mu.Unlock()
		return left
	}
	if !m.withdraw(r) {
		return false
	}
	if ended {
		r.lapses()
	}
	r.fail(err)
	r.settle()
	return true
}

// Exit carries on after a body that left through runtime.Goexit: its request
// fails, and a worker takes over the object from the dying goroutine. It is
// called by the body, in a deferred function.
func (r *Request) Exit() {
	m := r.box.Load()
	r.Body.Fail(&mailbox.ExitError{Object: m.host.Name(), Operation: m.config.Rules.Operations[r.Op].Name})
	m.mu.Lock()
	m.regain(r.frame)
	m.scheduler().Complete(&r.Request)
	owner := m.stillOwned(r)
	m.mu.Unlock()
	r.settle()
	if owner {
		m.workers().Dispatch(m)
	}
}

// stillOwned reports whether the calling goroutine, on which r has run, owns the object. R has left
// the running queue. It is called with mu held.
func (m *Mailbox) stillOwned(r *Request) bool {
	if m.config.Parallel != nil {
		return m.left(r, r.frame)
	}
	m.changed()
	return true
}

// settle tells what waits for r that it has ended; a posted r that has a hop it moves on. It is
// called once, without mu, after r has left the running queue. The calling goroutine may own an
// object, so what follows from the end is handed to a worker. The token comes last: the record
// belongs to the goroutine that takes it. R may be nil.
func (r *Request) settle() {
	if r == nil {
		return
	}
	if !r.called() {
		switch {
		case r.hop() != nil:
			r.move()
			return
		case r.lapsed&unasked != 0:
			r.box.Load().config.Workers.Dispatch((*conclusion)(r))
			return
		}
	}
	if r.rare != nil && !r.called() {
		r.LeaveTransaction()
	}
	if r.ends && r.unwatch != nil { // unwatch, nil if ends is false, is in memory that is not fetched otherwise
		r.unwatch()
		r.unwatch = nil
	}
	switch {
	case r.tokens && r.stage.Load() != own:
		r.setOutcome(done)
	case r.tokens:
		r.wake <- struct{}{}
	case r.Told:
		r.Recycle()
	default:
		box := r.box.Load()
		r.Recycle()
		if first, last := r.complete(); first != nil {
			// Not by the object's dispatcher: it may have only one thread, the object's own.
			box.config.Workers.Dispatch(&Turn{workers: box.config.Workers, first: first, last: last, of: r, at: box})
		}
	}
}

// Await waits until a posted request has ended. If the context ends first, Await returns the
// context's error, and the request goes on. It fails with *DeadlockError if the request waits for
// a body that the caller is inside of.
func (r *Request) Await(ctx context.Context) error { return r.await(ctx, r) }

// Redeem is Await for a request with a Ticket. It succeeds once. No other goroutine may wait for
// the token meanwhile.
func (r *Request) Redeem(ctx context.Context) error {
	select {
	case <-r.wake:
		return nil
	default:
	}
	var aborted <-chan error
	if chain := ChainOf(ctx); chain != nil {
		w, err := chain.enter(r, nil)
		defer w.leave()
		if err != nil {
			return err
		}
		aborted = w.aborted
	}
	defer comesBack(leaves(ctx))
	done := ctx.Done()
	if done == nil && aborted == nil {
		<-r.wake
		return nil
	}
	var err error
	select {
	case <-r.wake:
		return nil
	case <-done:
		err = ctx.Err()
	case err = <-aborted:
	}
	select {
	case <-r.wake: // a result that is there is returned, whatever the context
		return nil
	default:
		return err
	}
}

// Forsake is called by a goroutine that dies in the middle of Call: its body, another body that it
// ran, or a guard that it evaluated, has left through runtime.Goexit. If the request has not ended
// with that, Forsake withdraws it, or waits until it is granted, and declines it then.
func (r *Request) Forsake() {
	m := r.box.Load()
	if m == nil || r.ended || m.Withdraw(r) {
		return
	}
	m.mu.Lock()
	over := r.Ended()
	m.mu.Unlock()
	if over {
		return // and the object is not this goroutine's any more
	}
	<-r.wake
	if r.granted && r.rare != nil && r.rare.rest != nil { // the body has begun, and is suspended: it goes on to its end
		for m.told(r, r.frame); !r.ended; m.told(r, r.frame) {
			<-r.wake
		}
		return
	}
	if r.granted {
		stage := r.outcome()
		m.mu.Lock()
		switch stage {
		case own:
			m.scheduler().Decline(&r.Request)
		case returned:
			m.scheduler().Complete(&r.Request)
		default:
			m.mu.Unlock()
			return
		}
		owner := m.stillOwned(r)
		m.mu.Unlock()
		if owner {
			m.workers().Dispatch(m)
		}
	}
}

// GuardExited is called by the host when a guard leaves through runtime.Goexit while the scheduler
// evaluates it: that of r or, if r is nil, that of the operation over the state. The requests that
// it guards fail with err. A worker takes over the object from the goroutine, which is dying inside
// the scheduler with mu held: no function on its stack will go on.
func (m *Mailbox) GuardExited(op int, r *mailbox.Request, err error) {
	m.scheduler().GuardFailed(op, r, err)
	m.abandon()
}

// ConflictExited is GuardExited for a condition of the conflict table that was evaluated for r.
func (m *Mailbox) ConflictExited(r *mailbox.Request, err error) {
	m.scheduler().PolicyFailed(err, r)
	m.abandon()
}

// abandon lets a worker take over the object from a goroutine that dies inside
// the scheduler with mu held.
func (m *Mailbox) abandon() {
	out := m.out
	m.out = nil
	m.holdIfFailed()
	m.changed()
	m.mu.Unlock()
	out.settle()
	m.workers().Dispatch(m)
}

// Close ends the object: every waiting and every later request fails with err; what runs may
// finish. It returns a channel that is closed when the last body has returned. Of several errors
// the first counts; but that of a Close during a Drain replaces the Drain's.
func (m *Mailbox) Close(err error) <-chan struct{} {
	m.mu.Lock()
	c := m.closed
	switch {
	case c == nil:
		c = &closing{err: err, idle: make(chan struct{})}
		m.closed = c
	case c.draining:
		c.draining, c.err = false, err
	default:
		m.mu.Unlock()
		return c.idle
	}
	owner := m.engage()
	m.stopped()
	if k := m.queues.Load(); k != nil { // else nothing has ever waited: the scheduler is closed when it is made
		k.Close(c.err)
		m.report(k.Next) // nothing starts any more, so that what it returns has failed
	}
	switch {
	case owner && m.config.Parallel != nil:
		m.startAll(nil) // a thread may have been offered while mu was released, and has to be returned
		return c.idle
	case owner:
		m.release()
	default:
		m.changed()
	}
	m.mu.Unlock()
	return c.idle
}

// Drain ends the object gently: later requests fail with err, those that wait are served as long as
// any can start, and the rest fails with err. It returns a channel that is closed when the last
// body has returned.
func (m *Mailbox) Drain(err error) <-chan struct{} {
	m.mu.Lock()
	if c := m.closed; c != nil {
		m.mu.Unlock()
		return c.idle
	}
	c := &closing{err: err, idle: make(chan struct{}), draining: true}
	m.closed = c
	owner := m.engage()
	if owner && m.queues.Load() == nil { // nothing has ever waited
		c.draining, owner = false, false
		m.release()
	} else {
		m.changed()
	}
	m.mu.Unlock()
	if owner {
		m.workers().Dispatch(m)
	}
	return c.idle
}
