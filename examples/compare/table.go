package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"
)

func printHeader(w io.Writer, r *report, s settings) {
	fmt.Fprintf(w, "%s, GOMAXPROCS %d; %s.\n", r.Go, r.GOMAXPROCS, coresText(r))
	fmt.Fprintf(w, "%d callers; every model runs each workload for %v, in %d turns with the others.\n", r.Callers, s.duration, r.Turns)
	fmt.Fprint(w, "Latencies include a reading of the clock, CPU times everything the process does.\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, m := range models {
		fmt.Fprintf(t, "  %s\t%s\n", m.name, m.about)
	}
	t.Flush()
}

// coresText says how many cores there really are.
func coresText(r *report) string {
	if r.Cores == 0 {
		return "how many cores that gives is not known on this system"
	}
	text := fmt.Sprintf("two spinning goroutines got %.2f cores", r.Cores)
	if r.Cores < 0.9*float64(min(2, r.GOMAXPROCS)) {
		text += ": something else is using the machine, and contention will look cheaper than it is"
	}
	return text
}

func printTable(w io.Writer, r workloadReport) {
	fmt.Fprintf(w, "\n%s: %s\n%s.\n", r.Workload, headline(r.Runs), capitalized(r.About))
	name := len("model")
	for _, row := range r.Runs {
		name = max(name, len(row.Model))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "  %-*s\tops/s\tp50 µs\tp99 µs\tallocs/op\tCPU µs/op\tratio\t  check\n", name, "model")
	for _, row := range r.Runs {
		fmt.Fprintf(t, "  %-*s\t%s\t  %s\n", name, row.Model, strings.Join(row.figures(), "\t"), row.verdict())
	}
	t.Flush()
	fmt.Fprintf(w, "  Operations are %s, latencies those of %s", r.Operations, everyText(r.Every))
	if r.Cores > 0 {
		fmt.Fprintf(w, "; there were %.2f cores just before", r.Cores)
	}
	fmt.Fprintln(w, ".")
}

// headline says which model won.
func headline(rows []row) string {
	best := -1
	for i, r := range rows {
		if r.OK && r.Ops > 0 && (best < 0 || r.OpsPerSec > rows[best].OpsPerSec) {
			best = i
		}
	}
	switch {
	case best < 0:
		return "nothing was measured that is right."
	case best == 0 || rows[best].Ratio == 0:
		return fmt.Sprintf("%s has the highest throughput.", rows[best].Model)
	}
	return fmt.Sprintf("%s has the highest throughput, %.2f × that of %s.", rows[best].Model, rows[best].Ratio, rows[0].Model)
}

// figures returns the cells of the row between its name and its verdict.
func (r row) figures() []string {
	if r.Ops == 0 {
		return []string{"–", "–", "–", "–", "–", "–"}
	}
	return []string{
		grouped(int64(r.OpsPerSec)), fmt.Sprintf("%.2f", float64(r.P50)/1e3), fmt.Sprintf("%.2f", float64(r.P99)/1e3),
		fmt.Sprintf("%.2f", r.Allocs), fmt.Sprintf("%.3f", r.CPU/1e3), ratioText(r.Ratio),
	}
}

// verdict says on one line whether the results of the row were right.
func (r row) verdict() string {
	switch {
	case r.OK && r.Ops == 0:
		return "no call ended in time"
	case r.OK:
		return "ok"
	}
	line, _, _ := strings.Cut(r.Problem, "\n")
	return "WRONG: " + line
}

// ratioText writes a ratio, 0 of which means that there is nothing to compare with.
func ratioText(ratio float64) string {
	if ratio == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f", ratio)
}

func everyText(n int) string {
	if n == 1 {
		return "every call"
	}
	return fmt.Sprintf("every %dth call", n)
}

func capitalized(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// grouped writes a number with its thousands apart.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// progress tells the user what is going on: on a terminal, in a line that is
// overwritten and goes away; else by one line per workload.
type progress struct {
	w        io.Writer
	terminal bool
	last     string
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	return &progress{w: w, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

func (p *progress) show(workload string, turn int, m model) {
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s, turn %d of %d: %s", workload, turn+1, turns, m)
	} else if workload != p.last {
		fmt.Fprintf(p.w, "compare: measuring %s\n", workload)
	}
	p.last = workload
}

func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
