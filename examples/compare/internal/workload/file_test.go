package workload

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const whole = `# a comment
name: tills
object: account
callers: 16
objects: 3
operations:
  withdraw: {share: 0.25, cpu: 20us}
  deposit: {share: 0.25}
  balance: {share: 0.5, wait: 1ms}
arrival:
  pattern: even
  rate: 500
---
name: plain
object: store
keys: 8
operations: {read: {share: 1}}
`

func TestParse(t *testing.T) {
	all, err := Parse("f.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 {
		t.Fatalf("%d workloads, want 2", len(all))
	}
	w := all[0]
	if w.Name != "tills" || w.Subject.Name != "account" || w.Callers != 16 || w.Objects != 3 || w.Keys != 1 {
		t.Errorf("%+v", w)
	}
	if w.Arrival != (Arrival{Even, 500}) {
		t.Errorf("arrival %v", w.Arrival)
	}
	if got, want := w.Mix(), "deposit 25 % (nothing), withdraw 25 % (20µs of CPU), balance 50 % (1ms of waiting)"; got != want {
		t.Errorf("mix %q, want %q", got, want)
	}
	if plain := all[1]; plain.Keys != 8 || plain.Callers != 0 || plain.Arrival.Rate != 0 {
		t.Errorf("%+v", plain)
	}
}

// TestParseErrors changes one line of a right file after the other.
func TestParseErrors(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{"withdraw: {share: 0.25", "steal: {share: 0.25", "f.yaml:7: operations.steal: is unknown; allowed are balance, deposit, withdraw"},
		{"deposit: {share: 0.25}", "deposit: {share: 1.25}", `f.yaml:8: operations.deposit.share: "1.25" must be a number from 0 to 1`},
		{"deposit: {share: 0.25}", "deposit: {share: -0.1}", `f.yaml:8: operations.deposit.share: "-0.1" must be a number from 0 to 1`},
		{"deposit: {share: 0.25}", "deposit: {share: .nan}", `f.yaml:8: operations.deposit.share: ".nan" must be a number from 0 to 1`},
		{"deposit: {share: 0.25}", "deposit: {share: some}", `f.yaml:8: operations.deposit.share: "some" must be a number from 0 to 1`},
		{"deposit: {share: 0.25}", "deposit: 0.25", "f.yaml:8: operations.deposit: must have fields: cpu, share, wait"},
		{"deposit: {share: 0.25}", "deposit: {share: 0.35}", "f.yaml:7: operations: the shares add up to 1.1, and must to 1"},
		{"deposit: {share: 0.25}", "withdraw: {share: 0.25}", "f.yaml:8: operations.withdraw: is there twice"},
		{"withdraw: {share: 0.25, cpu: 20us}", "withdraw: {share: 0.2}\n  # but", "f.yaml:7: operations: the shares add up to 0.95"},
		{"balance: {share: 0.5", "balance: {share: 0.5, share: 0.5", "f.yaml:9: operations.balance.share: is there twice"},
		{"cpu: 20us", "cpu: 20", `f.yaml:7: operations.withdraw.cpu: "20" must be a time`},
		{"cpu: 20us", "cpu: 20h", `f.yaml:7: operations.withdraw.cpu: "20h" must be a time from 0 to 10s`},
		{"wait: 1ms", "sleep: 1ms", "f.yaml:9: operations.balance.sleep: is unknown; allowed are cpu, share, wait"},
		{"callers: 16", "callers: 0", `f.yaml:4: callers: "0" must be a whole number from 1 to 10000`},
		{"callers: 16", "callers: many", `f.yaml:4: callers: "many" must be`},
		{"callers: 16", "keys: 16", "f.yaml:2: keys: must be 1: a account has none"},
		{"object: account", "object: bank", `f.yaml:3: object: "bank" is unknown; allowed are account, store, buffer`},
		{"object: account", "subject: account", "f.yaml:3: subject: is unknown"},
		{"object: account\n", "", "f.yaml:2: object: is missing"},
		{"name: tills\n", "", "f.yaml:2: name: is missing"},
		{"name: tills", "name: [tills]", "f.yaml:2: name: must be a text"},
		{"name: plain", "name: tills", `f.yaml:14: name: "tills" is there twice`},
		{"operations: {read: {share: 1}}", "", "f.yaml:14: operations: is missing"},
		{"pattern: even", "pattern: odd", `f.yaml:11: arrival.pattern: "odd" is unknown; allowed are closed, even, bursts, poisson`},
		{"rate: 500", "rate: 0", `f.yaml:12: arrival.rate: "0" must be a number above 0`},
		{"  rate: 500\n", "", "f.yaml:11: arrival.rate: is missing"},
		{"pattern: even", "pattern: closed", "f.yaml:11: arrival.rate: means nothing"},
		{"callers: 16", "callers: [16", "f.yaml:"},
		{"objects: 3", "objects: 3: 4", "f.yaml:5: syntax: mapping values are not allowed in this context"},
		{"objects: 3", "\tobjects: 3", "f.yaml:4: syntax: found a tab character that violates indentation"},
		{whole, "", "f.yaml:1: name: there is no workload"},
		{whole, "- 1", "f.yaml:1: document: must have fields"},
		{whole, "--- {}", "f.yaml:1: name: is missing"},
		{whole, "--- null", "f.yaml:1: document: must have fields"},
		{whole, "name: b\nobject: buffer\noperations: {put: {share: 1}}", "f.yaml:3: operations.get.share: must be above 0"},
		{whole, "name: b\nobject: buffer\nobjects: 2\noperations: {put: {share: 0.5}, get: {share: 0.5}}", "f.yaml:4: objects: must be 1 for buffers"},
		{whole, "name: a\nobject: account\noperations: {deposit: {share: 1}}", "f.yaml:3: operations.deposit.share: must be that of withdraw"},
		{whole, "name: s\nobject: store\nobjects: 1000\nkeys: 1000\noperations: {read: {share: 1}}", "f.yaml:1: keys: must be no more than 10000"},
		{"name: tills", "name: \x00", "f.yaml:1: syntax: control characters are not allowed"},
	} {
		t.Run(test.to, func(t *testing.T) {
			text := strings.Replace(whole, test.from, test.to, 1)
			all, err := Parse("f.yaml", []byte(text))
			var e *FileError
			if !errors.As(err, &e) || all != nil {
				t.Fatalf("got %v, %v of\n%s", all, err, text)
			}
			if !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add("name: x\nobject: buffer\noperations: {put: {share: .5}, get: {share: .5}}")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Parse("f.yaml", []byte(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		for _, w := range all {
			if problem := w.Subject.Check(w.Setting(2)); problem != nil || len(w.Shares) != len(w.Subject.Operations) {
				t.Errorf("%+v: %v", w, problem)
			}
		}
	})
}

func TestWithReads(t *testing.T) {
	account := Builtin[0]
	for share, want := range map[float64][3]float64{0: {.5, .5, 0}, .5: {.25, .25, .5}, 1: {0, 0, 1}} {
		w := account.WithReads(share)
		if got := [3]float64(w.Shares); got != want {
			t.Errorf("%v with reads %v, want %v", got, share, want)
		}
		if back := w.WithReads(.5); [3]float64(back.Shares) != [3]float64{.25, .25, .5} {
			t.Errorf("and back: %v", back.Shares)
		}
	}
	if _, ok := (&Workload{Subject: subject("buffer"), Shares: []float64{.5, .5}}).ReadShare(); ok {
		t.Error("a buffer has reads")
	}
}

// TestClock expects each pattern to keep its rate, and callers to be due when it says.
func TestClock(t *testing.T) {
	start := time.Now().Add(-time.Hour) // so that nobody waits
	const callers, n = 4, 1000
	for _, pattern := range []Pattern{Even, Bursts, Poisson} {
		a := Arrival{pattern, 100}
		var first [callers]time.Duration
		for i := range callers {
			c := a.Clock(i, callers, start)
			due, _ := c.Wait(t.Context())
			first[i] = due.Sub(start)
			for range n {
				due, _ = c.Wait(t.Context())
			}
			if took := due.Sub(start); took < 30*time.Second || took > 50*time.Second {
				t.Errorf("%s: %d requests at 25 per second took %v", pattern, n, took)
			}
		}
		switch pattern {
		case Even:
			if first != [callers]time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond} {
				t.Errorf("%s begins %v", pattern, first)
			}
		case Bursts:
			if first != [callers]time.Duration{} {
				t.Errorf("%s begins %v", pattern, first)
			}
		}
	}
	if (Arrival{}).Clock(0, 1, start) != nil {
		t.Error("who calls as soon as answered has a clock")
	}
}
