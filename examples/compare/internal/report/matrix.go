package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sluice-go/sluice/examples/compare/internal/model"
)

// width is how many columns of the terminal the matrix takes at most.
const width = 100

// The widths of bars.
const (
	speedBar = 13
	countBar = 4
)

// figures are what the matrix shows of each model in each workload.
var figures = []struct {
	Title, About string
	cell         func(w *Workload, r Row, p paint) string
}{
	{"throughput", "operations per second; the bar is longest for the fastest of the workload", func(w *Workload, r Row, p paint) string {
		return p.bar(r.OpsPerSec/w.most(func(r Row) float64 { return r.OpsPerSec }), speedBar, p.family(r.Family)) + fmt.Sprintf(" %7s", grouped(int64(r.OpsPerSec)))
	}},
	{"ratio", "of the throughput to that of the first model", func(_ *Workload, r Row, _ paint) string {
		if r.Ratio == 0 {
			return "–"
		}
		return times(r.Ratio)
	}},
	{"blocked", "the most threads at once that were held by a request that waited", func(w *Workload, r Row, p paint) string {
		return p.count(r.Threads.Blocked, w.mostThreads(), text.Colors{text.FgRed})
	}},
	{"at once", "the most bodies that ran at once", func(w *Workload, r Row, p paint) string {
		return p.count(r.Threads.Running, w.mostThreads(), text.Colors{text.FgGreen})
	}},
	{"p99", "the latency that 99 of 100 calls stayed below", func(_ *Workload, r Row, _ paint) string { return duration(r.P99) }},
	{"fair", "Jain's index over the callers: 1 if all ended equally many operations, 1/n if one of n did all", func(_ *Workload, r Row, _ paint) string {
		return fmt.Sprintf("%.2f", r.Fairness)
	}},
}

// Matrix writes a sentence for each workload, and the figures of each model in each.
func (r *Report) Matrix(to io.Writer, colored bool) {
	p := paint(colored)
	if len(r.Workloads) == 0 {
		return
	}
	names := 0
	for _, w := range r.Workloads {
		names = max(names, len(w.Name))
	}
	for _, w := range r.Workloads {
		lines := strings.Split(text.WrapSoft(w.Sentence(), width-names-2), "\n")
		for i, line := range lines {
			name := ""
			if i == 0 {
				name = w.Name
			}
			fmt.Fprintf(to, "%s  %s\n", p.in(text.Colors{text.Bold}, fmt.Sprintf("%-*s", names, name)), strings.TrimRight(line, " "))
		}
	}
	fmt.Fprintln(to)
	fmt.Fprintln(to, r.matrix(p))
	for _, w := range r.Workloads {
		for _, run := range w.Runs {
			if run.Ops == 0 || !run.OK {
				fmt.Fprintf(to, "%s under %s: %s\n", w.Name, run.Model, p.in(text.Colors{text.FgRed}, run.verdict()))
			}
		}
	}
	fmt.Fprintln(to)
	paragraph(to, r.setting()+"; "+r.coresText()+".")
	fmt.Fprintln(to, "More: -v for all columns, -models all, -html page.html for a page, -h for what the words mean.")
}

// paragraph writes a text in lines that fit.
func paragraph(to io.Writer, s string) {
	for line := range strings.SplitSeq(text.WrapSoft(s, width), "\n") {
		fmt.Fprintln(to, strings.TrimRight(line, " "))
	}
}

// matrix returns the table.
func (r *Report) matrix(p paint) string {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.Options{SeparateHeader: false}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	if p {
		style.Color.Header = text.Colors{text.Faint}
	}
	t.SetStyle(style)
	header := table.Row{"", ""}
	configs := []table.ColumnConfig{}
	for i, f := range figures {
		header = append(header, f.Title)
		configs = append(configs, table.ColumnConfig{Number: i + 3, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)
	for _, w := range r.Workloads {
		for i, run := range w.Runs {
			row := table.Row{"", p.in(p.family(run.Family), strings.TrimPrefix(w.label(run), "the "))}
			if i == 0 {
				row[0] = p.in(text.Colors{text.Bold}, w.Name)
			}
			if run.Ops == 0 || !run.OK {
				t.AppendRow(append(row, p.in(text.Colors{text.FgRed}, "see below")))
				continue
			}
			for _, f := range figures {
				row = append(row, f.cell(w, run, p))
			}
			t.AppendRow(row)
		}
	}
	var lines []string
	for line := range strings.SplitSeq(t.Render(), "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.Join(lines, "\n")
}

// setting says how often and where what was measured.
func (r *Report) setting() string {
	callers, same := r.Workloads[0].Callers, true
	for _, w := range r.Workloads {
		same = same && w.Callers == callers
	}
	who := "callers as each workload says"
	if same {
		who = counted(callers, "caller")
	}
	return fmt.Sprintf("%s; %v each, in %d turns; %s, GOMAXPROCS %d", who, r.duration(), r.Turns, r.Go, r.GOMAXPROCS)
}

// most returns the highest of a figure.
func (w *Workload) most(of func(Row) float64) float64 {
	high := 0.0
	for _, r := range w.Runs {
		if r.OK {
			high = max(high, of(r))
		}
	}
	return high
}

func (w *Workload) mostThreads() int {
	return int(w.most(func(r Row) float64 { return float64(max(r.Threads.Blocked, r.Threads.Running)) }))
}

// duration writes a time in the unit that fits.
func duration(ns int64) string {
	switch d := time.Duration(ns); {
	case d >= time.Second:
		return threeDigits(d.Seconds()) + " s"
	case d >= time.Millisecond:
		return threeDigits(d.Seconds()*1e3) + " ms"
	case d >= time.Microsecond:
		return threeDigits(d.Seconds()*1e6) + " µs"
	}
	return fmt.Sprintf("%d ns", ns)
}

// paint is whether texts have colors.
type paint bool

func (p paint) in(c text.Colors, s string) string {
	if !p || strings.TrimSpace(s) == "" {
		return s
	}
	return c.EscapeSeq() + s + text.EscapeReset
}

func (paint) family(f model.Family) text.Colors {
	switch f {
	case model.PerRequest:
		return text.Colors{text.FgYellow}
	case model.PerObject:
		return text.Colors{text.FgMagenta}
	}
	return text.Colors{text.FgCyan}
}

// bar draws a part of 1, to an eighth of a column.
func (p paint) bar(part float64, columns int, c text.Colors) string {
	eighths := int(math.Round(min(max(part, 0), 1) * float64(8*columns)))
	if part > 0 {
		eighths = max(1, eighths)
	}
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return p.in(c, s) + strings.Repeat(" ", columns-len([]rune(s)))
}

// count draws a small number, of at most so many.
func (p paint) count(n, most int, c text.Colors) string {
	return p.bar(float64(n)/float64(max(most, 1)), countBar, c) + fmt.Sprintf("%3d", n)
}

// glossary explains the figures of the matrix, and after these those of the other tables.
func glossary() (all []column) {
	for _, f := range figures {
		all = append(all, column{Title: f.Title, About: f.About})
	}
	for _, c := range columns {
		known := false
		for _, f := range figures {
			known = known || f.Title == c.Title
		}
		if !known {
			all = append(all, c)
		}
	}
	return all
}
