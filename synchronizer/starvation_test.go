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
	"github.com/sluice-go/sluice/synchronizer"
)

// due is a context with a deadline, far away.
type due struct{ context.Context }

var tomorrow = time.Now().Add(24 * time.Hour)

func (due) Deadline() (time.Time, bool) { return tomorrow, true }

// partial are the policies, and how a request is made that they prefer.
var partial = map[string]struct {
	policy activeobject.Option
	prefer func(context.Context) context.Context
	passes bool // a later request may pass
}{
	"arrival":          {activeobject.ByArrival(), nil, false},
	"LIFO":             {activeobject.ByLatest(), nil, true},
	"ranked":           {activeobject.ByPriority(), func(ctx context.Context) context.Context { return activeobject.WithPriority(ctx, 1) }, true},
	"deadline":         {activeobject.ByDeadline(), func(ctx context.Context) context.Context { return due{ctx} }, true},
	"the user's order": {activeobject.ByOrder(func(a, b *activeobject.Candidate) bool { return a.Operation == "read" && b.Operation != "read" }), nil, true},
	"the user's choice": {activeobject.ByChoice(func(all []*activeobject.Candidate) int {
		return max(0, slices.IndexFunc(all, func(c *activeobject.Candidate) bool { return c.Operation == "read" }))
	}), nil, true},
}

// While a reader is inside no request passes the writer that waits for it, whatever the policy.
// When all have returned the policy may prefer others as often as the bound allows; then the writer
// is next.
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
				require.EqualValues(t, 1+passed, before.Load(), "the writer comes before those that wait behind it")
				for _, e := range ended {
					require.NoError(t, soon(t, e))
				}
				require.EqualValues(t, 1+later, readers.Load())
			})
		})
	}
}

// stream is readers that overlap: the next one begins before the last leaves.
type stream struct {
	t     *testing.T
	o     *activeobject.Object[room]
	rs    rooms
	ctx   context.Context
	begun *atomic.Int32 // readers
	leave chan None     // of the last one that has begun
	ended <-chan error
}

// come has one more reader arrive, which stays until leave is closed.
func (s *stream) come() (leave chan None, ended <-chan error) {
	leave = make(chan None)
	return leave, callWith(s.ctx, s.rs.read, s.o, func(context.Context) error { s.begun.Add(1); <-leave; return nil })
}

// flow starts n more readers, and ends each of the ones before.
func (s *stream) flow(n int) {
	s.t.Helper()
	for range n {
		before := s.begun.Load()
		leave, ended := s.come()
		until(s.t, "the next reader begins", func() bool { return s.begun.Load() > before })
		s.dry()
		s.leave, s.ended = leave, ended
	}
}

// dry ends the last reader.
func (s *stream) dry() {
	s.t.Helper()
	if s.leave != nil {
		close(s.leave)
		require.NoError(s.t, soon(s.t, s.ended))
		s.leave = nil
	}
}

// With the option an unbroken stream of readers starves a writer, whatever the policy: it decides
// among the requests that could start, and the writer never could. With a bound as many pass it as
// that says; then they wait for it.
func TestWhereAllCompatibleStartReadersStarveAWriterUnlessABoundIsSet(t *testing.T) {
	const many, bound = 40, 3
	for name, p := range partial {
		for _, options := range [][]activeobject.Option{nil, {activeobject.MaxBypass(bound)}} {
			bounded := options != nil
			t.Run(name+map[bool]string{false: "", true: ", bounded"}[bounded], func(t *testing.T) {
				everyThread(t, func(t *testing.T, system *actor.System, thread ...activeobject.Option) {
					rs := newRooms()
					o := newRoom(t, system, rs, rs.Conflicts(), append(slices.Concat(thread, options), p.policy, synchronizer.AllCompatible())...)
					ctx := background
					if p.prefer != nil {
						ctx = p.prefer(ctx)
					}
					var begun, before atomic.Int32
					readers := &stream{t: t, o: o, rs: rs, ctx: ctx, begun: &begun}
					readers.flow(1)
					writer := call(rs.a, o, func(context.Context) error { before.Store(begun.Load()); return nil })
					objecttest.Waiting(t, o, rs.a, 1)
					if !bounded {
						readers.flow(many)
						require.EqualValues(t, 1+many, begun.Load())
						require.Empty(t, writer, "the writer still waits")
						objecttest.Waiting(t, o, rs.a, 1)
						readers.dry()
						require.NoError(t, soon(t, writer))
						require.EqualValues(t, 1+many, before.Load(), "all of them have passed it")
						return
					}
					readers.flow(bound)
					leave, ended := readers.come()
					close(leave)
					objecttest.Waiting(t, o, rs.read, 1)
					for _, w := range o.Explain().Waiting {
						if w.Operation == "read" {
							require.Equal(t, "a comes first", w.Reason.String())
						} else {
							require.Equal(t, bound, w.Bypassed)
						}
					}
					readers.dry()
					require.NoError(t, soon(t, writer))
					require.EqualValues(t, 1+bound, before.Load(), "no other has passed it")
					require.NoError(t, soon(t, ended))
				})
			})
		}
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
