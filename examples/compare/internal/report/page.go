package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/examples/compare/internal/model"
	"github.com/sluice-go/sluice/internal/picture"
)

// HTML writes the report as a page that needs nothing but itself.
func (r *Report) HTML(w io.Writer) error {
	_, err := r.Page().WriteTo(w)
	return err
}

// Panels returns the timelines, named after workload and model.
func (r *Report) Panels() []*picture.Panel {
	var all []*picture.Panel
	for _, w := range r.Workloads {
		for _, p := range w.panels {
			named := *p
			named.Name = w.Name + ", " + p.Name
			all = append(all, &named)
		}
	}
	return all
}

// Page returns the page.
func (r *Report) Page() *picture.Page {
	p := &picture.Page{
		Title: "Models of concurrency, compared",
		Lead:  r.Result(),
		About: []string{
			fmt.Sprintf("%s, GOMAXPROCS %d; %s. Every model ran each workload for %v, in %d turns with the others. Points of curves are measured in windows until the throughput is steady. Every run kept books, in which a lost, doubled or torn update shows.", r.Go, r.GOMAXPROCS, r.coresText(), r.duration(), r.Turns),
			"The timelines are from a short run of their own, in which each object tells what happens and, whenever it has settled, why its requests wait (as Object.Explain does). That takes some microseconds of each request, so look at their shape, and at the tables for times. All timelines of a workload last equally long.",
			strings.Join(strings.Fields(threadsText), " "),
		},
	}
	if r.Interrupted {
		p.Notes = append(p.Notes, "The run was interrupted: this is what was measured until then.")
	}
	if !r.OK {
		p.Wrong = append(p.Wrong, "Results of some runs were wrong: see the last column of the tables.")
	}
	for _, c := range glossary() {
		p.Footer = append(p.Footer, picture.Entry{Term: c.Title, About: c.About})
	}
	for _, w := range r.Workloads {
		p.Sections = append(p.Sections, w.section())
	}
	if len(r.Workloads) > 0 {
		p.Result = r.heat()
	}
	return p
}

// Result says in a sentence what came out over all workloads, of each family by its fastest model.
func (r *Report) Result() string {
	type score struct {
		name          string
		first, of     int
		blocked, once int
	}
	var scores []*score
	for _, w := range r.Workloads {
		best := w.most(func(r Row) float64 { return r.OpsPerSec })
		for _, row := range w.speakers() {
			name := string(row.Family)
			if row.Family == model.Synchronizer {
				name = "the Synchronizer"
			}
			i := slices.IndexFunc(scores, func(s *score) bool { return s.name == name })
			if i < 0 {
				i = len(scores)
				scores = append(scores, &score{name: name})
			}
			s := scores[i]
			s.of++
			if row.OpsPerSec*(1+alike) >= best {
				s.first++
			}
			s.blocked, s.once = max(s.blocked, row.Threads.Blocked), max(s.once, row.Threads.Running)
		}
	}
	slices.SortStableFunc(scores, func(a, b *score) int { return b.first - a.first })
	var parts []string
	for _, s := range scores {
		text := fmt.Sprintf("%s was the fastest, or within %.0f %% of it, in %d of %s", s.name, 100*alike, s.first, counted(s.of, "workload"))
		if len(parts) > 0 {
			text = fmt.Sprintf("%s in %d", s.name, s.first)
		}
		if s.blocked > 0 {
			text += fmt.Sprintf(", blocking up to %s", counted(s.blocked, "thread"))
		} else {
			text += ", blocking no thread"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "Nothing was measured that is right."
	}
	text := strings.Join(parts, "; ") + "."
	return strings.ToUpper(text[:1]) + text[1:]
}

// family returns the number of a family, which its hue goes by.
func family(f model.Family) int {
	for i, known := range model.Families {
		if known.Name == f {
			return i
		}
	}
	return len(model.Families)
}

// heat returns the result of all workloads.
func (r *Report) heat() *picture.Matrix {
	m := &picture.Matrix{}
	var models []string
	for _, w := range r.Workloads {
		m.Rows = append(m.Rows, w.Name)
		for _, row := range w.Runs {
			if !slices.Contains(models, row.Model) {
				models = append(models, row.Model)
				m.Columns = append(m.Columns, strings.TrimPrefix(w.label(row), "the "))
			}
		}
	}
	const greener = "The greener, the better within its row."
	for _, f := range []struct {
		name, about string
		of          func(Row) float64
		text        func(Row) string
		more        func(Row) string
		low         bool // is better
	}{
		{"throughput", "Operations per second, and as a multiple of the first model's.", func(r Row) float64 { return r.OpsPerSec },
			func(r Row) string { return grouped(int64(r.OpsPerSec)) + " /s" }, func(r Row) string { return ratioText(r.Ratio) + " ×" }, false},
		{"latency", "What 99 of 100 calls stayed below, and what half of them did.", func(r Row) float64 { return float64(r.P99) },
			func(r Row) string { return duration(r.P99) }, func(r Row) string { return "half " + duration(r.P50) }, true},
		{"threads blocked", "The most threads at once that were held by a request that waited, and the most that were used.", func(r Row) float64 { return float64(r.Threads.Blocked + 1) },
			func(r Row) string { return fmt.Sprint(r.Threads.Blocked) }, func(r Row) string { return "of " + fmt.Sprint(r.Threads.Used) }, true},
		{"bodies at once", "The most bodies that ran at once, and how many on average.", func(r Row) float64 { return r.Threads.Mean },
			func(r Row) string { return fmt.Sprint(r.Threads.Running) }, func(r Row) string { return fmt.Sprintf("%.1f on average", r.Threads.Mean) }, false},
		{"CPU time", "CPU time of the whole process, by operation.", func(r Row) float64 { return r.CPU },
			func(r Row) string { return threeDigits(r.CPU/1e3) + " µs" }, func(r Row) string { return fmt.Sprintf("%.1f allocations", r.Allocs) }, true},
		{"fairness", "Jain's index over the callers: 1 if all ended equally many operations.", func(r Row) float64 { return r.Fairness },
			func(r Row) string { return fmt.Sprintf("%.3f", r.Fairness) }, func(Row) string { return "" }, false},
	} {
		g := picture.Figure{Name: f.name, About: f.about, Scale: greener}
		for _, w := range r.Workloads {
			best := 0.0
			for _, row := range w.Runs {
				if v := f.of(row); row.OK && row.Ops > 0 && (best == 0 || (v < best) == f.low) {
					best = v
				}
			}
			var cells []picture.Cell
			for _, name := range models {
				i := slices.IndexFunc(w.Runs, func(r Row) bool { return r.Model == name })
				switch {
				case i < 0:
					cells = append(cells, picture.Cell{Text: "–"})
				case !w.Runs[i].OK:
					cells = append(cells, picture.Cell{Text: "wrong"})
				case w.Runs[i].Cannot != "":
					cells = append(cells, picture.Cell{Text: "cannot"})
				case w.Runs[i].Ops == 0:
					cells = append(cells, picture.Cell{Text: "–"})
				default:
					row := w.Runs[i]
					cells = append(cells, picture.Cell{Text: f.text(row), More: f.more(row), Good: goodness(f.of(row), best, f.low)})
				}
			}
			g.Cells = append(g.Cells, cells)
		}
		m.Figures = append(m.Figures, g)
	}
	return m
}

// goodness returns 1 for the best of a row, and 0 for what is eight times as bad or worse: each
// halving is as much.
func goodness(v, best float64, low bool) float64 {
	if v <= 0 || best <= 0 {
		return 0
	}
	if low {
		v, best = best, v
	}
	return min(max(1+math.Log2(v/best)/3, 0), 1)
}

// section returns what the page shows of a workload.
func (w *Workload) section() picture.Section {
	sentence := w.Sentence()
	s := picture.Section{
		ID: w.Name, Name: w.Name, Sentence: strings.ToUpper(sentence[:1]) + sentence[1:], Details: []string{w.About, w.Details() + "."},
		Panels: w.panels, Columns: true,
	}
	t := picture.Table{Name: "Figures"}
	for _, c := range columns {
		t.Columns = append(t.Columns, picture.Entry{Term: c.Title, About: c.About})
	}
	for _, row := range w.Runs {
		t.Rows = append(t.Rows, picture.Row{Name: row.Model, Cells: row.cells(), Verdict: row.verdict(), Wrong: !row.OK})
	}
	s.Tables = []picture.Table{t}
	s.Charts = w.charts()
	return s
}

// metrics are what curves are drawn of.
var metrics = []struct {
	name, unit string
	of         func(Row) float64
	band       func(Row) (low, high float64)
	linear     bool
	top        float64
}{
	{name: "throughput", unit: "operations per second", of: func(r Row) float64 { return r.OpsPerSec }, band: func(r Row) (float64, float64) { return r.Low, r.High }},
	{name: "latency of 99 of 100 calls", unit: "µs", of: func(r Row) float64 { return float64(r.P99) / 1e3 }},
	{name: "latency of half of the calls", unit: "µs", of: func(r Row) float64 { return float64(r.P50) / 1e3 }},
	{name: "CPU time", unit: "µs per operation", of: func(r Row) float64 { return r.CPU / 1e3 }},
	{name: "threads used", unit: "threads, at most at once", of: func(r Row) float64 { return float64(r.Threads.Used) }, linear: true},
	{name: "threads blocked", unit: "threads, at most at once", of: func(r Row) float64 { return float64(r.Threads.Blocked) }, linear: true},
	{name: "concurrency reached", unit: "bodies at once, on average", of: func(r Row) float64 { return r.Threads.Mean }, linear: true},
	{name: "fairness over callers", unit: "Jain's index", of: func(r Row) float64 { return r.Fairness }, linear: true, top: 1},
}

// charts returns the curves of a workload: over callers, over the share of reads, and the
// distribution of latencies.
func (w *Workload) charts() []picture.Chart {
	var all []picture.Chart
	if len(w.ByCallers) > 0 {
		all = append(all, w.chart("over callers", picture.Axis{Label: "callers", Kind: "log"}, w.ByCallers))
	}
	if len(w.ByReads) > 0 {
		all = append(all, w.chart("over the share of reads", picture.Axis{Label: "share of reads", Kind: "share"}, w.ByReads))
	}
	latency := picture.Series{Name: "latency", Unit: "µs", Log: true}
	for _, row := range w.Runs {
		c := picture.Curve{Name: w.short(row), Family: family(row.Family)}
		for _, q := range row.quantiles {
			c.Points = append(c.Points, picture.Point{X: q.slower, Y: float64(q.ns) / 1e3})
		}
		if len(c.Points) > 0 {
			latency.Curves = append(latency.Curves, c)
		}
	}
	if len(latency.Curves) > 0 {
		all = append(all, picture.Chart{Name: "by share of calls that stayed below", X: picture.Axis{Label: "share of calls below", Kind: "slower"}, Series: []picture.Series{latency}})
	}
	return all
}

func (w *Workload) chart(name string, x picture.Axis, points []Point) picture.Chart {
	c := picture.Chart{Name: name, X: x}
	for _, m := range metrics {
		s := picture.Series{Name: m.name, Unit: m.unit, Top: m.top}
		if m.band != nil {
			s.Band = "how far the windows of a point differ"
		}
		low, high := math.Inf(1), 0.0
		for _, row := range w.Runs {
			curve := picture.Curve{Name: w.short(row), Family: family(row.Family)}
			for _, p := range points {
				if p.Model != row.Model || p.Ops == 0 {
					continue
				}
				v := m.of(p.Row)
				low, high = min(low, v), max(high, v)
				point := picture.Point{X: p.X, Y: v}
				if m.band != nil {
					point.Low, point.High = m.band(p.Row)
					if !p.Steady {
						point.Note = "not steady"
					}
				}
				curve.Points = append(curve.Points, point)
			}
			if len(curve.Points) > 0 {
				s.Curves = append(s.Curves, curve)
			}
		}
		const wide = 20
		s.Log = !m.linear && low > 0 && high > wide*low
		c.Series = append(c.Series, s)
	}
	return c
}

// short is label for where there is little room.
func (w *Workload) short(r Row) string {
	return strings.TrimPrefix(strings.TrimPrefix(w.label(r), "the "), "thread-")
}
