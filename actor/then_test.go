package actor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/actor"
)

func explode(int, error) { panic("bang") }

func TestAContinuationThatFailsIsNamedOnEveryGoroutine(t *testing.T) {
	ready := actor.Settled(1, nil)
	_, err := ready.OnDone(explode).Await(background)
	require.EqualError(t, err, "sluice: continuation github.com/sluice-go/sluice/actor_test.explode panicked: bang")
	_, err = actor.Then(ready, func(n int, err error) (int, error) { explode(n, err); return n, err }).Await(background)
	require.ErrorContains(t, err, "TestAContinuationThatFailsIsNamedOnEveryGoroutine.func1 panicked: bang")
}
