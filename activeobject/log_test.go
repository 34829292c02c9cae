package activeobject_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// basin is the shared object of the log test.
type basin struct{ level int }

func (b *basin) Fill(n int) (int, error) { b.level += n; return b.level, nil }
func (b *basin) Draw(n int) (int, error) { b.level -= n; return b.level, nil }
func (b *basin) Holds(n int) bool        { return b.level >= n }
func (b *basin) Flush(int) (int, error)  { n := b.level; b.level = 0; return n, nil }
func (b *basin) High() bool              { return b.level >= 3 }
func (b *basin) Level(int) (int, error)  { return b.level, nil }

// TestEveryStartIsOneThatTheRulesAllow compares what objects under load did with
// the simplest scheduler that keeps the rules for one request at a time in the
// order of arrival: a list in that order, and the last answer of every guard.
func TestEveryStartIsOneThatTheRulesAllow(t *testing.T) {
	basins := activeobject.NewType[basin]("basin")
	fill := activeobject.Procedure(basins, "fill", (*basin).Fill)
	draw := activeobject.Entry(basins, "draw", (*basin).Draw).WhenArg("enough", (*basin).Holds)
	flush := activeobject.Entry(basins, "flush", (*basin).Flush).When("high", (*basin).High)
	level := activeobject.Function(basins, "level", (*basin).Level)
	ops := []*activeobject.Operation[basin, int, int]{fill, draw, flush, level}
	guarded, changes := []bool{false, true, true, false}, []bool{true, true, true, false}

	for _, c := range []struct {
		name    string
		options []activeobject.Option
	}{
		{"default", nil},
		{"without fast path", []activeobject.Option{activeobject.NoFastPath()}},
		{"pooled", []activeobject.Option{activeobject.PooledThreads()}},
		{"dedicated", []activeobject.Option{activeobject.DedicatedThread()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			system := actor.NewSystem()
			var log []activeobject.Event
			o, err := activeobject.New(system, basins, &basin{},
				append(c.options, activeobject.Log(func(e activeobject.Event) { log = append(log, e) }))...)
			require.NoError(t, err)
			var callers sync.WaitGroup
			for caller := range 8 {
				callers.Go(func() {
					r := rand.New(rand.NewPCG(uint64(caller), 1))
					for range 500 {
						ctx, cancel := context.WithCancel(context.Background())
						if r.IntN(4) == 0 {
							cancel() // before, or with luck while it waits
						}
						f := ops[r.IntN(len(ops))].Send(ctx, o, 1+r.IntN(3))
						if r.IntN(2) == 0 {
							cancel()
						}
						fill.Call(context.Background(), o, 1)
						if !f.Ready() && r.IntN(2) == 0 {
							f.Withdraw()
						}
						cancel()
						f.Await(context.Background())
					}
				})
			}
			callers.Wait()
			require.NoError(t, system.Close(context.Background()))

			type waiting struct {
				op      int
				arrival uint64
			}
			var (
				line    []waiting // in the order of arrival
				running = -1
				ofOp    = map[int]string{}    // what the guard of an operation said since the state changed
				ofOne   = map[uint64]string{} // and that of a request
				starts  int
			)
			says := func(w waiting) (falsePart string, known bool) {
				if !guarded[w.op] {
					return "", true
				}
				if falsePart, known = ofOne[w.arrival]; known {
					return falsePart, true
				}
				falsePart, known = ofOp[w.op]
				return falsePart, known
			}
			changed := func(op int) {
				if changes[op] {
					clear(ofOp)
					clear(ofOne)
				}
			}
			leave := func(e activeobject.Event) waiting {
				for i, w := range line {
					if w.arrival == e.Arrival {
						line = append(line[:i], line[i+1:]...)
						return w
					}
				}
				t.Fatalf("%v: it does not wait", e)
				return waiting{}
			}
			for i, e := range log {
				at := fmt.Sprintf("event %d: %v", i, e)
				switch e.Kind {
				case mailbox.Arrived:
					line = append(line, waiting{e.Op, e.Arrival})
				case mailbox.Evaluated:
					require.Equal(t, -1, running, "%s: a guard is asked while something runs", at)
					if e.Arrival == 0 {
						ofOp[e.Op] = e.FalsePart
					} else {
						ofOne[e.Arrival] = e.FalsePart
					}
				case mailbox.Started:
					require.Equal(t, -1, running, "%s: two run", at)
					if e.Arrival != 0 {
						falsePart, known := says(waiting{e.Op, e.Arrival})
						require.True(t, known && falsePart == "", "%s: its guard does not hold", at)
						leave(e)
						starts++
					}
					for _, w := range line {
						if e.Arrival == 0 || w.arrival < e.Arrival {
							falsePart, known := says(w)
							require.True(t, known && falsePart != "", "%s: it passes %v", at, w)
						}
					}
					running = e.Op
					changed(e.Op)
				case mailbox.Ended, mailbox.Abandoned:
					require.Equal(t, e.Op, running, at)
					running = -1
					if e.Kind == mailbox.Ended {
						changed(e.Op)
					}
				case mailbox.Withdrawn, mailbox.Failing:
					leave(e)
				}
			}
			require.Equal(t, -1, running)
			require.Empty(t, line)
			t.Logf("%d events, %d starts decided by the scheduler", len(log), starts)
		})
	}
}
