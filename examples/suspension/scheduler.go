package main

import (
	"context"
	"errors"
	"slices"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// Scheduler gives a resource to one client at a time. Who waits for it gets it in
// the order of a policy.
type Scheduler struct {
	*Server[lock, request, activeobject.None]
}

// lock is the state: {Policy, busy} or {Policy, available}.
type lock struct{ busy bool }

// request is {enter, Data} or done.
type request struct {
	what action
	data int
}

type action string

const (
	enter action = "enter"
	done  action = "done"
)

// handle({enter, Data}, {Policy, available}) -> {ok, {Policy, busy}};
// handle(done, {Policy, busy}) -> {ok, {Policy, available}}.
func (l *lock) handle(r request) (ok activeobject.None, err error) {
	if r.what == done && !l.busy {
		return ok, errors.New("done, but nobody has entered")
	}
	l.busy = r.what == enter
	return ok, nil
}

// can_access({enter, Data}, {Policy, busy}) -> false;
// can_access(_, _) -> true.
func (l *lock) mustSuspend(r request) bool { return r.what == enter && l.busy }

// NewScheduler is new(Policy).
func NewScheduler(system *actor.System, policy activeobject.Option) Scheduler {
	return Scheduler{Start(system, (*lock).handle, (*lock).mustSuspend, policy, &lock{})}
}

// Enter asks for the resource, and returns a future that is ready when the client alone has it.
// Data is for the policy.
func (s Scheduler) Enter(ctx context.Context, client string, data int) activeobject.Future[activeobject.None] {
	return s.Send(ctx, client, request{enter, data})
}

// Done gives the resource back. It cannot be withdrawn.
func (s Scheduler) Done(client string) error {
	_, err := s.Call(context.Background(), client, request{what: done})
	return err
}

// The policies of the text, and one that looks at the client. A policy of one's own
// is given by what comes before what (Ordered), or by who goes on next (Choosing).

// fifo(Suspended) -> {last(Suspended), firsts(Suspended)}.
func fifo() activeobject.Option { return activeobject.ByArrival() }

// lifo([X|Xs]) -> {X, Xs}.
func lifo() activeobject.Option { return activeobject.ByLatest() }

// higher_prio({_, {_, D1}}, {_, {_, D2}}) -> D1 > D2. Among equals the first to come
// is the first to go on; in the text it is the last.
func priority() activeobject.Option {
	return activeobject.ByOrder(func(a, b *activeobject.Candidate) bool {
		return a.Argument.(request).data > b.Argument.(request).data
	})
}

// favorite takes the client first, and the others by arrival.
func favorite(client string) activeobject.Option {
	return activeobject.ByChoice(func(suspended []*activeobject.Candidate) int {
		return max(0, slices.IndexFunc(suspended, func(c *activeobject.Candidate) bool { return c.Client == client }))
	})
}
