package serial

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A database under simulation runs one operation of one of its clients at a time, chosen at random, so that equal
// seeds give equal histories. It refuses an operation by false; a transaction that has been refused ten times, or
// whose commit is refused, is rolled back.
type database interface {
	read(t *client, key string) ([]int, bool)
	append(t *client, key string, value int) bool
	commit(t *client) bool
	rollback(t *client)
}

// client runs one transaction after the other.
type client struct {
	recording *Recording
	left      int // operations until the commit
	refused   int
	snapshot  map[string][]int
	own       map[string][]int
	locked    map[string]bool // the keys it has locked; true for exclusive
}

// simulate runs so many transactions of 8 clients on 5 lists at a time, and then reads all lists.
func simulate(seed uint64, transactions int, begin func(*client), db database) []Txn {
	random := rand.New(rand.NewPCG(seed, 0))
	var recorder Recorder
	clients := make([]*client, 8)
	value, begun := 0, 0
	for {
		i := random.IntN(len(clients))
		c := clients[i]
		if c == nil {
			if begun == transactions {
				if slices.IndexFunc(clients, func(c *client) bool { return c != nil }) < 0 {
					break
				}
				continue
			}
			begun++
			c = &client{recorder.Begin(), 1 + random.IntN(5), 0, nil, map[string][]int{}, map[string]bool{}}
			begin(c)
			clients[i] = c
		}
		end := func(commit bool) {
			if commit && db.commit(c) {
				c.recording.End(Committed)
			} else {
				db.rollback(c)
				c.recording.End(Aborted)
			}
			clients[i] = nil
		}
		if c.left--; c.left < 0 {
			end(random.IntN(10) > 0)
			continue
		}
		key := fmt.Sprint("k", begun/40*5+random.IntN(5))
		if random.IntN(2) == 0 {
			if list, ok := db.read(c, key); ok {
				c.recording.Read(key, list)
				continue
			}
		} else if value++; db.append(c, key, value) {
			c.recording.Append(key, value)
			c.own[key] = append(c.own[key], value)
			continue
		}
		c.left++
		if c.refused++; c.refused == 10 {
			end(false)
		}
	}
	last := &client{recorder.Begin(), 0, 0, nil, map[string][]int{}, map[string]bool{}}
	begin(last)
	for k := range begun/40*5 + 5 {
		list, _ := db.read(last, fmt.Sprint("k", k))
		last.recording.Read(fmt.Sprint("k", k), list)
	}
	last.recording.End(Committed)
	return recorder.History()
}

// kinds counts the anomalies by kind.
func kinds(history []Txn) map[Kind]int {
	found := map[Kind]int{}
	for _, a := range Check(history) {
		found[a.Kind]++
	}
	return found
}

// locking is a database under two-phase locking, which refuses what would have to wait.
type locking struct {
	lists   map[string][]int
	locks   map[string]map[*client]bool
	release func(t *client, read bool) bool // whether locks are released after each operation
}

func newLocking() *locking {
	return &locking{map[string][]int{}, map[string]map[*client]bool{}, func(*client, bool) bool { return false }}
}

func (l *locking) lock(t *client, key string, exclusive bool) bool {
	for other, otherExclusive := range l.locks[key] {
		if other != t && (exclusive || otherExclusive) {
			return false
		}
	}
	if l.locks[key] == nil {
		l.locks[key] = map[*client]bool{}
	}
	l.locks[key][t] = l.locks[key][t] || exclusive
	return true
}

func (l *locking) unlock(t *client) {
	for _, holders := range l.locks {
		delete(holders, t)
	}
}

func (l *locking) read(t *client, key string) ([]int, bool) {
	held := l.locks[key][t]
	if !l.lock(t, key, false) {
		return nil, false
	}
	if !held && l.release(t, true) {
		delete(l.locks[key], t)
	}
	return l.lists[key], true
}

func (l *locking) append(t *client, key string, value int) bool {
	if !l.lock(t, key, true) {
		return false
	}
	l.lists[key] = append(slices.Clone(l.lists[key]), value)
	if l.release(t, false) {
		delete(l.locks[key], t)
	}
	return true
}

func (l *locking) commit(t *client) bool { l.unlock(t); return true }

func (l *locking) rollback(t *client) {
	for key, own := range t.own {
		l.lists[key] = slices.DeleteFunc(slices.Clone(l.lists[key]), func(v int) bool { return slices.Contains(own, v) })
	}
	l.unlock(t)
}

// snapshots is a database under snapshot isolation: of two concurrent transactions that append to one list, the
// first to commit wins, unless that check is left out.
type snapshots struct {
	lists     map[string][]int
	unchecked bool
}

func (s *snapshots) begin(t *client) {
	t.snapshot = map[string][]int{}
	for key, list := range s.lists {
		t.snapshot[key] = list
	}
}

func (s *snapshots) read(t *client, key string) ([]int, bool) {
	return slices.Concat(t.snapshot[key], t.own[key]), true
}

func (s *snapshots) append(*client, string, int) bool { return true }

func (s *snapshots) commit(t *client) bool {
	for key := range t.own {
		if !s.unchecked && len(s.lists[key]) != len(t.snapshot[key]) {
			return false
		}
	}
	for key, own := range t.own {
		s.lists[key] = slices.Concat(t.snapshot[key], own)
	}
	return true
}

func (s *snapshots) rollback(*client) {}

func none(*client) {}

func TestNothingIsFoundUnderStrictTwoPhaseLocking(t *testing.T) {
	committed := 0
	for seed := range uint64(50) {
		history := simulate(seed, 200, none, newLocking())
		require.Empty(t, Check(history), "seed %d", seed)
		for _, txn := range history {
			if txn.Status == Committed {
				committed++
			}
		}
	}
	require.Greater(t, committed, 50*100)
}

func TestWriteSkewIsFoundUnderSnapshotIsolation(t *testing.T) {
	all := map[Kind]int{}
	for seed := range uint64(50) {
		s := &snapshots{lists: map[string][]int{}}
		for kind, n := range kinds(simulate(seed, 200, s.begin, s)) {
			require.Contains(t, []Kind{G2, RealTime}, kind, "seed %d", seed)
			all[kind] += n
		}
	}
	require.Greater(t, all[G2], 50)
}

func TestLostUpdatesAreFoundWhenWritersDoNotConflict(t *testing.T) {
	for seed := range uint64(20) {
		s := &snapshots{lists: map[string][]int{}, unchecked: true}
		found := kinds(simulate(seed, 200, s.begin, s))
		require.NotZero(t, found[LostUpdate], "seed %d", seed)
		require.NotZero(t, found[IncompatibleOrder], "seed %d", seed)
		require.Zero(t, found[Internal]+found[G1a]+found[Garbage], "seed %d", seed)
	}
}

func TestReadSkewIsFoundUnderReadCommitted(t *testing.T) {
	all := map[Kind]int{}
	for seed := range uint64(50) {
		l := newLocking()
		l.release = func(_ *client, read bool) bool { return read }
		for kind, n := range kinds(simulate(seed, 200, none, l)) {
			require.NotContains(t, []Kind{G0, G1a, G1b, G1c, IncompatibleOrder, Garbage}, kind, "seed %d", seed)
			all[kind] += n
		}
	}
	require.Greater(t, all[GSingle], 50)
	require.Greater(t, all[Internal], 50)
}

func TestDirtyReadsAndWritesAreFoundWhenLocksAreReleasedEarly(t *testing.T) {
	for seed := range uint64(20) {
		l := newLocking()
		l.release = func(*client, bool) bool { return true }
		found := kinds(simulate(seed, 200, none, l))
		require.NotZero(t, found[G0], "seed %d", seed)
		require.NotZero(t, found[G1a], "seed %d", seed)
		require.NotZero(t, found[G1b], "seed %d", seed)
	}
}

// stale is a database whose transactions that do not append read an earlier state.
type stale struct {
	*locking
	past []map[string][]int
}

func (s *stale) commit(t *client) bool {
	state := map[string][]int{}
	for key, list := range s.lists {
		state[key] = list
		for other, exclusive := range s.locks[key] {
			if exclusive && other != t { // not committed
				state[key] = slices.DeleteFunc(slices.Clone(list), func(v int) bool { return slices.Contains(other.own[key], v) })
			}
		}
	}
	s.past = append(s.past, state)
	return s.locking.commit(t)
}

func TestOnlyRealTimeIsViolatedByConsistentReadsOfThePast(t *testing.T) {
	for seed := range uint64(20) {
		s := &stale{locking: newLocking()}
		history := simulate(seed, 200, none, s)
		at := Txn{ID: 1000, Status: Committed, Start: history[len(history)-1].End + 1}
		at.End = at.Start + 1
		for key, list := range s.past[len(s.past)/2] {
			at.Ops = append(at.Ops, Read(key, list))
		}
		found := Check(append(history, at))
		require.Len(t, found, 1, "seed %d", seed)
		require.Equal(t, RealTime, found[0].Kind, "seed %d", seed)
		for i := range history {
			history[i].Start, history[i].End = 0, 0
		}
		at.Start, at.End = 0, 0
		require.Empty(t, Check(append(history, at)), "seed %d", seed)
	}
}

// readsOfNothing is the history of a database that loses all appends.
func readsOfNothing(transactions int) []Txn {
	var history []Txn
	for i := range transactions {
		key, at := fmt.Sprint(i%4), int64(2*i+1)
		history = append(history, Txn{ID: i + 1, Status: Committed, Start: at, End: at + 1, Ops: []Op{Read(key, nil), Append(key, i)}})
	}
	return history
}

func TestTheNumberOfDependenciesIsLinear(t *testing.T) {
	for name, history := range map[string][]Txn{
		"two-phase locking": simulate(1, 1000, none, newLocking()),
		"reads of nothing":  readsOfNothing(1000),
	} {
		t.Run(name, func(t *testing.T) {
			edges := 0
			for _, out := range infer(history).out {
				edges += len(out)
			}
			require.Less(t, edges, 20*len(history))
		})
	}
}

// A check of 10 000 transactions: right ones, and wrong ones of which most depend on each other.
func BenchmarkCheck(b *testing.B) {
	for name, history := range map[string][]Txn{
		"two-phase-locking":  simulate(1, 10_000, none, newLocking()),
		"snapshot-isolation": func() []Txn { s := &snapshots{lists: map[string][]int{}}; return simulate(1, 10_000, s.begin, s) }(),
		"lost-updates": func() []Txn {
			s := &snapshots{lists: map[string][]int{}, unchecked: true}
			return simulate(1, 10_000, s.begin, s)
		}(),
		"early-release": func() []Txn {
			l := newLocking()
			l.release = func(*client, bool) bool { return true }
			return simulate(1, 10_000, none, l)
		}(),
		"reads-of-nothing": readsOfNothing(10_000),
		"one-long-cycle": func() []Txn {
			var history []Txn
			for i := range 10_000 {
				history = append(history, Txn{ID: i + 1, Status: Committed, Ops: []Op{Read(fmt.Sprint(i), nil), Append(fmt.Sprint((i+1)%10_000), i)}})
			}
			return history
		}(),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Check(history)
			}
			b.ReportMetric(float64(len(Check(history))), "anomalies")
		})
	}
}
