package main

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress tells the user what is going on: on a terminal, in a line that is
// overwritten and goes away; else by one line for each workload.
type progress struct {
	w    io.Writer
	bar  *progressbar.ProgressBar // nil unless w is a terminal
	last string
}

func newProgress(w io.Writer, steps int) *progress {
	p := &progress{w: w}
	if onTerminal(w) {
		p.bar = progressbar.NewOptions(steps, progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(24),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
	}
	return p
}

// step says that a run begins.
func (p *progress) step(workload, model string) {
	if p.bar != nil {
		p.bar.Describe(fmt.Sprintf("%-13s %-12s", workload, model))
		p.bar.Add(1)
	} else if workload != p.last {
		fmt.Fprintf(p.w, "compare: measuring %s\n", workload)
	}
	p.last = workload
}

// clear makes room for other text.
func (p *progress) clear() {
	if p.bar != nil {
		p.bar.Clear()
	}
}

// colored reports whether text for w may have colors: it is a terminal, and its user has not
// asked for none (no-color.org).
func colored(w io.Writer) bool { return onTerminal(w) && os.Getenv("NO_COLOR") == "" }

func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
