package transaction

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// prepareAndDecide brings a group to the point where the log has the decision, and both durable
// resources are prepared.
func prepareAndDecide(t *testing.T, g *group) {
	branch := Branch{g.p.id, "log"}
	for _, r := range []*fake{g.d, g.e} {
		_, err := r.Prepare(t.Context(), branch)
		require.NoError(t, err)
	}
	require.NoError(t, g.log.Commit(t.Context(), g.p.id, []string{"d", "e"}))
}

func TestRecoveryFinishesWhatIsDecidedAndRollsBackTheRest(t *testing.T) {
	g := newGroup(t, time.Hour, "log d e")
	prepareAndDecide(t, g)
	other := newGroup(t, time.Hour, "log d e")
	other.d.name, other.e.name = "d2", "e2"
	_, err := other.d.Prepare(t.Context(), Branch{other.p.id, "log"})
	require.NoError(t, err)
	list, err := Recover(t.Context(), []Log{g.log}, g.d, g.e, other.d, other.e)
	require.NoError(t, err)
	require.ElementsMatch(t, []Recovered{
		{g.p.id, "d", Committed, nil},
		{g.p.id, "e", Committed, nil},
		{other.p.id, "d2", RolledBack, nil},
	}, list)
	require.Equal(t, committed, g.d.is())
	require.Equal(t, committed, g.e.is())
	require.Equal(t, rolledBack, other.d.is())
	require.Zero(t, g.log.size())
}

func TestRecoveryLeavesABranchOfAnotherLog(t *testing.T) {
	g := newGroup(t, time.Hour, "log d e")
	prepareAndDecide(t, g)
	list, err := Recover(t.Context(), []Log{newFakeLog(newFaults(), "another")}, g.d, g.e)
	require.ErrorIs(t, err, ErrNoLog)
	require.ErrorContains(t, err, `"log" has the decision`)
	require.Len(t, list, 2)
	require.Equal(t, InDoubt, list[0].Outcome)
	require.Equal(t, prepared, g.d.is())

	_, err = Recover(t.Context(), []Log{g.log}, g.d, g.e)
	require.NoError(t, err)
	require.Equal(t, committed, g.d.is())
}

func TestRecoveryKeepsADecisionThatAResourceHasNotHeard(t *testing.T) {
	g := newGroup(t, time.Hour, "log d e")
	prepareAndDecide(t, g)
	_, err := Recover(t.Context(), []Log{g.log}, g.d)
	require.ErrorIs(t, err, ErrNoResource)
	require.ErrorContains(t, err, "at e")
	require.Equal(t, 1, g.log.size())

	for _, call := range []string{"e.list", "e.commit", "log.committed", "log.done"} {
		for _, how := range []failure{fails, panics, exits} {
			g.of[call] = how
			list, err := Recover(t.Context(), []Log{g.log}, g.d, g.e)
			require.Error(t, err)
			require.NotEmpty(t, list)
			checkKind(t, err, how)
			require.Equal(t, 1, g.log.size(), "%s %s", call, how)
		}
		g.heal()
		if call != "log.done" {
			require.Equal(t, prepared, g.e.is())
		}
	}
	_, err = Recover(t.Context(), []Log{g.log}, g.d, g.e)
	require.NoError(t, err)
	require.Equal(t, committed, g.e.is())
	require.Zero(t, g.log.size())
}

func TestRecoveryEndsWithItsContext(t *testing.T) {
	g := newGroup(t, time.Hour, "log d e")
	prepareAndDecide(t, g)
	ctx, cancel := context.WithCancel(t.Context())
	g.of["d.commit"] = hangs
	go func() {
		<-g.hung
		cancel()
	}()
	_, err := Recover(ctx, []Log{g.log}, g.d, g.e)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, g.log.size())
	require.Equal(t, prepared, g.e.is())
	g.heal()
	_, err = Recover(t.Context(), []Log{g.log}, g.d, g.e)
	require.NoError(t, err)
	require.Equal(t, committed, g.e.is())
}

func TestRecoveryLeavesLiveTransactionsAlone(t *testing.T) {
	g := newGroup(t, time.Hour, "log d e")
	prepareAndDecide(t, g)
	list, err := recoverBranches(t.Context(), []Log{g.log}, []Recoverable{g.d, g.e}, func(id uuid.UUID) bool { return id == g.p.id })
	require.NoError(t, err)
	require.Empty(t, list)
	require.Equal(t, prepared, g.d.is())
	require.Equal(t, 1, g.log.size())
}

func TestRecoveryRefusesTwoOfAName(t *testing.T) {
	f := newFaults()
	var refused *RegistrationError
	_, err := Recover(t.Context(), []Log{newFakeLog(f, "a"), newFakeLog(f, "a")})
	require.ErrorAs(t, err, &refused)
	_, err = Recover(t.Context(), nil, newFake(f, "d"), newFake(f, "d"))
	require.ErrorAs(t, err, &refused)
	_, err = Recover(t.Context(), nil, newFake(f, ""))
	require.ErrorAs(t, err, &refused)
	require.Empty(t, f.said())
}
