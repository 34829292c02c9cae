// Package workload says what is asked of shared objects: of which, by how many
// callers, how often which operation, how long a body takes, and when requests
// arrive. There are built-in workloads, and ones in files.
package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/examples/compare/internal/model"
	"github.com/sluice-go/sluice/examples/compare/internal/object"
)

// Workload is a declared type and what its callers ask of its objects.
type Workload struct {
	Name    string
	About   string
	Subject *model.Subject
	Objects int
	Keys    int
	Callers int           // 0 if that is left to whoever runs it
	Shares  []float64     // of the subject's operations; they add up to 1
	Work    []object.Work // of their bodies
	Arrival Arrival
}

// Setting returns how the objects are used by a number of callers.
func (w *Workload) Setting(callers int) object.Setting {
	return object.Setting{Callers: callers, Objects: w.Objects, Keys: w.Keys, Shares: w.Shares, Work: w.Work}
}

// ReadShare returns the share of the operations that only read. It is false if
// there is none, or nothing else.
func (w *Workload) ReadShare() (float64, bool) {
	var share float64
	var reads int
	for i, op := range w.Subject.Operations {
		if op.Reads {
			reads++
			share += w.Shares[i]
		}
	}
	return share, reads > 0 && reads < len(w.Subject.Operations)
}

// WithReads returns the workload with another share of reads. Among themselves,
// reads keep their proportions, and so do the others; those of which there were none
// become equal.
func (w *Workload) WithReads(share float64) *Workload {
	v := *w
	v.Shares = slices.Clone(w.Shares)
	was, _ := w.ReadShare()
	w.scale(v.Shares, true, was, share)
	w.scale(v.Shares, false, 1-was, 1-share)
	return &v
}

// scale gives the operations that read, or those that do not, another sum of shares.
func (w *Workload) scale(shares []float64, reads bool, from, to float64) {
	const none = 1e-9
	var n float64
	for _, op := range w.Subject.Operations {
		if op.Reads == reads {
			n++
		}
	}
	for i, op := range w.Subject.Operations {
		switch {
		case op.Reads != reads:
		case from < none:
			shares[i] = to / n
		default:
			shares[i] *= to / from
		}
	}
}

// Names returns those of the subject's operations.
func (w *Workload) Names() []string {
	var names []string
	for _, op := range w.Subject.Operations {
		names = append(names, op.Name)
	}
	return names
}

// Body returns how long a body takes on average.
func (w *Workload) Body() time.Duration {
	var sum float64
	for i, work := range w.Work {
		sum += w.Shares[i] * float64(work.CPU+work.Wait)
	}
	return time.Duration(sum)
}

// Short reports whether the bodies are so short that reading the clock costs as
// much.
func (w *Workload) Short() bool {
	for _, work := range w.Work {
		if work.CPU >= 10*time.Microsecond || work.Wait > 0 {
			return false
		}
	}
	return w.Arrival.Rate == 0
}

// Mix says which operations are called how often, and what their bodies do.
func (w *Workload) Mix() string {
	var parts []string
	for i, op := range w.Subject.Operations {
		if w.Shares[i] > 0 {
			parts = append(parts, fmt.Sprintf("%s %.4g %% (%s)", op.Name, 100*w.Shares[i], w.Work[i]))
		}
	}
	return strings.Join(parts, ", ")
}

// Builtin lists the built-in workloads, in the order of their tables.
var Builtin = []*Workload{
	{
		Name: "account", Subject: subject("account"), Objects: 1, Keys: 1,
		About:  "The account of the text: a withdrawal waits until it is covered, and money that was withdrawn is paid in again.",
		Shares: []float64{.25, .25, .5}, Work: all(3, object.Work{Wait: time.Millisecond}),
	},
	readers("readers-0", object.Work{}),
	readers("readers-1us", object.Work{CPU: time.Microsecond}),
	readers("readers-100us", object.Work{CPU: 100 * time.Microsecond}),
	readers("readers-1ms", object.Work{Wait: time.Millisecond}),
	{
		Name: "store", Subject: subject("store"), Objects: 1, Keys: 16,
		About:  "A key-value store of 16 keys, in which only requests for the same key conflict.",
		Shares: []float64{.5, .5}, Work: all(2, object.Work{Wait: time.Millisecond}),
	},
	{
		Name: "buffer", Subject: subject("buffer"), Objects: 1, Keys: 1,
		About:  "A bounded buffer: half of the callers put, half get; a put waits for room, a get for items.",
		Shares: []float64{.5, .5}, Work: all(2, object.Work{}),
	},
	{
		Name: "many", Subject: subject("store"), Objects: 64, Keys: 1,
		About:  "64 registers with few calls each: with a thread per object, hardly anybody waits.",
		Shares: []float64{.9, .1}, Work: all(2, object.Work{Wait: time.Millisecond}),
	},
	{
		Name: "hot", Subject: subject("store"), Objects: 1, Keys: 1,
		About:  "The same calls as in many, all to one register: with a thread per object, all wait for its one thread.",
		Shares: []float64{.9, .1}, Work: all(2, object.Work{Wait: time.Millisecond}),
	},
}

// Default lists the workloads that are measured if nothing else is asked for: one for each
// thing that tells models apart.
var Default = []*Workload{
	builtin("readers-1ms"), builtin("account"), builtin("store"), builtin("many"), builtin("buffer"), builtin("readers-0"),
}

func builtin(name string) *Workload {
	for _, w := range Builtin {
		if w.Name == name {
			return w
		}
	}
	panic("no workload " + name)
}

func readers(name string, w object.Work) *Workload {
	return &Workload{
		Name: name, Subject: subject("store"), Objects: 1, Keys: 1,
		About:  fmt.Sprintf("Readers and writers of one register; the body of both is %s.", w),
		Shares: []float64{.9, .1}, Work: all(2, w),
	}
}

func all(n int, w object.Work) []object.Work { return slices.Repeat([]object.Work{w}, n) }

// subject returns the subject of a name.
func subject(name string) *model.Subject {
	for _, s := range model.Subjects {
		if s.Name == name {
			return s
		}
	}
	panic("no subject " + name)
}
