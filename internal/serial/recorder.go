package serial

import (
	"slices"
	"sync"
)

// Recorder records a history while transactions run. The zero value is ready for use. All methods of it and of its
// recordings can be called by many goroutines at once.
type Recorder struct {
	mu   sync.Mutex
	now  int64 // a logical clock, advanced by each start and end
	txns []*Txn
}

// Begin records the start of a transaction, whose ID is the number of transactions begun so far. It is called before
// the transaction starts. Every attempt of a transaction that is run again is a transaction of its own.
func (r *Recorder) Begin() *Recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now++
	txn := &Txn{ID: len(r.txns) + 1, Start: r.now}
	r.txns = append(r.txns, txn)
	return &Recording{r, txn}
}

// History returns a copy of what has been recorded. The status of a transaction that has not ended is Unknown.
func (r *Recorder) History() []Txn {
	r.mu.Lock()
	defer r.mu.Unlock()
	history := make([]Txn, len(r.txns))
	for i, txn := range r.txns {
		history[i] = *txn
		history[i].Ops = slices.Clone(txn.Ops)
	}
	return history
}

// Recording records one transaction. Operations that a transaction makes in parallel are recorded in the order of
// the calls to the recording; if they are on the same list, this has to be the order in which they took effect.
type Recording struct {
	recorder *Recorder
	txn      *Txn
}

// ID returns the number of the transaction in the history.
func (r *Recording) ID() int { return r.txn.ID }

// Append records that the transaction appended the value to the list of that name, or may have: an append of a
// transaction that aborts is recorded too, so that a read of it is recognized.
func (r *Recording) Append(key string, value int) { r.record(Append(key, value)) }

// Read records that the transaction read the list of that name and found these values, which are copied.
func (r *Recording) Read(key string, list []int) { r.record(Read(key, slices.Clone(list))) }

func (r *Recording) record(op Op) {
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	r.txn.late = r.txn.late || r.txn.End != 0
	r.txn.Ops = append(r.txn.Ops, op)
}

// End records the outcome of the transaction. It is called after the commit or the rollback has returned. Whatever
// is recorded of the transaction afterwards makes the history malformed.
func (r *Recording) End(status Status) {
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	r.txn.late = r.txn.late || r.txn.End != 0
	r.recorder.now++
	r.txn.Status, r.txn.End = status, r.recorder.now
}
