package main

import (
	"testing"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/examples/classics/internal/rehearsal"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

func TestSmokers(t *testing.T) {
	rehearsal.Of(t, run, 1000,
		"The agent came 1000 times. Who has tobacco has smoked 352 times, who has paper 323, who has matches 325; always the right one.\n")
}

func TestOnlyHeSmokesWhoHasWhatIsMissing(t *testing.T) {
	for missing := range Ingredient(kinds) {
		table := activeobject.Must(activeobject.New(objecttest.NewSystem(t, objecttest.AllowWaiting()), tables, &Table{}, objecttest.Checked(t)))
		var smokers [kinds]activeobject.Future[none]
		for has := range Ingredient(kinds) {
			smokers[has] = take.Send(t.Context(), table, has)
		}
		agent := lay.Send(t.Context(), table, missing)
		if _, err := smokers[missing].Await(t.Context()); err != nil {
			t.Error(err)
		}
		objecttest.Waiting(t, table, take.Operation, 2)
		objecttest.Waiting(t, table, smoked, 1) // the agent
		putOut.Call(t.Context(), table, missing)
		if _, err := agent.Await(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestCheckFinds(t *testing.T) {
	right := []event{{laid, 0}, {taken, 0}, {ended, 0}, {laid, 2}, {taken, 2}, {ended, 2}}
	if times, err := check(right, 2); err != nil || times != [kinds]int{1, 0, 1} {
		t.Error(times, err)
	}
	for name, story := range map[string][]event{
		"the wrong smoker":            {{laid, 0}, {taken, 1}, {ended, 1}},
		"an agent who does not wait":  {{laid, 0}, {taken, 0}, {laid, 1}},
		"a smoker who takes nothing":  {{taken, 0}, {ended, 0}, {laid, 0}},
		"that somebody did not smoke": {{laid, 0}},
	} {
		if _, err := check(story, 1); err == nil {
			t.Errorf("check does not find %s", name)
		}
	}
}
