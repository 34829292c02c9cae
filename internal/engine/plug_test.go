package engine_test

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/internal/engine"
)

// recorder is a shared object and the actor around it, as a plug sees them: it
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

func TestUserMessagesGoToTheObjectAtOnceWithTheirSenders(t *testing.T) {
	r, s := newRecorder(), &shelf{}
	p := engine.NewPlug(r, s, nil)
	p.PostUserMessage("early") // a sender may know the name before the actor has been started
	p.RegisterHandlers(r, nil)
	p.Start()
	p.PostUserMessage("plain")
	p.PostUserMessage(&proto.MessageEnvelope{Message: "enveloped", Sender: proto.NewPID("local", "me"), Header: map[string]string{"k": "v"}})
	p.PostUserMessage(letters{"one", letters{"two"}, "three"})
	p.PostUserMessage(nil)
	require.Equal(t, []string{"user early", "user plain", "header map[k:v]", "user enveloped from me", "user one", "user two", "user three", "user <nil>"}, r.all())
	require.Zero(t, s.len())
	require.Zero(t, p.UserMessageCount())
}

func TestSystemMessagesWaitForTheStartAndKeepTheirOrder(t *testing.T) {
	r, s := newRecorder(), &shelf{}
	p := engine.NewPlug(r, s, nil)
	p.PostSystemMessage("early")
	require.Zero(t, s.len())
	p.RegisterHandlers(r, nil)
	p.PostSystemMessage(&proto.Started{})
	p.Start()
	require.Equal(t, 1, s.len(), "one worker")
	p.PostSystemMessage(1)
	require.Equal(t, 1, s.len(), "is enough")
	require.Empty(t, r.all())
	s.run()
	require.Equal(t, []string{"system string", "system *actor.Started", "system int"}, r.all())
	p.PostSystemMessage("late")
	require.Equal(t, 1, s.run(), "and another when it has gone")
}

func TestTheActorEndsAfterTheLastBody(t *testing.T) {
	r := newRecorder()
	p := engine.NewPlug(r, goroutines{}, nil)
	p.RegisterHandlers(r, nil)
	p.Start()
	p.PostSystemMessage(&proto.Stop{})
	p.PostSystemMessage(&proto.Started{})
	// Nothing else is held up meanwhile.
	p.PostUserMessage("late")
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
	p := engine.NewPlug(r, s, nil)
	p.RegisterHandlers(r, nil)
	p.Start()
	p.PostSystemMessage(&proto.Started{})
	p.PostUserMessage(&proto.PoisonPill{})
	p.PostSystemMessage(&proto.SuspendMailbox{})
	p.PostSystemMessage(&proto.ResumeMailbox{})
	close(r.idle)
	s.run()
	require.Equal(t, []string{"drain", "system *actor.Started", "drain", "invoke *actor.PoisonPill"}, r.all())
}

// subject is a recorder whose life has more steps than its end.
type subject struct {
	*recorder
	plug  *engine.Plug
	quiet chan struct{}
	keeps bool // it cannot be renewed

	decided []string
	about   []engine.Failure
}

func (s *subject) Admits(any) bool          { return true }
func (s *subject) Plugged(p *engine.Plug)   { s.plug = p }
func (s *subject) Suspend() <-chan struct{} { s.note("suspend"); return s.quiet }
func (s *subject) Resume()                  { s.note("resume") }
func (s *subject) Renew() bool              { s.note("renew"); return !s.keeps }
func (s *subject) Decided(what string, about engine.Failure) {
	s.decided = append(s.decided, what)
	s.about = append(s.about, about)
}
func (s *subject) Undecided(value any) { s.note("undecided %v", value) }

// sulky is an actor whose supervisor panics.
type sulky struct{ *recorder }

func (s *sulky) EscalateFailure(any, any) { panic("no idea") }

func newSubject(t *testing.T) (*subject, *engine.Plug, *shelf) {
	s, w := &subject{recorder: newRecorder(), quiet: make(chan struct{})}, &shelf{}
	p := engine.NewPlug(s, w, nil)
	require.Same(t, p, s.plug)
	p.RegisterHandlers(s, nil)
	p.Start()
	return s, p, w
}

func TestARestartWaitsUntilTheObjectIsQuiet(t *testing.T) {
	s, p, w := newSubject(t)
	p.PostSystemMessage(&proto.SuspendMailbox{})
	p.PostSystemMessage(&proto.Restart{})
	p.PostSystemMessage(&proto.ResumeMailbox{})
	p.PostSystemMessage(&proto.Started{})
	close(s.quiet)
	w.run()
	require.Equal(t, []string{"suspend", "suspend", "system *actor.Started", "renew", "system *actor.Restart", "resume"}, s.all())

	s.keeps = true
	p.PostSystemMessage(&proto.Restart{})
	w.run()
	require.Equal(t, []string{"suspend", "renew"}, s.all()[6:], "the actor goes on if the object does")
}

func TestNothingIsDecidedAboutAnObjectThatEnds(t *testing.T) {
	s, p, w := newSubject(t)
	p.PostSystemMessage(&proto.Stop{})
	p.Fail(engine.Failure{Reason: io.EOF})
	p.PostSystemMessage(&proto.Restart{})
	p.PostSystemMessage(&proto.SuspendMailbox{})
	close(s.idle)
	w.run()
	require.Equal(t, []string{"halt", "halt", "system *actor.Stop"}, s.all())
}

func TestAFailureGoesToTheSupervisorOnThePlugsTurn(t *testing.T) {
	s, p, w := newSubject(t)
	p.Fail(engine.Failure{Reason: io.EOF})
	require.Empty(t, s.all())
	w.run()
	require.Equal(t, []string{"escalate"}, s.all())
}

func TestADecisionIsToldOnceWithWhatItIsAbout(t *testing.T) {
	s, p, w := newSubject(t)
	close(s.quiet)
	close(s.idle)
	p.PostSystemMessage(&proto.ResumeMailbox{}) // which nobody has asked for
	p.Fail(engine.Failure{Reason: io.EOF, Request: 7})
	p.PostSystemMessage(&proto.ResumeMailbox{})
	p.PostSystemMessage(&proto.Restart{}) // for the sake of others
	w.run()
	p.Fail(engine.Failure{Reason: io.ErrClosedPipe})
	p.PostSystemMessage(&proto.Stop{})
	w.run()
	require.Equal(t, []string{"resumed", "restarted"}, s.decided)
	require.Equal(t, []engine.Failure{{Reason: io.EOF, Request: 7}, {}}, s.about, "who stops it decides nothing, if nobody has been asked")

	s, p, w = newSubject(t)
	p.Fail(engine.Failure{Reason: io.EOF})
	w.run()
	p.PostSystemMessage(&proto.Stop{})
	p.PostSystemMessage(&proto.Stop{})
	close(s.idle)
	w.run()
	require.Equal(t, []string{"stopped"}, s.decided)
}

func TestASupervisorThatPanicsLeavesNothingUndecided(t *testing.T) {
	s, w := &subject{recorder: newRecorder()}, &shelf{}
	p := engine.NewPlug(s, w, nil)
	p.RegisterHandlers(&sulky{s.recorder}, nil)
	p.Start()
	p.Fail(engine.Failure{Reason: io.EOF})
	close(s.idle)
	w.run()
	require.Equal(t, []string{"undecided no idea", "halt", "halt", "system *actor.Stop"}, s.all())
}

func TestAPlugWithoutAnActorSpawnsNothing(t *testing.T) {
	_, p, _ := newSubject(t)
	_, ok, err := p.Spawn(nil, "child")
	require.False(t, ok)
	require.NoError(t, err)
}
