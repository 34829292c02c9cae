package main

import (
	"testing"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/examples/classics/internal/rehearsal"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

func TestPhilosophers(t *testing.T) {
	rehearsal.Of(t, run, 1000, "Each of 5 philosophers has eaten 1000 times, and never two neighbors at once.\n")
}

// Without HeadOfLine the two could eat by turns, and he would starve.
func TestNobodyStarvesBetweenTwoWhoEatByTurns(t *testing.T) {
	table := activeobject.Must(activeobject.New(objecttest.NewSystem(t), tables, &Table{}, objecttest.Checked(t)))
	left, right := take.Send(t.Context(), table, 0), take.Send(t.Context(), table, 2)
	between := take.Send(t.Context(), table, 1)
	eats := func(f activeobject.Future[activeobject.None]) {
		if _, err := f.Await(t.Context()); err != nil {
			t.Error(err)
		}
	}
	eats(left)
	eats(right)
	putDown.Call(t.Context(), table, 0)
	again := take.Send(t.Context(), table, 0)
	objecttest.Waiting(t, table, take, 2) // though his forks are free
	putDown.Call(t.Context(), table, 2)
	eats(between)
	if again.Ready() {
		t.Error("he has been passed")
	}
	putDown.Call(t.Context(), table, 1)
	eats(again)
}

func TestCheckFinds(t *testing.T) {
	for name, story := range map[string][]event{
		"two neighbors who eat":        {{0, true}, {1, true}, {0, false}, {1, false}},
		"the last beside the first":    {{0, true}, {4, true}, {0, false}, {4, false}},
		"somebody who has not eaten":   {{0, true}, {0, false}, {2, true}, {2, false}},
		"somebody who eats on":         {{0, true}, {2, true}, {0, false}},
		"that everybody eats at once":  {{0, true}, {1, true}, {2, true}, {3, true}, {4, true}},
		"somebody who eats for others": {{0, true}, {0, false}, {0, true}, {0, false}},
	} {
		if check(story, 1) == nil {
			t.Errorf("check does not find %s", name)
		}
	}
}
