package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestModels runs every workload under every model for a moment, and expects
// correct results.
func TestModels(t *testing.T) {
	for i := range workloads {
		w := &workloads[i]
		for _, m := range models {
			for _, callers := range []int{1, 2, 3, 8, 33} {
				t.Run(fmt.Sprintf("%s/%s/%d", w.name, m.name, callers), func(t *testing.T) {
					tally := newTally(m.name)
					tally.measure(t.Context(), w, callers, 30*time.Millisecond, time.Minute)
					if tally.problem != nil {
						t.Fatal(tally.problem)
					}
					if tally.ops == 0 || tally.latency.TotalCount() == 0 {
						t.Errorf("%d operations, %d latencies", tally.ops, tally.latency.TotalCount())
					}
				})
			}
		}
	}
}

func TestWrongArguments(t *testing.T) {
	for _, test := range []struct {
		args string
		want []string // flag, value, what is allowed
	}{
		{"-workloads bank,nonsense", []string{"-workloads", `"bank,nonsense"`, `"nonsense" is unknown`, "bank, buffer, readers-0, readers-1us, readers-1ms"}},
		{"-workloads=", []string{"-workloads", `""`, "bank, buffer"}},
		{"-models goroutine", []string{"-models", `"goroutine"`, "monitor, channel, protoactor, sluice, sluice-dedicated"}},
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
		{"-verbose", []string{"-verbose", "-callers, -duration, -json, -models, -workloads"}},
		{"-json bank", []string{`"bank"`, "-workloads"}},
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
		want := append(modelNames(), "-workloads", "-models", "-callers", "-duration", "-json", "bank", "buffer", "readers-1ms")
		for _, word := range want {
			if !strings.Contains(stdout.String(), word) {
				t.Errorf("%s does not explain %s", arg, word)
			}
		}
	}
}

func TestChoice(t *testing.T) {
	s, err := parse(strings.Fields("-workloads readers,bank,readers-1us -models sluice,monitor -callers 3 -duration 2s"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range s.workloads {
		names = append(names, w.name)
	}
	if want := []string{"readers-0", "readers-1us", "readers-1ms", "bank"}; !slices.Equal(names, want) {
		t.Errorf("workloads %v, want %v", names, want)
	}
	if want := []model{sluice, monitor}; !slices.Equal(s.models, want) {
		t.Errorf("models %v, want %v", s.models, want)
	}
	if s.callers != 3 || s.duration != 2*time.Second {
		t.Errorf("%d callers, %v", s.callers, s.duration)
	}
}

func TestJSON(t *testing.T) {
	var stdout, stderr bytes.Buffer
	args := strings.Fields("-json -duration 30ms -workloads bank,readers-0 -models channel,sluice -callers 2")
	if code := run(t.Context(), args, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, &stdout, &stderr)
	}
	d := json.NewDecoder(&stdout)
	var r map[string]any
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if d.More() {
		t.Error("there is more than one JSON value")
	}
	fields(t, r, "go gomaxprocs cores callers seconds_per_run turns ok interrupted workloads")
	tables := r["workloads"].([]any)
	if len(tables) != 2 {
		t.Fatalf("%d workloads, want 2", len(tables))
	}
	for _, table := range tables {
		table := table.(map[string]any)
		fields(t, table, "workload about operations latency_of_every cores runs")
		rows := table["runs"].([]any)
		if len(rows) != 2 {
			t.Fatalf("%d runs, want 2", len(rows))
		}
		for _, row := range rows {
			row := row.(map[string]any)
			fields(t, row, "model ops seconds ops_per_second p50_ns p99_ns allocs_per_op cpu_ns_per_op ratio ok")
			if row["ops"].(float64) <= 0 || row["ratio"].(float64) <= 0 {
				t.Errorf("row %v", row)
			}
		}
	}
}

// fields expects an object of JSON to have the given fields and no others.
func fields(t *testing.T, object map[string]any, names string) {
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
	args := strings.Fields("-duration 30ms -workloads buffer -callers 2")
	if code := run(t.Context(), args, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, &stdout, &stderr)
	}
	_, table, _ := strings.Cut(stdout.String(), "\nbuffer: ")
	lines := strings.Split(table, "\n")[2:]
	head := lines[0]
	for i, m := range models {
		line := lines[1+i]
		if !strings.HasPrefix(strings.TrimSpace(line), string(m.name)) || !strings.HasSuffix(line, "ok") {
			t.Errorf("row %q of %s", line, m.name)
		}
		// Figures end where the titles of their columns do.
		for _, title := range []string{"ops/s", "p50 µs", "p99 µs", "allocs/op", "CPU µs/op", "ratio"} {
			end := len([]rune(head[:strings.Index(head, title)+len(title)]))
			if cells := []rune(line); cells[end-1] == ' ' || cells[end] != ' ' {
				t.Errorf("column %q is not aligned:\n%s\n%s", title, head, line)
			}
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

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stderr := &interrupter{at: "measuring buffer", interrupt: cancel}
	var stdout bytes.Buffer
	args := strings.Fields("-json -duration 30ms -models monitor,sluice -callers 2")
	if code := run(ctx, args, &stdout, stderr); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, &stdout, stderr)
	}
	var r report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || len(r.Workloads) == 0 || len(r.Workloads) > 2 {
		t.Fatalf("interrupted %t after %d workloads", r.Interrupted, len(r.Workloads))
	}
	if w := r.Workloads[0]; w.Workload != "bank" || len(w.Runs) != 2 {
		t.Errorf("%s with %d models was finished, want bank with 2", w.Workload, len(w.Runs))
	}
}
