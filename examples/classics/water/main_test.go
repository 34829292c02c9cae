package main

import (
	"context"
	"testing"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/examples/classics/internal/rehearsal"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

func TestWater(t *testing.T) {
	rehearsal.Of(t, run, 300, "3000 molecules, each of two H and one O, one after the other.\n")
}

func TestAnAtomThatGivesUpDoesNotCount(t *testing.T) {
	vessel := activeobject.Must(activeobject.New(objecttest.NewSystem(t, objecttest.AllowWaiting()), vessels, &Vessel{}, objecttest.Checked(t)))
	ctx, giveUp := context.WithCancel(t.Context())
	fickle := hydrogen.Send(ctx, vessel, nil)
	first := hydrogen.Send(t.Context(), vessel, nil)
	giveUp()
	fickle.Await(t.Context())
	o := oxygen.Send(t.Context(), vessel, nil)
	objecttest.Waiting(t, vessel, oxygen, 1) // as there is but one hydrogen
	second, third := hydrogen.Send(t.Context(), vessel, nil), hydrogen.Send(t.Context(), vessel, nil)
	for _, atom := range []activeobject.Future[int]{o, first, second} {
		if molecule, err := atom.Await(t.Context()); molecule != 1 || err != nil {
			t.Errorf("it is of molecule %d: %v", molecule, err)
		}
	}
	objecttest.Waiting(t, vessel, hydrogen, 1)
	if third.Ready() {
		t.Error("the third hydrogen slips in")
	}
}

func TestCheckFinds(t *testing.T) {
	h, o := func(molecule int) atom { return atom{"H", molecule} }, func(molecule int) atom { return atom{"O", molecule} }
	right := []atom{o(1), h(1), h(1), o(2), h(2), h(2)}
	if err := check(right, right); err != nil {
		t.Error(err)
	}
	for name, story := range map[string][]atom{
		"one that slips in":    {o(1), h(1), o(2), h(1), h(2), h(2)},
		"three hydrogens":      {h(1), h(1), h(1)},
		"two oxygens":          {o(1), o(1), h(1)},
		"a molecule of two":    {o(1), h(1)},
		"a number that is not": {o(2), h(2), h(2)},
	} {
		if check(story, story) == nil {
			t.Errorf("check does not find %s", name)
		}
	}
	if check(right[:3], []atom{o(1), h(1), h(2)}) == nil {
		t.Error("check does not find one that was told otherwise")
	}
}
