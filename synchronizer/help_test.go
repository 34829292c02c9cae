package synchronizer_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/synchronizer"
)

// A desk has a leaf operation that does what its argument says, and one that may be held on
// to. Both exclude everything.
type desk struct{ notes []string }

type note struct {
	text string
	then func() (None, error)
}

var (
	desks = activeobject.NewType[desk]("desk")
	leave = activeobject.Procedure(desks, "leave", func(d *desk, n note) (None, error) {
		d.notes = append(d.notes, n.text)
		if n.then != nil {
			return n.then()
		}
		return none, nil
	})
	hold = activeobject.ProcedureCtx(desks, "hold", func(_ *desk, _ context.Context, until func()) (None, error) {
		until()
		return none, nil
	})
)

// helped has the note of a first caller granted while a second caller is about to wait behind it,
// again and again until the second caller's goroutine has run the first note. Each time check gets
// what the first call returned, and looks at the desk, whichever goroutine has run the note.
func helped(t *testing.T, then func(other *activeobject.Object[desk]) (None, error), check func(o, other *activeobject.Object[desk], err error)) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that a goroutine that is woken runs later
	s := newSystem(t)
	var ran string
	until(t, "the second caller helps", func() bool {
		o := activeobject.Must(synchronizer.New(s, desks, &desk{}))
		other := activeobject.Must(synchronizer.New(s, desks, &desk{}))
		first, second, helper := make(chan error, 1), make(chan error, 1), make(chan string, 1)
		go func() {
			helper <- goroutine()
			must(hold.Call(background, o, func() {
				go func() {
					_, err := leave.Call(background, o, note{"first", func() (None, error) {
						ran = goroutine()
						if then == nil {
							return none, nil
						}
						return then(other)
					}})
					first <- err
				}()
				objecttest.Waiting(t, o, leave, 1)
			}))
			defer func() { second <- nil }() // also if a body that it runs as a helper ends the goroutine
			must(leave.Call(background, o, note{text: "second"}))
		}()
		by := soon(t, helper)
		soon(t, second)
		err := soon(t, first)
		objecttest.Idle(t, o, other)
		check(o, other, err)
		return ran == by
	})
}

func notes(t *testing.T, o *activeobject.Object[desk]) (all []string) {
	t.Helper()
	require.NoError(t, o.View(background, func(d *desk) error { all = d.notes; return nil }))
	return all
}

func TestACallerThatIsAboutToWaitRunsGrantedBodiesThatBlockIt(t *testing.T) {
	helped(t, nil, func(o, _ *activeobject.Object[desk], err error) {
		require.NoError(t, err)
		require.Equal(t, []string{"first", "second"}, notes(t, o))
	})
}

func TestAPanicOnAHelpersGoroutineIsTheRequestsOwn(t *testing.T) {
	helped(t, func(*activeobject.Object[desk]) (None, error) { panic("oh") }, func(o, _ *activeobject.Object[desk], err error) {
		var panicked *mailbox.PanicError
		require.ErrorAs(t, err, &panicked)
		require.Equal(t, []string{"first", "second"}, notes(t, o))
	})
}

func TestGoexitOnALentGoroutineFailsTheRequestAndForsakesTheLenders(t *testing.T) {
	helped(t, func(*activeobject.Object[desk]) (None, error) { runtime.Goexit(); panic("unreachable") }, func(o, _ *activeobject.Object[desk], err error) {
		if err == nil {
			return // its own caller's goroutine has run it, and has ended
		}
		var exited *mailbox.ExitError
		require.ErrorAs(t, err, &exited)
		require.Equal(t, "first", notes(t, o)[0])
	})
}

func TestARequestIsRequeuedFromAHelpersGoroutine(t *testing.T) {
	for _, c := range []struct {
		name        string
		here, there []string
		then        func(o *activeobject.Object[desk]) (None, error)
	}{
		{"to its object", []string{"first", "second", "third"}, nil, func(*activeobject.Object[desk]) (None, error) {
			return leave.Requeue(note{text: "third"})
		}},
		{"to another object", []string{"first", "second"}, []string{"third"}, func(other *activeobject.Object[desk]) (None, error) {
			return leave.RequeueTo(other, note{text: "third"})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			helped(t, c.then, func(o, other *activeobject.Object[desk], err error) {
				require.NoError(t, err)
				require.ElementsMatch(t, c.here, notes(t, o), "the third may come before the second, which may not have arrived yet")
				require.Equal(t, c.there, notes(t, other))
			})
		})
	}
}

func TestAHelperRunsNoRequestWhoseContextHasEnded(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	o := activeobject.Must(synchronizer.New(newSystem(t), desks, &desk{}))
	ctx, cancel := context.WithCancel(background)
	first, ran := make(chan error, 1), ""
	must(hold.Call(background, o, func() {
		go func() {
			_, err := leave.Call(ctx, o, note{"first", func() (None, error) { ran = goroutine(); return none, nil }})
			first <- err
		}()
		objecttest.Waiting(t, o, leave, 1)
	}))
	cancel()
	must(leave.Call(background, o, note{text: "second"}))
	if err := soon(t, first); err != nil {
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []string{"second"}, notes(t, o))
	} else {
		require.NotEqual(t, goroutine(), ran, "it began after the end of its context")
		require.Equal(t, []string{"first", "second"}, notes(t, o))
	}
}

// A caller whose request is blocked by something else parks: the granted request is compatible with
// its own, which may be granted any time.
func TestAHelperRunsOnlyWhatBlocksItsOwnRequest(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	type gate struct{ open bool }
	gates := activeobject.NewType[gate]("gate")
	look := activeobject.Function(gates, "look", func(*gate, None) (string, error) { return goroutine(), nil })
	pass := activeobject.Entry(gates, "pass", activeobject.Plain(func(*gate) {})).When("open", func(g *gate) bool { return g.open })
	work := activeobject.ProcedureCtx(gates, "work", func(_ *gate, _ context.Context, until func()) (None, error) { until(); return none, nil })
	set := activeobject.Procedure(gates, "set", activeobject.Arg(func(g *gate, open bool) { g.open = open }))
	o := activeobject.Must(synchronizer.New(newSystem(t), gates, &gate{}, synchronizer.Conflicts(gates.Conflicts().Compatible(look, pass))))
	type goroutines struct{ caller, body string }
	for range 20 {
		looked, passed := make(chan goroutines, 1), make(chan error, 1)
		go func() {
			must(work.Call(background, o, func() {
				go func() {
					ran, err := look.Call(background, o, none)
					must(none, err)
					looked <- goroutines{goroutine(), ran}
				}()
				objecttest.Waiting(t, o, look, 1)
			}))
			_, err := pass.Call(background, o, none)
			passed <- err
		}()
		w := soon(t, looked)
		require.Equal(t, w.caller, w.body)
		must(set.Call(background, o, true))
		require.NoError(t, soon(t, passed))
		must(set.Call(background, o, false))
	}
}

// A body that ends the goroutine of a helper would keep that goroutine, dying, until its own request
// could run, if that may not be withdrawn.
func TestACallerWhoseRequestIsCommittedDoesNotHelp(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	type gate struct{}
	gates := activeobject.NewType[gate]("gate")
	nothing := activeobject.Procedure(gates, "nothing", activeobject.Plain(func(*gate) {}))
	never := activeobject.Entry(gates, "never", activeobject.Plain(func(*gate) {})).When("never", func(*gate) bool { return false })
	exit := activeobject.Procedure(gates, "exit", activeobject.Plain(func(*gate) { runtime.Goexit() }))
	first := activeobject.Procedure(gates, "first", func(_ *gate, until func()) (None, error) {
		until()
		return never.Requeue(none, activeobject.Commit)
	})
	s := newSystem(t)
	for range 20 {
		o := activeobject.Must(synchronizer.New(s, gates, &gate{}))
		must(nothing.Call(background, o, none)) // from here on the fast path is open
		waiting, exited := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := first.Call(background, o, func() {
				go func() {
					err := error(nil)
					defer func() { exited <- err }()
					_, err = exit.Call(background, o, none)
				}()
				objecttest.Waiting(t, o, exit, 1)
			})
			waiting <- err
		}()
		require.NoError(t, soon(t, exited), "another goroutine has run it")
		<-o.Stop()
		require.ErrorIs(t, soon(t, waiting), activeobject.ErrStopped)
	}
}
