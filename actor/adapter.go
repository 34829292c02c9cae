package actor

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/internal/engine"
)

// Receiver is the shared object as protoactor sees it.
type Receiver interface {
	// Receive takes a user message. Its header may be nil or empty. Sender is nil if no
	// reply is expected.
	Receive(message any, header proto.ReadonlyMessageHeader, sender *proto.PID)
	// Halt ends the object; the channel is closed when its last body has
	// returned.
	Halt() <-chan struct{}
	// Drain ends the object after what waits and can start has been served.
	Drain() <-chan struct{}
}

// Subject is a Receiver whose life has more steps than its end. Its methods are
// called on the turn of its adapter, one at a time, unless they say otherwise.
type Subject interface {
	Receiver
	// Attached says what the object's adapter is, before anything can be sent to it.
	Attached(a *Adapter)
	// Suspend lets nothing start at the object until Resume; the channel is closed
	// when nothing runs any more.
	Suspend() (quiet <-chan struct{})
	Resume()
	// Renew gives the object, which is suspended and quiet, a new state, and reports
	// whether its actor is to restart. If not, the object has seen to what follows.
	Renew() bool
	// Admits reports whether a Stop, PoisonPill, Watch or Unwatch is for the object. It is
	// asked by the goroutine that sends the message, and runs no code of a user.
	Admits(message any) bool
	// Decided says that the object is resumed, restarted or stopped, since its supervisor
	// has decided about the failure; or that it is restarted for the sake of others, and
	// then the failure is empty.
	Decided(what string, about Failure)
	// Undecided says that no decision about a failure will come, as the supervisor has
	// panicked with the value, or, if that is nil, called runtime.Goexit. The object
	// is about to be halted.
	Undecided(value any)
}

// Adapter is the mailbox that protoactor sees. User messages go to the shared
// object, and so through the same waiting queue as every other request; system
// messages go to the actor around it, in order, one at a time, on a worker: the
// adapter's turn.
//
//	Stop, PoisonPill ──► object halts or drains ──► its last body has returned ──► the actor ends
//	Restart          ──► object is suspended    ──► what runs has returned ──► new state ──► the actor restarts
//	Watch, Unwatch   ──► the adapter's watchers
//	others           ──► the actor
//
// The turn waits for bodies without standing still: the messages that come meanwhile
// go on to the actor. So a body that is waited for may itself wait for what a message
// brings about, such as the decision about a child of the object.
//
// A message may come from another process, with anything in it or nothing. One that makes no
// sense is refused and logged. A panic while a message is handled, or while a watcher is told
// of the end, is logged and goes no further: the turn has no caller that could be told.
//
// A message may come before the actor has been started: protoactor registers the
// process first. User messages do not mind, as the object is complete by then;
// system messages wait for Start.
type Adapter struct {
	object  Receiver
	subject Subject // the same; nil if it is none
	workers Dispatcher
	invoker proto.MessageInvoker
	log     func(level slog.Level, text string, args ...any)

	mu     sync.Mutex
	system []any         // system messages not yet handled, in order
	busy   bool          // not started, or a worker runs the turn or has been dispatched to
	halted bool          // there has been a Stop
	asked  *Failure      // what the supervisor has been asked, and not answered
	poke   chan struct{} // wakes a turn that waits; nil until there has been one

	// What the turn waits for, and what it does then. A nil channel is not waited for.
	// They belong to the turn.
	stop, pill       any
	stopped, drained <-chan struct{}
	steps            []any           // Restart, SuspendMailbox and ResumeMailbox, in order
	quiet            <-chan struct{} // for the first of the steps, a Restart

	// The watchers of the actor, and after its end those that have yet to be told. The
	// actor itself has none: it would tell them in a loop, which one that panics ends for
	// the others. They belong to the turn.
	watchers proto.PIDSet
	untold   []*proto.PID

	tree *engine.Subtree // the object's place in the tree of supervision; nil if it has not been told

	// context guards the actor that the invoker is: it is not made for more than one
	// goroutine, and the turn is not the only one that comes (see Spawn). It is not
	// held while anything is waited for, nor while a factory, a strategy, a watcher, or what
	// makes a child runs (see withoutContext): these may come back. The parent of an actor that ends
	// may hear of that while it is held; but a goroutine that comes to one that has been
	// told to end does not wait for it. It is locked until there is an invoker.
	context    sync.Mutex
	life       int                      // counts the restarts, and the end
	restarting bool                     // the actor waits for the end of its children
	stopping   bool                     // the actor has been stopped
	ended      bool                     // and its children have ended, too
	escalated  []*proto.PID             // children whose failures have been passed on: see escalateChild
	living     map[string]proto.Process // the actor's children by their ids: see lives
}

// Failure is what a supervisor decides about. It is a system message of an adapter's to
// itself.
type Failure struct {
	// Reason is an error, if it is the object itself that has failed, and not a child
	// whose failure is passed on.
	Reason any
	// Message led to it: an *actor.Invoke of the operation, or an *actor.Restart.
	Message any
	Request uint64 // its arrival; 0 if there is none
}

// inbox is an Adapter as protoactor and the workers know it.
type inbox Adapter

var (
	_ proto.Mailbox = (*inbox)(nil)
	_ engine.Task   = (*inbox)(nil)
)

// RegisterHandlers implements protoactor's Mailbox.
func (i *inbox) RegisterHandlers(invoker proto.MessageInvoker, _ proto.Dispatcher) {
	(*Adapter)(i).attach(invoker)
}

// Start implements protoactor's Mailbox.
func (i *inbox) Start() { (*Adapter)(i).start() }

// PostUserMessage implements protoactor's Mailbox.
func (i *inbox) PostUserMessage(message any) { (*Adapter)(i).postUserMessage(message) }

// PostSystemMessage implements protoactor's Mailbox.
func (i *inbox) PostSystemMessage(message any) { (*Adapter)(i).postSystemMessage(message) }

// UserMessageCount implements protoactor's Mailbox. The object counts its requests.
func (i *inbox) UserMessageCount() int { return 0 }

// Run implements engine.Task: it is the adapter's turn.
func (i *inbox) Run() { (*Adapter)(i).run() }

// newAdapter returns the adapter between an actor and a shared object. It logs by log, which
// does not block.
func newAdapter(object Receiver, workers Dispatcher, log func(level slog.Level, text string, args ...any)) *Adapter {
	a := &Adapter{object: object, workers: workers, log: log, busy: true}
	a.context.Lock()
	if s, ok := object.(Subject); ok {
		a.subject = s
		s.Attached(a)
	}
	return a
}

// attach says what handles the messages to the actor itself.
func (a *Adapter) attach(invoker proto.MessageInvoker) {
	a.invoker = invoker
	a.context.Unlock()
	if a.tree != nil {
		a.tree.Add(a.self().Id)
	}
}

// self returns the address of the actor.
func (a *Adapter) self() *proto.PID { return a.invoker.(interface{ Self() *proto.PID }).Self() }

// registry returns what knows the processes of the actor's system.
func (a *Adapter) registry() *proto.ProcessRegistryValue {
	return a.invoker.(interface{ ActorSystem() *proto.ActorSystem }).ActorSystem().ProcessRegistry
}

// start begins to handle system messages.
func (a *Adapter) start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy = false
	a.wake()
}

// postUserMessage hands a message to the object.
func (a *Adapter) postUserMessage(message any) {
	if e, ok := message.(*proto.MessageEnvelope); ok && e == nil {
		message = nil
	}
	header, body, sender := proto.UnwrapEnvelope(message)
	switch m := body.(type) {
	case *proto.PoisonPill:
		if !a.admits(m) {
			a.object.Receive(body, header, sender) // it is no request, either
			return
		}
		// Its place is behind what has been posted, which has arrived.
		a.object.Drain()
		a.post(m)
	case proto.MessageBatch:
		for _, one := range m.GetMessages() {
			a.postUserMessage(one)
		}
	default:
		a.object.Receive(body, header, sender)
	}
}

// postSystemMessage has the turn handle a message, if it is for the object.
func (a *Adapter) postSystemMessage(message any) {
	if c, ok := message.(*adapterQuery); ok {
		c.adapter = a
		return
	}
	switch message.(type) {
	case *proto.Stop, *proto.PoisonPill, *proto.Watch, *proto.Unwatch:
		if !a.admits(message) {
			message = refused{message}
		}
	}
	a.post(message)
}

// refused is a system message that the object does not admit. It is logged on the turn.
type refused struct{ message any }

func (a *Adapter) admits(message any) bool { return a.subject == nil || a.subject.Admits(message) }

// post has the turn handle a system message.
func (a *Adapter) post(message any) {
	_, stops := message.(*proto.Stop)
	if stops {
		a.object.Halt() // at once: a poison may be waiting in front
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.halted = a.halted || stops
	a.system = append(a.system, message)
	a.wake()
}

// Belongs says that the adapter is that of the object with the mailbox, and is about to be that of
// a child of the parent's; nil stands for an actor that is no object, or none. It is called when
// the adapter is attached.
func (a *Adapter) Belongs(box *engine.Mailbox, parent *Adapter) {
	var above *engine.Subtree
	if parent != nil {
		above = parent.tree
	}
	a.tree = engine.NewSubtree(box, above)
}

// Fail says that the object has failed; it has been suspended. Its supervisor gets to
// know the reason, and the message that led to it, and decides. If the object has been
// halted meanwhile nothing is decided any more.
func (a *Adapter) Fail(f Failure) { a.post(f) }

// wake sends a worker if there is something to do and none is at it. The caller
// holds mu.
//
// No message is left behind: a turn ends, or begins to wait, only after it has seen
// under mu that there is none, and has cleared busy or made poke by then. There is
// room for one token in poke, which stands for any number of messages.
func (a *Adapter) wake() {
	switch {
	case len(a.system) == 0:
	case !a.busy:
		a.busy = true
		a.workers.Dispatch((*inbox)(a))
	case a.poke != nil:
		select {
		case a.poke <- struct{}{}:
		default:
		}
	}
}

// run is the adapter's turn: it handles system messages until none is left and nothing
// is waited for.
func (a *Adapter) run() {
	returned := false
	defer func() {
		if !returned { // a factory or a supervisor has called runtime.Goexit
			a.workers.Dispatch((*inbox)(a))
		}
	}()
	for a.next() {
	}
	returned = true
}

// next does the next thing, for which it may wait, and reports whether there was one.
func (a *Adapter) next() bool {
	if len(a.untold) > 0 {
		watcher := a.untold[0]
		a.untold = a.untold[1:] // first, so that one that ends this goroutine is not told again
		a.notify(watcher)
		return true
	}
	a.mu.Lock()
	if len(a.system) > 0 {
		message := a.system[0]
		a.system = a.system[1:]
		a.mu.Unlock()
		a.handle(message)
		return true
	}
	a.system = nil
	if a.stopped == nil && a.drained == nil && a.quiet == nil {
		a.busy = false
		a.mu.Unlock()
		return false
	}
	if a.poke == nil {
		a.poke = make(chan struct{}, 1)
	}
	a.mu.Unlock()
	select {
	case <-a.poke:
	case <-a.stopped:
		// Watchers hear of the end after the last body has returned.
		message := a.stop
		a.stop, a.pill, a.stopped, a.drained, a.quiet, a.steps = nil, nil, nil, nil, nil, nil
		a.invoke(message)
	case <-a.drained:
		message := a.pill
		a.pill, a.drained = nil, nil
		a.context.Lock()
		a.invoker.InvokeUserMessage(message)
		a.context.Unlock()
	case <-a.quiet:
		message := a.steps[0]
		a.steps, a.quiet = a.steps[1:], nil
		if !a.ending() && a.subject.Renew() {
			a.invoke(message)
		}
		a.step()
	}
	return true
}

// handle handles a system message, or notes what it waits for.
func (a *Adapter) handle(message any) {
	switch m := message.(type) {
	case *proto.PoisonPill:
		a.pill, a.drained = message, a.object.Drain()
	case *proto.Stop:
		a.stop, a.stopped = message, a.object.Halt()
		a.decided("stopped")
	case *proto.SuspendMailbox, *proto.ResumeMailbox, *proto.Restart:
		if a.subject != nil && !a.ending() {
			a.steps = append(a.steps, message)
			a.step()
		}
	case Failure:
		if !a.ending() {
			a.escalate(m)
		}
	case refused:
		a.refuse(m.message, "comes from outside this process")
	case *proto.Watch:
		switch watcher := m.GetWatcher(); {
		case watcher == nil:
			a.refuse(message, "names no watcher")
		case a.ended:
			a.untold = append(a.untold, watcher)
		default:
			a.watchers.Add(watcher)
		}
	case *proto.Unwatch:
		if watcher := m.GetWatcher(); watcher == nil {
			a.refuse(message, "names no watcher")
		} else {
			a.watchers.Remove(watcher)
		}
	case *proto.Terminated:
		if m.GetWho() == nil {
			a.refuse(message, "names no actor")
			return
		}
		a.invoke(message)
	case *proto.Failure:
		if m == nil || m.Who == nil || m.RestartStats == nil {
			a.refuse(message, "names no child, or not how often it has failed")
			return
		}
		a.invoke(message)
	default:
		a.invoke(message)
	}
}

// lives reports whether a child has not ended, whatever a message says: it is registered until
// then. If another process has its name by now, the child has ended. The caller holds context,
// and goes on to hold it until the actor has forgotten the child: a new child of that name,
// which Spawn adds under context, is not forgotten in its place.
func (a *Adapter) lives(child *proto.PID) bool {
	process, ok := a.living[child.Id].(*proto.ActorProcess) // others might not be comparable
	if !ok {
		return false
	}
	now, _ := a.registry().GetLocal(child.Id)
	return now == proto.Process(process)
}

// notify sends a watcher the Terminated message of the actor.
func (a *Adapter) notify(watcher *proto.PID) {
	defer func() { a.contain(recover(), "telling "+watcher.Id+" of its end") }()
	process, _ := a.registry().Get(watcher)
	process.SendSystemMessage(watcher, &proto.Terminated{Who: a.self()})
}

// refuse logs that a message is not handled.
func (a *Adapter) refuse(message any, why string) {
	a.log(slog.LevelWarn, fmt.Sprintf("sluice: a message of type %T is refused: it %s", message, why), "actor", a.self().Id)
}

// contain logs a panic, if there has been one.
func (a *Adapter) contain(value any, doing string) {
	if value != nil {
		a.log(slog.LevelError, fmt.Sprintf("sluice: panic while %s: %v", doing, value), "actor", a.self().Id, "stack", string(debug.Stack()))
	}
}

// step takes the steps that need not wait, in order, up to the next that has to.
func (a *Adapter) step() {
	for ; len(a.steps) > 0 && a.quiet == nil; a.steps = a.steps[1:] {
		switch a.steps[0].(type) {
		case *proto.SuspendMailbox:
			a.subject.Suspend()
		case *proto.ResumeMailbox:
			a.decided("resumed")
			a.resume()
		case *proto.Restart:
			a.decided(restarted)
			a.quiet = a.subject.Suspend()
			a.tree.Recheck()
			return
		}
	}
}

const restarted = "restarted"

// decided tells the object what is done with it, if its supervisor has been asked; or if it
// loses its state.
func (a *Adapter) decided(what string) {
	a.mu.Lock()
	asked := a.asked
	a.asked = nil
	a.mu.Unlock()
	switch {
	case a.subject == nil:
	case asked != nil:
		a.subject.Decided(what, *asked)
	case what == restarted:
		a.subject.Decided(what, Failure{})
	}
}

// noteFailure notes the failure that the supervisor is about to decide about.
func (a *Adapter) noteFailure(f Failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = &f
}

// ending reports whether there has been a Stop.
func (a *Adapter) ending() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.halted
}

// invoke has the actor handle a system message.
//
// A restarted actor first stops its children. When the last has ended, in whatever
// message says so, it is alive again, and posts the ResumeMailbox that ends the
// object's suspension.
func (a *Adapter) invoke(message any) {
	a.context.Lock()
	before, lives := a.restarting, false
	// Also if a strategy, or a process that it speaks to, panics or ends the goroutine.
	defer func() {
		value := recover()
		a.invoked(before)
		a.context.Unlock()
		a.contain(value, fmt.Sprintf("handling a message of type %T", message))
		if lives {
			a.refuse(message, "is about a child that has not ended")
		}
	}()
	switch m := message.(type) {
	case *proto.Stop:
		a.life++
		a.stopping = true
	case *proto.Restart:
		a.life++
		a.restarting, a.escalated = true, nil // the children are about to end
	case *proto.Terminated:
		if lives = a.lives(m.Who); lives {
			return
		}
		a.tree.Remove(m.Who.Id)
		delete(a.living, m.Who.Id)
	}
	a.invoker.InvokeSystemMessage(message)
}

// invoked looks at what a message has made of the actor, which has waited for the end of its
// children before or not. The caller holds context.
func (a *Adapter) invoked(before bool) {
	if !a.restarting && !a.stopping {
		return
	}
	parent, _ := a.invoker.(interface{ Children() []*proto.PID })
	alone := parent == nil || len(parent.Children()) == 0
	a.restarting = a.restarting && !alone
	if a.stopping && alone && !a.ended {
		a.ended = true
		a.untold, a.watchers = a.watchers.Values(), proto.PIDSet{}
	}
	if a.restarting != before {
		a.tree.AwaitChildren(a.restarting) // before there can be a child that does not end
	}
}

// resume ends the suspension of the object, unless its actor has yet to restart, and
// of the children for whose failures it was suspended.
func (a *Adapter) resume() {
	a.context.Lock()
	restarting, children := a.restarting, a.escalated
	if !restarting {
		a.escalated = nil
	}
	a.context.Unlock()
	if restarting {
		return
	}
	a.subject.Resume()
	if len(children) > 0 {
		a.invoker.(proto.Supervisor).ResumeChildren(children...)
	}
}

// escalateChild escalates the failure of a child to the actor's own supervisor. If that restarts
// or stops the actor, the child ends. If it resumes the actor, protoactor leaves the child
// suspended, and no decision about the child would ever come; so resume resumes the child, too.
// The strategy for the children calls escalateChild, within withoutContext.
func (a *Adapter) escalateChild(child *proto.PID, reason, message any) {
	a.context.Lock()
	defer a.context.Unlock()
	a.escalated = append(a.escalated, child)
	a.noteFailure(Failure{Reason: reason, Message: message})
	a.invoker.EscalateFailure(reason, message)
}

// childPIDs returns the actor's children. It is called within withoutContext.
func (a *Adapter) childPIDs() []*proto.PID {
	a.context.Lock()
	defer a.context.Unlock()
	return a.invoker.(interface{ Children() []*proto.PID }).Children()
}

// withoutContext unlocks context while it calls f, which is code of others, so that f may call the
// adapter and make children. The caller holds context.
//
// That is sound where the actor has nothing half done. Protoactor asks a strategy at
// the end of what it does, on the turn, so that all calls that come meanwhile come by Spawn; and
// it makes a child before it changes anything, for a call that has come by Spawn, which
// finds out by epoch whether the turn has handled a Stop or Restart meanwhile.
func (a *Adapter) withoutContext(f func()) {
	a.context.Unlock()
	defer a.context.Lock()
	f()
}

// adapterQuery is a system message that an actor's adapter answers at once, by setting adapter.
type adapterQuery struct{ adapter *Adapter }

// adapterOf returns the adapter of an actor that has one, or nil if it has ended.
func adapterOf(actors *proto.ActorSystem, pid *proto.PID) *Adapter {
	c := &adapterQuery{}
	if pid == nil {
		return nil
	}
	if process, ok := actors.ProcessRegistry.GetLocal(pid.Id); ok {
		process.SendSystemMessage(pid, c)
	}
	return c.adapter
}

// escalate has the actor tell its supervisor of a failure, which may be asked, and
// answer, right here.
func (a *Adapter) escalate(f Failure) {
	a.noteFailure(f)
	a.context.Lock()
	returned := false
	defer func() {
		a.context.Unlock()
		if !returned {
			a.subject.Undecided(engine.Panicked(recover()))
			a.post(&proto.Stop{})
		}
	}()
	a.invoker.EscalateFailure(f.Reason, f.Message)
	returned = true
}

// Spawn makes an actor a child of the object's. It does not wait for the turn, nor
// the turn for it, so that it may be called by a body that the turn waits for. It
// reports false if the object is about to end, or its actor to restart, which has to
// wait for the end of its children and would for this one: then nothing is done.
//
// A child that is spawned before the actor handles the Stop, or the Restart, is
// stopped by that: the context orders the two. While the child is being made the
// context is free, and the actor may handle one of them, and not know of the child:
// then epoch has changed, the child is stopped here, and Spawn reports false.
//
// The child may be stopped in the moment before it is one, and the actor hear of its end,
// and know nothing of it: then it would wait for the end of that child for ever. So it hears
// of it again. A child that is still registered here has its end to come, and to be told.
func (a *Adapter) Spawn(props *proto.Props, name string) (pid *proto.PID, ok bool, err error) {
	if a.ending() {
		return nil, false, nil // the context may be held while a parent hears of the end
	}
	a.context.Lock()
	defer a.context.Unlock()
	parent, able := a.invoker.(proto.SpawnerContext)
	if !able || a.restarting || a.ending() {
		return nil, false, nil
	}
	life := a.life
	pid, err = parent.SpawnNamed(props, name)
	if err == nil {
		if process, registered := parent.ActorSystem().ProcessRegistry.GetLocal(pid.Id); !registered {
			a.post(&proto.Terminated{Who: pid})
		} else {
			if a.living == nil {
				a.living = map[string]proto.Process{}
			}
			a.living[pid.Id] = process
		}
	}
	if err == nil && a.life != life {
		a.invoker.(proto.Supervisor).StopChildren(pid)
		return nil, false, nil
	}
	return pid, true, err
}

// spawning is protoactor's middleware for the making of children of an actor that has an
// adapter.
func spawning(next proto.SpawnFunc) proto.SpawnFunc {
	return func(actors *proto.ActorSystem, id string, props *proto.Props, parent proto.SpawnerContext) (pid *proto.PID, err error) {
		// It has not ended: Spawn, which this comes from, has held the context since it looked.
		adapterOf(actors, parent.Self()).withoutContext(func() { pid, err = next(actors, id, props, parent) })
		return pid, err
	}
}
