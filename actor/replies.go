package actor

import (
	crypto "crypto/rand"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"sync"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

// replyAddress is the address part of every waiter's PID. No other machine has it.
const replyAddress = "$sluice"

// replyRegistry receives the messages that are addressed to no actor: replies to requests, and
// Terminated messages for watches. Each request or watch that expects one registers a waiter,
// which gets a slot and an address of its own: the index of the slot, and a random number.
//
// A waiter's number is never reused. So a late message cannot reach a later waiter of the
// same slot, nor can a message reach a waiter of another registry than the one that it was
// meant for. The goroutine that removes a waiter from its slot, under mu, is the only one
// that may call its deliver or cancel; so each waiter gets at most one of these calls.
//
// An address is a capability. Protoactor's remote delivers whatever a peer sends to the
// address of a reply. So the numbers come from a cryptographic generator that the operating
// system seeds: only the target of a request, and actors to which the target passes the
// address, can name it. With 64 bits, a number that repeats or is guessed is very unlikely.
//
// Protoactor's process registry has no entries for waiters. It asks the reply registry about
// each address of this kind, through a resolver. There is one reply registry for each
// protoactor system, shared by all Systems on it, since a resolver can neither be added while
// other goroutines send, nor be removed.
type replyRegistry struct {
	actors *proto.ActorSystem

	mu      sync.Mutex
	numbers *rand.ChaCha8 // of waiters
	slots   []slot
	free    []uint32 // indices of the free slots
}

// waiter is what a message to a slot is delivered to: a pendingReply or a watcher.
type waiter interface {
	// owner returns the System that the waiter belongs to.
	owner() *System
	// assign sets the waiter's id. It is called before the waiter can be found by the id.
	assign(p waiterID)
	// deliver passes the message that has arrived. The waiter is not registered any more.
	deliver(message any)
	// cancel says that no message will be delivered, as the owner is closing. The waiter
	// is not registered any more.
	cancel()
}

// slot holds a waiter, and the number of its id.
type slot struct {
	waiter waiter // nil if it is free
	number uint64
}

// waiterID identifies a waiter. As a string it is the Id of the waiter's PID.
type waiterID struct {
	number uint64 // random
	index  uint32 // of the slot
}

var (
	replyRegistries  sync.Mutex
	replyRegistryKey = extensions.NextExtensionID()
)

var _ proto.Process = (*replyRegistry)(nil)

// ExtensionID implements protoactor's Extension.
func (r *replyRegistry) ExtensionID() extensions.ExtensionID { return replyRegistryKey }

// replyRegistryOf returns the reply registry of a protoactor system, and makes it if there is
// none.
func replyRegistryOf(actors *proto.ActorSystem) *replyRegistry {
	replyRegistries.Lock()
	defer replyRegistries.Unlock()
	if r, ok := actors.Extensions.Get(replyRegistryKey).(*replyRegistry); ok {
		return r
	}
	var seed [32]byte
	_, _ = crypto.Read(seed[:]) // it never fails
	r := &replyRegistry{actors: actors, numbers: rand.NewChaCha8(seed)}
	actors.Extensions.Register(r)
	// The resolver goes before all others: that of protoactor's remote takes every address
	// for one of another machine.
	registry := actors.ProcessRegistry
	registry.RemoteHandlers = append([]proto.AddressResolver{r.resolve}, registry.RemoteHandlers...)
	return r
}

// resolve is protoactor's AddressResolver.
func (r *replyRegistry) resolve(pid *PID) (proto.Process, bool) {
	return r, pid.Address == replyAddress
}

// register puts the waiter into a slot and assigns its id. It fails with ErrClosed if the owner
// is closed.
func (r *replyRegistry) register(w waiter) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.owner().repliesClosed {
		return ErrClosed
	}
	p := waiterID{number: r.numbers.Uint64()}
	if n := len(r.free); n > 0 {
		p.index, r.free = r.free[n-1], r.free[:n-1]
	} else {
		p.index = uint32(len(r.slots))
		r.slots = append(r.slots, slot{})
	}
	w.assign(p)
	r.slots[p.index] = slot{w, p.number}
	return nil
}

// waiterAt returns the waiter with the id, or nil if it is not registered any more. The caller
// holds mu.
func (r *replyRegistry) waiterAt(p waiterID) waiter {
	if int64(p.index) < int64(len(r.slots)) && r.slots[p.index].number == p.number {
		return r.slots[p.index].waiter
	}
	return nil
}

// freeSlot frees a slot. When the last one of many is freed, their memory is released. The
// caller holds mu.
func (r *replyRegistry) freeSlot(index uint32) {
	const few = 1 << 10
	r.slots[index] = slot{}
	r.free = append(r.free, index)
	if len(r.free) == len(r.slots) && len(r.slots) > few {
		r.slots, r.free = nil, nil
	}
}

// find returns the waiter with the address, or nil. The waiter stays registered.
func (r *replyRegistry) find(pid *PID) waiter {
	p, ok := waiterIDOf(pid.Id)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiterAt(p)
}

// take removes the waiter with the address and returns it. It returns nil, and removes nothing,
// if there is no such waiter or kind reports false for it.
func (r *replyRegistry) take(pid *PID, kind func(waiter) bool) waiter {
	p, ok := waiterIDOf(pid.Id)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.waiterAt(p)
	if w == nil || !kind(w) {
		return nil
	}
	r.freeSlot(p.index)
	return w
}

// remove removes the waiter with the id. It reports false if that was not registered any more.
func (r *replyRegistry) remove(p waiterID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiterAt(p) == nil {
		return false
	}
	r.freeSlot(p.index)
	return true
}

// closedFor reports whether the waiters of the system have been canceled by closeFor.
func (r *replyRegistry) closedFor(s *System) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return s.repliesClosed
}

// closeFor cancels all waiters of the system, which is closing. From then on register fails for
// that system.
func (r *replyRegistry) closeFor(s *System) {
	r.mu.Lock()
	s.repliesClosed = true
	var removed []waiter
	for i := 0; i < len(r.slots); i++ { // freeSlot may set r.slots to nil
		if w := r.slots[i].waiter; w != nil && w.owner() == s {
			removed = append(removed, w)
			r.freeSlot(uint32(i))
		}
	}
	r.mu.Unlock()
	for _, w := range removed {
		w.cancel()
	}
}

// SendUserMessage implements protoactor's Process. It delivers a reply to the request that waits
// for it; a reply that no request waits for becomes a dead letter.
func (r *replyRegistry) SendUserMessage(pid *PID, message any) {
	if e, ok := message.(*proto.MessageEnvelope); ok && e == nil {
		message = nil
	}
	_, body, _ := proto.UnwrapEnvelope(message)
	if w := r.take(pid, isPendingReply); w != nil {
		w.deliver(body)
		return
	}
	switch body.(type) {
	case *proto.DeadLetterResponse: // for a late reply, which has been a dead letter already
	default:
		defer r.contain()
		r.actors.DeadLetter.SendUserMessage(pid, message)
	}
}

// SendSystemMessage implements protoactor's Process. It delivers the Terminated message of a
// watched actor to its watcher. A waiter is no actor: an actor that watches the sender of a
// request is told that there is no actor at the address.
func (r *replyRegistry) SendSystemMessage(pid *PID, message any) {
	switch m := message.(type) {
	case *proto.Terminated:
		watches := func(w waiter) bool {
			// Compared by Id alone: the actor's Address changes when protoactor's remote starts.
			of, ok := w.(*watcher)
			return ok && m.GetWho() != nil && of.actor.Id == m.Who.Id
		}
		if w := r.take(pid, watches); w != nil {
			w.deliver(message)
		}
	case *proto.Watch:
		if m.GetWatcher() != nil {
			defer r.contain()
			r.actors.DeadLetter.SendSystemMessage(pid, message) // protoactor answers with Terminated
		}
	}
}

// contain logs a panic of a process that gets a message about a dead letter, such as the sender
// that the dead letter names. It is deferred.
func (r *replyRegistry) contain() {
	value := recover()
	defer func() { _ = recover() }() // of a handler that panics
	if value != nil {
		r.actors.Logger().Error(fmt.Sprintf("sluice: panic after a late reply: %v", value), "stack", string(debug.Stack()))
	}
}

// Stop implements protoactor's Process. It does nothing: a waiter is no actor.
func (r *replyRegistry) Stop(*PID) {}

func isPendingReply(w waiter) bool { _, ok := w.(*pendingReply); return ok }

const digits = "0123456789abcdefghijklmnopqrstuv"

// id returns the waiterID as the Id of a PID.
func (p waiterID) id() string {
	var b [32]byte
	i := put(&b, len(b), p.number)
	i--
	b[i] = '.'
	i = put(&b, i, uint64(p.index))
	return string(b[i:])
}

// put writes n before b[i:] and returns the index of its first digit.
func put(b *[32]byte, i int, n uint64) int {
	for {
		i--
		b[i] = digits[n%32]
		if n /= 32; n == 0 {
			return i
		}
	}
}

// waiterIDOf parses the Id of a PID: it is the inverse of waiterID.id. It reports false if the
// Id does not have that form.
func waiterIDOf(id string) (p waiterID, ok bool) {
	index, i, ok := number(id, 0)
	if !ok || index > math.MaxUint32 || i == len(id) || id[i] != '.' {
		return p, false
	}
	n, i, ok := number(id, i+1)
	return waiterID{n, uint32(index)}, ok && i == len(id)
}

// number reads the number that begins at s[i] and returns the index after its last digit.
func number(s string, i int) (n uint64, end int, ok bool) {
	begin := i
	for ; i < len(s); i++ {
		digit := s[i] - '0'
		if digit > 9 {
			if digit = s[i] - 'a' + 10; digit < 10 || digit > 31 {
				break
			}
		}
		if n > math.MaxUint64/32 {
			return 0, i, false
		}
		n = n*32 + uint64(digit)
	}
	return n, i, i > begin
}
