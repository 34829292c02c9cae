package main

import (
	"context"
	"slices"
	"testing"

	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/examples/classics/internal/rehearsal"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

func TestBarber(t *testing.T) {
	rehearsal.Of(t, run, 200,
		"On each of 200 days 10 came while the barber was at work: 3 found a chair, and were cut one at a time, and 7 left.\n")
}

func TestTheBarberFindsOutThatHeCutsTwo(t *testing.T) {
	b := &Barber{}
	_, err := b.Cut(t.Context(), Customer{0, func(ctx context.Context) error {
		_, err := b.Cut(ctx, Customer{1, nil})
		return err
	}})
	if err == nil {
		t.Error("he does not")
	}
}

func TestCheckFinds(t *testing.T) {
	left := slices.Concat(make([]bool, 1+chairs), slices.Repeat([]bool{true}, crowd-chairs))
	if err := check([]int{0, 1, 2, 3}, left); err != nil {
		t.Error(err)
	}
	for name, done := range map[string][]int{
		"one who is lost":             {0, 1, 2},
		"one who was cut twice":       {0, 1, 1, 2, 3},
		"one who left and was cut":    {0, 1, 2, 3, 4},
		"one who was cut for another": {0, 1, 2, 4},
	} {
		if check(done, left) == nil {
			t.Errorf("check does not find %s", name)
		}
	}
	left[3] = true
	if check([]int{0, 1, 2}, left) == nil {
		t.Error("check does not find one who left though there was a chair for him")
	}
}
