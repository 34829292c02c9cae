// Readers and writers share a page: any number may read it at the same time, but who
// writes it must be alone. Who comes first if both wait is a question with three
// answers, of which the first two let somebody starve. (P. J. Courtois, F. Heymans and
// D. L. Parnas, "Concurrent Control with 'Readers' and 'Writers'", 1971.)
//
//	go run ./examples/classics/readers
//	go run ./examples/classics/readers -trace page.html
//
// The lock is ready-made: lock.ReadWrite, by three constructors. What goes wrong
// elsewhere, and why not here:
//   - Barging: the paper's second solution takes five semaphores, one of them only to
//     keep readers from getting in before a writer who waits. Here all stand in one line,
//     and the three kinds are three orders of it.
//   - Starvation: readers that overlap keep a writer out for ever, and writers likewise
//     keep readers out. That is what the first two kinds are; the fair one has a bound.
//   - A lock that nobody releases, as its holder has failed: WithLock releases it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/lock"
	"github.com/sluice-go/sluice/activeobject/timeline"
	"github.com/sluice-go/sluice/actor"
)

const readers, writers = 5, 3

// Page is what is shared. It is plain data, two fields that are always equal, unless
// somebody writes them.
type Page struct{ front, back int }

// run has all read or write n times, under each kind of lock.
func run(ctx context.Context, out io.Writer, n int, options ...activeobject.Option) error {
	system := actor.NewSystem()
	defer system.Close(context.Background())
	for _, kind := range []struct {
		name, order string
		new         func(*actor.System, ...activeobject.Option) (*lock.ReadWrite, error)
	}{
		{"fair", "r1 w1 r2 w2", lock.NewReadWrite},
		{"readers first", "r1 r2 w1 w2", lock.NewReadersFirst},
		{"writers first", "w1 w2 r1 r2", lock.NewWritersFirst},
	} {
		rw, err := kind.new(system, options...)
		if err != nil {
			return err
		}
		order, err := queue(ctx, rw)
		if err == nil && order != kind.order {
			err = fmt.Errorf("they got the lock in the order %s, instead of %s", order, kind.order)
		}
		if err == nil {
			err = crowd(ctx, rw, n)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		fmt.Fprintf(out, "%-13s  r1 w1 r2 w2 come, and get it: %s. Then %d have read and written %d times, all writers alone.\n",
			kind.name, order, readers+writers, n)
	}
	return nil
}

// queue returns in which order those get the lock who ask for it while somebody
// writes. As futures they need no goroutines, and so come one after the other.
func queue(ctx context.Context, rw *lock.ReadWrite) (string, error) {
	if err := rw.Lock(ctx); err != nil {
		return "", err
	}
	type client struct {
		name   string
		locked activeobject.Future[activeobject.None]
		unlock func() error
	}
	waiting := []client{
		{"r1", rw.Locks().Send(ctx, lock.ToRead), rw.RUnlock}, {"w1", rw.Locks().Send(ctx, lock.ToWrite), rw.Unlock},
		{"r2", rw.Locks().Send(ctx, lock.ToRead), rw.RUnlock}, {"w2", rw.Locks().Send(ctx, lock.ToWrite), rw.Unlock},
	}
	ready := make(chan struct{}, len(waiting)) // one for each that has the lock
	for _, c := range waiting {
		c.locked.OnDone(func(activeobject.None, error) { ready <- struct{}{} })
	}
	var order []string
	err := rw.Unlock()
	for err == nil && len(waiting) > 0 {
		<-ready
		i := slices.IndexFunc(waiting, func(c client) bool { return c.locked.Ready() })
		next := waiting[i]
		if _, err = next.locked.Await(ctx); err == nil {
			order, waiting = append(order, next.name), slices.Delete(waiting, i, i+1)
			err = next.unlock()
		}
	}
	return strings.Join(order, " "), err
}

// crowd has all read or write n times, and returns an error if a writer was not alone.
func crowd(ctx context.Context, rw *lock.ReadWrite, n int) error {
	var page Page
	var in presence
	all, ctx := errgroup.WithContext(ctx)
	read := func(context.Context) error {
		defer in.leave(reader)
		if err := in.enter(reader); err != nil {
			return err
		}
		runtime.Gosched() // he reads, and others come
		if page.front != page.back {
			return errors.New("somebody reads what is half written")
		}
		return nil
	}
	write := func(context.Context) error {
		defer in.leave(writer)
		if err := in.enter(writer); err != nil {
			return err
		}
		page.front++
		runtime.Gosched() // he writes, and others come
		page.back++
		return nil
	}
	for i := range readers + writers {
		with, do := rw.WithRLock, read
		if i >= readers {
			with, do = rw.WithLock, write
		}
		all.Go(func() error {
			for range n {
				if err := with(ctx, do); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	if page.back != writers*n {
		return fmt.Errorf("the page was written %d times, instead of %d", page.back, writers*n)
	}
	return nil
}

func main() {
	trace := timeline.NewFlag("trace")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, 100, trace.Options()...)
	if err = errors.Join(err, trace.Save()); err != nil {
		fmt.Fprintln(os.Stderr, "readers:", err)
		os.Exit(1)
	}
}
