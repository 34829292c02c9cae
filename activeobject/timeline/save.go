package timeline

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/internal/picture"
)

// shownObjects is how many objects a page shows at most, shownRequests how many requests of each,
// and lookedAt how many of these at first. A trace has all.
const (
	shownObjects  = 12
	shownRequests = 3000
	lookedAt      = 48
)

// WritePage writes a page of HTML that needs nothing but itself.
func (r *Recording) WritePage(w io.Writer, title string) error {
	page := picture.Page{
		Title: title,
		Lead:  "Which requests waited, for what, and which ran, at each object of the program.",
		About: []string{
			"Every request is a bar, from its arrival to its end: thin while it waits, in the color of the reason, and thick while it runs. The reasons are those of Object.Explain, taken whenever the object had settled.",
			"Objects that are recorded have no fast path, and are slower: look at the order of things here, and measure times without.",
		},
	}
	section := picture.Section{ID: "objects", Name: "Objects"}
	panels := r.Panels()
	if n := len(panels); n > shownObjects {
		page.Notes = append(page.Notes, fmt.Sprintf("The page shows the first %d objects of %d; a trace has all.", shownObjects, n))
		panels = panels[:shownObjects]
	}
	for _, p := range panels {
		frame(p)
		section.Panels = append(section.Panels, p)
	}
	focus(section.Panels)
	if len(section.Panels) == 0 {
		page.Notes = append(page.Notes, "Nothing was recorded: no object was made with the recording's option.")
	} else {
		page.Sections = append(page.Sections, section)
	}
	_, err := page.WriteTo(w)
	return err
}

// frame keeps no more of a panel than can be looked at, and says what is left out.
func frame(p *picture.Panel) {
	p.Facts = facts(p)
	if n := len(p.Requests); n > shownRequests {
		to := p.Requests[shownRequests].Arrived
		p.Clip(0, to)
		p.Cut = strings.TrimSpace(fmt.Sprintf("The page shows the first %d requests of %d; a trace has all. %s", shownRequests, n, p.Cut))
	}
}

// focus has all panels show at first what happens at the one with the most requests, where that is
// most lively.
func focus(panels []*picture.Panel) {
	if len(panels) == 0 {
		return
	}
	main := slices.MaxFunc(panels, func(a, b *picture.Panel) int { return len(a.Requests) - len(b.Requests) })
	n := int64(len(main.Requests))
	if n <= lookedAt {
		return
	}
	first := main.Requests[0].Arrived
	window := max(1, (main.Length-first)*lookedAt/n)
	from := main.Liveliest(window)
	for _, p := range panels {
		p.Window, p.From = window, from
	}
}

// facts says how much there was of what.
func facts(p *picture.Panel) string {
	waited := 0
	for i := range p.Requests {
		if slices.ContainsFunc(p.Requests[i].Waits, func(w picture.Wait) bool { return w.Cause != picture.NoThread }) {
			waited++
		}
	}
	text := fmt.Sprintf("%d requests, of which %d had to wait", len(p.Requests), waited)
	shares := p.Shares()
	var parts []string
	for c := picture.Guard; c <= picture.Suspended; c++ {
		if share := shares[c]; share >= .005 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", c, 100*share))
		}
	}
	if len(parts) > 0 {
		text += ". Of all waiting: " + strings.Join(parts, ", ")
	}
	return text
}

// WriteTrace writes a trace that ui.perfetto.dev opens.
func (r *Recording) WriteTrace(w io.Writer) error { return picture.Trace(w, r.Panels()) }

// Save writes a trace to a file whose name ends in .json, and a page to any other.
func (r *Recording) Save(file string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if strings.HasSuffix(file, ".json") {
		return r.WriteTrace(f)
	}
	title := filepath.Base(os.Args[0])
	return r.WritePage(f, fmt.Sprintf("%s, %s", title, r.begun.Format(time.DateTime)))
}

// Flag is a flag of a program for a recording. Unless it is given, nothing is recorded.
type Flag struct {
	file      string
	recording *Recording
}

// NewFlag defines a flag of the command line.
func NewFlag(name string) *Flag {
	f := &Flag{}
	flag.Func(name, "write what every request waited for to the `file`: a page, or a trace for ui.perfetto.dev if its name ends in .json", func(file string) error {
		if file == "" {
			return errors.New("must be a file")
		}
		f.file, f.recording = file, New()
		return nil
	})
	return f
}

// Options has an object recorded, if the flag is given; else there are none.
func (f *Flag) Options() []activeobject.Option {
	if f.recording == nil {
		return nil
	}
	return []activeobject.Option{f.recording.Option()}
}

// Save writes what was recorded, if the flag is given, and says where.
func (f *Flag) Save() error {
	if f.recording == nil {
		return nil
	}
	if err := f.recording.Save(f.file); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "wrote %s\n", f.file)
	return nil
}
