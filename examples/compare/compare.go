package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/sluice-go/sluice/examples/compare/internal/measure"
	"github.com/sluice-go/sluice/examples/compare/internal/object"
	"github.com/sluice-go/sluice/examples/compare/internal/report"
	"github.com/sluice-go/sluice/examples/compare/internal/workload"
	"github.com/sluice-go/sluice/internal/picture"
)

// turns is in how many stretches each model is measured. The models take turns,
// so that a disturbance hits all of them alike.
const turns = 3

// Of what a sweep is made: numbers of callers, and shares of reads; and which part
// of the duration a window has in which each point of it is measured.
var (
	sweepCallers = []int{1, 2, 4, 8, 16, 32, 64}
	sweepReads   = []float64{0, .25, .5, .75, 1}
)

const windowPart = 20

// run compares, reports, and returns the exit code.
func (s settings) run(ctx context.Context, stdout, stderr io.Writer) int {
	object.Calibrate() // while nothing else runs
	r := &report.Report{
		Go: runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0), Cores: measure.Cores(200 * time.Millisecond),
		Seconds: s.duration.Seconds(), Turns: turns, OK: true, Workloads: []*report.Workload{},
	}
	text := stdout
	if s.json {
		text = io.Discard
	}
	if s.verbose {
		r.Header(text, s.models)
	}
	p := newProgress(stderr, s.steps())
	for _, w := range s.workloads {
		if ctx.Err() != nil {
			break
		}
		result := s.compare(ctx, w, p)
		if len(result.Runs) == 0 {
			continue
		}
		r.Add(result)
		if s.verbose {
			p.clear()
			result.Table(text)
		}
		if s.verbose || s.sweep && s.html == "" {
			p.clear()
			result.Sweep(text)
		}
	}
	p.clear()
	if s.verbose || s.sweep && s.html == "" {
		fmt.Fprintln(text)
	}
	r.Matrix(text, colored(stdout))
	r.Interrupted = ctx.Err() != nil
	if r.Interrupted {
		fmt.Fprintln(text, "\nInterrupted: this is what was measured until then.")
	}
	return s.finish(r, stdout, stderr)
}

// finish writes what is not text, and returns the exit code.
func (s settings) finish(r *report.Report, stdout, stderr io.Writer) int {
	if s.json {
		r.JSON(stdout)
	}
	for _, f := range []struct {
		name, what string
		write      func(io.Writer) error
	}{
		{s.html, "the page", r.HTML},
		{s.perfetto, "the trace, for ui.perfetto.dev,", func(w io.Writer) error { return picture.Trace(w, r.Panels()) }},
	} {
		if f.name == "" {
			continue
		}
		if err := writeFile(f.name, f.write); err != nil {
			fmt.Fprintln(stderr, "compare:", err)
			return exitUsage
		}
		fmt.Fprintf(stderr, "compare: wrote %s to %s\n", f.what, f.name)
	}
	if !r.OK {
		return exitWrong
	}
	return exitOK
}

// writeFile writes a file.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// steps returns how many runs there will be.
func (s settings) steps() int {
	n := 0
	for _, w := range s.workloads {
		n += turns + 1
		if s.html != "" || s.perfetto != "" {
			n++
		}
		if !s.sweep {
			continue
		}
		n += len(sweepCallers)
		if _, ok := w.ReadShare(); ok {
			n += len(sweepReads)
		}
	}
	return n * len(s.models)
}

// callersOf returns how many callers a workload has.
func (s settings) callersOf(w *workload.Workload) int {
	if w.Callers > 0 {
		return w.Callers
	}
	return s.callers
}

// compare measures a workload under all models, until ctx ends.
func (s settings) compare(ctx context.Context, w *workload.Workload, p *progress) *report.Workload {
	result := report.NewWorkload(w, s.callersOf(w), measure.Cores(50*time.Millisecond))
	tallies := s.tallies(w, s.callersOf(w))
	s.each(ctx, tallies, turns, p, func(t *measure.Tally) { t.Measure(ctx, measure.Stretch(max(1, s.duration/turns))) })
	s.each(ctx, tallies, 1, p, func(t *measure.Tally) {
		// On a machine that has other things to do, no body may have run yet.
		for i := 0; i < 3 && t.Threads.Running == 0 && t.Problem == nil; i++ {
			t.Trace(ctx, traceTime(w))
		}
	})
	if s.html != "" || s.perfetto != "" {
		s.each(ctx, tallies, 1, p, func(t *measure.Tally) { t.Record(ctx, recordParts*traceTime(w)) })
	}
	for _, t := range tallies {
		if t.Wall > 0 || t.Problem != nil {
			result.Add(t)
		}
	}
	if s.sweep {
		s.overCallers(ctx, w, p, result)
		s.overReads(ctx, w, p, result)
	}
	return result
}

// tallies returns an empty tally for each model.
func (s settings) tallies(w *workload.Workload, callers int) []*measure.Tally {
	var all []*measure.Tally
	for _, m := range s.models {
		all = append(all, measure.New(w, m, callers, s.patience))
	}
	return all
}

// each does something for each tally in turn, a number of times, unless ctx ends.
func (s settings) each(ctx context.Context, tallies []*measure.Tally, times int, p *progress, do func(*measure.Tally)) {
	for range times {
		for _, t := range tallies {
			if ctx.Err() != nil {
				return
			}
			p.step(t.Workload.Name, t.Model.Name)
			do(t)
		}
	}
}

// recordParts is how many times as long as it is traced a workload is recorded.
const recordParts = 4

// traceTime returns how long a workload is traced: some bodies' length.
func traceTime(w *workload.Workload) time.Duration {
	var longest time.Duration
	for _, work := range w.Work {
		longest = max(longest, work.CPU+work.Wait)
	}
	return min(max(40*time.Millisecond, 20*longest), 2*time.Second)
}

func (s settings) overCallers(ctx context.Context, w *workload.Workload, p *progress, result *report.Workload) {
	for _, n := range sweepCallers {
		result.ByCallers = append(result.ByCallers, s.points(ctx, w, n, float64(n), p)...)
	}
}

func (s settings) overReads(ctx context.Context, w *workload.Workload, p *progress, result *report.Workload) {
	if !result.Reads {
		return
	}
	for _, share := range sweepReads {
		result.ByReads = append(result.ByReads, s.points(ctx, w.WithReads(share), s.callersOf(w), share, p)...)
	}
}

// tracePart is which part of a trace's time that of a point of a sweep has.
const tracePart = 5

// points measures all models at x, each until its throughput is steady.
func (s settings) points(ctx context.Context, w *workload.Workload, callers int, x float64, p *progress) []report.Point {
	var points []report.Point
	s.each(ctx, s.tallies(w, callers), 1, p, func(t *measure.Tally) {
		t.Measure(ctx, measure.Steady(max(1, s.duration/windowPart)))
		t.Trace(ctx, traceTime(w)/tracePart)
		points = append(points, report.Point{X: x, Row: report.NewRow(t)})
	})
	return points
}
