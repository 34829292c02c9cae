package engine

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	proto "github.com/asynkron/protoactor-go/actor"
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
// called on the turn of its plug, one at a time, unless they say otherwise.
type Subject interface {
	Receiver
	// Plugged says what the object's plug is, before anybody can send it anything.
	Plugged(p *Plug)
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
	// Undecided says that nobody can decide about a failure, as the supervisor has
	// panicked with the value, or, if that is nil, called runtime.Goexit. The object
	// is about to be halted.
	Undecided(value any)
}

// Plug is the mailbox that protoactor sees. User messages go to the shared
// object, and so through the same waiting queue as every other request; system
// messages go to the actor around it, in order, one at a time, on a worker: the
// plug's turn.
//
//	Stop, PoisonPill ──► object halts or drains ──► its last body has returned ──► the actor ends
//	Restart          ──► object is suspended    ──► what runs has returned ──► new state ──► the actor restarts
//	Watch, Unwatch   ──► the plug's watchers
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
type Plug struct {
	object  Receiver
	subject Subject // the same; nil if it is none
	workers Dispatcher
	invoker proto.MessageInvoker
	log     func(level slog.Level, text string, args ...any)

	mu     sync.Mutex
	system []any         // system messages not yet handled, in order
	busy   bool          // not started, or a worker is at it or on its way
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

	// The object's mailbox and the parent's plug, if they have been told, and the plugs
	// of the object's children, by their ids. The last is guarded by graph.
	box      *Mailbox
	parent   *Plug
	children map[string]*Plug

	// context guards the actor that the invoker is: it is not made for more than one
	// goroutine, and the turn is not the only one that comes (see Spawn). It is not
	// held while anything is waited for, nor while a factory, a strategy, a watcher, or what
	// makes a child runs (see Outside): these may come back. The parent of an actor that ends
	// may hear of that while it is held; but a goroutine that comes to one that has been
	// told to end does not wait for it. It is locked until there is an invoker.
	context    sync.Mutex
	life       int                      // counts the restarts, and the end
	restarting bool                     // the actor waits for the end of its children
	stopping   bool                     // the actor has been stopped
	ended      bool                     // and its children have ended, too
	escalated  []*proto.PID             // children whose failures have been passed on: see Escalate
	living     map[string]proto.Process // the actor's children by their ids: see lives
}

// Failure is what a supervisor decides about. It is a system message of a plug's to
// itself.
type Failure struct {
	// Reason is an error, if it is the object itself that has failed, and not a child
	// whose failure is passed on.
	Reason any
	// Message led to it: an *actor.Invoke of the operation, or an *actor.Restart.
	Message any
	Request uint64 // its arrival; 0 if there is none
}

// NewPlug returns the plug between an actor and a shared object. It logs by log, which
// does not block.
func NewPlug(object Receiver, workers Dispatcher, log func(level slog.Level, text string, args ...any)) *Plug {
	p := &Plug{object: object, workers: workers, log: log, busy: true}
	p.context.Lock()
	if s, ok := object.(Subject); ok {
		p.subject = s
		s.Plugged(p)
	}
	return p
}

// RegisterHandlers implements protoactor's Mailbox.
func (p *Plug) RegisterHandlers(invoker proto.MessageInvoker, _ proto.Dispatcher) {
	p.invoker = invoker
	p.context.Unlock()
	p.born()
}

// self returns the address of the actor.
func (p *Plug) self() *proto.PID { return p.invoker.(interface{ Self() *proto.PID }).Self() }

// registry returns what knows the processes of the actor's system.
func (p *Plug) registry() *proto.ProcessRegistryValue {
	return p.invoker.(interface{ ActorSystem() *proto.ActorSystem }).ActorSystem().ProcessRegistry
}

// Start implements protoactor's Mailbox.
func (p *Plug) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = false
	p.wake()
}

// PostUserMessage implements protoactor's Mailbox.
func (p *Plug) PostUserMessage(message any) {
	if e, ok := message.(*proto.MessageEnvelope); ok && e == nil {
		message = nil
	}
	header, body, sender := proto.UnwrapEnvelope(message)
	switch m := body.(type) {
	case *proto.PoisonPill:
		if !p.admits(m) {
			p.object.Receive(body, header, sender) // it is no request, either
			return
		}
		// Its place is behind what has been posted, which has arrived.
		p.object.Drain()
		p.post(m)
	case proto.MessageBatch:
		for _, one := range m.GetMessages() {
			p.PostUserMessage(one)
		}
	default:
		p.object.Receive(body, header, sender)
	}
}

// PostSystemMessage implements protoactor's Mailbox.
func (p *Plug) PostSystemMessage(message any) {
	if c, ok := message.(*call); ok {
		c.plug = p
		return
	}
	switch message.(type) {
	case *proto.Stop, *proto.PoisonPill, *proto.Watch, *proto.Unwatch:
		if !p.admits(message) {
			message = refused{message}
		}
	}
	p.post(message)
}

// refused is a system message that the object does not admit. It is logged on the turn.
type refused struct{ message any }

func (p *Plug) admits(message any) bool { return p.subject == nil || p.subject.Admits(message) }

// post has the turn handle a system message.
func (p *Plug) post(message any) {
	_, stops := message.(*proto.Stop)
	if stops {
		p.object.Halt() // at once: a poison may be waiting in front
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halted = p.halted || stops
	p.system = append(p.system, message)
	p.wake()
}

// Fail says that the object has failed; it has been suspended. Its supervisor gets to
// know the reason, and the message that led to it, and decides. If the object has been
// halted meanwhile nothing is decided any more.
func (p *Plug) Fail(f Failure) { p.post(f) }

// wake sends a worker if there is something to do and none is at it. The caller
// holds mu.
//
// No message is left behind: a turn ends, or begins to wait, only after it has seen
// under mu that there is none, and has cleared busy or made poke by then. There is
// room for one token in poke, which stands for any number of messages.
func (p *Plug) wake() {
	switch {
	case len(p.system) == 0:
	case !p.busy:
		p.busy = true
		p.workers.Dispatch(p)
	case p.poke != nil:
		select {
		case p.poke <- struct{}{}:
		default:
		}
	}
}

// Run is the plug's turn: it handles system messages until none is left and nothing
// is waited for. It implements Task.
func (p *Plug) Run() {
	returned := false
	defer func() {
		if !returned { // a factory or a supervisor has called runtime.Goexit
			p.workers.Dispatch(p)
		}
	}()
	for p.next() {
	}
	returned = true
}

// next does the next thing, for which it may wait, and reports whether there was one.
func (p *Plug) next() bool {
	if len(p.untold) > 0 {
		watcher := p.untold[0]
		p.untold = p.untold[1:] // first, so that one that ends this goroutine is not told again
		p.tell(watcher)
		return true
	}
	p.mu.Lock()
	if len(p.system) > 0 {
		message := p.system[0]
		p.system = p.system[1:]
		p.mu.Unlock()
		p.handle(message)
		return true
	}
	p.system = nil
	if p.stopped == nil && p.drained == nil && p.quiet == nil {
		p.busy = false
		p.mu.Unlock()
		return false
	}
	if p.poke == nil {
		p.poke = make(chan struct{}, 1)
	}
	p.mu.Unlock()
	select {
	case <-p.poke:
	case <-p.stopped:
		// Watchers hear of the end after the last body has returned.
		message := p.stop
		p.stop, p.pill, p.stopped, p.drained, p.quiet, p.steps = nil, nil, nil, nil, nil, nil
		p.invoke(message)
	case <-p.drained:
		message := p.pill
		p.pill, p.drained = nil, nil
		p.context.Lock()
		p.invoker.InvokeUserMessage(message)
		p.context.Unlock()
	case <-p.quiet:
		message := p.steps[0]
		p.steps, p.quiet = p.steps[1:], nil
		if !p.ending() && p.subject.Renew() {
			p.invoke(message)
		}
		p.step()
	}
	return true
}

// handle handles a system message, or notes what it waits for.
func (p *Plug) handle(message any) {
	switch m := message.(type) {
	case *proto.PoisonPill:
		p.pill, p.drained = message, p.object.Drain()
	case *proto.Stop:
		p.stop, p.stopped = message, p.object.Halt()
		p.decided("stopped")
	case *proto.SuspendMailbox, *proto.ResumeMailbox, *proto.Restart:
		if p.subject != nil && !p.ending() {
			p.steps = append(p.steps, message)
			p.step()
		}
	case Failure:
		if !p.ending() {
			p.escalate(m)
		}
	case refused:
		p.refuse(m.message, "comes from outside this process")
	case *proto.Watch:
		switch watcher := m.GetWatcher(); {
		case watcher == nil:
			p.refuse(message, "names no watcher")
		case p.ended:
			p.untold = append(p.untold, watcher)
		default:
			p.watchers.Add(watcher)
		}
	case *proto.Unwatch:
		if watcher := m.GetWatcher(); watcher == nil {
			p.refuse(message, "names no watcher")
		} else {
			p.watchers.Remove(watcher)
		}
	case *proto.Terminated:
		if m.GetWho() == nil {
			p.refuse(message, "names no actor")
			return
		}
		p.invoke(message)
	case *proto.Failure:
		if m == nil || m.Who == nil || m.RestartStats == nil {
			p.refuse(message, "names no child, or not how often it has failed")
			return
		}
		p.invoke(message)
	default:
		p.invoke(message)
	}
}

// lives reports whether a child has not ended, whatever a message says: it is registered until
// then. If another process has its name by now, the child has ended. The caller holds context,
// and goes on to hold it until the actor has forgotten the child: a new child of that name,
// which Spawn adds under context, is not forgotten in its place.
func (p *Plug) lives(child *proto.PID) bool {
	process, ok := p.living[child.Id].(*proto.ActorProcess) // others might not be comparable
	if !ok {
		return false
	}
	now, _ := p.registry().GetLocal(child.Id)
	return now == proto.Process(process)
}

// tell tells a watcher of the actor's end.
func (p *Plug) tell(watcher *proto.PID) {
	defer func() { p.contain(recover(), "telling "+watcher.Id+" of its end") }()
	process, _ := p.registry().Get(watcher)
	process.SendSystemMessage(watcher, &proto.Terminated{Who: p.self()})
}

// refuse logs that a message is not handled.
func (p *Plug) refuse(message any, why string) {
	p.log(slog.LevelWarn, fmt.Sprintf("sluice: a message of type %T is refused: it %s", message, why), "actor", p.self().Id)
}

// contain logs a panic, if there has been one.
func (p *Plug) contain(value any, doing string) {
	if value != nil {
		p.log(slog.LevelError, fmt.Sprintf("sluice: panic while %s: %v", doing, value), "actor", p.self().Id, "stack", string(debug.Stack()))
	}
}

// step takes the steps that need not wait, in order, up to the next that has to.
func (p *Plug) step() {
	for ; len(p.steps) > 0 && p.quiet == nil; p.steps = p.steps[1:] {
		switch p.steps[0].(type) {
		case *proto.SuspendMailbox:
			p.subject.Suspend()
		case *proto.ResumeMailbox:
			p.decided("resumed")
			p.resume()
		case *proto.Restart:
			p.decided(restarted)
			if p.quiet = p.subject.Suspend(); p.box != nil {
				p.box.mu.Lock()
				p.box.doubt()
				p.box.mu.Unlock()
			}
			return
		}
	}
}

const restarted = "restarted"

// decided tells the object what is done with it, if its supervisor has been asked; or if it
// loses its state.
func (p *Plug) decided(what string) {
	p.mu.Lock()
	asked := p.asked
	p.asked = nil
	p.mu.Unlock()
	switch {
	case p.subject == nil:
	case asked != nil:
		p.subject.Decided(what, *asked)
	case what == restarted:
		p.subject.Decided(what, Failure{})
	}
}

// ask notes what the supervisor is about to be asked.
func (p *Plug) ask(f Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = &f
}

// ending reports whether there has been a Stop.
func (p *Plug) ending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.halted
}

// invoke has the actor handle a system message.
//
// A restarted actor first stops its children. When the last has ended, in whatever
// message says so, it is alive again, and posts the ResumeMailbox that ends the
// object's suspension.
func (p *Plug) invoke(message any) {
	p.context.Lock()
	before, lives := p.restarting, false
	// Also if a strategy, or a process that it speaks to, panics or ends the goroutine.
	defer func() {
		value := recover()
		p.invoked(before)
		p.context.Unlock()
		p.contain(value, fmt.Sprintf("handling a message of type %T", message))
		if lives {
			p.refuse(message, "is about a child that has not ended")
		}
	}()
	switch m := message.(type) {
	case *proto.Stop:
		p.life++
		p.stopping = true
	case *proto.Restart:
		p.life++
		p.restarting, p.escalated = true, nil // the children are about to end
	case *proto.Terminated:
		if lives = p.lives(m.Who); lives {
			return
		}
		p.died(m.Who.Id)
		delete(p.living, m.Who.Id)
	}
	p.invoker.InvokeSystemMessage(message)
}

// invoked looks at what a message has made of the actor, which has waited for the end of its
// children before or not. The caller holds context.
func (p *Plug) invoked(before bool) {
	if !p.restarting && !p.stopping {
		return
	}
	parent, _ := p.invoker.(interface{ Children() []*proto.PID })
	alone := parent == nil || len(parent.Children()) == 0
	p.restarting = p.restarting && !alone
	if p.stopping && alone && !p.ended {
		p.ended = true
		p.untold, p.watchers = p.watchers.Values(), proto.PIDSet{}
	}
	if p.restarting != before {
		p.awaits(p.restarting) // before there can be a child that does not end
	}
}

// resume ends the suspension of the object, unless its actor has yet to restart, and
// of the children for whose failures it was suspended.
func (p *Plug) resume() {
	p.context.Lock()
	restarting, children := p.restarting, p.escalated
	if !restarting {
		p.escalated = nil
	}
	p.context.Unlock()
	if restarting {
		return
	}
	p.subject.Resume()
	if len(children) > 0 {
		p.invoker.(proto.Supervisor).ResumeChildren(children...)
	}
}

// Escalate passes the failure of a child on to the actor's own supervisor. If that
// restarts or stops the actor, the child ends; but if it resumes the actor, protoactor
// leaves the child suspended, and nobody would ever decide about it. So it is resumed,
// too. It is called by the strategy for the children, outside.
func (p *Plug) Escalate(child *proto.PID, reason, message any) {
	p.context.Lock()
	defer p.context.Unlock()
	p.escalated = append(p.escalated, child)
	p.ask(Failure{Reason: reason, Message: message})
	p.invoker.EscalateFailure(reason, message)
}

// Children returns the actor's children. It is called outside.
func (p *Plug) Children() []*proto.PID {
	p.context.Lock()
	defer p.context.Unlock()
	return p.invoker.(interface{ Children() []*proto.PID }).Children()
}

// Outside has f called, which is somebody else's, in the midst of something that the
// actor does: without its context, so that f may come back and make children.
//
// That is sound where the actor has nothing half done. Protoactor asks a strategy at
// the end of what it does, on the turn, so that all who come meanwhile come by Spawn; and
// it makes a child before it changes anything, for one who has come by Spawn, and who
// finds out by life whether the turn has come meanwhile.
func (p *Plug) Outside(f func()) {
	p.context.Unlock()
	defer p.context.Lock()
	f()
}

// call is a system message to an actor that has a plug, which answers it at once.
type call struct{ plug *Plug }

// PlugOf returns the plug of an actor that has one, or nil if it has ended.
func PlugOf(actors *proto.ActorSystem, pid *proto.PID) *Plug {
	c := &call{}
	if pid == nil {
		return nil
	}
	if process, ok := actors.ProcessRegistry.GetLocal(pid.Id); ok {
		process.SendSystemMessage(pid, c)
	}
	return c.plug
}

// escalate has the actor tell its supervisor of a failure, who may be asked, and
// answer, right here.
func (p *Plug) escalate(f Failure) {
	p.ask(f)
	p.context.Lock()
	returned := false
	defer func() {
		p.context.Unlock()
		if !returned {
			p.subject.Undecided(Panicked(recover()))
			p.post(&proto.Stop{})
		}
	}()
	p.invoker.EscalateFailure(f.Reason, f.Message)
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
// then life tells, the child is stopped here, and nothing has been done.
//
// Somebody may stop the child in the moment before it is one, and the actor hear of its end,
// and know nothing of it: then it would wait for the end of that child for ever. So it hears
// of it again. A child that is still registered here has its end to come, and to be told.
func (p *Plug) Spawn(props *proto.Props, name string) (pid *proto.PID, ok bool, err error) {
	if p.ending() {
		return nil, false, nil // the context may be held while somebody hears of the end
	}
	p.context.Lock()
	defer p.context.Unlock()
	parent, able := p.invoker.(proto.SpawnerContext)
	if !able || p.restarting || p.ending() {
		return nil, false, nil
	}
	life := p.life
	pid, err = parent.SpawnNamed(props, name)
	if err == nil {
		if process, registered := parent.ActorSystem().ProcessRegistry.GetLocal(pid.Id); !registered {
			p.post(&proto.Terminated{Who: pid})
		} else {
			if p.living == nil {
				p.living = map[string]proto.Process{}
			}
			p.living[pid.Id] = process
		}
	}
	if err == nil && p.life != life {
		p.invoker.(proto.Supervisor).StopChildren(pid)
		return nil, false, nil
	}
	return pid, true, err
}

// Spawning is protoactor's middleware for the making of children of an actor that has a
// plug.
func Spawning(next proto.SpawnFunc) proto.SpawnFunc {
	return func(actors *proto.ActorSystem, id string, props *proto.Props, parent proto.SpawnerContext) (pid *proto.PID, err error) {
		// It has not ended: Spawn, which this comes from, has held the context since it looked.
		PlugOf(actors, parent.Self()).Outside(func() { pid, err = next(actors, id, props, parent) })
		return pid, err
	}
}

// UserMessageCount implements protoactor's Mailbox. Requests are counted by the
// object: see Mailbox.Queued.
func (p *Plug) UserMessageCount() int { return 0 }
