package actor

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/sluice-go/sluice/internal/engine"
	"github.com/stretchr/testify/require"

	proto "github.com/asynkron/protoactor-go/actor"
)

// recorder is a shared object and the actor around it, as an adapter sees them: it
// writes down what comes in.
type recorder struct {
	mu   sync.Mutex
	log  []string
	idle chan struct{} // closed when the last body has returned
}

func newRecorder() *recorder { return &recorder{idle: make(chan struct{})} }

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.log...)
}

func (r *recorder) Receive(message any, header proto.ReadonlyMessageHeader, sender *proto.PID) {
	if header != nil && header.Length() > 0 {
		r.note("header %v", header.ToMap())
	}
	if sender != nil {
		r.note("user %v from %s", message, sender.Id)
	} else {
		r.note("user %v", message)
	}
}

func (r *recorder) Halt() <-chan struct{}  { r.note("halt"); return r.idle }
func (r *recorder) Drain() <-chan struct{} { r.note("drain"); return r.idle }

func (r *recorder) InvokeSystemMessage(message any) { r.note("system %T", message) }
func (r *recorder) InvokeUserMessage(message any)   { r.note("invoke %T", message) }
func (r *recorder) EscalateFailure(any, any)        { r.note("escalate") }

type letters []any

func (l letters) GetMessages() []any { return l }

// shelf keeps the turns of an adapter, which runs on one goroutine, until they are run.
type shelf []engine.Task

func (s *shelf) Dispatch(t engine.Task) { *s = append(*s, t) }

func (s *shelf) len() int { return len(*s) }

// run runs all turns, and those that they dispatch.
func (s *shelf) run() (n int) {
	for ; len(*s) > 0; n++ {
		t := (*s)[0]
		*s = (*s)[1:]
		t.Run()
	}
	return n
}

func TestUserMessagesGoToTheObjectAtOnceWithTheirSenders(t *testing.T) {
	r, s := newRecorder(), &shelf{}
	p := newAdapter(r, s, nil)
	p.postUserMessage("early") // a sender may know the name before the actor has been started
	p.attach(r)
	p.start()
	p.postUserMessage("plain")
	p.postUserMessage(&proto.MessageEnvelope{Message: "enveloped", Sender: proto.NewPID("local", "me"), Header: map[string]string{"k": "v"}})
	p.postUserMessage(letters{"one", letters{"two"}, "three"})
	p.postUserMessage(nil)
	require.Equal(t, []string{"user early", "user plain", "header map[k:v]", "user enveloped from me", "user one", "user two", "user three", "user <nil>"}, r.all())
	require.Zero(t, s.len())
	require.Zero(t, (*inbox)(p).UserMessageCount())
}

func TestSystemMessagesWaitForTheStartAndKeepTheirOrder(t *testing.T) {
	r, s := newRecorder(), &shelf{}
	p := newAdapter(r, s, nil)
	p.postSystemMessage("early")
	require.Zero(t, s.len())
	p.attach(r)
	p.postSystemMessage(&proto.Started{})
	p.start()
	require.Equal(t, 1, s.len(), "one worker")
	p.postSystemMessage(1)
	require.Equal(t, 1, s.len(), "is enough")
	require.Empty(t, r.all())
	s.run()
	require.Equal(t, []string{"system string", "system *actor.Started", "system int"}, r.all())
	p.postSystemMessage("late")
	require.Equal(t, 1, s.run(), "and another when it has gone")
}

func TestTheActorEndsAfterTheLastBody(t *testing.T) {
	r := newRecorder()
	p := newAdapter(r, goroutines{}, nil)
	p.attach(r)
	p.start()
	p.postSystemMessage(&proto.Stop{})
	p.postSystemMessage(&proto.Started{})
	// Nothing else is held up meanwhile.
	p.postUserMessage("late")
	for len(r.all()) < 4 {
		runtime.Gosched()
	}
	require.ElementsMatch(t, []string{"halt", "user late", "halt", "system *actor.Started"}, r.all())
	close(r.idle)
	for len(r.all()) < 5 {
		runtime.Gosched()
	}
	require.Equal(t, "system *actor.Stop", r.all()[4])
}

func TestPoisonTakesItsPlaceAmongTheSystemMessages(t *testing.T) {
	r, s := newRecorder(), &shelf{}
	p := newAdapter(r, s, nil)
	p.attach(r)
	p.start()
	p.postSystemMessage(&proto.Started{})
	p.postUserMessage(&proto.PoisonPill{})
	p.postSystemMessage(&proto.SuspendMailbox{})
	p.postSystemMessage(&proto.ResumeMailbox{})
	close(r.idle)
	s.run()
	require.Equal(t, []string{"drain", "system *actor.Started", "drain", "invoke *actor.PoisonPill"}, r.all())
}

// subject is a recorder whose life has more steps than its end.
type subject struct {
	*recorder
	adapter *Adapter
	quiet   chan struct{}
	keeps   bool // it cannot be renewed

	decided []string
	about   []Failure
}

func (s *subject) Admits(any) bool          { return true }
func (s *subject) Attached(p *Adapter)      { s.adapter = p }
func (s *subject) Suspend() <-chan struct{} { s.note("suspend"); return s.quiet }
func (s *subject) Resume()                  { s.note("resume") }
func (s *subject) Renew() bool              { s.note("renew"); return !s.keeps }
func (s *subject) Decided(what string, about Failure) {
	s.decided = append(s.decided, what)
	s.about = append(s.about, about)
}
func (s *subject) Undecided(value any) { s.note("undecided %v", value) }

// sulky is an actor whose supervisor panics.
type sulky struct{ *recorder }

func (s *sulky) EscalateFailure(any, any) { panic("no idea") }

func newSubject(t *testing.T) (*subject, *Adapter, *shelf) {
	s, w := &subject{recorder: newRecorder(), quiet: make(chan struct{})}, &shelf{}
	p := newAdapter(s, w, nil)
	require.Same(t, p, s.adapter)
	p.attach(s)
	p.start()
	return s, p, w
}

func TestARestartWaitsUntilTheObjectIsQuiet(t *testing.T) {
	s, p, w := newSubject(t)
	p.postSystemMessage(&proto.SuspendMailbox{})
	p.postSystemMessage(&proto.Restart{})
	p.postSystemMessage(&proto.ResumeMailbox{})
	p.postSystemMessage(&proto.Started{})
	close(s.quiet)
	w.run()
	require.Equal(t, []string{"suspend", "suspend", "system *actor.Started", "renew", "system *actor.Restart", "resume"}, s.all())

	s.keeps = true
	p.postSystemMessage(&proto.Restart{})
	w.run()
	require.Equal(t, []string{"suspend", "renew"}, s.all()[6:], "the actor goes on if the object does")
}

func TestNothingIsDecidedAboutAnObjectThatEnds(t *testing.T) {
	s, p, w := newSubject(t)
	p.postSystemMessage(&proto.Stop{})
	p.Fail(Failure{Reason: io.EOF})
	p.postSystemMessage(&proto.Restart{})
	p.postSystemMessage(&proto.SuspendMailbox{})
	close(s.idle)
	w.run()
	require.Equal(t, []string{"halt", "halt", "system *actor.Stop"}, s.all())
}

func TestAFailureGoesToTheSupervisorOnTheAdaptersTurn(t *testing.T) {
	s, p, w := newSubject(t)
	p.Fail(Failure{Reason: io.EOF})
	require.Empty(t, s.all())
	w.run()
	require.Equal(t, []string{"escalate"}, s.all())
}

func TestADecisionIsToldOnceWithWhatItIsAbout(t *testing.T) {
	s, p, w := newSubject(t)
	close(s.quiet)
	close(s.idle)
	p.postSystemMessage(&proto.ResumeMailbox{}) // without a failure
	p.Fail(Failure{Reason: io.EOF, Request: 7})
	p.postSystemMessage(&proto.ResumeMailbox{})
	p.postSystemMessage(&proto.Restart{}) // for the sake of others
	w.run()
	p.Fail(Failure{Reason: io.ErrClosedPipe})
	p.postSystemMessage(&proto.Stop{})
	w.run()
	require.Equal(t, []string{"resumed", "restarted"}, s.decided)
	require.Equal(t, []Failure{{Reason: io.EOF, Request: 7}, {}}, s.about, "a Stop is no decision if the supervisor has not been asked")

	s, p, w = newSubject(t)
	p.Fail(Failure{Reason: io.EOF})
	w.run()
	p.postSystemMessage(&proto.Stop{})
	p.postSystemMessage(&proto.Stop{})
	close(s.idle)
	w.run()
	require.Equal(t, []string{"stopped"}, s.decided)
}

func TestASupervisorThatPanicsLeavesNothingUndecided(t *testing.T) {
	s, w := &subject{recorder: newRecorder()}, &shelf{}
	p := newAdapter(s, w, nil)
	p.attach(&sulky{s.recorder})
	p.start()
	p.Fail(Failure{Reason: io.EOF})
	close(s.idle)
	w.run()
	require.Equal(t, []string{"undecided no idea", "halt", "halt", "system *actor.Stop"}, s.all())
}

func TestAnAdapterWithoutAnActorSpawnsNothing(t *testing.T) {
	_, p, _ := newSubject(t)
	_, ok, err := p.Spawn(nil, "child")
	require.False(t, ok)
	require.NoError(t, err)
}
