package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluice-go/sluice/examples/compare/internal/model"
)

// column is a figure of a row, in the tables of the terminal and the page alike.
type column struct {
	Title string
	About string
	cell  func(Row) string
}

var columns = []column{
	{"ops/s", "operations per second", func(r Row) string { return grouped(int64(r.OpsPerSec)) }},
	{"ratio", "of that to the first row's", func(r Row) string { return ratioText(r.Ratio) }},
	{"p50 µs", "the latency that half of the calls stayed below", func(r Row) string { return microseconds(r.P50) }},
	{"p99 µs", "the same for 99 of 100", func(r Row) string { return microseconds(r.P99) }},
	{"p99.9 µs", "the same for 999 of 1000", func(r Row) string { return microseconds(r.P999) }},
	{"CPU µs/op", "CPU time of the whole process, by operation", func(r Row) string { return threeDigits(r.CPU / 1e3) }},
	{"allocs/op", "objects allocated, by operation", func(r Row) string { return fmt.Sprintf("%.2f", r.Allocs) }},
	{"fair", "Jain's index over the callers: 1 if all ended equally many operations, 1/n if one of n did all", func(r Row) string { return fmt.Sprintf("%.3f", r.Fairness) }},
	{"threads", "the most at once that ran a body, were held by a request that waited, or belonged to an object", func(r Row) string { return strconv.Itoa(r.Threads.Used) }},
	{"blocked", "the most of them at once that were held by a request that waited", func(r Row) string { return strconv.Itoa(r.Threads.Blocked) }},
	{"at once", "the most bodies that ran at once", func(r Row) string { return strconv.Itoa(r.Threads.Running) }},
	{"made", "the most goroutines there were at once besides those of the callers", func(r Row) string { return strconv.Itoa(r.Threads.Goroutines) }},
}

// cells returns the figures of the row, between its name and its verdict.
func (r Row) cells() []string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = "–"
		if r.Ops > 0 {
			cells[i] = c.cell(r)
		}
	}
	return cells
}

// verdict says on one line whether the results of the row were right.
func (r Row) verdict() string {
	switch {
	case r.Cannot != "":
		return "cannot: " + r.Cannot
	case r.OK && r.Ops == 0:
		return "no call ended in time"
	case r.OK:
		return "ok"
	}
	line, _, _ := strings.Cut(r.Problem, "\n")
	return "WRONG: " + line
}

// Header writes what is common to all tables, to whom the models belong included.
func (r *Report) Header(w io.Writer, models []*model.Model) {
	fmt.Fprintf(w, "%s, GOMAXPROCS %d; %s.\n", r.Go, r.GOMAXPROCS, r.coresText())
	fmt.Fprintf(w, "Every model runs each workload for %v, in %d turns with the others.\n\n", r.duration(), r.Turns)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range model.Families {
		if slices.ContainsFunc(models, func(m *model.Model) bool { return m.Family == f.Name }) {
			fmt.Fprintf(t, "%s: %s\n", f.Name, f.About)
		}
		for _, m := range models {
			if m.Family == f.Name {
				fmt.Fprintf(t, "  %s\t%s\n", m.Name, m.About)
			}
		}
	}
	t.Flush()
}

// Glossary explains the columns.
func Glossary(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nFigures (of the matrix, and of the tables with -v):")
	for _, c := range glossary() {
		fmt.Fprintf(t, "  %s\t%s\n", c.Title, c.About)
	}
	t.Flush()
	fmt.Fprintf(w, "%s\n", threadsText)
}

// threadsText says how the figures of threads are taken.
const threadsText = `The figures of threads are from a short run of its own, in which each request notes when
it arrives, and each body when and on which goroutine it begins and ends. A
request holds a thread from its arrival under the thread-per-request models (as
far as their pool has one), and from its start under the others. But where its
body ran on its own caller's goroutine, that was parked for it from its arrival,
and counts as a blocked thread whatever the model; it would have waited for the
answer in any case.`

func (r *Report) duration() time.Duration {
	return time.Duration(r.Seconds * float64(time.Second)).Round(time.Microsecond)
}

// coresText says how many cores there really are.
func (r *Report) coresText() string {
	if r.Cores == 0 {
		return "how many cores that gives is not known on this system"
	}
	text := fmt.Sprintf("two spinning goroutines got %.2f cores", r.Cores)
	if r.Cores < 0.9*float64(min(2, r.GOMAXPROCS)) {
		text += ": something else is using the machine, and contention will look cheaper than it is"
	}
	return text
}

// Table writes the table of a workload.
func (w *Workload) Table(to io.Writer) {
	fmt.Fprintf(to, "\n%s: %s\n%s\n%s.\n", w.Name, w.Sentence(), w.About, w.Details())
	name := len("model")
	for _, row := range w.Runs {
		name = max(name, len(row.Model))
	}
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	var titles []string
	for _, c := range columns {
		titles = append(titles, c.Title)
	}
	fmt.Fprintf(t, "  %-*s\t%s\t  check\n", name, "model", strings.Join(titles, "\t"))
	for _, row := range w.Runs {
		fmt.Fprintf(t, "  %-*s\t%s\t  %s\n", name, row.Model, strings.Join(row.cells(), "\t"), row.verdict())
	}
	t.Flush()
}

// Details says how the objects are used.
func (w *Workload) Details() string {
	text := fmt.Sprintf("%s of %s: %s. Requests arrive %s; latencies are those of %s",
		counted(w.Callers, "caller"), counted(w.Objects, "object"), w.Mix, w.Arrival, everyText(w.Every))
	if w.Cores > 0 {
		text += fmt.Sprintf("; just before, two spinning goroutines got %.2f cores", w.Cores)
	}
	return text
}

// Sweep writes the throughputs over callers and over shares of reads, if they were
// measured.
func (w *Workload) Sweep(to io.Writer) {
	sweep(to, w.Name+": ops/s by number of callers", w.ByCallers, func(x float64) string { return fmt.Sprintf("%.0f", x) })
	if !w.Reads && len(w.ByCallers) > 0 {
		fmt.Fprintln(to, "\n  There is no share of reads to vary.")
	}
	sweep(to, w.Name+": ops/s by share of reads", w.ByReads, func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) })
}

func sweep(to io.Writer, title string, points []Point, text func(float64) string) {
	if len(points) == 0 {
		return
	}
	var xs []float64
	var models []string
	unsteady := false
	cells := map[string]map[float64]string{}
	for _, p := range points {
		if !slices.Contains(xs, p.X) {
			xs = append(xs, p.X)
		}
		if cells[p.Model] == nil {
			models = append(models, p.Model)
			cells[p.Model] = map[float64]string{}
		}
		cells[p.Model][p.X] = p.cells()[0]
		if p.Ops > 0 && !p.Steady {
			cells[p.Model][p.X] += "~"
			unsteady = true
		}
		if !p.OK {
			cells[p.Model][p.X] = "WRONG"
		}
	}
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(to, "\n  %s\n", title)
	fmt.Fprintf(t, "  %-15s\t", "model")
	for _, x := range xs {
		fmt.Fprintf(t, "%s\t", text(x))
	}
	fmt.Fprintln(t)
	for _, m := range models {
		fmt.Fprintf(t, "  %-15s\t", m)
		for _, x := range xs {
			fmt.Fprintf(t, "%s\t", cells[m][x])
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	if unsteady {
		fmt.Fprintln(to, "\n  ~ not steady: the last windows in which it was measured differ by more than a tenth")
	}
}

// ratioText writes a ratio, 0 of which means that there is nothing to compare with.
func ratioText(ratio float64) string {
	if ratio == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", ratio)
}

func microseconds(ns int64) string { return threeDigits(float64(ns) / 1e3) }

// threeDigits writes a number with as many digits after the point as it takes to have
// three.
func threeDigits(x float64) string {
	switch {
	case x >= 100:
		return grouped(int64(x + 0.5))
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func everyText(n int) string {
	if n == 1 {
		return "all calls"
	}
	return fmt.Sprintf("every %dth call", n)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// grouped writes a number with its thousands apart.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
