package buffer

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The states are plain Go, and tested as such.

// naive is a buffer that is plainly right.
type naive struct {
	items  []int
	closed bool
}

func (n *naive) get() (item int, err error) {
	if len(n.items) == 0 {
		return 0, new(end).passed()
	}
	item, n.items = n.items[0], n.items[1:]
	return item, nil
}

func (n *naive) put(item int) (none, error) {
	if n.closed {
		return nil, new(end).passed()
	}
	n.items = append(n.items, item)
	return nil, nil
}

func (n *naive) close() (none, error) {
	if n.closed {
		return nil, new(end).passed()
	}
	n.closed = true
	return nil, nil
}

// same requires two outcomes to be the same.
func same[R any](t require.TestingT, want R, wanted error, got R, err error) {
	require.Equal(t, wanted, err)
	require.Equal(t, want, got)
}

func TestARingIsALineWithAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 5).Draw(t, "capacity")
		r, n := &ring[int]{items: make([]int, capacity)}, &naive{}
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				require.Equal(t, len(n.items) < capacity || n.closed, r.notFull())
				if r.notFull() {
					next++
					want, wanted := n.put(next)
					got, err := r.put(next)
					same(t, want, wanted, got, err)
				}
			},
			"get": func(t *rapid.T) {
				require.Equal(t, len(n.items) > 0 || n.closed, r.notEmpty())
				if r.notEmpty() {
					want, wanted := n.get()
					got, err := r.get(nil)
					same(t, want, wanted, got, err)
				}
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "one in ten") == 0 {
					want, wanted := n.close()
					got, err := r.close(nil)
					same(t, want, wanted, got, err)
				}
			},
			"": func(t *rapid.T) { require.Equal(t, len(n.items), r.len()) },
		})
	})
}

func TestAWindowLosesTheOldest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 5).Draw(t, "capacity")
		w, n := &window[int]{ring: ring[int]{items: make([]int, capacity)}}, &naive{}
		next, lost := 0, uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				next++
				var want Dropped[int]
				if len(n.items) == capacity && !n.closed {
					want.Item, _ = n.get()
					want.Any = true
					lost++
				}
				_, wanted := n.put(next)
				got, err := w.put(next)
				same(t, want, wanted, got, err)
			},
			"get": func(t *rapid.T) {
				if w.notEmpty() {
					want, wanted := n.get()
					got, err := w.get(nil)
					same(t, want, wanted, got, err)
				}
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "one in ten") == 0 {
					want, wanted := n.close()
					got, err := w.close(nil)
					same(t, want, wanted, got, err)
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(n.items), w.len())
				require.Equal(t, lost, w.dropped())
			},
		})
	})
}

func TestAQueueIsALineWithoutEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, n := &queue[int]{}, &naive{}
		next, peak := 0, 0
		several := rapid.IntRange(1, 2*perBlock+1)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range several.Draw(t, "items") {
					next++
					want, wanted := n.put(next)
					got, err := q.put(next)
					same(t, want, wanted, got, err)
				}
				peak = max(peak, len(n.items))
			},
			"get": func(t *rapid.T) {
				for range several.Draw(t, "items") {
					require.Equal(t, len(n.items) > 0 || n.closed, q.notEmpty())
					if q.notEmpty() {
						want, wanted := n.get()
						got, err := q.get(nil)
						same(t, want, wanted, got, err)
					}
				}
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "one in ten") == 0 {
					want, wanted := n.close()
					got, err := q.close(nil)
					same(t, want, wanted, got, err)
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(n.items), q.len())
				require.Equal(t, peak, q.highest())
				// What is there needs its blocks, with a gap at either end, and one is spare.
				require.LessOrEqual(t, len(q.blocks()), (q.count+perBlock-1)/perBlock+2)
			},
		})
	})
}

// blocks returns the blocks that the queue holds on to.
func (q *queue[T]) blocks() (all []*block[T]) {
	for b := q.head; b != nil; b = b.next {
		all = append(all, b)
	}
	if q.spare != nil {
		all = append(all, q.spare)
	}
	return all
}

func TestAPeakIsGivenBack(t *testing.T) {
	q := &queue[int]{}
	for i := range 100_000 {
		q.put(i)
	}
	require.Greater(t, len(q.blocks()), 1000)
	for range 100_000 {
		q.get(nil)
	}
	require.LessOrEqual(t, len(q.blocks()), 2)
	require.Equal(t, 100_000, q.highest())
}

func TestAShortQueueAllocatesNothing(t *testing.T) {
	q := &queue[int]{}
	for i := range 3 * perBlock {
		q.put(i)
	}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for range 10 * perBlock {
			q.get(nil)
			q.put(0)
		}
	}))
}

func TestWhatWasTakenIsNotKept(t *testing.T) {
	const items = 3*perBlock + 7
	r := &ring[*int]{items: make([]*int, 3)}
	w := &window[*int]{ring: ring[*int]{items: make([]*int, 3)}}
	q := &queue[*int]{}
	h := &handover[*int]{}
	for range items {
		r.put(new(int))
		w.put(new(int))
		w.put(new(int))
		h.put(new(int))
		q.put(new(int))
		r.get(nil)
		w.get(nil)
		h.get(nil)
	}
	for w.count > 0 {
		w.get(nil)
	}
	for range items {
		q.get(nil)
	}
	require.Equal(t, make([]*int, 3), r.items)
	require.Equal(t, make([]*int, 3), w.items)
	require.Nil(t, h.value)
	for _, b := range q.blocks() {
		require.Equal(t, [perBlock]*int{}, b.items)
	}
}

func TestNewsAreNewOnceToEveryReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := &news[int]{}
		value := 0
		isNew := false             // the flag of the text
		flags := map[uint64]bool{} // its array of flags
		gone := []uint64{}
		a := rapid.Custom(func(t *rapid.T) uint64 { return rapid.Uint64Range(1, uint64(len(flags)+len(gone))).Draw(t, "reader") })
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				_, err := n.put(value + 1)
				if n.closed {
					require.ErrorIs(t, err, ErrClosed)
					return
				}
				value++
				isNew = true
				for reader := range flags {
					flags[reader] = true
				}
			},
			"get": func(t *rapid.T) {
				require.Equal(t, isNew || n.closed, n.newer())
				if !n.newer() {
					return
				}
				got, err := n.get(nil)
				if !isNew {
					require.Equal(t, &ClosedError{}, err)
					return
				}
				same(t, value, nil, got, err)
				isNew = false
			},
			"get by reader": func(t *rapid.T) {
				if len(flags)+len(gone) == 0 {
					return
				}
				reader := a.Draw(t, "reader")
				require.Equal(t, flags[reader] || n.closed || slices.Contains(gone, reader), n.newTo(reader))
				if !n.newTo(reader) {
					return
				}
				got, err := n.getFor(reader)
				switch {
				case slices.Contains(gone, reader):
					require.Equal(t, &ClosedError{Reader: reader}, err)
				case !flags[reader]:
					require.Equal(t, &ClosedError{}, err)
				default:
					same(t, value, nil, got, err)
					flags[reader] = false
				}
			},
			"get after": func(t *rapid.T) {
				serial := rapid.Uint64Range(0, uint64(value)+1).Draw(t, "serial")
				require.Equal(t, serial != uint64(value) || n.closed, n.after(serial))
				if !n.after(serial) {
					return
				}
				got, err := n.getAfter(serial)
				switch {
				case serial < uint64(value):
					same(t, Serial[int]{value, uint64(value)}, nil, got, err)
				case serial == uint64(value):
					require.Equal(t, &ClosedError{}, err)
				default:
					require.ErrorContains(t, err, "serial is")
				}
			},
			"register": func(t *rapid.T) { flags[n.register()] = value > 0 },
			"close reader": func(t *rapid.T) {
				if len(flags)+len(gone) == 0 {
					return
				}
				reader := a.Draw(t, "reader")
				_, err := n.unregister(reader)
				if slices.Contains(gone, reader) {
					require.Equal(t, &ClosedError{Reader: reader}, err)
					return
				}
				require.NoError(t, err)
				delete(flags, reader)
				gone = append(gone, reader)
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "one in ten") == 0 {
					n.close(nil)
				}
			},
			"": func(t *rapid.T) { require.Len(t, n.seen, len(flags)) },
		})
	})
}
