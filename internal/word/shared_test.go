package word

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
)

// The protocol of shared mode as a model, like that of exclusive mode: readers run beside each
// other, and a writer alone. In no interleaving a writer runs beside another body; and when no
// goroutine can go on, nothing waits, and the word is shared again and counts nothing (W4, W5).
//
// The steps follow the engine: Mailbox.Admit, Depart, Yield, Call, setExclusive, fan, setShared
// and left.

const (
	read = iota
	write
	operations
)

var counting = Counters(operations, func(int) bool { return true }, func(a, b int) bool { return a == write || b == write })

// place is how far a caller has come.
type place uint8

const (
	gone place = iota
	looking
	entering
	inside // its body runs
	lookingBack
	leavingCounter
	departing        // the word was exclusive
	departingAgain   // the same, with the mutex held
	leavingHeld      // the same, having seen that the word is shared again
	comingIn         // it is to arrive
	makingExclusive  // with the mutex held
	swappingToOwn    // the same, having loaded the word
	deciding         // it owns the object and holds the mutex
	starting         // it has chosen a request to start, and let go of the mutex
	givingUp         // nothing can start: it is to give the object back
	lettingGo        // of the mutex
	queued           // it waits
	insideGranted    // its body runs, as the scheduler knows
	leavingScheduler // the body has returned
	takingDoubles    // with the mutex held
	takingDouble     // the same, having loaded the word
)

type visitor struct {
	op   int8
	at   place
	w    Word
	owns bool
	next place // where it goes on after it has tried to become the owner, if it does not
}

// room is a state of the model.
type room struct {
	word     Word
	locked   bool
	queue    uint8 // requests that wait
	granted  uint8 // those that have been started
	runs     [operations]int8
	unseen   [operations]int8 // run by a counter, and are known to the scheduler
	doubles  [operations]bool // the counter has one more for those that the scheduler knows of
	visitors [callers]visitor
}

func (h *room) swap(was, w Word) bool {
	if h.word != was {
		return false
	}
	h.word = w
	return true
}

// startable returns the first request, if nothing runs that it conflicts with, or -1.
func (h *room) startable() int {
	if h.queue == 0 {
		return -1
	}
	i := bits.TrailingZeros8(h.queue)
	writers := h.runs[write] + h.unseen[write]
	readers := h.runs[read] + h.unseen[read]
	if writers > 0 || readers > 0 && h.visitors[i].op == write {
		return -1
	}
	return i
}

// track makes what the counters of w count the scheduler's to know.
func (h *room) track(w Word) {
	if !w.Has(Shared) {
		return
	}
	for op, c := range counting {
		n := int8(c.Of(w))
		if h.doubles[op] {
			h.doubles[op] = false
			n--
		}
		h.unseen[op] += n
	}
}

// share returns the word with which an owner gives the object back.
func (h *room) share() Word {
	if h.queue != 0 {
		return Slow
	}
	w := Slow | Shared
	for op, c := range counting {
		n := h.unseen[op]
		if h.doubles[op] = h.runs[op] > 0; h.doubles[op] {
			n++
		}
		h.unseen[op] = 0
		w += c.Times(int(n))
	}
	return w
}

// visit has what a mutant leaves out.
type visit struct {
	exclusive bool // an arrival ends shared mode before it is considered
	again     bool // a body that finds the word exclusive when it ends looks again with the mutex held
}

func (v visit) step(h *room, i int) bool {
	g, self := &h.visitors[i], uint8(1)<<i
	defer func() {
		switch g.at {
		case entering, leavingCounter, leavingHeld, swappingToOwn, takingDouble:
		default:
			g.w = 0
		}
	}()
	lock := func(next place) bool {
		if h.locked {
			return false
		}
		h.locked, g.at = true, next
		return true
	}
	own := func(otherwise place) { g.at, g.next = makingExclusive, otherwise }
	switch c := counting[g.op]; g.at {
	case gone:
		return false
	case looking:
		g.w, g.at = h.word, entering
		if _, ok := h.word.Enter(c); !ok {
			g.at = comingIn
		}
	case entering:
		next, _ := g.w.Enter(c)
		if g.at = looking; h.swap(g.w, next) {
			g.at = inside
		}
	case inside:
		g.at = lookingBack
	case lookingBack:
		g.w, g.at = h.word, leavingCounter
		if _, ok := h.word.Leave(c); !ok {
			g.at = departing
		}
	case leavingCounter:
		next, _ := g.w.Leave(c)
		if g.at = lookingBack; h.swap(g.w, next) {
			g.at = gone
		}
	case departing:
		return lock(departingAgain)
	case departingAgain:
		if _, ok := h.word.Leave(c); ok && v.again {
			g.w, g.at = h.word, leavingHeld
			break
		}
		h.unseen[g.op]--
		own(lettingGo)
	case leavingHeld:
		next, _ := g.w.Leave(c)
		if g.at = departingAgain; h.swap(g.w, next) {
			g.at = lettingGo
		}
	case comingIn:
		if !lock(makingExclusive) {
			return false
		}
		h.queue |= self
		if g.next = lettingGo; !v.exclusive {
			g.at = deciding
		}
	case makingExclusive:
		if g.w, g.at = h.word, swappingToOwn; h.word.Has(Held) {
			g.at = g.next
		}
	case swappingToOwn:
		if g.at = makingExclusive; h.swap(g.w, g.w.Exclusive()) {
			h.track(g.w)
			g.at, g.owns = deciding, true
		}
	case deciding:
		g.at = givingUp
		if r := h.startable(); r >= 0 {
			h.queue &^= 1 << r
			h.runs[h.visitors[r].op]++
			h.granted |= 1 << r
			h.locked, g.at = false, starting
		}
	case starting:
		return lock(deciding)
	case givingUp:
		h.word, g.at, g.owns = h.share(), lettingGo, false
	case lettingGo:
		if h.locked, g.at = false, gone; (h.queue|h.granted)&self != 0 {
			g.at = queued
		}
	case queued:
		if h.granted&self == 0 {
			return false
		}
		h.granted &^= self
		g.at = insideGranted
	case insideGranted:
		g.at = leavingScheduler
	case leavingScheduler:
		if !lock(takingDoubles) {
			return false
		}
		h.runs[g.op]--
	case takingDoubles:
		switch {
		case !h.word.Has(Shared) || h.queue != 0:
			own(lettingGo)
		case h.doubles[g.op] && h.runs[g.op] == 0:
			g.w, g.at = h.word, takingDouble
		default:
			g.at = lettingGo
		}
	case takingDouble:
		next, _ := g.w.Leave(c)
		if g.at = takingDoubles; h.swap(g.w, next) {
			h.doubles[g.op] = false
		}
	}
	return true
}

func (h *room) check(last bool) string {
	var running [operations]int
	owners := 0
	for _, g := range h.visitors {
		if g.at == inside || g.at == insideGranted {
			running[g.op]++
		}
		if g.owns {
			owners++
		}
	}
	switch {
	case running[write] > 1 || running[write] == 1 && running[read] > 0:
		return "a writer does not run alone"
	case owners > 1:
		return "two own the object"
	case h.unseen[read] < 0 || h.unseen[write] < 0:
		return "the scheduler is told of the end of a body that it does not know"
	case !last:
	case h.queue != 0:
		return "a request waits, and nothing runs"
	case h.word != Slow|Shared:
		return "the word counts what does not run"
	}
	for _, g := range h.visitors {
		if last && g.at != gone {
			return "a goroutine stands still"
		}
	}
	return ""
}

// explore walks through all interleavings of so many writers, and readers.
func (v visit) explore(writers int) (states int, problem string) {
	first := room{word: Slow | Shared}
	for i := range first.visitors {
		first.visitors[i] = visitor{at: looking}
		if i < writers {
			first.visitors[i].op = write
		}
	}
	return explore(first, v.step, (*room).check)
}

func TestSharedModeKeepsConflictingBodiesApartAndLosesNoWakeUp(t *testing.T) {
	for writers := range callers + 1 {
		states, problem := visit{true, true}.explore(writers)
		require.Empty(t, problem, "%d writers", writers)
		t.Log(writers, "writers:", states, "states")
	}
}

func TestTheModelOfSharedModeFindsAMissingStep(t *testing.T) {
	for name, v := range map[string]visit{
		"an arrival is considered in shared mode":      {exclusive: false, again: true},
		"a body that ends does not look a second time": {exclusive: true, again: false},
	} {
		t.Run(name, func(t *testing.T) {
			for writers := range callers + 1 {
				if _, problem := v.explore(writers); problem != "" {
					t.Log(problem)
					return
				}
			}
			t.Fatal("nothing is found")
		})
	}
}

// A counter that is full lets no more in, and does not run over into the next.
func TestAFullCounterLetsNoMoreIn(t *testing.T) {
	all := Counters(9, func(int) bool { return true }, func(a, b int) bool { return false })
	require.False(t, all[8].Exists(), "there are no more than eight")
	_, ok := (Slow | Shared).Enter(all[8])
	require.False(t, ok)
	for op, c := range all[:8] {
		w, ok := Slow|Shared, true
		for n := 0; ; n++ {
			require.Equal(t, n, c.Of(w))
			if w, ok = w.Enter(c); !ok {
				require.Equal(t, Most, n)
				break
			}
		}
		for other, d := range all[:8] {
			if other != op {
				require.Zero(t, d.Of(w))
			}
		}
		for range Most {
			w, ok = w.Leave(c)
			require.True(t, ok)
		}
		require.Equal(t, Slow|Shared, w)
	}
}
