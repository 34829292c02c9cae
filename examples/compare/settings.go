package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluice-go/sluice/examples/compare/internal/model"
	"github.com/sluice-go/sluice/examples/compare/internal/report"
	"github.com/sluice-go/sluice/examples/compare/internal/workload"
)

// settings say what to compare.
type settings struct {
	workloads []*workload.Workload
	models    []*model.Model
	callers   int           // of workloads that do not say
	duration  time.Duration // of each model in each workload
	patience  time.Duration // with callers that do not come back
	sweep     bool          // measure over numbers of callers and shares of reads as well
	verbose   bool          // print all columns
	json      bool
	html      string // file
	perfetto  string // likewise
}

func defaults() settings {
	return settings{
		workloads: workload.Default, models: model.Default,
		callers: 8, duration: 300 * time.Millisecond, patience: 10 * time.Second,
	}
}

// parse reads the arguments. Its errors say which flag is wrong, with what value,
// and what is allowed; or where in a workload file.
func parse(args []string) (settings, error) {
	s := defaults()
	var names, file string
	flags := s.flags(&names, &file)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) || strings.HasPrefix(err.Error(), "invalid") {
			return s, err
		}
		return s, fmt.Errorf("%w: allowed are %s and -h", err, strings.Join(flagNames(flags), ", "))
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("argument %q is not a flag: allowed are %s and -h", flags.Arg(0), strings.Join(flagNames(flags), ", "))
	}
	if err := s.load(file); err != nil {
		return s, err
	}
	if names != "" {
		if err := s.choose(names, file); err != nil {
			return s, fmt.Errorf("invalid value %q for flag -workloads: %w", names, err)
		}
	}
	return s, s.canWrite()
}

// load takes the workloads of a file instead of the built-in ones.
func (s *settings) load(file string) error {
	if file == "" {
		return nil
	}
	var err error
	s.workloads, err = workload.Load(file)
	return err
}

// choose takes the workloads of the given names, of the file if there is one.
func (s *settings) choose(names, file string) (err error) {
	if file == "" {
		s.workloads = workload.Builtin
	}
	s.workloads, err = chosen(names, s.workloads, func(w *workload.Workload, name string) bool {
		return w.Name == name || strings.HasPrefix(w.Name, name+"-")
	}, workloadNames(s.workloads))
	return err
}

// canWrite finds out early whether the files can be written. What they hold stays until then.
func (s *settings) canWrite() error {
	s.sweep = s.sweep || s.html != ""
	for name, file := range map[string]string{"html": s.html, "perfetto": s.perfetto} {
		if file == "" {
			continue
		}
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			return fmt.Errorf("invalid value %q for flag -%s: %w", file, name, err)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// flags returns the flags that set s.
func (s *settings) flags(names, file *string) *flag.FlagSet {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Func("workloads", "comma-separated `list` of workloads, or all (default "+strings.Join(workloadNames(workload.Default), ",")+")", func(v string) error {
		if *names = v; v == "" {
			return fmt.Errorf("allowed are %s", strings.Join(workloadNames(workload.Builtin), ", "))
		}
		return nil
	})
	f.StringVar(file, "file", "", "workloads from a YAML `file`, instead of the built-in ones; see workload.yaml")
	f.Func("models", "comma-separated `list` of models, or all; the first is what the others are compared with (default "+strings.Join(namesOf(model.Default), ",")+")", func(v string) (err error) {
		s.models, err = chosen(v, model.All, func(m *model.Model, name string) bool { return m.Name == name }, modelNames())
		return err
	})
	f.Func("callers", fmt.Sprintf("`number` of goroutines that share the objects (default %d)", s.callers), func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > workload.MaxCallers {
			return fmt.Errorf("must be a whole number from 1 to %d", workload.MaxCallers)
		}
		s.callers = n
		return nil
	})
	f.Func("duration", fmt.Sprintf("`time` that each model runs for in each workload (default %v)", s.duration), func(v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return errors.New("must be a time above 0, such as 500ms or 2s")
		}
		s.duration = d
		return nil
	})
	f.BoolFunc("sweep", "measure also by numbers of callers and shares of reads, each in windows of a twentieth of the duration until the throughput is steady", setTo(&s.sweep))
	f.BoolFunc("v", "print the columns of each workload's table, as it is measured", setTo(&s.verbose))
	f.BoolFunc("json", "print the results as JSON, and nothing else, on standard output", setTo(&s.json))
	f.StringVar(&s.html, "html", "", "write a page with plots and timelines to the `file`; includes -sweep")
	f.StringVar(&s.perfetto, "perfetto", "", "write a trace of each model to the `file`, for ui.perfetto.dev")
	return f
}

func setTo(p *bool) func(string) error {
	return func(v string) (err error) {
		if *p, err = strconv.ParseBool(v); err != nil {
			return errors.New("must be true or false")
		}
		return nil
	}
}

// allOfThem stands for all names in a list.
const allOfThem = "all"

// chosen returns the items that a comma-separated list of names asks for, in the
// order of the list.
func chosen[T any](list string, all []T, is func(T, string) bool, names []string) ([]T, error) {
	var items []T
	var taken []int
	if list == allOfThem {
		return all, nil
	}
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
			return nil, fmt.Errorf("%q is unknown; allowed are all, %s", name, strings.Join(names, ", "))
		}
	}
	return items, nil
}

func workloadNames(all []*workload.Workload) []string {
	var names []string
	for _, w := range all {
		names = append(names, w.Name)
	}
	return names
}

func modelNames() []string { return namesOf(model.All) }

func namesOf(models []*model.Model) []string {
	var names []string
	for _, m := range models {
		names = append(names, m.Name)
	}
	return names
}

func flagNames(f *flag.FlagSet) (names []string) {
	f.VisitAll(func(f *flag.Flag) { names = append(names, "-"+f.Name) })
	return names
}

func usage(w io.Writer) {
	fmt.Fprint(w, `Compare runs the same shared objects under several models of concurrency, and
says for each workload what happened and why: a sentence, and how fast each model
was, how many threads it blocked, how many bodies ran at once, how long the
slowest calls took, and how fair it was. Results are checked.

Usage: go run ./examples/compare [flags]

`)
	s := defaults()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "Flags:")
	var names, file string
	s.flags(&names, &file).VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		fmt.Fprintf(t, "  -%s %s\t%s\n", f.Name, value, text)
	})
	fmt.Fprintln(t, "\nWorkloads (readers stands for all that begin so):")
	for _, w := range workload.Builtin {
		fmt.Fprintf(t, "  %s\t%s\n", w.Name, w.About)
	}
	for _, f := range model.Families {
		fmt.Fprintf(t, "\n%s: %s:\n", f.Name, f.About)
		for _, m := range model.All {
			if m.Family == f.Name {
				fmt.Fprintf(t, "  %s\t%s\n", m.Name, m.About)
			}
		}
	}
	t.Flush()
	report.Glossary(w)
	fmt.Fprint(w, `
Exit codes: 0 if all is well, 1 if the results of a run were wrong, 2 if the
arguments or a workload file were. An interrupt (Ctrl-C) ends early; what was
measured until then is printed, and written to the page.
`)
}
