package main

import (
	"context"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// Server is a server with guarded suspension: requests Q are handled one at a time,
// and one that cannot be handled now is suspended until it can.
type Server[S, Q, R any] struct {
	object  *activeobject.Object[S]
	request *activeobject.Operation[S, Q, R]
}

// Start starts a server with a state, given by three functions of its user.
//
//	guardeds:start(Handle, MustSuspend, Resume, State)
//
// Handle answers a request and changes the state. MustSuspend says whether a
// request has to wait; it is the guard, turned round. Resume says which of the
// suspended requests goes on when several may; it is the policy. In the text it
// also finds out whether one may, and so needs the state; here the guard has said
// that already.
func Start[S, Q, R any](system *actor.System, handle func(*S, Q) (R, error), mustSuspend func(*S, Q) bool, resume activeobject.Option, state *S) *Server[S, Q, R] {
	servers := activeobject.NewType[S]("server")
	request := activeobject.Entry(servers, "request", handle).
		WhenArg("need not be suspended", func(s *S, q Q) bool { return !mustSuspend(s, q) })
	return &Server[S, Q, R]{activeobject.Must(activeobject.New(system, servers, state, resume)), request}
}

// Call has a request of a client handled, and waits for the answer. If ctx ends
// while the request is suspended it is never handled.
//
//	server:call(Server, Request)
func (s *Server[S, Q, R]) Call(ctx context.Context, client string, q Q) (R, error) {
	return s.request.Call(activeobject.WithClient(ctx, client), s.object, q)
}

// Send hands in a request of a client, and returns the future of the answer. The request is
// suspended, or has been handled, when Send returns.
func (s *Server[S, Q, R]) Send(ctx context.Context, client string, q Q) activeobject.Future[R] {
	return s.request.Send(activeobject.WithClient(ctx, client), s.object, q)
}
