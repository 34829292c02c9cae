package buffer_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject/buffer"
	"github.com/sluice-go/sluice/activeobject/internal/patterntest"
	"github.com/sluice-go/sluice/activeobject/objecttest"
)

// T is the type of item in the table.
type T int

func TestBuffersServeActorsByMessage(t *testing.T) {
	const clients, items = 50, 10
	system := objecttest.NewSystem(t)

	// exchange has every second client put items, the last of which closes the buffer, and the
	// others consume them until then. It requires that what was put and what was got add up,
	// if each item is got.
	exchange := func(o *patterntest.Object, each bool, consume func(client int, ask patterntest.Ask) (sum T)) {
		t.Helper()
		var put, got, producers atomic.Int64
		producers.Store(clients / 2)
		o.Clients(t, system, clients, func(client int, ask patterntest.Ask) {
			if client%2 == 1 {
				got.Add(int64(consume(client, ask)))
				return
			}
			for i := range items {
				item := T(client*items + i)
				dropped, err := ask("put", item)
				assert.NoError(t, err)
				put.Add(int64(item))
				if d, ok := dropped.(buffer.Dropped[T]); ok {
					put.Add(-int64(d.Item))
				}
			}
			if producers.Add(-1) == 0 {
				_, err := ask("close", nil)
				assert.NoError(t, err)
			}
		})
		if each {
			require.Equal(t, put.Load(), got.Load())
		}
		o.Clients(t, system, 1, func(_ int, ask patterntest.Ask) {
			_, err := ask("put", T(0))
			assert.ErrorIs(t, err, buffer.ErrClosed)
			_, err = ask("close", nil)
			assert.ErrorIs(t, err, buffer.ErrClosed)
		})
	}
	// drain gets until the buffer is closed and empty.
	drain := func(_ int, ask patterntest.Ask) (sum T) {
		for {
			item, err := ask("get", nil)
			if err != nil {
				assert.ErrorIs(t, err, buffer.ErrClosed)
				return sum
			}
			sum += item.(T)
		}
	}
	// counts asks for numbers.
	counts := func(o *patterntest.Object, operations ...string) {
		o.Clients(t, system, 1, func(_ int, ask patterntest.Ask) {
			for _, operation := range operations {
				_, err := ask(operation, nil)
				assert.NoError(t, err)
			}
		})
		o.Complete(t, system)
	}

	bounded := patterntest.Of(must[*buffer.Bounded[T]](t)(buffer.NewBounded[T](system, 4)))
	exchange(bounded, true, drain)
	counts(bounded, "len")

	overwriting := patterntest.Of(must[*buffer.Overwriting[T]](t)(buffer.NewOverwriting[T](system, 4)))
	exchange(overwriting, true, drain)
	counts(overwriting, "len", "dropped")

	unbounded := patterntest.Of(must[*buffer.Unbounded[T]](t)(buffer.NewUnbounded[T](system)))
	exchange(unbounded, true, drain)
	counts(unbounded, "len", "peak")

	any := must[*buffer.ReadAny[T]](t)(buffer.NewReadAny[T](system))
	readAny := patterntest.Of(any)
	require.NoError(t, any.Put(0))
	exchange(readAny, false, drain)
	counts(readAny, "initialized")

	readNew := patterntest.Of(must[*buffer.ReadNew[T]](t)(buffer.NewReadNew[T](system)))
	exchange(readNew, false, func(client int, ask patterntest.Ask) T {
		switch client % 3 {
		case 0:
			return drain(client, ask)
		case 1:
			reader, err := ask("register", nil)
			assert.NoError(t, err)
			for last := T(-1); ; {
				item, err := ask("get by reader", reader)
				if err != nil {
					assert.ErrorIs(t, err, buffer.ErrClosed)
					break
				}
				assert.NotEqual(t, last, item, "a reader gets each value once")
				last = item.(T)
			}
			_, err = ask("close reader", reader)
			assert.NoError(t, err)
		default:
			for serial := uint64(0); ; {
				item, err := ask("get after", serial)
				if err != nil {
					assert.ErrorIs(t, err, buffer.ErrClosed)
					break
				}
				assert.Greater(t, item.(buffer.Serial[T]).Serial, serial)
				serial = item.(buffer.Serial[T]).Serial
			}
		}
		return 0
	})
	counts(readNew)

	readWriteNew := patterntest.Of(must[*buffer.ReadWriteNew[T]](t)(buffer.NewReadWriteNew[T](system)))
	exchange(readWriteNew, true, drain)
	counts(readWriteNew)

	patterntest.Table(t, "buffer", bounded, overwriting, unbounded, readAny, readNew, readWriteNew)
}
