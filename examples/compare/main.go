// Compare runs the same shared objects under a thread for each request, a thread for
// each object, and the Synchronizer. For each workload it says in a sentence what
// happened and why, and shows how fast each model was, how many threads it blocked,
// how many bodies ran at once, and whether the results were right:
//
//	go run ./examples/compare
//	go run ./examples/compare -models all -v
//	go run ./examples/compare -html report.html
//	go run ./examples/compare -workloads account,readers -models by-hand,borrowed,sync-spawned -callers 64 -duration 3s
//	go run ./examples/compare -file workloads.yaml
//
// Four ideas make the program, each a package below internal:
//
//   - an object is declared once, as plain Go with guards (object.Type);
//   - a model says how it is made from its declaration, and how it is called (model.Model);
//   - a workload says what its callers ask of it (workload.Workload);
//   - a run lets so many callers do that for some time (measure.Tally), and may note
//     the way of each request (trace.Log), and what it waited for (the package timeline
//     below activeobject, which does that for any program).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // the second interrupt kills
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitOK    = 0
	exitWrong = 1 // the results of a run were wrong
	exitUsage = 2
)

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage(stdout)
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "compare:", strings.Join(strings.Fields(err.Error()), " "))
		return exitUsage
	}
	return s.run(ctx, stdout, stderr)
}
