package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sluice-go/sluice/examples/compare/internal/measure"
	"github.com/sluice-go/sluice/examples/compare/internal/model"
	"github.com/sluice-go/sluice/examples/compare/internal/report"
	"github.com/sluice-go/sluice/examples/compare/internal/workload"
)

// TestModels runs every workload under every model for a moment, measured and
// traced, and expects correct results, or to be told why not.
func TestModels(t *testing.T) {
	for _, w := range workload.Builtin {
		for _, m := range model.All {
			for _, callers := range crowds() {
				t.Run(fmt.Sprintf("%s/%s/%d", w.Name, m.Name, callers), func(t *testing.T) {
					tally := measure.New(w, m, callers, time.Minute)
					// As often as it takes on a machine that has other things to do.
					for tally.Latency.TotalCount() == 0 && tally.Problem == nil {
						tally.Measure(t.Context(), measure.Stretch(15*time.Millisecond))
					}
					for tally.Threads.Running == 0 && tally.Problem == nil {
						tally.Trace(t.Context(), 15*time.Millisecond)
					}
					row := report.NewRow(tally)
					if row.Problem != "" {
						t.Fatal(row.Problem)
					}
					if row.Cannot != "" {
						return
					}
					if row.Ops == 0 || row.P50 == 0 || row.P999 < row.P50 || row.Fairness <= 0 || row.Fairness > 1.001 {
						t.Errorf("the figures cannot be right: %+v", row)
					}
					checkThreads(t, tally)
				})
			}
		}
	}
}

// crowds are the numbers of callers that TestModels tries.
func crowds() []int {
	if testing.Short() {
		return []int{3}
	}
	return []int{1, 3, 33}
}

// checkThreads expects of the figures what the model's family promises.
func checkThreads(t *testing.T, tally *measure.Tally) {
	t.Helper()
	threads, rule := tally.Threads, tally.Model.Rule
	switch {
	case threads.Running < 1 || threads.Used < threads.Running || threads.Used < threads.Blocked:
		t.Errorf("the figures contradict each other: %+v", threads)
	case tally.Model.Family == model.PerObject && threads.Running > tally.Workload.Objects:
		t.Errorf("%d bodies ran at once in %d objects", threads.Running, tally.Workload.Objects)
	case tally.Model.Family != model.PerRequest && !rule.Callers && threads.Blocked > 0:
		t.Errorf("%d threads were blocked", threads.Blocked)
	case rule.Pool > 0 && threads.Used > rule.Pool:
		t.Errorf("%d threads of a pool of %d", threads.Used, rule.Pool)
	case rule.Callers && threads.Used > tally.Callers:
		t.Errorf("%d threads of %d callers", threads.Used, tally.Callers)
	}
}

func TestWrongArguments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(file, []byte("name: x\nobject: store\noperations:\n  read: {share: 1.5}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args string
		want []string // flag, value, what is allowed
	}{
		{"-workloads account,nonsense", []string{"-workloads", `"account,nonsense"`, `"nonsense" is unknown`, "account, readers-0, readers-1us"}},
		{"-workloads=", []string{"-workloads", `""`, "account, readers-0"}},
		{"-models goroutine", []string{"-models", `"goroutine"`, "by-hand", "monitor-pool", "sync-actors"}},
		{"-models", []string{"-models", "needs an argument", "-callers"}},
		{"-callers 0", []string{"-callers", `"0"`, "whole number from 1 to 10000"}},
		{"-callers -3", []string{"-callers", `"-3"`, "whole number"}},
		{"-callers 1.5", []string{"-callers", `"1.5"`, "whole number"}},
		{"-callers 10001", []string{"-callers", `"10001"`, "10000"}},
		{"-callers 99999999999999999999", []string{"-callers", "whole number"}},
		{"-duration 0s", []string{"-duration", `"0s"`, "above 0"}},
		{"-duration -1s", []string{"-duration", `"-1s"`, "above 0"}},
		{"-duration 5", []string{"-duration", `"5"`, "2s"}},
		{"-json=perhaps", []string{"-json", `"perhaps"`, "true or false"}},
		{"-verbose", []string{"-verbose", "-callers, -duration, -file, -html, -json, -models, -perfetto, -sweep, -v, -workloads"}},
		{"-json account", []string{`"account"`, "-workloads"}},
		{"-html " + filepath.Join(t.TempDir(), "nowhere", "r.html"), []string{"-html", "nowhere", "no such file"}},
		{"-perfetto " + filepath.Join(t.TempDir(), "nowhere", "r.json"), []string{"-perfetto", "nowhere", "no such file"}},
		{"-file " + filepath.Join(t.TempDir(), "nothing"), []string{"nothing", "no such file"}},
		{"-file " + file, []string{"wrong.yaml:4: operations.read.share:", `"1.5" must be a number from 0 to 1`}},
		{"-file workload.yaml -workloads account", []string{"-workloads", `"account" is unknown`, "tills, catalog"}},
	} {
		t.Run(test.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), strings.Fields(test.args), &stdout, &stderr); code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if stdout.Len() > 0 {
				t.Errorf("standard output: %s", &stdout)
			}
			line, rest, _ := strings.Cut(stderr.String(), "\n")
			if line == "" || rest != "" {
				t.Errorf("want one line, got %q", stderr.String())
			}
			for _, want := range test.want {
				if !strings.Contains(line, want) {
					t.Errorf("%q does not say %q", line, want)
				}
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, arg := range []string{"-h", "-help", "--help"} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{arg}, &stdout, &stderr); code != exitOK || stderr.Len() > 0 {
			t.Errorf("%s: exit code %d, standard error %q", arg, code, &stderr)
		}
		want := append(modelNames(), workloadNames(workload.Builtin)...)
		want = append(want, "-workloads", "-models", "-callers", "-duration", "-file", "-html", "-json", "-sweep", "-v", "Jain's index")
		for _, word := range want {
			if !strings.Contains(stdout.String(), word) {
				t.Errorf("%s does not explain %s", arg, word)
			}
		}
	}
}

func TestChoice(t *testing.T) {
	s, err := parse(strings.Fields("-workloads readers,account,readers-1us -models borrowed,by-hand -callers 3 -duration 2s"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"readers-0", "readers-1us", "readers-100us", "readers-1ms", "account"}
	if names := workloadNames(s.workloads); !slices.Equal(names, want) {
		t.Errorf("workloads %v, want %v", names, want)
	}
	if len(s.models) != 2 || s.models[0].Name != "borrowed" || s.models[1].Name != "by-hand" {
		t.Errorf("models %v", s.models)
	}
	if s.callers != 3 || s.duration != 2*time.Second {
		t.Errorf("%d callers, %v", s.callers, s.duration)
	}
}

// object is a value of JSON.
type jsonObject = map[string]any

func TestJSON(t *testing.T) {
	var stdout, stderr bytes.Buffer
	args := strings.Fields("-json -sweep -duration 60ms -workloads account,buffer -models channel,borrowed -callers 2")
	if code := run(t.Context(), args, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, &stdout, &stderr)
	}
	d := json.NewDecoder(&stdout)
	var r jsonObject
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if d.More() {
		t.Error("there is more than one JSON value")
	}
	fields(t, r, "go gomaxprocs cores seconds_per_run turns ok interrupted workloads")
	tables := r["workloads"].([]any)
	if len(tables) != 2 {
		t.Fatalf("%d workloads, want 2", len(tables))
	}
	common := "workload about mix arrival callers objects operations has_read_share latency_of_every cores runs by_callers"
	account, buffer := tables[0].(jsonObject), tables[1].(jsonObject)
	fields(t, account, common+" by_read_share")
	fields(t, buffer, common)
	figures := "model family ops seconds ops_per_second ops_per_second_low ops_per_second_high steady ratio p50_ns p99_ns p999_ns cpu_ns_per_op allocs_per_op fairness threads ok"
	rows(t, account["runs"], 2, figures)
	rows(t, account["by_callers"], 2*len(sweepCallers), figures+" x")
	rows(t, account["by_read_share"], 2*len(sweepReads), figures+" x")
}

func rows(t *testing.T, list any, n int, names string) {
	t.Helper()
	all := list.([]any)
	if len(all) != n {
		t.Errorf("%d rows, want %d", len(all), n)
	}
	for _, row := range all {
		row := row.(jsonObject)
		fields(t, row, names)
		fields(t, row["threads"].(jsonObject), "used blocked running mean_running goroutines")
	}
}

// fields expects an object of JSON to have the given fields and no others.
func fields(t *testing.T, object jsonObject, names string) {
	t.Helper()
	want := strings.Fields(names)
	for _, name := range want {
		if _, ok := object[name]; !ok {
			t.Errorf("field %q is missing", name)
		}
	}
	for name := range object {
		if !slices.Contains(want, name) {
			t.Errorf("field %q is new", name)
		}
	}
}

func TestTable(t *testing.T) {
	var stdout, stderr bytes.Buffer
	args := strings.Fields("-v -models all -duration 300ms -workloads readers-0 -callers 2")
	if code := run(t.Context(), args, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, &stdout, &stderr)
	}
	_, table, _ := strings.Cut(stdout.String(), "\nreaders-0: ")
	lines := strings.Split(table, "\n")[3:]
	head := lines[0]
	for i, m := range model.All {
		line := lines[1+i]
		if !strings.HasPrefix(strings.TrimSpace(line), m.Name) || !strings.HasSuffix(line, "ok") {
			t.Errorf("row %q of %s", line, m.Name)
		}
		// Figures end where the titles of their columns do.
		for _, title := range []string{"ops/s", "ratio", "p50 µs", "p99.9 µs", "CPU µs/op", "fair", "threads", "blocked", "at once", "made"} {
			end := len([]rune(head[:strings.Index(head, title)+len(title)]))
			if cells := []rune(line); cells[end-1] == ' ' || cells[end] != ' ' {
				t.Errorf("column %q is not aligned:\n%s\n%s", title, head, line)
			}
		}
	}
}

// TestOneScreen expects a sentence and a row of figures for each model, of the width and height
// of one screen, without colors as it is no terminal.
func TestOneScreen(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), strings.Fields("-duration 90ms"), &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, &stdout, &stderr)
	}
	text := strings.TrimRight(stdout.String(), "\n")
	lines := strings.Split(text, "\n")
	// A machine that has other things to do may end no call of a model: that takes a line more.
	if len(lines) > 40+strings.Count(text, "see below") || strings.Contains(text, "\x1b") {
		t.Errorf("%d lines, colors: %t:\n%s", len(lines), strings.Contains(text, "\x1b"), text)
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, w := range workload.Default {
		if n := strings.Count(text, w.Name+" "); n != 2 {
			t.Errorf("%s is there %d times, want a sentence and a row", w.Name, n)
		}
	}
	for _, f := range model.Families {
		if n := strings.Count(text, string(f.Name)); n < len(workload.Default) || n > 2*len(workload.Default) {
			t.Errorf("%s is there %d times:\n%s", f.Name, n, text)
		}
	}
}

// TestFiles expects a page and a trace, and to be told where they are.
func TestFiles(t *testing.T) {
	page, trace := filepath.Join(t.TempDir(), "r.html"), filepath.Join(t.TempDir(), "r.json")
	var stdout, stderr bytes.Buffer
	args := strings.Fields("-duration 20ms -workloads account -models by-hand,monitor-pool,dedicated,sync-spawned -html " + page + " -perfetto " + trace)
	if code := run(t.Context(), args, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, &stdout, &stderr)
	}
	for file, wants := range map[string][]string{
		page:  {"<h1>Models of concurrency, compared</h1>", "conflicts with ", "cannot: all 4 threads", "</html>"},
		trace: {`"traceEvents"`, "account, Synchronizer", "account, by-hand", "conflicts with "},
	} {
		if !strings.Contains(stderr.String(), " to "+file+"\n") {
			t.Errorf("%s does not say %s", &stderr, file)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s does not say %q", file, want)
			}
		}
	}
}

// TestCannot expects a row that says why a model does not run a workload: here, that
// callers who wait for room or items would have all threads of the pool.
func TestCannot(t *testing.T) {
	var stdout, stderr bytes.Buffer
	args := strings.Fields("-duration 30ms -workloads buffer,hot -models monitor-pool -callers 8")
	if code := run(t.Context(), args, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, &stdout, &stderr)
	}
	if text := stdout.String(); strings.Count(text, "cannot: ") != 1 || !strings.Contains(text, "all 4 threads of the pool can come to wait") {
		t.Errorf("the table of the buffer, and no other, does not say why not:\n%s", text)
	}
}

// TestFile runs the workloads of the file that users start from.
func TestFile(t *testing.T) {
	var stdout, stderr bytes.Buffer
	args := strings.Fields("-v -file workload.yaml -duration 60ms -models by-hand,dedicated,sync-pool")
	if code := run(t.Context(), args, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, &stdout, &stderr)
	}
	for _, want := range []string{"tills: ", "16 callers of 4 objects", "poisson, 4000 per second", "catalog: ", "write 5 % (50µs of CPU)"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the text does not say %q:\n%s", want, &stdout)
		}
	}
}

// interrupter is a standard error that interrupts the program when a text is
// written to it.
type interrupter struct {
	bytes.Buffer
	at        string
	interrupt func()
}

func (i *interrupter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), i.at) {
		i.interrupt()
	}
	return i.Buffer.Write(p)
}

// TestInterrupt expects what was measured until then, in JSON and on the page.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stderr := &interrupter{at: "measuring account", interrupt: cancel}
	var stdout bytes.Buffer
	file := filepath.Join(t.TempDir(), "report.html")
	args := strings.Fields("-json -duration 30ms -models by-hand,borrowed -callers 2 -html " + file)
	if code := run(ctx, args, &stdout, stderr); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, &stdout, stderr)
	}
	var r report.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || len(r.Workloads) == 0 || len(r.Workloads) > 2 {
		t.Fatalf("interrupted %t after %d workloads", r.Interrupted, len(r.Workloads))
	}
	if w := r.Workloads[0]; w.Name != "readers-1ms" || len(w.Runs) != 2 {
		t.Errorf("%s with %d models was finished, want readers-1ms with 2", w.Name, len(w.Runs))
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"The run was interrupted", `id="readers-1ms"`, "</html>"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
