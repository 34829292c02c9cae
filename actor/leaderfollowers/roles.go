package leaderfollowers

import "github.com/sluice-go/sluice/activeobject"

// roles is the state of the synchronizer that the threads of a pool share: which of them leads. It is
// a shared object like any other. The followers are the requests that wait at its entry "lead", whose
// guard is "no leader"; the object's policy is the order of promotion.
//
//	           promote                          begin
//	follower ──────────► on its way to lead ──────────► leader ──event, promote──► processing
//	   ▲                        │ another thread leads    ▲                            │
//	   └────────────────────────┘                         └──── back: none leads ◄─────┤
//	   ▲                                                                               │
//	   └──────────────────────────── back: one leads ◄─────────────────────────────────┘
//
// A promoted follower has the role at once, but its goroutine still has to be woken. Until it begins,
// a thread that comes back from processing may take the role in its place, as that one is running
// already: so a pool whose events are short is not one switch of goroutines for each of them. The
// thread that was promoted finds out when it begins, and follows again; and if a thread is to be
// promoted before that, it is that one, which needs no second waking.
type roles struct {
	// leader has the role of the leader; nil if none has it.
	leader *thread
	// coming is the thread that has been promoted and has not begun: it is the leader, or another
	// thread has taken the role from it.
	coming *thread
	// retiring is how many followers are to look whether the pool has become smaller.
	retiring int
}

// verdict says what a thread is to do that has waited as a follower.
type verdict uint8

const (
	leads   verdict = iota // begin
	retires                // end, if the pool has too many threads
)

// free is the guard of lead.
func (r *roles) free() bool { return r.leader == nil || r.retiring > 0 }

// lead gives the role to a follower. Promoted followers begin by begin.
func (r *roles) lead(t *thread) verdict {
	if r.leader != nil {
		r.retiring--
		return retires
	}
	r.leader, r.coming = t, t
	return leads
}

// begin reports whether the thread, which lead has given the role, still has it.
func (r *roles) begin(t *thread) bool {
	r.coming = nil
	return r.leader == t
}

// back reports whether a thread that has come back is the leader now: if none is, or if the one that
// was promoted has not begun.
func (r *roles) back(t *thread) bool {
	if r.leader != nil && r.leader != r.coming {
		return false
	}
	r.leader = t
	return true
}

// promote ends the leadership of the thread that has it. A thread that is on its way leads next, or
// else the guard of lead holds.
func (r *roles) promote(*thread) { r.leader = r.coming }

// retire has up to n followers look whether they are to end.
func (r *roles) retire(n int) { r.retiring = n }

var (
	synchronizers = activeobject.NewType[roles]("leader/followers")
	lead          = activeobject.Entry(synchronizers, "lead", activeobject.ArgResult((*roles).lead)).When("no leader", (*roles).free)
	begin         = activeobject.Procedure(synchronizers, "begin", activeobject.ArgResult((*roles).begin))
	back          = activeobject.Procedure(synchronizers, "back", activeobject.ArgResult((*roles).back))
	promote       = activeobject.Procedure(synchronizers, "promote", activeobject.Arg((*roles).promote))
	retire        = activeobject.Procedure(synchronizers, "retire", activeobject.Arg((*roles).retire))
)
