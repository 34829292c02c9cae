package activeobject_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// A body that waits at another object. In "deep" it is the innermost of a chain of nested calls,
// and what it waits for is free. In "towards" it is in no other object, and what it waits for is kept
// by the first of a row of bodies, each of which waits for the next. In "back" it is likewise,
// and a body waits for its own object, so that the row has to be walked. In "side by side" 64
// goroutines share the operations, each in a chain of its own that has nothing to do with the others.
//
// In "deep" and "side by side" an operation is a call of an object that has a thread of its own, so that
// the caller waits once for each; in the others it is an Await whose context has ended, which
// draws the edge, searches, and erases the edge.
func BenchmarkChain(b *testing.B) {
	ps := newPlaces()
	system := actor.NewSystem(actor.Logger(quiet))
	b.Cleanup(func() { system.Close(background) })
	at := func(options ...activeobject.Option) *activeobject.Object[place] {
		return activeobject.Must(activeobject.New(system, ps.Type, &place{}, options...))
	}
	var nest func(ctx context.Context, depth int, do visit) error
	nest = func(ctx context.Context, depth int, do visit) error {
		if depth == 0 {
			return do(ctx)
		}
		_, err := ps.visit.Call(ctx, at(), func(ctx context.Context) error { return nest(ctx, depth-1, do) })
		return err
	}
	touches := func(n int) visit {
		return func(ctx context.Context) error {
			target := at(activeobject.DedicatedThread())
			defer target.Stop()
			for range n {
				if _, err := ps.touch.Call(ctx, target, nil); err != nil {
					return err
				}
			}
			return nil
		}
	}
	must := func(err error) {
		if err != nil {
			b.Error(err)
		}
	}
	for _, n := range []int{1, 200, 400, 800} {
		b.Run(fmt.Sprintf("deep/%d", n), func(b *testing.B) {
			must(nest(background, n, func(ctx context.Context) error {
				b.ResetTimer()
				return touches(b.N)(ctx)
			}))
		})
	}
	for _, back := range []bool{false, true} {
		name := "towards"
		if back {
			name = "back"
		}
		for _, n := range []int{200, 400, 800} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				row := make([]*activeobject.Object[place], n)
				for i := range row {
					row[i] = at()
				}
				var inside, left sync.WaitGroup
				inside.Add(n)
				end := make(chan struct{})
				for i, o := range row {
					left.Go(func() {
						_, err := ps.visit.Call(background, o, func(ctx context.Context) error {
							if inside.Done(); i+1 == n {
								<-end
								return nil
							}
							inside.Wait()
							_, err := ps.visit.Call(ctx, row[i+1], nil)
							return err
						})
						must(err)
					})
				}
				inside.Wait()
				for i, o := range row {
					for i+1 < n && len(o.Explain().Running[0].Waits) == 0 {
					}
				}
				home := at()
				_, err := ps.visit.Call(background, home, func(ctx context.Context) error {
					if back {
						left.Go(func() {
							_, err := ps.visit.Call(background, at(), func(ctx context.Context) error {
								_, err := ps.visit.Call(ctx, home, nil)
								return err
							})
							must(err)
						})
						for ps.visit.Waiting(home) == 0 {
						}
					}
					f := ps.visit.Send(background, row[0], nil)
					ended, cancel := context.WithCancel(ctx)
					cancel()
					b.ResetTimer()
					for range b.N {
						if _, err := f.Await(ended); err != context.Canceled {
							return err
						}
					}
					b.StopTimer()
					close(end)
					return nil
				})
				must(err)
				left.Wait()
			})
		}
	}
	for _, n := range []int{1, 100, 800} {
		b.Run(fmt.Sprintf("side by side/%d", n), func(b *testing.B) {
			const chains = 64
			var inside, left sync.WaitGroup
			inside.Add(chains)
			start := make(chan struct{})
			for i := range chains {
				left.Go(func() {
					must(nest(background, n, func(ctx context.Context) error {
						inside.Done()
						<-start
						return touches((b.N + i) / chains)(ctx)
					}))
				})
			}
			inside.Wait()
			b.ResetTimer()
			close(start)
			left.Wait()
		})
	}
}
