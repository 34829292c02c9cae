package conflicttest_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.short", "false")      // which would leave out what most of this is about
	flag.Set("rapid.nofailfile", "true") // what is found here is meant to be there
	objecttest.Main(m)
}

type None = activeobject.None

// play is a test within a test, or an example, of which it has the name: what it says is
// kept.
type play struct {
	testing.TB
	name     string
	cleanups []func()
	failures []string
	logs     []string
}

// played runs a test to its end, and returns it.
func played(t testing.TB, test func(t testing.TB)) *play {
	p := &play{name: t.Name()}
	done := make(chan None)
	go func() {
		defer close(done)
		test(p)
	}()
	<-done
	for _, f := range p.cleanups {
		f()
	}
	return p
}

func (p *play) Helper()                  {}
func (p *play) Name() string             { return p.name }
func (p *play) Context() context.Context { return context.Background() }
func (p *play) Cleanup(f func())         { p.cleanups = append(p.cleanups, f) }
func (p *play) SkipNow()                 { runtime.Goexit() }

func (p *play) TempDir() string {
	dir, err := os.MkdirTemp("", "conflicttest")
	if err != nil {
		panic(err)
	}
	p.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (p *play) Errorf(format string, args ...any) {
	p.failures = append(p.failures, fmt.Sprintf(format, args...))
}

func (p *play) Logf(format string, args ...any) {
	p.logs = append(p.logs, fmt.Sprintf(format, args...))
}

func (p *play) said() string { return strings.Join(p.failures, "\n") }
