package mailbox_test

import (
	"cmp"
	"iter"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// strip is an object whose requests take up a part of it: their Key, a stretch.
type strip struct {
	rules *mailbox.Rules
	open  bool // the guard that its entries share
	asked []int64
}

type stretch struct{ from, to int }

func (s *strip) AskState(int) (string, error) {
	if s.open {
		return "", nil
	}
	return "open", nil
}

// AskRequest implements mailbox.Object: requests are open that have no rank.
func (s *strip) AskRequest(r *mailbox.Request) (string, error) {
	s.asked = append(s.asked, r.Rank)
	if r.Rank == 0 {
		return "", nil
	}
	return "no rank", nil
}

func (s *strip) Clash(scope int, a, b *mailbox.Request) (bool, error) {
	return s.rules.Conflicts.Scopes()[scope].Predicate(a.Op, a.Key, b.Key), nil
}

func (s *strip) request(op int, at stretch, outer ...*mailbox.Claim) *mailbox.Request {
	r := &mailbox.Request{Op: op, Key: at}
	if s.rules.Scoped(op) {
		r.Claim = &mailbox.Claim{Outer: outer}
		scopes := s.rules.Conflicts.Scopes()
		for i := range scopes {
			e, _ := scopes[i].Extent(op, at)
			r.Claim.Extents = append(r.Claim.Extents, e)
		}
	}
	return r
}

func newStrip(rules *mailbox.Rules) (*strip, *mailbox.Scheduler) {
	s := &strip{rules: rules}
	return s, mailbox.New(rules, s)
}

func bounds(s stretch) (int, int)          { return s.from, s.to }
func overlap(a, b stretch) bool            { return max(a.from, b.from) < min(a.to, b.to) }
func byBounds(op string) guards.IntervalOf { return guards.Interval(guards.Name(op), bounds) }

// starts hands in a request, and expects it to start.
func starts(t *testing.T, k *mailbox.Scheduler, r *mailbox.Request) *mailbox.Request {
	t.Helper()
	k.Arrive(r)
	got, err := k.Next()
	require.NoError(t, err)
	require.Same(t, r, got)
	return r
}

// waits hands in a request, and expects nobody to start.
func waits(t *testing.T, k *mailbox.Scheduler, r *mailbox.Request) *mailbox.Request {
	t.Helper()
	k.Arrive(r)
	got, err := k.Next()
	require.NoError(t, err)
	require.Nil(t, got)
	return r
}

// Who is called from inside passes those that wait, and so is not turned away by a bound
// that these have reached.
func TestCallFromInsideIsNotRefusedForThoseItPasses(t *testing.T) {
	s, k := newStrip(&mailbox.Rules{
		Operations: []mailbox.Operation{{Name: "work"}}, Conflicts: guards.NewExclusive("work"), Reentrant: true,
		Bound: mailbox.Bound{Max: 1, Overflow: mailbox.Refuse},
	})
	outer := starts(t, k, s.request(0, stretch{}))
	waits(t, k, s.request(0, stretch{}))
	starts(t, k, s.request(0, stretch{}, outer.Claim))
}

// Who is called from inside passes those that wait also where only the head of a line is
// asked.
func TestCallFromInsidePassesTheHeadOfItsLine(t *testing.T) {
	s, k := newStrip(&mailbox.Rules{
		Operations: []mailbox.Operation{{Name: "work"}, {Name: "enter", Kind: mailbox.Entry, Guard: "no rank", Looks: guards.AtArgument, HeadOfLine: true}},
		Conflicts:  guards.NewExclusive("work", "enter"), Reentrant: true,
	})
	head := s.request(1, stretch{})
	head.Rank = 1
	waits(t, k, head)
	outer := starts(t, k, s.request(0, stretch{}))
	k.Complete(starts(t, k, s.request(1, stretch{}, outer.Claim)))
	try := s.request(1, stretch{}, outer.Claim)
	try.Try = true
	k.Complete(starts(t, k, try))
	s.asked = nil
	closed := s.request(1, stretch{}, outer.Claim)
	closed.Rank = 2
	waits(t, k, closed)
	require.Equal(t, []int64{2}, s.asked, "and the head is not asked, as what runs conflicts with it")
}

// A bypass of a line in which only the head is asked is one of the head.
func TestBypassAsksTheHeadOfALineOnly(t *testing.T) {
	s, k := newStrip(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "work"},
			{Name: "enter", Kind: mailbox.Entry, Guard: "no rank", Looks: guards.AtArgument, HeadOfLine: true},
		},
		Conflicts: guards.NewExclusive("work", "enter").Overlapping(byBounds("enter")), MaxBypass: 2,
	})
	for rank := range int64(3) {
		r := s.request(1, stretch{0, 1})
		r.Rank = rank + 1
		waits(t, k, r)
	}
	k.Complete(starts(t, k, s.request(0, stretch{})))
	require.NotContains(t, s.asked, int64(2))
	require.NotContains(t, s.asked, int64(3))
}

// All who run and are in a request's way are told, also those that are in the way of others
// which come before it: not the first of these stands for all.
func TestInTheWayAreAllThatRequestsBeforeWaitFor(t *testing.T) {
	rules := &mailbox.Rules{
		Operations: []mailbox.Operation{{Name: "work"}, {Name: "enter", Kind: mailbox.Entry, Guard: "open", Looks: guards.AtState}},
		Conflicts:  guards.NewExclusive("work", "enter").Overlapping(byBounds("work"), byBounds("enter")),
	}
	for op, where := range map[int]mailbox.State{0: mailbox.StateEntry, 1: mailbox.StateAdmitted} {
		s, k := newStrip(rules)
		var waiting []*mailbox.Request
		come := func() {
			for _, at := range []stretch{{1, 3}, {7, 9}, {2, 8}} {
				waiting = append(waiting, waits(t, k, s.request(op, at)))
			}
		}
		if where == mailbox.StateAdmitted {
			come()
		}
		left, right := starts(t, k, s.request(0, stretch{0, 2})), starts(t, k, s.request(0, stretch{8, 10}))
		if where == mailbox.StateEntry {
			come()
		}
		require.Equal(t, where, waiting[0].State())
		require.Equal(t, []*mailbox.Request{left, right}, sorted(k.Blockers(waiting[2])))
	}
}

// sorted returns requests in order of arrival.
func sorted(some iter.Seq[*mailbox.Request]) []*mailbox.Request {
	return slices.SortedFunc(some, func(a, b *mailbox.Request) int { return cmp.Compare(a.Arrival(), b.Arrival()) })
}

// A guard that was asked for somebody at the door is known to be false for those inside, too:
// who has been behind them may start.
func TestWhatTheDoorFindsOutIsMadeUseOf(t *testing.T) {
	key := func(op string) guards.KeyOf {
		return guards.Key(guards.Name(op), func(s stretch) int { return s.from })
	}
	enter, put, get := guards.Name("enter"), guards.Name("put"), guards.Name("get")
	s, k := newStrip(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "enter", Kind: mailbox.Entry, Guard: "open", Looks: guards.AtState},
			{Name: "put"},
			{Name: "get"},
		},
		Conflicts: guards.NewTable("enter", "put", "get").Conflict(enter, put, get).EqualKeys(key("enter"), key("put"), key("get")),
		Bound:     mailbox.Bound{Max: 2, Overflow: mailbox.Wait},
	})
	first := waits(t, k, s.request(0, stretch{1, 2})) // inside, closed
	starts(t, k, s.request(1, stretch{1, 2}))
	other := starts(t, k, s.request(1, stretch{2, 3}))
	behind := waits(t, k, s.request(2, stretch{1, 2})) // passes nobody who may be open
	last := s.request(0, stretch{2, 3})
	last.Patient = true
	require.Equal(t, mailbox.StateOverflow, waits(t, k, last).State())
	k.Complete(other)
	var started []*mailbox.Request
	for r, err := k.Next(); r != nil; r, err = k.Next() {
		require.NoError(t, err)
		started = append(started, r)
	}
	require.Equal(t, []*mailbox.Request{behind}, started)
	require.True(t, first.Waits() && last.Waits())
}

// Of those that have waited for each other none is kept in memory by who came later.
func TestWhoHasRunIsForgotten(t *testing.T) {
	work := guards.Name("work")
	s, k := newStrip(&mailbox.Rules{
		Operations: []mailbox.Operation{{Name: "work"}},
		Conflicts:  guards.NewExclusive("work").OnlyIf(guards.Pair(work, work, overlap)),
	})
	last := starts(t, k, s.request(0, stretch{0, 1}))
	first := weak.Make(last.Claim)
	for range 3 {
		next := waits(t, k, s.request(0, stretch{0, 1}))
		k.Complete(last)
		r, err := k.Next()
		require.NoError(t, err)
		require.Same(t, next, r)
		last = next
	}
	runtime.GC()
	require.Nil(t, first.Value())
	runtime.KeepAlive(last)
}

// From the gate of one operation some go inside and others between them do not: a walk
// visits all the same each of them once.
func TestCursorVisitsThoseWhoPassOthersAtTheGate(t *testing.T) {
	work := guards.Name("work")
	s, k := newStrip(&mailbox.Rules{
		Operations: []mailbox.Operation{{Name: "work", Kind: mailbox.Entry, Guard: "open", Looks: guards.AtState}, {Name: "hold"}},
		Conflicts:  guards.NewExclusive("work", "hold").Overlapping(guards.Interval(work, bounds), byBounds("hold")),
	})
	starts(t, k, s.request(1, stretch{0, 1}))
	all := []*mailbox.Request{
		waits(t, k, s.request(0, stretch{0, 1})), // at the gate
		waits(t, k, s.request(0, stretch{1, 2})), // inside, and closed
		waits(t, k, s.request(0, stretch{0, 1})),
	}
	var visited []*mailbox.Request
	c := k.Inspect()
	defer c.Close()
	for c.Next(1, func(r *mailbox.Request, _ int) { visited = append(visited, r) }) {
	}
	require.ElementsMatch(t, all, visited)
}

// Who has waited outside keeps his place, though others of his operation have come in before
// him, as nothing ran that they conflict with.
func TestWhoIsLetInLaterKeepsHisPlace(t *testing.T) {
	s, k := newStrip(&mailbox.Rules{
		Operations: []mailbox.Operation{{Name: "work"}, {Name: "hold"}, {Name: "stop"}},
		Conflicts:  guards.NewExclusive("work", "hold", "stop").Overlapping(byBounds("work"), byBounds("hold")),
	})
	holds := starts(t, k, s.request(1, stretch{0, 1}))
	first := waits(t, k, s.request(0, stretch{0, 3})) // conflicts with what runs
	waits(t, k, s.request(2, stretch{}))
	waits(t, k, s.request(0, stretch{2, 3})) // does not, and comes inside
	k.Complete(holds)
	r, err := k.Next()
	require.NoError(t, err)
	require.Same(t, first, r)
}

// Who has come later, and is inside already, is in nobody's way who waits outside.
func TestWhoHasComeLaterIsNotInTheWay(t *testing.T) {
	s, k := newStrip(&mailbox.Rules{
		Operations: []mailbox.Operation{{Name: "work"}, {Name: "hold"}, {Name: "late", Kind: mailbox.Entry, Guard: "open", Looks: guards.AtState}, {Name: "note"}},
		Conflicts: guards.NewExclusive("work", "hold", "late", "note").
			Overlapping(byBounds("work"), byBounds("hold"), byBounds("late")).
			Compatible(guards.Name("note"), guards.Name("work"), guards.Name("hold")),
	})
	holds := starts(t, k, s.request(1, stretch{0, 1}))
	first := waits(t, k, s.request(0, stretch{0, 3}))
	late := waits(t, k, s.request(2, stretch{2, 3}))
	note := starts(t, k, s.request(3, stretch{}))
	require.Equal(t, mailbox.StateAdmitted, late.State())
	require.Equal(t, []*mailbox.Request{holds}, sorted(k.Blockers(first)))
	require.Equal(t, []*mailbox.Request{holds, note}, sorted(k.Blockers(late)))
}
