package timeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/internal/picture"
	"github.com/sluice-go/sluice/mailbox"
)

// Panels returns a picture of each object. It serves the package picture.
func (r *Recording) Panels() []*picture.Panel {
	r.mu.Lock()
	objects := slices.Clone(r.objects)
	r.mu.Unlock()
	var panels []*picture.Panel
	for _, o := range objects {
		p := &picture.Panel{Name: o.name, Reasons: true}
		o.draw(p)
		p.Arrange()
		panels = append(panels, p)
	}
	return panels
}

// Panel returns one picture of all objects, which are of one type.
func (r *Recording) Panel(name string) *picture.Panel {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &picture.Panel{Name: name, Reasons: true}
	for _, o := range r.objects {
		o.draw(p)
	}
	p.Arrange()
	return p
}

// draw adds what happened at the object to a panel.
func (o *object) draw(p *picture.Panel) {
	// The recorder takes mu while the object's own is held, so drawing must not keep it.
	o.mu.Lock()
	events, waits, full := slices.Clone(o.events), slices.Clone(o.waits), o.full
	o.mu.Unlock()
	d := drawing{Panel: p, object: o, number: len(p.Objects), at: map[uint64]int{}}
	p.Objects, p.Operations = append(p.Objects, o.name), o.operations
	ended := picture.None // the last request that has
	for n, e := range events {
		for len(waits) > 0 && waits[0].after <= n {
			d.wait(waits[0])
			waits = waits[1:]
		}
		p.Length = max(p.Length, e.at)
		i, known := d.at[e.Arrival]
		switch {
		case e.Op < 0: // what starts now was held up by something else
			ended = picture.None
		case e.Kind == mailbox.Arrived:
			d.arrive(e)
		case !known && e.Kind == mailbox.Started:
			i = d.arrive(e) // it found the object idle
			fallthrough
		case e.Kind == mailbox.Started:
			d.start(i, e.at, ended)
		case !known:
		case e.Kind == mailbox.Ended, e.Kind == mailbox.Abandoned, e.Kind == mailbox.Withdrawn, e.Kind == mailbox.Failing:
			r := &p.Requests[i]
			r.Ended, r.Left = e.at, r.Started == picture.Never || e.Kind == mailbox.Abandoned
			if r.Started == picture.Never {
				tidy(r, e.at)
			}
			delete(d.at, e.Arrival)
			d.gone(e.Arrival, i)
			ended = i
		}
	}
	for _, w := range waits {
		d.wait(w)
		p.Length = max(p.Length, w.at)
	}
	if full {
		p.Cut = fmt.Sprintf("The recording ended after %d events.", Capacity)
	}
}

// drawing is a panel that is being drawn.
type drawing struct {
	*picture.Panel
	object *object
	number int
	at     map[uint64]int // index by arrival, of requests that wait or run
	past   []passed       // that have ended of late
}

// passed is a request that has ended: reasons that are taken a moment later may name it.
type passed struct {
	arrival uint64
	index   int
}

func (d *drawing) gone(arrival uint64, index int) {
	const few = 64
	if d.past = append(d.past, passed{arrival, index}); len(d.past) > few {
		d.past = d.past[1:]
	}
}

// find returns the index of a request.
func (d *drawing) find(arrival uint64) int {
	if i, ok := d.at[arrival]; ok {
		return i
	}
	for _, p := range slices.Backward(d.past) {
		if p.arrival == arrival {
			return p.index
		}
	}
	return picture.None
}

func (d *drawing) arrive(e event) int {
	i := len(d.Requests)
	d.Requests = append(d.Requests, picture.Request{
		Object: d.number, Op: e.Op, Number: e.Arrival, Arrived: e.at,
		Held: picture.Never, Started: picture.Never, Ended: picture.Never, By: picture.None,
	})
	d.at[e.Arrival] = i
	return i
}

// start says that a request starts, as another has ended.
func (d *drawing) start(i int, at int64, ended int) {
	r := &d.Requests[i]
	if r.Started = at; r.Held == picture.Never {
		r.Held = at
	}
	if tidy(r, at); len(r.Waits) > 0 && ended != i {
		r.By = ended
	}
}

// A stretch of a wait that is shorter than moment, and than a tenth of the wait, is no more than a
// step of a decision, and is not shown; nor is a wait that is shorter than moment and has no
// other reason than that no thread has come yet.
const (
	moment = 1000
	part   = 10
)

// tidy joins stretches of a wait that has ended that look alike, and leaves out those that are too
// short to be one.
func tidy(r *picture.Request, until int64) {
	least := min(moment, (until-r.Arrived+part-1)/part)
	var waits []picture.Wait
	from := r.Arrived
	for i, w := range r.Waits {
		end := until
		if i+1 < len(r.Waits) {
			end = r.Waits[i+1].From
		}
		if end-w.From < least || until == r.Arrived {
			continue // the one before lasts on, or the next begins earlier
		}
		if n := len(waits); n > 0 {
			from = w.From
			if waits[n-1].Text == w.Text {
				continue
			}
		}
		w.From = from
		waits = append(waits, w)
	}
	if len(waits) == 1 && waits[0].Cause == picture.NoThread && until-r.Arrived < moment {
		waits = nil
	}
	r.Waits = waits
}

// wait says why a request waits.
func (d *drawing) wait(w wait) {
	i, ok := d.at[w.arrival]
	if !ok || d.Requests[i].Started != picture.Never {
		return
	}
	r := &d.Requests[i]
	if w.thread && r.Held == picture.Never {
		r.Held = w.at
	}
	one := picture.Wait{From: w.at, Cause: cause(w.reason)}
	var names []string
	for _, arrival := range w.forThem {
		if j := d.find(arrival); j != picture.None {
			one.For = append(one.For, j)
			names = append(names, fmt.Sprintf("%s #%d", d.object.operations[d.Requests[j].Op], arrival))
		}
	}
	if one.Text = text(w.reason, names); one.Cause == picture.Guard {
		one.For = nil
	}
	if n := len(r.Waits); n > 0 && r.Waits[n-1].Text == one.Text {
		return
	}
	if len(r.Waits) == 0 {
		one.From = r.Arrived
	}
	r.Waits = append(r.Waits, one)
}

// text says a reason in words.
func text(r mailbox.Reason, names []string) string {
	if cause(r) == picture.Guard {
		return fmt.Sprintf("guard %q is false", r.Guard)
	}
	switch r.Cause {
	case "":
		return "the reason was not recorded, as very many waited"
	case mailbox.Conflict:
		if len(names) == 0 {
			names = r.Conflicts
		}
		return "conflicts with " + list(names)
	case mailbox.Order:
		if len(names) > 0 {
			return names[0] + " comes first"
		}
		return r.Behind + " comes first"
	case mailbox.NoRoom:
		return "the queue is full"
	case mailbox.Suspended:
		return "the object is suspended"
	}
	if r.Threads != "" {
		return "waits for a thread: " + r.Threads
	}
	return "could start: no thread has come for it yet"
}

// list names some, and says how many more there are.
func list(names []string) string {
	const some = 3
	if len(names) > some {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:some], ", "), len(names)-some)
	}
	return strings.Join(names, ", ")
}

// cause returns the kind of a reason. A request whose guard was false when it was last evaluated
// waits for that, also while something runs that it conflicts with.
func cause(r mailbox.Reason) picture.Cause {
	switch r.Cause {
	case mailbox.GuardFalse:
		return picture.Guard
	case mailbox.Conflict:
		if r.Guard != "" {
			return picture.Guard
		}
		return picture.Conflict
	case mailbox.Order:
		return picture.Order
	case mailbox.NoThread:
		return picture.NoThread
	case mailbox.NoRoom:
		return picture.NoRoom
	case mailbox.Suspended:
		return picture.Suspended
	}
	return picture.Unknown
}
