package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/examples/compare/internal/model"
	"github.com/sluice-go/sluice/internal/picture"
)

// How many requests a timeline should show at first of a model that is neither fast nor slow, and
// may show of the fastest; and how much longer it is than what it shows at first.
const (
	wanted  = 36
	allowed = 320
	longer  = 14
)

// timelines returns the timelines of a workload: all as long as each other, and with the liveliest
// stretch of each at the same place.
func (w *Workload) timelines() []*picture.Panel {
	window, lead := w.window(), int64(math.MaxInt64)
	begins := make([]int64, len(w.recorded))
	for i, r := range w.recorded {
		if n := len(r.panel.Requests); n > 0 {
			r.panel.Clip(r.panel.Requests[0].Arrived, r.panel.Length)
		}
		begins[i] = r.panel.Liveliest(window)
		lead = min(lead, begins[i], longer/2*window)
	}
	length := lead + longer*window
	for i, r := range w.recorded {
		length = min(length, max(lead+window, r.panel.Length-begins[i]+lead))
	}
	var all []*picture.Panel
	for i, r := range w.recorded {
		p := r.panel
		p.Clip(begins[i]-lead, begins[i]-lead+length)
		p.Window, p.From = window, lead
		p.Name, p.Family = strings.TrimPrefix(w.label(w.row(r.model)), "the "), family(r.model.Family)
		if p.Name != r.model.Name {
			p.About = r.model.Name
		}
		p.Facts, p.Cut = w.facts(r.model, p), ""
		all = append(all, p)
	}
	return all
}

func (w *Workload) row(m *model.Model) Row {
	i := slices.IndexFunc(w.Runs, func(r Row) bool { return r.Model == m.Name })
	return w.Runs[i]
}

// window returns for how long timelines show at first what each model does, so that they can be
// compared.
func (w *Workload) window() int64 {
	var rates []float64 // per nanosecond
	for _, r := range w.recorded {
		if rate := r.panel.Rate(); rate > 0 {
			rates = append(rates, rate)
		}
	}
	if len(rates) == 0 {
		return 1
	}
	slices.Sort(rates)
	median, fastest := rates[len(rates)/2], rates[len(rates)-1]
	return max(1, int64(math.Min(wanted/median, allowed/fastest)))
}

// facts says what the figures of the model are, and what its requests waited for.
func (w *Workload) facts(m *model.Model, p *picture.Panel) string {
	row := w.row(m)
	if row.Cannot != "" {
		return row.verdict()
	}
	own := ""
	if m.Rule.Callers {
		own = " (the callers’)"
	}
	once := bodies(row.Threads.Running)
	if row.Threads.Running > 1 {
		once = fmt.Sprintf("%d bodies at once", row.Threads.Running)
	}
	text := fmt.Sprintf("%s%s, %d of them blocked; %s", counted(row.Threads.Used, "thread"), own, row.Threads.Blocked, once)
	if shares := p.Shares(); p.Reasons && len(shares) > 0 {
		var parts []string
		for c := picture.Guard; c <= picture.Suspended; c++ {
			if shares[c] >= .005 {
				parts = append(parts, fmt.Sprintf("%s %.0f %%", c, 100*shares[c]))
			}
		}
		text += ". Of all waiting: " + strings.Join(parts, ", ")
	}
	return text
}
