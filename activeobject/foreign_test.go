package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// foreign is a context whose methods do what the test says, once it is armed. It ends with the
// one that it has.
type foreign struct {
	context.Context
	method string
	does   func()
	armed  atomic.Bool
}

func (f *foreign) called(method string) {
	if method == f.method && f.armed.Load() {
		f.does()
	}
}

func (f *foreign) Err() error { f.called("Err"); return f.Context.Err() }

func (f *foreign) Done() <-chan struct{} { f.called("Done"); return f.Context.Done() }

func (f *foreign) Value(key any) any { f.called("Value"); return f.Context.Value(key) }

func (f *foreign) Deadline() (time.Time, bool) { f.called("Deadline"); return f.Context.Deadline() }

var methods = []string{"Err", "Done", "Value", "Deadline"}

// tarn is an object whose requests wait until it is full.
type tarn struct {
	full bool
	ran  int
}

type tarns struct {
	*activeobject.Type[tarn]
	drain, drainCtx, twice *activeobject.Operation[tarn, None, None] // wait until it is full
	fill                   *activeobject.Operation[tarn, bool, None]
	ran                    *activeobject.Operation[tarn, None, int]
}

func newTarns() tarns {
	t := activeobject.NewType[tarn]("tarn")
	full := func(b *tarn) bool { return b.full }
	ts := tarns{
		Type:     t,
		drain:    activeobject.Entry(t, "drain", activeobject.Plain(func(b *tarn) { b.ran++ })).When("full", full),
		drainCtx: activeobject.EntryCtx(t, "drain-ctx", func(b *tarn, _ context.Context, _ None) (None, error) { b.ran++; return nil, nil }).When("full too", full),
		fill:     activeobject.Procedure(t, "fill", activeobject.Arg(func(b *tarn, full bool) { b.full = full })),
		ran:      activeobject.Procedure(t, "ran", activeobject.Result(func(b *tarn) int { return b.ran })),
	}
	ts.twice = activeobject.Procedure(t, "twice", func(*tarn, None) (None, error) { return ts.drainCtx.Requeue(nil) })
	return ts
}

// misdeeds returns what a method of a context may do instead of returning. Those that block do
// so until release is called.
func misdeeds(ts tarns, o *activeobject.Object[tarn]) (all map[string]func(), release func()) {
	blocked := make(chan struct{})
	return map[string]func(){
		"panics":     func() { panic("a context's panic") },
		"exits":      runtime.Goexit,
		"blocks":     func() { <-blocked },
		"explains":   func() { o.Explain() },
		"calls back": func() { ts.ran.Call(background, o, nil) },
		"tries":      func() { ts.ran.Try(background, o, nil) },
	}, func() { close(blocked) }
}

// orders are the policies that look at contexts.
var orders = map[string]activeobject.Option{
	"by arrival":  activeobject.ByArrival(),
	"by deadline": activeobject.ByDeadline(),
	"by priority": activeobject.ByPriority(),
	"chosen":      activeobject.ByChoice(func([]*activeobject.Candidate) int { return 0 }),
}

// A context is its caller's code. Whatever its methods do while the request waits, others do
// not notice: neither those that open its guard nor those that wait behind it. And a request
// whose context has ended does not run.
func TestAContextOfOnesOwnHarmsNoOtherCallerWhileItsRequestWaits(t *testing.T) {
	ts := newTarns()
	everywhere(t, func(t *testing.T, s *scene) {
		for order, option := range orders {
			if order != "by arrival" && s.name != "default" && s.name != "synchronizer" {
				continue
			}
			for _, method := range methods {
				for what := range first(misdeeds(ts, nil)) {
					for _, how := range []string{"call", "call ctx", "send", "tell", "requeued", "send requeued"} {
						for _, ends := range []bool{false, true} {
							where := fmt.Sprintf("%s: %s, and %s %s; it ends: %v", order, how, method, what, ends)
							o := newObject(t, s, ts.Type, &tarn{}, option)
							deeds, release := misdeeds(ts, o)
							ctx, cancel := context.WithTimeout(background, time.Hour)
							f := &foreign{Context: ctx, method: method, does: deeds[what]}
							waits := ts.drain
							var own <-chan outcome[None]
							switch how {
							case "call":
								own = contained(func() (None, error) { return ts.drain.Call(f, o, nil) })
							case "call ctx":
								waits = ts.drainCtx
								own = contained(func() (None, error) { return ts.drainCtx.Call(f, o, nil) })
							case "send":
								own = awaiting(background, ts.drain.Send(f, o, nil))
							case "tell":
								require.NoError(t, ts.drain.Tell(f, o, nil))
							case "requeued":
								waits = ts.drainCtx
								own = contained(func() (None, error) { return ts.twice.Call(f, o, nil) })
							case "send requeued":
								waits = ts.drainCtx
								own = awaiting(background, ts.twice.Send(f, o, nil))
							}
							waiting(t, o, waits, 1)
							f.armed.Store(true)
							behind := calling(background, o, ts.drain, nil)
							eventually(t, where, func() bool { return ts.drain.Waiting(o)+ts.drainCtx.Waiting(o) == 2 })
							if ends {
								cancel()
							}
							require.NoError(t, soon(t, s.system, calling(background, o, ts.fill, true)).err, where)
							require.NoError(t, soon(t, s.system, behind).err, where)
							want := 2
							if ends {
								want = 1
							}
							if how != "tell" && !(ends && what == "blocks" && method == "Err") { // or else its own caller waits for its context
								err := soon(t, s.system, own).err
								if ends {
									require.Error(t, err, where)
								}
							}
							eventually(t, where, func() bool {
								out := soon(t, s.system, calling(background, o, ts.ran, nil))
								return out.err == nil && out.result == want
							})
							require.Empty(t, o.Explain().Waiting, where)
							release()
							cancel()
							soon(t, s.system, o.Stop())
						}
					}
				}
			}
		}
	})
}

// Nor does it harm others when the request arrives, whether at an object that is idle, closed or
// busy; nor when its body has run on the fast path and asks for a requeue.
func TestAContextOfOnesOwnHarmsNoOtherCallerWhenItsRequestArrives(t *testing.T) {
	ts := newTarns()
	everywhere(t, func(t *testing.T, s *scene) {
		for order, option := range orders {
			if order != "by arrival" && s.name != "default" && s.name != "synchronizer" {
				continue
			}
			for _, method := range methods {
				for what := range first(misdeeds(ts, nil)) {
					for _, how := range []string{"call", "call ctx", "try", "send", "tell", "requeued"} {
						where := fmt.Sprintf("%s: %s, and %s %s", order, how, method, what)
						if how == "requeued" && (what == "blocks" || what == "calls back" || what == "tries") {
							continue // it waits for itself
						}
						o := newObject(t, s, ts.Type, &tarn{}, option)
						deeds, release := misdeeds(ts, o)
						ctx, cancel := context.WithTimeout(background, time.Hour)
						f := &foreign{Context: ctx, method: method, does: deeds[what]}
						f.armed.Store(true)
						own := contained(func() (None, error) {
							switch how {
							case "call":
								return ts.drain.Call(f, o, nil)
							case "call ctx":
								return ts.drainCtx.Call(f, o, nil)
							case "try":
								return ts.drain.Try(f, o, nil)
							case "send":
								return ts.drain.Send(f, o, nil).Await(background)
							case "tell":
								return nil, ts.drain.Tell(f, o, nil)
							}
							return ts.twice.Call(f, o, nil)
						})
						for range 3 {
							require.NoError(t, soon(t, s.system, calling(background, o, ts.ran, nil)).err, where)
							runtime.Gosched()
						}
						require.NoError(t, soon(t, s.system, calling(background, o, ts.fill, true)).err, where)
						f.armed.Store(false)
						release()
						soon(t, s.system, own)
						require.NoError(t, soon(t, s.system, calling(background, o, ts.drain, nil)).err, where)
						require.Empty(t, o.Explain().Running, where)
						cancel()
						soon(t, s.system, o.Stop())
					}
				}
			}
		}
	})
}

// contained is async for what may panic.
func contained(do func() (None, error)) <-chan outcome[None] {
	return async(func() (r None, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("it panicked: %v", v)
			}
		}()
		return do()
	})
}

func first[A, B any](a A, _ B) A { return a }

// errOwn is the error of a context that has one of its own.
var errOwn = errors.New("the client has hung up")

// hung is a context whose Err is its own.
type hung struct{ context.Context }

func (h hung) Err() error {
	if h.Context.Err() != nil {
		return errOwn
	}
	return nil
}

// A request whose context has ended fails with the error of that context, however it is made.
func TestARequestFailsWithTheErrorOfItsContextWhateverKindThatIs(t *testing.T) {
	ts := newTarns()
	everywhere(t, func(t *testing.T, s *scene) {
		for how, begin := range map[string]func(ctx context.Context, o *activeobject.Object[tarn]) <-chan outcome[None]{
			"call": func(ctx context.Context, o *activeobject.Object[tarn]) <-chan outcome[None] {
				return calling(ctx, o, ts.drain, nil)
			},
			"send": func(ctx context.Context, o *activeobject.Object[tarn]) <-chan outcome[None] {
				return awaiting(background, ts.drain.Send(ctx, o, nil))
			},
			"begin": func(ctx context.Context, o *activeobject.Object[tarn]) <-chan outcome[None] {
				k := ts.drain.Begin(ctx, o, nil)
				return async(func() (None, error) { return k.Await(background) })
			},
			"requeued": func(ctx context.Context, o *activeobject.Object[tarn]) <-chan outcome[None] {
				return calling(ctx, o, ts.twice, nil)
			},
			"select": func(ctx context.Context, o *activeobject.Object[tarn]) <-chan outcome[None] {
				return async(func() (None, error) {
					_, err := activeobject.Select(ctx, ts.drain.Case(o, nil))
					return nil, err
				})
			},
		} {
			// One is withdrawn by its caller or by what watches its context; the other one is
			// found by the owner of the object, which could start it: the context ends while
			// the body runs that lets it in.
			for _, found := range []bool{false, true} {
				o := newObject(t, s, ts.Type, &tarn{})
				ctx, cancel := context.WithCancel(background)
				own := begin(hung{ctx}, o)
				eventually(t, how, func() bool { return ts.drain.Waiting(o)+ts.drainCtx.Waiting(o) == 1 })
				if found {
					require.NoError(t, o.Do(background, func(b *tarn) error { b.full = true; cancel(); return nil }))
				}
				cancel()
				require.ErrorIs(t, soon(t, s.system, own).err, errOwn, how)
				require.Zero(t, soon(t, s.system, calling(background, o, ts.ran, nil)).result, how)
			}
		}
	})
}

// The Err of the context of a posted request is called on a worker. If it fails there, the request
// fails with a *ContextError, and nothing else fails.
func TestAContextThatCannotSayWhyItHasEndedFailsItsRequestOnly(t *testing.T) {
	ts := newTarns()
	everywhere(t, func(t *testing.T, s *scene) {
		for what, deed := range map[string]func(){"panics": func() { panic(errOwn) }, "exits": runtime.Goexit} {
			for how, begin := range map[string]func(ctx context.Context, o *activeobject.Object[tarn]) func() error{
				"send": func(ctx context.Context, o *activeobject.Object[tarn]) func() error {
					f := ts.drain.Send(ctx, o, nil)
					return func() error { return soon(t, s.system, awaiting(background, f)).err }
				},
				"begin": func(ctx context.Context, o *activeobject.Object[tarn]) func() error {
					k := ts.drain.Begin(ctx, o, nil)
					return func() error {
						return soon(t, s.system, async(func() (None, error) { return k.Await(background) })).err
					}
				},
				"message": func(ctx context.Context, o *activeobject.Object[tarn]) func() error {
					f := s.system.Request(ctx, o.PID(), &actor.Invoke{Operation: "drain"})
					return func() error { return soon(t, s.system, awaiting(background, f)).err }
				},
			} {
				where := how + " " + what
				o := newObject(t, s, ts.Type, &tarn{})
				ctx, cancel := context.WithCancel(background)
				f := &foreign{Context: ctx, method: "Err", does: deed}
				end := begin(f, o)
				waiting(t, o, ts.drain, 1)
				f.armed.Store(true)
				cancel()
				err := end()
				require.IsType(t, &activeobject.ContextError{}, err, where)
				require.Equal(t, what == "panics", errors.Is(err, errOwn), where)
				eventually(t, where, func() bool { return len(o.Explain().Waiting) == 0 })
				require.NoError(t, soon(t, s.system, calling(background, o, ts.fill, true)).err, where)
				require.Zero(t, soon(t, s.system, calling(background, o, ts.ran, nil)).result, where)
			}
		}
	})
}

// A goroutine that gives an object back on which others wait asks its context nothing: that
// might come back to the object.
func TestAContextIsNotCalledWhileItsCallersGoroutineHasTheObject(t *testing.T) {
	typ := activeobject.NewType[tarn]("tarn")
	var during func()
	open := func(b *tarn) bool { return b.full }
	dive := activeobject.Procedure(typ, "dive", activeobject.Plain(func(*tarn) { during() }))
	pass := activeobject.Entry(typ, "pass", activeobject.Plain(func(*tarn) {})).When("full", open)
	everywhere(t, func(t *testing.T, s *scene) {
		for _, method := range methods {
			o := newObject(t, s, typ, &tarn{full: true})
			f := &foreign{Context: background, method: method, does: func() { pass.Call(background, o, nil) }}
			var behind <-chan outcome[None]
			during = func() {
				behind = calling(background, o, pass, nil)
				eventually(t, "another call waits", func() bool { return len(o.Explain().Waiting) == 1 })
				f.armed.Store(true)
			}
			require.NoError(t, soon(t, s.system, calling(f, o, dive, nil)).err, method)
			require.NoError(t, soon(t, s.system, behind).err, method)
			f.armed.Store(false)
			during = func() {}

			// Nor does one that finds its guard false.
			require.NoError(t, o.Do(background, func(b *tarn) error { b.full = false; return nil }))
			own := calling(f, o, pass, nil)
			waiting(t, o, pass, 1)
			f.armed.Store(true)
			require.NoError(t, o.Do(background, func(b *tarn) error { b.full = true; return nil }))
			require.NoError(t, soon(t, s.system, own).err, method)
		}
	})
}

func TestACallThatIsRequeuedToAnotherObjectKeepsAContextOfItsOwnKind(t *testing.T) {
	ds := newDesks("desk")
	everywhere(t, func(t *testing.T, s *scene) {
		for name, way := range ways(ds.do, newObject(t, s, ds.Type, &desk{})) {
			b := newObject(t, s, ds.Type, &desk{})
			type key struct{}
			inner, cancel := context.WithCancel(context.WithValue(background, key{}, "kept"))
			ctx := &foreign{Context: inner}
			seen, err := any(nil), error(nil)
			r, failed := way(ctx, func(*desk) (int, error) {
				return ds.doCtx.RequeueTo(b, func(ctx context.Context, _ *desk) (int, error) {
					seen = ctx.Value(key{})
					cancel()
					err = ctx.Err()
					return 3, nil
				})
			})
			cancel()
			require.NoError(t, failed, name)
			require.Equal(t, 3, r)
			require.Equal(t, "kept", seen, name)
			require.ErrorIs(t, err, context.Canceled, name)
		}
	})
}
