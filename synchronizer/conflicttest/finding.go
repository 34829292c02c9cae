package conflicttest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// finding is something that is wrong, with the example that shows it.
type finding struct {
	Problem string // does not depend on the example
	Lines   []line
}

// line is a part of an example.
type line struct{ Name, Text string }

func (f *finding) String() string {
	width := 0
	for _, l := range f.Lines {
		width = max(width, len(l.Name))
	}
	var b strings.Builder
	b.WriteString(f.Problem)
	for _, l := range f.Lines {
		if strings.Contains(l.Text, "\n") {
			b.WriteString("\n\t" + l.Name + ":\n\t\t" + strings.ReplaceAll(l.Text, "\n", "\n\t\t"))
			continue
		}
		fmt.Fprintf(&b, "\n\t%-*s%s", width+2, l.Name+":", l.Text)
	}
	return b.String()
}

// finding returns one about a pair, as its requests and the state show it.
func (t *trial[T]) finding(p pair, problem string, more ...line) *finding {
	return &finding{
		Problem: fmt.Sprintf("table of %s: %s are declared compatible, but %s", t.typ.Name(), t.both(p), problem),
		Lines:   append(t.shown(), more...),
	}
}

// shown describes the trial itself.
func (t *trial[T]) shown() []line {
	return []line{
		{"state", flat(t.fingerprint(t.make()))},
		{"requests", t.requests[0].String() + ", " + t.requests[1].String()},
	}
}

// orders are the lines of the outcomes in turn.
func (t *trial[T]) orders(p pair, outcomes [2]outcome) (lines []line) {
	for first, o := range outcomes {
		name := t.requests[first].op.Name + " first"
		if p[0] == p[1] {
			name = [...]string{"in this order", "in the other"}[first]
		}
		lines = append(lines, line{name, t.text(o)})
	}
	return lines
}

func (t *trial[T]) text(o outcome) string {
	return fmt.Sprintf("%s: %s; %s: %s; then the state is %s",
		t.requests[0], o.results[0], t.requests[1], o.results[1], flat(o.state))
}

// falsify looks for values for which the property finds something, and returns what it
// finds for the smallest that rapid comes to. The name is that of rapid's files.
//
// A property that depends on luck may fail once and then no more, which rapid takes for
// an error of the property's; here the last failure counts, and each that rapid brings
// about is for smaller values than those before.
func falsify(name string, property func(*rapid.T) *finding) (found *finding, err error) {
	r := &recorder{name: name}
	rapid.Check(r, func(t *rapid.T) {
		if f := property(t); f != nil {
			found = f
			t.Fatal(f.Problem)
		}
	})
	if found == nil && r.Failed() {
		err = fmt.Errorf("conflicttest: %s: %s", name, strings.Join(r.failures, "\n"))
	}
	return found, err
}

// recorder is a test as rapid sees it: what it says is kept, if it is an error.
type recorder struct {
	name     string
	failures []string
	failed   bool
}

func (r *recorder) Helper()                           {}
func (r *recorder) Name() string                      { return r.name }
func (r *recorder) Logf(string, ...any)               {}
func (r *recorder) Log(...any)                        {}
func (r *recorder) Skipf(string, ...any)              {}
func (r *recorder) Skip(...any)                       {}
func (r *recorder) SkipNow()                          {}
func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }
func (r *recorder) Error(args ...any)                 { r.Fail(); r.failures = append(r.failures, fmt.Sprint(args...)) }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...) }
func (r *recorder) Fatal(args ...any)                 { r.Error(args...) }
func (r *recorder) FailNow()                          { r.Fail() }
func (r *recorder) Fail()                             { r.failed = true }
func (r *recorder) Failed() bool                      { return r.failed }
