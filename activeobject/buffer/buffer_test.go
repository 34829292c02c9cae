package buffer_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/buffer"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

// box is what the buffers have in common, for tests of what they promise alike.
type box struct {
	kind     string
	put      func(ctx context.Context, item int) error
	get      func(ctx context.Context) (int, error)
	gets     bound
	all      func(ctx context.Context) iter.Seq2[int, error]
	close    func() error
	object   activeobject.AnyObject
	putWaits bool // while there is as much in it as there is room for
	room     int
}

// bound is get in its other forms.
type bound struct {
	try    func(ctx context.Context) (int, error)
	send   func(ctx context.Context) activeobject.Future[int]
	toCase func() *activeobject.Case[int]
}

// with returns a proxy with its argument.
func with[A any](p activeobject.LocalProxy[A, int], arg A) bound {
	return bound{
		func(ctx context.Context) (int, error) { return p.Try(ctx, arg) },
		func(ctx context.Context) activeobject.Future[int] { return p.Send(ctx, arg) },
		func() *activeobject.Case[int] { return p.Case(arg) },
	}
}

// newBoxes returns an empty buffer of every kind that can be waited at.
func newBoxes(t testing.TB, system *actor.System, options ...activeobject.Option) []box {
	b := must[*buffer.Bounded[int]](t)(buffer.NewBounded[int](system, 3, options...))
	o := must[*buffer.Overwriting[int]](t)(buffer.NewOverwriting[int](system, 3, options...))
	u := must[*buffer.Unbounded[int]](t)(buffer.NewUnbounded[int](system, options...))
	n := must[*buffer.ReadNew[int]](t)(buffer.NewReadNew[int](system, options...))
	by := must[*buffer.ReadNew[int]](t)(buffer.NewReadNew[int](system, options...))
	r := must[*buffer.Reader[int]](t)(by.Register())
	h := must[*buffer.ReadWriteNew[int]](t)(buffer.NewReadWriteNew[int](system, options...))
	return []box{
		{"bounded", b.Put, b.Get, with(b.Gets(), nil), b.All, b.Close, b.Object(), true, 3},
		{"overwriting", func(_ context.Context, i int) error { _, err := o.Put(i); return err }, o.Get, with(o.Gets(), nil), o.All, o.Close, o.Object(), false, 3},
		{"unbounded", func(_ context.Context, i int) error { return u.Put(i) }, u.Get, with(u.Gets(), nil), u.All, u.Close, u.Object(), false, 0},
		{"read new", func(_ context.Context, i int) error { return n.Put(i) }, n.Get, with(n.Gets(), nil), n.All, n.Close, n.Object(), false, 1},
		{"reader of read new", func(_ context.Context, i int) error { return by.Put(i) }, r.Get, with(by.ReaderGets(), r.ID()), r.All, by.Close, by.Object(), false, 1},
		{"read-write new", h.Put, h.Get, with(h.Gets(), nil), h.All, h.Close, h.Object(), true, 1},
	}
}

// eachBox runs a test for a buffer of every kind in every configuration.
func eachBox(t *testing.T, test func(t *testing.T, b box)) {
	everywhere(t, func(t *testing.T, system *actor.System, options ...activeobject.Option) {
		for _, b := range newBoxes(t, system, options...) {
			t.Run(b.kind, func(t *testing.T) { test(t, b) })
		}
	})
}

// outcome is what a Get returned.
type outcome struct {
	item int
	err  error
}

// async does something on a goroutine of its own.
func async(do func() (int, error)) <-chan outcome {
	c := make(chan outcome, 1)
	go func() {
		item, err := do()
		c <- outcome{item, err}
	}()
	return c
}

// waits waits until n requests wait at the object.
func waits(t *testing.T, o activeobject.AnyObject, n int) {
	t.Helper()
	reached := make(chan struct{})
	defer o.Observe(func(l activeobject.Load) bool {
		if l.Waiting != n || l.Deciding || l.Running > 0 {
			return false
		}
		close(reached)
		return true
	})()
	select {
	case <-reached:
	case <-time.After(20 * time.Second):
		t.Fatalf("not %d waiting:\n%s", n, o.Explain())
	}
}

func TestACanceledGetHasTakenNothing(t *testing.T) {
	eachBox(t, func(t *testing.T, b box) {
		ctx, cancel := context.WithCancel(background)
		gone := async(func() (int, error) { return b.get(ctx) })
		waits(t, b.object, 1)
		sent := b.gets.send(ctx)
		cancel()
		require.Equal(t, outcome{0, context.Canceled}, <-gone)
		_, err := sent.Await(background)
		require.ErrorIs(t, err, context.Canceled)
		_, err = b.get(ctx)
		require.ErrorIs(t, err, context.Canceled)

		require.NoError(t, b.put(background, 7))
		item, err := b.get(background)
		require.NoError(t, err)
		require.Equal(t, 7, item)
	})
}

func TestACanceledPutHasPutNothing(t *testing.T) {
	eachBox(t, func(t *testing.T, b box) {
		ended, end := context.WithCancel(background)
		end()
		if b.putWaits {
			require.ErrorIs(t, b.put(ended, 8), context.Canceled)
			for i := range b.room {
				require.NoError(t, b.put(background, i))
			}
			ctx, cancel := context.WithCancel(background)
			gone := async(func() (int, error) { return 0, b.put(ctx, 9) })
			waits(t, b.object, 1)
			cancel()
			require.Equal(t, outcome{0, context.Canceled}, <-gone)
		}
		require.NoError(t, b.close())
		n := 0
		for item, err := range b.all(background) {
			require.NoError(t, err)
			require.Equal(t, n, item)
			n++
		}
		if b.putWaits {
			require.Equal(t, b.room, n)
		}
	})
}

func TestCloseLetsReadersDrain(t *testing.T) {
	eachBox(t, func(t *testing.T, b box) {
		n := max(b.room, 1)
		for i := range n {
			require.NoError(t, b.put(background, i))
		}
		require.NoError(t, b.close())
		for range min(b.room, 1) {
			_, err := b.gets.try(background)
			require.NoError(t, err)
		}
		for range b.all(background) { // the rest
		}
		for _, get := range []func(context.Context) (int, error){b.get, b.gets.try, func(ctx context.Context) (int, error) { return b.gets.send(ctx).Await(ctx) }} {
			_, err := get(background)
			require.Equal(t, &buffer.ClosedError{Buffer: b.object.Name()}, err)
			require.ErrorIs(t, err, buffer.ErrClosed)
		}
	})
}

func TestCloseFailsRequestsThatWait(t *testing.T) {
	eachBox(t, func(t *testing.T, b box) {
		wanted := outcome{0, &buffer.ClosedError{Buffer: b.object.Name()}}
		one, other := async(func() (int, error) { return b.get(background) }), async(func() (int, error) { return b.get(background) })
		waits(t, b.object, 2)
		require.NoError(t, b.close())
		require.Equal(t, wanted, <-one)
		require.Equal(t, wanted, <-other)
		require.Equal(t, wanted.err, b.put(background, 1))
		require.Equal(t, wanted.err, b.close(), "a second time")
	})
	eachBox(t, func(t *testing.T, b box) {
		if !b.putWaits {
			return
		}
		for i := range b.room {
			require.NoError(t, b.put(background, i))
		}
		put := async(func() (int, error) { return 0, b.put(background, b.room) })
		waits(t, b.object, 1)
		require.NoError(t, b.close())
		require.Equal(t, outcome{0, &buffer.ClosedError{Buffer: b.object.Name()}}, <-put)
		n := 0
		for item, err := range b.all(background) {
			require.NoError(t, err)
			require.Equal(t, n, item)
			n++
		}
		require.Equal(t, b.room, n, "what was in it before")
	})
}

func TestARangeSaysOnceWhyItEnds(t *testing.T) {
	eachBox(t, func(t *testing.T, b box) {
		require.NoError(t, b.put(background, 1))
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		var got []outcome
		for item, err := range b.all(ctx) {
			got = append(got, outcome{item, err})
			cancel()
		}
		require.Equal(t, []outcome{{1, nil}, {0, context.Canceled}}, got)

		require.NoError(t, b.put(background, 2))
		for item := range b.all(background) {
			require.Equal(t, 2, item)
			break // and nothing more is taken
		}
		require.NoError(t, b.put(background, 3))
		item, err := b.gets.try(background)
		require.NoError(t, err)
		require.Equal(t, 3, item)

		b.object.Stop()
		got = nil
		for item, err := range b.all(background) {
			got = append(got, outcome{item, err})
		}
		require.Len(t, got, 1)
		require.ErrorIs(t, got[0].err, activeobject.ErrStopped)
	})
}

func TestAfterStopEverythingFails(t *testing.T) {
	system := objecttest.NewSystem(t)
	for _, b := range newBoxes(t, system) {
		waiting := async(func() (int, error) { return b.get(background) })
		waits(t, b.object, 1)
		<-b.object.Stop()
		require.ErrorIs(t, (<-waiting).err, activeobject.ErrStopped)
		require.ErrorIs(t, b.put(background, 1), activeobject.ErrStopped)
		require.ErrorIs(t, b.close(), activeobject.ErrStopped)
	}
	u := must[*buffer.Unbounded[int]](t)(buffer.NewUnbounded[int](system))
	o := must[*buffer.Overwriting[int]](t)(buffer.NewOverwriting[int](system, 1))
	a := must[*buffer.ReadAny[int]](t)(buffer.NewReadAny[int](system))
	n := must[*buffer.ReadNew[int]](t)(buffer.NewReadNew[int](system))
	<-u.Object().Stop()
	<-o.Object().Stop()
	<-a.Object().Stop()
	<-n.Object().Stop()
	for what, err := range map[string]func() error{
		"len":         func() error { _, err := u.Len(); return err },
		"peak":        func() error { _, err := u.Peak(); return err },
		"dropped":     func() error { _, err := o.Dropped(); return err },
		"get":         func() error { _, err := a.Get(); return err },
		"initialized": func() error { _, err := a.Initialized(); return err },
		"register":    func() error { _, err := n.Register(); return err },
		"bound":       func() error { _, err := n.Registers().Call(background, nil); return err },
	} {
		require.ErrorIs(t, err(), activeobject.ErrStopped, what)
	}
}

func TestACaseOfSelect(t *testing.T) {
	eachBox(t, func(t *testing.T, b box) {
		c := b.gets.toCase()
		i, err := activeobject.Select(background, c, activeobject.Otherwise)
		require.NoError(t, err)
		require.Equal(t, 1, i)
		require.NoError(t, b.put(background, 5))
		i, err = activeobject.Select(background, c, activeobject.Otherwise)
		require.NoError(t, err)
		require.Equal(t, 0, i)
		item, err := c.Result()
		require.NoError(t, err)
		require.Equal(t, 5, item)
	})
}

// TestSelectPutsOneAndNotTheOther hands an item to whichever of two buffers has room first.
func TestSelectPutsOneAndNotTheOther(t *testing.T) {
	everywhere(t, func(t *testing.T, system *actor.System, options ...activeobject.Option) {
		bounded := must[*buffer.Bounded[int]](t)(buffer.NewBounded[int](system, 1, options...))
		single := must[*buffer.ReadWriteNew[int]](t)(buffer.NewReadWriteNew[int](system, options...))
		require.NoError(t, bounded.Put(background, 1))
		require.NoError(t, single.Put(background, 1))
		chosen := async(func() (int, error) {
			return activeobject.Select(background, bounded.Puts().Case(2), single.Puts().Case(2))
		})
		waits(t, bounded.Object(), 1)
		waits(t, single.Object(), 1)
		_, err := single.Get(background)
		require.NoError(t, err)
		require.Equal(t, outcome{1, nil}, <-chosen)
		item, err := single.Get(background)
		require.NoError(t, err)
		require.Equal(t, 2, item)
		n, err := bounded.Len()
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}

func TestBadInput(t *testing.T) {
	system := objecttest.NewSystem(t)
	for _, capacity := range []int{0, -1} {
		_, err := buffer.NewBounded[int](system, capacity)
		require.ErrorContains(t, err, "buffer.NewBounded: capacity is")
		require.ErrorAs(t, err, new(*activeobject.ArgumentError))
		_, err = buffer.NewOverwriting[int](system, capacity)
		require.ErrorContains(t, err, "buffer.NewOverwriting: capacity is")
		require.ErrorAs(t, err, new(*activeobject.ArgumentError))
	}
	var option *activeobject.OptionError
	_, err := buffer.NewBounded[int](nil, 1)
	require.ErrorAs(t, err, &option)
	_, err = buffer.NewOverwriting[int](nil, 1)
	require.ErrorAs(t, err, &option)
	_, err = buffer.NewUnbounded[int](nil)
	require.ErrorAs(t, err, &option)
	_, err = buffer.NewReadAny[int](nil)
	require.ErrorAs(t, err, &option)
	_, err = buffer.NewReadNew[int](nil)
	require.ErrorAs(t, err, &option)
	_, err = buffer.NewReadWriteNew[int](nil)
	require.ErrorAs(t, err, &option)

	n := must[*buffer.ReadNew[int]](t)(buffer.NewReadNew[int](system))
	require.NoError(t, n.Put(1))
	_, _, err = n.GetAfter(background, 2)
	require.EqualError(t, err, "sluice: buffer.ReadNew.GetAfter: serial is 2: the latest value has 1")
	require.ErrorAs(t, err, new(*activeobject.ArgumentError))
	_, err = n.GetsAfter().Try(background, 0)
	require.NoError(t, err, "nothing has changed")
}

func TestErrorsNameTheBuffer(t *testing.T) {
	system := objecttest.NewSystem(t)
	a := must[*buffer.ReadAny[string]](t)(buffer.NewReadAny[string](system, activeobject.Name("thermometer")))
	_, err := a.Get()
	require.EqualError(t, err, "sluice: thermometer has no value yet")
	require.Equal(t, &buffer.UninitializedError{Buffer: "thermometer"}, err)
	require.NoError(t, a.Close())
	require.EqualError(t, a.Put("hot"), "sluice: thermometer is closed")

	n := must[*buffer.ReadNew[string]](t)(buffer.NewReadNew[string](system, activeobject.Name("news")))
	r := must[*buffer.Reader[string]](t)(n.Register())
	require.NoError(t, r.Close())
	require.EqualError(t, r.Close(), "sluice: reader 1 of news is closed")

	b := must[*buffer.Bounded[error]](t)(buffer.NewBounded[error](system, 1))
	require.Regexp(t, `^bounded\[error\]-\d+$`, b.Object().Name())
	require.NoError(t, b.Put(background, nil), "a nil interface is an item like any other")
	item, err := b.Get(background)
	require.NoError(t, err)
	require.NoError(t, item)
}

func TestAWaitIsExplained(t *testing.T) {
	system := objecttest.NewSystem(t, objecttest.AllowWaiting())
	b := must[*buffer.Bounded[int]](t)(buffer.NewBounded[int](system, 1))
	n := must[*buffer.ReadNew[int]](t)(buffer.NewReadNew[int](system))
	r := must[*buffer.Reader[int]](t)(n.Register())
	h := must[*buffer.ReadWriteNew[int]](t)(buffer.NewReadWriteNew[int](system))
	require.NoError(t, b.Put(background, 1))
	require.NoError(t, h.Put(background, 1))
	b.Puts().Send(background, 2)
	h.Puts().Send(background, 2)
	n.Gets().Send(background, nil)
	n.ReaderGets().Send(background, r.ID())
	n.GetsAfter().Send(background, 0)
	var why []string
	for _, o := range []activeobject.AnyObject{b.Object(), h.Object(), n.Object()} {
		for _, w := range o.Explain().Waiting {
			why = append(why, w.Operation+": "+w.Reason.Guard)
		}
	}
	require.Equal(t, []string{
		"put: not full",
		"put: was read",
		"get: is new",
		"get by reader: is new to the reader",
		"get after: has another serial number",
	}, why)
}

func TestReadAnyIsForReadingAtAnyTime(t *testing.T) {
	everywhere(t, func(t *testing.T, system *actor.System, options ...activeobject.Option) {
		b := must[*buffer.ReadAny[int]](t)(buffer.NewReadAny[int](system, options...))
		initialized := func() bool {
			is, err := b.Initialized()
			require.NoError(t, err)
			return is
		}
		require.False(t, initialized())
		_, err := b.Get()
		require.ErrorAs(t, err, new(*buffer.UninitializedError))
		require.NoError(t, b.Put(0), "a zero value is a value")
		require.True(t, initialized())
		for i := range 3 {
			for range 2 {
				item, err := b.Get()
				require.NoError(t, err)
				require.Equal(t, i, item)
			}
			require.NoError(t, b.Put(i+1))
		}
		require.NoError(t, b.Close())
		require.True(t, initialized())
		item, err := b.Get()
		require.Equal(t, &buffer.ClosedError{Buffer: b.Object().Name()}, err)
		require.Equal(t, 3, item, "the last value comes with the error")
		require.ErrorIs(t, b.Close(), buffer.ErrClosed)
	})
}

func TestEveryReaderGetsEveryValueThatItIsFastEnoughFor(t *testing.T) {
	everywhere(t, func(t *testing.T, system *actor.System, options ...activeobject.Option) {
		b := must[*buffer.ReadNew[int]](t)(buffer.NewReadNew[int](system, options...))
		r := must[*buffer.Reader[int]](t)(b.Register())
		require.NoError(t, b.Put(1))
		late := must[*buffer.Reader[int]](t)(b.Register())
		for _, get := range []func(context.Context) (int, error){r.Get, late.Get, b.Get} {
			item, err := get(background)
			require.NoError(t, err)
			require.Equal(t, 1, item)
		}
		_, err := b.ReaderGets().Try(background, r.ID())
		require.ErrorIs(t, err, activeobject.ErrRefused)

		// All that wait for a value get it.
		var got []<-chan outcome
		for _, get := range []func(context.Context) (int, error){r.Get, late.Get, b.Get} {
			got = append(got, async(func() (int, error) { return get(background) }))
		}
		got = append(got, async(func() (int, error) { item, _, err := b.GetAfter(background, 1); return item, err }))
		waits(t, b.Object(), 4)
		require.NoError(t, b.Put(2))
		for _, c := range got {
			require.Equal(t, outcome{2, nil}, <-c)
		}

		// A reader that is closed leaves the others alone.
		closed := async(func() (int, error) { return r.Get(background) })
		other := async(func() (int, error) { return late.Get(background) })
		waits(t, b.Object(), 2)
		require.NoError(t, r.Close())
		require.Equal(t, outcome{0, &buffer.ClosedError{Buffer: b.Object().Name(), Reader: 1}}, <-closed)
		require.NoError(t, b.Put(3))
		require.Equal(t, outcome{3, nil}, <-other)
		_, err = b.ReaderCloses().Send(background, late.ID()).Await(background)
		require.NoError(t, err)
		for range late.All(background) {
			t.Fatal("a reader that is closed reads on")
		}

		// A reader that comes after the end still finds the last value.
		require.NoError(t, b.Close())
		last := must[*buffer.Reader[int]](t)(b.Register())
		item, err := last.Get(background)
		require.NoError(t, err)
		require.Equal(t, 3, item)
		_, err = last.Get(background)
		require.Equal(t, &buffer.ClosedError{Buffer: b.Object().Name()}, err)
		item, serial, err := b.GetAfter(background, 1)
		require.NoError(t, err)
		require.Equal(t, 3, item)
		_, _, err = b.GetAfter(background, serial)
		require.ErrorIs(t, err, buffer.ErrClosed)
	})
}

func TestOverwritingSaysWhatItDrops(t *testing.T) {
	everywhere(t, func(t *testing.T, system *actor.System, options ...activeobject.Option) {
		b := must[*buffer.Overwriting[int]](t)(buffer.NewOverwriting[int](system, 2, options...))
		require.Equal(t, 2, b.Cap())
		for i := range 5 {
			d, err := b.Put(i)
			require.NoError(t, err)
			require.Equal(t, buffer.Dropped[int]{Item: max(i-2, 0), Any: i >= 2}, d)
		}
		dropped, err := b.Dropped()
		require.NoError(t, err)
		require.EqualValues(t, 3, dropped)
		require.NoError(t, b.Close())
		d, err := b.Put(9)
		require.ErrorIs(t, err, buffer.ErrClosed)
		require.Zero(t, d, "what is in a closed buffer stays")
		dropped, err = b.Dropped()
		require.NoError(t, err)
		require.EqualValues(t, 3, dropped)
		var rest []int
		for item := range b.All(background) {
			rest = append(rest, item)
		}
		require.Equal(t, []int{3, 4}, rest)
	})
}

func TestUnboundedShowsItsDepth(t *testing.T) {
	everywhere(t, func(t *testing.T, system *actor.System, options ...activeobject.Option) {
		b := must[*buffer.Unbounded[int]](t)(buffer.NewUnbounded[int](system, options...))
		for i := range 1000 {
			require.NoError(t, b.Put(i))
		}
		for range 900 {
			_, err := b.Get(background)
			require.NoError(t, err)
		}
		n, err := b.Len()
		require.NoError(t, err)
		require.Equal(t, 100, n)
		peak, err := b.Peak()
		require.NoError(t, err)
		require.Equal(t, 1000, peak)
	})
}

func TestGuardsAndFunctionsChangeNothing(t *testing.T) {
	system := objecttest.NewSystem(t)
	for _, b := range newBoxes(t, system, objecttest.Checked(t)) {
		first := async(func() (int, error) { return b.get(background) })
		waits(t, b.object, 1)
		require.NoError(t, b.put(background, 1))
		require.Equal(t, outcome{1, nil}, <-first)
		require.NoError(t, b.put(background, 2))
		for range 2 {
			b.gets.try(background)
		}
		require.NoError(t, b.close())
		_, err := b.get(background)
		require.ErrorIs(t, err, buffer.ErrClosed)
	}
	a := must[*buffer.ReadAny[int]](t)(buffer.NewReadAny[int](system, objecttest.Checked(t)))
	u := must[*buffer.Unbounded[int]](t)(buffer.NewUnbounded[int](system, objecttest.Checked(t)))
	o := must[*buffer.Overwriting[int]](t)(buffer.NewOverwriting[int](system, 1, objecttest.Checked(t)))
	for i := range 3 {
		_, err := a.Initialized()
		require.NoError(t, err)
		require.NoError(t, a.Put(i))
		_, err = a.Get()
		require.NoError(t, err)
		require.NoError(t, u.Put(i))
		_, err = u.Len()
		require.NoError(t, err)
		_, err = u.Peak()
		require.NoError(t, err)
		_, err = o.Put(i)
		require.NoError(t, err)
		_, err = o.Dropped()
		require.NoError(t, err)
	}
}

func TestPutAndGetAllocateNothing(t *testing.T) {
	for _, b := range newBoxes(t, objecttest.NewSystem(t)) {
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			b.put(background, 1)
			b.get(background)
		}), b.kind)
	}
}

func TestTimeInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, b := range newBoxes(t, objecttest.NewSystem(t)) {
			start := time.Now()
			ctx, cancel := context.WithTimeout(background, time.Hour)
			_, err := b.get(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Hour, time.Since(start))
			cancel()
			got := async(func() (int, error) { return b.get(background) })
			synctest.Wait()
			require.NoError(t, b.put(background, 1))
			require.Equal(t, outcome{1, nil}, <-got)
		}
	})
}

// TestStress has producers and consumers, of which one is canceled all the time, and
// accounts for every item: what was put comes out, once, and in each producer's order;
// unless the buffer is one that loses some, but then it is not out of order either.
func TestStress(t *testing.T) {
	const producers, consumers, items = 4, 4, 1000
	eachBox(t, func(t *testing.T, b box) {
		fates := make(fates, producers+consumers)
		var in, out sync.WaitGroup
		for p := range producers {
			in.Go(func() {
				for i := 0; i < items; {
					ctx, cancel := fates.next(p)
					err := b.put(ctx, p*items+i)
					cancel()
					if err == nil {
						i++ // otherwise it has not been put
					} else if !errors.Is(err, context.Canceled) {
						t.Error(err)
						return
					}
				}
			})
		}
		got := make([][]int, consumers)
		for c := range consumers {
			out.Go(func() {
				for {
					ctx, cancel := fates.next(producers + c)
					get := b.get
					if rand.N(2) == 0 {
						get = func(ctx context.Context) (int, error) { return b.gets.send(ctx).Await(background) }
					}
					item, err := get(ctx)
					cancel()
					if err == nil {
						got[c] = append(got[c], item)
					} else if errors.Is(err, buffer.ErrClosed) {
						return
					} else if !errors.Is(err, context.Canceled) {
						t.Error(err)
						return
					}
				}
			})
		}
		over := make(chan struct{})
		go func() {
			in.Wait()
			if err := b.close(); err != nil {
				t.Error(err)
			}
			out.Wait()
			close(over)
		}()
		fates.strike(over)

		var all []int
		for _, mine := range got {
			last := [producers]int{}
			for _, item := range mine {
				p := item / items
				require.Greater(t, item+1, last[p], "out of order, or twice")
				last[p] = item + 1
			}
			all = append(all, mine...)
		}
		slices.Sort(all)
		require.Len(t, slices.Compact(slices.Clone(all)), len(all), "some came out twice")
		if b.putWaits || b.kind == "unbounded" {
			require.Len(t, all, producers*items, "some did not come out")
		}
	})
}

// TestOverwritingAccountsForAll is TestStress for what an Overwriting has dropped.
func TestOverwritingAccountsForAll(t *testing.T) {
	const producers, items = 4, 5000
	everywhere(t, func(t *testing.T, system *actor.System, options ...activeobject.Option) {
		b := must[*buffer.Overwriting[int]](t)(buffer.NewOverwriting[int](system, 3, options...))
		var in sync.WaitGroup
		ends := make([][]int, producers+1)
		for p := range producers {
			in.Go(func() {
				for i := range items {
					d, err := b.Put(p*items + i)
					if err != nil {
						t.Error(err)
					}
					if d.Any {
						ends[p] = append(ends[p], d.Item)
					}
				}
			})
		}
		got := make(chan struct{})
		go func() {
			defer close(got)
			for item := range b.All(background) {
				ends[producers] = append(ends[producers], item)
			}
		}()
		in.Wait()
		require.NoError(t, b.Close())
		<-got
		dropped, err := b.Dropped()
		require.NoError(t, err)
		require.EqualValues(t, producers*items-len(ends[producers]), dropped)
		all := slices.Concat(ends...)
		slices.Sort(all)
		for i := range producers * items {
			require.Equal(t, i, all[i])
		}
	})
}
