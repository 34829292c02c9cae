package engine

import "github.com/sluice-go/sluice/mailbox"

// Record has r told how requests wait. Its events are those of Rules.Log, and the object must
// have no fast path (Config.NoFastPath). It is called before the first request.
func (m *Mailbox) Record(r mailbox.Recorder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.special().recorder = r
}

// record tells the recorder how requests wait. The caller holds mu.
func (m *Mailbox) record(to mailbox.Recorder) {
	k := m.queues.Load()
	if k == nil {
		return
	}
	to.Waits(func(yield func(*mailbox.RecordedWait) bool) {
		if !k.Waits() {
			return
		}
		c := k.Inspect()
		defer c.Close()
		var w mailbox.RecordedWait
		for more, wanted := true, true; more && wanted; {
			more = c.Next(1, func(kr *mailbox.Request, _ int) {
				r := kr.Record.(*Request)
				w = mailbox.RecordedWait{Op: r.Op, Arrival: r.Arrival(), Thread: r.thread() != nil, For: w.For[:0]}
				m.because(k, r, &w.Reason)
				for other := range k.Obstacles(kr) {
					w.For = append(w.For, other.Arrival())
				}
				wanted = yield(&w)
			})
		}
	})
}
