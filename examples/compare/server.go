package main

import "slices"

// query is a request as a message: an operation and its argument.
type query struct {
	op  int
	arg int64
}

// answer is the result of a query.
type answer struct {
	value int64
	err   error
}

func answerOf(value int64, err error) answer { return answer{value, err} }

// server is an object that serves messages, one at a time.
type server interface {
	// serve carries out a query, or reports false and does nothing if the
	// state does not allow it yet.
	serve(query) (answer, bool)
}

// asker is how callers reach a server on another thread.
type asker interface {
	ask(query) (int64, error)
}

// listen starts a server under a model in which messages are sent to it.
func listen(m model, s server) interface {
	asker
	host
} {
	if m == protoactor {
		return newProtoServer(s)
	}
	return newChannelServer(s)
}

// desk puts guards before a server, as every author of such a server has to: it
// keeps the queries that cannot be served yet, in the order of their arrival,
// and tries them again whenever one has been served. To is the address of a
// reply.
type desk[To any] struct {
	server  server
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
		d.reply(from, answer{err: errStopped})
		return
	}
	a, ok := d.server.serve(q)
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
		if a, ok := d.server.serve(l.query); ok {
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
		d.reply(l.from, answer{err: errStopped})
	}
	d.pending = nil
}
