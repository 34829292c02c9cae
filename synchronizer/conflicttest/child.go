package conflicttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Pairs run beside each other in a child process, the test binary again: so what ends it
// ends no test, and it can have the race detector when the test has not. It is told what
// to do by two variables: which call of Check it is for, and the directory in which it
// writes how far it has come, line by line, and the detector its reports.
const (
	callVariable      = "SLUICE_CONFLICTTEST"
	directoryVariable = "SLUICE_CONFLICTTEST_DIRECTORY"
	progressFile      = "progress"
	raceLog           = "races"
)

// child says that this is one.
var child = os.Getenv(callVariable) != ""

// patience is how long two bodies may take at once.
var patience = 20 * time.Second

// progress is a line that a child writes.
type progress struct {
	Reached bool // the call of Check
	Pair    pair
	Begun   []line `json:",omitempty"` // a trial
	Ended   bool
	Found   *finding `json:",omitempty"`
	Err     string   `json:",omitempty"`
}

// report is the child's part: it checks the pairs about which there are no lines yet. A
// pair that has begun and not ended is one that the last child has not survived.
func (c *checker[T]) report(directory string) {
	path := filepath.Join(directory, progressFile)
	_, before := read(path)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	write := func(p progress) {
		text, err := json.Marshal(p)
		if err == nil {
			_, err = file.Write(append(text, '\n'))
		}
		if err != nil {
			panic(err)
		}
	}
	write(progress{Reached: true})
	log := &detector{path: filepath.Join(directory, raceLog+"."+strconv.Itoa(os.Getpid()))}
	for _, p := range c.pairs() {
		if _, done := before[p]; done {
			continue
		}
		stuck := time.AfterFunc(patience, func() {
			debug.SetTraceback("all")
			panic(fmt.Sprintf("conflicttest: the two bodies have not returned after %v", patience))
		})
		found, err := c.parallel(p, func(trial []line) {
			stuck.Reset(patience)
			write(progress{Pair: p, Begun: trial})
		}, log.last)
		stuck.Stop()
		end := progress{Pair: p, Ended: true, Found: found}
		if err != nil {
			end.Err = err.Error()
		}
		write(end)
	}
}

// inChild checks pairs beside each other, those excepted of which more need not be known.
func (c *checker[T]) inChild(t testing.TB, call string, except map[pair]bool, report func(*finding, error) bool) {
	t.Helper()
	directory := t.TempDir()
	path := filepath.Join(directory, progressFile)
	file, err := os.Create(path)
	if err != nil {
		t.Errorf("conflicttest: %v", err)
		return
	}
	left := 0
	for _, p := range c.pairs() {
		if !except[p] {
			left++
			continue
		}
		text, _ := json.Marshal(progress{Pair: p, Ended: true})
		file.Write(append(text, '\n'))
	}
	file.Close()
	if left == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit(t))
	defer cancel()
	binary, why := raceBinary(ctx, directory)
	if binary == "" {
		binary = own()
		t.Logf("conflicttest: %s: data races have not been looked for, only outcomes: %s", c.typ.Name(), why)
	}
	said := map[pair]bool{}
	for range left { // every child but the last ends with a pair
		output, ended := run(ctx, binary, t.Name(), call, directory)
		reached, pairs := read(path)
		if !reached {
			t.Errorf("conflicttest: no pair has been run beside each other: the child process has not come to the check (%v):\n%s", ended, output)
			return
		}
		if ctx.Err() != nil {
			t.Errorf("conflicttest: the time of the test is over before all pairs have been run beside each other")
			return
		}
		crashed := false
		for _, p := range c.pairs() {
			last, begun := pairs[p]
			if !begun || said[p] || except[p] {
				continue
			}
			said[p] = true
			switch {
			case !last.Ended:
				crashed = true
				report(&finding{
					Problem: fmt.Sprintf("table of %s: %s are declared compatible, but run at once they end the process (%v)", c.typ.Name(), c.both(p), ended),
					Lines:   append(last.Begun, line{"output", cause(output)}),
				}, nil)
			case last.Err != "":
				report(nil, errors.New(last.Err))
			default:
				report(last.Found, nil)
			}
		}
		if !crashed {
			if len(said) < left {
				t.Errorf("conflicttest: only %d of %d pairs have been run beside each other: the child process ended (%v):\n%s", len(said), left, ended, output)
			}
			return
		}
	}
}

// limit returns how long a child may take, what has to be built for it included.
func limit(t testing.TB) time.Duration {
	if timed, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := timed.Deadline(); ok {
			return time.Until(end) * 9 / 10
		}
	}
	return 10 * time.Minute
}

// directory is that of the package's tests, which one of these may leave.
var directory, _ = os.Getwd()

// own is the path of this binary.
func own() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// built is the binary of these tests with the race detector, once there is one, or why
// there is none.
var built struct {
	mu        sync.Mutex
	path, why string
}

// raceBinary returns a binary of these tests with the race detector, or says why there
// is none. What it has to build is built once, if there is a place for it: beside this
// binary, where that is one that the go command has made and will remove.
func raceBinary(ctx context.Context, at string) (path, why string) {
	if detecting {
		return own(), ""
	}
	if testing.Short() {
		return "", "the test is run with -short"
	}
	beside := filepath.Dir(own())
	if !strings.Contains(beside, "go-build") {
		return build(ctx, at)
	}
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.path == "" && built.why == "" {
		built.path, built.why = build(ctx, beside)
	}
	return built.path, built.why
}

func build(ctx context.Context, at string) (path, why string) {
	path = filepath.Join(at, "conflicttest.test")
	args := []string{"test", "-race", "-vet=off", "-c", "-o", path}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" {
				args = append(args, "-tags="+s.Value)
			}
		}
	}
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir = directory
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", strings.TrimSpace(fmt.Sprintf("go %s: %v\n%s", strings.Join(args, " "), err, output))
	}
	return path, ""
}

// run runs the child and returns what it has written, and how it ended.
func run(ctx context.Context, binary, test, call, at string) (output string, ended error) {
	args := []string{"-test.run=" + pattern(test), "-test.count=1", "-test.timeout=0"}
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = directory
	cmd.Env = append(os.Environ(), callVariable+"="+call, directoryVariable+"="+at,
		// Of two like races the detector reports one, unless told otherwise; and here the
		// second may be the smaller one.
		"GORACE="+os.Getenv("GORACE")+" suppress_equal_stacks=0 suppress_equal_addresses=0 halt_on_error=0 atexit_sleep_ms=0 log_path="+filepath.Join(at, raceLog))
	text, err := cmd.CombinedOutput()
	if err == nil {
		err = errors.New("without an error")
	}
	return string(text), err
}

// pattern returns the one of -test.run for a test, or a part of one.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// read returns the last line of every pair, and whether a child has come to the check.
func read(path string) (reached bool, pairs map[pair]progress) {
	pairs = map[pair]progress{}
	text, _ := os.ReadFile(path)
	for l := range bytes.Lines(text) {
		var p progress
		if json.Unmarshal(l, &p) != nil {
			continue // it was ended in the middle
		}
		if p.Reached {
			reached = true
		} else {
			pairs[p.Pair] = p
		}
	}
	return reached, pairs
}

// cause returns the beginning of what the runtime says about the end of a process.
func cause(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "fatal error:") || strings.HasPrefix(l, "panic:") {
			lines = lines[i:]
			break
		}
	}
	return strings.Join(lines[:min(len(lines), 30)], "\n")
}

// calls numbers the calls of Check in a test.
var calls counts

type counts struct {
	mu sync.Mutex
	of map[testing.TB]int
}

// next returns what tells a call from others, in this process and in a child.
func (c *counts) next(t testing.TB) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[testing.TB]int{}
	}
	if c.of[t] == 0 {
		t.Cleanup(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.of, t)
		})
	}
	c.of[t]++
	return fmt.Sprintf("%s#%d", t.Name(), c.of[t])
}
