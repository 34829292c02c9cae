package engine_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

var background = context.Background()

// patience is how long something that must happen may take.
const patience = 20 * time.Second

// The operations of the rooms of these tests.
const (
	tidy = iota // a procedure
	pass        // an entry that waits until the room is open
	look        // a function
)

// room is a shared object as a mailbox sees it.
type room struct {
	engine.Mailbox
	open   atomic.Bool
	asked  atomic.Int32
	order  []string // the requests that have run; guarded by the object
	ended  func()   // called by Ended, if not nil
	named  func()   // called by Name, once, if not nil
	fails  error    // of the guard over the state, if not nil
	asking func()   // called by the guard, if not nil
}

// Ended implements engine.Host.
func (r *room) Carries(*engine.Request) bool { return false }
func (r *room) WatchGuard(*engine.Request)   {}

func (r *room) Ended() {
	if r.ended != nil {
		r.ended()
	}
}

func (r *room) Name() string {
	if f := r.named; f != nil {
		r.named = nil
		f()
	}
	return "room"
}

func (r *room) answer() string {
	r.asked.Add(1)
	if r.asking != nil {
		r.asking()
	}
	if r.open.Load() {
		return ""
	}
	return "open"
}

func (r *room) AskState(int) (string, error) { return r.answer(), r.fails }

func (r *room) AskRequest(*mailbox.Request) (string, error) { return r.answer(), nil }

func (r *room) Open(operations uint64) int {
	if operations&(1<<pass) != 0 && r.answer() == "" {
		return pass
	}
	return -1
}

func (r *room) Watch(uint64) {}

// newRoom makes a room. The zero fields of the configuration are filled in.
func newRoom(config engine.Config) *room {
	config.Rules = &mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "tidy", Kind: mailbox.Procedure},
			{Name: "pass", Kind: mailbox.Entry, Guard: "open"},
			{Name: "look", Kind: mailbox.Function},
		},
		Conflicts: guards.NewExclusive("tidy", "pass", "look"),
	}
	config.Tag = 1
	if config.Workers == nil {
		config.Workers = goroutines{}
	}
	if config.HelpLimit == 0 {
		config.HelpLimit = 32
	}
	r := &room{}
	r.Init(config.Prepare(func(op int) bool { return op == pass }), r)
	return r
}

// goroutines is a dispatcher that starts one for each task.
type goroutines struct{}

func (goroutines) Dispatch(t engine.Task) { go t.Run() }

// shelf is a dispatcher whose tasks run when the test says so.
type shelf struct {
	mu    sync.Mutex
	tasks []engine.Task
}

func (s *shelf) Dispatch(t engine.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = append(s.tasks, t)
}

func (s *shelf) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tasks)
}

// run runs all tasks, and those that they dispatch.
func (s *shelf) run() (n int) {
	for s.next() {
		n++
	}
	return n
}

// next runs the next task, and reports whether there was one.
func (s *shelf) next() bool {
	s.mu.Lock()
	if len(s.tasks) == 0 {
		s.mu.Unlock()
		return false
	}
	t := s.tasks[0]
	s.tasks = s.tasks[1:]
	s.mu.Unlock()
	t.Run()
	return true
}

// visitor is a request to a room.
type visitor struct {
	engine.Request
	room     *room
	name     string
	during   func() // the body
	ran      int
	err      error
	recycled chan struct{}
}

func (v *visitor) Run() {
	v.ran++
	v.room.order = append(v.room.order, v.name)
	if v.during != nil {
		v.during()
	}
}

func (v *visitor) AskGuard() string { return v.room.answer() }
func (v *visitor) Argument() any    { return nil }

func (v *visitor) Fail(err error) { v.err = err }

func (v *visitor) Recycle() { close(v.recycled) }

// visit makes a request to the room.
func (r *room) visit(op int, name string) *visitor {
	v := &visitor{room: r, name: name, recycled: make(chan struct{})}
	v.Request.Init(v)
	v.Op, v.Leaf = op, true
	return v
}

// call hands in the request on a goroutine of its own. The channel is closed when
// the call has returned.
func (v *visitor) call(ctx context.Context) <-chan struct{} {
	v.ForCall(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.room.Call(ctx, &v.Request, engine.Now())
	}()
	return done
}

// post hands in the request.
func (v *visitor) post(ctx context.Context) error {
	return v.room.Post(ctx, &v.Request, engine.Now())
}

// soon waits for c.
func soon[R any](t *testing.T, c <-chan R) (r R) {
	t.Helper()
	select {
	case r = <-c:
	case <-time.After(patience):
		stacks := make([]byte, 1<<20)
		t.Fatalf("this hangs\n%s", stacks[:runtime.Stack(stacks, true)])
	}
	return r
}

// queued waits until n requests wait for the operation.
func (r *room) queued(t *testing.T, op, n int) {
	t.Helper()
	for end := time.Now().Add(patience); r.Queued(op) != n; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d wait, not %d\n%v", r.Queued(op), n, r.Explain())
		}
	}
}

// everywhere runs the test for rooms of every configuration.
func everywhere(t *testing.T, test func(t *testing.T, r *room)) {
	t.Helper()
	for name, config := range map[string]engine.Config{
		"borrowed":          {},
		"without fast path": {NoFastPath: true},
		"dispatched":        {Dispatcher: goroutines{}},
		"lending little":    {HelpLimit: 1},
	} {
		t.Run(name, func(t *testing.T) { test(t, newRoom(config)) })
	}
}
