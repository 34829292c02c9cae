package picture

import (
	"fmt"
	"math/rand/v2"
)

// The page here is made from data that is always the same: callers that share a register, played by a
// scheduler of a few lines under three models, and curves by formula.

// play lets callers read and write in turn, each body as long as the others, until a time. Alone
// says that one request runs at a time, else reads run beside each other; held, that requests hold
// threads from their arrival.
func play(name string, family int, alone, held bool, body, until int64) *Panel {
	p := &Panel{Name: name, Family: family, About: "fixed", Operations: []string{"read", "write"}, Objects: []string{"register"}, Reasons: true}
	const callers, read, write = 8, 0, 1
	chance := rand.New(rand.NewPCG(1, 1))
	var waiting, running []int
	arrive := func(at int64) {
		op := read
		if chance.IntN(4) == 0 {
			op = write
		}
		r := Request{Op: op, Number: uint64(len(p.Requests) + 1), Arrived: at, Held: Never, Started: Never, Ended: Never, By: None}
		if held {
			r.Held = at
		}
		waiting = append(waiting, len(p.Requests))
		p.Requests = append(p.Requests, r)
	}
	name2 := func(i int) string { return p.Request(i) }
	decide := func(at int64, by int) {
		for len(waiting) > 0 {
			r := &p.Requests[waiting[0]]
			free := len(running) == 0
			if !free && !alone && r.Op == read && p.Requests[running[0]].Op == read {
				free = true
			}
			if !free {
				break
			}
			if r.Started = at; r.Held == Never {
				r.Held = at
			}
			if r.Started > r.Arrived {
				r.By = by
			}
			r.Ended = at + body + int64(chance.IntN(int(body/4)))
			running, waiting = append(running, waiting[0]), waiting[1:]
		}
		for k, i := range waiting {
			w := Wait{From: at, Cause: Conflict, Text: "conflicts with " + name2(running[0]), For: []int{running[0]}}
			switch {
			case k > 0 && !alone && p.Requests[i].Op == read:
				w = Wait{From: at, Cause: Order, Text: name2(waiting[0]) + " comes first", For: []int{waiting[0]}}
			case k == 2:
				w = Wait{From: at, Cause: Guard, Text: `guard "fresh" is false`}
			case k == 4 && !held:
				w = Wait{From: at, Cause: NoThread, Text: "could start: no thread has come for it yet"}
			}
			r := &p.Requests[i]
			if n := len(r.Waits); n == 0 || r.Waits[n-1].Text != w.Text {
				r.Waits = append(r.Waits, w)
			}
		}
	}
	for i := range callers {
		arrive(int64(i) * body / 20)
		decide(int64(i)*body/20, None)
	}
	for {
		first := 0
		for k, i := range running {
			if p.Requests[i].Ended < p.Requests[running[first]].Ended {
				first = k
			}
		}
		i := running[first]
		at := p.Requests[i].Ended
		if p.Length = at; at > until {
			break
		}
		running = append(running[:first:first], running[first+1:]...)
		decide(at, i)
		arrive(at + 1)
		decide(at+1, None)
	}
	p.Arrange()
	p.Clip(0, until)
	p.Facts = fmt.Sprintf("%d requests", len(p.Requests))
	return p
}

// trio are three models.
func trio(body, until, window int64) []*Panel {
	all := []*Panel{
		play("thread-per-request", 0, false, true, body, until),
		play("thread-per-object", 1, true, false, body, until),
		play("Synchronizer", 2, false, false, body, until),
	}
	for _, p := range all {
		p.Window, p.From = window, until/3
	}
	return all
}

// fixed returns the page.
func fixed() *Page {
	page := &Page{
		Title: "Models of concurrency, compared", Lead: "The Synchronizer was the fastest in 2 of 2 workloads, blocking no thread.",
		About:  []string{"By hand: this page is made from fixed data, for tests."},
		Footer: []Entry{{"ops/s", "operations per second"}, {"fair", "Jain's index over the callers"}},
	}
	names := []string{"thread-per-request", "thread-per-object", "Synchronizer"}
	cells := func(texts ...string) []Cell {
		var all []Cell
		for i, t := range texts {
			all = append(all, Cell{Text: t, More: "1.00 ×", Good: []float64{.95, .3, 1}[i]})
		}
		return all
	}
	page.Result = &Matrix{Columns: names, Rows: []string{"slow", "fast"}, Figures: []Figure{
		{"throughput", "Operations per second.", "The greener, the better within its row.", [][]Cell{cells("3,442 /s", "858 /s", "3,546 /s"), cells("324,045 /s", "593,840 /s", "450,845 /s")}},
		{"latency", "What 99 of 100 calls stayed below.", "The greener, the better within its row.", [][]Cell{cells("6.1 ms", "10.9 ms", "6.0 ms"), cells("182 µs", "4.3 µs", "88 µs")}},
	}}
	sentence := "Thread-per-object ran one body at a time, 0.25 ×; thread-per-request ran 8 at once and blocked 7 threads; the Synchronizer ran 8 at once and blocked none, 1.03 ×."
	table := Table{Name: "Figures", Columns: []Entry{{"ops/s", "operations per second"}, {"ratio", ""}, {"p50 µs", ""}, {"p99 µs", ""}, {"CPU µs/op", ""}, {"fair", ""}, {"blocked", ""}, {"at once", ""}}}
	for _, n := range []string{"monitor-spawned", "dedicated", "sync-spawned"} {
		table.Rows = append(table.Rows, Row{Name: n, Cells: []string{"3,442", "1.00", "2,310", "5,800", "43.2", "1.000", "8", "8"}, Verdict: "ok"})
	}
	curves := func(f func(k int, x float64) float64, xs ...float64) (all []Curve) {
		for k, n := range []string{"per-request", "per-object", "Synchronizer"} {
			c := Curve{Name: n, Family: k}
			for _, x := range xs {
				y := f(k, x)
				c.Points = append(c.Points, Point{X: x, Y: y, Low: .85 * y, High: 1.1 * y})
			}
			all = append(all, c)
		}
		return all
	}
	throughput := func(k int, x float64) float64 { return []float64{900 * x, 850, 930 * x}[k] / (1 + x/32) }
	latency := curves(func(k int, x float64) float64 { return []float64{900, 9000, 850}[k] / (x + .02) }, 1, .5, .2, .1, .05, .02, .01, .005, .001)
	for i := range latency {
		for j := range latency[i].Points {
			latency[i].Points[j].Low, latency[i].Points[j].High = 0, 0
		}
	}
	charts := []Chart{
		{Name: "over callers", X: Axis{"callers", "log"}, Series: []Series{
			{Name: "throughput", Unit: "operations per second", Band: "how far the windows differ", Curves: curves(throughput, 1, 2, 4, 8, 16, 32, 64)},
			{Name: "latency of half of the calls", Unit: "µs", Log: true, Curves: curves(func(k int, x float64) float64 { return 100 * (1 + float64(k)*x) }, 1, 2, 4, 8, 16, 32, 64)},
		}},
		{Name: "over the share of reads", X: Axis{"share of reads", "share"}, Series: []Series{
			{Name: "throughput", Unit: "operations per second", Band: "how far the windows differ", Curves: curves(func(k int, x float64) float64 { return []float64{1000 + 5000*x*x, 850, 1050 + 5000*x*x}[k] }, 0, .25, .5, .75, 1)},
		}},
		{Name: "by share of calls that stayed below", X: Axis{"share of calls below", "slower"}, Series: []Series{{Name: "latency", Unit: "µs", Log: true, Curves: latency}}},
	}
	page.Sections = []Section{
		{ID: "slow", Name: "slow", Sentence: sentence, Details: []string{"Readers and writers of one register; the body of both is 1ms of waiting.", "8 callers of 1 object."}, Panels: trio(1e6, 60e6, 14e6), Columns: true, Charts: charts, Tables: []Table{table}},
		{ID: "fast", Name: "fast", Sentence: sentence, Details: []string{"The same with bodies of 400 ns."}, Panels: trio(400, 60000, 5000), Columns: true, Tables: []Table{table}},
	}
	return page
}
