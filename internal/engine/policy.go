package engine

import (
	"context"
	"math"
	"runtime/debug"
	"time"

	"github.com/sluice-go/sluice/mailbox"
)

type attributesKey struct{}

// attributes is what a context says about the requests that are made with it.
type attributes struct {
	priority int
	client   any
}

func attributesOf(ctx context.Context) attributes {
	a, _ := ctx.Value(attributesKey{}).(attributes)
	return a
}

// WithPriority returns a context whose requests have the priority: greater ones go first at
// objects that are ordered by priority. The default is 0.
func WithPriority(ctx context.Context, priority int) context.Context {
	a := attributesOf(ctx)
	a.priority = priority
	return context.WithValue(ctx, attributesKey{}, a)
}

// WithClient returns a context whose requests are made in the name of the client, which policies
// and interceptors get to see.
func WithClient(ctx context.Context, client any) context.Context {
	a := attributesOf(ctx)
	a.client = client
	return context.WithValue(ctx, attributesKey{}, a)
}

// ClientOf returns the client of WithClient, or nil.
func ClientOf(ctx context.Context) any { return attributesOf(ctx).client }

// ByPriority is a Config.Rank: the greatest priority first.
func ByPriority(ctx context.Context) int64 { return rankOf(attributesOf(ctx).priority) }

// rankOf returns the rank of a priority. It is the complement, as the least priority has no
// negative.
func rankOf(priority int) int64 { return ^int64(priority) }

// eternity is the last second whose nanoseconds fit into an int64.
const eternity = math.MaxInt64 / int64(time.Second)

// ByDeadline is a Config.Rank: the earliest deadline first, and those without one
// last.
func ByDeadline(ctx context.Context) int64 {
	d, ok := ctx.Deadline()
	switch {
	case !ok:
		return math.MaxInt64
	case d.Unix() >= eternity:
		return math.MaxInt64 - 1
	case d.Unix() <= -eternity:
		return math.MinInt64
	}
	return d.UnixNano()
}

// appraise computes what the policy compares: the rank of the request, or its Candidate.
func (m *Mailbox) appraise(r *Request) {
	if m.config.Rank != nil {
		r.Rank = m.config.Rank(r.ctx)
	}
	if m.config.Views {
		a := attributesOf(r.ctx)
		view := &mailbox.Candidate{
			Operation: m.config.Rules.Operations[r.Op].Name, Argument: r.Body.Argument(),
			Client: a.client, Priority: a.priority,
		}
		if d, ok := r.ctx.Deadline(); ok {
			view.Deadline = d
		}
		r.special().view = view
	}
}

// candidate returns the request as its policy sees it.
func (r *Request) candidate() *mailbox.Candidate {
	view := r.rare.view
	view.Arrival = r.Arrival()
	return view
}

// Ordered returns a policy that considers requests in the order that the user's function gives.
// Its objects need Config.Views.
func Ordered(before func(a, b *mailbox.Candidate) bool) *mailbox.Policy {
	const name = "the user's order"
	return &mailbox.Policy{Name: name, Within: true, Fallible: true, Before: func(a, b *mailbox.Request, _ int) (first bool, err error) {
		x, y := a.Record.(*Request), b.Record.(*Request)
		returned, value, stack := false, any(nil), []byte(nil)
		defer func() {
			if !returned {
				err = x.policyFailed(name, Panicked(value), stack, a, b)
			}
		}()
		defer func() {
			if !returned {
				value, stack = recover(), debug.Stack()
			}
		}()
		first = before(x.candidate(), y.candidate())
		returned = true
		return first, nil
	}}
}

// Choosing returns a policy by which the user's function chooses among the requests that may
// start now. Its objects need Config.Views.
func Choosing(choose func(eligible []*mailbox.Candidate) int) *mailbox.Policy {
	const name = "the user's choice"
	return &mailbox.Policy{Name: name, Fallible: true, Choose: func(eligible []*mailbox.Request) (i int, err error) {
		candidates := make([]*mailbox.Candidate, len(eligible))
		for i, e := range eligible {
			candidates[i] = e.Record.(*Request).candidate()
		}
		returned, value, stack := false, any(nil), []byte(nil)
		defer func() {
			if !returned {
				err = eligible[0].Record.(*Request).policyFailed(name, Panicked(value), stack, eligible...)
			}
		}()
		defer func() {
			if !returned {
				value, stack = recover(), debug.Stack()
			}
		}()
		i = choose(candidates)
		returned = true
		return i, nil
	}}
}

// policyFailed returns the error of a policy that panicked with the value when it compared r and
// others. A nil value says that the policy has called runtime.Goexit; then the object is passed to
// a worker, as the dying goroutine must not leave it locked.
func (r *Request) policyFailed(policy string, value any, stack []byte, about ...*mailbox.Request) error {
	m := r.box.Load()
	err := &mailbox.PolicyError{Object: m.host.Name(), Policy: policy, Value: value, Stack: stack}
	if value == nil {
		err.Value = "it ended its goroutine (runtime.Goexit)"
	}
	if m.config.Failed != nil {
		m.config.Failed(m.host, r, err)
	}
	if value == nil {
		m.scheduler().PolicyFailed(err, about...)
		m.abandon()
	}
	return err
}

// SetPriority gives a waiting request another priority, and reports whether it was
// waiting at an object that is ordered by priority. If it was not, nothing changes.
func (r *Request) SetPriority(priority int) bool {
	m := r.lock()
	return m.setPriority(&r.Request, priority)
}

// SetPriority is Request.SetPriority for the request with an arrival number.
func (m *Mailbox) SetPriority(arrival uint64, priority int) bool {
	m.mu.Lock()
	return m.setPriority(m.scheduler().Find(arrival), priority)
}

func (m *Mailbox) setPriority(r *mailbox.Request, priority int) bool {
	if r == nil || !m.config.Prioritized || !m.scheduler().Rerank(r, rankOf(priority)) {
		m.mu.Unlock()
		return false
	}
	m.recheck()
	m.reconsider()
	return true
}

// WaitingAt returns how many requests of a family are admitted and wait for the key.
func (m *Mailbox) WaitingAt(op int, key any) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.queues.Load(); k != nil {
		return k.WaitingAt(op, key)
	}
	return 0
}
