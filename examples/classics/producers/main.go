// Producers: some produce items, others consume them, and between them is a buffer
// with little room. Nothing may get lost or be consumed twice; who produces waits while
// the buffer is full, who consumes while it is empty. (E. W. Dijkstra, "Cooperating
// Sequential Processes", 1965.)
//
//	go run ./examples/classics/producers
//	go run ./examples/classics/producers -trace page.html
//
// The buffer is ready-made: buffer.Bounded. What goes wrong elsewhere, and why not here:
//   - Deadlock: a semaphore for the places and another for the lock, taken in the wrong
//     order. Here one request does all, and has taken nothing before it starts.
//   - A lost wake-up: one signal, on which a producer wakes where a consumer should;
//     or a wait that is not in a loop. Here a put makes the object ask again whether a
//     get may start, and the other way round.
//   - Consumers that wait for ever when nobody produces any more: here the buffer is
//     closed, what is in it is still consumed, and then the range over it ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/buffer"
	"github.com/sluice-go/sluice/activeobject/timeline"
	"github.com/sluice-go/sluice/actor"
)

const producers, consumers, room = 3, 4, 5

type item struct{ producer, number int }

// run has each producer produce n items.
func run(ctx context.Context, out io.Writer, n int, options ...activeobject.Option) error {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	var story []event // what the buffer has done, in that order; it does one thing at a time, so this needs no lock
	tell := func(ctx context.Context, r activeobject.Intercepted, body func() error) error {
		err := body()
		if put, ok := r.Argument.(item); ok && err == nil {
			story = append(story, event{put: true, item: put})
		} else if r.Operation == "get" && err == nil {
			story = append(story, event{})
		}
		return err
	}
	items, err := buffer.NewBounded[item](system, room, append(options, activeobject.Interceptors(activeobject.Interceptor{Run: tell}))...)
	if err != nil {
		return err
	}

	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		producing, ctx := errgroup.WithContext(ctx)
		for p := range producers {
			producing.Go(func() error {
				for i := range n {
					if err := items.Put(ctx, item{p, i}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := producing.Wait(); err != nil {
			return err
		}
		return items.Close()
	})
	var consumed [consumers][]item // by each
	for c := range consumers {
		all.Go(func() error {
			for item, err := range items.All(ctx) {
				if err != nil {
					return err
				}
				consumed[c] = append(consumed[c], item)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	if err := check(story, consumed[:], n); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "All %d items of %d producers were consumed, each once and in order, and never more than %d were in the buffer.\n",
		producers*n, producers, room)
	return err
}

func main() {
	trace := timeline.NewFlag("trace")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, 100, trace.Options()...)
	if err = errors.Join(err, trace.Save()); err != nil {
		fmt.Fprintln(os.Stderr, "producers:", err)
		os.Exit(1)
	}
}
