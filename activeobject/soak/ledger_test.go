package soak_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// way is how a request is made.
type way uint8

const (
	call way = iota
	try
	send
	begin
	selecting
	adhoc
	ask     // System.Request
	future  // protoactor's RequestFuture
	forward // System.Request of a plain actor, which passes it on
	leg     // a call by a body
	tell
	message // without a sender
	ways
)

var wayNames = [ways]string{"call", "try", "send", "begin", "select", "ad hoc", "ask", "future", "forward", "leg", "tell", "message"}

// deaf reports whether nobody hears of the end of such a request.
func (w way) deaf() bool { return w >= tell }

// entry is what the ledger knows of one request. A body writes to it while its object
// is exclusively its own, and a request has one body at a time; the rest is written by
// who made the request, once. All is read when everything has ended, or, atomically,
// when the end is told.
type entry struct {
	way  way
	op   string
	at   *host
	plan plan
	want int64 // what it moves in the end
	debt int64 // what it has moved if it is lost on its way
	must int   // bodies, if it has its result
	torn bool  // its last body was ended from without, in a call

	runs   atomic.Int32 // bodies that have begun
	finals atomic.Int32 // and that were the last
	moved  atomic.Int64

	mu    sync.Mutex
	trail []string // bodies, in order

	ends   atomic.Int32
	told   atomic.Bool // what follows is there
	ran    int32       // runs when the end was told
	err    error
	bound  bool // a tell, or message, that may not be withdrawn
	dead   atomic.Int32
	logged atomic.Int32
}

// plan is what the last body of a request does.
type plan uint8

const (
	succeeds plan = iota
	declines
	panics
	exits
)

var (
	errDeclined   = errors.New("declined")
	errTurnedAway = errors.New("turned away") // by an interceptor
	errEnded      = errors.New("the goroutine that made the request has ended")
	errNotTaken   = errors.New("not taken") // a tell that has failed
)

// bang is what bodies panic with.
type bang struct{ id uint32 }

func (b bang) String() string { return fmt.Sprintf("bang %d", b.id) }

// ledger accounts for all requests of a round.
type ledger struct {
	t       *testing.T
	entries []entry
	n       atomic.Uint32
	faults  atomic.Int32

	derived     atomic.Int64 // futures that followed from others as they should
	incidents   atomic.Int64 // logged ends of requests that nobody heard of, without a number
	burst       atomic.Int64 // bodies that have panicked, or ended their goroutines
	logged      atomic.Int64 // and those of which that was logged
	dropped     atomic.Int64 // and perhaps those of which it was not, as there were too many
	deadReplies atomic.Int64
}

func newLedger(t *testing.T, room int) *ledger {
	return &ledger{t: t, entries: make([]entry, room)}
}

// fault reports what must not be, and the last that has happened at the hosts.
func (l *ledger) fault(hosts []*host, format string, args ...any) {
	if l.faults.Add(1) > 10 {
		return
	}
	var b strings.Builder
	for _, h := range hosts {
		if h != nil {
			b.WriteString("\n" + h.history())
		}
	}
	l.t.Errorf(format+"%s", append(args, b.String())...)
}

// open makes an entry. Its numbers begin with 1.
func (l *ledger) open() (uint32, *entry) {
	id := l.n.Add(1)
	if int(id) >= len(l.entries) {
		panic("the ledger is full")
	}
	return id, &l.entries[id]
}

func (l *ledger) entry(id uint32) *entry { return &l.entries[id] }

// end books how a request has ended.
func (l *ledger) end(id uint32, result uint32, err error) {
	e := l.entry(id)
	if e.ends.Add(1) != 1 {
		l.fault([]*host{e.at}, "request %d has ended twice: %v and %v", id, e.err, err)
		return
	}
	e.ran, e.err = e.runs.Load(), err
	e.told.Store(true)
	if stopped, ok := err.(*activeobject.StoppedError); ok && stopped.Object == e.at.name {
		e.at.stopped.Store(true)
	}
	if err == nil && result != id && e.op != "until" {
		l.fault([]*host{e.at}, "request %d (%s %s) was given the result of %d", id, wayNames[e.way], e.op, result)
	}
}

// ending is a kind of end.
type ending uint8

const (
	never    ending = iota // no body has run
	done                   // the last body has returned
	panicked               // it has panicked
	exited                 // it has ended its goroutine
	begun                  // some have run, but not the last
	unknown                // it is not known
	strange                // there is no such end
)

// endingOf sorts an error into those that are documented. The causes of an error do not
// count: a *StoppedError may have a panic as its cause.
func endingOf(err error) ending {
	switch err.(type) {
	case nil:
		return done
	case *activeobject.PanicError:
		return panicked
	case *activeobject.ExitError:
		return exited
	case *activeobject.RequeuedError:
		return begun
	case *activeobject.StoppedError, *activeobject.FullError, *activeobject.RefusedError, *activeobject.GuardError,
		*activeobject.PolicyError, *activeobject.DeadlockError, *actor.DeadLetterError:
		return never
	}
	switch err {
	case errDeclined:
		return done
	case context.Canceled, context.DeadlineExceeded, errTurnedAway, errNotTaken, proto.ErrDeadLetter:
		return never
	case errEnded, actor.ErrClosed:
		return unknown
	}
	return strange
}

// audit goes through all entries when everything has ended.
func (l *ledger) audit() (counts map[string]int) {
	counts = map[string]int{}
	var unheard, slack int64 // ends that were logged, and that may have been
	var abandoned int64      // askers that left, so that a reply may be a dead letter
	for id := uint32(1); id <= l.n.Load(); id++ {
		e := l.entry(id)
		runs, finals, moved := int(e.runs.Load()), e.finals.Load(), e.moved.Load()
		wrong := func(format string, args ...any) {
			l.fault([]*host{e.at}, "request %d, %s %s of %v, plan %d, ended with %v after %d of %d bodies, %d of them the last, %v, and moved %d of %d: %s",
				id, wayNames[e.way], e.op, e.at, e.plan, e.err, runs, e.must, finals, e.trail, moved, e.want, fmt.Sprintf(format, args...))
		}
		if finals > 1 || runs > e.must {
			wrong("a body has run twice")
		}
		if e.ends.Load() != 1 {
			wrong("it has had no end")
			continue
		}
		end := endingOf(e.err)
		if e.way.deaf() {
			counts[wayNames[e.way]]++
			switch {
			case e.err == errEnded:
				slack++
			case e.err != nil:
				if end != never || runs != 0 || e.dead.Load()+e.logged.Load() != 0 {
					wrong("it was not taken")
				}
			default:
				ends := finals + e.dead.Load()
				switch {
				case e.plan == declines && e.way == message:
					unheard += int64(finals) // which is no result for anybody
				case ends == 0: // or it failed of a guard, say, and that was logged for many
					slack++
				}
				if ends > 1 {
					wrong("%d dead letters", e.dead.Load())
				}
			}
			continue
		}
		if end == never {
			counts[fmt.Sprintf("never: %T %.12v", e.err, e.err)]++
		}
		counts[wayNames[e.way]+" "+[...]string{"never", "done", "panicked", "exited", "begun", "unknown", "strange"}[end]]++
		asked := e.way == ask || e.way == forward
		if asked && (e.err == context.Canceled || e.err == context.DeadlineExceeded) {
			end = unknown // it may have run all the same
		}
		if e.way == future || asked {
			abandoned++
		}
		switch end {
		case never:
			if runs != 0 || moved != 0 {
				wrong("it must not have run")
			}
		case done:
			if finals != 1 || runs != e.must || moved != e.want || (e.err == errDeclined) != (e.plan == declines) {
				wrong("it must have run")
			}
			if int(e.ran) != runs {
				wrong("a body has begun after the end was told")
			}
		case panicked, exited:
			if finals != 1 || runs != e.must || moved != 0 && moved != -e.debt || e.plan != panics && end == panicked || e.plan != exits && end == exited && !e.torn {
				wrong("it must have failed so")
			}
		case begun:
			err := e.err.(*activeobject.RequeuedError)
			if runs == 0 || finals != 0 || moved != 0 && moved != -e.debt || err.Earlier != 0 || !slices.Equal(err.Ran, e.trail) {
				wrong("it must have run in part")
			}
			if endingOf(err.Cause) != never {
				wrong("a strange cause")
			}
		case unknown:
			if moved != 0 && moved != e.want && moved != -e.debt {
				wrong("it must have been done or not")
			}
		case strange:
			wrong("this is no documented end")
		}
	}
	if n := l.incidents.Load(); n < unheard || n > unheard+slack {
		l.fault(nil, "%d ends of requests that nobody waited for were logged, not %d (and %d perhaps)", n, unheard, slack)
	}
	if n := l.burst.Load() - l.logged.Load(); n < 0 || n > l.dropped.Load() {
		l.fault(nil, "%d bodies have panicked or ended their goroutines, and %d of them were logged", l.burst.Load(), l.logged.Load())
	}
	if n := l.deadReplies.Load(); n > abandoned {
		l.fault(nil, "%d replies were dead letters, of %d requests", n, abandoned)
	}
	counts["derived futures"] = int(l.derived.Load())
	return counts
}

// bury books a dead letter.
func (l *ledger) bury(event any) {
	letter, ok := event.(*proto.DeadLetterEvent)
	if !ok {
		return
	}
	switch m := letter.Message.(type) {
	case *actor.Invoke:
		id := m.Argument.(order).id
		if letter.Sender == nil {
			l.entry(id).dead.Add(1)
		}
	case *actor.Reply:
		l.deadReplies.Add(1)
	}
}

// Handle implements slog.Handler: what is logged is booked.
func (l *ledger) Handle(_ context.Context, r slog.Record) error {
	m, sluice := strings.CutPrefix(r.Message, "sluice: ")
	switch {
	case !sluice && !strings.HasPrefix(r.Message, "declined") && !strings.HasPrefix(r.Message, "turned away"):
		return nil // of protoactor
	case r.Level < slog.LevelError, strings.Contains(m, "keeps its state in a restart"), strings.Contains(m, "failed to decide"):
		return nil
	}
	stack, body := false, !strings.HasPrefix(m, "continuation ") && (strings.Contains(m, " panicked: bang ") || strings.HasSuffix(m, " ended its goroutine (runtime.Goexit)") && !strings.Contains(m, ": "))
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "stack":
			stack = true
		case "entries":
			l.dropped.Add(a.Value.Int64())
		}
		return true
	})
	switch {
	case body && stack:
		l.logged.Add(1)
	case !stack: // a guard, policy or factory is logged once, whoever fails of it
		l.incidents.Add(1)
	}
	return nil
}

func (l *ledger) Enabled(context.Context, slog.Level) bool { return true }
func (l *ledger) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *ledger) WithGroup(string) slog.Handler            { return l }

// host is an object as the ledger knows it, through all its states.
type host struct {
	name    string
	ledger  *ledger
	reaper  *reaper
	inside  atomic.Int32
	stopped atomic.Bool  // as far as somebody has heard
	passed  atomic.Int64 // of its interceptors
	over    atomic.Int64

	mu     sync.Mutex
	pages  []*page // its states, one after another
	events [48]event
	n      int
}

type event struct {
	what string
	id   uint32
}

func (h *host) String() string { return h.name }

// note keeps what happens.
func (h *host) note(what string, id uint32) {
	h.mu.Lock()
	h.events[h.n%len(h.events)] = event{what, id}
	h.n++
	h.mu.Unlock()
}

// history returns the last that has happened.
func (h *host) history() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%s, state no. %d:", h.name, len(h.pages))
	for i := max(h.n-len(h.events), 0); i < h.n; i++ {
		e := h.events[i%len(h.events)]
		fmt.Fprintf(&b, " %s(%d)", e.what, e.id)
	}
	return b.String()
}

// enter books that a body has begun.
func (h *host) enter(op string, id uint32, last bool) (leave func()) {
	if n := h.inside.Add(1); n != 1 {
		h.ledger.fault([]*host{h}, "%d bodies are inside of %s: %s of %d is one", n, h, op, id)
	}
	e := h.ledger.entry(id)
	h.note(op, id)
	e.mu.Lock()
	e.trail = append(e.trail, h.name+"."+op)
	e.mu.Unlock()
	e.runs.Add(1)
	if e.told.Load() && !e.way.deaf() && e.way != ask && e.way != forward && endingOf(e.err) != unknown {
		h.ledger.fault([]*host{h}, "%s of request %d runs after its end: %v", op, id, e.err)
	}
	if last {
		e.finals.Add(1)
	}
	return func() { h.inside.Add(-1) }
}

// alone says that no body may be inside now.
func (h *host) alone(what string) {
	if h.inside.Load() != 0 {
		h.ledger.fault([]*host{h}, "%s of %s meets a body", what, h)
	}
}
