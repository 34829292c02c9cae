package activeobject_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
)

// ledger is an object that writes down which requests ran, in the order of starting.
type ledger struct{ log []string }

func (l *ledger) write(name string) { l.log = append(l.log, name) }

// ledgers is a type of ledger with three operations that do the same.
type ledgers struct {
	*activeobject.Type[ledger]
	hold    *activeobject.Operation[ledger, *brake, None]
	a, b, c *activeobject.Operation[ledger, string, None]
	read    *activeobject.Operation[ledger, None, []string]
}

func newLedgers() ledgers {
	t := activeobject.NewType[ledger]("ledger")
	always := func(*ledger) bool { return true }
	return ledgers{
		Type: t,
		hold: hold(t),
		a:    activeobject.Procedure(t, "a", activeobject.Arg((*ledger).write)),
		b:    activeobject.Entry(t, "b", activeobject.Arg((*ledger).write)).When("always", always),
		c: activeobject.EntryCtx(t, "c", func(l *ledger, _ context.Context, name string) (None, error) { l.write(name); return nil, nil }).
			WhenArg("always", func(*ledger, string) bool { return true }),
		read: activeobject.Function(t, "read", activeobject.Result(func(l *ledger) []string { return slices.Clone(l.log) })),
	}
}

// order sends the requests, named by operation and number, one after the other
// to a busy object, and returns the order in which they start.
func (l ledgers) order(t *testing.T, s *scene, requests []string, options ...activeobject.Option) []string {
	t.Helper()
	o := newObject(t, s, l.Type, &ledger{}, options...)
	release := braked(t, s, o, l.hold)
	var results []<-chan outcome[None]
	total := func() int { return l.a.Waiting(o) + l.b.Waiting(o) + l.c.Waiting(o) }
	for i, r := range requests {
		op := map[byte]*activeobject.Operation[ledger, string, None]{'a': l.a, 'b': l.b, 'c': l.c}[r[0]]
		// Calls and sends arrive in the same queues.
		if i%2 == 0 {
			results = append(results, calling(background, o, op, r))
		} else {
			results = append(results, awaiting(background, op.Send(background, o, r)))
		}
		eventually(t, "the request has arrived", func() bool { return total() == i+1 })
	}
	release()
	for _, c := range results {
		require.NoError(t, soon(t, s.system, c).err)
	}
	log, err := l.read.Call(background, o, nil)
	require.NoError(t, err)
	return log
}

func TestRequestsStartInTheOrderOfTheirArrival(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		var requests []string
		for i := range 60 {
			requests = append(requests, fmt.Sprintf("%c%d", 'a'+rand.N(3), i))
		}
		require.Equal(t, requests, l.order(t, s, requests))
	})
}

func TestRotatingTakesTheOperationsInTurn(t *testing.T) {
	l := newLedgers()
	everywhere(t, func(t *testing.T, s *scene) {
		require.Equal(t,
			[]string{"a1", "b1", "c1", "a2", "b2", "c2", "b3"},
			l.order(t, s, []string{"c1", "c2", "b1", "b2", "b3", "a1", "a2"}, activeobject.ByRotation()))
	})
}

func TestMaxBypassEndsTheTurns(t *testing.T) {
	l := newLedgers()
	requests := []string{"c1", "c2", "c3", "a1", "a2", "a3"}
	everywhere(t, func(t *testing.T, s *scene) {
		for bound, want := range map[int][]string{
			1: {"a1", "c1", "c2", "c3", "a2", "a3"},
			2: {"a1", "c1", "a2", "c2", "c3", "a3"},
			9: {"a1", "c1", "a2", "c2", "a3", "c3"},
		} {
			require.Equal(t, want, l.order(t, s, requests, activeobject.ByRotation(), activeobject.MaxBypass(bound)), "bound %d", bound)
		}
		require.Equal(t, requests, l.order(t, s, requests, activeobject.MaxBypass(1)), "by arrival no request is bypassed")
	})
}

func TestRequestsOfOneGoroutineStartInTheirOrderUnderContention(t *testing.T) {
	// What one goroutine sends arrives in its order, so it starts in its order,
	// whatever the others do.
	type entry struct{ writer, n int }
	type history struct{ log []entry }
	histories := activeobject.NewType[history]("history")
	write := activeobject.Procedure(histories, "write", activeobject.Arg(func(h *history, e entry) { h.log = append(h.log, e) }))

	everywhere(t, func(t *testing.T, s *scene) {
		state := &history{}
		o := newObject(t, s, histories, state)
		const writers, entries = 8, 500
		var wg sync.WaitGroup
		for writer := range writers {
			wg.Go(func() {
				for n := range entries {
					switch n % 3 {
					case 0:
						write.Tell(background, o, entry{writer, n})
					case 1:
						write.Send(background, o, entry{writer, n})
					default:
						write.Call(background, o, entry{writer, n})
					}
				}
			})
		}
		wg.Wait()
		write.Call(background, o, entry{writer: 0, n: entries})
		<-o.Stop()
		require.Len(t, state.log, writers*entries+1)
		var next [writers]int
		for _, e := range state.log {
			require.Equal(t, next[e.writer], e.n, "writer %d", e.writer)
			next[e.writer]++
		}
	})
}

func TestStartsFollowArrivalsUnderContention(t *testing.T) {
	// Arrival numbers are the scheduler's own: an explanation shows them. Whatever
	// waits together must start in their order.
	l := newLedgers()
	s := &scene{name: "without fast path", system: newSystem(t), options: []activeobject.Option{activeobject.NoFastPath()}}
	for range 20 {
		state := &ledger{}
		o := newObject(t, s, l.Type, state)
		release := braked(t, s, o, l.hold)
		const callers = 40
		var results []<-chan outcome[None]
		for i := range callers {
			op := []*activeobject.Operation[ledger, string, None]{l.a, l.b, l.c}[i%3]
			results = append(results, calling(background, o, op, op.Name()))
		}
		eventually(t, "all wait", func() bool { return l.a.Waiting(o)+l.b.Waiting(o)+l.c.Waiting(o) == callers })
		waits := o.Explain().Waiting
		require.Len(t, waits, callers)
		release()
		for _, c := range results {
			require.NoError(t, soon(t, s.system, c).err)
		}
		<-o.Stop()
		want := make([]string, callers)
		for _, w := range waits {
			want[w.Arrival-2] = w.Operation // the brake was the first to arrive
		}
		require.Equal(t, want, state.log)
	}
}
