package mailbox

// What need not be looked at.
//
// Next looks at everybody who may start, lets in who is at the gate, and so on, until nothing can
// start: then the scheduler rests. Most of the time most of that is known beforehand: whoever waits
// inside cannot start before something else has happened than an arrival. These are the same
// decisions by fewer steps, where neither policies nor bounds, bypasses that are counted, or scopes
// have a say in them.

// rest notes that nothing more can start.
func (k *Scheduler) rest() {
	k.rests++
	if !k.Runs() {
		k.older = k.entered // the guards of all inside are false
	}
	k.settled = k.step
	k.rested = k.inputs()
}

// inputs numbers the states of the scheduler between which more has happened than arrivals.
func (k *Scheduler) inputs() uint64 { return k.step - k.arrivals + k.counting }

// still reports whether nothing has happened but arrivals since nothing could start, so
// that nobody inside can; where neither policies nor bounds have a say in it.
func (k *Scheduler) still() bool { return k.rested == k.inputs() && k.stills }

// lone returns the request at the gate, if it is the only one and can be let in.
func (k *Scheduler) lone() *Request {
	if k.gated.n != 1 {
		return nil
	}
	op := k.gated.Next(0)
	if r := k.queues[op].gate.first; r.next == nil && !r.Try && !k.barred(op) {
		return r
	}
	return nil
}

// decide lets r in, before which nobody inside can start, and returns who can then, if
// anybody.
func (k *Scheduler) decide(r *Request) *Request {
	k.letIn(r)
	switch {
	case k.failed.first != nil:
		return nil
	case k.watchful || k.counted > 0 || k.Runs():
		return k.pick()
	}
	return k.firstOpen(r.Op) // the others are closed
}

// Come is Arrive and Next in one for a request that finds everything at rest, if it joins a line
// of which there is no more to know, by somebody who has the object to himself and has run
// nothing. It reports whether the request has come, and whether it, like all others, has to wait;
// if it has come and that is not so, Next says who starts, or has failed. If it has not come
// nothing has been done.
func (k *Scheduler) Come(r *Request) (come, waits bool) {
	q := &k.queues[r.Op]
	if !q.plain || r.Try || !k.still() || !k.calm() {
		return false, false
	}
	k.register(r)
	k.enter(r, one|indoors)
	switch {
	case k.watchful && k.inside.n > 1:
		if k.pick() != nil {
			return true, false
		}
	case !k.watchful && q.inside.first != r: // whoever is first cannot start, as before
	case k.lets(q, q.inside.first):
		return true, false
	}
	if k.failed.first != nil {
		return true, false
	}
	k.rest()
	return true, true
}

// Join is Arrive and Next in one for a request whose guard has been asked, and is
// false, by somebody who has the object to himself. It reports false, and does
// nothing, if anybody else has to be considered first.
func (k *Scheduler) Join(r *Request, falsePart string) bool {
	if !k.queues[r.Op].joins || !k.calm() {
		return false
	}
	k.join(r)
	k.Refuted(r, falsePart)
	return true
}

// calm reports whether nobody is outside, runs, or has failed.
func (k *Scheduler) calm() bool {
	return k.closed == nil && !k.held && k.gated.n == 0 && k.runningOps.n == 0 && k.failed.first == nil
}

// join lets r in, which has to wait.
func (k *Scheduler) join(r *Request) {
	k.register(r)
	k.hasToWait(r)
	k.enter(r, one|indoors)
	k.older = k.entered
}
