// Santa sleeps, until all nine reindeer are back from their holidays, or three of his
// ten elves have a problem that they cannot solve. Then he harnesses the reindeer,
// delivers the toys with them and sends them on holiday; or he shows the three elves in,
// and out when he has helped them. If both wait, the reindeer come first. (J. A. Trono,
// "A New Exercise in Concurrency", 1994.)
//
//	go run ./examples/classics/santa
//	go run ./examples/classics/santa -trace page.html
//
// What goes wrong elsewhere, and why not here:
//   - A group that is not one: Trono's own solution by semaphores lets Santa go before
//     all nine are in harness, if one of them is slow (M. Ben-Ari, 1998). Here those are
//     in who wait to leave, and Santa's guard is that these are nine.
//   - Barging: a fourth elf slips in as the three go out. Here the guard of the next
//     group also says that the last one has gone.
//   - Who is first, if both conditions hold: whoever happens to wake Santa. Here it is
//     half a line in the guard of the elves.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/timeline"
	"github.com/sluice-go/sluice/actor"
)

type none = activeobject.None

const reindeer, elves, helped = 9, 10, 3

// Group is of reindeer, or of elves.
type Group string

const (
	team     Group = "team"
	problems Group = "problems"
)

func (g Group) size() int {
	if g == team {
		return reindeer
	}
	return helped
}

// Stable is the shared object. Who is inside need not be counted: it is those who wait
// to leave. Who gives up and goes is not inside any more.
type Stable struct {
	activeobject.Queues
	phase  phase
	inside Group // who is, if anybody is
	story  []event
}

type phase int

const (
	gathering phase = iota
	served          // by Santa
	leaving
)

// A group comes in when all of it is outside, and nobody inside. These are the guards of
// the two entries: more of the group that is coming in, or the first of the next one.
func (s *Stable) TeamIsBack() bool {
	return s.more(team) || s.next() && s.Waiting(back) >= reindeer
}
func (s *Stable) ThreeAreStuck() bool {
	return s.more(problems) || s.next() && s.Waiting(stuck) >= helped && s.Waiting(back) < reindeer
}

func (s *Stable) next() bool { return s.phase == gathering && s.Empty() }
func (s *Stable) more(g Group) bool {
	return s.phase == gathering && s.inside == g && !s.Empty() && s.Waiting(leave) < g.size()
}

// comeIn is the first half of the two entries; leave is the second.
func comeIn(g Group) func(*Stable, int) (none, error) {
	return func(s *Stable, who int) (none, error) {
		s.inside = g
		s.story = append(s.story, event{comes, g, who, s.Waiting(back)})
		return leave.Requeue(who)
	}
}

func (s *Stable) Leaving() bool { return s.phase == leaving }
func (s *Stable) Leave(who int) {
	s.story = append(s.story, event{what: leaves, group: s.inside, who: who})
}

// Complete is the guard of Wake.
func (s *Stable) Complete() bool {
	return s.phase == gathering && !s.Empty() && s.Waiting(leave) == s.inside.size()
}

func (s *Stable) Wake() Group {
	s.phase = served
	s.story = append(s.story, event{what: wakes, group: s.inside})
	return s.inside
}

// LetGo is over when all have gone, which nobody can keep them from: so it commits to
// wait for that, and Santa does not give up in between.
func (s *Stable) LetGo() (none, error) {
	s.phase = leaving
	return sleep.Requeue(nil, activeobject.Commit)
}

func (s *Stable) Empty() bool { return s.Waiting(leave) == 0 }
func (s *Stable) Sleep()      { s.phase = gathering }

var (
	stables = activeobject.NewType[Stable]("stable")
	leave   = activeobject.Entry(stables, "leave", activeobject.Arg((*Stable).Leave)).When("Santa lets them go", (*Stable).Leaving)
	wake    = activeobject.Entry(stables, "wake", activeobject.Result((*Stable).Wake)).WhenWaiting("a group is complete", (*Stable).Complete)
	sleep   = activeobject.Entry(stables, "sleep", activeobject.Plain((*Stable).Sleep)).WhenWaiting("all have gone", (*Stable).Empty)
	letGo   = activeobject.Procedure(stables, "let go", activeobject.ResultError((*Stable).LetGo))

	back, stuck *activeobject.Operation[Stable, int, none] // their guards name them
)

func init() {
	back = activeobject.Entry(stables, "back", comeIn(team)).WhenWaiting("all reindeer are back", (*Stable).TeamIsBack)
	stuck = activeobject.Entry(stables, "stuck", comeIn(problems)).WhenWaiting("three are stuck, and not all reindeer back", (*Stable).ThreeAreStuck)
}

// run goes on until Santa has delivered toys n times, and helped n times.
func run(ctx context.Context, out io.Writer, n int, options ...activeobject.Option) error {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	state := &Stable{}
	stable, err := activeobject.New(system, stables, state, options...)
	if err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		for times := map[Group]int{}; times[team] < n || times[problems] < n; {
			group, err := wake.Call(ctx, stable, nil)
			if err != nil {
				return err
			}
			times[group]++
			runtime.Gosched() // he delivers toys, or helps, and others come
			if _, err := letGo.Call(ctx, stable, nil); err != nil {
				return err
			}
		}
		stable.Stop() // and all who wait are told
		return nil
	})
	for i := range reindeer + elves {
		comes := back
		if i >= reindeer {
			comes = stuck
		}
		all.Go(func() error {
			for {
				if _, err := comes.Call(ctx, stable, i); errors.Is(err, activeobject.ErrStopped) {
					return nil
				} else if err != nil {
					return err
				}
			}
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	if err := check(state.story, n); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Santa has delivered toys at least %d times, with all %d reindeer, and helped elves as often, %d at a time; and never elves before reindeer.\n",
		n, reindeer, helped)
	return err
}

func main() {
	trace := timeline.NewFlag("trace")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, 100, trace.Options()...)
	if err = errors.Join(err, trace.Save()); err != nil {
		fmt.Fprintln(os.Stderr, "santa:", err)
		os.Exit(1)
	}
}
