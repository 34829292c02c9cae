package objecttest

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, for its TestMain, and fails if goroutines are left
// when they have ended: of systems that were not closed, or bodies that do not return.
//
//	func TestMain(m *testing.M) { objecttest.Main(m) }
//
// Where benchmarks are run nothing is looked for: they may keep their systems.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 && flag.Lookup("test.bench").Value.String() == "" {
		if err := NoLeaks(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// NoLeaks returns an error that lists the goroutines that are left over, if there are any
// besides the caller's. It gives them three seconds, as protoactor has one that ends by itself.
func NoLeaks() (err error) {
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		if err = goleak.Find(); err == nil {
			return nil
		}
	}
	return err
}
