package mailbox

import (
	"sync"

	proto "github.com/asynkron/protoactor-go/actor"
)

// Receiver is the shared object as protoactor sees it.
type Receiver interface {
	// Receive takes a user message. Sender is nil if nobody expects a reply.
	Receive(message any, sender *proto.PID)
	// Halt ends the object; the channel is closed when its last body has
	// returned.
	Halt() <-chan struct{}
	// Drain ends the object after what waits and can start has been served.
	Drain() <-chan struct{}
}

// Plug is the mailbox that protoactor sees. User messages go to the shared
// object, and so through the same waiting queue as every other request; system
// messages go to the actor around it, in order, one at a time, on a worker.
//
// A message may come before the actor has been started: protoactor registers the
// process first. User messages do not mind, as the object is complete by then;
// system messages wait for Start.
type Plug struct {
	object  Receiver
	workers Dispatcher
	invoker proto.MessageInvoker

	mu     sync.Mutex
	system []any // system messages not yet handled, in order
	busy   bool  // not started, or a worker is at it or on its way
}

// NewPlug returns the plug between an actor and a shared object.
func NewPlug(object Receiver, workers Dispatcher) *Plug {
	return &Plug{object: object, workers: workers, busy: true}
}

// RegisterHandlers implements protoactor's Mailbox.
func (p *Plug) RegisterHandlers(invoker proto.MessageInvoker, _ proto.Dispatcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.invoker = invoker
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
	_, body, sender := proto.UnwrapEnvelope(message)
	switch m := body.(type) {
	case *proto.PoisonPill:
		// Its place is behind what has been posted, which has arrived.
		p.object.Drain()
		p.PostSystemMessage(m)
	case proto.MessageBatch:
		for _, one := range m.GetMessages() {
			p.PostUserMessage(one)
		}
	default:
		p.object.Receive(body, sender)
	}
}

// PostSystemMessage implements protoactor's Mailbox.
func (p *Plug) PostSystemMessage(message any) {
	if _, ok := message.(*proto.Stop); ok {
		p.object.Halt() // at once: a poison may be waiting in front
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.system = append(p.system, message)
	p.wake()
}

// wake sends a worker if there is something to do and none is at it. The caller
// holds mu.
func (p *Plug) wake() {
	if len(p.system) > 0 && !p.busy {
		p.busy = true
		p.workers.Dispatch(p)
	}
}

// Run handles system messages until none is left. It implements Task.
func (p *Plug) Run() {
	for {
		p.mu.Lock()
		if len(p.system) == 0 {
			p.system, p.busy = nil, false
			p.mu.Unlock()
			return
		}
		message := p.system[0]
		p.system = p.system[1:]
		p.mu.Unlock()
		switch message.(type) {
		case *proto.PoisonPill:
			<-p.object.Drain()
			p.invoker.InvokeUserMessage(message)
		case *proto.Stop:
			// Watchers hear of the end after the last body has returned.
			<-p.object.Halt()
			p.invoker.InvokeSystemMessage(message)
		case *proto.SuspendMailbox, *proto.ResumeMailbox:
			// The actor around the object never fails: bodies and guards are
			// contained, so there is nothing to suspend.
		default:
			p.invoker.InvokeSystemMessage(message)
		}
	}
}

// UserMessageCount implements protoactor's Mailbox. Requests are counted by the
// object: see Mailbox.Queued.
func (p *Plug) UserMessageCount() int { return 0 }
