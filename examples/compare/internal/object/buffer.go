package object

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// capacity is how many items a buffer holds.
const capacity = 16

// buffer is the bounded buffer: a ring of items.
type buffer struct {
	items [capacity]int64
	first int
	fill  int
}

func (b *buffer) put(r Request) (int64, error) {
	fill := b.fill
	b.items[(b.first+fill)%capacity] = r.Value
	r.Work.Do()
	b.fill = fill + 1
	return 0, nil
}

func (b *buffer) get(r Request) (int64, error) {
	item, fill := b.items[b.first], b.fill
	r.Work.Do()
	b.first = (b.first + 1) % capacity
	b.fill = fill - 1
	return item, nil
}

func (b *buffer) hasRoom(Request) bool  { return b.fill < capacity }
func (b *buffer) hasItems(Request) bool { return b.fill > 0 }

// The operations of a buffer.
const (
	put = iota
	get
)

// Buffers declares the bounded buffer.
var Buffers = Type[buffer]{
	Name:  "buffer",
	About: fmt.Sprintf("some callers put items into a buffer of %d, the others get them; a put waits for room, a get for items", capacity),
	Operations: []Operation[buffer]{
		put: {Name: "put", Body: (*buffer).put, Guard: "room", Holds: (*buffer).hasRoom},
		get: {Name: "get", Body: (*buffer).get, Guard: "items", Holds: (*buffer).hasItems},
	},
	New:     func(Setting) *buffer { return &buffer{} },
	ByHand:  newBufferByHand,
	Callers: traders,
	Check:   checkBuffers,
	Audit:   auditBuffers,
}

// bufferByHand is the buffer in a monitor.
type bufferByHand struct {
	gate
	mu          sync.Mutex
	room, items *sync.Cond
	buffer      *buffer
	run         Run
}

func newBufferByHand(b *buffer, run Run) Hand {
	h := &bufferByHand{buffer: b, run: run}
	h.gate.mu = &h.mu
	h.room, h.items = h.condition(), h.condition()
	return h
}

// Call implements Hand.
func (h *bufferByHand) Call(op int, r Request) (int64, error) {
	if op == put {
		return h.put(r)
	}
	return h.get(r)
}

func (h *bufferByHand) put(r Request) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.buffer.hasRoom(r) {
		if h.stopped {
			return 0, ErrStopped
		}
		h.room.Wait()
	}
	value, err := h.run(put, r)
	h.items.Signal()
	return value, err
}

func (h *bufferByHand) get(r Request) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.buffer.hasItems(r) {
		if h.stopped {
			return 0, ErrStopped
		}
		h.items.Wait()
	}
	value, err := h.run(get, r)
	h.room.Signal()
	return value, err
}

// trader is a caller of a buffer: a producer, a consumer, or, if it is the only one,
// both in turn.
type trader struct {
	_         [128]byte // keeps the callers' books out of each other's cache lines
	setting   Setting
	puts      bool // the next call is a put
	both      bool
	number    int64   // of the producer
	last      []int64 // sequence number got last, by producer
	gave, got ledger
}

// ledger adds up items, so that two sets of them can be compared.
type ledger struct{ count, sum uint64 }

func (l *ledger) add(item int64) {
	l.count++
	l.sum += scramble(uint64(item))
}

func (l *ledger) join(m ledger) {
	l.count += m.count
	l.sum += m.sum
}

// scramble spreads the bits of x, so that a lost item and a doubled one hardly ever
// cancel out in a sum. It is the finalizer of SplitMix64.
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Items carry the number of their producer above that of the item.
const sequenceBits = 40

// checkBuffers refuses settings under which callers end up waiting for what nobody
// does.
func checkBuffers(s Setting) *SettingError {
	switch {
	case s.Shares[put] == 0:
		return &SettingError{"operations.put.share", "must be above 0, or nothing is there to get"}
	case s.Shares[get] == 0:
		return &SettingError{"operations.get.share", "must be above 0, or there is no room"}
	case s.Objects > 1:
		return &SettingError{"objects", "must be 1 for buffers, as producers could wait at one and consumers at another"}
	}
	return nil
}

// traders makes of the callers as many producers as the share of put says.
func traders(s Setting) []Caller {
	callers := make([]Caller, s.Callers)
	producers := int(math.Round(s.Shares[put] * float64(s.Callers)))
	producers = max(1, min(producers, s.Callers-1))
	for i := range callers {
		t := &trader{setting: s, puts: i < producers, both: s.Callers == 1, number: int64(i)}
		if !t.puts || t.both {
			t.last = make([]int64, producers)
		}
		callers[i] = t
	}
	return callers
}

// Next implements Caller.
func (t *trader) Next() Step {
	if t.puts {
		item := t.number<<sequenceBits | int64(t.gave.count+1)
		return Step{Op: put, Request: Request{Value: item, Work: t.setting.Work[put]}}
	}
	return Step{Op: get, Request: Request{Work: t.setting.Work[get]}}
}

// Done implements Caller.
func (t *trader) Done(s Step, item int64) error {
	if t.both {
		t.puts = !t.puts
	}
	if s.Op == put {
		t.gave.add(s.Value)
		return nil
	}
	t.got.add(item)
	from, number := item>>sequenceBits, item&(1<<sequenceBits-1)
	if from < 0 || from >= int64(len(t.last)) {
		return fmt.Errorf("got an item that nobody put: %#x", item)
	}
	if number <= t.last[from] {
		return fmt.Errorf("got item %d of producer %d after its item %d", number, from, t.last[from])
	}
	t.last[from] = number
	return nil
}

// auditBuffers compares what came out of buffers and what is left in them with what
// was put in.
func auditBuffers(buffers []*buffer, callers []Caller) error {
	var gave, got ledger
	for _, c := range callers {
		gave.join(c.(*trader).gave)
		got.join(c.(*trader).got)
	}
	for _, b := range buffers {
		if b.fill < 0 || b.fill > capacity {
			return fmt.Errorf("the buffer of %d holds %d items", capacity, b.fill)
		}
		for i := range b.fill {
			got.add(b.items[(b.first+i)%capacity])
		}
	}
	switch {
	case got.count < gave.count:
		return fmt.Errorf("%d items were lost", gave.count-got.count)
	case got.count > gave.count:
		return fmt.Errorf("%d items too many came out", got.count-gave.count)
	case got.sum != gave.sum:
		return errors.New("other items came out than were put in")
	}
	return nil
}
