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

// replyAddress is the address of all who are at a desk. No other machine has it.
const replyAddress = "$sluice"

// desk is where the messages arrive that are for no actor: replies to requests, and
// the news of those that are watched. Each who expects one has a place, with an
// address of its own: the number of the place, and that of the guest, which is random.
// So a message for a guest that has left cannot reach a later guest of its place, nor can one
// that has come to another desk than it was meant for. The goroutine that takes a guest from its
// place, under mu, is the only one that may tell it anything.
//
// An address is a capability. Protoactor's remote hands in whatever a peer sends to the
// address of a reply, so the numbers come from a cryptographic generator, seeded by the
// operating system: only the actor that has been asked, and those that it has told, can
// name a request. 64 bits make a number that is given twice, or guessed, as unlikely.
//
// Protoactor's registry knows nothing of guests. It asks the desk about each address
// of this kind, by a resolver. There is one desk for each of protoactor's systems,
// however many of ours are on it, since resolvers can neither be added while others
// send nor be taken away.
type replyRegistry struct {
	actors *proto.ActorSystem

	mu      sync.Mutex
	numbers *rand.ChaCha8 // of guests
	slots   []slot
	free    []uint32 // places
}

// guest is somebody at a desk.
type waiter interface {
	// host is who he belongs to.
	owner() *System
	// sit tells him his place, before anybody can find him there.
	assign(p waiterID)
	// hear tells him what has come for him.
	deliver(message any)
	// dismiss tells him that nothing will, as his host is closing.
	cancel()
}

// occupied is a place and who has it.
type slot struct {
	waiter waiter // nil if it is free
	number uint64
}

// place is the address of a guest.
type waiterID struct {
	number uint64 // of the guest
	index  uint32
}

var (
	replyRegistries  sync.Mutex
	replyRegistryKey = extensions.NextExtensionID()
)

var _ proto.Process = (*replyRegistry)(nil)

// ExtensionID implements protoactor's Extension.
func (r *replyRegistry) ExtensionID() extensions.ExtensionID { return replyRegistryKey }

// deskOf returns the desk of a protoactor system.
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
	// First of all: the resolver of protoactor's remote takes every address for that
	// of another machine.
	registry := actors.ProcessRegistry
	registry.RemoteHandlers = append([]proto.AddressResolver{r.resolve}, registry.RemoteHandlers...)
	return r
}

// resolve is protoactor's AddressResolver.
func (r *replyRegistry) resolve(pid *PID) (proto.Process, bool) {
	return r, pid.Address == replyAddress
}

// seat gives the guest a place, or fails with ErrClosed if his host is closed.
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

// at returns the guest at the place, or nil if he has left. The caller holds mu.
func (r *replyRegistry) waiterAt(p waiterID) waiter {
	if int64(p.index) < int64(len(r.slots)) && r.slots[p.index].number == p.number {
		return r.slots[p.index].waiter
	}
	return nil
}

// vacate frees the place. The caller holds mu.
func (r *replyRegistry) freeSlot(index uint32) {
	const few = 1 << 10
	r.slots[index] = slot{}
	r.free = append(r.free, index)
	if len(r.free) == len(r.slots) && len(r.slots) > few {
		r.slots, r.free = nil, nil // the crowd has gone
	}
}

// find returns the guest with the address, or nil.
func (r *replyRegistry) find(pid *PID) waiter {
	p, ok := waiterIDOf(pid.Id)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiterAt(p)
}

// take makes the guest with the address leave and returns him, or nil if there is
// none of that kind.
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

// leave makes the guest leave his place, and reports false if he has left before.
func (r *replyRegistry) remove(p waiterID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiterAt(p) == nil {
		return false
	}
	r.freeSlot(p.index)
	return true
}

// hushed reports whether the guests of the system have been dismissed.
func (r *replyRegistry) closedFor(s *System) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return s.repliesClosed
}

// hush dismisses all guests of the system, which is closing, and lets no more in.
func (r *replyRegistry) closeFor(s *System) {
	r.mu.Lock()
	s.repliesClosed = true
	var gone []waiter
	for i := 0; i < len(r.slots); i++ { // there may be none left after a step
		if w := r.slots[i].waiter; w != nil && w.owner() == s {
			gone = append(gone, w)
			r.freeSlot(uint32(i))
		}
	}
	r.mu.Unlock()
	for _, w := range gone {
		w.cancel()
	}
}

// SendUserMessage implements protoactor's Process: a reply.
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
	case *proto.DeadLetterResponse: // to a reply that came too late; that is known by now
	default:
		defer r.contain()
		r.actors.DeadLetter.SendUserMessage(pid, message)
	}
}

// SendSystemMessage implements protoactor's Process: the end of one that is watched.
// A guest is no actor; who watches one, as he has sent a request, is told that there is
// none at the address.
func (r *replyRegistry) SendSystemMessage(pid *PID, message any) {
	switch m := message.(type) {
	case *proto.Terminated:
		watches := func(w waiter) bool {
			// Not by the address of the actor, which changes when protoactor's remote starts.
			of, ok := w.(*watcher)
			return ok && m.GetWho() != nil && of.actor.Id == m.Who.Id
		}
		if w := r.take(pid, watches); w != nil {
			w.deliver(message)
		}
	case *proto.Watch:
		if m.GetWatcher() != nil {
			defer r.contain()
			r.actors.DeadLetter.SendSystemMessage(pid, message) // and protoactor answers
		}
	}
}

// contain logs a panic of a process that is told of a dead letter, such as the sender that
// it names. It is deferred.
func (r *replyRegistry) contain() {
	value := recover()
	defer func() { _ = recover() }() // of a handler that panics
	if value != nil {
		r.actors.Logger().Error(fmt.Sprintf("sluice: panic after a late reply: %v", value), "stack", string(debug.Stack()))
	}
}

// Stop implements protoactor's Process. A guest is no actor.
func (r *replyRegistry) Stop(*PID) {}

func isPendingReply(w waiter) bool { _, ok := w.(*pendingReply); return ok }

const digits = "0123456789abcdefghijklmnopqrstuv"

// id returns the place as the id of a PID.
func (p waiterID) id() string {
	var b [32]byte
	i := put(&b, len(b), p.number)
	i--
	b[i] = '.'
	i = put(&b, i, uint64(p.index))
	return string(b[i:])
}

// put writes n before b[i:] and returns where it begins.
func put(b *[32]byte, i int, n uint64) int {
	for {
		i--
		b[i] = digits[n%32]
		if n /= 32; n == 0 {
			return i
		}
	}
}

// placeOf is the opposite of place.id. It reports false if the id is none of those.
func waiterIDOf(id string) (p waiterID, ok bool) {
	index, i, ok := number(id, 0)
	if !ok || index > math.MaxUint32 || i == len(id) || id[i] != '.' {
		return p, false
	}
	guest, i, ok := number(id, i+1)
	return waiterID{guest, uint32(index)}, ok && i == len(id)
}

// number reads the number that begins at s[i:] and returns where it ends.
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
