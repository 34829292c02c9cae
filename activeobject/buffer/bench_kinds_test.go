package buffer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/buffer"
	"github.com/sluice-go/sluice/actor"
)

// The text claims that single-element buffers beat bounded ones, and those unbounded
// ones, since they do less inside. BenchmarkKinds finds out, for a goroutine that puts and
// gets in turn and never waits, and for producers and consumers.

// list is the state of the text's unbounded buffer: a node for each item.
type list struct {
	head, tail *node
	closed     bool
}

type node struct {
	item int
	next *node
}

func (l *list) put(item int) (none, error) {
	n := &node{item: item}
	if l.tail == nil {
		l.head = n
	} else {
		l.tail.next = n
	}
	l.tail = n
	return nil, nil
}

func (l *list) get(none) (int, error) {
	n := l.head
	if n == nil {
		return 0, buffer.ErrClosed
	}
	if l.head = n.next; l.head == nil {
		l.tail = nil
	}
	return n.item, nil
}

func (l *list) notEmpty() bool { return l.head != nil || l.closed }
func (l *list) close()         { l.closed = true }

var (
	lists     = activeobject.NewType[list]("list")
	listPut   = activeobject.Procedure(lists, "put", (*list).put)
	listGet   = activeobject.Entry(lists, "get", (*list).get).When("not empty", (*list).notEmpty)
	listClose = activeobject.Procedure(lists, "close", activeobject.Plain((*list).close))
)

func listed(b *testing.B, system *actor.System) func() pipe {
	ctx := context.Background()
	return func() pipe {
		o := activeobject.Must(activeobject.New(system, lists, &list{}))
		return pipe{"list",
			func(i int) bool { _, err := listPut.Call(ctx, o, i); return err == nil },
			func() (int, bool) { i, err := listGet.Call(ctx, o, nil); return i, err == nil },
			func() { listClose.Call(ctx, o, nil) },
		}
	}
}

func unbounded(b *testing.B, system *actor.System) func() pipe {
	ctx := context.Background()
	return func() pipe {
		buf := must[*buffer.Unbounded[int]](b)(buffer.NewUnbounded[int](system))
		return pipe{"unbounded",
			func(i int) bool { return buf.Put(i) == nil },
			func() (int, bool) { i, err := buf.Get(ctx); return i, err == nil },
			func() { buf.Close() },
		}
	}
}

func single(b *testing.B, system *actor.System) func() pipe {
	ctx := context.Background()
	return func() pipe {
		buf := must[*buffer.ReadWriteNew[int]](b)(buffer.NewReadWriteNew[int](system))
		return pipe{"single",
			func(i int) bool { return buf.Put(ctx, i) == nil },
			func() (int, bool) { i, err := buf.Get(ctx); return i, err == nil },
			func() { buf.Close() },
		}
	}
}

func anyRead(b *testing.B, system *actor.System) func() pipe {
	return func() pipe {
		buf := must[*buffer.ReadAny[int]](b)(buffer.NewReadAny[int](system))
		return pipe{"readany",
			func(i int) bool { return buf.Put(i) == nil },
			func() (int, bool) { i, err := buf.Get(); return i, err == nil },
			func() { buf.Close() },
		}
	}
}

func newRead(b *testing.B, system *actor.System) func() pipe {
	ctx := context.Background()
	return func() pipe {
		buf := must[*buffer.ReadNew[int]](b)(buffer.NewReadNew[int](system))
		return pipe{"readnew",
			func(i int) bool { return buf.Put(i) == nil },
			func() (int, bool) { i, err := buf.Get(ctx); return i, err == nil },
			func() { buf.Close() },
		}
	}
}

func named(name string, kind func() pipe) func() pipe {
	return func() pipe { p := kind(); p.name = name; return p }
}

// slow makes a side of a pipe take its time over each item.
func slow(kind func() pipe, put, get time.Duration) func() pipe {
	idle := func(d time.Duration) {
		if d > 0 {
			for start := time.Now(); time.Since(start) < d; {
			}
		}
	}
	return func() pipe {
		p := kind()
		fast := p
		p.put = func(i int) bool { idle(put); return fast.put(i) }
		p.get = func() (int, bool) { i, ok := fast.get(); idle(get); return i, ok }
		return p
	}
}

func BenchmarkKinds(b *testing.B) {
	kinds := func(b *testing.B) []func() pipe {
		s := benchSystem(b)
		return []func() pipe{
			single(b, s),
			named("bounded1", bounded(b, s, 1)), named("bounded16", bounded(b, s, 16)), named("bounded1024", bounded(b, s, 1024)),
			unbounded(b, s), listed(b, s),
		}
	}
	b.Run("inside", func(b *testing.B) {
		b.ReportAllocs()
		s := benchSystem(b)
		versus(b, inTurn, append(kinds(b), anyRead(b, s), newRead(b, s))...)
	})
	for _, crowd := range []int{1, 4} {
		b.Run(fmt.Sprintf("%dx%d", crowd, crowd), func(b *testing.B) { versus(b, carry(crowd, crowd), kinds(b)...) })
	}
	for _, pace := range []struct {
		name     string
		put, get time.Duration
	}{{"slow-writer", time.Microsecond, 0}, {"slow-reader", 0, time.Microsecond}} {
		b.Run(pace.name, func(b *testing.B) {
			all := kinds(b)
			for i := range all {
				all[i] = slow(all[i], pace.put, pace.get)
			}
			versus(b, carry(1, 1), all...)
		})
	}
}
