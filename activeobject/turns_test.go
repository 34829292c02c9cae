package activeobject_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/mailbox"
)

// A table is an object whose requests are rounds, of one turn or several.
type table struct {
	open   bool
	played []string
}

// round is the body of a turn. Its context is nil if it is that of a leaf.
type round func(ctx context.Context, t *table) (int, error)

type tables struct {
	*activeobject.Type[table]
	play  map[string]*activeobject.Operation[table, round, int] // of a leaf, or with a context
	wait  map[string]*activeobject.Operation[table, round, int] // likewise, when open
	turns map[string][4]*activeobject.Operation[table, round, int]
}

func newTables(name string) tables {
	t := activeobject.NewType[table](name)
	leaf := func(t *table, r round) (int, error) { return r(nil, t) }
	blocks := func(t *table, ctx context.Context, r round) (int, error) { return r(ctx, t) }
	open := func(t *table) bool { return t.open }
	ts := tables{
		Type: t,
		play: map[string]*activeobject.Operation[table, round, int]{
			"leaf": activeobject.Procedure(t, "play", leaf), "context": activeobject.ProcedureCtx(t, "play-ctx", blocks),
		},
		wait: map[string]*activeobject.Operation[table, round, int]{
			"leaf": activeobject.Entry(t, "wait", leaf).When("open", open), "context": activeobject.EntryCtx(t, "wait-ctx", blocks).When("open", open),
		},
		turns: map[string][4]*activeobject.Operation[table, round, int]{},
	}
	for body := range ts.play {
		var turns [4]*activeobject.Operation[table, round, int]
		for i := range turns {
			if name := fmt.Sprint(body, i); body == "leaf" {
				turns[i] = activeobject.Entry(t, name, leaf).When("open", open)
			} else {
				turns[i] = activeobject.EntryCtx(t, name, blocks).When("open", open)
			}
		}
		ts.turns[body] = turns
	}
	return ts
}

// attempts are the ways of making a request that does not wait.
func attempts(op *activeobject.Operation[table, round, int], o *activeobject.Object[table]) map[string]func(r round) (int, error) {
	return map[string]func(r round) (int, error){
		"try": func(r round) (int, error) { return op.Try(background, o, r) },
		"select": func(r round) (int, error) {
			c := op.Case(o, r)
			if i, err := activeobject.Select(background, c, activeobject.Otherwise); i != 0 {
				return -1, fmt.Errorf("case %d was chosen: %w", i, err)
			}
			return c.Result()
		},
	}
}

// refusal returns why the last of several turns was refused, which have run.
func refusal(t *testing.T, err error, ran ...string) *mailbox.RefusedError {
	t.Helper()
	var requeued *activeobject.RequeuedError
	require.ErrorAs(t, err, &requeued)
	require.Equal(t, ran, requeued.Ran)
	require.ErrorIs(t, err, activeobject.ErrRefused)
	var refused *mailbox.RefusedError
	require.ErrorAs(t, requeued.Cause, &refused)
	return refused
}

func TestATryThatIsRequeuedDoesNotWaitForAGuard(t *testing.T) {
	ts := newTables("table")
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := newObject(t, s, ts.Type, &table{}, activeobject.Name("a")), newObject(t, s, ts.Type, &table{}, activeobject.Name("b"))
		for body, play := range ts.play {
			for next, wait := range ts.wait {
				for way, attempt := range attempts(play, a) {
					for name, to := range map[string]*activeobject.Object[table]{"here": nil, "there": b} {
						what, at := fmt.Sprint(body, ", ", next, ", ", way, ", ", name), a
						if to != nil {
							at = to
						}
						out := soon(t, s.system, async(func() (int, error) {
							return attempt(func(context.Context, *table) (int, error) { return wait.RequeueTo(to, nil) })
						}))
						refused := refusal(t, out.err, "a."+play.Name())
						require.Equal(t, mailbox.RefusedError{Object: at.Name(), Operation: wait.Name(), Guard: "open"}, *refused, what)
						require.Empty(t, a.Explain().Waiting, what)
						require.Empty(t, b.Explain().Waiting, what)
					}
				}
			}
		}
	})
}

func TestATryThatIsRequeuedDoesNotWaitBehindAnother(t *testing.T) {
	ts := newTables("table")
	everywhere(t, func(t *testing.T, s *scene) {
		for body, play := range ts.play {
			o := newObject(t, s, ts.Type, &table{}, activeobject.Name("a "+body))
			for _, attempt := range attempts(play, o) {
				first := async(func() (int, error) {
					return ts.wait[body].Call(background, o, func(_ context.Context, t *table) (int, error) { t.open = false; return 1, nil })
				})
				waiting(t, o, ts.wait[body], 1)
				out := soon(t, s.system, async(func() (int, error) {
					return attempt(func(_ context.Context, t *table) (int, error) {
						t.open = true
						return play.Requeue(func(context.Context, *table) (int, error) { return 2, nil })
					})
				}))
				refused := refusal(t, out.err, o.Name()+"."+play.Name())
				require.Equal(t, ts.wait[body].Name(), refused.Behind)
				require.Equal(t, outcome[int]{result: 1}, soon(t, s.system, first))
			}
		}
	})
}

func TestATryThatIsRequeuedGoesOnAsLongAsItNeedNotWait(t *testing.T) {
	ts := newTables("table")
	everywhere(t, func(t *testing.T, s *scene) {
		a, b := newObject(t, s, ts.Type, &table{open: true}, activeobject.Name("a")), newObject(t, s, ts.Type, &table{open: true}, activeobject.Name("b"))
		for _, wait := range ts.wait {
			for _, play := range ts.play {
				for way, attempt := range attempts(wait, a) {
					last := func(context.Context, *table) (int, error) { return 42, nil }
					third := func(context.Context, *table) (int, error) { return wait.RequeueTo(a, last) }
					second := func(context.Context, *table) (int, error) { return play.RequeueTo(b, third) }
					first := func(context.Context, *table) (int, error) { return wait.Requeue(second) }
					out := soon(t, s.system, async(func() (int, error) { return attempt(first) }))
					require.Equal(t, outcome[int]{result: 42}, out, way)
					out = soon(t, s.system, async(func() (int, error) {
						return attempt(func(context.Context, *table) (int, error) {
							return play.RequeueTo(b, func(_ context.Context, t *table) (int, error) {
								t.open = false
								return wait.Requeue(last)
							})
						})
					}))
					require.Equal(t, "open", refusal(t, out.err, "a."+wait.Name(), "b."+play.Name()).Guard, way)
					_, err := play.Call(background, b, func(_ context.Context, t *table) (int, error) { t.open = true; return 0, nil })
					require.NoError(t, err)
				}
			}
		}
	})
}

// A request that is requeued to an open entry goes on before another is admitted.
func TestCallersThatComeTogetherGoThroughTheirTurnsOneAfterAnother(t *testing.T) {
	const callers = 10
	ts := newTables("table")
	var want []string
	for range callers {
		want = append(want, "0", "1", "2", "3")
	}
	for name, policy := range map[string]activeobject.Option{
		"arrival": activeobject.ByArrival(), "rotating": activeobject.ByRotation(), "lifo": activeobject.ByLatest(),
		"priority": activeobject.ByPriority(), "deadline": activeobject.ByDeadline(),
		"choice": activeobject.ByChoice(func([]*activeobject.Candidate) int { return 0 }),
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *scene) {
				for body, turns := range ts.turns {
					o := newObject(t, s, ts.Type, &table{open: true}, policy)
					var turn func(i int) round
					turn = func(i int) round {
						return func(_ context.Context, t *table) (int, error) {
							if t.played = append(t.played, fmt.Sprint(i)); i == len(turns)-1 {
								return i, nil
							}
							return turns[i+1].Requeue(turn(i + 1))
						}
					}
					entered, let := make(chan struct{}), make(chan struct{})
					busy := async(func() (int, error) {
						return ts.play["context"].Call(background, o, func(context.Context, *table) (int, error) { close(entered); <-let; return 0, nil })
					})
					soon(t, s.system, entered)
					var calls []<-chan outcome[int]
					for range callers {
						calls = append(calls, async(func() (int, error) { return turns[0].Call(background, o, turn(0)) }))
					}
					eventually(t, "all wait", func() bool { return len(o.Explain().Waiting) == callers })
					close(let)
					for _, c := range append(calls, busy) {
						require.NoError(t, soon(t, s.system, c).err)
					}
					var played []string
					_, err := ts.play["leaf"].Call(background, o, func(_ context.Context, t *table) (int, error) { played = t.played; return 0, nil })
					require.NoError(t, err)
					require.Equal(t, want, played, body)
				}
			})
		})
	}
}

func TestARequestThatRequeuesItselfSeesTheEndOfItsContext(t *testing.T) {
	ts := newTables("table")
	const turns = 10
	everywhere(t, func(t *testing.T, s *scene) {
		for body, play := range ts.play {
			for name, how := range map[string]activeobject.Requeuing{"plain": 0, "committed": activeobject.Commit} {
				for way, make := range map[string]func(ctx context.Context, o *activeobject.Object[table], r round) (int, error){
					"call": func(ctx context.Context, o *activeobject.Object[table], r round) (int, error) {
						return play.Call(ctx, o, r)
					},
					"try": func(ctx context.Context, o *activeobject.Object[table], r round) (int, error) {
						return play.Try(ctx, o, r)
					},
					"send": func(ctx context.Context, o *activeobject.Object[table], r round) (int, error) {
						return play.Send(ctx, o, r).Await(background)
					},
				} {
					o := newObject(t, s, ts.Type, &table{})
					ctx, cancel := context.WithCancel(background)
					n := 0
					var turn round
					turn = func(context.Context, *table) (int, error) {
						switch n++; n {
						case turns:
							cancel()
							return play.Requeue(turn, how) // the next turn is made nevertheless, if it is committed
						case turns + 2:
							return 0, nil
						}
						return play.Requeue(turn)
					}
					out := soon(t, s.system, async(func() (int, error) { return make(ctx, o, turn) }))
					what := fmt.Sprint(body, ", ", name, ", ", way)
					var requeued *activeobject.RequeuedError
					require.ErrorAs(t, out.err, &requeued, what)
					require.Equal(t, context.Canceled, requeued.Cause, what)
					ran := turns
					if how == activeobject.Commit {
						ran++
					}
					require.Len(t, requeued.Ran, ran, what)
					require.Equal(t, ran, n, what)
					soon(t, s.system, async(func() (int, error) { // and the object goes on
						return play.Call(background, o, func(context.Context, *table) (int, error) { return 0, nil })
					}))
				}
			}
		}
	})
}

func TestASenderIsNotKeptByARequestThatRequeuesItselfForEver(t *testing.T) {
	ts := newTables("table")
	const ever = 20_000_000 // turns
	everywhere(t, func(t *testing.T, s *scene) {
		for body, play := range ts.play {
			o := newObject(t, s, ts.Type, &table{})
			ctx, cancel := context.WithCancel(background)
			var turn round
			n, sent := 0, atomic.Bool{}
			turn = func(context.Context, *table) (int, error) {
				if n++; n == ever && !sent.Load() {
					return n, nil
				}
				return play.Requeue(turn)
			}
			f := play.Send(ctx, o, turn)
			sent.Store(true)
			cancel()
			out := soon(t, s.system, awaiting(background, f))
			require.ErrorIs(t, out.err, context.Canceled, "%s: %d turns", body, n)
		}
	})
}
