package activeobject

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// transactions is what a type says of transactions.
type transactions struct {
	transactional bool // its objects take part
	commutes      bool // what the conflict table lets run at once commutes: see Type.Commutes
	copies        func(at any) (restore func())
	copiesPart    bool // copies are those of a base, which knows only a part of the state
}

// Undo says how the operation is undone, so that it can be called in transactions (see the package
// transaction): undo is given the argument that the body had, and the result that it has returned, and
// brings the state back to what it would be if the body had not run. By that the objects of the type take
// part in transactions. Undo returns the operation.
//
//	withdraw = activeobject.Entry(accounts, "withdraw", activeobject.Arg((*Account).Withdraw)).
//		WhenArg("covered", (*Account).Covers).
//		Undo(func(a *Account, amount int64, _ activeobject.None) { a.balance += amount })
//
// What is undone last was done first, and no operation that conflicts has run in between. A body that has
// returned an error is not undone, so it must have changed nothing: what an interceptor makes of the error does
// not matter. Of a body that asks for a requeue, the result is zero. Undo must neither block nor call other
// objects. A panic is a failure of the object.
//
// Functions change nothing, and need no Undo. An operation that changes the state and has none cannot be
// called in a transaction, unless the type has Copies: the call fails with *NotUndoableError. Override
// drops an inherited Undo.
//
// Like all declarations it panics, with a text that says what to do, if the type is sealed, the operation
// is a function, or undo is nil.
func (op *Operation[T, A, R]) Undo(undo func(state *T, arg A, result R)) *Operation[T, A, R] {
	defer op.info.undoing(undo != nil)()
	op.undo = undo
	return op
}

// undoing locks the type for an Undo of the operation, as declaring does. It panics if that is a mistake.
func (op *operationInfo) undoing(given bool) (done func()) {
	done = op.declaring("an Undo")
	problem := ""
	switch {
	case !given:
		problem = " gets an Undo that is nil: pass the function that undoes it"
	case op.kind == mailbox.Function:
		problem = " gets an Undo, but changes nothing: leave that out"
	case op.suspends:
		problem = suspendsAndUndoes
	}
	if problem != "" {
		done()
		panic(op.where() + problem)
	}
	op.undoes, op.typ.transactional = true, true
	return done
}

// Copies says how the state is copied, so that all operations of the type can be called in transactions
// (see the package transaction): before the first of a transaction changes an object, its state is copied,
// and if the transaction is rolled back, the object gets the copy back. What the copy shares with the state
// must not be changed by any operation. It returns the type.
//
//	accounts = activeobject.NewType[Account]("account").Copies(func(a *Account) *Account { c := *a; return &c })
//
// Operations with an Undo are undone by that. A type that is derived inherits the copies for the operations that it
// inherits; others need an Undo, or Copies of its own.
//
// It panics if the type is sealed, copy is nil, or the type Commutes: a copy would erase what other
// transactions have done meanwhile.
func (t *Type[T]) Copies(copy func(state *T) *T) *Type[T] {
	t.declareTransactions("Copies", copy != nil, t.commutes)
	defer t.mu.Unlock()
	t.transactional, t.copiesPart = true, false
	t.copies = func(at any) (restore func()) {
		state := stateOf[T](at)
		saved := copy(state)
		return func() { *state = *saved }
	}
	return t
}

// Commutes says that operations which the conflict table lets run at once commute: in either order they
// have the same results and leave the same state, and neither opens or closes a guard of the other. Then
// different transactions may use them at the same time. Else only functions of other transactions run
// beside an operation that a transaction has called, whatever the table says: bodies may well be safe
// together, and one of them see what is rolled back later. An Undo runs beside the bodies that its operation is
// compatible with, so it must be as safe as that. Commutes returns the type. The package conflicttest checks it. A
// derived type does not inherit it.
//
// It panics if the type is sealed, or has Copies.
func (t *Type[T]) Commutes() *Type[T] {
	t.declareTransactions("Commutes", true, t.copies != nil)
	defer t.mu.Unlock()
	t.commutes = true
	return t
}

// declareTransactions locks the type for what it says of transactions. It panics if that is a mistake.
func (t *typeInfo) declareTransactions(what string, given, excluded bool) {
	t.mu.Lock()
	problem := ""
	switch {
	case t.sealed:
		problem = " after the first object was made: say it where the type is declared"
	case !given:
		problem = " nil: pass the function that copies the state"
	case excluded:
		problem = ", and both Copies and Commutes contradict each other: a copy would erase what other transactions do meanwhile; give the operations an Undo"
	}
	if problem != "" {
		t.mu.Unlock()
		panic(fmt.Sprintf("activeobject: type %q gets %s%s", t.name, what, problem))
	}
}

// NotUndoableError fails a request in a transaction for an operation that changes the state and cannot be
// undone. It has not run; the transaction can go on.
type NotUndoableError struct {
	Object, Operation string
}

// Error implements error.
func (e *NotUndoableError) Error() string {
	return fmt.Sprintf("sluice: %s.%s cannot be called in a transaction: it has no Undo, and its type no Copies", e.Object, e.Operation)
}

// NoPartError fails a request in a transaction for an object that takes no part in transactions, and is to
// refuse that: see transaction.OnlyParticipants. It has not run; the transaction can go on.
type NoPartError struct {
	Object, Operation string
	Transaction       string
}

// Error implements error.
func (e *NoPartError) Error() string {
	return fmt.Sprintf("sluice: %s.%s is called in transaction %s, and takes no part in transactions: its type has neither an Undo nor Copies", e.Object, e.Operation, e.Transaction)
}

// UndoError is a failure to undo what a body has done in a transaction that is rolled back: the function
// has panicked, or ended its goroutine. The state of the object is neither what it was nor what it would
// have been; what becomes of it is its supervisor's to decide.
type UndoError struct {
	Object, Operation string
	Value             any // of the panic, or a text
	Stack             []byte
}

// Error implements error.
func (e *UndoError) Error() string {
	return fmt.Sprintf("sluice: %s.%s could not be undone: %v", e.Object, e.Operation, e.Value)
}

// ended returns why the context has ended of a request that is not made any more, with whose error it would
// fail: if it is that of a transaction, for the same reason as that.
func (t *typeInfo) ended(ctx context.Context, err error) error {
	if t.transactional {
		if tx := engine.TransactionOf(ctx); tx != nil && tx.Ended() != nil {
			return tx.Ended()
		}
	}
	return err
}

// outside takes the object, which was found with the word w, if that is idle, and ctx belongs to no
// transaction; for an operation of objects that take part.
func (op *operationInfo) outside(ctx context.Context, o *objectHeader, w word.Word) bool {
	return op.alone == nil && w&^word.Parked == op.unasked && engine.Outside(ctx) && ctx.Err() == nil && o.box.Word.CompareAndSwap(w, w|op.mark)
}

// takeFor takes the object for a call that belongs to a transaction, if it is idle, so that no transaction retains
// anything there. It returns the word that it has found, and the transaction, which the call has joined; or nil.
func (op *operationInfo) takeFor(ctx context.Context, o *objectHeader) (w word.Word, t *engine.Transaction) {
	w = o.box.Word.Load()
	if w&^word.Parked != op.unasked || op.changed && !op.undoes || !engine.Tamed(ctx) || ctx.Err() != nil {
		return w, nil
	}
	if t = engine.TransactionOf(ctx); t == nil || t.Join() != nil {
		return w, nil
	}
	if !o.box.Word.CompareAndSwap(w, w|op.mark) {
		t.Left()
		return w, nil
	}
	return w, t
}

// performFor is perform for a call that belongs to the transaction, and has joined it: what the body has done becomes
// a step of the transaction, which retains the object. It is a function of its own so that calls outside of
// transactions do not pay for it.
//
//go:noinline
func performFor[T, A, R any](t *engine.Transaction, op *Operation[T, A, R], ctx context.Context, o *Object[T], arg A, w word.Word) (r R, c *request, err error) {
	at := evaluating
	defer func() {
		if at != finished {
			if at == running {
				defer func() { t.Doom(err) }()
			}
			op.info.caught(&o.objectHeader, at, engine.Panicked(recover()), &err)
		}
	}()
	if op.info.guard != "" {
		op.info.countEvaluation(&o.objectHeader, w)
		if falsePart := op.evaluate(o.state, arg); falsePart != "" {
			at = finished
			return wait(op, ctx, o, arg, falsePart, calling, nil)
		}
	}
	at = running
	r, err = op.leaf(o.state, arg)
	q, requeues := err.(*requeue)
	if op.undo != nil && (err == nil || requeues) {
		t.Undo(engine.Step{Box: &o.box, Undoes: &undoing[T, A, R]{op: op, o: &o.objectHeader, state: o.state, arg: arg, result: r}})
	}
	if requeues {
		at = finished
		return forward(op, ctx, o, arg, w, q, calling, nil)
	}
	at = releasing
	op.info.releaseFor(t, &o.objectHeader, &at)
	return r, nil, err
}

// claimFor returns the claim of a body that has run in the object, taken on the fast path, if it belongs to a
// transaction; or nil.
func (op *operationInfo) claimFor(ctx context.Context, o *objectHeader) *mailbox.Claim {
	if op.alone != nil {
		return nil
	}
	if t := engine.TransactionOf(ctx); t != nil {
		return t.At(&o.box).Claim()
	}
	return nil
}

// releaseFor gives the object back, in which a body has run on behalf of the transaction, which retains it. At is
// set to finished as soon as the object is not the caller's to clean up after.
func (op *operationInfo) releaseFor(t *engine.Transaction, o *objectHeader, at *int) {
	l := engine.Leaving{Op: op.index, Changed: op.changed, For: t.At(&o.box).Claim()}
	*at = finished
	o.box.Yield(l)
}

// join makes r a request of the transaction of ctx, if there is one, and the operation one of an object
// that takes part.
func (op *operationInfo) join(ctx context.Context, o *objectHeader, r *engine.Request) error {
	typ := o.config.typ
	if !typ.transactional && !o.config.strict {
		return nil
	}
	t := engine.TransactionOf(ctx)
	switch {
	case t == nil || r.Transaction() == t:
		return nil
	case !typ.transactional:
		return &NoPartError{Object: o.Name(), Operation: op.name, Transaction: t.Owner.String()}
	case !op.reverts(typ):
		return &NotUndoableError{Object: o.Name(), Operation: op.name}
	}
	return r.JoinTransaction(t)
}

// reverts reports whether what the operation does at an object of the type can be taken back: it does nothing, has
// an Undo, or is covered by the copies of the state.
func (op *operationInfo) reverts(typ *typeInfo) bool {
	return !op.changed || op.undoes || typ.copies != nil && (!typ.copiesPart || op.copied)
}

// saved saves the state of the object before a body of the request, if that is the first to change it on
// behalf of its transaction, and the type has Copies.
func (c *request) saved(op *operationInfo, o *objectHeader) {
	copies := o.config.typ.copies
	if copies == nil || !op.changed || op.undoes {
		return
	}
	if t := c.pending.Request.Transaction(); t != nil && !t.Saved(&o.box) {
		t.Undo(engine.Step{Box: &o.box, Undoes: &restoring{op, o, copies(o.box.Host())}, Saves: true})
	}
}

// done notes how what a body of the request has done is undone, if it has a transaction.
func (c *request) done(in typed, o *objectHeader) {
	op := in.info()
	if !op.undoes {
		return
	}
	if t := c.pending.Request.Transaction(); t != nil {
		t.Undo(engine.Step{Box: &o.box, Undoes: in.undoes(o, o.box.Host(), c.pending.Place)})
	}
}

// restoring gives an object its state back that was saved before the operation.
type restoring struct {
	op      *operationInfo
	o       *objectHeader
	restore func()
}

// Undo implements engine.Undoer.
func (r *restoring) Undo() error { return r.op.undo(r.o, r.restore) }

// undo undoes a body of the operation by the function, which may fail.
func (op *operationInfo) undo(o *objectHeader, undo func()) (err error) {
	returned, value, stack := false, any(nil), []byte(nil)
	defer func() {
		if returned {
			return
		}
		if value = engine.Panicked(value); value == nil {
			value = goexit
		}
		err = &UndoError{Object: o.Name(), Operation: op.name, Value: value, Stack: stack}
		o.failed(op.name, 0, err)
	}()
	defer func() {
		if !returned {
			value, stack = recover(), debug.Stack()
		}
	}()
	undo()
	returned = true
	return nil
}

// doomed says that the transaction of the request, if it has one, can only be rolled back: a body has
// failed, and left the state as it was then.
func (c *request) doomed(err error) {
	if t := c.pending.Request.Transaction(); t != nil {
		t.Doom(err)
	}
}

// leaveTransaction says that the request has ended, if it has a transaction. If it has left its queue since that is
// rolled back, its error becomes the reason of that.
func (c *request) leaveTransaction() {
	r := &c.pending.Request
	t := r.Transaction()
	if t == nil {
		return
	}
	if cause := t.Cause(); cause != nil && r.Lapsed(c.pending.Err) {
		c.pending.Err = t.Ended()
	}
	r.LeaveTransaction()
}

// uncopyable returns what makes no sense of a conflict table for a type with Copies: that two operations may change
// the state at once, one of which has the state copied.
func (t *Type[T]) uncopyable(table *guards.Table) senseless {
	if table == nil || t.copies == nil {
		return senseless{}
	}
	all := t.signatures()
	for i := range all {
		for j := range all {
			if !all[i].reads() && !all[j].reads() && (!table.Between(i, j) || table.Within(i, j) >= 0) {
				return senseless{"Table", fmt.Sprintf("lets %s and %s run at once, which change the state, and the type has Copies: give the operations an Undo", all[i].name, all[j].name)}
			}
		}
	}
	return senseless{}
}
