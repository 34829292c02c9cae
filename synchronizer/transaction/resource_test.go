package transaction

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// failure is how a call of a test's resource ends.
type failure string

const (
	works        failure = ""
	fails        failure = "returns an error"
	failsAfter   failure = "does it, then returns an error"
	panics       failure = "panics"
	panicsAfter  failure = "does it, then panics"
	exits        failure = "calls Goexit"
	hangs        failure = "hangs"
	notCommitted failure = "returns ErrNotCommitted"
	heuristic    failure = "returns ErrHeuristic"
)

var errBroken = errors.New("broken")

// faults says which calls fail, by the name of the participant and the call.
type faults struct {
	mu      sync.Mutex
	of      map[string]failure
	calls   []string
	hanging chan struct{} // closed to end the calls that hang
	hung    chan struct{} // closed when a call hangs
	once    sync.Once
}

func newFaults() *faults {
	return &faults{of: map[string]failure{}, hanging: make(chan struct{}), hung: make(chan struct{})}
}

// heal ends all failures.
func (f *faults) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.of)
	close(f.hanging)
	f.hanging = make(chan struct{})
}

func (f *faults) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// call runs one call with its failure; do is its effect.
func (f *faults) call(name, call string, do func() error) error {
	f.mu.Lock()
	how, hanging := f.of[name+"."+call], f.hanging
	f.calls = append(f.calls, name+"."+call)
	f.mu.Unlock()
	switch how {
	case fails:
		return errBroken
	case failsAfter:
		return errors.Join(do(), errBroken)
	case panics:
		panic(errBroken)
	case panicsAfter:
		_ = do()
		panic(errBroken)
	case exits:
		runtime.Goexit()
	case hangs:
		f.once.Do(func() { close(f.hung) })
		<-hanging
	case notCommitted:
		return fmt.Errorf("%w: %w", ErrNotCommitted, errBroken)
	case heuristic:
		return fmt.Errorf("%w: %w", ErrHeuristic, errBroken)
	}
	return do()
}

// state is what a test's resource has done with a transaction.
type state string

const (
	active     state = "active"
	prepared   state = "prepared"
	committed  state = "committed"
	rolledBack state = "rolled back"
)

// fake is a resource with one transaction. It is durable if recovery finds what it has prepared.
type fake struct {
	*faults
	name     string
	readOnly bool

	state  state
	branch Branch
}

func newFake(f *faults, name string) *fake { return &fake{faults: f, name: name, state: active} }

func (r *fake) Name() string { return r.name }

func (r *fake) set(to state, from ...state) func() error {
	return func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.state != to && !slices.Contains(from, r.state) {
			return fmt.Errorf("%s: %s is to be %s", r.name, r.state, to)
		}
		r.state = to
		return nil
	}
}

func (r *fake) is() state {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

func (r *fake) Prepare(_ context.Context, b Branch) (Vote, error) {
	vote := Prepared
	err := r.call(r.name, "prepare", func() error {
		if r.readOnly {
			vote = ReadOnly
			return r.set(committed, active)()
		}
		r.branch = b
		return r.set(prepared, active)()
	})
	return vote, err
}

func (r *fake) Commit(context.Context, uuid.UUID) error {
	return r.call(r.name, "commit", r.set(committed, prepared))
}

func (r *fake) Rollback(context.Context, uuid.UUID) error {
	return r.call(r.name, "rollback", func() error {
		if r.readOnly && r.is() == committed {
			return nil
		}
		return r.set(rolledBack, prepared, active)()
	})
}

func (r *fake) InDoubt(context.Context) (list []Branch, err error) {
	err = r.call(r.name, "list", func() error {
		if r.is() == prepared {
			list = []Branch{r.branch}
		}
		return nil
	})
	return list, err
}

// crash has the resource lose what it has not prepared.
func (r *fake) crash() {
	if r.is() == active {
		_ = r.set(rolledBack, active)()
	}
}

// onePhase is a fake that can commit alone.
type onePhase struct{ *fake }

func (r onePhase) CommitOnePhase(context.Context, uuid.UUID) error {
	if r.is() == rolledBack {
		return ErrNotCommitted
	}
	return r.call(r.name, "one-phase", r.set(committed, active))
}

// fakeLog is a log in memory.
type fakeLog struct {
	*faults
	name    string
	records map[uuid.UUID][]string
	refused map[uuid.UUID]bool
}

func newFakeLog(f *faults, name string) *fakeLog {
	return &fakeLog{faults: f, name: name, records: map[uuid.UUID][]string{}, refused: map[uuid.UUID]bool{}}
}

func (l *fakeLog) Name() string { return l.name }

func (l *fakeLog) Commit(_ context.Context, id uuid.UUID, participants []string) error {
	return l.call(l.name, "commit", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.refused[id] {
			return ErrNotCommitted
		}
		l.records[id] = participants
		return nil
	})
}

func (l *fakeLog) Committed(_ context.Context, id uuid.UUID) (yes bool, err error) {
	err = l.call(l.name, "committed", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		_, yes = l.records[id]
		l.refused[id] = !yes
		return nil
	})
	return yes, err
}

func (l *fakeLog) Unfinished(context.Context) (list []Record, err error) {
	err = l.call(l.name, "unfinished", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for id, names := range maps.All(l.records) {
			list = append(list, Record{id, names})
		}
		return nil
	})
	return list, err
}

func (l *fakeLog) Done(_ context.Context, id uuid.UUID) error {
	return l.call(l.name, "done", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.records, id)
		return nil
	})
}

func (l *fakeLog) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records)
}

// fakeLast is a last resource: a log whose records come with its own state.
type fakeLast struct {
	*fakeLog
	*fake
}

func newFakeLast(f *faults, name string) *fakeLast {
	return &fakeLast{newFakeLog(f, name), newFake(f, name)}
}

func (l *fakeLast) Name() string { return l.fake.name }

func (l *fakeLast) Commit(_ context.Context, id uuid.UUID, participants []string) error {
	return l.fake.call(l.fake.name, "commit", func() error {
		l.fake.mu.Lock()
		defer l.fake.mu.Unlock()
		if l.refused[id] || l.state != active {
			return ErrNotCommitted
		}
		l.state = committed
		l.records[id] = participants
		return nil
	})
}

func (l *fakeLast) Rollback(context.Context, uuid.UUID) error {
	return l.fake.call(l.fake.name, "rollback", l.set(rolledBack, active))
}
