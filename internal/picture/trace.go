package picture

import (
	"encoding/json"
	"io"
	"slices"
)

// Trace writes panels in the trace event format of Chrome, which ui.perfetto.dev opens: each panel
// as a process, its lanes as threads, waits and bodies as slices, what a wait was for as arrows,
// and how many requests wait, run, and hold a thread as they wait, as counters.
func Trace(w io.Writer, panels []*Panel) error {
	t := tracer{events: []traceEvent{}}
	for i, p := range panels {
		t.panel(i+1, p)
	}
	return json.NewEncoder(w).Encode(map[string]any{"displayTimeUnit": "ns", "traceEvents": t.events})
}

// traceEvent is an event of the format. Times are in microseconds.
type traceEvent struct {
	Phase    string         `json:"ph"`
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	At       float64        `json:"ts"`
	Duration *float64       `json:"dur,omitempty"`
	ID       int            `json:"id,omitempty"`
	Binding  string         `json:"bp,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

type tracer struct {
	events []traceEvent
	arrows int
}

func micro(ns int64) float64 { return float64(ns) / 1e3 }

func (t *tracer) panel(process int, p *Panel) {
	t.meta(process, 0, "process_name", p.Name)
	lanes := 0
	for _, r := range p.Requests {
		lanes = max(lanes, r.Lane+1)
	}
	for lane := range lanes {
		t.meta(process, lane+1, "thread_name", "in flight")
	}
	for i := range p.Requests {
		t.request(process, p, i)
	}
	t.counters(process, p)
}

func (t *tracer) meta(process, thread int, what, name string) {
	t.events = append(t.events, traceEvent{Phase: "M", Name: what, Process: process, Thread: thread, Args: map[string]any{"name": name}})
}

func (t *tracer) slice(process int, r *Request, name, category string, from, to int64, args map[string]any) {
	d := micro(max(0, to-from))
	t.events = append(t.events, traceEvent{Phase: "X", Name: name, Category: category, Process: process, Thread: r.Lane + 1, At: micro(from), Duration: &d, Args: args})
}

func (t *tracer) request(process int, p *Panel, i int) {
	r := &p.Requests[i]
	name := p.Request(i)
	until := r.waitEnds(p.Length)
	for j, w := range r.Waits {
		to := until
		if j+1 < len(r.Waits) {
			to = r.Waits[j+1].From
		}
		args := map[string]any{"request": name, "reason": w.Text}
		if r.Held != Never && r.Held < to {
			args["thread"] = "blocked"
		}
		t.slice(process, r, w.Cause.String(), "wait", w.From, to, args)
	}
	if len(r.Waits) == 0 && r.Arrived < until {
		t.slice(process, r, Unknown.String(), "wait", r.Arrived, until, map[string]any{"request": name})
	}
	if r.Started == Never {
		return
	}
	ended := r.Ended
	if ended == Never {
		ended = p.Length
	}
	t.slice(process, r, name, "run", r.Started, ended, map[string]any{"waited_us": micro(until - r.Arrived)})
	if r.By != None && p.Requests[r.By].Started != Never {
		by := &p.Requests[r.By]
		t.arrows++
		t.events = append(t.events,
			traceEvent{Phase: "s", Name: "lets start", Category: "wait", Process: process, Thread: by.Lane + 1, At: micro(by.Ended), ID: t.arrows},
			traceEvent{Phase: "f", Binding: "e", Name: "lets start", Category: "wait", Process: process, Thread: r.Lane + 1, At: micro(r.Started), ID: t.arrows})
	}
}

// step is a change of the load.
type step struct {
	at                        int64
	waiting, blocked, running int
}

// steps returns how the load changes, in order.
func (p *Panel) steps() []step {
	var all []step
	for i := range p.Requests {
		r := &p.Requests[i]
		until := r.waitEnds(p.Length)
		all = append(all, step{at: r.Arrived, waiting: 1}, step{at: until, waiting: -1})
		if r.Held != Never && r.Held < until {
			all = append(all, step{at: r.Held, blocked: 1}, step{at: until, blocked: -1})
		}
		if r.Started != Never {
			all = append(all, step{at: r.Started, running: 1})
			if r.Ended != Never {
				all = append(all, step{at: r.Ended, running: -1})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b step) int { return int(a.at - b.at) })
	return all
}

func (t *tracer) counters(process int, p *Panel) {
	var now step
	for i, all := 0, p.steps(); i < len(all); {
		for now.at = all[i].at; i < len(all) && all[i].at == now.at; i++ {
			now.waiting += all[i].waiting
			now.blocked += all[i].blocked
			now.running += all[i].running
		}
		t.events = append(t.events, traceEvent{Phase: "C", Name: "requests", Process: process, At: micro(now.at), Args: map[string]any{"waiting": now.waiting, "running": now.running}},
			traceEvent{Phase: "C", Name: "blocked threads", Process: process, At: micro(now.at), Args: map[string]any{"blocked": now.blocked}})
	}
}
