package activeobject

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/settings"
	"github.com/sluice-go/sluice/mailbox"
)

// audit is a settings.Audit.
type audit settings.Audit

// found reports a finding and returns it.
func (a *audit) found(e *ImpureError) error {
	if a.Report != nil {
		a.Report(e)
	}
	return e
}

// undeclared reports a finding of the scheduler, if that is what a request fails with.
func (a *audit) undeclared(err error) {
	var e *mailbox.UndeclaredError
	if a.Report != nil && errors.As(err, &e) {
		a.Report(e)
	}
}

// diff says how two fingerprints differ.
func (a *audit) diff(before, after string) string {
	if a.Diff != nil {
		return a.Diff(before, after)
	}
	return "before: " + before + "\nafter: " + after
}

// evaluateTwice evaluates a guard twice: that of the operation, or of one request with the body. It
// returns an error if the state changes or the results differ.
func (h *host[T]) evaluateTwice(op int, body engine.Body, ask func() (falsePart string)) (falsePart string, err error) {
	a, d := h.config.audit, h.config.rule(op)
	e := &ImpureError{Object: h.Name(), Operation: d.Name, Guard: d.Guard}
	if in, ok := carried[T](body); ok {
		e.Guard = in.arg.guard.Name()
	}
	rest, isRest := body.(*bodyRest)
	if isRest {
		e.Guard = rest.name
	}
	before := a.Fingerprint(h.state)
	falsePart = ask()
	second := ask()
	after := a.Fingerprint(h.state)
	switch {
	case before != after:
		e.Problem, e.Diff = "it changed the state", a.diff(before, after)
	case falsePart != second && d.Looks&guards.AtTime == 0 && !(isRest && rest.Due()): // or else its time may have come in between
		e.Problem = fmt.Sprintf("evaluated twice over the same state, it said %s and then %s", said(falsePart), said(second))
	case isRest:
		return second, nil
	default:
		return falsePart, nil
	}
	return "", a.found(e)
}

// said puts a guard's result into words.
func said(falsePart string) string {
	if falsePart == "" {
		return "yes"
	}
	return fmt.Sprintf("no (%q)", falsePart)
}

// applyAudited runs the body of a function, and finds out whether it changes the state.
func (c *request) applyAudited(t turn, ctx context.Context) error {
	w := &watchedFunction{audit: t.o.config.audit, state: t.o.box.Host().(interface{ shown() any }).shown()}
	w.begin()
	if t.op.suspends {
		c.with().watched = w
	}
	err := c.apply(t.in, t.o, ctx)
	if t.op.suspends {
		c.optional.watched = nil
	}
	if w.end(); w.diff != "" {
		c.keep(nil)
		return w.found(&ImpureError{Object: t.o.Name(), Operation: t.op.name,
			Problem: "a function changed the state", Diff: w.diff})
	}
	return err
}

// watchedFunction is a function that runs, and is watched for changes of the state. While it is suspended others may change that.
type watchedFunction struct {
	*audit
	state  any
	before string // the fingerprint of the state when it began, or went on
	diff   string // what it has changed
}

func (w *watchedFunction) begin() {
	if w != nil {
		w.before = w.Fingerprint(w.state)
	}
}

// end says that the function has returned or is about to suspend.
func (w *watchedFunction) end() {
	if w == nil {
		return
	}
	if after := w.Fingerprint(w.state); after != w.before && w.diff == "" {
		w.diff = w.audit.diff(w.before, after)
	}
}

// shown returns a pointer to the state.
func (h *host[T]) shown() any { return h.state }
