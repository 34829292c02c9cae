package leaderfollowers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The hand-over as a model: three threads of a pool of two, a goroutine that posts four events of
// three handles, and one that makes the pool smaller, if it is there. Each operation of the
// synchronizer and each section under the mu of the set is a step; the operations are those of this
// package. All interleavings are walked through. In none of them two threads lead, a follower waits
// while none leads, a leader processes an event, or two threads have one handle; and when nothing can
// go on, every event has been processed, one thread leads, and there are as many as there should be.
//
// The steps follow become, next, done, idle, busier, post and Resize. The handler of the first event
// waits, as for a request, for that of the last to have run.

// at is how far a goroutine of the model has come.
type at uint8

const (
	unstarted at = iota
	backing
	calling
	following
	beginning
	retired
	seeking
	sleeping
	promoting
	processing
	parked
	unparking
	finishing
	ended
)

const (
	threads = 3
	poster  = threads
	resizer = threads + 1
	handles = 3
)

// posts are the handles of the events, in order.
var posts = [4]int8{0, 1, 0, 2}

// pool are the threads of the model, as the synchronizer knows them.
var pool = [threads]*thread{{id: 0}, {id: 1}, {id: 2}}

// world is a state of the model. It is comparable.
type world struct {
	roles     roles
	followers [threads]int8 // that wait, in the order in which they have come
	waits     int8

	at   [threads + 2]at
	has  [threads]int8 // the handle whose event it has
	size int8
	live int8

	processing, busy int8
	waiting, token   bool
	events           [8]int8 // the handles of the events that no thread has taken
	count            int8
	state            [handles]state
	again            [handles]bool
	posted           int8
	due              [handles]bool // an event has come that no thread has taken
	handled          [handles]int8
	waited           bool // the handler that waits has waited
	surplus          int8 // what the resizer has found
}

// protocol is what a mutant leaves out; "" is the real one.
type protocol string

func (p protocol) without(step string) bool { return string(p) == step }

func (w *world) free() int8 { return w.live - w.processing }

func (w *world) wanted() int8 { return max(w.size-w.busy, 0) }

func (p protocol) balance(w *world) {
	for i := range threads {
		if !p.without("a thread in place of one that waits") && w.free() < w.wanted() && w.at[i] == unstarted {
			w.at[i] = backing
			w.live++
		}
	}
}

func (p protocol) signal(w *world) {
	if w.waiting && !p.without("the signal") {
		w.waiting, w.token = false, true
	}
}

func (p protocol) report(w *world, h int8) {
	switch {
	case w.state[h] == active || p.without("the deactivation of a handle") && w.state[h] == processed:
		w.state[h] = reported
		w.events[w.count] = h
		w.count++
		p.signal(w)
	case w.state[h] == processed:
		w.again[h] = !p.without("the event that comes while the handle is processed")
	}
}

// settle lets followers pass whose guard holds, as the synchronizer does after each operation: the
// last first.
func (p protocol) settle(w *world) {
	for w.waits > 0 && w.roles.free() {
		w.waits--
		p.lead(w, w.followers[w.waits])
		w.followers[w.waits] = 0
	}
}

func (p protocol) lead(w *world, i int8) {
	w.at[i] = beginning
	if w.roles.lead(pool[i]) == retires {
		w.at[i] = retired
	}
}

// ends counts a thread as ended if there are too many.
func (p protocol) ends(w *world) bool {
	if w.free() <= w.wanted() || p.without("the end of a thread too many") {
		return false
	}
	w.live--
	return true
}

// step makes the next step of a goroutine. It reports false if there is none now.
func (p protocol) step(w *world, i int) bool {
	switch i {
	case poster:
		return p.post(w)
	case resizer:
		return p.resize(w)
	}
	switch w.at[i] {
	case backing:
		if w.at[i] = calling; w.roles.back(pool[i]) || p.without("the question whether another leads") {
			w.at[i] = seeking
		}
	case calling:
		w.at[i] = following
		w.followers[w.waits] = int8(i)
		w.waits++
		p.settle(w)
	case beginning:
		w.at[i] = backing
		if w.roles.begin(pool[i]) || p.without("the question whether it still leads") {
			w.at[i] = seeking
		}
	case retired:
		if w.at[i] = backing; p.ends(w) {
			w.at[i] = ended
		}
	case seeking:
		p.seek(w, i)
	case sleeping:
		if !w.token {
			return false
		}
		w.token, w.waiting, w.at[i] = false, false, seeking
	case promoting:
		if w.at[i] = processing; !p.without("the promotion") {
			w.roles.promote(pool[i])
			p.settle(w)
		}
	case processing:
		if h := w.has[i]; h == 0 && !w.waited {
			w.waited, w.at[i] = true, parked
			w.busy--
			p.balance(w)
			if w.count > 0 && !p.without("the signal of a thread that waits") {
				p.signal(w)
			}
		} else {
			w.handled[h]++
			w.at[i] = finishing
		}
	case parked:
		if w.handled[2] == 0 {
			return false
		}
		w.at[i] = unparking
	case unparking:
		w.busy++
		w.handled[0]++
		w.at[i] = finishing
	case finishing:
		p.finish(w, i)
	default:
		return false
	}
	return true
}

// seek is next.
func (p protocol) seek(w *world, i int) {
	if w.count == 0 || w.busy >= w.size {
		w.waiting, w.at[i] = !p.without("the note that the leader waits"), sleeping
		return
	}
	h := w.events[0]
	copy(w.events[:], w.events[1:])
	w.count--
	w.events[w.count] = 0
	w.state[h], w.has[i], w.at[i], w.due[h] = processed, h, promoting, false
	w.busy++
	w.processing++
	p.balance(w)
}

// finish is done.
func (p protocol) finish(w *world, i int) {
	h := w.has[i]
	w.has[i] = 0
	w.processing--
	w.busy--
	if w.count > 0 && !p.without("the signal of a thread that comes back") {
		p.signal(w)
	}
	if w.at[i] = backing; p.ends(w) {
		w.at[i] = ended
	}
	if p.without("the activation of a handle") {
		return
	}
	w.state[h] = active
	if w.again[h] {
		w.again[h] = false
		p.report(w, h)
	}
}

func (p protocol) post(w *world) bool {
	if w.posted == int8(len(posts)) {
		return false
	}
	w.due[posts[w.posted]] = true
	p.report(w, posts[w.posted])
	w.posted++
	return true
}

func (p protocol) resize(w *world) bool {
	switch w.at[resizer] {
	case backing:
		w.size--
		p.balance(w)
		w.surplus = w.free() - w.wanted()
		p.signal(w)
		w.at[resizer] = calling
	case calling:
		if w.surplus > 0 && !p.without("the call to followers") {
			w.roles.retire(int(w.surplus))
			p.settle(w)
		}
		w.at[resizer] = ended
	default:
		return false
	}
	return true
}

// check returns what is wrong with a state.
func check(w *world, last bool) string {
	leaders := 0
	var has [handles]int
	for i := range threads {
		switch w.at[i] {
		case seeking, sleeping, promoting:
			leaders++
			if w.roles.leader != pool[i] {
				return "a thread leads that has not the role"
			}
		case processing, parked, unparking, finishing:
			if w.roles.leader == pool[i] {
				return "the leader processes an event"
			}
		}
		switch w.at[i] {
		case promoting, processing, parked, unparking, finishing:
			if has[w.has[i]]++; has[w.has[i]] > 1 {
				return "two threads have one handle"
			}
		}
	}
	switch {
	case leaders > 1:
		return "two threads lead"
	case w.waits > 0 && w.roles.leader == nil:
		return "a follower waits while none leads"
	case !last:
		return ""
	case w.posted < int8(len(posts)) || w.count > 0 || w.due != [handles]bool{} || w.handled[0] == 0 || w.handled[1] == 0 || w.handled[2] == 0:
		return "an event is lost"
	case leaders != 1 || w.roles.coming != nil:
		return "there is no leader"
	case w.live != w.size || w.processing != 0 || w.busy != 0:
		return "there are other than as many threads as there should be"
	}
	for h := range handles {
		if w.state[h] != active || w.again[h] {
			return "a handle is not active again"
		}
	}
	return ""
}

// explore walks through all interleavings.
func (p protocol) explore(resizes bool) (states int, problem string) {
	first := world{size: 2}
	for h := range handles {
		first.state[h] = active
	}
	if resizes {
		first.at[resizer] = backing
	}
	for i := range 2 {
		first.at[i], first.live = backing, first.live+1
	}
	seen, todo := map[world]bool{first: true}, []world{first}
	for len(todo) > 0 {
		w := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		last := true
		for i := range w.at {
			next := w
			if !p.step(&next, i) {
				continue
			}
			last = false
			if problem := check(&next, false); problem != "" {
				return len(seen), problem
			}
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
		if last {
			if problem := check(&w, true); problem != "" {
				return len(seen), fmt.Sprintf("%s: %+v", problem, w)
			}
		}
	}
	return len(seen), ""
}

func TestOneThreadLeadsAndNoEventIsLost(t *testing.T) {
	for _, resizes := range []bool{false, true} {
		states, problem := protocol("").explore(resizes)
		require.Empty(t, problem)
		t.Log(states, "states")
	}
}

// The model finds what is wrong with a protocol that leaves out a step.
func TestTheModelFindsAMissingStep(t *testing.T) {
	for _, p := range []protocol{
		"a thread in place of one that waits",
		"the signal",
		"the deactivation of a handle",
		"the event that comes while the handle is processed",
		"the end of a thread too many",
		"the question whether another leads",
		"the question whether it still leads",
		"the promotion",
		"the signal of a thread that waits",
		"the note that the leader waits",
		"the signal of a thread that comes back",
		"the activation of a handle",
		"the call to followers",
	} {
		t.Run(string(p), func(t *testing.T) {
			_, one := p.explore(false)
			_, other := p.explore(true)
			require.NotEmpty(t, one+other, "nothing is found")
			t.Log(one + other)
		})
	}
}
