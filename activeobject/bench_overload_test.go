package activeobject_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// sluices are shut for good: draining waits, and for room before that; filling passes.
type sluices struct {
	*activeobject.Type[int]
	fill, drain *activeobject.Operation[int, None, None]
}

func newSluices() sluices {
	typ := activeobject.NewType[int]("sluice")
	return sluices{
		typ,
		activeobject.Procedure(typ, "fill", activeobject.Plain(func(level *int) { *level++ })),
		activeobject.Entry(typ, "drain", activeobject.Plain(func(*int) {})).When("open", func(*int) bool { return false }),
	}
}

// roomWaiters are callers that wait at an object, most of them for room.
type roomWaiters struct {
	o      *activeobject.Object[int]
	cancel []context.CancelFunc // of each caller
	left   []chan time.Time     // when each has left
}

// newRoomWaiters makes an object at which n callers wait: for room, but for the first 100, if it
// is bounded.
func newRoomWaiters(b *testing.B, ss sluices, n int, options ...activeobject.Option) *roomWaiters {
	system := actor.NewSystem(actor.Logger(quiet))
	c := &roomWaiters{o: activeobject.Must(activeobject.New(system, ss.Type, new(int), options...))}
	for range n {
		ctx, cancel := context.WithCancel(background)
		left := make(chan time.Time, 1)
		c.cancel, c.left = append(c.cancel, cancel), append(c.left, left)
		go func() {
			ss.drain.Call(ctx, c.o, nil)
			left <- time.Now()
		}()
	}
	full := make(chan None)
	defer c.o.Observe(func(l activeobject.Load) bool {
		if l.Waiting == n {
			close(full)
		}
		return l.Waiting == n
	})()
	<-full
	b.Cleanup(func() { system.Close(background) })
	return c
}

// late has the callers leave in the course of a second, in an order that is not that of
// their arrival, and returns how long after its time the last of all did.
func (c *roomWaiters) late() (worst time.Duration) {
	n := len(c.cancel)
	from := time.Now().Add(100 * time.Millisecond)
	due := make([]time.Time, n)
	for i, cancel := range c.cancel {
		due[i] = from.Add(time.Duration(i*7919%n) * time.Second / time.Duration(n))
		time.AfterFunc(time.Until(due[i]), cancel)
	}
	for i, left := range c.left {
		worst = max(worst, (<-left).Sub(due[i]))
	}
	return worst
}

var roomFor100 = activeobject.Bound(100, activeobject.Wait)

// A call passes while 10, or 20 000, wait for room: "×few" is the second by the first, and
// at most 2.
func BenchmarkPassingThoseThatWaitForRoom(b *testing.B) {
	ss := newSluices()
	few, many := newRoomWaiters(b, ss, 110, roomFor100), newRoomWaiters(b, ss, 20_100, roomFor100)
	each := func(c *roomWaiters) float64 {
		const calls = 1000
		start := time.Now()
		for range calls {
			if _, err := ss.fill.Call(background, c.o, nil); err != nil {
				b.Fatal(err)
			}
		}
		return float64(time.Since(start)) / calls
	}
	var fews, manys, ratios []float64
	for b.Loop() { // one after the other, so that what else the machine does hits both
		f, m := each(few), each(many)
		fews, manys, ratios = append(fews, f), append(manys, m), append(ratios, m/f)
	}
	b.ReportMetric(median(fews), "few-ns")
	b.ReportMetric(median(manys), "many-ns")
	b.ReportMetric(median(ratios), "×few")
}

// Of 20 000 callers that wait for room, each leaves at its deadline, while others pass:
// "late-ms" is the longest that one overstayed, and at most 50; "unbounded-ms" is the same
// without a bound, which is what the machine takes to wake them.
func BenchmarkDeadlinesOfThoseThatWaitForRoom(b *testing.B) {
	ss := newSluices()
	var bounded, unbounded []float64
	late := func(options ...activeobject.Option) float64 {
		c := newRoomWaiters(b, ss, 20_000, options...)
		stop, stopped := make(chan None), make(chan None)
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
					ss.fill.Call(background, c.o, nil)
				}
			}
		}()
		defer func() { close(stop); <-stopped }()
		return float64(c.late()) / 1e6
	}
	for b.Loop() {
		bounded, unbounded = append(bounded, late(roomFor100)), append(unbounded, late())
	}
	b.ReportMetric(median(bounded), "late-ms")
	b.ReportMetric(median(unbounded), "unbounded-ms")
}

// A system of 100 000 idle objects, and one at which a request waits, is explained: in at
// most 10 MB and 0.1 s.
func BenchmarkExplainingIdleObjects(b *testing.B) {
	ss := newSluices()
	system := actor.NewSystem(actor.Logger(quiet))
	defer system.Close(background)
	var o *activeobject.Object[int]
	for range 100_000 {
		o = activeobject.Must(activeobject.New(system, ss.Type, new(int)))
		ss.fill.Call(background, o, nil)
	}
	ss.drain.Send(background, o, nil)
	b.ReportAllocs()
	for b.Loop() {
		if busy := system.Explain(); len(busy) != 1 {
			b.Fatal(busy)
		}
	}
}
