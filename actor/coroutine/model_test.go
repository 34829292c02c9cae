package coroutine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// explore walks through all interleavings of three threads' steps from a first state. Step makes
// the next step of a thread, and reports false if there is none now; check says what is wrong with
// a state, which is the last if no thread can go on. Explore returns how many states there are, and
// what is wrong with one of them.
func explore[S comparable](first S, step func(s *S, thread int) bool, check func(s *S, last bool) string) (states int, problem string) {
	seen, todo := map[S]bool{first: true}, []S{first}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		last := true
		for i := range 3 {
			next := s
			if !step(&next, i) {
				continue
			}
			last = false
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
		if problem := check(&s, last); problem != "" {
			return len(seen), fmt.Sprintf("%s: %+v", problem, s)
		}
	}
	return len(seen), ""
}

// The model of Signal: a waiter that takes items, and two notifiers that put two items each: four
// events.
type signalState struct {
	items    int8
	kept     bool // a Notify
	parked   bool
	notified int8    // calls of Notify that have taken effect
	returned int8    // calls of Wait that have returned nil
	pc       [3]int8 // of a notifier: two steps for each of two events; of the waiter: see step
	taken    int8
}

// signalMutation is a mistake in the model of Signal.
type signalMutation int

const (
	noMistake            signalMutation = iota
	notifyIsForgotten                   // if no goroutine waits, as Java's notify does
	notifyBeforePut                     // the waiter is woken before its condition holds
	waitDoesNotConsume                  // a Notify that was kept stays
	waitChecksThenParks                 // in two steps
	waitClearsAfterwards                // notified = false is a step of its own after the wait
	waiterDoesNotCheck                  // it takes one item for each Wait, though several Notify count as one
)

func signalStep(m signalMutation) func(*signalState, int) bool {
	return func(s *signalState, thread int) bool {
		if thread > 0 { // a notifier
			pc := s.pc[thread]
			if pc == 4 {
				return false
			}
			s.pc[thread]++
			if pc%2 == 0 == (m != notifyBeforePut) {
				s.items++
				return true
			}
			s.notified++
			switch {
			case s.parked:
				s.parked = false
				if m == waitClearsAfterwards {
					s.kept = true
				}
			case m != notifyIsForgotten:
				s.kept = true
			}
			return true
		}
		switch s.pc[0] {
		case 0: // check
			if s.items > 0 {
				s.items--
				s.taken++
				if m == waiterDoesNotCheck {
					s.pc[0] = 1
				}
				return true
			}
			s.pc[0] = 1
		case 1: // Wait
			switch {
			case s.kept:
				if m == waitClearsAfterwards {
					s.pc[0] = 3
					return true
				}
				s.kept = m == waitDoesNotConsume
				s.returned++
				s.pc[0] = 0
			case s.taken == 4:
				return false
			case m == waitChecksThenParks:
				s.pc[0] = 4
			default:
				s.parked = true
				s.pc[0] = 2
			}
		case 2: // parked
			if s.parked {
				return false
			}
			if m == waitClearsAfterwards {
				s.pc[0] = 3
				return true
			}
			s.returned++
			s.pc[0] = 0
		case 3: // a mistake: the condition is checked, and then the flag is cleared
			if s.items > 0 {
				s.items--
				s.taken++
				return true
			}
			s.pc[0] = 5
		case 4: // a mistake
			s.parked = true
			s.pc[0] = 2
		case 5: // a mistake
			s.kept = false
			s.pc[0] = 1
		}
		return true
	}
}

func signalCheck(s *signalState, last bool) string {
	switch {
	case s.returned > s.notified:
		return "a Wait has returned without a Notify"
	case last && s.items > 0:
		return "a wake-up is lost"
	}
	return ""
}

func TestTheModelOfSignalLosesNoWakeUp(t *testing.T) {
	states, problem := explore(signalState{}, signalStep(noMistake), signalCheck)
	require.Empty(t, problem)
	require.Greater(t, states, 100)
	t.Log(states, "states")
}

func TestTheModelOfSignalFindsEachMistake(t *testing.T) {
	for m, want := range map[signalMutation]string{
		notifyIsForgotten:    "a wake-up is lost",
		notifyBeforePut:      "a wake-up is lost",
		waitDoesNotConsume:   "a Wait has returned without a Notify",
		waitChecksThenParks:  "a wake-up is lost",
		waitClearsAfterwards: "a wake-up is lost",
		waiterDoesNotCheck:   "a wake-up is lost",
	} {
		_, problem := explore(signalState{}, signalStep(m), signalCheck)
		require.Contains(t, problem, want, "mistake %d", m)
	}
}

// The model of blocking and unblocking: thread 0 puts two tokens, each with a call of Unblocked;
// threads 1 and 2 are workers, which run two coroutines that wait for a token each: four events. A
// step is what happens under mu, or one atomic operation.
type blockState struct {
	tokens, version, waiting int8
	line                     [2]int8 // coroutines that wait, 1 or 2; 0 where there is none
	queue                    [4]int8 // 1 and 2 are coroutines, 3 is the blocker
	examination              examination
	lock                     int8 // the thread that holds mu, plus 1
	put, puts                int8 // the step of thread 0, and how many tokens it has put
	workers                  [2]workerState
	coroutines               [2]coroutineState
	twice                    bool // a coroutine has been resumed that was running
}

type workerState struct {
	pc      int8
	runs    int8 // the coroutine
	version int8
	blocked bool
}

type coroutineState struct {
	pc        int8
	version   int8
	evaluated bool
	enlisted  bool // by itself, which is a mistake
	running   bool
	again     bool
}

// What a worker is about.
const (
	looking int8 = iota
	evaluating
	deciding
	runs
	counting  // it puts the coroutine into the line
	comparing // and compares versions
)

// What a coroutine is about.
const (
	begins int8 = iota
	evaluates
	takes
	waits // it has switched out, or is about to
	over
)

// blockMutation is a mistake in the model of blocking.
type blockMutation int

const (
	correct blockMutation = iota
	changeAfterUnblocked
	versionAfterWaiting    // Unblocked looks whether a routine waits, and then raises the version
	enlistWithoutVersion   // a routine with an old evaluation is not examined
	versionAfterEvaluation // it is read after the condition
	enlistComparesFirst    // the version, and then is counted
	enlistBeforeSwitch     // by the coroutine itself
	enlistDoesNotExamine   // one that has evaluated nothing, and comes into an empty line
	decideWithoutVersion   // a worker that finds the blocker blocked drops it
	firstOnly              // the next in the line is not examined
	examineTwice           // a blocker that is in the run queue, or being examined, is queued again
)

func (s *blockState) push(entry int8) {
	for i := range s.queue {
		if s.queue[i] == 0 {
			s.queue[i] = entry
			return
		}
	}
	s.twice = true
}

func (s *blockState) examine(m blockMutation) {
	if s.examination == idle || m == examineTwice {
		s.examination = queued
		s.push(3)
	}
}

func (s *blockState) enlist(c int8) {
	if s.line[0] == 0 {
		s.line[0] = c
	} else if s.coroutines[c-1].again { // it keeps its place: it was the first
		s.line[0], s.line[1] = c, s.line[0]
	} else {
		s.line[1] = c
	}
	s.coroutines[c-1].again = true
}

// producerStep is a step of the thread that puts tokens.
func (s *blockState) producerStep(m blockMutation) bool {
	if s.puts == 2 {
		return false
	}
	steps := []func() bool{
		func() bool { s.tokens++; return true },
		func() bool { s.version++; return true },
		func() bool { return s.waiting > 0 },
		func() bool {
			if s.line[0] != 0 {
				s.examine(m)
			}
			return true
		},
	}
	switch m {
	case changeAfterUnblocked:
		steps = []func() bool{steps[1], steps[2], steps[3], steps[0]}
		if s.put == 1 && s.waiting == 0 {
			s.put = 3
			return true
		}
	case versionAfterWaiting:
		steps[1], steps[2] = steps[2], steps[1]
		if s.put == 1 && s.waiting == 0 { // it will raise the version, and do nothing else
			s.put = 4
			return true
		}
		if s.put == 4 {
			s.version++
			s.put, s.puts = 0, s.puts+1
			return true
		}
	}
	locks := 3
	if m == changeAfterUnblocked {
		locks = 2
	}
	if int(s.put) == locks && s.lock != 0 {
		return false
	}
	if !steps[s.put]() || s.put == 3 {
		s.put, s.puts = 0, s.puts+1
		return true
	}
	s.put++
	return true
}

// workerStep is a step of worker i.
func (s *blockState) workerStep(m blockMutation, i int) bool {
	w := &s.workers[i]
	mine := int8(i + 2)
	free := s.lock == 0 || s.lock == mine
	switch w.pc {
	case looking:
		entry := s.queue[0]
		if entry == 0 || !free {
			return false
		}
		copy(s.queue[:], s.queue[1:])
		s.queue[3] = 0
		if entry == 3 {
			s.examination = examined
			w.version = s.version
			w.pc = evaluating
			return true
		}
		s.resume(w, entry)
	case evaluating:
		w.blocked = s.tokens == 0
		w.pc = deciding
	case deciding:
		if !free {
			return false
		}
		w.pc = looking
		if m != examineTwice || s.examination == examined {
			s.examination = idle
		}
		switch {
		case s.line[0] == 0:
		case w.blocked:
			if s.version != w.version && m != decideWithoutVersion {
				s.examine(m)
			}
		default:
			c := s.line[0]
			s.line[0], s.line[1] = s.line[1], 0
			s.waiting--
			if s.line[0] != 0 && m != firstOnly {
				s.examine(m)
			}
			s.resume(w, c)
		}
	case runs:
		return s.coroutineStep(m, w)
	case counting: // settle: under mu, which it keeps for the next step
		if !free {
			return false
		}
		c := &s.coroutines[w.runs-1]
		c.running = false
		if c.enlisted {
			c.enlisted = false
			w.pc = looking
			return true
		}
		s.lock = mine
		if m == enlistComparesFirst {
			w.blocked = c.evaluated && s.version != c.version
		}
		w.pc = comparing
		if m != enlistComparesFirst {
			s.enlist(w.runs)
			s.waiting++
		}
	case comparing:
		c := &s.coroutines[w.runs-1]
		old := c.evaluated && s.version != c.version
		if m == enlistComparesFirst {
			old = w.blocked
			s.enlist(w.runs)
			s.waiting++
		}
		alone := !c.evaluated && s.waiting == 1
		if old && m != enlistWithoutVersion || alone && m != enlistDoesNotExamine {
			s.examine(m)
		}
		s.lock = 0
		w.pc = looking
	}
	return true
}

// resume has a worker run a coroutine.
func (s *blockState) resume(w *workerState, c int8) {
	w.pc, w.runs = runs, c
	s.twice = s.twice || s.coroutines[c-1].running
	s.coroutines[c-1].running = true
	if s.coroutines[c-1].pc == waits {
		s.coroutines[c-1].pc = takes
	}
}

// coroutineStep is a step of the coroutine that the worker runs.
func (s *blockState) coroutineStep(m blockMutation, w *workerState) bool {
	c := &s.coroutines[w.runs-1]
	switch c.pc {
	case begins:
		if !c.again && s.waiting > 0 {
			c.evaluated = false
			c.pc = waits
			return true
		}
		if m == versionAfterEvaluation {
			c.evaluated = s.tokens == 0
		} else {
			c.version = s.version
		}
		c.pc = evaluates
	case evaluates:
		blocked := s.tokens == 0
		if m == versionAfterEvaluation {
			blocked = c.evaluated
			c.version = s.version
		}
		if c.pc = takes; blocked {
			c.evaluated = true
			c.pc = waits
		}
	case takes:
		if c.pc = begins; s.tokens > 0 {
			s.tokens--
			c.pc = over
		}
	case waits:
		if m == enlistBeforeSwitch && !c.enlisted {
			if s.lock != 0 {
				return false
			}
			c.enlisted = true
			s.enlist(w.runs)
			if s.waiting++; !c.evaluated && s.waiting == 1 || c.evaluated && s.version != c.version {
				s.examine(m)
			}
			return true
		}
		w.pc = counting
	case over:
		c.running = false
		w.pc = looking
	}
	return true
}

func blockStep(m blockMutation) func(*blockState, int) bool {
	return func(s *blockState, thread int) bool {
		if thread == 0 {
			return s.producerStep(m)
		}
		return s.workerStep(m, thread-1)
	}
}

func blockCheck(s *blockState, last bool) string {
	var places [4]int
	for _, c := range s.line {
		places[c]++
	}
	for _, c := range s.queue {
		places[c]++
	}
	for i, c := range s.coroutines {
		if c.running && places[i+1] > 0 || places[i+1] > 1 || s.twice {
			return "a coroutine is running and in another place"
		}
	}
	switch {
	case places[3] > 1:
		return "the blocker is queued twice"
	case last && (s.coroutines[0].pc != over || s.coroutines[1].pc != over):
		return "a wake-up is lost"
	}
	return ""
}

// twoBegin is the state in which two coroutines are about to begin.
var twoBegin = blockState{queue: [4]int8{1, 2}}

func TestTheModelOfBlockingLosesNoWakeUp(t *testing.T) {
	states, problem := explore(twoBegin, blockStep(correct), blockCheck)
	require.Empty(t, problem)
	require.Greater(t, states, 1000)
	t.Log(states, "states")
}

func TestTheModelOfBlockingFindsEachMistake(t *testing.T) {
	for m, want := range map[blockMutation]string{
		changeAfterUnblocked:   "a wake-up is lost",
		versionAfterWaiting:    "a wake-up is lost",
		enlistWithoutVersion:   "a wake-up is lost",
		versionAfterEvaluation: "a wake-up is lost",
		enlistComparesFirst:    "a wake-up is lost",
		enlistBeforeSwitch:     "a coroutine is running and in another place",
		enlistDoesNotExamine:   "a wake-up is lost",
		decideWithoutVersion:   "a wake-up is lost",
		firstOnly:              "a wake-up is lost",
		examineTwice:           "the blocker is queued twice",
	} {
		_, problem := explore(twoBegin, blockStep(m), blockCheck)
		require.Contains(t, problem, want, "mistake %d", m)
	}
}

// The model of workers: thread 0 pushes two routines, of which the first runs until the second has
// ended, raises the limit of one worker to two, and lowers it again: four events, in any order that
// leaves the first two and the last two as they are. Threads 1 and 2 are the goroutines that run
// workers. All steps are under mu.
type crewState struct {
	queue                    [2]int8
	limit, workers, starting int8
	pushed, resized          int8
	ended                    int8 // the second routine
	goroutines               [2]struct {
		pc   int8 // 0: none; 1: dispatched; 2: looks; 3: runs; 4: a mistake: has found nothing
		runs int8
	}
	lost bool // a worker was dispatched, and there is no goroutine for it
}

// crewMutation is a mistake in the model of workers.
type crewMutation int

const (
	right              crewMutation = iota
	pushStartsNone                  // a routine that becomes runnable starts no worker
	takeStartsNone                  // a worker that has begun does not start the next
	resizeStartsNone                // what is runnable waits for the next push
	startingStays                   // it is not lowered when a worker begins
	endsInTwoSteps                  // a worker looks, and ends later
	allLeaveAtTheLimit              // also those that are no more than there may be
)

// release starts a worker if there is something to do.
func (s *crewState) release() {
	for min(min(int8(1), s.len())-s.starting, s.limit-s.workers) > 0 {
		s.starting++
		s.workers++
		s.lost = true
		for i := range s.goroutines {
			if s.goroutines[i].pc == 0 && s.lost {
				s.goroutines[i].pc = 1
				s.lost = false
			}
		}
	}
}

func (s *crewState) len() (n int8) {
	for _, r := range s.queue {
		if r != 0 {
			n++
		}
	}
	return n
}

func crewStep(m crewMutation, raiseFirst bool) func(*crewState, int) bool {
	return func(s *crewState, thread int) bool {
		if thread == 0 {
			switch {
			case s.pushed < 2 && (!raiseFirst || s.resized == 1 || s.pushed == 0):
				s.pushed++
				if s.queue[0] == 0 {
					s.queue[0] = s.pushed
				} else {
					s.queue[1] = s.pushed
				}
				if m != pushStartsNone {
					s.release()
				}
			case s.resized == 0:
				s.resized, s.limit = 1, 2
				if m != resizeStartsNone {
					s.release()
				}
			case s.resized == 1 && s.ended == 1:
				s.resized, s.limit = 2, 1
				s.release()
			default:
				return false
			}
			return true
		}
		g := &s.goroutines[thread-1]
		switch g.pc {
		case 0:
			return false
		case 1:
			if m != startingStays {
				s.starting--
			}
			g.pc = 2
		case 2:
			leaves := s.workers > s.limit
			if m == allLeaveAtTheLimit {
				leaves = s.workers >= s.limit && s.resized > 0
			}
			switch {
			case leaves:
				s.workers--
				g.pc = 0
				if m != allLeaveAtTheLimit {
					s.release()
				}
			case s.queue[0] == 0 && m == endsInTwoSteps:
				g.pc = 4
			case s.queue[0] == 0:
				s.workers--
				g.pc = 0
			default:
				g.runs = s.queue[0]
				s.queue = [2]int8{s.queue[1], 0}
				g.pc = 3
				if m != takeStartsNone {
					s.release()
				}
			}
		case 3:
			if g.runs == 1 && s.ended == 0 {
				return false
			}
			if g.runs == 2 {
				s.ended = 1
			}
			g.pc = 2
		case 4:
			s.workers--
			g.pc = 0
		}
		return true
	}
}

func crewCheck(s *crewState, last bool) string {
	switch {
	case s.lost || s.workers > 2:
		return "there are more workers than there may be"
	case last && (s.len() > 0 || s.ended == 0):
		return "a routine is left"
	case last && (s.workers != 0 || s.starting != 0):
		return "a worker is left"
	}
	return ""
}

func TestTheModelOfWorkersLeavesNoRoutine(t *testing.T) {
	for _, raiseFirst := range []bool{false, true} {
		states, problem := explore(crewState{limit: 1}, crewStep(right, raiseFirst), crewCheck)
		require.Empty(t, problem)
		t.Log(states, "states")
	}
}

func TestTheModelOfWorkersFindsEachMistake(t *testing.T) {
	for m := pushStartsNone; m <= allLeaveAtTheLimit; m++ {
		found := ""
		for _, raiseFirst := range []bool{false, true} {
			if _, problem := explore(crewState{limit: 1}, crewStep(m, raiseFirst), crewCheck); problem != "" {
				found = problem
			}
		}
		require.Contains(t, found, "a routine is left", "mistake %d", m)
	}
}
