package mailbox

import "github.com/sluice-go/sluice/guards"

// Kind is what an operation may do to the state.
type Kind uint8

const (
	// Procedure changes the state and is always open.
	Procedure Kind = iota
	// Entry changes the state and waits for its guard.
	Entry
	// Function reads the state only.
	Function
)

// String implements fmt.Stringer.
func (k Kind) String() string {
	return [...]string{"procedure", "entry", "function"}[k]
}

// Operation is what the scheduler knows of an operation.
type Operation struct {
	Name  string
	Kind  Kind
	Guard string       // the guard's name; empty if the operation is always open
	Looks guards.Looks // what the guard looks at
	// Family operations are one entry per key: the requests have a Key, and those
	// with equal keys share a guard, which is asked with the argument of one of
	// them. It looks at no more of the argument than the key.
	Family bool
	// HeadOfLine says of a guard over arguments that only the request which is
	// considered first is asked; the others wait behind it.
	HeadOfLine bool
	// Opens are the families of which the operation can open no more than the keys
	// that the KeyOpener names. The others' guards, if false, stay so.
	Opens []int
	// Bound is on the waiting requests of the operation.
	Bound Bound
	// Resumes says that its requests are the rests of bodies that have suspended: they have started before, so that no bound
	// concerns them.
	Resumes bool
}

// Rules are the operations of an object, what conflicts with what, and the order
// of consideration. They are not changed once a scheduler uses them, and may be
// shared by many.
type Rules struct {
	Operations []Operation
	// Conflicts must have one row per operation. If it has scopes, requests of the operations
	// in these need a Claim, and may not be announced by Begin.
	Conflicts guards.Table
	// Reentrant says that requests may have a Claim that names others which wait for them.
	Reentrant bool
	// Transactional says that requests may have a Claim with a Transaction. If the rules are also
	// Commuting, operations that the table lets run beside each other commute, guards included, so that
	// this holds between transactions, too; else only functions run beside what a transaction holds.
	Transactional, Commuting bool
	// AllCompatible lets all requests start that conflict with nothing that runs: one that
	// waits because of that is not in the way of those that come later, unless it has been
	// bypassed as often as MaxBypass allows, also in the entry queue. Without a bound it may wait for
	// ever.
	AllCompatible bool
	// Policy is the order of consideration; nil means Arrival.
	Policy *Policy
	// MaxBypass bounds how often a later arrival may start while a request waits
	// (also in the entry queue, with AllCompatible) and its guard is open, or not known
	// to be false; 0 sets no bound. At the bound nothing that conflicts with the
	// request starts before it, not even an earlier arrival of the same entry that
	// was closed meanwhile.
	MaxBypass int
	// CountBypass says how far bypasses are counted for Stats if there is no bound.
	CountBypass int
	// Bound is on all waiting requests together.
	Bound Bound
	// Check makes the scheduler ask the guards that an operation cannot have opened
	// by its declaration, too, and fail the requests that it finds open with
	// *UndeclaredError.
	Check bool
	// Log, if not nil, is told everything that goes into a scheduler, what its guards
	// answer, and what comes out, in order. It must not call the scheduler.
	Log func(Event)
}

// Scoped reports whether not all requests of the operation conflict with the same.
func (r *Rules) Scoped(op int) bool {
	return r.Reentrant || r.Transactional || r.Conflicts.Narrowed(op)
}

// Object asks the guards of a shared object. The answer is empty if the guard
// holds, and else the name of the part of the guard that is false. An error
// means that the guard failed (it panicked); the requests it guards fail with it.
type Object interface {
	// AskState asks the guard of an operation that looks at the state alone.
	AskState(op int) (falsePart string, err error)
	// AskRequest asks the guard of a request that looks at its argument too.
	AskRequest(r *Request) (falsePart string, err error)
}

// KeyOpener is an Object with operations that declare what they open.
type KeyOpener interface {
	// Opens tells open which keys of the family the request, which has run, can
	// have opened.
	Opens(r *Request, family int, open func(key any))
}

// Opener is KeyOpener.Opens for a request that the scheduler has not seen.
type Opener func(family int, open func(key any))
