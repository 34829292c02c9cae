package synchronizer_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/datadriven"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/synchronizer"
)

// The transcripts in testdata are of the five phases of the text, at an account: what its
// client asks for, which request waits and why, which runs and on whose thread, and what comes back. Run
// the test with -rewrite to write down what happens now.
//
//	account callers|spawned|pool=N [x=N]   make one, by the table of the text
//	call NAME OPERATION [AMOUNT]           a client calls it and waits
//	send NAME OPERATION [AMOUNT]           the client does not wait
//	try NAME OPERATION [AMOUNT]            fails if it would have to wait
//	end NAME                               the body of the request ends
//	cancel NAME                            the client's context ends
//	stop                                   the object is stopped
func TestTranscripts(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil || len(files) == 0 {
		t.Fatal("there are none: ", err)
	}
	for _, f := range files {
		t.Run(f.Name(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &branch{}
				datadriven.RunTest(t, filepath.Join("testdata", f.Name()), func(t *testing.T, d *datadriven.TestData) string {
					return b.do(t, d)
				})
			})
		})
	}
}

// branch is the account of a transcript and its clients.
type branch struct {
	object  *activeobject.Object[Account]
	pool    *synchronizer.Pool
	spawned bool
	ops     map[string]*activeobject.Operation[Account, *inquiry, int64]

	mu      sync.Mutex
	asked   []*inquiry // those that have no result, in the order in which they were made
	results []string
}

// inquiry is the argument of a request.
type inquiry struct {
	name, operation string
	amount          int64
	branch          *branch
	cancel          context.CancelFunc
	client          string // goroutine
	thread          string // once it runs
	end             chan None
}

func (e *inquiry) String() string {
	if e.amount == 0 {
		return e.name + " " + e.operation
	}
	return fmt.Sprintf("%s %s(%d)", e.name, e.operation, e.amount)
}

// runs is called by the body. It returns when that is to end.
func (e *inquiry) runs() {
	b := e.branch
	b.mu.Lock()
	switch g := goroutine(); {
	case g == e.client:
		e.thread = "its caller's thread"
	case b.pool != nil:
		e.thread = "a thread of the pool"
	case b.spawned:
		e.thread = "a thread of its own"
	default:
		e.thread = "a thread of the system"
	}
	b.mu.Unlock()
	<-e.end
}

// goroutine returns what tells the goroutine from others.
func goroutine() string {
	text := make([]byte, 64)
	return string(bytes.Fields(text[:runtime.Stack(text, false)])[1])
}

func (b *branch) make(t *testing.T, d *datadriven.TestData) {
	typ := activeobject.NewType[Account]("account")
	dep := activeobject.ProcedureCtx(typ, "deposit", func(a *Account, _ context.Context, e *inquiry) (int64, error) {
		e.runs()
		a.Deposit(e.amount)
		return a.Balance(), nil
	})
	with := activeobject.EntryCtx(typ, "withdraw", func(a *Account, _ context.Context, e *inquiry) (int64, error) {
		e.runs()
		a.Withdraw(e.amount)
		return a.Balance(), nil
	}).WhenArg("covered", func(a *Account, e *inquiry) bool { return a.Covers(e.amount) })
	bal := activeobject.FunctionCtx(typ, "balance", func(a *Account, _ context.Context, e *inquiry) (int64, error) {
		e.runs()
		return a.Balance(), nil
	})
	b.ops = map[string]*activeobject.Operation[Account, *inquiry, int64]{"deposit": dep, "withdraw": with, "balance": bal}
	system := objecttest.NewSystem(t)
	state := &Account{}
	options := []activeobject.Option{activeobject.Name("savings")}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "callers":
			options = append(options, synchronizer.Callers())
		case "spawned":
			b.spawned = true
			options = append(options, synchronizer.Goroutines())
		case "pool":
			b.pool = newPool(t, system, int(amount(t, a.Vals[0])))
			options = append(options, synchronizer.Workers(b.pool))
		case "x":
			state.x = amount(t, a.Vals[0])
		}
	}
	b.object = activeobject.Must(synchronizer.New(system, typ, state, options...))
}

func amount(t *testing.T, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ask makes a request, by the operation's client proxy.
func (b *branch) ask(t *testing.T, d *datadriven.TestData) {
	e := &inquiry{name: d.CmdArgs[0].Key, operation: d.CmdArgs[1].Key, branch: b, end: make(chan None)}
	if len(d.CmdArgs) > 2 {
		e.amount = amount(t, d.CmdArgs[2].Key)
	}
	proxy := activeobject.At(b.ops[e.operation], b.object)
	ctx, cancel := context.WithCancel(background)
	e.cancel = cancel
	b.mu.Lock()
	b.asked = append(b.asked, e)
	b.mu.Unlock()
	go func() {
		e.client = goroutine()
		var r int64
		var err error
		switch d.Cmd {
		case "call":
			r, err = proxy.Call(ctx, e)
		case "send":
			r, err = proxy.Send(ctx, e).Await(background)
		case "try":
			r, err = proxy.Try(ctx, e)
		}
		result := strconv.FormatInt(r, 10)
		if err != nil {
			result = err.Error()
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asked = slices.DeleteFunc(b.asked, func(a *inquiry) bool { return a == e })
		b.results = append(b.results, e.name+": "+result)
	}()
}

func (b *branch) do(t *testing.T, d *datadriven.TestData) string {
	named := func() *inquiry {
		b.mu.Lock()
		defer b.mu.Unlock()
		i := slices.IndexFunc(b.asked, func(e *inquiry) bool { return e.name == d.CmdArgs[0].Key })
		if i < 0 {
			d.Fatalf(t, "there is no request %q", d.CmdArgs[0].Key)
		}
		return b.asked[i]
	}
	switch d.Cmd {
	case "account":
		b.make(t, d)
		return b.object.Type().Conflicts().String()
	case "call", "send", "try":
		b.ask(t, d)
	case "end":
		close(named().end)
	case "cancel":
		named().cancel()
	case "stop":
		b.object.Stop()
	default:
		d.Fatalf(t, "there is no command %q", d.Cmd)
	}
	synctest.Wait() // until all goroutines wait, for something that the transcript has to say
	return b.show(t)
}

// show writes the waiting and the running queue, and the results that have come.
func (b *branch) show(t *testing.T) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var s strings.Builder
	x := b.object.Explain()
	// Of one operation they come in the order in which they were made.
	left := slices.Clone(b.asked)
	take := func(operation string, runs bool) *inquiry {
		i := slices.IndexFunc(left, func(e *inquiry) bool { return e.operation == operation && (e.thread != "") == runs })
		if i < 0 {
			t.Errorf("no client has made this %s: %+v", operation, x)
			return &inquiry{}
		}
		e := left[i]
		left = slices.Delete(left, i, i+1)
		return e
	}
	for _, w := range x.Waiting {
		fmt.Fprintf(&s, "waiting: %v: %s\n", take(w.Operation, false), w.Reason)
	}
	for _, r := range x.Running {
		e := take(r.Operation, true)
		fmt.Fprintf(&s, "running: %v, on %s\n", e, e.thread)
	}
	if len(left) > 0 {
		t.Errorf("the object does not know of %v", left)
	}
	slices.Sort(b.results)
	for _, r := range b.results {
		s.WriteString("result: " + r + "\n")
	}
	b.results = nil
	if s.Len() == 0 {
		return "idle\n"
	}
	return s.String()
}
