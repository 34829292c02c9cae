package main

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
)

// capacity is how many items a buffer holds.
const capacity = 16

// buffer is the shared object: a ring of items.
type buffer struct {
	items [capacity]int64
	first int
	fill  int
}

func (b *buffer) Put(item int64) {
	b.items[(b.first+b.fill)%capacity] = item
	b.fill++
}

func (b *buffer) Get() int64 {
	item := b.items[b.first]
	b.first = (b.first + 1) % capacity
	b.fill--
	return item
}

func (b *buffer) HasRoom() bool  { return b.fill < capacity }
func (b *buffer) HasItems() bool { return b.fill > 0 }

// The buffer, declared for Sluice.
var (
	buffers = activeobject.NewType[buffer]("buffer")
	put     = activeobject.Entry(buffers, "put", activeobject.Put((*buffer).Put)).When("room", (*buffer).HasRoom)
	get     = activeobject.Entry(buffers, "get", activeobject.Get((*buffer).Get)).When("items", (*buffer).HasItems)
)

// queue is the buffer as its callers see it under every model.
type queue interface {
	put(ctx context.Context, item int64) error     // waits for room
	get(ctx context.Context) (item int64, _ error) // waits for an item
}

// activeQueue is the buffer as an active object.
type activeQueue struct{ o *activeobject.Object[buffer] }

func (q activeQueue) put(ctx context.Context, item int64) error {
	_, err := put.Call(ctx, q.o, item)
	return err
}

func (q activeQueue) get(ctx context.Context) (int64, error) {
	return get.Call(ctx, q.o, activeobject.None{})
}

// monitorQueue is the buffer in a monitor.
type monitorQueue struct {
	gate
	room, items condition
	buffer      *buffer
}

func newMonitorQueue(b *buffer) *monitorQueue {
	q := &monitorQueue{buffer: b}
	q.room, q.items = q.condition(), q.condition()
	return q
}

func (q *monitorQueue) put(_ context.Context, item int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.buffer.HasRoom() {
		if q.stopped {
			return errStopped
		}
		q.room.Wait()
	}
	q.buffer.Put(item)
	q.items.Signal()
	return nil
}

func (q *monitorQueue) get(context.Context) (int64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.buffer.HasItems() {
		if q.stopped {
			return 0, errStopped
		}
		q.items.Wait()
	}
	q.room.Signal()
	return q.buffer.Get(), nil
}

// The buffer as a server that gets its requests as messages.
const (
	askPut = iota
	askGet
)

// serve implements server.
func (b *buffer) serve(q query) (answer, bool) {
	switch {
	case q.op == askPut && b.HasRoom():
		b.Put(q.arg)
		return answer{}, true
	case q.op == askGet && b.HasItems():
		return answer{value: b.Get()}, true
	}
	return answer{}, false
}

type askedQueue struct{ asker }

func (q askedQueue) put(_ context.Context, item int64) error {
	_, err := q.ask(query{askPut, item})
	return err
}

func (q askedQueue) get(context.Context) (int64, error) { return q.ask(query{op: askGet}) }

var bufferWorkload = workload{
	name:       "buffer",
	about:      fmt.Sprintf("half of the callers put items into a buffer of %d, half get them; a put waits for room, a get for items", capacity),
	operations: "puts and gets",
	every:      sampled,
	open:       openBuffer,
}

func openBuffer(m model, callers int) (*session, error) {
	b := &buffer{}
	switch m {
	case monitor:
		q := newMonitorQueue(b)
		return bufferSession(q, q, b, callers), nil
	case sluice, dedicated:
		h, err := activate(buffers, b, m)
		if err != nil {
			return nil, err
		}
		return bufferSession(activeQueue{h.object}, h, b, callers), nil
	}
	s := listen(m, b)
	return bufferSession(askedQueue{s}, s, b, callers), nil
}

// user is a caller of a queue: a producer, a consumer, or, if it is the only
// one, both in turn.
type user struct {
	_        [128]byte // keeps the callers' books out of each other's cache lines
	queue    queue
	puts     bool // the next call is a put
	both     bool
	producer int64   // number
	last     []int64 // sequence number got last, by producer
	put, got ledger
}

// ledger adds up items, so that two sets of them can be compared.
type ledger struct{ count, sum uint64 }

func (l *ledger) add(item int64) {
	l.count++
	l.sum += scramble(uint64(item))
}

// scramble spreads the bits of x, so that a lost item and a doubled one hardly
// ever cancel out in a sum. It is the finalizer of SplitMix64.
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Items carry the number of their producer above that of the item.
const sequenceBits = 40

func (u *user) step(ctx context.Context) error {
	putting := u.puts
	if u.both {
		u.puts = !u.puts
	}
	if putting {
		item := u.producer<<sequenceBits | int64(u.put.count+1)
		if err := u.queue.put(ctx, item); err != nil {
			return err
		}
		u.put.add(item)
		return nil
	}
	item, err := u.queue.get(ctx)
	if err != nil {
		return err
	}
	u.got.add(item)
	from, number := item>>sequenceBits, item&(1<<sequenceBits-1)
	if from < 0 || from >= int64(len(u.last)) {
		return fmt.Errorf("got an item that nobody put: %#x", item)
	}
	if number <= u.last[from] {
		return fmt.Errorf("got item %d of producer %d after its item %d", number, from, u.last[from])
	}
	u.last[from] = number
	return nil
}

func bufferSession(q queue, h host, b *buffer, callers int) *session {
	s := &session{host: h}
	users := make([]*user, callers)
	producers := max(1, callers/2)
	for i := range users {
		users[i] = &user{queue: q, puts: i < producers, both: callers == 1, producer: int64(i)}
		if i >= producers || callers == 1 {
			users[i].last = make([]int64, producers)
		}
		s.callers = append(s.callers, users[i])
	}
	s.check = func() error { return stocktake(b, users) }
	return s
}

// stocktake compares what came out of a buffer and what is left in it with what
// was put in.
func stocktake(b *buffer, users []*user) error {
	if b.fill < 0 || b.fill > capacity {
		return fmt.Errorf("the buffer of %d holds %d items", capacity, b.fill)
	}
	var put, got ledger
	for _, u := range users {
		put.count, put.sum = put.count+u.put.count, put.sum+u.put.sum
		got.count, got.sum = got.count+u.got.count, got.sum+u.got.sum
	}
	for b.HasItems() {
		got.add(b.Get())
	}
	switch {
	case got.count < put.count:
		return fmt.Errorf("%d items were lost", put.count-got.count)
	case got.count > put.count:
		return fmt.Errorf("%d items too many came out", got.count-put.count)
	case got.sum != put.sum:
		return fmt.Errorf("other items came out than were put in")
	}
	return nil
}
