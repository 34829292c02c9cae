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
	// AskGuard asks the guard over the request's argument, and returns the part
	// of it that is false. It may panic.
	AskGuard() (falsePart string)
	// Fail keeps err as the result of a request that never ran.
	Fail(err error)
	// Argument returns the request's argument.
	Argument() any
	// Recycle is called when the request has ended and nothing is asked of the body any
	// more but its result, of one that was posted. A record that is not used again calls
	// Request.Release.
	Recycle()
}

// Request is one call on its way through a mailbox. Its maker fills in the
// exported fields; it can be used again once it has ended.
type Request struct {
	Body Body
	mailbox.Request

	ctx     context.Context          // its caller's, tamed (T1)
	since   time.Duration            // when it arrived, on Now's clock
	frame   *Frame                   // of a body that may call other objects
	waits   atomic.Pointer[waitList] // of bodies that wait for it, posted as it was; written under graph
	unwatch func() bool              // of one whose context may end: ends the watch over that; guarded by mu until it runs
	wake    chan struct{}            // if it has tokens: one, when it is granted or has ended

	// The withdrawal of one among very many takes as long as it takes to fetch from memory
	// what it looks at. So that is together here, with the error that follows in a
	// Pending, and at the beginning of the scheduler's request; and it looks at nothing else.

	// Leaf bodies neither block nor call out, so that any goroutine may run
	// them on behalf of their caller.
	Leaf bool
	// Told requests have nobody who waits for their end.
	Told bool
	// Ticket requests are posted, and their end is told by a token, to whoever
	// calls Redeem. They have been made by ForCall.
	Ticket bool

	tokens bool    // of a Call, or with a Ticket: its caller is told by a token
	sender replies // what waits for it, though it is told

	granted bool // the token says: the object is yours, run; or, of one that fans out, run
	ended   bool // it has ended, as far as its caller knows, who alone looks and writes
	lapsed  lapse
	ends    bool // ctx may end

	committed bool // may not be withdrawn any more
	underWay  bool // posted, and about to be admitted by another object
	overdue   bool // has been reported to wait for too long

	stage atomic.Uint32 // who runs it, once it has been granted at an object that fans out: see grant

	// box is where the request is or was last. A posted one that is requeued goes
	// from one to another; box changes under the mu of the one that it leaves, and
	// what the scheduler knows of the request under that of the one that it is in.
	// So who has locked the box, and finds that it still is, may look: see lock.
	box  atomic.Pointer[Mailbox]
	rare *rare // nil unless the record has needed it, in this life or an earlier one

	Completion // of a Post
}

// lapse says what is known of the end of a request's context.
type lapse uint8

const (
	early   lapse = 1 << iota // it came before any body ran
	unasked                   // the context is yet to be asked for its error (T3)
)

// replies says what waits for the reply to a request that is told.
type replies uint8

const (
	answered replies = 1 << iota // the sender of the message that it came by
	followed                     // a body may wait for what follows from it
)

// rare is what few requests have. It belongs to whom the request belongs to.
type rare struct {
	sel   *Selection         // it is one of several, of which one is to run
	view  *mailbox.Candidate // as its policy sees it, if that wants to
	hop   *Hop               // its body has asked for this, and has returned
	trail *trail             // it has been requeued
	kept  *trail             // the trail, or that of an earlier life
	// thread was reserved for it, at an object that fans out; guarded by mu.
	thread *thread
}

// special returns what few requests have, for r to have it, too.
func (r *Request) special() *rare {
	if r.rare == nil {
		r.rare = new(rare)
	}
	return r.rare
}

// selection returns the calls of which r is one, or nil.
func (r *Request) selection() *Selection {
	if r.rare == nil {
		return nil
	}
	return r.rare.sel
}

// hop returns what r's body has asked for, if it has returned, or nil.
func (r *Request) hop() *Hop {
	if r.rare == nil {
		return nil
	}
	return r.rare.hop
}

// trail returns what r has behind it, if it has been requeued, or nil.
func (r *Request) trail() *trail {
	if r.rare == nil {
		return nil
	}
	return r.rare.trail
}

// thread returns what was reserved for r, or nil. The caller holds mu.
func (r *Request) thread() *thread {
	if r.rare == nil {
		return nil
	}
	return r.rare.thread
}

// trail is what a request that has been requeued has behind it.
type trail struct {
	home Body  // its own
	ran  Turns // the bodies that have run
	room [2]turn
}

// Init prepares the parts of a request that survive its reuse.
func (r *Request) Init(body Body) {
	r.Body = body
	r.Record = r
}

// ForCall makes r, at the time now, a request whose caller waits for it with Mailbox.Call, or,
// if it has a Ticket, with Redeem. A record that was one keeps its channel, but in a
// testing/synctest bubble, which it may not be of.
func (r *Request) ForCall(now time.Duration) {
	if !r.tokens || Bubbled(now) {
		r.wake, r.tokens = make(chan struct{}, 1), true
	}
}

// called reports whether the caller's goroutine waits for r in Mailbox.Call, so
// that it can be r's thread. The holder of a ticket cannot: there may be none.
func (r *Request) called() bool { return r.tokens && !r.Ticket }

// Forget lets go of everything that belonged to a call, so that the record can be
// kept for another. The object it was made to is remembered, as it is probably the
// next one's too, and an atomic store is dear.
func (r *Request) Forget() {
	r.ctx = nil
	if r.frame != nil {
		r.frame = nil
	}
	if r.rare != nil {
		r.Body = r.Home()
		if r.rare.sel != nil {
			r.wake, r.tokens = nil, false // they were the selection's
		}
		kept := r.rare.kept
		if r.rare.trail != nil {
			*kept = trail{}
		}
		*r.rare = rare{kept: kept}
	}
	r.Fresh()
}

// Release lets go of everything that belonged to the request, which has ended, so that a
// future that is kept for its result keeps neither argument, context nor object.
//
// The caller is the last that acts on the request; others may still want to withdraw it, or
// to know where it is, and find it in a mailbox that is none of an object. They look at
// nothing but its state there, which says that it has ended: that was written under the mu
// of the box that they have seen before, or else they have seen this box, which is stored
// last.
func (r *Request) Release() {
	r.ctx, r.frame, r.Key, r.Claim = nil, nil, nil, nil
	if r.rare != nil {
		r.Body, r.rare = r.Home(), nil
	}
	if m := r.box.Load(); m != nil {
		r.box.Store(m.config.nowhere)
	}
}

// at makes m the box of the request, which is in no other.
func (r *Request) at(m *Mailbox) {
	if r.box.Load() != m {
		r.box.Store(m)
	}
}

// Recycle says that nobody will look at the request any more.
func (r *Request) Recycle() { r.Home().Recycle() }

// Context returns the context of the request's caller.
func (r *Request) Context() context.Context { return original(r.ctx) }

// Lapsed reports whether err, with which the request has ended, is that of its context.
func (r *Request) Lapsed(err error) bool {
	return err != nil && (r.lapsed&early != 0 || err == r.ctx.Err())
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

// fail keeps err as the result of the request, which is not to run. What it is
// about has the exclusion.
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

// lapses notes that the context of r has ended, before it is failed.
func (r *Request) lapses() {
	if r.lapsed = 0; r.trail() == nil {
		r.lapsed = early
	}
}

// conclude fails a request whose context has yet to be asked why it has ended. It is called
// by the caller's goroutine, which holds nothing.
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

// gone returns the error of the request's context, if that has ended, or the request has a
// sender that has gone; and nil if the request may not be withdrawn.
func (r *Request) gone() error {
	if !r.ends && r.sender&answered == 0 || r.committed {
		return nil
	}
	return r.unwanted()
}

// unwanted is gone for a request that may be withdrawn.
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

// Answers says whether r, which is told, has come by message, from a sender that waits for the
// reply: Config.Unwanted is asked about it then.
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
// bubble. What is pooled must not be used on both sides of a bubble's wall: a
// channel that is kills the process. A bubble's clock starts in the year 2000,
// long before this process did, while outside Now is monotonic and never
// negative. (A bubble that has slept for decades escapes notice.)
func Bubbled(now time.Duration) bool { return now < 0 }

// Call hands in a request and waits until it has ended; its result is with its
// body then. If the context ends while the request waits, it leaves its queue,
// never runs, and fails with the context's error at once.
func (m *Mailbox) Call(ctx context.Context, r *Request, now time.Duration) {
	r.Prepare(ctx, now)
	m.mu.Lock()
	r.at(m) // for fail
	if c := m.closed; c != nil {
		err := c.err // after a Drain there may be another one
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

// CallHeld is Call for an entry that the calling goroutine has taken the object
// for, only to find its guard false. The object is given back.
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

// disown has the scheduler forget the operation for which the calling goroutine has taken the
// object on the fast path, if it knows of it: nothing has run. The goroutine still owns the object,
// and holds mu.
func (m *Mailbox) disown(op int) {
	if m.Word.Load().Has(word.Engaged) {
		m.scheduler().Abandon(op)
	}
}

// call is the way of a request whose caller waits. It is called with mu held.
func (m *Mailbox) call(r *Request, owner bool, falsePart string) {
	if m.arrive(r, owner, falsePart) { // only the caller puts the record back, whatever has become of r
		m.serve(r, m.helpLimit(ChainOf(r.ctx) == nil), false)
	}
	m.wait(r)
}

// wait waits for the end of a request that has arrived, or for the object, to run
// it; as often as its body asks to be requeued here.
func (m *Mailbox) wait(r *Request) {
	if r.ended {
		return
	}
	chain := ChainOf(r.ctx)
	if chain != nil {
		w, err := chain.enter(r, r)
		defer w.leave()
		if err != nil { // it has left its queue
			r.fail(err)
			return
		}
	} else if m.config.helps() {
		m.help(r)
	}
	for !r.ended {
		if !r.ends {
			<-r.wake
		} else {
			select {
			case <-r.wake:
			case <-r.ctx.Done():
				if m.Withdraw(r) {
					r.fail(r.ctx.Err())
					return
				}
				// It runs, or has been granted, or may not be withdrawn: there will
				// be a token.
				<-r.wake
			}
		}
		m.told(r, chain)
	}
}

// told carries on when the token has been taken of a request that is here. It
// reports false if the request was granted and does not run, as its context has
// ended.
func (m *Mailbox) told(r *Request, chain *Frame) bool {
	r.ended = true // nothing is owed to us, and Forsake has nothing to do
	if !r.granted {
		return true
	}
	switch r.outcome() {
	case done:
		return true
	case own: // the object is ours
		if err := r.gone(); err != nil {
			m.mu.Lock()
			m.scheduler().Decline(&r.Request)
			m.goOnServing(r, r.frame, nil, 0) // its caller has better things to do than to serve others
			r.lapse(err)
			return false
		}
		r.Body.Run()
	}
	m.mu.Lock()
	self, may, f := r, chain == nil, r.frame
	if r.granted = false; m.over(r) {
		self, may = nil, may && r.hop() == nil // else it has yet to go on
	} else {
		r.ended = false
	}
	m.goOnServing(r, f, self, m.helpLimit(may))
	return true
}

// goOnServing is serve for a goroutine on which r has run, with the frame f, and which has
// left the running queue. It owns the object, unless that fans out.
func (m *Mailbox) goOnServing(r *Request, f *Frame, self *Request, budget int) {
	m.serveIf(m.config.Parallel == nil || m.left(r, f), self, budget)
}

// over says to the scheduler that the body of r has returned, unless it asks to be
// requeued here; then it reports false, and r waits again, or has failed. The
// caller owns the object and holds mu.
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

// note is present for an object of which somebody wants to know more.
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

// arrive hands r to the scheduler. It is called with mu held. The caller has engaged, or owns the
// object; then falsePart is what the guard of r has said since the state last changed, or empty.
// It reports whether the caller is to serve the object, with mu held. Else mu is free, and the
// caller does not own the object any more.
//
// If r is posted, and told, it may have ended when arrive returns, so that its record belongs to
// another request: requests that find a queue full are told so here, and mu is free meanwhile.
func (m *Mailbox) arrive(r *Request, owner bool, falsePart string) (serve bool) {
	m.present(r)
	posted := !r.called()
	if posted {
		r.heed()
	} else if s := r.selection(); s != nil && r.ends && s.watched && s.winner.Load() == nil {
		r.unwatch = context.AfterFunc(r.ctx, r.expire)
	}
	k := m.scheduler()
	switch fan := m.config.Parallel; {
	case fan != nil && fan.OnArrival && !(fan.Threads == nil && r.called()):
		k.ArriveThreadless(&r.Request) // the owner gives it a thread, if there is one
	case owner && fan == nil && m.config.Dispatcher == nil: // or else guards are evaluated on the threads of that
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
		m.report(m.scheduler().Failed) // without waiting for the owner to ask
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

// report tells those who have failed, as failed returns them. It is called with mu
// held, and lets go of it meanwhile. A failed request is of no concern to the scheduler
// any more, so that anybody who holds mu may say so, whoever owns the object.
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

// PostHeld is Post for an entry that the calling goroutine has taken the object
// for, only to find its guard false. The object is given back.
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

func (m *Mailbox) post(r *Request, owner bool, falsePart string) {
	leaf, chain := r.Leaf, ChainOf(r.ctx)
	switch { // r itself is only compared with others from here on
	case !m.arrive(r, owner, falsePart):
	case leaf:
		m.serve(r, m.helpLimit(chain == nil), false)
	default:
		m.serve(nil, 0, false)
	}
}

// giveWay lets others run on the processor, now and then, if very many requests wait. Who posts
// does not wait, and so would use up his share of time, which is long: meanwhile whoever serves the
// object may be among those that are ready to run, and the queue grows by thousands.
func giveWay(backlog int) {
	const many, often = 64, 32
	if backlog >= many && backlog%often == 0 {
		runtime.Gosched()
	}
}

// heed withdraws a posted request when its context ends. It is called with mu
// held, before anybody can run the request, so that the watch is in place whatever
// happens; the watcher takes mu first.
func (r *Request) heed() {
	if r.ends && r.unwatch == nil {
		ctx := r.ctx // it may go on with another one
		r.unwatch = context.AfterFunc(ctx, func() { r.withdrawAll(ctx.Err(), true) })
	}
}

// Withdraw takes a waiting request out of its queue and reports whether it was
// there: if so it never ran and never will.
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

// remove is withdraw for a request that may be committed.
func (m *Mailbox) remove(r *Request) bool {
	if !m.scheduler().Withdraw(&r.Request) {
		m.mu.Unlock()
		return false
	}
	m.dismissThread(r)
	m.reconsider()
	return true
}

// reconsider has somebody ask who can start, if a withdrawal or another rank may
// have changed that. If nobody waits any more it clears the marks of the object. It is
// called with mu held, and releases it.
//
// Who has taken the object on the fast path would put back the marks that he found,
// and go on asking the guards of those who have gone; so he is made to come to the
// scheduler.
func (m *Mailbox) reconsider() {
	k := m.scheduler()
	switch {
	case k.Unsettled() && m.engage():
		// Guards over waiting counts see one less, or somebody is first now who was
		// not; a worker asks.
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

// WithdrawAll withdraws a posted request and completes it with err, unless it
// runs or has ended already, or has been told, and so cannot be taken back.
func (r *Request) WithdrawAll(err error) bool { return !r.Told && r.withdrawAll(err, false) }

func (r *Request) withdrawAll(err error, ended bool) bool {
	if r.Record == nil { // never; but so the processor fetches what the scheduler looks at while it still waits for the box
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

// stillOwned reports whether the goroutine on which r has run, which has left the
// running queue, owns the object. It is called with mu held.
func (m *Mailbox) stillOwned(r *Request) bool {
	if m.config.Parallel != nil {
		return m.left(r, r.frame)
	}
	m.changed()
	return true
}

// settle tells whoever waits that the request has ended. It is called once,
// outside mu, after the request has left the running queue, perhaps by a goroutine
// that owns the object; so what others have to do then is handed to a worker. The
// token is the last of it: with that the record belongs to who takes it. r may be
// nil.
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
	if r.ends && r.unwatch != nil { // the second is out of the way, and nil if ends is false
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
			// Not the object's dispatcher, whose only thread may be the object's own.
			box.config.Workers.Dispatch(&Turn{workers: box.config.Workers, first: first, last: last, of: r, at: box})
		}
	}
}

// Await waits until a posted request has ended, or the context has; then the
// context's error is returned, and the request goes its way. It fails with
// *DeadlockError if the request waits for what the caller is inside of.
func (r *Request) Await(ctx context.Context) error { return r.await(ctx, r) }

// Redeem is Await for a request with a Ticket, and succeeds once. Nobody else may
// wait for the token meanwhile.
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

// Forsake is called by a goroutine that dies in the middle of Call, because its
// body, one that it was lent to, or a guard it asked, has left through runtime.Goexit. If the request has
// not ended with that it is withdrawn, or passed over when it is granted.
func (r *Request) Forsake() {
	m := r.box.Load()
	if m == nil || r.ended || m.Withdraw(r) {
		return
	}
	m.mu.Lock()
	over := r.Ended()
	m.mu.Unlock()
	if over {
		return // and the object has been handed on
	}
	<-r.wake
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

// GuardExited is called by the host when a guard that the scheduler asked leaves
// through runtime.Goexit: that of r, or, if r is nil, one over the state. The
// requests it guards fail with err, and a worker takes over the object from the
// goroutine, which is dying inside the scheduler with mu held. Nothing that is on
// its stack will act again.
func (m *Mailbox) GuardExited(op int, r *mailbox.Request, err error) {
	m.scheduler().AskingFailed(op, r, err)
	m.abandon()
}

// ConflictExited is GuardExited for a condition of the conflict table that was asked about r.
func (m *Mailbox) ConflictExited(r *mailbox.Request, err error) {
	m.scheduler().Misjudged(err, r)
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

// Close ends the object: every waiting and every later request fails with err;
// what runs may finish. It returns a channel that is closed when the last body
// has returned. Only the first error counts, or that which follows a Drain.
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
	if k := m.queues.Load(); k != nil { // or else nobody has ever waited, and it will be closed when it is made
		k.Close(c.err)
		m.report(k.Next) // nothing starts any more, so that what it returns has failed
	}
	switch {
	case owner && m.config.Parallel != nil:
		m.startAll(nil) // a thread may have been offered while mu was free, and has to be returned
		return c.idle
	case owner:
		m.release()
	default:
		m.changed()
	}
	m.mu.Unlock()
	return c.idle
}

// Drain ends the object gently: no more requests are taken, those that wait are
// served as long as any can start, and the rest fails with err. It returns a
// channel that is closed when the last body has returned.
func (m *Mailbox) Drain(err error) <-chan struct{} {
	m.mu.Lock()
	if c := m.closed; c != nil {
		m.mu.Unlock()
		return c.idle
	}
	c := &closing{err: err, idle: make(chan struct{}), draining: true}
	m.closed = c
	owner := m.engage()
	if owner && m.queues.Load() == nil { // nobody has ever waited
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
