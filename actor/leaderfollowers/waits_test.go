package leaderfollowers_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor/leaderfollowers"
)

// stranger is a context that is not the context package's.
type stranger struct{ context.Context }

// However a handler waits for a request, the only thread of its pool is replaced meanwhile: or else
// the handler that brings about what it waits for would never run.
func TestEveryWaitOfAHandlerLendsItsThread(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, o *activeobject.Object[counter]) error{
		"Call": func(ctx context.Context, o *activeobject.Object[counter]) error { return reached.Do(ctx, o, nil) },
		"Call with a context that is not the context package's": func(ctx context.Context, o *activeobject.Object[counter]) error {
			return reached.Do(stranger{ctx}, o, nil)
		},
		"Call with a context that cannot end": func(ctx context.Context, o *activeobject.Object[counter]) error {
			return reached.Do(context.WithoutCancel(ctx), o, nil)
		},
		"Send and Await": func(ctx context.Context, o *activeobject.Object[counter]) error {
			_, err := reached.Send(ctx, o, nil).Await(ctx)
			return err
		},
		"Begin and Await": func(ctx context.Context, o *activeobject.Object[counter]) error {
			_, err := reached.Begin(ctx, o, nil).Await(ctx)
			return err
		},
		"Select": func(ctx context.Context, o *activeobject.Object[counter]) error {
			_, err := activeobject.Select(ctx, reached.Case(o, nil), reached.Case(o, nil))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			p, err := leaderfollowers.New(s, 1)
			require.NoError(t, err)
			defer closePool(t, p)
			o, result := newCounter(t, s), make(chan error, 1)
			waits := newWakeUp(t, p, leaderfollowers.HandlerFunc(func(ctx context.Context, _ leaderfollowers.Event) error {
				result <- wait(ctx, o)
				return nil
			}))
			brings := newWakeUp(t, p, leaderfollowers.HandlerFunc(func(ctx context.Context, _ leaderfollowers.Event) error {
				_, err := add.Call(ctx, o, 10)
				return err
			}))
			require.NoError(t, waits.Wake())
			until(t, "it does not wait", func() bool {
				for _, thread := range p.Snapshot().Threads {
					if thread.Waits {
						return true
					}
				}
				return false
			})
			require.NoError(t, brings.Wake())
			require.NoError(t, soon(t, result))
			until(t, "the surplus is not taken back", func() bool {
				now := p.Snapshot()
				return len(now.Threads) == 1 && now.Busy == 0
			})
		})
	}
}
