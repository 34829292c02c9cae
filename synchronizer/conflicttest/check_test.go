package conflicttest_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/synchronizer/conflicttest"
)

// A Vault is an account that can be used at once, as far as races go.
type Vault struct{ x atomic.Int64 }

func (v *Vault) Add(l int64) int64   { return v.x.Add(l) }
func (v *Vault) Put(l int64)         { v.x.Add(l) }
func (v *Vault) Take(l int64)        { v.x.Add(-l) }
func (v *Vault) Has(l int64) bool    { return v.x.Load() >= l }
func (v *Vault) Amount() int64       { return v.x.Load() }
func (v *Vault) Lose(l int64)        { x := v.x.Load(); runtime.Gosched(); v.x.Store(x + l) }
func (v *Vault) Reset() (old int64)  { return v.x.Swap(0) }
func (v *Vault) Peek() (count int64) { return v.x.Add(1) }

var (
	vaults = activeobject.NewType[Vault]("vault")
	put    = activeobject.Procedure(vaults, "put", activeobject.Arg((*Vault).Put))
	add    = activeobject.Procedure(vaults, "add", func(v *Vault, l int64) (int64, error) { return v.Add(l), nil })
	take   = activeobject.Entry(vaults, "take", activeobject.Arg((*Vault).Take)).WhenArg("covered", (*Vault).Has)
	amount = activeobject.Function(vaults, "amount", activeobject.Result((*Vault).Amount))
	lose   = activeobject.Procedure(vaults, "lose", activeobject.Arg((*Vault).Lose))
	reset  = activeobject.Procedure(vaults, "reset", activeobject.Result((*Vault).Reset))
)

func vaultStates(t *rapid.T) func() *Vault {
	x := rapid.Int64Range(0, 100).Draw(t, "x")
	return func() *Vault {
		v := &Vault{}
		v.x.Store(x)
		return v
	}
}

// checkVaults checks a table of vaults with arguments for all operations.
func checkVaults(t testing.TB, table guards.Table, options ...conflicttest.Option) {
	t.Helper()
	for _, op := range []*activeobject.Operation[Vault, int64, None]{put, take, lose} {
		options = append(options, conflicttest.Arguments(op, amounts))
	}
	conflicttest.Check(t, vaults, table, vaultStates, append(options, conflicttest.Arguments(add, amounts))...)
}

// one returns what a wrong table was found to be, if it is one thing.
func one(t *testing.T, p *play) string {
	t.Helper()
	require.Len(t, p.failures, 1)
	return p.failures[0]
}

func TestRightTablesAreRight(t *testing.T) {
	t.Run("the one of the text", func(t *testing.T) {
		conflicttest.Check(t, accounts, table, accountStates)
		conflicttest.Check(t, accounts, table, accountStates, conflicttest.Commuting())
	})
	t.Run("nothing at once", func(t *testing.T) {
		conflicttest.Check(t, accounts, guards.NewExclusive(accounts.Operations()...), accountStates)
	})
	t.Run("what is synchronized by itself", func(t *testing.T) {
		checkVaults(t, vaults.Conflicts().Compatible(put, put, add, take, amount).Compatible(add, add, amount))
	})
	t.Run("a request that opens the guard of one beside it", func(t *testing.T) {
		conflicttest.Check(t, vaults, vaults.Conflicts().Compatible(put, take),
			func(*rapid.T) func() *Vault { return func() *Vault { return &Vault{} } },
			conflicttest.Arguments(put, amounts), conflicttest.Arguments(take, rapid.Int64Range(0, 1)))
	})
	t.Run("a store", func(t *testing.T) {
		conflicttest.Check(t, stores, stores.Conflicts().Compatible(setLocked, get), storeStates,
			conflicttest.Arguments(setLocked, pairs()), conflicttest.Arguments(get, keys))
	})
}

// x += l beside x -= l.
func TestADataRaceIsFound(t *testing.T) {
	said := one(t, played(t, func(t testing.TB) {
		conflicttest.Check(t, accounts, accounts.Conflicts().Compatible(deposit, withdraw), accountStates,
			conflicttest.Arguments(deposit, amounts), conflicttest.Arguments(withdraw, amounts))
	}))
	require.Contains(t, said, "table of account: deposit and withdraw are declared compatible, but beside each other they race\n")
	require.Regexp(t, `state: +\.x = 0\n`, said, "it has been shrunk")
	require.Regexp(t, `requests: +deposit\(1\), withdraw\(1\)\n`, said)
	require.Contains(t, said, "(*Account).Deposit")
	require.NotContains(t, said, "activeobject", "frames of ours are left out")
}

// A guard is evaluated while those run that are compatible with its entry, so it may race
// where the body does not.
func TestARaceOfAGuardIsFound(t *testing.T) {
	type gate struct{ open bool }
	gates := activeobject.NewType[gate]("gate")
	open := activeobject.Procedure(gates, "open", activeobject.Plain(func(g *gate) { g.open = true }))
	pass := activeobject.Entry(gates, "pass", activeobject.Plain(func(*gate) {})).When("open", func(g *gate) bool { return g.open })
	said := one(t, played(t, func(t testing.TB) {
		conflicttest.Check(t, gates, gates.Conflicts().Compatible(open, pass), func(t *rapid.T) func() *gate {
			g := gate{open: rapid.Bool().Draw(t, "open")}
			return func() *gate { c := g; return &c }
		})
	}))
	require.Contains(t, said, "open and pass are declared compatible, but beside each other they race\n")
	require.Contains(t, said, "open(), pass()")
}

// The runtime ends a process in which a map is written twice at once. Here it is a race
// before that.
func TestARaceOverAMapIsFoundAndDoesNotEndTheTest(t *testing.T) {
	said := one(t, played(t, func(t testing.TB) {
		conflicttest.Check(t, stores, stores.Conflicts().Compatible(set, set), storeStates, conflicttest.Arguments(set, pairs()), conflicttest.Arguments(get, keys))
	}))
	require.Contains(t, said, "set and set are declared compatible, but beside each other they race\n")
	require.Regexp(t, `state: +\.mu = \(sync\.Mutex\), \.values = {}\n`, said)
	require.Contains(t, said, `set(conflicttest_test.entry{key:"a", value:0}), set(conflicttest_test.entry{key:"a", value:0})`)
}

// Two withdrawals that both saw "covered".
func TestAGuardThatIsClosedBehindTheCheckIsFound(t *testing.T) {
	said := one(t, played(t, func(t testing.TB) { checkVaults(t, vaults.Conflicts().Compatible(take, take)) }))
	require.Contains(t, said, `take and take are declared compatible, but take closes guard "covered" of take behind the check`)
	var x, a, b, then int64
	fmt.Sscanf(between(said, "state:", "\n"), ".x.v = %d", &x)
	fmt.Sscanf(between(said, "requests:", "\n"), "take(%d), take(%d)", &a, &b)
	fmt.Sscanf(said[strings.LastIndex(said, "then the state is"):], "then the state is .x.v = %d", &then)
	require.True(t, 1 <= a && a <= x && 1 <= b && b <= x && x < a+b, "it is an example: %s", said)
	require.Equal(t, x-a-b, then)
}

func TestAnotherOperationThatClosesAGuardIsFound(t *testing.T) {
	p := played(t, func(t testing.TB) { checkVaults(t, vaults.Conflicts().Compatible(take, reset)) })
	said := one(t, p)
	require.Contains(t, said, `take and reset are declared compatible, but reset closes guard "covered" of take behind the check`)
	require.Regexp(t, `state: +\.x\.v = 1\n`, said)
	require.Regexp(t, `requests: +take\(1\), reset\(\)\n`, said)
	require.Regexp(t, `meanwhile: +reset\(\): 1; then the state is \.x\.v = 0\n`, said)
	require.Regexp(t, `then: +take\(1\): done, though the guard is false; then the state is \.x\.v = -1`, said)
}

// Nothing races here, but updates are lost.
func TestALostUpdateIsFoundByItsOutcome(t *testing.T) {
	said := one(t, played(t, func(t testing.TB) { checkVaults(t, vaults.Conflicts().Compatible(lose, lose)) }))
	require.Contains(t, said, "lose and lose are declared compatible, but run at once they equal neither order\n")
	var a, b, x, y, z int64
	fmt.Sscanf(between(said, "state:", "\n"), ".x.v = %d", &x)
	fmt.Sscanf(between(said, "requests:", "\n"), "lose(%d), lose(%d)", &a, &b)
	fmt.Sscanf(between(said, "in this order:", "\n")[len(fmt.Sprintf("lose(%d): done; lose(%d): done; then the state is ", a, b)):], ".x.v = %d", &y)
	fmt.Sscanf(said[strings.LastIndex(said, "then the state is"):], "then the state is .x.v = %d", &z)
	require.Equal(t, x+a+b, y)
	require.True(t, z == x+a || z == x+b, said)
}

func TestCommutingIsMoreThanSafeTogether(t *testing.T) {
	commute := func(t *testing.T, table guards.Table) *play {
		t.Run("safe together", func(t *testing.T) { checkVaults(t, table) })
		return played(t, func(t testing.TB) { checkVaults(t, table, conflicttest.Commuting()) })
	}
	t.Run("what does", func(t *testing.T) {
		require.Empty(t, commute(t, vaults.Conflicts().Compatible(put, put)).failures)
	})
	// It makes a difference which of them is first.
	t.Run("two that return what there is after them", func(t *testing.T) {
		said := one(t, commute(t, vaults.Conflicts().Compatible(add, add)))
		require.Contains(t, said, "add and add are declared compatible, but do not commute\n")
		require.Regexp(t, `state: +\.x\.v = 0\n`, said)
		require.Regexp(t, `requests: +add\(1\), add\(1\)\n`, said)
		require.Regexp(t, `in this order: +add\(1\): 1; add\(1\): 2; then the state is \.x\.v = 2\n`, said)
		require.Regexp(t, `in the other: +add\(1\): 2; add\(1\): 1; then the state is \.x\.v = 2`, said)
	})
	// The one may use what the other has put there, which may be taken back.
	t.Run("one that opens the guard of the other", func(t *testing.T) {
		said := one(t, commute(t, vaults.Conflicts().Compatible(put, take)))
		require.Contains(t, said, "put and take are declared compatible, but do not commute\n")
		require.Regexp(t, `put first: +put\(.*\): done; take\(.*\): done; then`, said)
		require.Regexp(t, `take first: +put\(.*\): done; take\(.*\): waits; then`, said)
	})
}

func TestAFunctionThatWritesIsFound(t *testing.T) {
	meters := activeobject.NewType[Vault]("meter")
	activeobject.Function(meters, "peek", activeobject.Result((*Vault).Peek))
	for name, table := range map[string]guards.Table{"compatible": meters.Conflicts(), "exclusive": guards.NewExclusive("peek")} {
		t.Run(name, func(t *testing.T) {
			said := one(t, played(t, func(t testing.TB) { conflicttest.Check(t, meters, table, vaultStates) }))
			require.Contains(t, said, "type meter: function peek changes the state\n")
			require.Regexp(t, `state: +\.x\.v = 0\n`, said)
			require.Regexp(t, `request: +peek\(\)\n`, said)
			require.Regexp(t, `afterwards: +\.x\.v = 1`, said)
		})
	}
}

func TestAGuardThatWritesOrIsNotDeterministicIsFound(t *testing.T) {
	type door struct{ evaluations int }
	doors := activeobject.NewType[door]("door")
	activeobject.Entry(doors, "enter", activeobject.Plain(func(*door) {})).When("polite", func(d *door) bool { d.evaluations++; return true })
	make := func(*rapid.T) func() *door { return func() *door { return &door{} } }
	said := one(t, played(t, func(t testing.TB) { conflicttest.Check(t, doors, guards.NewTable("enter"), make) }))
	require.Contains(t, said, `type door: guard "polite" of enter changes the state`)

	yes := false
	doors = activeobject.NewType[door]("door")
	activeobject.Entry(doors, "enter", activeobject.Plain(func(*door) {})).When("every other time", func(*door) bool { yes = !yes; return yes })
	said = one(t, played(t, func(t testing.TB) { conflicttest.Check(t, doors, guards.NewTable("enter"), make) }))
	require.Contains(t, said, `guard "every other time" of enter says yes and no of the same state`)
}

// What ends the process, or never ends, is a finding about its pair; the others are
// checked all the same.
func TestWhatEndsOrStopsAChildIsFoundAndOthersAreChecked(t *testing.T) {
	conflicttest.SetPatience(500 * time.Millisecond)
	type ward struct {
		inside atomic.Int32
		a, b   sync.Mutex
		meet   [2]chan None
	}
	wards := activeobject.NewType[ward]("ward")
	crash := func(w *ward) {
		if w.inside.Add(1) == 2 {
			go panic("two at once") // which cannot be recovered
		}
		for range 1000 {
			runtime.Gosched()
		}
		w.inside.Add(-1)
	}
	// embrace locks in an order of its own, and waits, for a while, until the other has begun.
	embrace := func(mine int) func(*ward) {
		return func(w *ward) {
			locks := [2]*sync.Mutex{&w.a, &w.b}
			locks[mine].Lock()
			defer locks[mine].Unlock()
			close(w.meet[mine])
			for range 1000 {
				select {
				case <-w.meet[1-mine]:
					locks[1-mine].Lock()
					defer locks[1-mine].Unlock()
					return
				default:
					runtime.Gosched()
				}
			}
		}
	}
	bad := activeobject.Procedure(wards, "bad", activeobject.Plain(crash))
	left := activeobject.Procedure(wards, "left", activeobject.Plain(embrace(0)))
	right := activeobject.Procedure(wards, "right", activeobject.Plain(embrace(1)))
	good := activeobject.Procedure(wards, "good", activeobject.Plain(func(*ward) {}))
	states := func(*rapid.T) func() *ward {
		return func() *ward { return &ward{meet: [2]chan None{make(chan None), make(chan None)}} }
	}
	p := played(t, func(t testing.TB) {
		conflicttest.Check(t, wards, wards.Conflicts().Compatible(bad, bad).Compatible(left, right).Compatible(good, good), states,
			conflicttest.Fingerprint(func(w *ward) string { return fmt.Sprint(w.inside.Load()) }))
	})
	require.Len(t, p.failures, 2, p.said())
	require.Contains(t, p.failures[0], "bad and bad are declared compatible, but run at once they end the process")
	require.Contains(t, p.failures[0], "panic: two at once")
	require.Regexp(t, `requests: +bad\(\), bad\(\)\n`, p.failures[0])
	require.Contains(t, p.failures[1], "left and right are declared compatible, but run at once they end the process")
	require.Contains(t, p.failures[1], "have not returned after 500ms")
}

// Where a table goes by arguments, so does the check.
func TestConflictsByArgumentsAreChecked(t *testing.T) {
	// A shelf has a place for each letter, which is all that is to be kept apart.
	type shelf struct{ places [3]int }
	shelves := activeobject.NewType[shelf]("shelf")
	add := activeobject.Procedure(shelves, "add", func(s *shelf, i int) (int, error) { s.places[i]++; return s.places[i], nil })
	look := activeobject.Function(shelves, "look", func(s *shelf, i int) (int, error) { return s.places[i], nil })
	states := func(t *rapid.T) func() *shelf {
		n := rapid.IntRange(0, 9).Draw(t, "n")
		return func() *shelf { return &shelf{[3]int{n, n, n}} }
	}
	check := func(t testing.TB, table guards.Table) {
		conflicttest.Check(t, shelves, table, states, conflicttest.Arguments(add, rapid.IntRange(0, 2)), conflicttest.Arguments(look, rapid.IntRange(0, 2)))
	}
	same := func(i int) int { return i }
	t.Run("right", func(t *testing.T) {
		check(t, shelves.Conflicts().EqualKeys(guards.Key(add, same), guards.Key(look, same)))
	})
	t.Run("wrong", func(t *testing.T) {
		said := one(t, played(t, func(t testing.TB) {
			but := func(a, b int) bool { return a == b && a != 2 }
			check(t, shelves.Conflicts().EqualKeys(guards.Key(add, same), guards.Key(look, same)).OnlyIf(guards.Pair(add, add, but)))
		}))
		require.Contains(t, said, "add and add are declared compatible, but beside each other they race")
		require.Contains(t, said, "add(2), add(2)")
	})
}

// How a body ends is a part of its outcome.
func TestBodiesMayFailPanicAndEndTheirGoroutine(t *testing.T) {
	type thing struct{ n atomic.Int64 }
	things := activeobject.NewType[thing]("thing")
	fails := activeobject.ProcedureCtx(things, "fails", func(_ *thing, ctx context.Context, n int) (None, error) {
		return nil, fmt.Errorf("no. %d: %w", n, context.Cause(ctx))
	})
	panics := activeobject.Procedure(things, "panics", activeobject.Plain(func(t *thing) { panic(fmt.Sprint("at ", t.n.Load())) }))
	exits := activeobject.Procedure(things, "exits", activeobject.Plain(func(t *thing) { t.n.Add(1); runtime.Goexit() }))
	states := func(*rapid.T) func() *thing { return func() *thing { return &thing{} } }
	table := things.Conflicts().Compatible(fails, fails, panics, exits).Compatible(panics, panics).Compatible(exits, exits)
	t.Run("compatible", func(t *testing.T) {
		conflicttest.Check(t, things, table, states, conflicttest.Arguments(fails, rapid.Int()))
	})
	t.Run("in another order", func(t *testing.T) {
		said := one(t, played(t, func(t testing.TB) {
			conflicttest.Check(t, things, table.Compatible(panics, exits), states, conflicttest.Arguments(fails, rapid.Int()), conflicttest.Commuting())
		}))
		require.Regexp(t, `panics first: +panics\(\): panicked: at 0; exits\(\): ended its goroutine; then the state is \.n\.v = 1\n`, said)
		require.Regexp(t, `exits first: +panics\(\): panicked: at 1; exits\(\): ended its goroutine; then the state is \.n\.v = 1`, said)
	})
}

func TestOperationsOfDerivedTypesAreChecked(t *testing.T) {
	type locked struct {
		Vault
		held atomic.Bool
	}
	lockedVaults := activeobject.Derive(vaults, "locked vault", func(l *locked) *Vault { return &l.Vault }).
		Strengthen("not locked", func(l *locked) bool { return !l.held.Load() })
	hold := activeobject.Procedure(lockedVaults, "hold", activeobject.Plain(func(l *locked) { l.held.Store(true) }))
	said := one(t, played(t, func(t testing.TB) {
		conflicttest.Check(t, lockedVaults, lockedVaults.Conflicts().Compatible(put, put, hold), func(t *rapid.T) func() *locked {
			held := rapid.Bool().Draw(t, "held")
			return func() *locked {
				l := &locked{}
				l.held.Store(held)
				return l
			}
		}, conflicttest.Arguments(put, amounts)) // the base's handle: In was not called
	}))
	require.Contains(t, said, `put and hold are declared compatible, but hold closes guard "not locked" of put behind the check`)
}

// What has to be right before there is anything to check.
func TestAMistakeInTheCheckItselfIsSaid(t *testing.T) {
	arguments := conflicttest.Arguments(deposit, amounts)
	free := guards.NewTable(accounts.Operations()...)
	type bag struct{ things []int }
	bags := activeobject.NewType[bag]("bag")
	sort := activeobject.Procedure(bags, "sort", activeobject.Arg(func(_ *bag, all []int) { all[0] = 0 }))
	never := activeobject.Entry(bags, "never", activeobject.Plain(func(*bag) {})).When("blue", func(*bag) bool { return false })
	none := guards.NewExclusive(bags.Operations()...)
	empty := func(*rapid.T) func() *bag { return func() *bag { return &bag{} } }
	number := 0
	for name, c := range map[string]struct {
		says  string
		check func(t testing.TB)
	}{
		"a table with a key of another type": {`takes a int64, and is given a function of a string`, func(t testing.TB) {
			table := free.Conflict(deposit, deposit).EqualKeys(guards.Key(deposit, func(s string) string { return s }))
			conflicttest.Check(t, accounts, table, accountStates)
		}},
		"keys that are always equal": {"requests of deposit and deposit conflict for all of the generated arguments", func(t testing.TB) {
			table := accounts.Conflicts().EqualKeys(guards.Key(deposit, func(int64) int { return 0 }))
			conflicttest.Check(t, accounts, table, accountStates, arguments)
		}},
		"a table that is wrong": {`"savings" is no operation of the table`, func(t testing.TB) {
			conflicttest.Check(t, accounts, free.Exclusive(guards.Name("savings")), accountStates)
		}},
		"another type's": {"it is another type's: its operations are sort, never instead of deposit, withdraw, balance", func(t testing.TB) {
			conflicttest.Check(t, accounts, none, accountStates)
		}},
		"no arguments": {`operation "withdraw" has no generator for its argument: pass Arguments(withdraw, …)`, func(t testing.TB) {
			conflicttest.Check(t, accounts, free, accountStates, arguments)
		}},
		"arguments of another type's": {`there are arguments for operation "deposit", which the type does not have: it has sort, never`, func(t testing.TB) {
			conflicttest.Check(t, bags, none, empty, arguments)
		}},
		"arguments of an operation with the same name": {`operation "deposit" takes a int64, and its generator makes a string`, func(t testing.TB) {
			type other struct{}
			others := activeobject.NewType[other]("other")
			conflicttest.Check(t, accounts, accounts.Conflicts().Compatible(deposit, deposit), accountStates,
				conflicttest.Arguments(activeobject.Procedure(others, "deposit", activeobject.Arg(func(*other, string) {})), rapid.Just("much")))
		}},
		"a body that changes its argument": {"sort changes what its argument leads to", func(t testing.TB) {
			conflicttest.Check(t, bags, none.Compatible(sort, sort), empty, conflicttest.Arguments(sort, rapid.SliceOfN(rapid.IntRange(1, 9), 1, 3)))
		}},
		"states that are never open": {`guard "blue" of never holds in none of the generated states`, func(t testing.TB) {
			conflicttest.Check(t, bags, none.Compatible(never, never), empty)
		}},
		"states that differ": {"the states that a generated function makes differ", func(t testing.TB) {
			conflicttest.Check(t, bags, none.Compatible(never, never), func(*rapid.T) func() *bag {
				return func() *bag { number++; return &bag{[]int{number}} }
			})
		}},
		"a generator that fails": {"cannot think of any", func(t testing.TB) {
			conflicttest.Check(t, bags, none.Compatible(never, never), func(t *rapid.T) func() *bag { t.Fatal("cannot think of any"); return nil })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, one(t, played(t, c.check)), c.says)
		})
	}
}

func TestAnOutcomeThatDependsOnLuckIsFound(t *testing.T) {
	dice := activeobject.NewType[Vault]("die")
	n := int64(0)
	roll := activeobject.Procedure(dice, "roll", activeobject.Result(func(*Vault) int64 { n++; return n }))
	said := one(t, played(t, func(t testing.TB) { conflicttest.Check(t, dice, dice.Conflicts().Compatible(roll, roll), vaultStates) }))
	require.Contains(t, said, "type die: the outcome of roll is not always the same for equal states\n")
}

// Without the race detector outcomes are looked at all the same, and the log says so.
func TestTheLogSaysWhenRacesWereNotLookedFor(t *testing.T) {
	for name, c := range map[string]struct {
		says    string
		prepare func(t *testing.T)
	}{
		"no go command": {`exec: "go": executable file not found`, func(t *testing.T) { t.Setenv("PATH", "") }},
		"no cgo":        {"-race requires cgo", func(t *testing.T) { t.Setenv("CGO_ENABLED", "0") }},
		"not wanted": {"the test is run with -short", func(t *testing.T) {
			flag.Set("test.short", "true")
			t.Cleanup(func() { flag.Set("test.short", "false") })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			conflicttest.Forget()
			t.Cleanup(conflicttest.Forget)
			c.prepare(t)
			p := played(t, func(t testing.TB) { checkVaults(t, vaults.Conflicts().Compatible(lose, lose)) })
			require.Contains(t, one(t, p), "run at once they equal neither order")
			if conflicttest.Detecting {
				require.Empty(t, p.logs, "nothing has to be built")
				return
			}
			require.Len(t, p.logs, 1)
			require.Contains(t, p.logs[0], "vault: data races have not been looked for, only outcomes")
			require.Contains(t, p.logs[0], c.says)
		})
	}
}

func between(s, after, before string) string {
	_, s, _ = strings.Cut(s, after)
	s, _, _ = strings.Cut(s, before)
	return strings.TrimSpace(s)
}

// A Store keeps values by keys.
type Store struct {
	mu     sync.Mutex
	values map[string]int
}

type entry struct {
	key   string
	value int
}

func (s *Store) Set(e entry)        { s.values[e.key] = e.value }
func (s *Store) SetLocked(e entry)  { s.mu.Lock(); defer s.mu.Unlock(); s.Set(e) }
func (s *Store) Get(key string) int { s.mu.Lock(); defer s.mu.Unlock(); return s.values[key] }

var (
	stores    = activeobject.NewType[Store]("store")
	set       = activeobject.Procedure(stores, "set", activeobject.Arg((*Store).Set))
	setLocked = activeobject.Procedure(stores, "set locked", activeobject.Arg((*Store).SetLocked))
	get       = activeobject.Function(stores, "get", func(s *Store, key string) (int, error) { return s.Get(key), nil })
	keys      = rapid.SampledFrom([]string{"a", "b", "c"})
)

func pairs() *rapid.Generator[entry] {
	return rapid.Custom(func(t *rapid.T) entry { return entry{keys.Draw(t, "key"), rapid.Int().Draw(t, "value")} })
}

func storeStates(t *rapid.T) func() *Store {
	values := rapid.MapOfN(keys, rapid.Int(), 0, 3).Draw(t, "values")
	return func() *Store { return &Store{values: maps.Clone(values)} }
}
