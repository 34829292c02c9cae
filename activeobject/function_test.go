package activeobject_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// results are what others wait for until it is there, and then only read.
type results struct {
	value     int
	evaluated atomic.Int64 // how often "there" has been; guards run beside each other at a Synchronizer
}

func (r *results) there() bool {
	r.evaluated.Add(1)
	return r.value > 0
}

// A resultsType is the declaration of results, for one test.
type resultsType struct {
	*activeobject.Type[results]
	set   *activeobject.Operation[results, int, None]
	read  *activeobject.Operation[results, None, int]
	above *activeobject.Operation[results, int, int]
	take  *activeobject.Operation[results, None, int]
}

func newResults() *resultsType {
	t := activeobject.NewType[results]("results")
	value := activeobject.Result(func(r *results) int { return r.value })
	return &resultsType{
		Type:  t,
		set:   activeobject.Procedure(t, "set", activeobject.Arg(func(r *results, v int) { r.value = v })),
		read:  activeobject.Function(t, "read", value).When("there", (*results).there),
		above: activeobject.Function(t, "above", func(r *results, least int) (int, error) { return r.value, nil }).WhenArg("above", func(r *results, least int) bool { return r.value > least }),
		take:  activeobject.Entry(t, "take", activeobject.Result(func(r *results) int { v := r.value; r.value = 0; return v })).When("there to take", func(r *results) bool { return r.value > 0 }),
	}
}

// All that wait for a function's guard start when that has been evaluated once: none of them
// changes the state.
func TestAllThatWaitForAFunctionStartByOneEvaluation(t *testing.T) {
	const n = 40
	everywhere(t, func(t *testing.T, s *scene) {
		rs, state := newResults(), &results{}
		o := newObject(t, s, rs.Type, state)
		var calls []<-chan outcome[int]
		for range n {
			calls = append(calls, calling(background, o, rs.read, nil))
		}
		waiting(t, o, rs.read, n)
		before := state.evaluated.Load()
		_, err := rs.set.Call(background, o, 7)
		require.NoError(t, err)
		for _, c := range calls {
			out := soon(t, s.system, c)
			require.NoError(t, out.err)
			require.Equal(t, 7, out.result)
		}
		require.EqualValues(t, 1, state.evaluated.Load()-before)
	})
}

// A function that waits is a request like any other: it is explained, refused to a Try, withdrawn
// with its context, and never passes what it conflicts with and comes before it.
func TestAFunctionWithAGuardWaitsLikeAnEntry(t *testing.T) {
	everywhere(t, func(t *testing.T, s *scene) {
		rs := newResults()
		o := newObject(t, s, rs.Type, &results{})
		requireWaits(t, o, rs.read, nil, "there")
		requireWaits(t, o, rs.above, 3, "above")

		ctx, cancel := context.WithCancel(background)
		gone := calling(ctx, o, rs.above, 1)
		waiting(t, o, rs.above, 1)
		cancel()
		require.ErrorIs(t, soon(t, s.system, gone).err, context.Canceled)

		above := calling(background, o, rs.above, 3)
		waiting(t, o, rs.above, 1)
		_, err := rs.set.Call(background, o, 3)
		require.NoError(t, err)
		require.Equal(t, 1, rs.above.Waiting(o), "3 is not above 3")
		got, err := rs.read.Call(background, o, nil)
		require.NoError(t, err)
		require.Equal(t, 3, got)
		_, err = rs.set.Call(background, o, 4)
		require.NoError(t, err)
		require.Equal(t, outcome[int]{4, nil}, soon(t, s.system, above))
	})
}

// An entry that has waited longer takes the value before the functions that wait for it read it;
// one that has come later takes it after them.
func TestFunctionsAndEntriesThatWaitForOneEventStartInOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, s *scene) {
		rs := newResults()
		o := newObject(t, s, rs.Type, &results{})
		reads := calling(background, o, rs.read, nil)
		waiting(t, o, rs.read, 1)
		takes := calling(background, o, rs.take, nil)
		waiting(t, o, rs.take, 1)
		late := calling(background, o, rs.read, nil)
		waiting(t, o, rs.read, 2)
		_, err := rs.set.Call(background, o, 1)
		require.NoError(t, err)
		require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, reads))
		require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, takes))
		require.Equal(t, 1, rs.read.Waiting(o), "there is nothing to read any more")
		_, err = rs.set.Call(background, o, 2)
		require.NoError(t, err)
		require.Equal(t, outcome[int]{2, nil}, soon(t, s.system, late))
	})
}

// A derived type can make an inherited function wait.
func TestAnInheritedFunctionCanGetAGuard(t *testing.T) {
	everywhere(t, func(t *testing.T, s *scene) {
		base := activeobject.NewType[results]("base")
		read := activeobject.Function(base, "read", activeobject.Result(func(r *results) int { return r.value }))
		derived := activeobject.Derive(base, "derived", activeobject.Same[results])
		activeobject.In(derived, read).When("there", (*results).there)
		set := activeobject.Procedure(derived, "set", activeobject.Arg(func(r *results, v int) { r.value = v }))

		o := newObject(t, s, derived, &results{})
		reads := calling(background, o, read, nil)
		waiting(t, o, read, 1)
		_, err := set.Call(background, o, 5)
		require.NoError(t, err)
		require.Equal(t, outcome[int]{5, nil}, soon(t, s.system, reads))

		plain := newObject(t, s, base, &results{})
		got, err := read.Call(background, plain, nil)
		require.NoError(t, err)
		require.Zero(t, got, "at the base it does not wait")
	})
}

// Many goroutines wait for one event, and read what has come of it.
func ExampleFunction_guard() {
	system := actor.NewSystem()
	defer system.Close(context.Background())

	type election struct{ leader string }
	elections := activeobject.NewType[election]("election")
	elect := activeobject.Procedure(elections, "elect", activeobject.Arg(func(e *election, name string) { e.leader = name }))
	leader := activeobject.Function(elections, "leader", activeobject.Result(func(e *election) string { return e.leader })).
		When("elected", func(e *election) bool { return e.leader != "" })

	ctx, o := context.Background(), activeobject.Must(activeobject.New(system, elections, &election{}))
	one, other := leader.Send(ctx, o, nil), leader.Send(ctx, o, nil)
	fmt.Println(leader.Waiting(o), "wait")
	elect.Call(ctx, o, "Ada")
	a, _ := one.Await(ctx)
	b, _ := other.Await(ctx)
	fmt.Println(a, b)
	// Output:
	// 2 wait
	// Ada Ada
}
