package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"time"
)

// report is the result of the program. Its names in JSON are stable.
type report struct {
	Go          string           `json:"go"`
	GOMAXPROCS  int              `json:"gomaxprocs"`
	Cores       float64          `json:"cores"` // that two spinning goroutines got; 0 if not known
	Callers     int              `json:"callers"`
	Seconds     float64          `json:"seconds_per_run"`
	Turns       int              `json:"turns"`
	OK          bool             `json:"ok"`
	Interrupted bool             `json:"interrupted"`
	Workloads   []workloadReport `json:"workloads"`
}

// workloadReport is the table of a workload.
type workloadReport struct {
	Workload   string  `json:"workload"`
	About      string  `json:"about"`
	Operations string  `json:"operations"`
	Every      int     `json:"latency_of_every"` // how-many-th call
	Cores      float64 `json:"cores"`            // as above, just before
	Runs       []row   `json:"runs"`
}

// row is the result of a model in a workload. Figures that could not be measured
// are 0.
type row struct {
	Model     model   `json:"model"`
	Ops       int64   `json:"ops"`
	Seconds   float64 `json:"seconds"`
	OpsPerSec float64 `json:"ops_per_second"`
	P50       int64   `json:"p50_ns"`
	P99       int64   `json:"p99_ns"`
	Allocs    float64 `json:"allocs_per_op"`
	CPU       float64 `json:"cpu_ns_per_op"`
	Ratio     float64 `json:"ratio"` // of the throughput to that of the first row
	OK        bool    `json:"ok"`
	Problem   string  `json:"problem,omitempty"`
}

// turns is in how many stretches each model is measured. The models take turns,
// so that a disturbance hits all of them alike.
const turns = 3

// run compares, prints, and returns the exit code.
func (s settings) run(ctx context.Context, stdout, stderr io.Writer) int {
	perMicrosecond() // while nothing else runs
	r := &report{
		Go: runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0), Cores: measureCores(200 * time.Millisecond),
		Callers: s.callers, Seconds: s.duration.Seconds(), Turns: turns, OK: true, Workloads: []workloadReport{},
	}
	if !s.json {
		printHeader(stdout, r, s)
	}
	p := newProgress(stderr)
	for i := range s.workloads {
		if ctx.Err() != nil {
			break
		}
		w := s.compare(ctx, &s.workloads[i], p)
		if len(w.Runs) == 0 {
			continue
		}
		r.Workloads = append(r.Workloads, w)
		for _, row := range w.Runs {
			r.OK = r.OK && row.OK
		}
		if !s.json {
			printTable(stdout, w)
		}
	}
	r.Interrupted = ctx.Err() != nil
	switch {
	case s.json:
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		e.Encode(r)
	case r.Interrupted:
		fmt.Fprintln(stdout, "\nInterrupted: this is what was measured until then.")
	}
	if !r.OK {
		return exitWrong
	}
	return exitOK
}

// compare measures a workload under all models.
func (s settings) compare(ctx context.Context, w *workload, p *progress) workloadReport {
	defer p.clear()
	result := workloadReport{
		Workload: w.name, About: w.about, Operations: w.operations, Every: w.every,
		Cores: measureCores(50 * time.Millisecond),
	}
	tallies := make([]*tally, len(s.models))
	for i, m := range s.models {
		tallies[i] = newTally(m)
	}
	for turn := range turns {
		for _, t := range tallies {
			if ctx.Err() != nil {
				break
			}
			p.show(w.name, turn, t.model)
			t.measure(ctx, w, s.callers, max(1, s.duration/turns), s.patience)
		}
	}
	for _, t := range tallies {
		if t.wall > 0 || t.problem != nil {
			result.Runs = append(result.Runs, t.row())
		}
	}
	for i := range result.Runs {
		if base := result.Runs[0].OpsPerSec; base > 0 {
			result.Runs[i].Ratio = result.Runs[i].OpsPerSec / base
		}
	}
	return result
}

func (t *tally) row() row {
	r := row{Model: t.model, Ops: t.ops, Seconds: t.wall.Seconds(), OK: t.problem == nil}
	if t.problem != nil {
		r.Problem = t.problem.Error()
	}
	if t.ops > 0 {
		r.OpsPerSec = float64(t.ops) / t.wall.Seconds()
		r.Allocs = float64(t.mallocs) / float64(t.ops)
		r.CPU = float64(t.cpu) / float64(t.ops)
		r.P50, r.P99 = t.latency.ValueAtPercentile(50), t.latency.ValueAtPercentile(99)
	}
	return r
}
