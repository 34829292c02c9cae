package objecttest_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/settings"
)

// Ledger has operations that are not what they are declared to be.
type Ledger struct {
	activeobject.Queues
	balance map[string]int
	asked   int
	mu      sync.Mutex
	cache   *memo
}

type memo struct{ hits int }

var (
	ledgers = activeobject.NewType[Ledger]("ledger")
	good    = activeobject.Entry(ledgers, "good", activeobject.Plain((*Ledger).change)).When("pure", (*Ledger).pure)
	counts  = activeobject.Entry(ledgers, "counts", activeobject.Plain((*Ledger).change)).When("counting", (*Ledger).counting)
	covered = activeobject.Entry(ledgers, "covered", activeobject.Arg(func(l *Ledger, _ string) { l.change() })).
		WhenArg("known", (*Ledger).known)
	moody = activeobject.Entry(ledgers, "moody", activeobject.Plain((*Ledger).change)).When("in the mood", mood())
	peek  = activeobject.Function(ledgers, "peek", activeobject.Result(func(l *Ledger) int { l.balance["peeks"]++; return 1 }))
	read  = activeobject.Function(ledgers, "read", activeobject.Result(func(l *Ledger) int { l.mu.Lock(); defer l.mu.Unlock(); return l.asked }))
	hit   = activeobject.Function(ledgers, "hit", activeobject.Result(func(l *Ledger) int { l.cache.hits++; return l.cache.hits }))
	queue = activeobject.Entry(ledgers, "queue", activeobject.Plain((*Ledger).change)).WhenWaiting("two", (*Ledger).two)
	line  = activeobject.EntryFamily(ledgers, "line", activeobject.Arg(func(l *Ledger, _ int) { l.change() }), unsteady()).When("pure", (*Ledger).pure)
)

func (l *Ledger) change()                { l.asked++ }
func (l *Ledger) pure() bool             { return true }
func (l *Ledger) counting() bool         { l.asked++; return true }
func (l *Ledger) known(name string) bool { l.balance[name] += 0; return true }
func (l *Ledger) two() bool              { return l.Waiting(good) == 0 }

// mood returns a guard that answers otherwise every time, though not by the state.
func mood() func(*Ledger) bool {
	up := false
	return func(*Ledger) bool { up = !up; return up }
}

func unsteady() func(int) int {
	n := 0
	return func(int) int { n++; return n }
}

func TestImpurityIsFoundAndSaysWhatHasChanged(t *testing.T) {
	for name, options := range threads {
		t.Run(name, func(t *testing.T) {
			var ledger *activeobject.Object[Ledger]
			inside := played(func(p *play) {
				ledger = activeobject.Must(activeobject.New(objecttest.NewSystem(p), ledgers, &Ledger{balance: map[string]int{"ann": 5}, cache: &memo{}},
					append(options, objecttest.Checked(p))...))
				var e *activeobject.ImpureError
				find := func(err error) {
					t.Helper()
					e = nil
					require.ErrorAs(t, err, &e)
				}
				_, err := good.Call(background, ledger, nil)
				require.NoError(t, err)
				_, err = read.Call(background, ledger, nil)
				require.NoError(t, err)
				_, err = queue.Call(background, ledger, nil)
				require.NoError(t, err)

				_, err = counts.Call(background, ledger, nil)
				find(err)
				require.Equal(t, "counting", e.Guard)
				require.Equal(t, "- .asked = 2\n+ .asked = 4", e.Diff)
				_, err = counts.Try(background, ledger, nil)
				find(err)
				_, err = counts.Send(background, ledger, nil).Await(background)
				find(err)

				_, err = covered.Call(background, ledger, "bob")
				find(err)
				require.Equal(t, "- len(.balance) = 1\n+ len(.balance) = 2\n+ .balance[\"bob\"] = 0", e.Diff)

				_, err = moody.Call(background, ledger, nil)
				find(err)
				require.Equal(t, "in the mood", e.Guard)
				require.Contains(t, e.Problem, "evaluated twice")

				_, err = peek.Call(background, ledger, nil)
				find(err)
				require.Empty(t, e.Guard)
				require.Contains(t, e.Diff, `+ .balance["peeks"] = 1`)
				_, err = hit.Call(background, ledger, nil)
				find(err)

				_, err = line.Call(background, ledger, 1)
				find(err)
				require.Contains(t, e.Problem, "key")

				find(ledger.View(background, func(l *Ledger) error { l.asked = 0; return nil }))
				require.Equal(t, "view", e.Operation)
				find(ledger.Until(background, guards.When("reset", func(l *Ledger) bool { l.asked = -1; l.balance = nil; return true })))
				require.Equal(t, "reset", e.Guard)
			})
			require.Len(t, inside.failures, 10, "all of them, and nothing else, have been reported")
			require.Contains(t, strings.Join(inside.failures, "\n"), `guard "counting" of ledger-`)
		})
	}
}

func TestWhatIsIgnoredMayChange(t *testing.T) {
	ledger := activeobject.Must(activeobject.New(objecttest.NewSystem(t), ledgers, &Ledger{cache: &memo{}}, objecttest.Checked(t, memo{})))
	n, err := hit.Call(background, ledger, nil)
	require.NoError(t, err)
	require.Equal(t, 1, n)

	require.Equal(t, ".b = 1", objecttest.Dump(struct {
		a *memo
		b int
		c memo
	}{&memo{}, 1, memo{}}, (*memo)(nil)))
}

func TestACheckedObjectFindsOpeningsThatAreNotDeclared(t *testing.T) {
	type lift struct{ floor int }
	lifts := activeobject.NewType[lift]("lift")
	enter := activeobject.EntryFamily(lifts, "enter", activeobject.Arg(func(*lift, int) {}), func(n int) int { return n }).
		WhenKey("here", func(l *lift, n int) bool { return l.floor == n })
	move := activeobject.Procedure(lifts, "move", activeobject.Arg(func(l *lift, n int) { l.floor = n }))
	activeobject.Opens(move, enter, func(n int) int { return n + 1 })
	inside := played(func(p *play) {
		o := activeobject.Must(activeobject.New(objecttest.NewSystem(p), lifts, &lift{}, activeobject.Name("the lift"), objecttest.Checked(p)))
		waits := enter.Send(background, o, 5)
		move.Call(background, o, 5)
		_, err := waits.Await(background)
		require.ErrorAs(t, err, new(*activeobject.UndeclaredError))
	})
	require.Len(t, inside.failures, 1)
	require.Contains(t, inside.failures[0], "the lift")
}

func TestAnAuditNeedsAFingerprint(t *testing.T) {
	_, err := activeobject.New(objecttest.NewSystem(t), tanks, &Tank{}, settings.Audited[activeobject.Option](settings.Audit{}))
	require.ErrorAs(t, err, new(*activeobject.OptionError))

	tank := newTank(t, settings.Audited[activeobject.Option](settings.Audit{Fingerprint: func(s any) string { return time.Duration(s.(*Tank).level).String() }}))
	err = tank.View(background, func(t *Tank) error { t.level = 1; return nil })
	require.ErrorContains(t, err, "before: 0s\nafter: 1ns")
}

func TestADumpTellsApartWhatIsDifferentAndEnds(t *testing.T) {
	type inner struct{ a, b any }
	type outer struct {
		p, q  *int
		any   []any
		times [2]time.Time
		when  *time.Time
		keys  map[any]inner
		bytes []byte
		f     func()
		c     chan int
		m     map[[2]string]*outer
		z     complex64
		u     uintptr
		x     struct{}
		e     error
	}
	one, other := 1, 1
	now := time.Unix(0, 0).UTC()
	make := func() *outer {
		o := &outer{p: &one, q: &one, keys: map[any]inner{1: {1, "x"}, "1": {}, inner{1, 2}: {}, 1.5: {}, true: {}, nil: {}}, bytes: []byte("abc")}
		o.any = []any{1, nil, o, now, &now, []int(nil), []int{}, map[string]int(nil), map[string]int{}}
		o.any[1] = o.any
		o.m = map[[2]string]*outer{{"a", "b"}: o}
		o.times[1], o.when = now, &now
		o.z, o.u, o.x, o.e = 1i, 2, struct{}{}, errors.New("oh")
		return o
	}
	same := objecttest.Dump(make())
	require.Equal(t, same, objecttest.Dump(make()))
	require.Contains(t, same, ".times[1] = 1970-01-01T00:00:00Z")
	require.Contains(t, same, `.bytes = "abc"`)
	require.Contains(t, same, ".q = .p")
	for name, change := range map[string]func(*outer){
		"another pointer":        func(o *outer) { o.q = &other },
		"a key more":             func(o *outer) { o.keys[2] = inner{} },
		"a value in a map":       func(o *outer) { o.keys[1] = inner{1, "y"} },
		"a type in an interface": func(o *outer) { o.any[0] = int64(1) },
		"empty and nil slice":    func(o *outer) { o.any[5] = []int{} },
		"empty and nil map":      func(o *outer) { o.any[7] = map[string]int{} },
		"a function":             func(o *outer) { o.f = func() {} },
		"a channel":              func(o *outer) { o.c = (chan int)(nil); o.c = newChannel() },
		"a time":                 func(o *outer) { o.times[0] = now },
		"a byte":                 func(o *outer) { o.bytes[0] = 'b' },
		"a shorter slice":        func(o *outer) { o.any = o.any[:3] },
	} {
		o := make()
		change(o)
		require.NotEqual(t, same, objecttest.Dump(o), name)
	}
	require.Equal(t, "nil", objecttest.Dump(nil))
	require.Equal(t, ". = 5", objecttest.Dump(5))
}

func newChannel() chan int { return make(chan int) }
