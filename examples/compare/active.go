package main

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// active is the host of an active object.
type active[T any] struct {
	system *actor.System
	object *activeobject.Object[T]
}

// activate makes an active object of a state.
func activate[T any](t *activeobject.Type[T], state *T, m model) (*active[T], error) {
	var options []activeobject.Option
	if m == dedicated {
		options = append(options, activeobject.Dedicated())
	}
	system := actor.NewSystem()
	object, err := activeobject.New(system, t, state, options...)
	if err != nil {
		return nil, err
	}
	return &active[T]{system, object}, nil
}

// stop implements host: there is nothing to do, since calls watch their context.
func (a *active[T]) stop() {}

// end implements host.
func (a *active[T]) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return a.system.Close(ctx)
}
