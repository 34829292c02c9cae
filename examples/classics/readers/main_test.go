package main

import (
	"testing"

	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/examples/classics/internal/rehearsal"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

func TestReaders(t *testing.T) {
	rehearsal.Of(t, run, 500, `fair           r1 w1 r2 w2 come, and get it: r1 w1 r2 w2. Then 8 have read and written 500 times, all writers alone.
readers first  r1 w1 r2 w2 come, and get it: r1 r2 w1 w2. Then 8 have read and written 500 times, all writers alone.
writers first  r1 w1 r2 w2 come, and get it: w1 w2 r1 r2. Then 8 have read and written 500 times, all writers alone.
`)
}

func TestPresenceFinds(t *testing.T) {
	for name, in := range map[string][]int64{
		"a writer beside a reader":  {reader, writer},
		"a reader beside a writer":  {writer, reader},
		"two writers":               {writer, writer},
		"a writer beside the rest":  {reader, reader, reader, writer},
		"the second after one left": {writer, -writer, reader, writer},
	} {
		var p presence
		found := false
		for _, who := range in {
			if who < 0 {
				p.leave(-who)
			} else if p.enter(who) != nil {
				found = true
			}
		}
		if !found {
			t.Errorf("presence does not find %s", name)
		}
	}
}
