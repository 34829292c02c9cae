// Suspension is the guarded-suspension server of the text on highly available
// systems in Erlang (server.go), and on it the resource scheduler of that text
// (scheduler.go), which gives a resource to its clients by a policy. The Erlang
// names stand beside the Go ones.
//
//	go run ./examples/suspension
//
// It prints who gets the resource when, under four policies, and ends with 1 if
// that is not as it should be.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program. It returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintf(stderr, "suspension: argument %q: there are none\n", args[0])
		return 2
	}
	fmt.Fprintln(stdout, "ann has the resource; bob (priority 1), cid (3) and dan (2) ask for it, one after the other.")
	fmt.Fprintln(stdout, "They get it in this order:")
	for _, p := range []struct {
		name   string
		policy activeobject.Option
		want   []string
	}{
		{"fifo", fifo(), []string{"ann", "bob", "cid", "dan"}},
		{"lifo", lifo(), []string{"ann", "dan", "cid", "bob"}},
		{"priority", priority(), []string{"ann", "cid", "dan", "bob"}},
		{"dan first", favorite("dan"), []string{"ann", "dan", "bob", "cid"}},
	} {
		got, err := play(p.policy)
		if err == nil && !slices.Equal(got, p.want) {
			err = fmt.Errorf("%v, instead of %v", got, p.want)
		}
		if err != nil {
			fmt.Fprintf(stderr, "suspension: %s: %v\n", p.name, err)
			return 1
		}
		fmt.Fprintf(stdout, "  %-10s %s\n", p.name, strings.Join(got, " "))
	}
	return 0
}

// play lets four clients use a resource under a policy, and returns in which order
// they got it.
func play(policy activeobject.Option) (order []string, err error) {
	ctx, system := context.Background(), actor.NewSystem()
	defer system.Close(ctx)
	scheduler := NewScheduler(system, policy)

	// The resource is the variable order: the client that has it writes its name into it.
	// Without the scheduler that would be a data race.
	doit := func(client string, entered activeobject.Future[activeobject.None], work func()) error {
		if _, err := entered.Await(ctx); err != nil {
			return err
		}
		order = append(order, client)
		work()
		return scheduler.Done(client)
	}

	var clients sync.WaitGroup
	var failed [3]error
	err = doit("ann", scheduler.Enter(ctx, "ann", 0), func() {
		for i, name := range []string{"bob", "cid", "dan"} {
			entered := scheduler.Enter(ctx, name, []int{1, 3, 2}[i]) // one after the other
			clients.Go(func() { failed[i] = doit(name, entered, func() {}) })
		}
	})
	clients.Wait()
	return order, errors.Join(append(failed[:], err)...)
}
