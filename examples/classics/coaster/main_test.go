package main

import (
	"context"
	"slices"
	"testing"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/examples/classics/internal/rehearsal"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

func TestCoaster(t *testing.T) {
	rehearsal.Of(t, run, 500, "The car ran 500 times, always with 4 passengers; nobody boarded meanwhile, nor before all had got off.\n")
}

func TestWhoGivesUpHasLeftHisSeatAndWhoWaitsBoardsWhenAllHaveGotOff(t *testing.T) {
	object := activeobject.Must(activeobject.New(objecttest.NewSystem(t, objecttest.AllowWaiting()), cars, &Car{}, objecttest.Checked(t)))
	ctx, giveUp := context.WithCancel(t.Context())
	fickle := ride.Send(ctx, object, 0)
	for who := range seats + 2 {
		ride.Send(t.Context(), object, 1+who)
	}
	objecttest.Waiting(t, object, getOff, seats)
	objecttest.Waiting(t, object, ride, 3) // one of whom is to have the seat
	giveUp()
	fickle.Await(t.Context())
	for _, op := range []*activeobject.Operation[Car, none, none]{depart, arrive} {
		if _, err := op.Call(t.Context(), object, nil); err != nil {
			t.Error(err)
		}
	}
	objecttest.Waiting(t, object, getOff, 2)
	object.View(t.Context(), func(c *Car) error {
		want := []event{{"gets off", 1}, {"gets off", 2}, {"gets off", 3}, {"gets off", 4}, {"boards", 5}, {"boards", 6}}
		if got := c.story[len(c.story)-len(want):]; !slices.Equal(got, want) {
			t.Errorf("at last %v, instead of %v", got, want)
		}
		return nil
	})
}

func TestCheckFinds(t *testing.T) {
	do := func(what string, who ...int) (all []event) {
		for _, w := range who {
			all = append(all, event{what, w})
		}
		return all
	}
	full := do("boards", 0, 1, 2, 3)
	ran := slices.Concat(full, do("departs", car), do("arrives", car))
	if err := check(slices.Concat(ran, do("gets off", 3, 1, 2, 0), do("boards", 1)), 1); err != nil {
		t.Error(err)
	}
	for name, story := range map[string][]event{
		"a free seat":                  slices.Concat(full[1:], do("departs", car)),
		"one too many":                 slices.Concat(full, do("boards", 4)),
		"one who boards as it runs":    slices.Concat(full, do("departs", car), do("boards", 4)),
		"one who gets off as it runs":  slices.Concat(full, do("departs", car), do("gets off", 1)),
		"one who boards among the old": slices.Concat(ran, do("gets off", 1), do("boards", 1)),
		"one who sits on two seats":    slices.Concat(full[1:], do("boards", 1), do("departs", car)),
		"a run with some old ones":     slices.Concat(ran, do("gets off", 0), do("departs", car)),
		"a car that did not run":       full,
	} {
		if check(story, 1) == nil {
			t.Errorf("check does not find %s", name)
		}
	}
}
