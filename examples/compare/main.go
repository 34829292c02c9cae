// Compare runs the same shared objects under several concurrency models, and
// prints for each how fast it is, what it costs, and whether its results were
// right:
//
//	go run ./examples/compare
//	go run ./examples/compare -workloads bank,readers -models monitor,sluice -callers 64 -duration 3s
//
// The objects are bank accounts whose withdrawals wait for cover (bank.go), a
// bounded buffer (buffer.go), and a register with readers and writers
// (readers.go). Each is plain Go, declared once for Sluice; the files also hold
// what it takes to write it by hand for the other models.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
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

// settings say what to compare.
type settings struct {
	workloads []workload
	models    []model
	callers   int
	duration  time.Duration // of each model in each workload
	patience  time.Duration // with callers that do not come back
	json      bool
}

func defaults() settings {
	s := settings{workloads: workloads, callers: 8, duration: 600 * time.Millisecond, patience: 10 * time.Second}
	for _, m := range models {
		s.models = append(s.models, m.name)
	}
	return s
}

// maxCallers keeps the memory of a run within reason.
const maxCallers = 10_000

// parse reads the arguments. Its errors say which flag is wrong, with what value,
// and what is allowed.
func parse(args []string) (settings, error) {
	s := defaults()
	flags := s.flags()
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) || strings.HasPrefix(err.Error(), "invalid") {
			return s, err
		}
		return s, fmt.Errorf("%w: allowed are %s and -h", err, strings.Join(flagNames(flags), ", "))
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("argument %q is not a flag: allowed are %s and -h", flags.Arg(0), strings.Join(flagNames(flags), ", "))
	}
	return s, nil
}

// flags returns the flags that set s.
func (s *settings) flags() *flag.FlagSet {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Func("workloads", "comma-separated `list` of workloads (default all)", func(v string) (err error) {
		s.workloads, err = chosen(v, workloads, func(w workload, name string) bool {
			return w.name == name || strings.HasPrefix(w.name, name+"-")
		}, workloadNames())
		return err
	})
	f.Func("models", "comma-separated `list` of models; the first is what the others are compared with (default all)", func(v string) (err error) {
		s.models, err = chosen(v, defaults().models, func(m model, name string) bool { return string(m) == name }, modelNames())
		return err
	})
	f.Func("callers", "`number` of goroutines that share the object (default 8)", func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxCallers {
			return fmt.Errorf("must be a whole number from 1 to %d", maxCallers)
		}
		s.callers = n
		return nil
	})
	f.Func("duration", "`time` that each model runs for in each workload (default 600ms)", func(v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return errors.New("must be a time above 0, such as 500ms or 2s")
		}
		s.duration = d
		return nil
	})
	f.BoolFunc("json", "print the results as JSON, and nothing else, on standard output", func(v string) (err error) {
		if s.json, err = strconv.ParseBool(v); err != nil {
			return errors.New("must be true or false")
		}
		return nil
	})
	return f
}

// chosen returns the items that a comma-separated list of names asks for, in the
// order of the list.
func chosen[T any](list string, all []T, is func(T, string) bool, names []string) ([]T, error) {
	var items []T
	var taken []int
	for name := range strings.SplitSeq(list, ",") {
		known := false
		for i, item := range all {
			if !is(item, strings.TrimSpace(name)) {
				continue
			}
			known = true
			if !slices.Contains(taken, i) {
				taken = append(taken, i)
				items = append(items, item)
			}
		}
		if !known {
			return nil, fmt.Errorf("%q is unknown; allowed are %s", name, strings.Join(names, ", "))
		}
	}
	return items, nil
}

func workloadNames() []string {
	var names []string
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return append(names, "readers (all of those)")
}

func modelNames() []string {
	var names []string
	for _, m := range models {
		names = append(names, string(m.name))
	}
	return names
}

func flagNames(f *flag.FlagSet) (names []string) {
	f.VisitAll(func(f *flag.Flag) { names = append(names, "-"+f.Name) })
	return names
}

func usage(w io.Writer) {
	fmt.Fprint(w, `Compare runs the same shared objects under several concurrency models, and
prints how fast each is, what it costs, and whether its results were right.

Usage: go run ./examples/compare [flags]

`)
	s := defaults()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "Flags:")
	s.flags().VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		fmt.Fprintf(t, "  -%s %s\t%s\n", f.Name, value, text)
	})
	fmt.Fprintln(t, "\nWorkloads:")
	for _, w := range workloads {
		fmt.Fprintf(t, "  %s\t%s\n", w.name, w.about)
	}
	fmt.Fprintln(t, "  readers\tall of the above that begin so")
	fmt.Fprintln(t, "\nModels:")
	for _, m := range models {
		fmt.Fprintf(t, "  %s\t%s\n", m.name, m.about)
	}
	t.Flush()
	fmt.Fprint(w, `
Exit codes: 0 if all is well, 1 if the results of a run were wrong, 2 if the
arguments were. An interrupt (Ctrl-C) ends early; what was measured is printed.
`)
}
