package objecttest

import (
	"strings"
	"testing"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/internal/settings"
)

// Checked is an option of objects that finds out, at every request, whether guards
// and functions leave the state alone, whether a guard gives the same result when it
// is evaluated twice, and whether operations open no more of a family than they declare.
// What it finds fails the request (*activeobject.ImpureError, which says what changed,
// and *activeobject.UndeclaredError), and the test.
//
// The state is compared by Dump, to which the values to ignore are passed on. That
// costs a walk over all of it, twice, for every guard and function.
func Checked(t testing.TB, ignore ...any) activeobject.Option {
	log := &testLog{t: t}
	t.Cleanup(log.end)
	return settings.Audited[activeobject.Option](settings.Audit{
		Fingerprint: func(state any) string { return Dump(state, ignore...) },
		Diff:        diff,
		Report:      func(e error) { log.errorf("%v", e) },
	})
}

// diff lists the lines of two texts that differ.
func diff(before, after string) string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	var lines []string
	for _, op := range difflib.NewMatcher(a, b).GetOpCodes() {
		if op.Tag == 'e' {
			continue
		}
		for _, line := range a[op.I1:op.I2] {
			lines = append(lines, "- "+line)
		}
		for _, line := range b[op.J1:op.J2] {
			lines = append(lines, "+ "+line)
		}
	}
	return strings.Join(lines, "\n")
}
