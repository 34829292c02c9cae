package waitgraph

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A circle is found when it arises, and none is found that is none (G1 to G3, G5): whatever happens,
// the search agrees with the naive model about each wait, and afterwards no body is in a deadlock.
func TestTheSearchAgreesWithTheModel(t *testing.T) {
	found := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := &world{}
		for range rapid.IntRange(1, 4).Draw(t, "objects") {
			w.object()
		}
		anObject := func() *object { return rapid.SampledFrom(w.objects).Draw(t, "object") }
		aGoal := func() Goal {
			if len(w.goals) == 0 {
				t.Skip("no goals")
			}
			return rapid.SampledFrom(w.goals).Draw(t, "goal")
		}
		aBody := func() *body {
			var all []*body
			for _, b := range w.bodies {
				if !b.returned {
					all = append(all, b)
				}
			}
			if len(all) == 0 {
				t.Skip("no bodies")
			}
			return rapid.SampledFrom(all).Draw(t, "body")
		}
		aWaiting := func() *request {
			var all []*request
			for _, g := range w.goals {
				if r, ok := g.(*request); ok && r.body == nil && !r.ended {
					all = append(all, r)
				}
			}
			if len(all) == 0 {
				t.Skip("no requests")
			}
			return rapid.SampledFrom(all).Draw(t, "request")
		}
		draw := func(b *body, goal Goal) bool {
			wait := new(Wait)
			w.Draw(wait, b.place(), goal)
			deadlock := len(w.deadlocked()) > 0
			w.Erase(wait)
			circle := w.draw(b, goal)
			if deadlock != (circle != nil) {
				t.Fatalf("deadlock: %v, found: %v", deadlock, circle)
			}
			if circle != nil {
				found["wait"]++
			}
			return circle == nil
		}
		again := func(what string, waits []*Wait) { found[what] += w.again(waits) }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if stuck := w.deadlocked(); stuck != nil {
					t.Fatalf("%v cannot go on", stuck)
				}
			},
			"enter": func(*rapid.T) { w.start(w.waiting(anObject()), nil) },
			"call at once": func(*rapid.T) {
				b := aBody()
				w.start(w.waiting(anObject()), b)
			},
			"call after a wait": func(t *rapid.T) {
				b, r := aBody(), w.waiting(anObject())
				if !draw(b, r) {
					r.ended = true
				} else if rapid.Bool().Draw(t, "runs") {
					w.start(r, b)
				}
			},
			"post": func(t *rapid.T) {
				r := w.waiting(anObject())
				if r.own = rapid.Bool().Draw(t, "own"); r.own {
					for _, b := range r.at.running {
						if rapid.Bool().Draw(t, "meets") {
							r.meets = append(r.meets, b)
						}
					}
				}
			},
			"promise": func(*rapid.T) { w.waiting(nil) },
			"hand in": func(*rapid.T) {
				if r := aWaiting(); r.at == nil {
					r.at = anObject()
					again("handed in", w.leading(r))
				}
			},
			"join": func(t *rapid.T) {
				var parts []Goal
				for range rapid.IntRange(0, 3).Draw(t, "parts") {
					parts = append(parts, aGoal())
				}
				w.join(rapid.Bool().Draw(t, "first"), parts...).unknown = rapid.IntRange(0, 5).Draw(t, "unknown") == 0
			},
			"know": func(*rapid.T) {
				if j, ok := aGoal().(*join); ok && j.unknown {
					j.unknown = false
					again("known", w.leading(j))
				}
			},
			"await": func(*rapid.T) { draw(aBody(), aGoal()) },
			"start": func(*rapid.T) {
				if r := aWaiting(); r.at != nil && len(r.at.running) == 0 {
					w.start(r, nil)
				}
			},
			"return": func(t *rapid.T) {
				b := aBody()
				if b.node != nil && len(b.node.waits) > 0 {
					return
				}
				b.returned, b.request.ended = true, true
				for i, other := range b.at.running {
					if other == b {
						b.at.running = append(b.at.running[:i:i], b.at.running[i+1:]...)
						break
					}
				}
			},
			"wait ends": func(t *rapid.T) {
				if len(w.waits) > 0 {
					w.Erase(rapid.SampledFrom(w.waits).Draw(t, "wait"))
				}
			},
			"move": func(*rapid.T) {
				if r := aWaiting(); r.at != nil {
					r.at, r.meets = anObject(), nil
					waits := w.leading(r)
					for _, wait := range waits {
						w.Recount(wait)
					}
					again("moved", waits)
				}
			},
			"lose": func(t *rapid.T) {
				if j, ok := aGoal().(*join); ok && j.first && len(j.parts) > 1 {
					j.parts[rapid.IntRange(0, len(j.parts)-1).Draw(t, "part")] = nil
					again("lost", w.leading(j))
				}
			},
			"block": func(t *rapid.T) {
				if r := aWaiting(); r.own && len(r.at.running) > 0 {
					r.meets = append(r.meets, rapid.SampledFrom(r.at.running).Draw(t, "met"))
					again("blocked", w.Graph.Waits(r.at))
				}
			},
			"restart": func(*rapid.T) {
				if o, child := anObject(), anObject(); o != child && len(o.running) == 0 && o.below == nil {
					o.below = []*object{child}
					w.Elsewhere(1)
					again("restarted", w.Graph.Waits(o))
				}
			},
			"hold": func(t *rapid.T) {
				b, o := aBody(), anObject()
				if b.at == o || slices.Contains(o.held, b) {
					return
				}
				o.held, b.holds = append(o.held, b), append(b.holds, Point(o))
				again("held", w.Graph.Waits(o))
			},
			"end of restart": func(*rapid.T) {
				if o := anObject(); o.below != nil {
					o.below = nil
					w.Elsewhere(-1)
				}
			},
		})
		for _, wait := range w.waits {
			w.Erase(wait)
		}
		if waits, unknown, _ := w.Counts(); waits != 0 || unknown != 0 {
			t.Fatalf("left: %d waits, %d unknown", waits, unknown)
		}
	})
	t.Log("circles:", found)
}
