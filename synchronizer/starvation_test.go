package synchronizer_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

// due is a context with a deadline, far away.
type due struct{ context.Context }

var tomorrow = time.Now().Add(24 * time.Hour)

func (due) Deadline() (time.Time, bool) { return tomorrow, true }

// partial are the policies, and how a request is made that they prefer.
var partial = map[string]struct {
	policy activeobject.Option
	prefer func(context.Context) context.Context
	passes bool // somebody who comes later may pass
}{
	"arrival":          {activeobject.ByArrival(), nil, false},
	"LIFO":             {activeobject.LIFO(), nil, true},
	"ranked":           {activeobject.ByPriority(), func(ctx context.Context) context.Context { return activeobject.WithPriority(ctx, 1) }, true},
	"deadline":         {activeobject.ByDeadline(), func(ctx context.Context) context.Context { return due{ctx} }, true},
	"the user's order": {activeobject.Ordered(func(a, b *activeobject.Candidate) bool { return a.Operation == "read" && b.Operation != "read" }), nil, true},
	"the user's choice": {activeobject.Choosing(func(all []*activeobject.Candidate) int {
		return max(0, slices.IndexFunc(all, func(c *activeobject.Candidate) bool { return c.Operation == "read" }))
	}), nil, true},
}

// While a reader is inside nobody passes the writer who waits for him, whatever the policy.
// When all are outside it may prefer others; so often as the bound allows, and then he is next.
func TestAWriterIsPassedAsOftenAsTheBoundAllowsUnderEachPolicy(t *testing.T) {
	const bound = 2
	for name, p := range partial {
		t.Run(name, func(t *testing.T) {
			everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
				rs := newRooms()
				o := newRoom(t, s, rs, rs.Conflicts(), append(options, p.policy, activeobject.MaxBypass(bound))...)
				prefer := p.prefer
				if prefer == nil {
					prefer = func(ctx context.Context) context.Context { return ctx }
				}
				ctx, cancel := context.WithCancel(prefer(background))
				defer cancel()

				var readers, before atomic.Int32 // that have begun, in all and when the writer did
				leave := make(chan None)
				let := sync.OnceFunc(func() { close(leave) })
				defer let()
				stay := func(context.Context) error { readers.Add(1); <-leave; return nil }
				ended := []<-chan error{callWith(ctx, rs.read, o, stay)}
				until(t, "the first reader begins", func() bool { return readers.Load() == 1 })
				writer := call(rs.a, o, func(context.Context) error { before.Store(readers.Load()); return nil })
				objecttest.Waiting(t, o, rs.a, 1)
				const later = 2 * bound
				for i := range later {
					ended = append(ended, callWith(ctx, rs.read, o, stay))
					objecttest.Waiting(t, o, rs.read, i+1)
				}
				passed := 0
				if p.passes {
					passed = bound
				}
				require.EqualValues(t, 1, readers.Load())
				let()
				require.NoError(t, soon(t, writer))
				require.EqualValues(t, 1+passed, before.Load(), "he comes before those that wait behind him")
				for _, e := range ended {
					require.NoError(t, soon(t, e))
				}
				require.EqualValues(t, 1+later, readers.Load())
			})
		})
	}
}

// Readers come and go all the time, as fast as they can.
func TestAStreamOfReadersLetsAWriterInUnderEachPolicy(t *testing.T) {
	for name, p := range partial {
		t.Run(name, func(t *testing.T) {
			everyThread(t, func(t *testing.T, s *actor.System, options ...activeobject.Option) {
				rs := newRooms()
				o := newRoom(t, s, rs, rs.Conflicts(), append(options, p.policy, activeobject.MaxBypass(3))...)
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				if p.prefer != nil {
					ctx = p.prefer(ctx)
				}
				var over atomic.Bool
				var readers sync.WaitGroup
				begun := make(chan None, 100)
				for range 4 {
					readers.Go(func() {
						for !over.Load() {
							_, err := rs.read.Call(ctx, o, func(context.Context) error {
								select {
								case begun <- none:
								default:
								}
								return nil
							})
							if err != nil {
								t.Error(err)
							}
						}
					})
				}
				for range 20 {
					soon(t, begun)
					require.NoError(t, soon(t, call(rs.a, o, func(context.Context) error { return nil })))
				}
				over.Store(true)
				readers.Wait()
			})
		})
	}
}
