package word

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
)

// The protocol of exclusive mode as a model: every atomic step of every goroutine is a step of
// its own, the transitions of the word are those of this package, and the scheduler is a set of
// requests that wait. All interleavings are walked through. In none of them two goroutines own
// the object; and when no goroutine can go on, nothing waits whose guard holds, and the word
// says what there is (W1 to W3).
//
// The steps follow the engine: Operation.Call, Mailbox.CallHeld, Call, Yield and Withdraw.

// kind is what a caller does.
type kind uint8

const (
	opener  kind = iota // a procedure that makes the guard true
	closer              // a procedure that makes it false
	waiter              // an entry that waits for the guard, and makes it false
	quitter             // a waiter that withdraws its request once it waits
)

// at is how far a caller has come.
type at uint8

const (
	finished at = iota
	loading
	taking
	evaluating
	running
	leaving
	givingBack
	yielding       // it owns the object, and is to ask the scheduler
	joining        // it owns the object, and its guard is false
	joined         // the same, with the mutex held
	arriving       // it does not own the object
	engaging       // the same, with the mutex held
	swapping       // the same, having loaded the word
	serving        // it owns the object and holds the mutex
	runningAnother // it owns the object, and runs the body of a request that has waited
	serveAgain
	storing
	unlocking
	waiting
	withdrawing
	withdrawn // its request has left the queue
	clearing  // the same, having loaded the word
)

type caller struct {
	kind kind
	at   at
	w    Word // that it has loaded
	runs int8 // the caller whose request it runs
	owns bool
}

// state is one of the model. It is comparable.
type state struct {
	word    Word
	locked  bool // the mutex
	open    bool // the guard
	queue   uint8
	ended   uint8 // requests that others have run
	callers [callers]caller
}

// forget lets go of what the caller does not look at again, so that fewer states differ.
func (c *caller) forget() {
	switch c.at {
	case taking, evaluating, running, leaving, givingBack, swapping, clearing:
	default:
		c.w = 0
	}
	if c.at != runningAnother {
		c.runs = 0
	}
}

func (s *state) canStart(c int) bool { return s.callers[c].kind < waiter || s.open }

// first returns a request that can start, or -1.
func (s *state) first() int {
	for q := s.queue; q != 0; q &= q - 1 {
		if c := bits.TrailingZeros8(q); s.canStart(c) {
			return c
		}
	}
	return -1
}

// run runs the body of a caller's request.
func (s *state) run(c int) {
	s.open = s.callers[c].kind == opener
	s.ended |= 1 << c
}

// rest is the word of an object that nothing owns.
func (s *state) rest() Word {
	if s.queue != 0 {
		return Idle(1) | Parked
	}
	return Idle(1)
}

func (s *state) swap(was, w Word) bool {
	if s.word != was {
		return false
	}
	s.word = w
	return true
}

// protocol has the steps that a mutant leaves out.
type protocol struct {
	engage func(Word) Word
	own    func(Word) Word
}

// step makes the next step of a caller. It reports false if there is none now.
func (p protocol) step(s *state, i int) bool {
	c, self := &s.callers[i], uint8(1)<<i
	defer c.forget()
	lock := func(next at) bool {
		if s.locked {
			return false
		}
		s.locked, c.at = true, next
		return true
	}
	switch c.at {
	case finished:
		return false
	case loading:
		if c.w, c.at = s.word, taking; !c.w.Free() {
			c.at = arriving
		}
	case taking:
		if c.at = arriving; s.swap(c.w, c.w|Mark(i)) {
			c.at, c.owns = evaluating, true
		}
	case evaluating:
		if c.at = running; !s.canStart(i) {
			c.at = joining
		}
	case running:
		s.run(i)
		c.at = leaving
	case leaving:
		if c.at = givingBack; c.w.Has(Parked) && s.open {
			c.at = yielding
		}
	case givingBack:
		if c.at = yielding; s.swap(c.w|Mark(i), c.w) {
			c.at, c.owns = finished, false
		}
	case yielding:
		if !lock(serving) {
			return false
		}
		s.word = p.engage(s.word)
	case joining:
		return lock(joined)
	case joined:
		s.queue |= self
		if c.at = serving; !s.word.Has(Engaged) {
			c.at = storing
		}
	case arriving:
		return lock(engaging)
	case engaging:
		c.w, c.at = s.word, swapping
	case swapping:
		switch c.at = engaging; {
		case !c.w.Has(Held):
			if s.swap(c.w, p.own(c.w)) {
				c.at, c.owns = serving, true
				s.queue |= self
			}
		case c.w.Has(Engaged) || s.swap(c.w, p.engage(c.w)):
			c.at = unlocking
			s.queue |= self
		}
	case serving:
		if next := s.first(); next >= 0 {
			s.queue &^= 1 << next
			s.locked, c.runs, c.at = false, int8(next), runningAnother
		} else {
			c.at = storing
		}
	case runningAnother:
		s.run(int(c.runs))
		c.at = serveAgain
	case serveAgain:
		return lock(serving)
	case storing:
		s.word, c.at, c.owns = s.rest(), unlocking, false
	case unlocking:
		s.locked, c.at = false, waiting
	case waiting:
		switch {
		case s.ended&self != 0:
			c.at = finished
		case c.kind == quitter:
			c.at = withdrawing
		default:
			return false
		}
	case withdrawing:
		if !lock(withdrawn) {
			return false
		}
		if s.queue&self == 0 {
			s.locked, c.at, c.kind = false, waiting, waiter // it has been chosen to start
			return true
		}
		s.queue &^= self
		s.ended |= self
	case withdrawn:
		if c.w, c.at = s.word, unlocking; c.w.Has(Parked) && s.queue == 0 {
			c.at = clearing
		}
	case clearing:
		switch c.at = withdrawn; {
		case !c.w.Has(Held):
			if s.swap(c.w, p.own(c.w)) {
				c.at, c.owns = storing, true
			}
		case c.w.Has(Engaged) || s.swap(c.w, p.engage(c.w)):
			c.at = unlocking
		}
	}
	return true
}

// check returns what is wrong with a state.
func (s *state) check(last bool) string {
	owners := 0
	for _, c := range s.callers {
		if c.owns {
			owners++
		}
	}
	switch {
	case owners > 1:
		return "two own the object"
	case owners == 1 != s.word.Has(Held):
		return "the word does not say whether the object is owned"
	case !last:
	case s.first() >= 0:
		return "a request waits that could start"
	case s.word != s.rest():
		return "the word does not say what waits"
	}
	for i, c := range s.callers {
		if last && c.at != finished && (c.at != waiting || s.queue&(1<<i) == 0) {
			return "a caller stands still that does not wait"
		}
	}
	return ""
}

// explore walks through all interleavings of callers of the kinds.
func (p protocol) explore(kinds [callers]kind) (states int, problem string) {
	first := state{word: Idle(1)}
	for i, k := range kinds {
		first.callers[i] = caller{kind: k, at: loading}
	}
	return explore(first, p.step, (*state).check)
}

// mixes are all the ways to choose kinds for the callers, whose order does not matter.
func mixes(yield func([callers]kind) bool) {
	var mix [callers]kind
	var choose func(i int, least kind) bool
	choose = func(i int, least kind) bool {
		if i == callers {
			return yield(mix)
		}
		for k := least; k <= quitter; k++ {
			if mix[i] = k; !choose(i+1, k) {
				return false
			}
		}
		return true
	}
	choose(0, opener)
}

func TestOneOwnsAnObjectAndNoWakeUpIsLost(t *testing.T) {
	p := protocol{engage: Word.Engage, own: Word.Own}
	total := 0
	for mix := range mixes {
		states, problem := p.explore(mix)
		require.Empty(t, problem, mix)
		total += states
	}
	t.Log(total, "states")
}

// The model finds what is wrong with a protocol that leaves a step out.
func TestTheModelFindsAMissingStep(t *testing.T) {
	for name, p := range map[string]protocol{
		"an arrival does not engage the owner": {engage: func(w Word) Word { return w }, own: Word.Own},
		"an owner does not mark the object":    {engage: Word.Engage, own: func(w Word) Word { return w }},
	} {
		t.Run(name, func(t *testing.T) {
			for mix := range mixes {
				if _, problem := p.explore(mix); problem != "" {
					t.Log(problem)
					return
				}
			}
			t.Fatal("nothing is found")
		})
	}
}
