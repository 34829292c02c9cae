package mailbox

// Order numbers say in which order requests have arrived, and where those that are requeued have
// joined: behind all that are admitted, and before all in the entry queue (R3). So numbers of
// arrivals are 1<<roomShift apart: as many requests may be requeued before those in the entry
// queue have to make room for more.
const roomShift = 16

// number gives r, which arrives, its order number.
func (s *Scheduler) number(r *Request) {
	s.newest = (max(s.newest, s.entered)>>roomShift + 1) << roomShift
	r.seq, r.came = s.newest, s.newest
}

// joining returns the order number of a request that is requeued.
//
// Where a policy compares requests, all in the entry queue are admitted together to be compared.
// Those that were the last to be admitted come after the one that is requeued, as if they
// were still in the entry queue, unless nothing more could start since. (But if bypasses are
// bounded, they are admitted: they may have been bypassed there.)
func (s *Scheduler) joining() uint64 {
	if !s.compares || s.bound > 0 {
		return s.after(s.entered)
	}
	s.older = s.after(s.older)
	return s.older
}

// after returns an order number after the given one, and before all greater ones.
func (s *Scheduler) after(seq uint64) uint64 {
	if seq++; seq&(1<<roomShift-1) == 0 {
		s.makeRoom(seq)
	}
	return seq
}

// makeRoom raises all order numbers from the given one on. Their order stays the same, and
// so do the trees.
func (s *Scheduler) makeRoom(from uint64) {
	raise := func(seq *uint64) {
		if *seq >= from {
			*seq += 1 << roomShift
		}
	}
	line := func(l *line) {
		raise(&l.latest)
		for i := range l.passed {
			raise(&l.passed[i])
		}
	}
	lists := []*list{&s.threadless, &s.running} // a Try that runs may keep its place
	for op := range s.queues {
		q := &s.queues[op]
		lists = append(lists, &q.in.list, &q.entry, &q.out.list)
		line(&q.line)
		for _, l := range q.members {
			line(l)
		}
	}
	for _, l := range lists {
		for r := l.first; r != nil; r = r.next {
			raise(&r.seq)
			raise(&r.came)
		}
	}
	raise(&s.newest)
	raise(&s.entered)
}
