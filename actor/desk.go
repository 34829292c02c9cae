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
type desk struct {
	actors *proto.ActorSystem

	mu      sync.Mutex
	numbers *rand.ChaCha8 // of guests
	places  []occupied
	free    []uint32 // places
}

// guest is somebody at a desk.
type guest interface {
	// host is who he belongs to.
	host() *System
	// sit tells him his place, before anybody can find him there.
	sit(p place)
	// hear tells him what has come for him.
	hear(message any)
	// dismiss tells him that nothing will, as his host is closing.
	dismiss()
}

// occupied is a place and who has it.
type occupied struct {
	guest  guest // nil if it is free
	number uint64
}

// place is the address of a guest.
type place struct {
	number uint64 // of the guest
	index  uint32
}

var (
	desks   sync.Mutex
	deskKey = extensions.NextExtensionID()
)

var _ proto.Process = (*desk)(nil)

// ExtensionID implements protoactor's Extension.
func (d *desk) ExtensionID() extensions.ExtensionID { return deskKey }

// deskOf returns the desk of a protoactor system.
func deskOf(actors *proto.ActorSystem) *desk {
	desks.Lock()
	defer desks.Unlock()
	if d, ok := actors.Extensions.Get(deskKey).(*desk); ok {
		return d
	}
	var seed [32]byte
	_, _ = crypto.Read(seed[:]) // it never fails
	d := &desk{actors: actors, numbers: rand.NewChaCha8(seed)}
	actors.Extensions.Register(d)
	// First of all: the resolver of protoactor's remote takes every address for that
	// of another machine.
	registry := actors.ProcessRegistry
	registry.RemoteHandlers = append([]proto.AddressResolver{d.resolve}, registry.RemoteHandlers...)
	return d
}

// resolve is protoactor's AddressResolver.
func (d *desk) resolve(pid *PID) (proto.Process, bool) { return d, pid.Address == replyAddress }

// seat gives the guest a place, or fails with ErrClosed if his host is closed.
func (d *desk) seat(g guest) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g.host().hushed {
		return ErrClosed
	}
	p := place{number: d.numbers.Uint64()}
	if n := len(d.free); n > 0 {
		p.index, d.free = d.free[n-1], d.free[:n-1]
	} else {
		p.index = uint32(len(d.places))
		d.places = append(d.places, occupied{})
	}
	g.sit(p)
	d.places[p.index] = occupied{g, p.number}
	return nil
}

// at returns the guest at the place, or nil if he has left. The caller holds mu.
func (d *desk) at(p place) guest {
	if int64(p.index) < int64(len(d.places)) && d.places[p.index].number == p.number {
		return d.places[p.index].guest
	}
	return nil
}

// vacate frees the place. The caller holds mu.
func (d *desk) vacate(index uint32) {
	const few = 1 << 10
	d.places[index] = occupied{}
	d.free = append(d.free, index)
	if len(d.free) == len(d.places) && len(d.places) > few {
		d.places, d.free = nil, nil // the crowd has gone
	}
}

// find returns the guest with the address, or nil.
func (d *desk) find(pid *PID) guest {
	p, ok := placeOf(pid.Id)
	if !ok {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at(p)
}

// take makes the guest with the address leave and returns him, or nil if there is
// none of that kind.
func (d *desk) take(pid *PID, kind func(guest) bool) guest {
	p, ok := placeOf(pid.Id)
	if !ok {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.at(p)
	if g == nil || !kind(g) {
		return nil
	}
	d.vacate(p.index)
	return g
}

// leave makes the guest leave his place, and reports false if he has left before.
func (d *desk) leave(p place) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at(p) == nil {
		return false
	}
	d.vacate(p.index)
	return true
}

// hushed reports whether the guests of the system have been dismissed.
func (d *desk) hushed(s *System) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return s.hushed
}

// hush dismisses all guests of the system, which is closing, and lets no more in.
func (d *desk) hush(s *System) {
	d.mu.Lock()
	s.hushed = true
	var gone []guest
	for i := 0; i < len(d.places); i++ { // there may be none left after a step
		if g := d.places[i].guest; g != nil && g.host() == s {
			gone = append(gone, g)
			d.vacate(uint32(i))
		}
	}
	d.mu.Unlock()
	for _, g := range gone {
		g.dismiss()
	}
}

// SendUserMessage implements protoactor's Process: a reply.
func (d *desk) SendUserMessage(pid *PID, message any) {
	if e, ok := message.(*proto.MessageEnvelope); ok && e == nil {
		message = nil
	}
	_, body, _ := proto.UnwrapEnvelope(message)
	if g := d.take(pid, isAsked); g != nil {
		g.hear(body)
		return
	}
	switch body.(type) {
	case *proto.DeadLetterResponse: // to a reply that came too late; that is known by now
	default:
		defer d.contain()
		d.actors.DeadLetter.SendUserMessage(pid, message)
	}
}

// SendSystemMessage implements protoactor's Process: the end of one that is watched.
// A guest is no actor; who watches one, as he has sent a request, is told that there is
// none at the address.
func (d *desk) SendSystemMessage(pid *PID, message any) {
	switch m := message.(type) {
	case *proto.Terminated:
		watches := func(g guest) bool {
			// Not by the address of the actor, which changes when protoactor's remote starts.
			w, ok := g.(*watcher)
			return ok && m.GetWho() != nil && w.actor.Id == m.Who.Id
		}
		if g := d.take(pid, watches); g != nil {
			g.hear(message)
		}
	case *proto.Watch:
		if m.GetWatcher() != nil {
			defer d.contain()
			d.actors.DeadLetter.SendSystemMessage(pid, message) // and protoactor answers
		}
	}
}

// contain logs a panic of a process that is told of a dead letter, such as the sender that
// it names. It is deferred.
func (d *desk) contain() {
	value := recover()
	defer func() { _ = recover() }() // of a handler that panics
	if value != nil {
		d.actors.Logger().Error(fmt.Sprintf("sluice: panic after a late reply: %v", value), "stack", string(debug.Stack()))
	}
}

// Stop implements protoactor's Process. A guest is no actor.
func (d *desk) Stop(*PID) {}

func isAsked(g guest) bool { _, ok := g.(*asked); return ok }

const digits = "0123456789abcdefghijklmnopqrstuv"

// id returns the place as the id of a PID.
func (p place) id() string {
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
func placeOf(id string) (p place, ok bool) {
	index, i, ok := number(id, 0)
	if !ok || index > math.MaxUint32 || i == len(id) || id[i] != '.' {
		return p, false
	}
	guest, i, ok := number(id, i+1)
	return place{guest, uint32(index)}, ok && i == len(id)
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
