package activeobject_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// tank is a dam whose operations come as leaf and as context bodies.
type tanks struct {
	*activeobject.Type[dam]
	drain, drainCtx *activeobject.Operation[dam, None, int]
	fill            *activeobject.Operation[dam, int, None]
	runs            *activeobject.Operation[dam, None, int]
	hold            *activeobject.Operation[dam, *brake, None]
}

// newTanks declares a type whose entry counts its runs in the log's length.
func newTanks() tanks {
	t := activeobject.NewType[dam]("tank")
	drain := func(d *dam) int { d.drain(); d.note("drained"); return len(d.log) }
	return tanks{
		Type:     t,
		drain:    activeobject.Entry(t, "drain", activeobject.Result(drain)).When("wet", (*dam).wet),
		drainCtx: activeobject.EntryCtx(t, "drain-ctx", func(d *dam, _ context.Context, _ None) (int, error) { return drain(d), nil }).When("wet", (*dam).wet),
		fill:     activeobject.Procedure(t, "fill", activeobject.Arg((*dam).fill)),
		runs:     activeobject.Function(t, "runs", activeobject.Result(func(d *dam) int { return len(d.log) })),
		hold:     hold(t),
	}
}

func (ts tanks) entries() []*activeobject.Operation[dam, None, int] {
	return []*activeobject.Operation[dam, None, int]{ts.drain, ts.drainCtx}
}

func (ts tanks) ran(o *activeobject.Object[dam]) int {
	n, _ := ts.runs.Call(background, o, nil)
	return n
}

func TestACanceledWaiterLeavesAtOnceAndNeverRuns(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{})
			ctx, cancel := context.WithCancel(background)
			called := calling(ctx, o, drain, nil)
			waiting(t, o, drain, 1)
			sent := drain.Send(ctx, o, nil)
			waiting(t, o, drain, 2)
			require.NoError(t, drain.Tell(ctx, o, nil))
			waiting(t, o, drain, 3)
			cancel()
			require.ErrorIs(t, soon(t, s.system, called).err, context.Canceled)
			require.ErrorIs(t, soon(t, s.system, awaiting(background, sent)).err, context.Canceled)
			waiting(t, o, drain, 0)
			ts.fill.Call(background, o, 3)
			require.Zero(t, ts.ran(o))
		}
	})
}

func TestACanceledWaiterLeavesAtOnceWhileABodyRuns(t *testing.T) {
	ts := newTanks()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{level: 10})
			release := braked(t, s, o, ts.hold)
			ctx, cancel := context.WithCancel(background)
			called := calling(ctx, o, drain, nil)
			waiting(t, o, drain, 1)
			tried := trying(ctx, o, drain, nil)
			waiting(t, o, drain, 2)
			sent := drain.Send(ctx, o, nil)
			waiting(t, o, drain, 3)
			cancel()
			require.ErrorIs(t, soon(t, s.system, called).err, context.Canceled)
			require.ErrorIs(t, soon(t, s.system, tried).err, context.Canceled)
			require.ErrorIs(t, soon(t, s.system, awaiting(background, sent)).err, context.Canceled)
			require.Zero(t, drain.Waiting(o))
			release()
			require.Zero(t, ts.ran(o))
		}
	})
}

func TestADeadlineEndsTheWaitOnTime(t *testing.T) {
	ts := newTanks()
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewSystem()
		o := activeobject.Must(activeobject.New(system, ts.Type, &dam{}))
		ctx, cancel := context.WithTimeout(background, time.Hour)
		defer cancel()
		start := time.Now()
		_, err := ts.drain.Call(ctx, o, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(start))
		require.NoError(t, system.Close(background))
	})
}

func TestAContextThatHasEndedNeverRuns(t *testing.T) {
	ts := newTanks()
	over, cancel := context.WithCancel(background)
	cancel()
	everywhere(t, func(t *testing.T, s *scene) {
		for _, drain := range ts.entries() {
			o := newObject(t, s, ts.Type, &dam{level: 10}) // idle and open
			_, err := drain.Call(over, o, nil)
			require.ErrorIs(t, err, context.Canceled)
			_, err = drain.Try(over, o, nil)
			require.ErrorIs(t, err, context.Canceled)
			_, err = drain.Send(over, o, nil).Await(background)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, drain.Tell(over, o, nil), context.Canceled)
			require.Zero(t, ts.ran(o))
		}
	})
}

func TestACallThatRunsReturnsItsResultThoughItsContextEnds(t *testing.T) {
	dams := activeobject.NewType[dam]("dam")
	work := activeobject.ProcedureCtx(dams, "work", func(d *dam, ctx context.Context, b *brake) (string, error) {
		close(b.entered)
		<-b.let
		if ctx.Err() == nil {
			return "", errors.New("the body does not see that its context has ended")
		}
		return "done", nil
	})
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, dams, &dam{})
		for name, start := range map[string]func(context.Context, *brake) <-chan outcome[string]{
			"call": func(ctx context.Context, b *brake) <-chan outcome[string] { return calling(ctx, o, work, b) },
			"try":  func(ctx context.Context, b *brake) <-chan outcome[string] { return trying(ctx, o, work, b) },
			"send": func(ctx context.Context, b *brake) <-chan outcome[string] {
				return awaiting(background, work.Send(ctx, o, b))
			},
		} {
			ctx, cancel := context.WithCancel(background)
			b := newBrake()
			done := start(ctx, b)
			soon(t, s.system, b.entered)
			cancel()
			close(b.let)
			require.Equal(t, outcome[string]{"done", nil}, soon(t, s.system, done), name)
		}
	})
}

// A request is canceled in the moment in which its guard opens, over and over:
// it has run, or its caller is told that it was canceled, and never both.
func TestCancellationRacesWithTheGrant(t *testing.T) {
	ts := newTanks()
	rounds := size(2000, 1000, 300)
	ways := map[string]func(ctx context.Context, o *activeobject.Object[dam], drain *activeobject.Operation[dam, None, int]) error{
		"call": func(ctx context.Context, o *activeobject.Object[dam], drain *activeobject.Operation[dam, None, int]) error {
			_, err := drain.Call(ctx, o, nil)
			return err
		},
		"send": func(ctx context.Context, o *activeobject.Object[dam], drain *activeobject.Operation[dam, None, int]) error {
			_, err := drain.Send(ctx, o, nil).Await(background)
			return err
		},
		"withdraw": func(ctx context.Context, o *activeobject.Object[dam], drain *activeobject.Operation[dam, None, int]) error {
			f := drain.Send(background, o, nil)
			var withdrawn atomic.Bool
			gone := make(chan struct{})
			context.AfterFunc(ctx, func() { withdrawn.Store(f.Withdraw()); close(gone) })
			_, err := f.Await(background)
			<-gone
			if withdrawn.Load() != (err != nil) {
				return errors.New("Withdraw and the future disagree")
			}
			return err
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *scene) {
				for _, drain := range ts.entries() {
					o := newObject(t, s, ts.Type, &dam{})
					ran, canceled := 0, 0
					for i := range rounds {
						ctx, cancel := context.WithCancel(background)
						result := make(chan error, 1)
						go func() { result <- way(ctx, o, drain) }()
						if i%4 != 0 { // else it may not have arrived
							waiting(t, o, drain, 1)
						}
						var wg sync.WaitGroup
						wg.Go(cancel)
						wg.Go(func() { ts.fill.Call(background, o, 1) })
						wg.Wait()
						switch err := soon(t, s.system, result); {
						case err == nil:
							ran++
						case errors.Is(err, context.Canceled):
							canceled++
							ts.fill.Call(background, o, -1) // it was not taken
						default:
							t.Fatal(err)
						}
						require.Equal(t, ran, ts.ran(o), "after %d rounds", i+1)
					}
					require.Zero(t, drain.Waiting(o))
					t.Logf("%s: %d ran, %d canceled", drain.Name(), ran, canceled)
				}
			})
		})
	}
}
