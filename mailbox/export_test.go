package mailbox

// What becomes of a request that has been granted, and what its caller finds, for tests that take
// these steps one by one.
const (
	Own      = own
	Done     = done
	Returned = returned
)

func (m *Mailbox) Grant(r *Request) { r.at(m); m.grant(r) }
func (m *Mailbox) Unbegun() int32   { return m.fanned().unbegun.Load() }
func (r *Request) Begin() uint32    { <-r.wake; return r.begin() }
func (r *Request) Borrow() bool     { return r.borrow() }
func (r *Request) Leave(s uint32)   { r.leave(s) }

// AtRest reports whether r can be used for another call: nobody else will touch it.
func (r *Request) AtRest() bool { return r.stage.Load() == own && len(r.wake) == 0 }
