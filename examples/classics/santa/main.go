// Santa sleeps, until all nine reindeer are back from their holidays, or three of his
// ten elves have a problem that they cannot solve. Then he harnesses the reindeer,
// delivers the toys with them and sends them on holiday; or he shows the three elves in,
// and out when he has helped them. If both wait, the reindeer come first. (J. A. Trono,
// "A New Exercise in Concurrency", 1994.)
//
//	go run ./examples/classics/santa
//
// What goes wrong elsewhere, and why not here:
//   - A group that is not one: Trono's own solution by semaphores lets Santa go before
//     all nine are in harness (Ben-Ari, 1998). Here those count as in who wait to be let
//     go, and Santa waits until these are nine.
//   - Barging: a fourth elf slips in as the three go out. Here the guard of the next
//     group also says that the last one has gone.
//   - Santa's choice between two conditions, which took Ben-Ari a protected object in
//     front of Santa. Here it is a word in the guard of the elves.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/activeobject"
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

// Stable is the shared object, Santa's door. Who is inside need not be counted: it is
// those who wait for leave. Who gives up and goes is not inside any more.
type Stable struct {
	activeobject.Queues
	inside Group // who is, if anybody is
	open   bool  // to go out
	story  []event
}

// empty says that nobody is inside; and room that the group is not complete.
func (s *Stable) empty() bool { return s.Waiting(leave) == 0 }
func (s *Stable) room(g Group) bool {
	return s.inside == g && !s.empty() && s.Waiting(leave) < g.size()
}

// A group comes in when it is complete outside, and Santa has let the last one out.
// These are the guards of the two entries.
func (s *Stable) TeamIsBack() bool {
	return !s.open && (s.room(team) || s.empty() && s.Waiting(back) >= reindeer)
}
func (s *Stable) ProblemsAreThree() bool {
	return !s.open && (s.room(problems) || s.empty() && s.Waiting(stuck) >= helped && s.Waiting(back) < reindeer)
}

func (s *Stable) Back(who int) (none, error)  { return s.comeIn(team, who) }
func (s *Stable) Stuck(who int) (none, error) { return s.comeIn(problems, who) }

func (s *Stable) comeIn(g Group, who int) (none, error) {
	s.inside = g
	s.story = append(s.story, event{comes, g, who, s.Waiting(back)})
	return leave.Requeue(who)
}

// Complete is the guard of Wake.
func (s *Stable) Complete() bool { return !s.open && !s.empty() && s.Waiting(leave) == s.inside.size() }

func (s *Stable) Wake() Group {
	s.story = append(s.story, event{what: wakes, group: s.inside})
	return s.inside
}

// LetGo opens the door, and closes it behind the last.
func (s *Stable) LetGo() (none, error) {
	s.open = true
	return shut.Requeue(none{})
}

func (s *Stable) Open() bool { return s.open }
func (s *Stable) Leave(who int) {
	s.story = append(s.story, event{what: leaves, group: s.inside, who: who})
}
func (s *Stable) Shut() { s.open = false }

var (
	stables = activeobject.NewType[Stable]("stable")
	leave   = activeobject.Entry(stables, "leave", activeobject.Put((*Stable).Leave)).When("Santa lets them go", (*Stable).Open)
	shut    = activeobject.Entry(stables, "shut", activeobject.Do((*Stable).Shut)).WhenWaiting("all have gone", (*Stable).empty)
	letGo   = activeobject.Procedure(stables, "let go", activeobject.NoArg((*Stable).LetGo))
	wake    = activeobject.Entry(stables, "wake", activeobject.Get((*Stable).Wake)).WhenWaiting("a group is complete", (*Stable).Complete)

	back, stuck *activeobject.Operation[Stable, int, none] // whose guards ask how many wait for them
)

func init() {
	back = activeobject.Entry(stables, "back", (*Stable).Back).WhenWaiting("all reindeer are back", (*Stable).TeamIsBack)
	stuck = activeobject.Entry(stables, "stuck", (*Stable).Stuck).WhenWaiting("three elves are stuck, and not all reindeer back", (*Stable).ProblemsAreThree)
}

// run goes on until Santa has delivered toys n times, and helped n times.
func run(ctx context.Context, out io.Writer, n int) error {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	state := &Stable{}
	stable, err := activeobject.New(system, stables, state)
	if err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		for times := map[Group]int{}; times[team] < n || times[problems] < n; {
			group, err := wake.Call(ctx, stable, none{})
			if err != nil {
				return err
			}
			times[group]++
			runtime.Gosched() // he delivers toys, or helps, and others come
			if _, err := letGo.Call(ctx, stable, none{}); err != nil {
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, 100); err != nil {
		fmt.Fprintln(os.Stderr, "santa:", err)
		os.Exit(1)
	}
}
