package activeobject_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
)

// bubbles runs the test in a bubble, whose time it can say, with objects of every model that lives in
// one.
func bubbles(t *testing.T, test func(t *testing.T, s *scene)) {
	for name, options := range map[string][]activeobject.Option{
		"default": nil, "without fast path": {activeobject.NoFastPath()}, "pooled": {activeobject.PooledThreads()},
		"dedicated": {activeobject.DedicatedThread()}, "synchronizer": {parallel},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{name: name, options: options, system: actor.NewSystem(actor.Logger(quiet))}
				test(t, s)
				require.NoError(t, s.system.Close(background))
			})
		})
	}
}

func TestAfterIsChosenWhenItsTimeHasComeAndTheOthersNeverRan(t *testing.T) {
	bubbles(t, func(t *testing.T, s *scene) {
		rs := newResults()
		a, b := newObject(t, s, rs.Type, &results{}), newObject(t, s, rs.Type, &results{})
		start := time.Now()
		i, err := activeobject.Select(background, rs.take.Case(a, nil), rs.take.Case(b, nil), activeobject.After(time.Minute))
		require.NoError(t, err)
		require.Equal(t, 2, i)
		require.Equal(t, time.Minute, time.Since(start))
		for _, o := range []*activeobject.Object[results]{a, b} {
			require.Zero(t, rs.take.Waiting(o))
			_, err := rs.set.Call(background, o, 3)
			require.NoError(t, err)
			got, err := rs.read.Call(background, o, nil)
			require.NoError(t, err)
			require.Equal(t, 3, got, "it has not been taken")
		}
	})
}

func TestACallThatCanRunInTimeIsChosen(t *testing.T) {
	bubbles(t, func(t *testing.T, s *scene) {
		rs := newResults()
		o := newObject(t, s, rs.Type, &results{})
		time.AfterFunc(time.Second, func() { rs.set.Call(background, o, 5) })
		start, take := time.Now(), rs.take.Case(o, nil)
		i, err := activeobject.Select(background, take, activeobject.After(time.Minute))
		require.NoError(t, err)
		require.Zero(t, i)
		require.Equal(t, time.Second, time.Since(start))
		got, err := take.Result()
		require.NoError(t, err)
		require.Equal(t, 5, got)
	})
}

// If the time is not positive a call that can run is chosen all the same.
func TestAfterNoTime(t *testing.T) {
	bubbles(t, func(t *testing.T, s *scene) {
		if s.name == "pooled" || s.name == "dedicated" {
			return // Select does not wait to hear from their threads
		}
		rs := newResults()
		for _, d := range []time.Duration{0, -time.Hour} {
			o := newObject(t, s, rs.Type, &results{value: 1})
			for _, want := range []int{0, 1} {
				i, err := activeobject.Select(background, rs.take.Case(o, nil), activeobject.After(d))
				require.NoError(t, err)
				require.Equal(t, want, i)
			}
		}
	})
}

func TestTheEndOfTheContextComesBeforeAfter(t *testing.T) {
	bubbles(t, func(t *testing.T, s *scene) {
		rs := newResults()
		o := newObject(t, s, rs.Type, &results{})
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		i, err := activeobject.Select(ctx, rs.take.Case(o, nil), activeobject.After(time.Minute))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, -1, i)
		i, err = activeobject.Select(background, activeobject.After(time.Minute))
		require.NoError(t, err)
		require.Zero(t, i, "alone it is a delay")
	})
}

// A call that has been chosen takes as long as it takes, also if its body asks for a requeue.
func TestAfterDoesNotHurryACallThatHasBeenChosen(t *testing.T) {
	bubbles(t, func(t *testing.T, s *scene) {
		typ := activeobject.NewType[results]("results")
		set := activeobject.Procedure(typ, "set", activeobject.Arg(func(r *results, v int) { r.value = v }))
		second := activeobject.Entry(typ, "second", activeobject.Result(func(r *results) int { return r.value })).When("two", func(r *results) bool { return r.value == 2 })
		first := activeobject.Entry(typ, "first", func(*results, None) (int, error) { return second.Requeue(nil) }).When("one", func(r *results) bool { return r.value == 1 })
		o := newObject(t, s, typ, &results{})
		time.AfterFunc(time.Second, func() { set.Call(background, o, 1) })
		time.AfterFunc(time.Hour, func() { set.Call(background, o, 2) })
		start, c := time.Now(), first.Case(o, nil)
		i, err := activeobject.Select(background, c, activeobject.After(time.Minute))
		require.NoError(t, err)
		require.Zero(t, i)
		require.Equal(t, time.Hour, time.Since(start))
		got, err := c.Result()
		require.NoError(t, err)
		require.Equal(t, 2, got)
	})
}

func TestAfterMustBeTheLastCase(t *testing.T) {
	system, rs := newSystem(t), newResults()
	take := rs.take.Case(activeobject.Must(activeobject.New(system, rs.Type, &results{value: 1})), nil)
	for text, cases := range map[string][]activeobject.Alternative{
		"After is case 0 of 2: it must be the last":     {activeobject.After(1), take},
		"After is case 1 of 3: it must be the last":     {take, activeobject.After(1), activeobject.After(2)},
		"Otherwise is case 1 of 3: it must be the last": {take, activeobject.Otherwise, activeobject.After(1)},
	} {
		i, err := activeobject.Select(background, cases...)
		require.Equal(t, -1, i)
		require.EqualError(t, err, "sluice: select: "+text)
	}
}

// Whatever the moment at which the time comes, a call has run, or it never will.
func TestEverySelectionWithATimeIsAccountedFor(t *testing.T) {
	taken := guards.When("taken", func(r *results) bool { return r.value == 0 })
	everywhere(t, func(t *testing.T, s *scene) {
		rs := newResults()
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		var given, chosen, due atomic.Int64
		var givers, takers sync.WaitGroup
		objects := []*activeobject.Object[results]{newObject(t, s, rs.Type, &results{}), newObject(t, s, rs.Type, &results{})}
		for _, o := range objects {
			givers.Go(func() {
				for o.DoWhen(ctx, taken, func(r *results) error { r.value = 1; given.Add(1); return nil }) == nil {
				}
			})
		}
		for range 4 {
			takers.Go(func() {
				for range size(2000, 200, 50) {
					i, err := activeobject.Select(background, rs.take.Case(objects[0], nil), rs.take.Case(objects[1], nil),
						activeobject.After(time.Duration(rand.N(10))*time.Microsecond))
					switch {
					case err != nil:
						t.Error(err)
					case i == 2:
						due.Add(1)
					default:
						chosen.Add(1)
					}
				}
			})
		}
		takers.Wait()
		cancel()
		givers.Wait()
		left := int64(0)
		for _, o := range objects {
			require.NoError(t, o.View(background, func(r *results) error { left += int64(r.value); return nil }))
		}
		require.Equal(t, given.Load(), chosen.Load()+left, "each that was given is taken once, or still there; %d were due", due.Load())
		t.Log(chosen.Load(), "chosen,", due.Load(), "due")
	})
}

// A poll of two mailboxes gives up after a while.
func ExampleAfter() {
	system := actor.NewSystem()
	defer system.Close(context.Background())

	type box struct{ letters []string }
	boxes := activeobject.NewType[box]("mailbox")
	fetch := activeobject.Entry(boxes, "fetch", activeobject.Result(func(b *box) string {
		letter := b.letters[0]
		b.letters = b.letters[1:]
		return letter
	})).When("a letter", func(b *box) bool { return len(b.letters) > 0 })

	ctx := context.Background()
	home := fetch.Case(activeobject.Must(activeobject.New(system, boxes, &box{})), nil)
	work := fetch.Case(activeobject.Must(activeobject.New(system, boxes, &box{letters: []string{"an invoice"}})), nil)
	for range 2 {
		switch i, _ := activeobject.Select(ctx, home, work, activeobject.After(10*time.Millisecond)); i {
		case 0:
			fmt.Println(home.Result())
		case 1:
			fmt.Println(work.Result())
		default:
			fmt.Println("no more letters")
		}
	}
	// Output:
	// an invoice <nil>
	// no more letters
}
