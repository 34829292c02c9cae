package model

import (
	"context"

	"github.com/sluice-go/sluice/examples/compare/internal/object"
)

// handHost is an object that is written by hand.
type handHost struct{ object.Hand }

func openByHand[T any](t *object.Type[T], state *T) ([]object.Call, host) {
	hand := t.ByHand(state, func(op int, r object.Request) (int64, error) { return t.Operations[op].Run(state, r) })
	var calls []object.Call
	for op := range t.Operations {
		calls = append(calls, func(_ context.Context, r object.Request) (int64, error) { return hand.Call(op, r) })
	}
	return calls, handHost{hand}
}

func (h handHost) stop()    { h.Stop() }
func (handHost) end() error { return nil }
