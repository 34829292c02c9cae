package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/examples/compare/internal/model"
)

// Sentence says what happened in the workload and why, by the figures: of each family, by its
// fastest model.
func (w *Workload) Sentence() string {
	rows := w.speakers()
	if len(rows) == 0 {
		return "nothing was measured that is right."
	}
	var clauses []string
	for _, r := range rows {
		clauses = append(clauses, w.clause(r))
	}
	return w.premise(rows) + strings.Join(clauses, "; ") + "."
}

// brief is how long a body takes at most for the cost of a call to lie in handing it over.
const brief = 5 * time.Microsecond

// alike is how far the throughputs of models are apart, in parts of the lowest, that are as
// fast as each other.
const alike = .1

// premise says what is common to all models.
func (w *Workload) premise(rows []Row) string {
	low, high := rows[0].OpsPerSec, rows[0].OpsPerSec
	for _, r := range rows {
		low, high = min(low, r.OpsPerSec), max(high, r.OpsPerSec)
	}
	switch {
	case w.body == 0:
		return "bodies take no time, so handing over is the cost, in CPU a call: "
	case w.body <= brief:
		return fmt.Sprintf("bodies take %v, so handing over is most of the cost, in CPU a call: ", w.body)
	case len(rows) > 1 && high <= (1+alike)*low:
		return fmt.Sprintf("all within %.0f %%: ", 100*alike)
	}
	return ""
}

// speakers returns of each family the row with the highest throughput: first the one that is
// clearly slower than all others, if there is one, then in the order of the table.
func (w *Workload) speakers() []Row {
	var rows []Row
	for _, r := range w.Runs {
		if !r.OK || r.Ops == 0 {
			continue
		}
		known := false
		for i := range rows {
			if rows[i].Family == r.Family {
				known = true
				if r.OpsPerSec > rows[i].OpsPerSec {
					rows[i] = r
				}
			}
		}
		if !known {
			rows = append(rows, r)
		}
	}
	for i, r := range rows {
		if slowest(r, rows) {
			copy(rows[1:], rows[:i])
			rows[0] = r
			break
		}
	}
	return rows
}

// clearly is how much of another throughput one has that is clearly lower.
const clearly = .8

func slowest(r Row, rows []Row) bool {
	for _, other := range rows {
		if other.Model != r.Model && r.OpsPerSec > clearly*other.OpsPerSec {
			return false
		}
	}
	return len(rows) > 1
}

// clause says what one model did.
func (w *Workload) clause(r Row) string {
	parts, and := []string{"ran " + bodies(r.Threads.Running)}, " and "
	if w.body <= brief {
		parts, and = []string{threeDigits(r.CPU/1e3) + noBreak + "µs"}, ", "
	}
	switch n := r.Threads.Blocked; {
	case n > 0:
		parts = append(parts, "blocked "+counted(n, "thread"))
	case r.Family != model.PerObject:
		parts = append(parts, "blocked none")
	case w.Objects > 1:
		parts = append(parts, "kept "+counted(r.Threads.Used, "thread"))
	}
	text := w.label(r) + " " + strings.Join(parts, and)
	if r.Ratio > 0 && r.Model != w.Runs[0].Model {
		text += fmt.Sprintf(", %s", times(r.Ratio))
	}
	return text
}

func bodies(n int) string {
	if n == 1 {
		return "one body at a time"
	}
	return fmt.Sprintf("%d at once", n)
}

// label returns the name of a row's family, if no other model of it is there, else that of its
// model.
func (w *Workload) label(r Row) string {
	for _, other := range w.Runs {
		if other.Family == r.Family && other.Model != r.Model {
			return r.Model
		}
	}
	if r.Family == model.Synchronizer {
		return "the Synchronizer"
	}
	return string(r.Family)
}

// noBreak is a space at which no line ends.
const noBreak = "\u00a0"

func times(ratio float64) string { return fmt.Sprintf("%.2f%s×", ratio, noBreak) }
