package activeobject_test

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// fuse is the shared object of the tests of what is logged.
type fuse struct{ hot bool }

type fuses struct {
	*activeobject.Type[fuse]
	light, enter, wait *activeobject.Operation[fuse, func(), None]
}

func newFuses() *fuses {
	t := activeobject.NewType[fuse]("fuse")
	return &fuses{
		Type:  t,
		light: activeobject.Procedure(t, "light", func(_ *fuse, f func()) (None, error) { f(); return nil, nil }),
		enter: activeobject.Entry(t, "enter", func(*fuse, func()) (None, error) { return nil, nil }).
			WhenArg("dry", func(_ *fuse, f func()) bool { f(); return true }),
		wait: activeobject.Entry(t, "wait", func(*fuse, func()) (None, error) { return nil, nil }).
			When("hot", func(f *fuse) bool {
				if f.hot {
					burn()
				}
				return false
			}),
	}
}

// entry is something that was logged.
type entry struct {
	slog.Level
	message string
	values  map[string]any
}

// logged is a log handler that keeps the warnings and errors, and first calls what it is
// given.
type logged struct {
	first func()
	mu    sync.Mutex
	all   []entry
}

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	e := entry{Level: r.Level, message: r.Message, values: map[string]any{}}
	r.Attrs(func(a slog.Attr) bool { e.values[a.Key] = a.Value.Any(); return true })
	if l.first != nil {
		l.first()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
	return nil
}

func (l *logged) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *logged) WithGroup(string) slog.Handler                    { return l }

// entries returns what was logged until the system has been closed.
func (l *logged) entries(t *testing.T, system *actor.System) []entry {
	t.Helper()
	closed := async(func() (None, error) { return nil, system.Close(background) })
	require.NoError(t, soon(t, system, closed).err)
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// burn is what fails.
func burn() { panic("smoke") }

func TestAPanicOfAUsersCodeIsLoggedOnceWithItsStackAlsoWhereACallerIsTold(t *testing.T) {
	fs := newFuses()
	call := func(op *activeobject.Operation[fuse, func(), None]) func(*activeobject.Object[fuse]) {
		return func(o *activeobject.Object[fuse]) { op.Call(background, o, burn) }
	}
	idle := func(o *activeobject.Object[fuse]) { fs.light.Call(background, o, func() {}) }
	for name, c := range map[string]struct {
		options   []activeobject.Option
		do        func(o *activeobject.Object[fuse])
		message   string
		operation string
	}{
		"body, called":    {do: call(fs.light), message: "sluice: f.light panicked: smoke", operation: "light"},
		"guard, called":   {do: call(fs.enter), message: `sluice: guard "dry" of f.enter panicked: smoke`, operation: "enter"},
		"body, requested": {do: func(o *activeobject.Object[fuse]) { fs.light.Send(background, o, burn).Await(background) }, message: "sluice: f.light panicked: smoke", operation: "light"},
		"body, told":      {do: func(o *activeobject.Object[fuse]) { fs.light.Tell(background, o, burn); idle(o) }, message: "sluice: f.light panicked: smoke", operation: "light"},
		"guard, tried":    {do: func(o *activeobject.Object[fuse]) { fs.enter.Try(background, o, burn) }, message: `sluice: guard "dry" of f.enter panicked: smoke`, operation: "enter"},
		"Queue": {[]activeobject.Option{activeobject.Interceptors(activeobject.Interceptor{
			Queue: func(context.Context, activeobject.Intercepted) (context.Context, error) { panic("smoke") },
		})}, idle, "sluice: f.light panicked: smoke", "light"},
		"Run": {[]activeobject.Option{activeobject.Interceptors(activeobject.Interceptor{
			Run: func(context.Context, activeobject.Intercepted, func() error) error { panic("smoke") },
		})}, idle, "sluice: f.light panicked: smoke", "light"},
		"Done": {[]activeobject.Option{activeobject.Interceptors(activeobject.Interceptor{
			Done: func(context.Context, activeobject.Intercepted, error) { panic("smoke") },
		})}, idle, "sluice: f.light panicked: smoke", "light"},
		"policy": {[]activeobject.Option{activeobject.ByOrder(func(a, b *activeobject.Candidate) bool { panic("smoke") })},
			func(o *activeobject.Object[fuse]) {
				var all []activeobject.Future[None]
				fs.light.Call(background, o, func() {
					all = append(all, fs.light.Send(background, o, func() {}), fs.light.Send(background, o, func() {}))
				})
				for _, f := range all {
					f.Await(background)
				}
			}, `sluice: f: policy "the user's order" panicked: smoke`, "light"},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *scene) {
				l := &logged{}
				s.system = newSystem(t, actor.Logger(slog.New(l)))
				o := newObject(t, s, fs.Type, &fuse{}, append(c.options, activeobject.Name("f"))...)
				c.do(o)
				all := l.entries(t, s.system)
				require.Len(t, all, 1)
				require.Equal(t, slog.LevelError, all[0].Level)
				require.Equal(t, c.message, all[0].message)
				require.Equal(t, "f", all[0].values["object"])
				require.Equal(t, c.operation, all[0].values["operation"])
				require.Contains(t, all[0].values, "request")
				require.Contains(t, all[0].values["stack"], "report_test.go", "it shows the code that failed")
			})
		})
	}
}

func TestAGuardThatFailsManyIsLoggedOnce(t *testing.T) {
	fs := newFuses()
	everywhere(t, func(t *testing.T, s *scene) {
		l := &logged{}
		s.system = newSystem(t, actor.Logger(slog.New(l)))
		state := &fuse{}
		o := newObject(t, s, fs.Type, state)
		var all []activeobject.Future[None]
		for range 10 {
			all = append(all, fs.wait.Send(background, o, func() {}))
		}
		fs.light.Call(background, o, func() { state.hot = true })
		for _, f := range all {
			require.ErrorAs(t, soon(t, s.system, awaiting(background, f)).err, new(*activeobject.GuardError))
		}
		logged := l.entries(t, s.system)
		require.Len(t, logged, 1)
		require.Equal(t, "wait", logged[0].values["operation"])
	})
}

func TestAContinuationThatPanicsIsLoggedOnceWithTheRequestThatItFollows(t *testing.T) {
	fs := newFuses()
	l := &logged{}
	system := newSystem(t, actor.Logger(slog.New(l)))
	o := activeobject.Must(activeobject.New(system, fs.Type, &fuse{}, activeobject.Name("f"), activeobject.NoFastPath()))
	let := make(chan struct{})
	busy := calling(background, o, fs.light, func() { <-let })
	eventually(t, "it runs", func() bool { return len(o.Explain().Running) == 1 })
	next := fs.light.Send(background, o, func() {}).OnDone(func(None, error) { burn() })
	close(let)
	soon(t, system, busy)
	_, err := next.Await(background)
	require.ErrorAs(t, err, new(*actor.ContinuationError))
	all := l.entries(t, system)
	require.Len(t, all, 1)
	require.Equal(t, slog.LevelError, all[0].Level)
	require.Equal(t, err.Error(), all[0].message)
	require.Equal(t, "f", all[0].values["object"])
	require.Equal(t, "light", all[0].values["operation"])
	require.EqualValues(t, 2, all[0].values["request"])
	require.Contains(t, all[0].values["stack"], "report_test.go")
}

// The handler calls the object that the entry is about, blocks, panics, and ends its
// goroutine: none of it affects callers of the object.
func TestALogHandlerMayDoWhatItLikes(t *testing.T) {
	fs := newFuses()
	for name, guard := range map[string]*activeobject.Operation[fuse, func(), None]{"body": fs.light, "guard": fs.enter} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *scene) {
				l := &logged{}
				s.system = newSystem(t, actor.Logger(slog.New(l)))
				o := newObject(t, s, fs.Type, &fuse{})
				n := 0
				let := make(chan struct{})
				l.first = func() {
					fs.enter.Call(background, o, func() {})
					switch n++; n {
					case 1:
						<-let
					case 2:
						panic("the disk is full")
					case 3:
						runtime.Goexit()
					}
				}
				for range 4 {
					require.Error(t, soon(t, s.system, calling(background, o, guard, burn)).err)
				}
				require.NoError(t, soon(t, s.system, calling(background, o, guard, func() {})).err, "no call waits for the handler")
				close(let)
				require.Len(t, l.entries(t, s.system), 2, "the first and the last")
			})
		})
	}
}

func TestALogHandlerThatBlocksDoesNotTakeTheMemory(t *testing.T) {
	fs := newFuses()
	l := &logged{}
	system := newSystem(t, actor.Logger(slog.New(l)))
	let := make(chan struct{})
	l.first = func() { <-let }
	o := activeobject.Must(activeobject.New(system, fs.Type, &fuse{}))
	for range 3000 {
		fs.light.Call(background, o, burn)
	}
	close(let)
	all := l.entries(t, system)
	require.Less(t, len(all), 1100)
	lost := all[len(all)-1]
	require.Equal(t, "sluice: failures were not logged, as the log handler does not keep up", lost.message)
	require.Equal(t, 3000, len(all)-1+int(lost.values["entries"].(int64)), "each is logged or counted")
}

func TestWhatASupervisorDecidesIsLogged(t *testing.T) {
	fs := newFuses()
	for name, c := range map[string]struct {
		directive proto.Directive
		decision  string
	}{
		"restart": {proto.RestartDirective, "restarted"}, "resume": {proto.ResumeDirective, "resumed"},
		"stop": {proto.StopDirective, "stopped"}, "escalate": {proto.EscalateDirective, "stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &logged{}
			system := newSystem(t, actor.Logger(slog.New(l)))
			strategy := proto.NewOneForOneStrategy(10, time.Second, func(any) proto.Directive { return c.directive })
			o := activeobject.Must(activeobject.NewFrom(system, fs.Type, func() (*fuse, error) { return &fuse{}, nil },
				activeobject.Name("f"), activeobject.NoFastPath(), activeobject.Supervisor(strategy)))
			_, err := fs.light.Call(background, o, func() {})
			require.NoError(t, err)
			_, err = fs.light.Call(background, o, burn)
			require.ErrorAs(t, err, new(*activeobject.PanicError))
			fs.light.Call(background, o, func() {}) // waits for the decision
			all := l.entries(t, system)
			require.Len(t, all, 2)
			require.Equal(t, slog.LevelError, all[0].Level)
			require.Equal(t, entry{slog.LevelWarn, "sluice: f is " + c.decision + " after a failure", map[string]any{
				"object": "f", "decision": c.decision, "operation": "light", "request": uint64(2), "reason": err.Error(),
			}}, all[1])
		})
	}
}
