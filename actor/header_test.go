package actor_test

import (
	"context"
	"sync"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// A span notes in its state where it has seen which trace.
type span struct {
	mu   sync.Mutex
	seen []string
	next *activeobject.Object[span]
}

func (s *span) note(where string, ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, where+" "+actor.HeaderOf(ctx).Get("trace"))
}

var (
	spans = activeobject.NewType[span]("span")
	visit = activeobject.ProcedureCtx(spans, "visit", func(s *span, ctx context.Context, _ activeobject.None) (string, error) {
		s.note("body", ctx)
		if s.next != nil {
			return revisit(ctx, s.next)
		}
		return actor.HeaderOf(ctx).Get("trace"), nil
	})
)

var revisit func(context.Context, *activeobject.Object[span]) (string, error)

func init() { // a body cannot name its own operation while that is being declared
	revisit = func(ctx context.Context, o *activeobject.Object[span]) (string, error) {
		return visit.Call(ctx, o, nil)
	}
}

func TestTheHeaderOfAMessageReachesInterceptorsAndBodies(t *testing.T) {
	homes(t, func(t *testing.T, s *actor.System) {
		state, inner := &span{}, &span{}
		var err error
		state.next, err = activeobject.New(s, spans, inner)
		require.NoError(t, err)
		done := make(chan struct{}, 1)
		o, err := activeobject.New(s, spans, state, activeobject.Interceptors(activeobject.Interceptor{
			Queue: func(ctx context.Context, _ activeobject.Intercepted) (context.Context, error) {
				state.note("queue", ctx)
				return ctx, nil
			},
			Run: func(ctx context.Context, _ activeobject.Intercepted, body func() error) error {
				state.note("run", ctx)
				return body()
			},
			Done: func(ctx context.Context, _ activeobject.Intercepted, _ error) {
				state.note("done", ctx)
				done <- struct{}{}
			},
		}))
		require.NoError(t, err)
		invoke := &actor.Invoke{Operation: "visit"}
		traced := &proto.MessageEnvelope{Message: invoke, Header: map[string]string{"trace": "7"}}
		for _, c := range []struct {
			trace string
			ask   func()
		}{
			{"7", func() { s.Actors().Root.Send(o.PID(), traced) }},
			{"7", func() {
				v, err := s.Request(background, o.PID(), traced).Await(background)
				require.NoError(t, err)
				require.Equal(t, "7", v)
			}},
			{"", func() { s.Actors().Root.Send(o.PID(), invoke) }},
			{"", func() {
				v, err := visit.Call(background, o, nil)
				require.NoError(t, err)
				require.Empty(t, v)
			}},
			{"9", func() {
				ctx := actor.WithHeader(background, actor.HeaderOf(background))
				require.Zero(t, actor.HeaderOf(ctx).Length())
				s.Actors().Root.Send(o.PID(), &proto.MessageEnvelope{Message: invoke, Header: map[string]string{"trace": "9", "more": ""}})
			}},
		} {
			state.seen, inner.seen = nil, nil
			c.ask()
			soon(t, done)
			state.mu.Lock()
			require.Equal(t, []string{"queue " + c.trace, "run " + c.trace, "body " + c.trace, "done " + c.trace}, state.seen)
			require.Equal(t, []string{"body " + c.trace}, inner.seen, "the context is handed on")
			state.mu.Unlock()
		}
	})
}

// An actor that is no object gets the header of a request, too.
func TestARequestSendsTheHeaderOfItsEnvelope(t *testing.T) {
	s := newSystem(t)
	echo := spawn(t, s, func(ctx proto.Context) {
		if ctx.Sender() != nil {
			ctx.Respond(ctx.MessageHeader().Get("trace") + ctx.Message().(string))
		}
	})
	v, err := s.Request(background, echo, &proto.MessageEnvelope{Message: "!", Header: map[string]string{"trace": "7"}, Sender: echo}).Await(background)
	require.NoError(t, err)
	require.Equal(t, "7!", v)
}
