package activeobject_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/mailbox"
)

// lanterns are objects that break, and can be replaced.
type lantern struct {
	activeobject.Queues
	made  int // the how-manieth of its factory it is, from 1
	oil   int
	crack any  // what the guards panic with, if it is not nil
	exits bool // they end their goroutine
	log   []int
}

type lanterns struct {
	*activeobject.Type[lantern]
	crash, crashCtx *activeobject.Operation[lantern, any, None]  // panic
	leave, leaveCtx *activeobject.Operation[lantern, None, None] // end their goroutine
	burn            *activeobject.Operation[lantern, int, int]   // waits until there is oil; notes its argument
	pour            *activeobject.Operation[lantern, int, int]   // waits until there is enough oil
	fill            *activeobject.Operation[lantern, int, None]
	crack           *activeobject.Operation[lantern, any, None]
	loosen          *activeobject.Operation[lantern, None, None]
	made            *activeobject.Operation[lantern, None, int]
	queue           *activeobject.Operation[lantern, None, int] // how many wait to burn
	hold            *activeobject.Operation[lantern, *brake, None]
	act             *activeobject.Operation[lantern, func(context.Context) error, None]
}

func newLanterns() *lanterns {
	t := activeobject.NewType[lantern]("lantern")
	guard := func(l *lantern) {
		if l.exits {
			l.exits = false
			runtime.Goexit()
		}
		if l.crack != nil {
			panic(l.crack)
		}
	}
	ls := &lanterns{Type: t}
	ls.crash = activeobject.Procedure(t, "crash", func(_ *lantern, v any) (None, error) { panic(v) })
	ls.crashCtx = activeobject.ProcedureCtx(t, "crash-ctx", func(_ *lantern, _ context.Context, v any) (None, error) { panic(v) })
	ls.leave = activeobject.Procedure(t, "leave", activeobject.Plain(func(*lantern) { runtime.Goexit() }))
	ls.leaveCtx = activeobject.ProcedureCtx(t, "leave-ctx", func(*lantern, context.Context, None) (None, error) { runtime.Goexit(); return nil, nil })
	ls.burn = activeobject.Entry(t, "burn", func(l *lantern, n int) (int, error) { l.oil--; l.log = append(l.log, n); return l.made, nil }).
		When("oil", func(l *lantern) bool { guard(l); return l.oil > 0 })
	ls.pour = activeobject.Entry(t, "pour", func(l *lantern, n int) (int, error) { l.oil -= n; return l.made, nil }).
		WhenArg("enough", func(l *lantern, n int) bool { guard(l); return l.oil >= n })
	ls.fill = activeobject.Procedure(t, "fill", activeobject.Arg(func(l *lantern, n int) { l.oil += n }))
	ls.crack = activeobject.Procedure(t, "crack", activeobject.Arg(func(l *lantern, v any) { l.crack = v }))
	ls.loosen = activeobject.Procedure(t, "loosen", activeobject.Plain(func(l *lantern) { l.exits = true }))
	ls.made = activeobject.Function(t, "made", activeobject.Result(func(l *lantern) int { return l.made }))
	ls.queue = activeobject.Function(t, "queue", activeobject.Result(func(l *lantern) int { return l.Waiting(ls.burn) }))
	ls.hold = hold(t)
	ls.act = activeobject.ProcedureCtx(t, "act", func(_ *lantern, ctx context.Context, do func(context.Context) error) (None, error) {
		return nil, do(ctx)
	})
	return ls
}

// factory makes lanterns, and fails when it is told so.
type factory struct {
	made atomic.Int32
	oil  int
	fail atomic.Pointer[func() error] // called first
}

func (f *factory) make() (*lantern, error) {
	n := f.made.Add(1)
	if fail := f.fail.Load(); fail != nil {
		if err := (*fail)(); err != nil {
			return nil, err
		}
	}
	return &lantern{made: int(n), oil: f.oil}, nil
}

func (f *factory) fails(with func() error) { f.fail.Store(&with) }

// judge is a supervisor that hears of failures, and decides when the test does.
type judge struct{ cases chan judgement }

type judgement struct {
	supervisor proto.Supervisor
	child      *actor.PID
	reason     error
	message    any
}

func newJudge() *judge { return &judge{cases: make(chan judgement, 100)} }

func (j *judge) HandleFailure(_ *proto.ActorSystem, s proto.Supervisor, child *proto.PID, _ *proto.RestartStatistics, reason, message any) {
	j.cases <- judgement{s, child, reason.(error), message}
}

// supervised makes a lantern with a supervisor.
func supervised(t *testing.T, s *scene, ls *lanterns, f *factory, strategy actor.Strategy) *activeobject.Object[lantern] {
	t.Helper()
	o, err := activeobject.NewFrom(s.system, ls.Type, f.make, append(s.options, activeobject.Supervisor(strategy))...)
	require.NoError(t, err)
	return o
}

// goesOn says that the object serves requests.
func goesOn(t *testing.T, s *scene, ls *lanterns, o *activeobject.Object[lantern], made int) {
	t.Helper()
	got := soon(t, s.system, calling(background, o, ls.made, nil))
	require.NoError(t, got.err)
	require.Equal(t, made, got.result)
	require.Empty(t, o.Explain().Suspended)
}

// faults are all the ways in which a lantern fails. Each returns what its caller got.
func (ls *lanterns) faults() map[string]func(t *testing.T, s *scene, o *activeobject.Object[lantern]) <-chan outcome[int] {
	int0 := func(_ None, err error) (int, error) { return 0, err }
	after := func(t *testing.T, s *scene, o *activeobject.Object[lantern], fault func() <-chan outcome[int], op interface{ Name() string }) <-chan outcome[int] {
		t.Helper()
		release := braked(t, s, o, ls.hold)
		c := fault()
		eventually(t, "it waits", func() bool { return len(o.Explain().Waiting) > 0 })
		release()
		return c
	}
	crash := func(o *activeobject.Object[lantern], op *activeobject.Operation[lantern, any, None]) <-chan outcome[int] {
		return async(func() (int, error) { return int0(op.Call(background, o, io.ErrUnexpectedEOF)) })
	}
	leave := func(o *activeobject.Object[lantern], op *activeobject.Operation[lantern, None, None]) <-chan outcome[int] {
		return async(func() (int, error) { return int0(op.Call(background, o, nil)) })
	}
	return map[string]func(t *testing.T, s *scene, o *activeobject.Object[lantern]) <-chan outcome[int]{
		"crash": func(_ *testing.T, _ *scene, o *activeobject.Object[lantern]) <-chan outcome[int] {
			return crash(o, ls.crash)
		},
		"crash-ctx": func(_ *testing.T, _ *scene, o *activeobject.Object[lantern]) <-chan outcome[int] {
			return crash(o, ls.crashCtx)
		},
		"crash, having waited": func(t *testing.T, s *scene, o *activeobject.Object[lantern]) <-chan outcome[int] {
			return after(t, s, o, func() <-chan outcome[int] { return crash(o, ls.crash) }, ls.crash)
		},
		"crash, sent": func(t *testing.T, s *scene, o *activeobject.Object[lantern]) <-chan outcome[int] {
			return after(t, s, o, func() <-chan outcome[int] {
				f := ls.crash.Send(background, o, io.ErrUnexpectedEOF)
				return async(func() (int, error) { return int0(f.Await(background)) })
			}, ls.crash)
		},
		"leave": func(_ *testing.T, _ *scene, o *activeobject.Object[lantern]) <-chan outcome[int] {
			return leave(o, ls.leave)
		},
		"leave-ctx": func(_ *testing.T, _ *scene, o *activeobject.Object[lantern]) <-chan outcome[int] {
			return leave(o, ls.leaveCtx)
		},
		"leave, having waited": func(t *testing.T, s *scene, o *activeobject.Object[lantern]) <-chan outcome[int] {
			return after(t, s, o, func() <-chan outcome[int] { return leave(o, ls.leaveCtx) }, ls.leaveCtx)
		},
		"guard": func(t *testing.T, s *scene, o *activeobject.Object[lantern]) <-chan outcome[int] {
			_, err := ls.crack.Call(background, o, io.ErrUnexpectedEOF)
			require.NoError(t, err)
			return calling(background, o, ls.burn, 0)
		},
		"guard of one that waits": func(t *testing.T, s *scene, o *activeobject.Object[lantern]) <-chan outcome[int] {
			c := calling(background, o, ls.pour, 7)
			waiting(t, o, ls.pour, 1)
			_, err := ls.crack.Call(background, o, io.ErrUnexpectedEOF)
			require.NoError(t, err)
			return c
		},
		"guard over the state of one that waits": func(t *testing.T, s *scene, o *activeobject.Object[lantern]) <-chan outcome[int] {
			c := calling(background, o, ls.burn, 7)
			waiting(t, o, ls.burn, 1)
			_, err := ls.crack.Call(background, o, io.ErrUnexpectedEOF)
			require.NoError(t, err)
			return c
		},
		"guard that exits": func(t *testing.T, s *scene, o *activeobject.Object[lantern]) <-chan outcome[int] {
			c := calling(background, o, ls.pour, 7)
			waiting(t, o, ls.pour, 1)
			soon(t, s.system, calling(background, o, ls.loosen, nil))
			return c
		},
	}
}

// Whatever has failed, and however: the failed request is told at once, nothing
// starts, the supervisor hears what it was, and what it decides is done.
func TestASupervisorDecidesWhatBecomesOfAnObjectThatHasFailed(t *testing.T) {
	ls := newLanterns()
	for name, fault := range ls.faults() {
		for directive, decide := range map[string]func(j judgement){
			"resume":   func(j judgement) { j.supervisor.ResumeChildren(j.child) },
			"restart":  func(j judgement) { j.supervisor.RestartChildren(j.child) },
			"stop":     func(j judgement) { j.supervisor.StopChildren(j.child) },
			"escalate": func(j judgement) { j.supervisor.EscalateFailure(j.reason, j.message) },
		} {
			t.Run(name+"/"+directive, func(t *testing.T) {
				everywhere(t, func(t *testing.T, s *scene) {
					j := newJudge()
					o := supervised(t, s, ls, &factory{}, j)
					failed := soon(t, s.system, fault(t, s, o))
					require.Error(t, failed.err)
					c := soon(t, s.system, j.cases)
					require.Equal(t, o.PID(), c.child)
					if failed.err != errEnded {
						require.Equal(t, failed.err, c.reason)
					}
					require.Contains(t, c.reason.Error(), c.message.(*actor.Invoke).Operation)
					require.NotEmpty(t, c.message.(*actor.Invoke).Operation)

					// Undecided: all wait, and can be withdrawn.
					require.Equal(t, c.reason.Error(), o.Explain().Suspended)
					waits := calling(background, o, ls.made, nil)
					waiting(t, o, ls.made, 1)
					tries := trying(background, o, ls.made, nil)
					waiting(t, o, ls.made, 2)
					ctx, cancel := context.WithCancel(background)
					leaves := calling(ctx, o, ls.made, nil)
					waiting(t, o, ls.made, 3)
					cancel()
					require.ErrorIs(t, soon(t, s.system, leaves).err, context.Canceled)
					for _, w := range o.Explain().Waiting {
						require.Equal(t, mailbox.Suspended, w.Reason.Cause)
						require.Contains(t, w.Reason.String(), "object is suspended")
					}
					require.Empty(t, waits)
					require.Empty(t, tries)

					decide(c)
					switch directive {
					case "resume":
						require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, waits))
						soon(t, s.system, tries)
						if name != "guard of one that waits" && name != "guard" && name != "guard over the state of one that waits" {
							goesOn(t, s, ls, o, 1)
						}
					case "restart":
						require.Equal(t, outcome[int]{2, nil}, soon(t, s.system, waits))
						soon(t, s.system, tries)
						goesOn(t, s, ls, o, 2)
					default:
						for _, got := range []outcome[int]{soon(t, s.system, waits), soon(t, s.system, tries)} {
							require.ErrorIs(t, got.err, activeobject.ErrStopped)
							require.ErrorIs(t, got.err, c.reason, "it says why")
							var stopped *activeobject.StoppedError
							require.ErrorAs(t, got.err, &stopped)
							require.Equal(t, c.reason, stopped.Cause)
						}
						soon(t, s.system, o.Stop())
					}
					require.Empty(t, j.cases, "one failure is decided about once")
				})
			})
		}
	}
}

// A restart is for those that wait as if nothing had happened, but for the state.
func TestThoseThatWaitKeepTheirPlacesInARestart(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		j := newJudge()
		o := supervised(t, s, ls, &factory{}, j)
		var calls []<-chan outcome[int]
		for i := range 5 {
			calls = append(calls, calling(background, o, ls.burn, i))
			waiting(t, o, ls.burn, i+1)
		}
		before := o.Explain().Waiting
		_, err := ls.crash.Call(background, o, "bang")
		require.Error(t, err)
		c := soon(t, s.system, j.cases)
		calls = append(calls, calling(background, o, ls.burn, 5))
		waiting(t, o, ls.burn, 6)
		c.supervisor.RestartChildren(c.child)
		require.Equal(t, outcome[int]{6, nil}, soon(t, s.system, calling(background, o, ls.queue, nil)), "the new state's Queues are the object's")
		after := o.Explain().Waiting
		for _, all := range [][]mailbox.Waiting{before, after} { // one that has just come may be told of first
			slices.SortFunc(all, func(a, b mailbox.Waiting) int { return cmp.Compare(a.Arrival, b.Arrival) })
		}
		for i, w := range after {
			if i < len(before) {
				require.Equal(t, before[i].Arrival, w.Arrival)
				require.Greater(t, w.Age, before[i].Age)
			}
			require.Equal(t, mailbox.GuardFalse, w.Reason.Cause, "its guard has been asked anew")
		}
		_, err = ls.fill.Call(background, o, 6)
		require.NoError(t, err)
		for _, c := range calls {
			require.Equal(t, outcome[int]{2, nil}, soon(t, s.system, c))
		}
		require.NoError(t, o.View(background, func(l *lantern) error {
			require.Equal(t, []int{0, 1, 2, 3, 4, 5}, l.log)
			return nil
		}))
	})
}

// A guard that is true in the new state opens, though it was false in the old one
// and neither has been changed.
func TestARestartEvaluatesAllGuardsAnew(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		f := &factory{}
		o := supervised(t, s, ls, f, proto.NewRestartingStrategy())
		burns := calling(background, o, ls.burn, 1)
		pours := calling(background, o, ls.pour, 2)
		waiting(t, o, ls.burn, 1)
		waiting(t, o, ls.pour, 1)
		f.oil = 3
		_, err := ls.crash.Call(background, o, "bang")
		require.Error(t, err)
		require.Equal(t, outcome[int]{2, nil}, soon(t, s.system, burns))
		require.Equal(t, outcome[int]{2, nil}, soon(t, s.system, pours))
	})
}

func TestAFactoryThatFailsIsAFailureAgain(t *testing.T) {
	ls := newLanterns()
	ways := map[string]func() error{
		"error":  func() error { return io.ErrClosedPipe },
		"panic":  func() error { panic(io.ErrClosedPipe) },
		"goexit": func() error { runtime.Goexit(); return nil },
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *scene) {
				j, f := newJudge(), &factory{}
				o := supervised(t, s, ls, f, j)
				f.fails(way)
				_, err := ls.crash.Call(background, o, io.ErrUnexpectedEOF)
				require.Error(t, err)
				waits := calling(background, o, ls.made, nil)
				waiting(t, o, ls.made, 1)
				c := soon(t, s.system, j.cases)
				for range 3 {
					c.supervisor.RestartChildren(c.child)
					c = soon(t, s.system, j.cases)
					var r *activeobject.RestartError
					require.ErrorAs(t, c.reason, &r)
					require.Equal(t, o.Name(), r.Object)
					require.ErrorIs(t, c.reason, io.ErrUnexpectedEOF, "what it was restarted for")
					require.IsType(t, &activeobject.PanicError{}, r.Failure)
					if name != "goexit" {
						require.ErrorIs(t, c.reason, io.ErrClosedPipe)
					}
					require.IsType(t, &actor.Restart{}, c.message)
					require.Empty(t, waits)
				}
				f.fails(func() error { return nil })
				c.supervisor.RestartChildren(c.child)
				require.Equal(t, outcome[int]{5, nil}, soon(t, s.system, waits))
			})
		})
	}
}

func TestAStrategysLimitEndsAFactoryThatFailsForEver(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		f := &factory{}
		o := supervised(t, s, ls, f, proto.NewOneForOneStrategy(3, time.Hour, proto.DefaultDecider))
		burns := calling(background, o, ls.burn, 1)
		waiting(t, o, ls.burn, 1)
		f.fails(func() error { return io.ErrClosedPipe })
		_, err := ls.crash.Call(background, o, io.ErrUnexpectedEOF)
		require.Error(t, err)
		got := soon(t, s.system, burns)
		require.ErrorIs(t, got.err, activeobject.ErrStopped)
		require.ErrorIs(t, got.err, io.ErrClosedPipe)
		require.ErrorIs(t, got.err, io.ErrUnexpectedEOF)
		soon(t, s.system, o.Stop())
		require.EqualValues(t, 4, f.made.Load())
	})
}

func TestAnObjectIsRestartedAfterAWhileToo(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		o := supervised(t, s, ls, &factory{}, proto.NewExponentialBackoffStrategy(time.Hour, time.Millisecond))
		for made := 2; made < 5; made++ {
			_, err := ls.crash.Call(background, o, "bang")
			require.Error(t, err)
			goesOn(t, s, ls, o, made)
		}
	})
}

func TestASupervisorThatFailsHasTheObjectStopped(t *testing.T) {
	ls := newLanterns()
	for name, fail := range map[string]func(){"panic": func() { panic("no idea") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *scene) {
				o := supervised(t, s, ls, &factory{}, proto.NewOneForOneStrategy(1, time.Hour, func(any) proto.Directive { fail(); return 0 }))
				burns := calling(background, o, ls.burn, 1)
				waiting(t, o, ls.burn, 1)
				_, err := ls.crash.Call(background, o, io.ErrUnexpectedEOF)
				require.Error(t, err)
				got := soon(t, s.system, burns)
				require.ErrorIs(t, got.err, activeobject.ErrStopped)
				require.ErrorIs(t, got.err, io.ErrUnexpectedEOF)
			})
		})
	}
}

func TestAnErrorAndARefusalAreNoFailures(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		j := newJudge()
		o := supervised(t, s, ls, &factory{}, j)
		_, err := ls.act.Call(background, o, func(context.Context) error { return io.EOF })
		require.ErrorIs(t, err, io.EOF)
		_, err = ls.burn.Try(background, o, 1)
		require.ErrorIs(t, err, activeobject.ErrRefused)
		ctx, cancel := context.WithCancel(background)
		c := calling(ctx, o, ls.burn, 1)
		waiting(t, o, ls.burn, 1)
		cancel()
		require.ErrorIs(t, soon(t, s.system, c).err, context.Canceled)
		goesOn(t, s, ls, o, 1)
		require.Empty(t, j.cases)
	})
}

func TestAnObjectWithoutASupervisorIsKept(t *testing.T) {
	ls := newLanterns()
	for name, fault := range ls.faults() {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *scene) {
				o, err := activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, s.options...)
				require.NoError(t, err)
				require.NotNil(t, o.PID())
				require.Error(t, soon(t, s.system, fault(t, s, o)).err)
				goesOn(t, s, ls, o, 1)
			})
		})
	}
}

// tell sends a system message, as any code can.
func tell(s *scene, pid *actor.PID, message any) {
	process, _ := s.system.Actors().ProcessRegistry.Get(pid)
	process.SendSystemMessage(pid, message)
}

func TestAnybodyMaySuspendAndResumeAnObject(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ls.Type, &lantern{made: 1})
		release := braked(t, s, o, ls.hold)
		tell(s, o.PID(), &proto.SuspendMailbox{})
		eventually(t, "it is suspended", func() bool { return o.Explain().Suspended != "" })
		release() // what runs finishes
		c := calling(background, o, ls.made, nil)
		waiting(t, o, ls.made, 1)
		answer := s.system.Actors().Root.RequestFuture(o.PID(), &actor.Invoke{Operation: "made"}, patience)
		waiting(t, o, ls.made, 2)
		require.Empty(t, o.Explain().Running)
		tell(s, o.PID(), &proto.ResumeMailbox{})
		require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, c))
		reply, err := answer.Result()
		require.NoError(t, err)
		require.Equal(t, &actor.Reply{Value: 1}, reply)
		goesOn(t, s, ls, o, 1)
	})
}

func TestARestartOfAnObjectWithoutAFactoryIsIgnored(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ls.Type, &lantern{made: 1})
		tell(s, o.PID(), &proto.SuspendMailbox{})
		eventually(t, "it is suspended", func() bool { return o.Explain().Suspended != "" })
		c := calling(background, o, ls.made, nil)
		tell(s, o.PID(), &proto.Restart{})
		require.Equal(t, outcome[int]{1, nil}, soon(t, s.system, c))
	})
}

func TestARestartWaitsForTheBodyThatRuns(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		f := &factory{}
		o := supervised(t, s, ls, f, newJudge())
		release := braked(t, s, o, ls.hold)
		tell(s, o.PID(), &proto.Restart{})
		c := calling(background, o, ls.made, nil)
		eventually(t, "it is suspended", func() bool { return o.Explain().Suspended != "" })
		require.EqualValues(t, 1, f.made.Load())
		require.Empty(t, c)
		release()
		require.Equal(t, outcome[int]{2, nil}, soon(t, s.system, c))
	})
}

// The directives and ends that can meet.
func TestStepsThatMeet(t *testing.T) {
	ls := newLanterns()
	stopped := func(t *testing.T, s *scene, c <-chan outcome[int]) {
		t.Helper()
		require.ErrorIs(t, soon(t, s.system, c).err, activeobject.ErrStopped)
	}
	t.Run("stop while suspended", func(t *testing.T) {
		everywhere(t, func(t *testing.T, s *scene) {
			o := newObject(t, s, ls.Type, &lantern{})
			tell(s, o.PID(), &proto.SuspendMailbox{})
			eventually(t, "it is suspended", func() bool { return o.Explain().Suspended != "" })
			c := calling(background, o, ls.made, nil)
			waiting(t, o, ls.made, 1)
			soon(t, s.system, o.Stop())
			stopped(t, s, c)
		})
	})
	t.Run("stop while undecided", func(t *testing.T) {
		everywhere(t, func(t *testing.T, s *scene) {
			j := newJudge()
			o := supervised(t, s, ls, &factory{}, j)
			ls.crash.Call(background, o, "bang")
			c := calling(background, o, ls.made, nil)
			waiting(t, o, ls.made, 1)
			verdict := soon(t, s.system, j.cases)
			soon(t, s.system, o.Stop())
			stopped(t, s, c)
			verdict.supervisor.RestartChildren(verdict.child) // too late
			stopped(t, s, calling(background, o, ls.made, nil))
		})
	})
	t.Run("failure while suspended", func(t *testing.T) {
		everywhere(t, func(t *testing.T, s *scene) {
			j := newJudge()
			o := supervised(t, s, ls, &factory{}, j)
			entered, let := make(chan struct{}), make(chan struct{})
			runs := calling(background, o, ls.act, func(context.Context) error { close(entered); <-let; panic("late") })
			soon(t, s.system, entered)
			tell(s, o.PID(), &proto.SuspendMailbox{})
			eventually(t, "it is suspended", func() bool { return o.Explain().Suspended != "" })
			close(let)
			require.Error(t, soon(t, s.system, runs).err)
			verdict := soon(t, s.system, j.cases)
			verdict.supervisor.RestartChildren(verdict.child)
			goesOn(t, s, ls, o, 2)
		})
	})
	t.Run("failure while stopping", func(t *testing.T) {
		everywhere(t, func(t *testing.T, s *scene) {
			j := newJudge()
			o := supervised(t, s, ls, &factory{}, j)
			entered, let := make(chan struct{}), make(chan struct{})
			runs := calling(background, o, ls.act, func(context.Context) error { close(entered); <-let; panic("late") })
			soon(t, s.system, entered)
			ended := o.Stop()
			close(let)
			var p *activeobject.PanicError
			require.ErrorAs(t, soon(t, s.system, runs).err, &p)
			soon(t, s.system, ended)
			require.Empty(t, j.cases, "there is nothing left to decide")
		})
	})
	t.Run("restart of a poisoned object", func(t *testing.T) {
		everywhere(t, func(t *testing.T, s *scene) {
			j := newJudge()
			f := &factory{}
			o := supervised(t, s, ls, f, j)
			release := braked(t, s, o, ls.hold)
			crashes := calling(background, o, ls.crash, any("bang"))
			waiting(t, o, ls.crash, 1)
			served := calling(background, o, ls.made, nil)
			waiting(t, o, ls.made, 1)
			hopeless := calling(background, o, ls.burn, 1)
			waiting(t, o, ls.burn, 1)
			end := s.system.Actors().Root.PoisonFuture(o.PID())
			eventually(t, "it is poisoned", func() bool { return o.Explain().Stopped })
			release()
			require.Error(t, soon(t, s.system, crashes).err)
			verdict := soon(t, s.system, j.cases)
			require.Empty(t, served, "it waits for the decision, not for its end")
			verdict.supervisor.RestartChildren(verdict.child)
			require.Equal(t, outcome[int]{2, nil}, soon(t, s.system, served))
			stopped(t, s, hopeless)
			require.NoError(t, end.Wait())
		})
	})
	t.Run("restart of a stopping object", func(t *testing.T) {
		everywhere(t, func(t *testing.T, s *scene) {
			f := &factory{}
			o := supervised(t, s, ls, f, newJudge())
			release := braked(t, s, o, ls.hold)
			pid := o.PID()
			tell(s, pid, &proto.Restart{})
			ended := o.Stop()
			tell(s, pid, &proto.Restart{})
			release()
			soon(t, s.system, ended)
			eventually(t, "its actor has ended", func() bool {
				_, lives := s.system.Actors().ProcessRegistry.GetLocal(pid.Id)
				return !lives
			})
			require.EqualValues(t, 1, f.made.Load())
		})
	})
	t.Run("two restarts", func(t *testing.T) {
		everywhere(t, func(t *testing.T, s *scene) {
			o := supervised(t, s, ls, &factory{}, newJudge())
			release := braked(t, s, o, ls.hold)
			tell(s, o.PID(), &proto.Restart{})
			tell(s, o.PID(), &proto.Restart{})
			release()
			eventually(t, "it is the third", func() bool {
				n, err := ls.made.Call(background, o, nil)
				return err == nil && n == 3
			})
		})
	})
	t.Run("a system that closes while undecided", func(t *testing.T) {
		everywhere(t, func(t *testing.T, s *scene) {
			j := newJudge()
			o := supervised(t, s, ls, &factory{}, j)
			ls.crash.Call(background, o, "bang")
			c := calling(background, o, ls.made, nil)
			waiting(t, o, ls.made, 1)
			require.NoError(t, s.system.Close(background))
			stopped(t, s, c)
		})
	})
}

func TestObjectsAreChildrenOfActors(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		var a, b *activeobject.Object[lantern]
		made := make(chan error, 1)
		root := s.system.Actors().Root
		parent := root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
			if _, ok := c.Message().(*proto.Started); ok {
				var err, err2 error
				a, err = activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, append(s.options, activeobject.Parent(c), activeobject.Name("a"))...)
				b, err2 = activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, append(s.options, activeobject.Parent(c))...)
				_, err3 := activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, append(s.options, activeobject.Parent(c), activeobject.Name("a"))...)
				var taken *actor.NameError
				if !errors.As(err3, &taken) {
					err3 = errors.New("two children of one name")
				} else {
					err3 = nil
				}
				made <- errors.Join(err, err2, err3)
			}
		}, proto.WithSupervisor(proto.NewAllForOneStrategy(10, time.Hour, proto.DefaultDecider))))
		require.NoError(t, soon(t, s.system, made))
		require.Equal(t, parent.Id+"/a", a.PID().Id)

		// All for one: the sibling, which has not failed, finishes what runs, and is
		// restarted too.
		release := braked(t, s, b, ls.hold)
		_, err := ls.crash.Call(background, a, "bang")
		require.Error(t, err)
		goesOn(t, s, ls, a, 2)
		waits := calling(background, b, ls.made, nil)
		eventually(t, "it is suspended", func() bool { return b.Explain().Suspended != "" })
		release()
		require.Equal(t, outcome[int]{2, nil}, soon(t, s.system, waits))

		// With the parent they end.
		end := root.StopFuture(parent)
		require.NoError(t, end.Wait())
		for _, o := range []*activeobject.Object[lantern]{a, b} {
			require.ErrorIs(t, soon(t, s.system, calling(background, o, ls.made, nil)).err, activeobject.ErrStopped)
		}
	})
}

func TestObjectsAreChildrenOfObjects(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		j := newJudge()
		f := &factory{}
		parent, err := activeobject.NewFrom(s.system, ls.Type, f.make, append(s.options, activeobject.Supervisor(newJudge()), activeobject.ChildSupervisor(j))...)
		require.NoError(t, err)
		spawn := func() (o *activeobject.Object[lantern], err error) {
			return activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, append(s.options, activeobject.Parent(parent))...)
		}
		var child *activeobject.Object[lantern]
		make := calling(background, parent, ls.act, func(context.Context) (err error) { child, err = spawn(); return err })
		require.NoError(t, soon(t, s.system, make).err, "a body may make children")
		require.Contains(t, child.PID().Id, parent.PID().Id+"/")

		ls.crash.Call(background, child, io.ErrUnexpectedEOF)
		c := soon(t, s.system, j.cases)
		require.ErrorIs(t, c.reason, io.ErrUnexpectedEOF)
		// The parent's turn goes on though a stop waits for a body of it, which waits
		// for the child that is to be judged.
		entered := newBrake()
		waits := calling(background, parent, ls.act, func(ctx context.Context) error {
			close(entered.entered)
			_, err := ls.made.Call(ctx, child, nil)
			return err
		})
		soon(t, s.system, entered.entered)
		waiting(t, child, ls.made, 1)
		ended := parent.Stop()
		_, err = spawn()
		var refused *actor.SpawnError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, activeobject.ErrStopped)
		require.Equal(t, parent.Name(), refused.Parent)
		c.supervisor.RestartChildren(c.child)
		require.NoError(t, soon(t, s.system, waits).err)
		soon(t, s.system, ended)
		eventually(t, "the child has ended with its parent", func() bool {
			_, err := ls.made.Call(background, child, nil)
			return errors.Is(err, activeobject.ErrStopped)
		})
		_, err = spawn()
		require.ErrorIs(t, err, activeobject.ErrStopped)
	})
}

// A failure that is passed on is decided above, for the child too.
func TestAFailureMayBeDecidedByTheGrandparent(t *testing.T) {
	ls := newLanterns()
	pass := proto.NewOneForOneStrategy(10, time.Hour, func(any) proto.Directive { return proto.EscalateDirective })
	everywhere(t, func(t *testing.T, s *scene) {
		for directive, decide := range map[string]func(j judgement){
			"resume":  func(j judgement) { j.supervisor.ResumeChildren(j.child) },
			"restart": func(j judgement) { j.supervisor.RestartChildren(j.child) },
			"stop":    func(j judgement) { j.supervisor.StopChildren(j.child) },
		} {
			j := newJudge()
			parent, err := activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, append(s.options, activeobject.Supervisor(j), activeobject.ChildSupervisor(pass))...)
			require.NoError(t, err)
			child, err := activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, append(s.options, activeobject.Parent(parent))...)
			require.NoError(t, err)
			ls.crash.Call(background, child, io.ErrUnexpectedEOF)
			c := soon(t, s.system, j.cases)
			require.Equal(t, parent.PID(), c.child)
			require.ErrorIs(t, c.reason, io.ErrUnexpectedEOF)
			waits := calling(background, child, ls.made, nil)
			waiting(t, child, ls.made, 1)
			decide(c)
			got := soon(t, s.system, waits)
			switch directive {
			case "resume":
				require.Equal(t, outcome[int]{1, nil}, got)
				goesOn(t, s, ls, parent, 1)
			case "restart":
				require.ErrorIs(t, got.err, activeobject.ErrStopped)
				goesOn(t, s, ls, parent, 2)
			default:
				require.ErrorIs(t, got.err, activeobject.ErrStopped)
				soon(t, s.system, parent.Stop())
			}
		}
	})
}

// The parent has no supervisor and no factory: what is passed on to it ends the child,
// and nothing waits for ever.
func TestAFailureWithoutADecisionEndsTheChild(t *testing.T) {
	ls := newLanterns()
	pass := proto.NewOneForOneStrategy(10, time.Hour, func(any) proto.Directive { return proto.EscalateDirective })
	everywhere(t, func(t *testing.T, s *scene) {
		parent := newObject(t, s, ls.Type, &lantern{made: 1}, activeobject.ChildSupervisor(pass))
		child, err := activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, append(s.options, activeobject.Parent(parent))...)
		require.NoError(t, err)
		ls.crash.Call(background, child, io.ErrUnexpectedEOF)
		require.ErrorIs(t, soon(t, s.system, calling(background, child, ls.made, nil)).err, activeobject.ErrStopped)
		goesOn(t, s, ls, parent, 1)
	})
}

// Any code may request the restart of an object that has a factory. If the restart fails and there
// is no supervisor, protoactor's default decides.
func TestARestartWithoutASupervisorFailsPromptly(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		f := &factory{}
		o, err := activeobject.NewFrom(s.system, ls.Type, f.make, s.options...)
		require.NoError(t, err)
		pid := o.PID()
		f.fails(func() error { return io.ErrClosedPipe })
		burns := calling(background, o, ls.burn, 1)
		waiting(t, o, ls.burn, 1)
		tell(s, pid, &proto.Restart{})
		got := soon(t, s.system, burns)
		require.ErrorIs(t, got.err, activeobject.ErrStopped)
		require.ErrorIs(t, got.err, io.ErrClosedPipe)
	})
}

// A body that waits for the child that it makes does not deadlock with a step that
// waits for the body; and a restart ends the children first.
func TestARestartEndsTheChildrenOfAnObject(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		j := newJudge()
		parent := supervised(t, s, ls, &factory{}, j)
		spawn := func() (*activeobject.Object[lantern], error) {
			return activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, append(s.options, activeobject.Parent(parent))...)
		}
		b := newBrake()
		var child *activeobject.Object[lantern]
		runs := calling(background, parent, ls.act, func(context.Context) (err error) {
			close(b.entered)
			<-b.let
			child, err = spawn()
			return err
		})
		soon(t, s.system, b.entered)
		tell(s, parent.PID(), &proto.Restart{})
		eventually(t, "it is suspended", func() bool { return parent.Explain().Suspended != "" })
		close(b.let)
		require.NoError(t, soon(t, s.system, runs).err)
		eventually(t, "the child has ended", func() bool { // it may have run before
			_, err := ls.made.Call(background, child, nil)
			return errors.Is(err, activeobject.ErrStopped)
		})
		goesOn(t, s, ls, parent, 2)

		// As long as a child has not ended, the restart waits, and others are refused.
		child, err := spawn()
		require.NoError(t, err)
		release := braked(t, s, child, ls.hold)
		tell(s, parent.PID(), &proto.Restart{})
		eventually(t, "the children are to end", func() bool { return child.Explain().Stopped })
		waits := calling(background, parent, ls.made, nil)
		waiting(t, parent, ls.made, 1)
		_, err = spawn()
		require.ErrorIs(t, err, actor.ErrRestarting)
		require.Empty(t, waits)
		release()
		require.Equal(t, outcome[int]{3, nil}, soon(t, s.system, waits))
		_, err = spawn()
		require.NoError(t, err)
	})
}

func TestAnObjectCannotBeMadeUnderOneThatHasEnded(t *testing.T) {
	ls := newLanterns()
	s := &scene{system: newSystem(t)}
	contexts := make(chan proto.Context, 1)
	root := s.system.Actors().Root
	pid := root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
		if _, ok := c.Message().(*proto.Started); ok {
			contexts <- c
		}
	}))
	c := soon(t, s.system, contexts)
	require.NoError(t, root.StopFuture(pid).Wait())
	var refused *actor.SpawnError
	_, err := activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, activeobject.Parent(c))
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, activeobject.ErrStopped)

	elsewhere := newSystem(t)
	o := supervised(t, &scene{system: elsewhere}, ls, &factory{}, newJudge())
	_, err = activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, activeobject.Parent(o))
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, actor.ErrElsewhere)
	require.Empty(t, s.system.Explain())
	for o := range s.system.Objects() {
		t.Errorf("%v is left behind", o)
	}
}

func TestNewFromMakesTheFirstStateByTheFactory(t *testing.T) {
	ls := newLanterns()
	s := &scene{system: newSystem(t)}
	refuse := func(err error, option string) {
		t.Helper()
		var o *activeobject.OptionError
		require.ErrorAs(t, err, &o)
		require.Equal(t, option, o.Option)
	}
	_, err := activeobject.NewFrom[lantern](s.system, ls.Type, nil)
	refuse(err, "factory")
	_, err = activeobject.New(s.system, ls.Type, &lantern{}, activeobject.Supervisor(newJudge()))
	refuse(err, "Supervisor")
	_, err = activeobject.New(s.system, ls.Type, &lantern{}, activeobject.Parent(s.system.Actors().Root))
	refuse(err, "Parent")
	_, err = activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, activeobject.Parent(nil))
	refuse(err, "Parent")
	_, err = activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, activeobject.Supervisor(nil))
	refuse(err, "Supervisor")
	_, err = activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, activeobject.ChildSupervisor(nil))
	refuse(err, "ChildSupervisor")

	fails := func(way func() error, cause error) {
		t.Helper()
		f := &factory{}
		f.fails(way)
		_, err := activeobject.NewFrom(s.system, ls.Type, f.make, activeobject.Name("x"), activeobject.Supervisor(newJudge()))
		var fe *activeobject.FactoryError
		require.ErrorAs(t, err, &fe)
		require.Equal(t, "lantern", fe.Type)
		if cause != nil {
			require.ErrorIs(t, err, cause)
		}
	}
	fails(func() error { return io.EOF }, io.EOF)
	fails(func() error { panic(io.EOF) }, io.EOF)
	_, err = activeobject.NewFrom(s.system, ls.Type, func() (*lantern, error) { return nil, nil })
	require.ErrorContains(t, err, "no state")
	for o := range s.system.Objects() {
		t.Errorf("%v is left behind", o)
	}
	o, err := activeobject.NewFrom(s.system, ls.Type, (&factory{}).make, activeobject.Name("x"), activeobject.Supervisor(newJudge()))
	require.NoError(t, err, "the name is free")
	goesOn(t, s, ls, o, 1)
}

func TestCloseServesThoseThatWaitAndCanStart(t *testing.T) {
	ls := newLanterns()
	for name, options := range map[string][]activeobject.Option{"no actor": nil, "an actor": {activeobject.Name("lantern")}} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *scene) {
				o := newObject(t, s, ls.Type, &lantern{made: 1}, options...)
				release := braked(t, s, o, ls.hold)
				served := calling(background, o, ls.fill, 1)
				waiting(t, o, ls.fill, 1)
				burns := calling(background, o, ls.burn, 1)
				waiting(t, o, ls.burn, 1)
				hopeless := calling(background, o, ls.burn, 2)
				waiting(t, o, ls.burn, 2)
				closed := async(func() (None, error) { return nil, o.Close(background) })
				eventually(t, "it is closed", func() bool { return o.Explain().Stopped })
				_, err := ls.made.Call(background, o, nil)
				require.ErrorIs(t, err, activeobject.ErrStopped)
				require.Empty(t, closed)
				release()
				require.NoError(t, soon(t, s.system, served).err)
				require.NoError(t, soon(t, s.system, burns).err)
				require.ErrorIs(t, soon(t, s.system, hopeless).err, activeobject.ErrStopped)
				require.NoError(t, soon(t, s.system, closed).err)
				require.NoError(t, o.Close(background), "twice is fine")
				if name == "an actor" {
					eventually(t, "its actor has ended", func() bool {
						_, lives := s.system.Actors().ProcessRegistry.GetLocal("lighthouse")
						return !lives
					})
				}
			})
		})
	}
}

func TestCloseStopsTheObjectWhenItsContextEnds(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ls.Type, &lantern{})
		release := braked(t, s, o, ls.hold)
		waits := calling(background, o, ls.made, nil)
		waiting(t, o, ls.made, 1)
		ctx, cancel := context.WithCancel(background)
		closed := async(func() (None, error) { return nil, o.Close(ctx) })
		eventually(t, "it is closed", func() bool { return o.Explain().Stopped })
		require.Empty(t, waits, "it is to be served")
		cancel()
		require.ErrorIs(t, soon(t, s.system, closed).err, context.Canceled)
		require.ErrorIs(t, soon(t, s.system, waits).err, activeobject.ErrStopped)
		require.Len(t, o.Explain().Running, 1)
		release()
	})
}

func TestABodyCannotWaitForTheEndOfItsOwnObject(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ls.Type, &lantern{made: 1})
		var d *activeobject.DeadlockError
		require.ErrorAs(t, soon(t, s.system, calling(background, o, ls.act, o.Close)).err, &d)
		goesOn(t, s, ls, o, 1)
	})
}

// A watcher of an object hears of its end after the last body.
func TestWatchersHearOfTheEndAfterTheLastBody(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		o := newObject(t, s, ls.Type, &lantern{})
		pid := o.PID()
		watches, heard := make(chan None, 1), make(chan None, 1)
		root := s.system.Actors().Root
		watcher := root.Spawn(proto.PropsFromFunc(func(c proto.Context) {
			switch c.Message().(type) {
			case *proto.Started:
				c.Watch(pid)
				watches <- nil
			case *proto.Terminated:
				heard <- nil
			}
		}))
		soon(t, s.system, watches)
		release := braked(t, s, o, ls.hold)
		tell(s, pid, &proto.Stop{})
		late := root.RequestFuture(pid, &actor.Invoke{Operation: "made"}, patience)
		reply, err := late.Result()
		require.NoError(t, err, "one that comes now is answered")
		require.ErrorIs(t, reply.(*actor.Reply).Err, activeobject.ErrStopped)
		require.Empty(t, heard)
		release()
		soon(t, s.system, heard)
		require.NoError(t, root.StopFuture(watcher).Wait())
	})
}

// Many failures and restarts, with callers all the time: every request is answered,
// no state is seen by two generations at once.
func TestObjectsThatAreRestartedAllTheTimeLoseNoRequest(t *testing.T) {
	ls := newLanterns()
	everywhere(t, func(t *testing.T, s *scene) {
		f := &factory{oil: 1 << 30}
		o := supervised(t, s, ls, f, proto.NewRestartingStrategy())
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				for range 200 {
					var err error
					switch i {
					case 0:
						_, err = ls.crash.Call(background, o, "bang")
						if p := (*activeobject.PanicError)(nil); errors.As(err, &p) {
							err = nil
						}
					case 1:
						_, err = ls.burn.Send(background, o, i).Await(background)
					case 2:
						_, err = ls.pour.Call(background, o, i)
					case 3:
						ctx, cancel := context.WithTimeout(background, 50*time.Microsecond)
						if _, err = ls.burn.Call(ctx, o, i); errors.Is(err, context.DeadlineExceeded) {
							err = nil
						}
						cancel()
					case 4:
						if _, err = ls.made.Try(background, o, nil); errors.Is(err, activeobject.ErrRefused) {
							err = nil
						}
					default:
						_, err = ls.fill.Call(background, o, i)
					}
					if err != nil {
						t.Errorf("caller %d: %v", i, err)
					}
				}
			})
		}
		done := make(chan None)
		go func() { all.Wait(); close(done) }()
		soon(t, s.system, done)
		goesOn(t, s, ls, o, 201)
	})
}
