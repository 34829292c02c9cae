package mailbox_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// drawn lets rapid choose.
type drawn struct{ *rapid.T }

func (d drawn) choose(n int, what string) int { return rapid.IntRange(0, n-1).Draw(d.T, what) }

// Whatever comes in, the scheduler starts and fails the same requests in the same
// order as a scheduler that knows nothing but the rules.
func TestSchedulerDecidesAsTheRulesSay(t *testing.T) { rapid.Check(t, drive(everyday)) }

// The same where the scheduler need not look at everybody.
func TestPlainObjectsDecideAsTheRulesSay(t *testing.T) { rapid.Check(t, drive(plain)) }

// At the bound nothing that conflicts with a waiter starts before it, under any
// policy and whatever the others in its queue wait for.
func TestNobodyIsBypassedMoreOftenThanTheBound(t *testing.T) { rapid.Check(t, drive(bypassing)) }

// The same if the policy is a user's, and may fail.
func TestPolicyDecidesAsTheRulesSay(t *testing.T) { rapid.Check(t, drive(judging)) }

// The same if requests conflict by what they take up, and are called from inside of others.
func TestConflictsByArgumentDecideAsTheRulesSay(t *testing.T) { rapid.Check(t, drive(narrow)) }

// The same if all start that are compatible.
func TestOvertakingDecidesAsTheRulesSay(t *testing.T) { rapid.Check(t, drive(overtaking)) }

// The same if queues are bounded.
func TestRestsOfBodiesAreUnbounded(t *testing.T)        { rapid.Check(t, drive(resuming)) }
func TestBoundedQueuesDecideAsTheRulesSay(t *testing.T) { rapid.Check(t, drive(crowded)) }

// The same if both.
func TestBoundedConflictsByArgumentDecideAsTheRulesSay(t *testing.T) { rapid.Check(t, drive(tight)) }

// An operation that declares what it opens makes nobody ask what it cannot have
// opened, and starts the same requests.
func TestDeclaredOpeningsChangeNothingButTheCost(t *testing.T) { rapid.Check(t, drive(related)) }

// A declaration that is wrong is found out where it is checked: who waits for what
// has been opened against it fails, and nobody else.
func TestWrongDeclarationsAreFoundAsTheRulesSay(t *testing.T) { rapid.Check(t, drive(lying)) }

// Those that wait from the beginning to the end of a walk are visited exactly
// once, however the queues move meanwhile.
func TestCursorVisitsWhoeverWaitsAllTheTime(t *testing.T) { rapid.Check(t, drive(walking)) }

func drive(m mix) func(*rapid.T) {
	return func(t *rapid.T) {
		w := newWorld(t, drawn{t}, m)
		t.Repeat(map[string]func(*rapid.T){"step": func(t *rapid.T) {
			w.t, w.src = t, drawn{t}
			w.step()
		}})
		w.finish()
	}
}

// The rules meet in many ways: a hundred runs, rapid's default, see few of them.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "2000"); err != nil {
		panic(err)
	}
	flag.Parse() // an explicit -rapid.checks wins
	os.Exit(m.Run())
}

// bytes chooses by the bytes of a fuzzer, and always the first when they are
// used up.
type bytes struct{ left []byte }

func (b *bytes) choose(n int, _ string) int {
	if len(b.left) == 0 {
		return 0
	}
	c := int(b.left[0]) % n
	b.left = b.left[1:]
	return c
}

// FuzzScheduler is the first property again, for whoever has hours to spend:
//
//	go test -fuzz FuzzScheduler ./mailbox
func FuzzScheduler(f *testing.F) {
	for seed := range uint64(16) {
		random, data := rand.New(rand.NewPCG(seed, 0)), make([]byte, 50<<(seed%4))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		src := &bytes{data}
		mixes := []mix{everyday, judging, crowded, related, lying, bypassing, walking, narrow, tight, overtaking, plain, transacting, transactingTight, resuming}
		w := newWorld(t, src, mixes[src.choose(len(mixes), "mix")])
		for len(src.left) > 0 {
			w.step()
		}
		w.finish()
	})
}
