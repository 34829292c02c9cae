package transaction

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sluice-go/sluice/mailbox"
)

// defaultWait is how long the end of a transaction waits for a resource, unless it is set.
const defaultWait = 30 * time.Second

// commitSettings are what the transactions of one manager have in common.
type commitSettings struct {
	log     Log // nil: none
	logName string

	// wait bounds what the caller's context does not: the decision, and telling it. A resource
	// or log that has not returned by then is reported as unfinished, or the outcome as in
	// doubt. There are at most three such waits, one after the other: for the decision, for
	// the question what it was, and for all that are told it.
	wait time.Duration

	// bound derives a context that ends after wait.
	bound func(context.Context) (context.Context, context.CancelFunc)

	// report gets what changes no outcome: a record that could not be removed from the log.
	report func(error)
}

// newCommitSettings returns settings with a log, or nil; a wait of 0 is the default.
func newCommitSettings(log Log, wait time.Duration, report func(error)) *commitSettings {
	s := &commitSettings{log: log, wait: wait, report: report}
	if log != nil {
		s.logName = log.Name()
	}
	if wait <= 0 {
		s.wait = defaultWait
	}
	s.bound = func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, s.wait)
	}
	return s
}

// participants are the resources of one transaction. They are registered, and then told one
// outcome, by two-phase commit with presumed abort.
//
// Volatile participants are objects in memory. They cannot fail to commit, end with the
// process, and need no record. A commit is told to them last: a transaction that has waited for
// one of them then finds the durable resources committed. A rollback is told to them first.
//
// What the correctness rests on:
//
//   - (I1) While open is true the lists are guarded by mu. Then they belong to the goroutine
//     that holds turn.
//   - (I2) No participant is told an outcome while outcome is InDoubt, and outcome changes
//     from InDoubt to another value once.
//   - (I3) outcome becomes Committed only when every participant has voted, and the decision is
//     durable: it is in the log, or was made by the only resource with something to commit.
//   - (I4) outcome becomes RolledBack only before the decision is asked for, or when the log
//     or resource that decides has said that it has not committed, and never will.
//   - (I5) The record is removed only when every durable participant has confirmed the
//     outcome, or has said that it will not.
//   - (I6) Calls to one participant do not overlap (worker).
type participants struct {
	id       uuid.UUID
	settings *commitSettings

	mu       sync.Mutex
	open     bool
	volatile []Resource // in few, while there are few
	few      [4]Resource
	durable  []*party
	last     *party

	turn     sync.Mutex
	outcome  Outcome
	cause    error // why it is rolled back or in doubt
	asked    error // why the outcome could not be found out
	decision decision
	// What has failed when it was told the outcome: for good, or so that it is told again.
	heuristic []*ResourceError
	pending   []*ResourceError
}

// party is a durable participant, with what it can be asked. A last resource cannot
// prepare, nor be told to commit.
type party struct {
	worker
	resource Resource
	last     LastResource
}

// rollback tells either kind to roll back.
func (m *party) rollback(ctx context.Context, id uuid.UUID) error {
	if m.last != nil {
		return m.last.Rollback(ctx, id)
	}
	return m.resource.Rollback(ctx, id)
}

// decision is what makes the outcome. In the zero decision there is nothing durable to
// commit.
type decision struct {
	by        *worker
	commit    func(context.Context) error
	committed func(context.Context) (bool, error)
	sole      *party // the only resource with something to commit; the decision is its commit
	log       Log    // what has the record, if there is one
}

func newParticipants(id uuid.UUID, settings *commitSettings) *participants {
	p := &participants{id: id, settings: settings, open: true}
	p.volatile = p.few[:0]
	return p
}

// register adds a resource, which is volatile or not. A durable one that is there already is
// not added again; a volatile one is not looked for. The error is a *RegistrationError.
func (p *participants) register(r Resource, volatile bool) error {
	name := r.Name()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !volatile {
		if there, err := p.admit(name, r); there || err != nil {
			return err
		}
		p.durable = append(p.durable, &party{worker: worker{name: name}, resource: r})
		return nil
	}
	if !p.open {
		return p.refuse(name, "is too late: the transaction has ended or is ending")
	}
	p.volatile = append(p.volatile, r)
	return nil
}

// registerLast adds the resource that cannot prepare. The error is a *RegistrationError.
func (p *participants) registerLast(r LastResource) error {
	name := r.Name()
	p.mu.Lock()
	defer p.mu.Unlock()
	if there, err := p.admit(name, r); there || err != nil {
		return err
	}
	if p.last != nil {
		return p.refuse(name, fmt.Sprintf("cannot prepare, and neither can %q: only one such resource can take part", p.last.name))
	}
	p.last = &party{worker: worker{name: name}, last: r}
	return nil
}

// admit reports whether a durable participant is there already, and an error if it cannot
// be added. The caller holds mu.
func (p *participants) admit(name string, r any) (bool, error) {
	switch {
	case !p.open:
		return false, p.refuse(name, "is too late: the transaction has ended or is ending")
	case name == "":
		return false, p.refuse(name, "is not a name of a resource")
	}
	for _, other := range append(p.durable, p.last) {
		if other == nil || other.name != name {
			continue
		}
		if identical(r, other.resource) || identical(r, other.last) {
			return true, nil
		}
		return false, p.refuse(name, "is the name of another resource that takes part")
	}
	return false, nil
}

func identical(a, b any) bool {
	return a != nil && b != nil && reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

func (p *participants) refuse(name, problem string) error {
	return &RegistrationError{Transaction: p.id, Resource: name, Problem: problem}
}

// commit ends the transaction. It returns nil if all participants have committed, and
// else an *OutcomeError. Until the decision the caller's context bounds it; from there on
// the context's end changes nothing. After the first call of commit or rollback later
// calls return the outcome that there was.
func (p *participants) commit(ctx context.Context) error {
	return p.end(func() error {
		cause := p.prepare(ctx)
		if cause != nil {
			p.decision = decision{}
			return p.conclude(ctx, RolledBack, cause)
		}
		return p.decide(ctx)
	})
}

// rollback ends the transaction, for the given reason. It returns nil if all participants
// have rolled back, and else an *OutcomeError with their failures.
func (p *participants) rollback(ctx context.Context, cause error) error {
	return p.end(func() error {
		err := p.conclude(ctx, RolledBack, cause)
		if len(p.heuristic)+len(p.pending) == 0 {
			return nil
		}
		return err
	})
}

// resolve tries again what is left over of a commit or rollback: to find out an outcome that is
// in doubt, and to tell those that have not confirmed it. It returns what commit would
// have returned. It may be called at any time, and does nothing before the end.
func (p *participants) resolve(ctx context.Context) error {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	if open {
		return nil
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	switch {
	case p.outcome == InDoubt:
		return p.ask(ctx, p.cause)
	case p.unfinished():
		p.tell(ctx)
	}
	return p.result()
}

// unfinished reports whether resolve has something left to do. The caller holds turn, or
// has returned from commit or rollback.
func (p *participants) unfinished() bool {
	return p.outcome == InDoubt || len(p.durable) > 0 || p.last != nil
}

// end closes the lists and runs f, once. If a volatile participant ends the goroutine,
// what f left undone is done while the goroutine ends.
func (p *participants) end(f func() error) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.mu.Lock()
	first := p.open
	p.open = false
	p.mu.Unlock()
	if !first {
		return p.result()
	}
	returned := false
	defer func() {
		if !returned && p.outcome == InDoubt && p.decision.by == nil {
			p.conclude(context.Background(), RolledBack, errors.New("a participant ended the goroutine (runtime.Goexit)"))
		}
	}()
	err := f()
	returned = true
	return err
}

// prepare asks the participants to prepare, and sets decision. It returns why the transaction
// has to be rolled back, or nil.
func (p *participants) prepare(ctx context.Context) error {
	if len(p.durable) > 1 && p.last == nil && p.settings.log == nil {
		return fmt.Errorf("%w: %d resources outlive the process, and the decision would not", ErrNoLog, len(p.durable))
	}
	if err := p.prepareVolatile(ctx); err != nil {
		return err
	}
	if len(p.durable) > 0 || p.last != nil {
		// The caller's context is code that is not ours; the derived one is asked from here on.
		var bounded context.Context
		var cancel context.CancelFunc
		err := contain("the caller's context", "Done", func() error {
			bounded, cancel = context.WithCancel(ctx)
			return nil
		})
		if err != nil {
			return err
		}
		defer cancel()
		ctx = bounded
		if err := p.prepareDurable(ctx); err != nil {
			return err
		}
	}
	return contain("the caller's context", "Err", ctx.Err)
}

// prepareVolatile asks the volatile participants, and keeps those that are to be told the
// outcome.
func (p *participants) prepareVolatile(ctx context.Context) error {
	kept, asked := 0, 0
	defer func() { p.volatile = append(p.volatile[:kept], p.volatile[asked:]...) }()
	for asked < len(p.volatile) {
		r := p.volatile[asked]
		vote, err := prepareOne(ctx, r, Branch{Transaction: p.id})
		if err != nil {
			return &ResourceError{r.Name(), "prepare", err}
		}
		asked++
		if vote == Prepared {
			p.volatile[kept] = r
			kept++
		}
	}
	return nil
}

// prepareDurable asks the durable participants in the order in which they were registered,
// keeps those that are to be told the outcome, and sets decision.
func (p *participants) prepareDurable(ctx context.Context) error {
	branch := Branch{Transaction: p.id, Log: p.settings.logName}
	if p.last != nil {
		branch.Log = p.last.name
	}
	kept, asked := 0, 0
	defer func() { p.durable = append(p.durable[:kept], p.durable[asked:]...) }()
	for asked < len(p.durable) {
		if err := ctx.Err(); err != nil {
			return err
		}
		m := p.durable[asked]
		if one, ok := m.resource.(OnePhase); ok && kept == 0 && asked == len(p.durable)-1 && p.last == nil {
			p.decideBy(m, one.CommitOnePhase)
			return nil
		}
		var vote Vote
		err := m.call(ctx, "prepare", func(ctx context.Context) (err error) {
			vote, err = prepareOne(ctx, m.resource, branch)
			return err
		})
		if err != nil {
			return err
		}
		asked++
		if vote == Prepared {
			p.durable[kept] = m
			kept++
		}
	}
	switch {
	case p.last != nil:
		p.decideInLog(&p.last.worker, p.last.last, p.durable[:kept])
	case kept == 1:
		m := p.durable[0]
		p.decideBy(m, m.resource.Commit)
	case kept > 1:
		p.decideInLog(&worker{name: p.settings.logName}, p.settings.log, p.durable[:kept])
	}
	return nil
}

// prepareOne asks one participant, and checks its vote.
func prepareOne(ctx context.Context, r Resource, branch Branch) (Vote, error) {
	var vote Vote
	err := contain(r.Name(), "prepare", func() (err error) {
		vote, err = r.Prepare(ctx, branch)
		return err
	})
	if err == nil && vote != Prepared && vote != ReadOnly {
		err = fmt.Errorf("invalid vote %d", vote)
	}
	return vote, err
}

// decideBy makes the commit of the only resource with something to commit the decision.
func (p *participants) decideBy(m *party, commit func(context.Context, uuid.UUID) error) {
	try := func(ctx context.Context) error { return commit(ctx, p.id) }
	p.decision = decision{
		by:     &m.worker,
		sole:   m,
		commit: try,
		committed: func(ctx context.Context) (bool, error) {
			err := try(ctx)
			if errors.Is(err, ErrNotCommitted) {
				return false, nil
			}
			return err == nil, err
		},
	}
}

// decideInLog makes the record in the log the decision.
func (p *participants) decideInLog(by *worker, log Log, prepared []*party) {
	names := make([]string, len(prepared))
	for i, m := range prepared {
		names[i] = m.name
	}
	p.decision = decision{
		by:        by,
		log:       log,
		commit:    func(ctx context.Context) error { return log.Commit(ctx, p.id, names) },
		committed: func(ctx context.Context) (bool, error) { return log.Committed(ctx, p.id) },
	}
}

// decide makes the decision, and tells the participants.
func (p *participants) decide(ctx context.Context) error {
	d := &p.decision
	if d.by == nil {
		return p.conclude(ctx, Committed, nil)
	}
	bounded, cancel := p.bound(ctx)
	err := d.by.call(bounded, "commit", d.commit)
	cancel()
	switch {
	case err == nil:
		return p.conclude(ctx, Committed, nil)
	case errors.Is(err, ErrNotCommitted) || errors.Is(err, ErrHeuristic):
		return p.conclude(ctx, RolledBack, err)
	}
	return p.ask(ctx, err)
}

// ask finds out the decision, which is in doubt for the given reason, and tells the
// participants.
func (p *participants) ask(ctx context.Context, cause error) error {
	bounded, cancel := p.bound(ctx)
	committed := false
	err := p.decision.by.call(bounded, "find out the outcome", func(ctx context.Context) (err error) {
		committed, err = p.decision.committed(ctx)
		return err
	})
	cancel()
	switch {
	case err != nil:
		p.cause, p.asked = cause, err
		return p.result()
	case committed:
		return p.conclude(ctx, Committed, nil)
	}
	return p.conclude(ctx, RolledBack, cause)
}

// conclude sets the outcome, and tells the participants.
func (p *participants) conclude(ctx context.Context, outcome Outcome, cause error) error {
	p.outcome, p.cause = outcome, cause
	if outcome == Committed {
		if m := p.decision.sole; m != nil {
			p.durable = slices.DeleteFunc(p.durable, func(other *party) bool { return other == m })
		}
		if p.last != nil {
			p.last = nil // It has committed.
		}
	}
	p.tell(ctx)
	return p.result()
}

// result returns the outcome as an error, or nil if all participants have committed.
func (p *participants) result() error {
	if p.outcome == Committed && len(p.heuristic)+len(p.pending) == 0 {
		return nil
	}
	e := &OutcomeError{Transaction: p.id, Outcome: p.outcome, Cause: p.cause}
	if p.outcome == InDoubt {
		e.Cause = errors.Join(p.cause, p.asked)
	}
	e.Failures = append(slices.Clone(p.heuristic), p.pending...)
	return e
}

// tell tells the outcome to all participants that have not confirmed it, and removes the
// record if no one is left.
func (p *participants) tell(ctx context.Context) {
	if p.outcome == RolledBack {
		p.tellVolatile(ctx)
	}
	if p.unfinished() {
		bounded, cancel := p.bound(ctx)
		p.tellDurable(bounded)
		cancel()
	}
	if p.outcome == Committed {
		p.tellVolatile(ctx)
	}
	log := p.decision.log
	if log == nil || p.unfinished() {
		return
	}
	p.decision.log = nil
	bounded, cancel := p.bound(ctx)
	defer cancel()
	err := p.decision.by.call(bounded, "remove the record", func(ctx context.Context) error { return log.Done(ctx, p.id) })
	if err != nil && p.settings.report != nil {
		p.settings.report(fmt.Errorf("sluice: transaction %v: %w", p.id, err))
	}
}

// tellVolatile tells the outcome to the volatile participants, in order or, to roll back, in
// reverse order. Their failures are final. If one ends the goroutine, the others are
// told while it ends.
func (p *participants) tellVolatile(ctx context.Context) {
	defer func() {
		if len(p.volatile) > 0 {
			p.tellVolatile(ctx)
		}
	}()
	if ctx != context.Background() && len(p.volatile) > 0 {
		ctx = context.WithoutCancel(ctx)
	}
	for len(p.volatile) > 0 {
		var r Resource
		var err error
		if p.outcome == Committed {
			r, p.volatile = p.volatile[0], p.volatile[1:]
			err = contain(r.Name(), "commit", func() error { return r.Commit(ctx, p.id) })
		} else {
			last := len(p.volatile) - 1
			r, p.volatile = p.volatile[last], p.volatile[:last]
			err = contain(r.Name(), "rollback", func() error { return r.Rollback(ctx, p.id) })
		}
		if err != nil {
			p.heuristic = append(p.heuristic, &ResourceError{r.Name(), told(p.outcome), asHeuristic(err)})
		}
	}
}

// tellDurable tells the outcome to the durable participants at the same time, and keeps those
// that have not confirmed it.
func (p *participants) tellDurable(ctx context.Context) {
	todo := slices.Clone(p.durable)
	if p.last != nil {
		todo = append(todo, p.last)
	}
	calls := make([]*pendingCall, len(todo))
	outcome := p.outcome
	for i, m := range todo {
		calls[i] = m.start(ctx, told(outcome), func(ctx context.Context) error {
			if outcome == Committed {
				return m.resource.Commit(ctx, p.id)
			}
			return m.rollback(ctx, p.id)
		})
	}
	p.durable, p.last, p.pending = nil, nil, nil
	for i, m := range todo {
		err := calls[i].wait(ctx)
		if err == nil {
			continue
		}
		failure := &ResourceError{m.name, told(outcome), err}
		switch {
		case failure.heuristic() || outcome == Committed && errors.Is(err, ErrNotCommitted):
			failure.Err = asHeuristic(err)
			p.heuristic = append(p.heuristic, failure)
			continue
		case m.last != nil:
			p.last = m
		default:
			p.durable = append(p.durable, m)
		}
		p.pending = append(p.pending, failure)
	}
}

// told is the name of the call that tells an outcome.
func told(o Outcome) string {
	if o == Committed {
		return "commit"
	}
	return "rollback"
}

// asHeuristic returns an error that is ErrHeuristic.
func asHeuristic(err error) error {
	if errors.Is(err, ErrHeuristic) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrHeuristic, err)
}

// bound returns a context that the caller's does not end, but the time to wait.
func (p *participants) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return p.settings.bound(context.WithoutCancel(ctx))
}

// worker makes the calls to one durable participant, which do not overlap: one that is not
// waited for any more is followed by the next when it has returned. Its methods are
// called by one goroutine at a time.
type worker struct {
	name string
	busy chan struct{} // closed when the last call has returned; nil before the first
}

// pendingCall is a call that has been started, or waits for the one before.
type pendingCall struct {
	worker  *worker
	run     func()
	what    string
	started bool
	ended   chan struct{}
	err     error // valid when ended is closed
}

// start starts a call unless the one before has not returned.
func (w *worker) start(ctx context.Context, what string, f func(context.Context) error) *pendingCall {
	c := &pendingCall{worker: w, what: what, ended: make(chan struct{})}
	c.run = func() {
		defer close(c.ended)
		defer func() {
			if r := recover(); r != nil {
				c.err = &mailbox.PanicError{Object: w.name, Operation: what, Value: r, Stack: debug.Stack()}
			}
		}()
		c.err = &mailbox.ExitError{Object: w.name, Operation: what}
		c.err = f(ctx)
	}
	select {
	case <-w.busy:
		c.begin()
	default:
		if w.busy == nil {
			c.begin()
		}
	}
	return c
}

func (c *pendingCall) begin() {
	c.started = true
	c.worker.busy = c.ended
	go c.run()
}

// wait returns the call's error, or that of the context if that ends before.
func (c *pendingCall) wait(ctx context.Context) error {
	if !c.started {
		select {
		case <-c.worker.busy:
			c.begin()
		case <-ctx.Done():
			return fmt.Errorf("the call before has not returned: %w", ctx.Err())
		}
	}
	select {
	case <-c.ended:
		return c.err
	case <-ctx.Done():
	}
	select {
	case <-c.ended:
		return c.err
	default:
		return fmt.Errorf("has not returned: %w", ctx.Err())
	}
}

// call makes a call and waits for it. Its error is a *ResourceError.
func (w *worker) call(ctx context.Context, what string, f func(context.Context) error) error {
	if err := w.start(ctx, what, f).wait(ctx); err != nil {
		return &ResourceError{w.name, what, err}
	}
	return nil
}

// contain runs f, which is not our code, and returns its panic as an error.
func contain(object, operation string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &mailbox.PanicError{Object: object, Operation: operation, Value: r, Stack: debug.Stack()}
		}
	}()
	return f()
}
