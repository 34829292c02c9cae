// Package report says what was measured: on the terminal, as JSON, and as a page of
// HTML.
package report

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/sluice-go/sluice/examples/compare/internal/measure"
	"github.com/sluice-go/sluice/examples/compare/internal/model"
	"github.com/sluice-go/sluice/examples/compare/internal/trace"
	"github.com/sluice-go/sluice/examples/compare/internal/workload"
	"github.com/sluice-go/sluice/internal/picture"
)

// Report is the result of the program. Its names in JSON are stable.
type Report struct {
	Go          string      `json:"go"`
	GOMAXPROCS  int         `json:"gomaxprocs"`
	Cores       float64     `json:"cores"` // that two spinning goroutines got; 0 if not known
	Seconds     float64     `json:"seconds_per_run"`
	Turns       int         `json:"turns"`
	OK          bool        `json:"ok"`
	Interrupted bool        `json:"interrupted"`
	Workloads   []*Workload `json:"workloads"`
}

// Workload is what was measured of a workload.
type Workload struct {
	Name      string   `json:"workload"`
	About     string   `json:"about"`
	Mix       string   `json:"mix"`
	Callers   int      `json:"callers"`
	Objects   int      `json:"objects"`
	Arrival   string   `json:"arrival"`
	Every     int      `json:"latency_of_every"` // how-many-th call
	Cores     float64  `json:"cores"`            // as above, just before
	Runs      []Row    `json:"runs"`
	ByCallers []Point  `json:"by_callers,omitempty"`
	ByReads   []Point  `json:"by_read_share,omitempty"`
	Reads     bool     `json:"has_read_share"`
	Ops       []string `json:"operations"`

	body     time.Duration // that a body takes on average
	recorded []recorded    // until the workload is added to a report
	panels   []*picture.Panel
}

// recorded is what happened at the objects of a model.
type recorded struct {
	model *model.Model
	panel *picture.Panel
}

// Row is the result of a model in a workload. Figures that could not be measured are
// 0.
type Row struct {
	Model     string        `json:"model"`
	Family    model.Family  `json:"family"`
	Ops       int64         `json:"ops"`
	Seconds   float64       `json:"seconds"`
	OpsPerSec float64       `json:"ops_per_second"`
	Low       float64       `json:"ops_per_second_low"`  // of the windows in which it was measured
	High      float64       `json:"ops_per_second_high"` // likewise
	Steady    bool          `json:"steady"`              // the last windows differ by a tenth at most
	Ratio     float64       `json:"ratio"`               // of the throughput to that of the first row
	P50       int64         `json:"p50_ns"`
	P99       int64         `json:"p99_ns"`
	P999      int64         `json:"p999_ns"`
	CPU       float64       `json:"cpu_ns_per_op"`
	Allocs    float64       `json:"allocs_per_op"`
	Fairness  float64       `json:"fairness"` // Jain's index over the callers
	Threads   trace.Threads `json:"threads"`
	OK        bool          `json:"ok"`
	Problem   string        `json:"problem,omitempty"`
	Cannot    string        `json:"cannot,omitempty"` // why the model cannot run the workload

	quantiles []quantile
}

// quantile is a latency, and the share of calls that were slower.
type quantile struct {
	slower float64
	ns     int64
}

// slower are the shares of calls of which latencies are kept.
var slower = []float64{1, .9, .8, .7, .6, .5, .4, .3, .2, .15, .1, .07, .05, .03, .02, .01, .007, .005, .003, .002, .001}

// Point is a row at some number of callers, or some share of reads.
type Point struct {
	X float64 `json:"x"`
	Row
}

// NewRow returns the row of a tally.
func NewRow(t *measure.Tally) Row {
	r := Row{
		Model: t.Model.Name, Family: t.Model.Family, Ops: t.Ops, Seconds: t.Wall.Seconds(),
		Threads: t.Threads, Fairness: t.Fairness(), OK: t.Problem == nil,
	}
	var cannot *model.CannotError
	switch {
	case errors.As(t.Problem, &cannot):
		r.OK, r.Cannot = true, cannot.Reason
	case t.Problem != nil:
		r.Problem = t.Problem.Error()
	}
	if t.Ops > 0 {
		r.OpsPerSec = float64(t.Ops) / t.Wall.Seconds()
		r.Low, r.High, r.Steady = slices.Min(t.Windows), slices.Max(t.Windows), t.Steady()
		r.Allocs = float64(t.Mallocs) / float64(t.Ops)
		r.CPU = float64(t.CPU) / float64(t.Ops)
		r.P50, r.P99 = t.Latency.ValueAtPercentile(50), t.Latency.ValueAtPercentile(99)
		r.P999 = t.Latency.ValueAtPercentile(99.9)
		for _, share := range slower {
			if share*float64(t.Latency.TotalCount()) >= 1 {
				r.quantiles = append(r.quantiles, quantile{share, t.Latency.ValueAtPercentile(100 * (1 - share))})
			}
		}
	}
	return r
}

// Add adds the tally of a model at the workload's own number of callers and shares.
func (w *Workload) Add(t *measure.Tally) {
	r := NewRow(t)
	w.Runs = append(w.Runs, r)
	if base := w.Runs[0].OpsPerSec; base > 0 {
		w.Runs[len(w.Runs)-1].Ratio = r.OpsPerSec / base
	}
	if t.Panel != nil {
		w.recorded = append(w.recorded, recorded{t.Model, t.Panel})
	}
}

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// NewWorkload returns the result of a workload, to which tallies are to be added.
func NewWorkload(w *workload.Workload, callers int, cores float64) *Workload {
	r := &Workload{
		Name: w.Name, About: w.About, Mix: w.Mix(), Callers: callers, Objects: w.Objects, Arrival: w.Arrival.String(),
		Every: measure.Every(w), Cores: cores, body: w.Body(),
	}
	_, r.Reads = w.ReadShare()
	for _, op := range w.Subject.Operations {
		r.Ops = append(r.Ops, op.Name)
	}
	return r
}

// Add adds the result of a workload.
func (r *Report) Add(w *Workload) {
	w.panels, w.recorded = w.timelines(), nil
	r.Workloads = append(r.Workloads, w)
	for _, rows := range [][]Row{w.Runs, rowsOf(w.ByCallers), rowsOf(w.ByReads)} {
		for _, row := range rows {
			r.OK = r.OK && row.OK
		}
	}
}

func rowsOf(points []Point) (rows []Row) {
	for _, p := range points {
		rows = append(rows, p.Row)
	}
	return rows
}
