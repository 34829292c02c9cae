package main

import (
	"slices"
	"testing"

	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/examples/classics/internal/rehearsal"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

func TestProducers(t *testing.T) {
	rehearsal.Of(t, run, 1000,
		"All 3000 items of 3 producers were consumed, each once and in order, and never more than 5 were in the buffer.\n")
}

func TestCheckFinds(t *testing.T) {
	a, b, c := item{0, 0}, item{1, 0}, item{2, 0}
	put := func(i item) event { return event{true, i} }
	get := event{}
	story := []event{put(a), put(b), get, put(c), get, get}
	if err := check(story, [][]item{{a, c}, {b}}, 1); err != nil {
		t.Error(err)
	}
	for name, consumed := range map[string][][]item{
		"an item that is lost":           {{a}, {b}},
		"an item that is consumed twice": {{a, c}, {b, c}},
		"items in another order":         {{c, a}, {b}},
	} {
		if check(story, consumed, 1) == nil {
			t.Errorf("check does not find %s", name)
		}
	}
	if check([]event{get, put(a)}, nil, 0) == nil {
		t.Error("check does not find a get from an empty buffer")
	}
	if check(slices.Repeat([]event{put(a)}, room+1), nil, 0) == nil {
		t.Error("check does not find a put into a full buffer")
	}
}
