package model

import (
	"context"
	"slices"

	"github.com/sluice-go/sluice/examples/compare/internal/object"
)

// query is a request as a message: an operation and its argument.
type query struct {
	op      int
	request object.Request
}

// answer is the result of a query.
type answer struct {
	value int64
	err   error
}

// asker is how callers reach an object on another thread.
type asker interface {
	host
	ask(query) (int64, error)
}

// serve carries out a query, or reports false and does nothing if the state does
// not allow it yet.
type serve func(query) (answer, bool)

// openServer makes an object that gets its requests as messages, one at a time.
func openServer[T any](how construction, t *object.Type[T], state *T) ([]object.Call, host) {
	serve := func(q query) (answer, bool) {
		op := &t.Operations[q.op]
		if op.Holds != nil && !op.Holds(state, q.request) {
			return answer{}, false
		}
		value, err := op.Run(state, q.request)
		return answer{value, err}, true
	}
	var a asker
	if how == protoactor {
		a = newProtoServer(serve)
	} else {
		a = newChannelServer(serve)
	}
	var calls []object.Call
	for op := range t.Operations {
		calls = append(calls, func(_ context.Context, r object.Request) (int64, error) { return a.ask(query{op, r}) })
	}
	return calls, a
}

// desk puts guards before an object, as every author of such a server has to: it
// keeps the queries that cannot be served yet, in the order of their arrival, and
// tries them again whenever one has been served. To is the address of a reply.
type desk[To any] struct {
	serve   serve
	reply   func(To, answer)
	pending []letter[To]
	stopped bool
}

type letter[To any] struct {
	query query
	from  To
}

// take serves a query, or keeps it for later.
func (d *desk[To]) take(q query, from To) {
	if d.stopped {
		d.reply(from, answer{err: object.ErrStopped})
		return
	}
	a, ok := d.serve(q)
	if !ok {
		d.pending = append(d.pending, letter[To]{q, from})
		return
	}
	d.reply(from, a)
	d.retry()
}

// retry serves pending queries until none can be.
func (d *desk[To]) retry() {
	for i := 0; i < len(d.pending); i++ {
		l := d.pending[i]
		if a, ok := d.serve(l.query); ok {
			d.pending = slices.Delete(d.pending, i, i+1)
			d.reply(l.from, a)
			i = -1 // the state has changed: from the start
		}
	}
}

// stop refuses what is pending and all that comes later.
func (d *desk[To]) stop() {
	d.stopped = true
	for _, l := range d.pending {
		d.reply(l.from, answer{err: object.ErrStopped})
	}
	d.pending = nil
}
