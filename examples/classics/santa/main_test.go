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

func TestSanta(t *testing.T) {
	rehearsal.Of(t, run, 200, "Santa has delivered toys at least 200 times, with all 9 reindeer, and helped elves as often, 3 at a time; and never elves before reindeer.\n")
}

func TestTheReindeerComeFirstAlsoIfTheyAreLast(t *testing.T) {
	stable := activeobject.Must(activeobject.New(objecttest.NewSystem(t, objecttest.AllowWaiting()), stables, &Stable{}, objecttest.Checked(t)))
	send := func(op *activeobject.Operation[Stable, int, none], n int) {
		for i := range n {
			op.Send(t.Context(), stable, i)
		}
	}
	var groups []Group
	santa := func() {
		group, err := wake.Call(t.Context(), stable, nil)
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, group)
	}
	send(stuck, 2*helped) // three come in, and three wait,
	santa()
	send(back, reindeer) // before all reindeer
	for range 2 {
		letGo.Call(t.Context(), stable, nil)
		santa()
	}
	if want := []Group{problems, team, problems}; !slices.Equal(groups, want) {
		t.Errorf("he serves %v, instead of %v", groups, want)
	}
}

func TestAGroupIsNotComplete(t *testing.T) {
	stable := activeobject.Must(activeobject.New(objecttest.NewSystem(t, objecttest.AllowWaiting()), stables, &Stable{}, objecttest.Checked(t)))
	for i := range reindeer - 1 {
		back.Send(t.Context(), stable, i)
	}
	for i := range helped - 1 {
		stuck.Send(t.Context(), stable, i)
	}
	if _, err := wake.Try(t.Context(), stable, nil); err == nil {
		t.Error("Santa wakes")
	}
}

func TestWhoGivesUpIsNotReplacedWhileSantaIsAtWork(t *testing.T) {
	stable := activeobject.Must(activeobject.New(objecttest.NewSystem(t, objecttest.AllowWaiting()), stables, &Stable{}, objecttest.Checked(t)))
	ctx, giveUp := context.WithCancel(t.Context())
	stuck.Send(t.Context(), stable, 0)
	stuck.Send(t.Context(), stable, 1)
	fickle := stuck.Send(ctx, stable, 2)
	objecttest.Waiting(t, stable, leave, helped)
	if _, err := wake.Call(t.Context(), stable, nil); err != nil {
		t.Fatal(err)
	}
	giveUp()
	fickle.Await(t.Context())
	stuck.Send(t.Context(), stable, 3)
	objecttest.Waiting(t, stable, stuck, 1)
	if _, err := letGo.Call(t.Context(), stable, nil); err != nil {
		t.Error(err)
	}
	objecttest.Waiting(t, stable, leave, 0)
}

func TestCheckFinds(t *testing.T) {
	in := func(g Group, who ...int) (all []event) {
		for _, w := range who {
			all = append(all, event{what: comes, group: g, who: w})
		}
		return all
	}
	wake := func(g Group) []event { return []event{{what: wakes, group: g}} }
	gone := func(g Group, who ...int) (all []event) {
		for _, w := range who {
			all = append(all, event{what: leaves, group: g, who: w})
		}
		return all
	}
	three, nine := []int{10, 11, 12}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
	toys := slices.Concat(in(team, nine...), wake(team), gone(team, nine...))
	help := slices.Concat(in(problems, three...), wake(problems), gone(problems, three...))
	if err := check(slices.Concat(toys, help), 1); err != nil {
		t.Error(err)
	}
	first := slices.Clone(help)
	first[0].back = reindeer
	for name, story := range map[string][]event{
		"that nobody was helped":    toys,
		"a team of eight":           slices.Concat(in(team, nine[1:]...), wake(team)),
		"a fourth elf":              slices.Concat(in(problems, 10, 11, 12, 13), wake(problems)),
		"one who slips in":          slices.Concat(in(problems, three...), wake(problems), in(problems, 13)),
		"one who is still inside":   slices.Concat(in(problems, three...), wake(problems), gone(problems, 10), in(problems, 13)),
		"an elf among the reindeer": slices.Concat(in(team, 0), in(problems, 10)),
		"one who is not served":     slices.Concat(in(problems, three...), gone(problems, 10)),
		"elves before reindeer":     first,
	} {
		if check(slices.Concat(help, story, toys), 1) == nil && check(story, 1) == nil {
			t.Errorf("check does not find %s", name)
		}
	}
}
