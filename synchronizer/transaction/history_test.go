package transaction_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/serial"
	"github.com/sluice-go/sluice/synchronizer"
	"github.com/sluice-go/sluice/synchronizer/transaction"
)

// Lists are several lists in one object, which may be used at once if they are different ones.
type Lists struct{ of [listKeys]List }

// List is one of them.
type List struct{ values []int }

const listKeys = 4

// entry says what is appended to which list.
type entry struct{ key, value int }

var errFull = errors.New("full")

// The same object in two ways of undoing: by an Undo, where operations on different lists commute; and by copies.
var (
	lists      = activeobject.NewType[Lists]("lists").Commutes()
	listAppend = activeobject.Procedure(lists, "append", func(l *Lists, e entry) (guards.None, error) {
		l.of[e.key].values = append(l.of[e.key].values, e.value)
		return nil, nil
	}).Undo(func(l *Lists, e entry, _ guards.None) {
		values := l.of[e.key].values
		l.of[e.key].values = values[:len(values)-1]
	})
	listRead = activeobject.Function(lists, "read", func(l *Lists, key int) ([]int, error) {
		return slices.Clone(l.of[key].values), nil
	})
	listTable = lists.Conflicts().EqualKeys(guards.Key(listAppend, func(e entry) int { return e.key }), guards.Key(listRead, func(key int) int { return key }))

	copied       = activeobject.NewType[Lists]("copied lists").Copies(func(l *Lists) *Lists { c := *l; return &c })
	copiedAppend = activeobject.Procedure(copied, "append", func(l *Lists, e entry) (guards.None, error) {
		l.of[e.key].values = append(slices.Clip(l.of[e.key].values), e.value)
		return nil, nil
	})
	copiedRead = activeobject.Function(copied, "read", func(l *Lists, key int) ([]int, error) {
		return slices.Clone(l.of[key].values), nil
	})
)

// store is objects with lists, however these are made.
type store struct {
	manager *transaction.Manager
	append  func(ctx context.Context, o int, e entry) error
	read    func(ctx context.Context, o, key int) ([]int, error)
}

const listObjects = 3

func storeOf(t *testing.T, b *fixture, typ *activeobject.Type[Lists], add *activeobject.Operation[Lists, entry, guards.None], read *activeobject.Operation[Lists, int, []int], options ...activeobject.Option) *store {
	var all []*activeobject.Object[Lists]
	for range listObjects {
		o, err := activeobject.New(b.system, typ, &Lists{}, options...)
		require.NoError(t, err)
		all = append(all, o)
	}
	return &store{b.manager,
		func(ctx context.Context, o int, e entry) error { return add.Do(ctx, all[o], e) },
		func(ctx context.Context, o, key int) ([]int, error) { return read.Call(ctx, all[o], key) }}
}

// Whatever transactions do at once, and however they end, some order of those that were committed explains
// all that they have read, and agrees with real time.
func TestHistoriesAreSerializable(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, b *fixture) *store{
		"active objects, Undo": func(t *testing.T, b *fixture) *store { return storeOf(t, b, lists, listAppend, listRead) },
		"active objects, Copies": func(t *testing.T, b *fixture) *store {
			return storeOf(t, b, copied, copiedAppend, copiedRead)
		},
		"Synchronizers, Copies": func(t *testing.T, b *fixture) *store {
			return storeOf(t, b, copied, copiedAppend, copiedRead, synchronizer.Callers())
		},
		"Synchronizers, Undo, keys": func(t *testing.T, b *fixture) *store {
			return storeOf(t, b, lists, listAppend, listRead, synchronizer.Callers(), synchronizer.Conflicts(listTable))
		},
		"goroutines, Undo, keys": func(t *testing.T, b *fixture) *store {
			return storeOf(t, b, lists, listAppend, listRead, synchronizer.Goroutines(), synchronizer.Conflicts(listTable))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			s := make(t, b)
			var history serial.Recorder
			var values, deadlocks atomic.Int64
			callers, each := 16, 60
			if testing.Short() {
				each = 20
			}
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range each {
						s.transact(&history, &values, &deadlocks)
					}
				})
			}
			wg.Wait()
			last := history.Begin()
			require.NoError(t, b.manager.Run(ctx, func(ctx context.Context) error {
				for o := range listObjects {
					for key := range listKeys {
						found, err := s.read(ctx, o, key)
						require.NoError(t, err)
						last.Read(listName(o, key), found)
					}
				}
				return nil
			}))
			last.End(serial.Committed)
			require.Empty(t, serial.Check(history.History()))
			t.Log("attempts that a deadlock ended:", deadlocks.Load())
		})
	}
}

func listName(o, key int) string { return strconv.Itoa(o) + "/" + strconv.Itoa(key) }

// transact makes a random transaction and records each of its attempts.
func (s *store) transact(history *serial.Recorder, values, deadlocks *atomic.Int64) {
	type step struct {
		o, key int
		write  bool
	}
	var steps []step
	for range 1 + rand.IntN(5) {
		steps = append(steps, step{rand.IntN(listObjects), rand.IntN(listKeys), rand.IntN(2) == 0})
	}
	fate := rand.IntN(12)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var attempt *serial.Recording
	defer func() {
		if recover() != nil {
			attempt.End(serial.Aborted)
		}
	}()
	err := s.manager.Run(ctx, func(ctx context.Context) error {
		if attempt != nil { // the one before
			attempt.End(serial.Aborted)
			deadlocks.Add(1)
		}
		attempt = history.Begin()
		for i, step := range steps {
			if i == len(steps)/2 {
				switch fate {
				case 0:
					return errFull
				case 1:
					panic("broken")
				case 2:
					cancel()
				case 3:
					time.AfterFunc(time.Duration(rand.IntN(100))*time.Microsecond, cancel)
				}
			}
			name := listName(step.o, step.key)
			if step.write {
				value := int(values.Add(1))
				if err := s.append(ctx, step.o, entry{step.key, value}); err != nil {
					return err
				}
				attempt.Append(name, value)
				continue
			}
			found, err := s.read(ctx, step.o, step.key)
			if err != nil {
				return err
			}
			attempt.Read(name, found)
		}
		return nil
	})
	if err == nil {
		attempt.End(serial.Committed)
	} else {
		attempt.End(serial.Aborted)
	}
}
