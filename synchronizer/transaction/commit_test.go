package transaction

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/mailbox"
)

// group is a transaction with two volatile participants, and durable ones as a test wants them.
type group struct {
	*faults
	p        *participants
	log      *fakeLog
	v, w     *fake
	d, e     *fake
	last     *fakeLast
	reported []error
}

// newGroup makes a transaction out of these words: log, d, e (durable), one (d can commit in one
// phase), last.
func newGroup(t require.TestingT, wait time.Duration, words string) *group {
	f := newFaults()
	g := &group{faults: f, log: newFakeLog(f, "log")}
	var log Log
	if strings.Contains(words, "log") {
		log = g.log
	}
	g.p = newParticipants(uuid.Must(uuid.NewV7()), newCommitSettings(log, wait, func(err error) { g.reported = append(g.reported, err) }))
	g.v, g.w = newFake(f, "v"), newFake(f, "w")
	require.NoError(t, g.p.register(g.v, true))
	require.NoError(t, g.p.register(g.w, true))
	for _, word := range strings.Fields(words) {
		switch word {
		case "d":
			g.d = newFake(f, "d")
			require.NoError(t, g.p.register(g.d, false))
		case "one":
			g.d = newFake(f, "d")
			require.NoError(t, g.p.register(onePhase{g.d}, false))
		case "e":
			g.e = newFake(f, "e")
			require.NoError(t, g.p.register(g.e, false))
		case "last":
			g.last = newFakeLast(f, "last")
			require.NoError(t, g.p.registerLast(g.last))
		}
	}
	return g
}

// states says what each participant has done, in the order v w d e last.
func (g *group) states() string {
	s := fmt.Sprintf("%s, %s", g.v.is(), g.w.is())
	for _, r := range []*fake{g.d, g.e} {
		if r != nil {
			s += ", " + string(r.is())
		}
	}
	if g.last != nil {
		s += ", " + string(g.last.is())
	}
	return s
}

func TestAllParticipantsCommit(t *testing.T) {
	for words, calls := range map[string]string{
		"":           "v.prepare w.prepare v.commit w.commit",
		"d":          "v.prepare w.prepare d.prepare d.commit v.commit w.commit",
		"one":        "v.prepare w.prepare d.one-phase v.commit w.commit",
		"last":       "v.prepare w.prepare last.commit v.commit w.commit last.done",
		"d last":     "v.prepare w.prepare d.prepare last.commit d.commit v.commit w.commit last.done",
		"log d":      "v.prepare w.prepare d.prepare d.commit v.commit w.commit",
		"log one":    "v.prepare w.prepare d.one-phase v.commit w.commit",
		"log d last": "v.prepare w.prepare d.prepare last.commit d.commit v.commit w.commit last.done",
	} {
		t.Run(words, func(t *testing.T) {
			g := newGroup(t, 0, words)
			require.NoError(t, g.p.commit(t.Context()))
			require.Equal(t, calls, strings.Join(g.said(), " "))
			require.NotContains(t, g.states(), "active")
		})
	}
	t.Run("two durable resources", func(t *testing.T) {
		g := newGroup(t, 0, "log d e")
		require.NoError(t, g.p.commit(t.Context()))
		said := g.said()
		require.Equal(t, "v.prepare w.prepare d.prepare e.prepare log.commit", strings.Join(said[:5], " "))
		require.ElementsMatch(t, []string{"d.commit", "e.commit"}, said[5:7])
		require.Equal(t, "v.commit w.commit log.done", strings.Join(said[7:], " "))
		require.Zero(t, g.log.size())
		require.Equal(t, Branch{g.p.id, "log"}, g.d.branch)
	})
}

func TestReadOnlyParticipantsAreToldNothingMore(t *testing.T) {
	g := newGroup(t, 0, "log e one")
	g.v.readOnly, g.e.readOnly = true, true
	require.NoError(t, g.p.commit(t.Context()))
	require.Equal(t, "v.prepare w.prepare e.prepare d.one-phase w.commit", strings.Join(g.said(), " "))

	g = newGroup(t, 0, "log e d last")
	g.e.readOnly, g.w.readOnly = true, true
	g.of["last.commit"] = notCommitted
	require.ErrorIs(t, g.p.commit(t.Context()), ErrRolledBack)
	require.NotContains(t, g.said(), "e.rollback")
	require.NotContains(t, g.said(), "w.rollback")
	require.Contains(t, g.said(), "d.rollback")
}

func TestRollbackTellsAllInReverse(t *testing.T) {
	g := newGroup(t, 0, "log d last")
	require.NoError(t, g.p.rollback(t.Context(), errBroken))
	require.Equal(t, "w.rollback v.rollback", strings.Join(g.said()[:2], " "))
	require.Equal(t, "rolled back, rolled back, rolled back, rolled back", g.states())
	require.ErrorIs(t, g.p.commit(t.Context()), ErrRolledBack, "after the end the outcome stays")
	require.ErrorIs(t, g.p.commit(t.Context()), errBroken)
	require.Len(t, g.said(), 4)
}

// TestAFailureAtAnyCall is the table of failures: where, how, and what it leads to.
func TestAFailureAtAnyCall(t *testing.T) {
	const (
		allBack   = "rolled back, rolled back, rolled back, rolled back"
		allCommit = "committed, committed, committed, committed"
		undecided = "prepared, prepared, prepared, prepared"
	)
	all := []failure{fails, failsAfter, panics, panicsAfter, exits, hangs}
	early := []failure{fails, panics, exits, hangs}
	late := []failure{failsAfter, panicsAfter}
	tests := []struct {
		words   string
		call    string
		also    string // a second call that fails with an error
		hows    []failure
		is      []error // what the error is
		states  string  // after commit
		healed  string  // after the failure has ended, and resolve; "" as before
		records int     // in the log before resolve
	}{
		{words: "log d e", call: "v.prepare", hows: []failure{fails, failsAfter, panics, panicsAfter}, is: []error{ErrRolledBack}, states: allBack},
		{words: "log d e", call: "w.prepare", hows: []failure{fails, failsAfter, panics, panicsAfter}, is: []error{ErrRolledBack}, states: allBack},
		{words: "log d e", call: "d.prepare", hows: []failure{fails, failsAfter, panics, panicsAfter, exits}, is: []error{ErrRolledBack}, states: allBack},
		{words: "log d e", call: "e.prepare", hows: []failure{fails, failsAfter, panics, panicsAfter, exits}, is: []error{ErrRolledBack}, states: allBack},
		{words: "log d e", call: "d.prepare", hows: []failure{hangs}, is: []error{ErrRolledBack, ErrUnfinished},
			states: "rolled back, rolled back, active, rolled back", healed: allBack},
		{words: "log d e", call: "e.prepare", hows: []failure{hangs}, is: []error{ErrRolledBack, ErrUnfinished},
			states: "rolled back, rolled back, rolled back, active", healed: allBack},

		{words: "log d e", call: "log.commit", hows: []failure{notCommitted}, is: []error{ErrRolledBack}, states: allBack},
		{words: "log d e", call: "log.commit", hows: []failure{fails, panics, exits}, is: []error{ErrRolledBack}, states: allBack},
		{words: "log d e", call: "log.commit", hows: []failure{failsAfter, panicsAfter}, states: allCommit},
		{words: "log d e", call: "log.commit", hows: []failure{hangs}, is: []error{ErrInDoubt}, states: undecided, healed: allCommit},
		{words: "log d e", call: "log.commit", also: "log.committed", hows: []failure{fails, panics, exits}, is: []error{ErrInDoubt}, states: undecided, healed: allBack},
		{words: "log d e", call: "log.commit", also: "log.committed", hows: late, is: []error{ErrInDoubt}, states: undecided, healed: allCommit, records: 1},
		{words: "log d e", call: "log.done", hows: all, states: allCommit},

		{words: "log d e", call: "d.commit", hows: early, is: []error{ErrUnfinished}, states: "committed, committed, prepared, committed", healed: allCommit, records: 1},
		{words: "log d e", call: "e.commit", hows: early, is: []error{ErrUnfinished}, states: "committed, committed, committed, prepared", healed: allCommit, records: 1},
		{words: "log d e", call: "e.commit", hows: late, is: []error{ErrUnfinished}, states: allCommit, records: 1},
		{words: "log d e", call: "e.commit", hows: []failure{heuristic, notCommitted}, is: []error{ErrHeuristic}, states: "committed, committed, committed, prepared"},
		{words: "log d e", call: "v.commit", hows: []failure{fails, panics}, is: []error{ErrHeuristic}, states: "prepared, committed, committed, committed"},

		{words: "log d e", also: "e.prepare", call: "d.rollback", hows: []failure{fails, panics, exits, hangs}, is: []error{ErrRolledBack, ErrUnfinished},
			states: "rolled back, rolled back, prepared, rolled back", healed: allBack},
		{words: "log d e", also: "e.prepare", call: "d.rollback", hows: []failure{heuristic}, is: []error{ErrRolledBack, ErrHeuristic},
			states: "rolled back, rolled back, prepared, rolled back"},
		{words: "log d e", also: "e.prepare", call: "w.rollback", hows: []failure{fails, panics}, is: []error{ErrRolledBack, ErrHeuristic},
			states: "rolled back, prepared, rolled back, rolled back"},

		{words: "d last", call: "d.prepare", hows: []failure{fails, panics, exits}, is: []error{ErrRolledBack}, states: allBack},
		{words: "d last", call: "last.commit", hows: []failure{notCommitted, fails, panics, exits}, is: []error{ErrRolledBack}, states: allBack},
		{words: "d last", call: "last.commit", hows: []failure{heuristic}, is: []error{ErrRolledBack, ErrHeuristic}, states: allBack},
		{words: "d last", call: "last.commit", hows: late, states: allCommit},
		{words: "d last", call: "last.commit", hows: []failure{hangs}, is: []error{ErrInDoubt}, states: "prepared, prepared, prepared, active", healed: allCommit},
		{words: "d last", call: "last.commit", also: "last.committed", hows: late, is: []error{ErrInDoubt}, states: "prepared, prepared, prepared, committed", healed: allCommit},
		{words: "d last", call: "d.commit", hows: early, is: []error{ErrUnfinished}, states: "committed, committed, prepared, committed", healed: allCommit},
		{words: "d last", also: "d.prepare", call: "last.rollback", hows: early, is: []error{ErrRolledBack, ErrUnfinished},
			states: "rolled back, rolled back, rolled back, active", healed: allBack},

		{words: "one", call: "d.one-phase", hows: []failure{notCommitted}, is: []error{ErrRolledBack}, states: "rolled back, rolled back, rolled back"},
		{words: "one", call: "d.one-phase", hows: []failure{fails, panics, exits, hangs}, is: []error{ErrInDoubt}, states: "prepared, prepared, active", healed: "committed, committed, committed"},
		{words: "one", call: "d.one-phase", hows: late, is: []error{ErrInDoubt}, states: "prepared, prepared, committed", healed: "committed, committed, committed"},
		{words: "d", call: "d.commit", hows: early, is: []error{ErrInDoubt}, states: "prepared, prepared, prepared", healed: "committed, committed, committed"},
		{words: "d", call: "d.commit", hows: []failure{notCommitted}, is: []error{ErrRolledBack}, states: "rolled back, rolled back, rolled back"},
	}
	for _, test := range tests {
		for _, how := range test.hows {
			t.Run(fmt.Sprintf("%s/%s %s/%s", test.words, test.call, how, test.also), func(t *testing.T) {
				g := newGroup(t, time.Hour, test.words)
				wait := g.p.settings.bound
				if how == hangs {
					g.p.settings.bound = g.untilHung(test.states)
				}
				g.of[test.call] = how
				if test.also != "" {
					g.of[test.also] = fails
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if how == hangs && strings.HasSuffix(test.call, "prepare") {
					go func() { <-g.hung; cancel() }()
				}
				err := g.p.commit(ctx)
				if test.is == nil {
					require.NoError(t, err)
				} else {
					var outcome *OutcomeError
					require.ErrorAs(t, err, &outcome)
					require.Equal(t, g.p.id, outcome.Transaction)
					name, _, _ := strings.Cut(test.call, ".")
					require.ErrorContains(t, err, name+": ", "the error names the resource")
					checkKind(t, err, how)
				}
				for _, is := range []error{ErrRolledBack, ErrInDoubt, ErrUnfinished, ErrHeuristic} {
					require.Equal(t, slices.Contains(test.is, is), errors.Is(err, is), "%v: %v", is, err)
				}
				require.Equal(t, test.states, g.states())
				if !errors.Is(err, ErrUnfinished) && !errors.Is(err, ErrInDoubt) {
					require.False(t, g.p.unfinished())
				}
				if g.log != nil && test.call != "log.done" {
					require.Equal(t, test.records, g.log.size())
				}
				if test.call == "log.done" && how != failsAfter {
					require.Len(t, g.reported, 1)
				}

				// What is left is resolved when the failure has ended.
				g.heal()
				g.p.settings.bound = wait
				err = g.p.resolve(t.Context())
				if test.healed == "" {
					test.healed = test.states
				}
				require.Equal(t, test.healed, g.states())
				require.False(t, g.p.unfinished())
				require.NotErrorIs(t, err, ErrUnfinished)
				if test.call != "log.done" {
					require.Zero(t, g.log.size())
				}
				if g.last != nil && g.last.is() == committed {
					require.Zero(t, g.last.size())
				}
			})
		}
	}
}

// untilHung bounds each wait by the time when a call hangs, and all the other durable participants are
// as they are to be.
func (g *group) untilHung(states string) func(context.Context) (context.Context, context.CancelFunc) {
	durable := func(states string) string { return strings.Join(strings.Split(states, ", ")[2:], ", ") }
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			<-g.hung
			for durable(g.states()) != durable(states) && ctx.Err() == nil {
				runtime.Gosched()
			}
			cancel()
		}()
		return ctx, cancel
	}
}

// checkKind checks that the error says how the call has failed.
func checkKind(t *testing.T, err error, how failure) {
	switch how {
	case panics, panicsAfter:
		var panicked *mailbox.PanicError
		require.ErrorAs(t, err, &panicked)
		require.NotEmpty(t, panicked.Stack)
	case exits:
		var exited *mailbox.ExitError
		require.ErrorAs(t, err, &exited)
	case hangs:
		require.ErrorContains(t, err, "has not returned")
	default:
		require.ErrorIs(t, err, errBroken)
	}
}

// TestAGoexitOfAnObjectEndsItsCallerAndTheTransaction: volatile participants run on the caller's goroutine.
func TestAGoexitOfAnObjectEndsItsCallerAndTheTransaction(t *testing.T) {
	for _, test := range []struct {
		call, states string
	}{
		{"v.prepare", "rolled back, rolled back, rolled back, rolled back"},
		{"w.prepare", "rolled back, rolled back, rolled back, rolled back"},
		{"v.commit", "prepared, committed, committed, committed"},
		{"w.commit", "committed, prepared, committed, committed"},
	} {
		g := newGroup(t, time.Hour, "log d e")
		g.of[test.call] = exits
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = g.p.commit(t.Context())
			t.Error("commit has returned")
		}()
		<-ended
		require.Equal(t, test.states, g.states(), test.call)
		require.False(t, g.p.unfinished())
	}
}

func TestTheCallersCancellationEndsPreparationOnly(t *testing.T) {
	g := newGroup(t, time.Hour, "log d e")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the caller has left"))
	err := g.p.commit(ctx)
	require.ErrorIs(t, err, ErrRolledBack)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "rolled back, rolled back, rolled back, rolled back", g.states())

	g = newGroup(t, time.Hour, "log d e")
	ctx, cancel = context.WithCancelCause(t.Context())
	g.log.faults.of["log.commit"] = hangs
	go func() {
		<-g.hung
		cancel(nil)
		g.heal()
	}()
	require.NoError(t, g.p.commit(ctx))
	require.Equal(t, "committed, committed, committed, committed", g.states())
}

// badContext panics when it is asked.
type badContext struct{ context.Context }

func (badContext) Err() error            { panic("bad context") }
func (badContext) Done() <-chan struct{} { panic("bad context") }

func TestAContextThatPanicsRollsBack(t *testing.T) {
	for _, words := range []string{"", "log d e", "last"} {
		g := newGroup(t, time.Hour, words)
		err := g.p.commit(badContext{t.Context()})
		require.ErrorIs(t, err, ErrRolledBack)
		require.ErrorContains(t, err, "bad context")
		require.NotContains(t, g.states(), "prepared")
		require.NotContains(t, g.states(), "active")
	}
}

func TestTwoDurableResourcesNeedALog(t *testing.T) {
	g := newGroup(t, time.Hour, "d e")
	err := g.p.commit(t.Context())
	require.ErrorIs(t, err, ErrNoLog)
	require.ErrorIs(t, err, ErrRolledBack)
	require.NotContains(t, g.said(), "d.prepare")
	require.Equal(t, "rolled back, rolled back, rolled back, rolled back", g.states())

	require.NoError(t, newGroup(t, time.Hour, "d e last").p.commit(t.Context()), "the last resource is the log")
}

func TestARegistrationThatMakesNoSenseIsRefused(t *testing.T) {
	g := newGroup(t, time.Hour, "log d last")
	var refused *RegistrationError
	require.NoError(t, g.p.register(g.d, false), "the same again")
	require.NoError(t, g.p.registerLast(g.last), "the same again")
	require.Len(t, g.p.durable, 1)
	require.ErrorAs(t, g.p.register(newFake(g.faults, "d"), false), &refused)
	require.ErrorAs(t, g.p.register(newFake(g.faults, "last"), false), &refused)
	require.ErrorAs(t, g.p.register(newFake(g.faults, ""), false), &refused)
	require.ErrorAs(t, g.p.registerLast(newFakeLast(g.faults, "d")), &refused)
	require.ErrorAs(t, g.p.registerLast(newFakeLast(g.faults, "other")), &refused)
	require.ErrorContains(t, refused, `"last"`)
	require.Empty(t, g.said())

	require.NoError(t, g.p.commit(t.Context()))
	require.ErrorAs(t, g.p.register(newFake(g.faults, "x"), false), &refused)
	require.ErrorAs(t, g.p.register(newFake(g.faults, "x"), true), &refused)
	require.ErrorAs(t, g.p.registerLast(newFakeLast(g.faults, "x")), &refused)
	require.NoError(t, g.p.commit(t.Context()), "the outcome stays")
}

func TestAnInvalidVoteRollsBack(t *testing.T) {
	f := newFaults()
	p := newParticipants(uuid.New(), newCommitSettings(nil, 0, nil))
	require.NoError(t, p.register(votes{newFake(f, "d")}, false))
	require.NoError(t, p.register(newFake(f, "v"), true))
	err := p.commit(t.Context())
	require.ErrorIs(t, err, ErrRolledBack)
	require.ErrorContains(t, err, "invalid vote 0")
}

type votes struct{ *fake }

func (votes) Prepare(context.Context, Branch) (Vote, error) { return 0, nil }

// TestParticipantsNeverDisagreeSilently draws participants and failures, crashes or goes on, and
// recovers. No participant commits while another rolls back, unless the error said so, and in the
// end all agree.
func TestParticipantsNeverDisagreeSilently(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SampledFrom([]string{"", "d", "one", "last", "d last", "log d", "log one", "log d e", "log e one", "d e last", "log d e last"}).Draw(t, "participants")
		g := newGroup(t, time.Hour, words)
		var durable []*fake
		for _, r := range []*fake{g.d, g.e} {
			if r != nil {
				r.readOnly = rapid.Bool().Draw(t, r.name+" is read-only") && words != "one" && words != "log one"
				durable = append(durable, r)
			}
		}
		volatile := []*fake{g.v, g.w}
		ways := []failure{works, works, works, fails, failsAfter, panics, panicsAfter, exits, notCommitted, heuristic}
		for _, call := range []string{"d.prepare", "e.prepare", "d.commit", "e.commit", "d.rollback", "e.rollback", "d.one-phase",
			"log.commit", "log.committed", "log.done", "last.commit", "last.committed", "last.done", "last.rollback", "v.prepare", "w.rollback", "v.commit"} {
			how := rapid.SampledFrom(ways).Draw(t, call)
			if how == exits && (call[0] == 'v' || call[0] == 'w') {
				how = works // ends the goroutine of the test
			}
			g.of[call] = how
		}
		var err error
		commit := rapid.Bool().Draw(t, "commit")
		if commit {
			err = g.p.commit(context.Background())
		} else {
			err = g.p.rollback(context.Background(), nil)
		}
		agree := func(silently bool) {
			var yes, no bool
			check := append(durable[:len(durable):len(durable)], volatile...)
			if g.last != nil {
				check = append(check, g.last.fake)
			}
			for _, r := range check {
				if r.readOnly && r.is() == committed {
					continue
				}
				yes = yes || r.is() == committed
				no = no || r.is() == rolledBack
			}
			if yes && no && !silently {
				t.Fatalf("%s, but the error is %v", g.states(), err)
			}
		}
		agree(errors.Is(err, ErrHeuristic))
		switch {
		case err == nil && commit:
			require.NotContains(t, g.states(), rolledBack)
			require.NotContains(t, g.states(), prepared)
		case errors.Is(err, ErrRolledBack):
			require.False(t, errors.Is(err, ErrInDoubt))
		case errors.Is(err, ErrInDoubt):
			require.Equal(t, prepared, g.v.is(), "an object is told nothing while the outcome is in doubt")
		}

		first := err
		g.heal()
		if rapid.Bool().Draw(t, "crash") {
			for _, r := range durable {
				r.crash()
			}
			if g.last != nil {
				g.last.crash()
			}
			g.v.state, g.w.state = "gone", "gone"
		} else {
			err = g.p.resolve(context.Background())
			require.False(t, g.p.unfinished())
			require.NotErrorIs(t, err, ErrInDoubt)
			if errors.Is(first, ErrRolledBack) {
				require.ErrorIs(t, err, ErrRolledBack, "the outcome stays")
			}
		}
		logs := []Log{g.log}
		if g.last != nil {
			logs = append(logs, g.last)
		}
		var recoverables []Recoverable
		for _, r := range durable {
			recoverables = append(recoverables, r)
		}
		_, recoverErr := Recover(context.Background(), logs, recoverables...)
		require.NoError(t, recoverErr)
		again, recoverErr := Recover(context.Background(), logs, recoverables...)
		require.NoError(t, recoverErr)
		require.Empty(t, again, "recovery is idempotent")
		require.Zero(t, g.log.size())
		agree(errors.Is(first, ErrHeuristic) || errors.Is(err, ErrHeuristic))
		if !errors.Is(first, ErrHeuristic) && !errors.Is(err, ErrHeuristic) {
			for _, r := range durable {
				require.NotEqual(t, prepared, r.is())
				require.NotEqual(t, active, r.is())
			}
		}
		if errors.Is(first, ErrRolledBack) && !errors.Is(first, ErrHeuristic) {
			for _, r := range durable {
				require.True(t, r.is() == rolledBack || r.readOnly, "%s is %s", r.name, r.is())
			}
		}
	})
}

// object is a volatile participant that does nothing.
type object struct{}

func (object) Name() string                                  { return "object" }
func (object) Prepare(context.Context, Branch) (Vote, error) { return Prepared, nil }
func (object) Commit(context.Context, uuid.UUID) error       { return nil }
func (object) Rollback(context.Context, uuid.UUID) error     { return nil }

func BenchmarkCommitOfTwoVolatileParticipants(b *testing.B) {
	settings := newCommitSettings(nil, 0, nil)
	id := uuid.New()
	b.ReportAllocs()
	for b.Loop() {
		p := newParticipants(id, settings)
		_ = p.register(object{}, true)
		_ = p.register(object{}, true)
		if err := p.commit(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
