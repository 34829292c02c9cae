package barrier

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

// What the bound operations do that cannot take back an arrival.

func TestATryDoesNotArriveAtACyclic(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		b, err := NewCyclic(system, 2, options...)
		require.NoError(t, err)
		require.ErrorIs(t, try(b.Awaits(), nil), activeobject.ErrRefused)
		f := b.Awaits().Send(background, nil)
		objecttest.Waiting(t, b.o, cyclicAwait, 1)
		require.ErrorIs(t, try(b.Awaits(), nil), activeobject.ErrRefused)
		require.True(t, f.Withdraw())
		require.ErrorIs(t, b.Await(background), ErrBroken)
		require.ErrorIs(t, try(b.Awaits(), nil), ErrBroken)
	})
}

func TestASelectThatHasWaitedAndMakesAnotherCallBreaksACyclic(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		b, err := NewCyclic(system, 2, options...)
		require.NoError(t, err)
		l, err := NewLatch(system, 1, options...)
		require.NoError(t, err)
		chosen := make(chan int, 1)
		selects := func() {
			go func() {
				i, _ := activeobject.Select(background, b.Awaits().Case(nil), l.Awaits().Case(nil))
				chosen <- i
			}()
			objecttest.Waiting(t, b.o, cyclicAwait, 1)
		}
		selects()
		require.NoError(t, b.Await(background), "the case has arrived")
		require.Zero(t, <-chosen)
		selects()
		require.NoError(t, l.CountDown())
		require.Equal(t, 1, <-chosen)
		is, err := b.Broken()
		require.NoError(t, err)
		require.True(t, is)
	})
}

func TestATryAtAPhaserArrivesAndDoesNotWait(t *testing.T) {
	everyWay(t, func(t *testing.T, system *actor.System, options []activeobject.Option) {
		p, err := NewPhaser(system, 2, options...)
		require.NoError(t, err)
		err = try(p.ArrivesAndAwaits(), nil)
		require.ErrorIs(t, err, activeobject.ErrRefused)
		require.ErrorAs(t, err, new(*activeobject.RequeuedError))
		require.NoError(t, try(p.ArrivesAndAwaits(), nil), "the phase is over with that")
		status, err := p.Status()
		require.NoError(t, err)
		require.Equal(t, PhaserStatus{Phase: 1, Parties: 2}, status)
	})
}
