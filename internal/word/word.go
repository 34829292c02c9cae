// Package word is the state of a shared object in one word: whether a goroutine owns it, what
// waits, and whether the fast path is open.
//
// Each transition is a pure function from one value to the next; the engine performs it by one
// atomic step. So the protocol can be checked as a whole, by walking through all interleavings
// of its steps: see the test.
//
// # Exclusive mode
//
// One owner at a time runs bodies and evaluates guards.
//
//	 63          32 31      16 15   6   5       4      3         2        1         0
//	┌──────────────┬──────────┬──────┬────────┬──────┬─────────┬────────┬─────────┬──────┐
//	│ tag of type  │ running  │      │ shared │ slow │ recheck │ parked │ engaged │ held │
//	└──────────────┴──────────┴──────┴────────┴──────┴─────────┴────────┴─────────┴──────┘
//
// An idle object without waiters is its tag alone. The fast path takes the object by a
// compare-and-swap that adds a Mark, and gives it back by the opposite one. To have the owner
// look at the scheduler before it gives the object back, a goroutine sets engaged, with the
// mutex of the scheduler held. The owner's compare-and-swap then fails, and it goes the slow way.
//
// (W1) Only the owner clears held. Of an object that is held, nothing writes the word but the owner
// and the holder of the mutex, and if it is engaged, too, only the owner, with the mutex held. So a
// goroutine that is both writes it by a store. An owner without the mutex gives the object back by a
// compare-and-swap.
//
// (W2) No wake-up is lost between an arrival and the owner that gives the object back. If the
// owner's compare-and-swap comes first, the arrival finds held clear and becomes the owner. If
// engaged comes first, the compare-and-swap fails, and the owner asks the scheduler.
//
// (W3) With parked alone all that wait have guards over the state, which were false when the word
// was stored. An owner that leaves them false may put back the word that it has found. With recheck, the scheduler has to be asked after each change; with slow, about each
// request.
//
// # Shared mode
//
// At an object that runs compatible requests at once, leaf bodies come and go by one swap each, as
// long as nothing waits.
//
//	 63                                     8 7    6    5       4      3          0
//	┌───────────┬───────────┬─────┬───────────┬──────┬────────┬──────┬────────────┐
//	│ counter 7 │ counter 6 │ ... │ counter 0 │      │ shared │ slow │ as above   │
//	└───────────┴───────────┴─────┴───────────┴──────┴────────┴──────┴────────────┘
//
// The word of such an object has no tag, and slow is always set, so that no other fast path takes
// it. A counter says how many bodies of one operation run that have come this way.
//
// (W4) A body is kept apart from those that it conflicts with. It comes in by a swap of the whole
// word, in which shared is set and their counters are zero; what comes later by a counter finds
// its own not zero, and what comes by the scheduler is considered when Exclusive has told it of
// the body. The swap also orders the end of one before the start of the next.
//
// (W5) No wake-up is lost. Before an arrival is considered the word becomes exclusive. A body that
// has left its counter before was not in its way. One that has not finds the word exclusive, and
// tells the scheduler of its end, which is asked then.
package word

// Word is the state of an object.
type Word uint64

// The flags of exclusive mode, and Shared.
const (
	Held    Word = 1 << iota // a goroutine owns the object
	Engaged                  // the owner has to ask the scheduler before it gives the object back
	Parked                   // requests wait, none of which can start as the state is
	Recheck                  // set with Parked: the fast path cannot evaluate all of their guards
	Slow                     // the fast path is closed
	Shared                   // the counters are in use: see Shared mode
)

const (
	opShift  = 16
	opBits   = Word(0xffff) << opShift
	tagShift = 32
	low      = Word(1)<<tagShift - 1
)

// Never is a value that no word has.
const Never = ^Word(0)

// Idle returns the word of an object whose type has the tag, which nothing owns and at which
// nothing waits.
func Idle(tag uint32) Word { return Word(tag) << tagShift }

// Mark returns what the owner by the fast path adds to the word while it runs the operation.
func Mark(op int) Word { return Word(op)<<opShift | Held }

// Operation returns the operation of the Mark that has been added, if Held is set without Engaged;
// or that of a Mark.
func (w Word) Operation() int { return int(w & opBits >> opShift) }

// Has reports whether any of the flags is set.
func (w Word) Has(flags Word) bool { return w&flags != 0 }

// Free reports whether the fast path may take the object, by adding a Mark.
func (w Word) Free() bool { return w&low&^(Parked|Recheck) == 0 }

// Engage has the owner ask the scheduler before it gives the object back.
func (w Word) Engage() Word { return w | Engaged }

// Own makes the goroutine the owner, which asks the scheduler.
func (w Word) Own() Word { return w | Held | Engaged }

// Close closes the fast path.
func (w Word) Close() Word { return w | Slow }

// Released gives the object back; what is known of those that wait stays.
func (w Word) Released() Word { return w &^ (Held | Engaged | opBits) }

// There are so many counters, of so many bits each. A counter whose highest bit is set lets no more
// bodies in, so that none runs over into the next.
const (
	counters    = 8
	counterBits = 7
	counterAt   = 8
	counterMask = Word(1)<<counterBits - 1
	// Most is how many bodies a counter can take over: one that has been let in fewer than that.
	Most = 1 << (counterBits - 1)
)

// Counter counts the bodies of one operation in shared mode. The zero Counter is that of an
// operation that has none.
type Counter struct {
	at   int  // of its lowest bit
	one  Word // the body of one request; 0 if there is no counter
	bars Word // keep the operation out: the counters of those that it conflicts with, and its own when it is full
}

// Exists reports whether the operation has a counter.
func (c Counter) Exists() bool { return c.one != 0 }

// Of returns how many bodies the counter says to run.
func (c Counter) Of(w Word) int {
	if c.one == 0 {
		return 0
	}
	return int(w >> c.at & counterMask)
}

// Times returns what n bodies add to the word.
func (c Counter) Times(n int) Word { return Word(n) * c.one }

// Enter lets a body in. It reports false if the word is exclusive, a body runs that conflicts with
// it, or there is no counter, or no room in it.
func (w Word) Enter(c Counter) (Word, bool) {
	if c.one == 0 || w&Shared == 0 || w&c.bars != 0 {
		return w, false
	}
	return w + c.one, true
}

// Leave lets go of a body that Enter has let in. It reports false if the word has become exclusive
// since: then the scheduler knows of the body, and is to be told of its end.
func (w Word) Leave(c Counter) (Word, bool) {
	if w&Shared == 0 {
		return w, false
	}
	return w - c.one, true
}

// Counting reports whether a counter is not zero, of a word in shared mode.
func (w Word) Counting() bool { return w&Shared != 0 && w>>counterAt != 0 }

// Exclusive makes the goroutine the owner, of an object that is not held, and ends shared mode. What
// the counters of w have said to run is the scheduler's to know from then on.
func (w Word) Exclusive() Word { return w&(Slow|Parked|Recheck) | Held | Engaged }

// Counters gives counters to operations that are eligible: to those first that are compatible with
// most of the n operations.
func Counters(n int, eligible func(op int) bool, conflicts func(a, b int) bool) []Counter {
	all := make([]Counter, n)
	compatible := func(op int) (count int) {
		for other := range n {
			if !conflicts(op, other) {
				count++
			}
		}
		return count
	}
	for at := counterAt; at < counterAt+counters*counterBits; at += counterBits {
		best := -1
		for op := range n {
			if all[op].one == 0 && eligible(op) && (best < 0 || compatible(op) > compatible(best)) {
				best = op
			}
		}
		if best < 0 {
			break
		}
		all[best] = Counter{at: at, one: 1 << at}
	}
	for op := range n {
		if all[op].one == 0 {
			continue
		}
		all[op].bars = Most << all[op].at
		for other := range n {
			if all[other].one != 0 && conflicts(op, other) {
				all[op].bars |= counterMask << all[other].at
			}
		}
	}
	return all
}
