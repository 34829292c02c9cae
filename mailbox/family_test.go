package mailbox_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// keyed is an object with a family, some keys of which are open, and which one
// operation opens as it declares.
type keyed struct {
	open  map[any]bool
	asked int
}

func (f *keyed) AskState(int) (string, error) { panic("no guard is over the state") }

func (f *keyed) AskRequest(r *mailbox.Request) (string, error) {
	if f.asked++; f.open[r.Key] {
		return "", nil
	}
	return "open", nil
}

// Opens implements mailbox.KeyOpener: an enter opens nothing, a change its key.
func (f *keyed) Opens(r *mailbox.Request, _ int, open func(any)) {
	if r.Op == change {
		open(r.Key)
	}
}

// newKeyed returns a family enter, a procedure change and a function read.
func newKeyed(open ...any) (*keyed, *mailbox.Rules) {
	f := &keyed{open: map[any]bool{}}
	for _, key := range open {
		f.open[key] = true
	}
	return f, &mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "enter", Kind: mailbox.Entry, Guard: "open", Looks: guards.AtArgument, Family: true, Opens: []int{enter}},
			{Name: "change", Kind: mailbox.Procedure, Opens: []int{enter}},
			{Name: "read", Kind: mailbox.Function},
		},
		Conflicts: guards.NewExclusive("enter", "change", "read").Allow(read, read),
	}
}

// arrivals makes requests with numbers as keys.
func arrivals(k *mailbox.Scheduler, op int, keys ...int) (all []*mailbox.Request) {
	for _, key := range keys {
		r := &mailbox.Request{Op: op, Key: key, Rank: 1}
		k.Arrive(r)
		all = append(all, r)
	}
	return all
}

// Where it cannot be told which keys have been opened, all are asked again.
func TestAnyKeyMayHaveBeenOpened(t *testing.T) {
	f, rules := newKeyed()
	k := mailbox.New(rules, f)
	waiting := arrivals(k, enter, 1, 2, 3)
	r, err := k.Next()
	require.Nil(t, r)
	require.NoError(t, err)
	f.open[2] = true
	k.Ran(change, func(_ int, open func(any)) { open(mailbox.AnyKey) })
	r, err = k.Next()
	require.NoError(t, err)
	require.Same(t, waiting[1], r)
}

// What never stops coming must not keep a key waiting whose guard is open: neither
// requests for other keys, of whichever there are more, nor other operations.
func TestAnOpenKeyIsNotStarvedBeyondTheBound(t *testing.T) {
	streams := map[string]func(k *mailbox.Scheduler, i int){
		"one other key":   func(k *mailbox.Scheduler, _ int) { arrivals(k, enter, 1) },
		"many other keys": func(k *mailbox.Scheduler, i int) { arrivals(k, enter, 1+i%50, 1+(i+7)%50) },
		"closed keys too": func(k *mailbox.Scheduler, i int) { arrivals(k, enter, 100+i, 1+i%3, 200+i) },
		"procedures":      func(k *mailbox.Scheduler, _ int) { arrivals(k, change, 300) },
		"functions":       func(k *mailbox.Scheduler, _ int) { arrivals(k, read, 0) },
		"all of them":     func(k *mailbox.Scheduler, i int) { arrivals(k, i%3, 1+i%2); arrivals(k, (i+1)%3, 1+i%2) },
	}
	policies := map[string]*mailbox.Policy{
		"arrival": nil, "rotating": mailbox.Rotating, "LIFO": mailbox.LIFO, "greater numbers first": byNumber,
		"user's order": {Name: "user's order", Within: true, Fallible: true, Before: func(a, b *mailbox.Request, _ int) (bool, error) {
			return a.Rank > b.Rank, nil
		}},
		"rank": {Name: "rank", Within: true, Before: func(a, b *mailbox.Request, _ int) (bool, error) { return a.Rank > b.Rank, nil }},
		"choice": {Name: "choice", Fallible: true, Choose: func(eligible []*mailbox.Request) (int, error) {
			return len(eligible) - 1, nil
		}},
	}
	open := []any{0}
	for key := 1; key <= 50; key++ {
		open = append(open, key)
	}
	for name, policy := range policies {
		for what, stream := range streams {
			for bound := 1; bound <= 3; bound++ {
				t.Run(fmt.Sprintf("%s, %s, %d", name, what, bound), func(t *testing.T) {
					f, rules := newKeyed(open...)
					rules.Policy, rules.MaxBypass = policy, bound
					k := mailbox.New(rules, f)
					// Something runs, so that all have to wait for it.
					k.Begin(change)
					waits := &mailbox.Request{Op: enter, Key: 0}
					k.Arrive(waits)
					var running []*mailbox.Request
					passed := -1 // it is not there yet
					for i := 0; ; i++ {
						require.LessOrEqual(t, passed, bound, "it is starved")
						stream(k, i)
						if i == 0 {
							k.End(change, nil)
							passed = 0
						}
						// The stream never stops: one of it is always about to run, and those
						// that can run together overlap.
						r, err := k.Next()
						require.NoError(t, err)
						switch {
						case r == waits:
							return
						case r != nil:
							running = append(running, r)
							passed++
						}
						require.NotEmpty(t, running, "nothing runs, and nothing starts")
						if r == nil || r.Op != read || len(running) > 1 {
							k.Complete(running[0])
							running = running[1:]
						}
					}
				})
			}
		}
	}
}

// memory returns what is in use.
func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A million keys come, wait, are opened, and go; a hundred are there at a time.
func TestKeysThatAreGoneLeaveNothing(t *testing.T) {
	const keys, window = 1_000_000, 100
	f, rules := newKeyed()
	k := mailbox.New(rules, f)
	records := [window]mailbox.Request{}
	before := memory()
	for first := 0; first < keys; first += window {
		for i := range records {
			r := &records[i]
			r.Fresh()
			r.Op, r.Key = enter, first+i
			k.Arrive(r)
		}
		run(k)
		require.Equal(t, window, k.Waiting(enter))
		for i := range records {
			if i%3 == 0 {
				require.True(t, k.Withdraw(&records[i]))
			} else {
				f.open[first+i] = true
				opened := mailbox.Request{Op: change, Key: first + i}
				k.Arrive(&opened)
			}
		}
		run(k)
		require.Zero(t, k.Waiting(enter))
		require.Zero(t, k.WaitingAt(enter, first+1))
		clear(f.open)
	}
	require.True(t, k.Idle())
	require.Less(t, memory()-before, int64(1<<20), "nothing is kept of a million keys")
	runtime.KeepAlive(k)
}

// Whoever opens one key of a hundred thousand, and says so, asks one guard.
func TestOneKeyOfManyIsOpenedByOneQuestion(t *testing.T) {
	const keys = 100_000
	for name, policy := range map[string]*mailbox.Policy{"arrival": nil, "LIFO": mailbox.LIFO, "rotating": mailbox.Rotating} {
		t.Run(name, func(t *testing.T) {
			f, rules := newKeyed()
			rules.Policy = policy
			k := mailbox.New(rules, f)
			var all []*mailbox.Request
			for key := range keys {
				all = append(all, arrivals(k, enter, key)...)
			}
			run(k)
			require.Equal(t, keys, f.asked, "each once")
			for _, key := range []int{keys / 2, 0, keys - 1} {
				f.open[key], f.asked = true, 0
				arrivals(k, change, key)
				run(k)
				require.Equal(t, mailbox.StateDone, all[key].State())
				require.Equal(t, 1, f.asked)
			}
			require.Equal(t, keys-3, k.Waiting(enter))
		})
	}
}

// A withdrawal looks at its own key: it costs no more if there are sixteen times as many
// keys whose first request has left, but for what memory costs.
func TestAWithdrawalFromAFamilyCostsTheSameHoweverManyKeysThereAre(t *testing.T) {
	const few, many, tries = 1_000, 16_000, 5
	withdrawal := func(keys int) time.Duration {
		f, rules := newKeyed()
		k := mailbox.New(rules, f)
		var all []*mailbox.Request
		for range 2 {
			for key := range keys {
				all = append(all, arrivals(k, enter, key)...)
			}
		}
		for r, _ := k.Next(); r != nil; r, _ = k.Next() {
			t.Fatal("all keys are closed")
		}
		began := time.Now()
		for _, r := range all {
			require.True(t, k.Withdraw(r))
		}
		return time.Since(began) / time.Duration(len(all))
	}
	var few1, many1 time.Duration
	for range tries { // the least is what it costs when nothing else needs the processor
		if one := withdrawal(few); few1 == 0 || one < few1 {
			few1 = one
		}
		if one := withdrawal(many); many1 == 0 || one < many1 {
			many1 = one
		}
		if many1 < 8*few1 {
			return
		}
	}
	t.Errorf("a withdrawal takes %v of %d keys, and %v of %d", few1, few, many1, many)
}
