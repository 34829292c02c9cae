package main

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/examples/compare/internal/model"
	"github.com/sluice-go/sluice/examples/compare/internal/object"
	"github.com/sluice-go/sluice/examples/compare/internal/workload"
)

// The objects in this file are broken, each in its own way: the program has to
// notice. They are the ones written by hand, with a flaw before them.

// flaw is what stands before a hand.
type flaw struct {
	object.Hand
	call func(hand object.Hand, op int, r object.Request) (int64, error)
}

func (f flaw) Call(op int, r object.Request) (int64, error) { return f.call(f.Hand, op, r) }

// flawed returns a built-in workload whose hands have a flaw.
func flawed[T any](t object.Type[T], name string, call func(object.Hand, int, object.Request) (int64, error)) *workload.Workload {
	whole := t.ByHand
	t.ByHand = func(state *T, run object.Run) object.Hand { return flaw{whole(state, run), call} }
	return with(t, name)
}

// lawless returns a built-in workload whose hands ask no guard.
func lawless[T any](t object.Type[T], name string) *workload.Workload {
	t.ByHand = func(state *T, run object.Run) object.Hand { return &lawlessHand{run: run} }
	return with(t, name)
}

type lawlessHand struct {
	mu  sync.Mutex
	run object.Run
}

func (h *lawlessHand) Call(op int, r object.Request) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.run(op, r)
}

func (h *lawlessHand) Stop() {}

// with returns a built-in workload with another declared type, whose bodies do
// nothing else.
func with[T any](t object.Type[T], name string) *workload.Workload {
	w := *named(name)
	w.Subject = model.NewSubject(&t)
	w.Work = make([]object.Work, len(w.Work))
	return &w
}

func named(name string) *workload.Workload {
	for _, w := range workload.Builtin {
		if w.Name == name {
			return w
		}
	}
	panic(name)
}

// The operations, by number.
const (
	deposit, withdraw, balance = 0, 1, 2
	read, write                = 0, 1
	put                        = 0
)

func TestBrokenObjects(t *testing.T) {
	stuck := make(chan struct{})
	t.Cleanup(func() { close(stuck) })
	for name, test := range map[string]struct {
		workload *workload.Workload
		want     string
	}{
		"no guard": {lawless(object.Accounts, "account"), "balance of -"},
		"lost deposit": {flawed(object.Accounts, "account", func(h object.Hand, op int, r object.Request) (int64, error) {
			if op == deposit {
				return h.Call(balance, r)
			}
			return h.Call(op, r)
		}), "began with 10 and ended with"},
		"double deposit": {flawed(object.Accounts, "account", func(h object.Hand, op int, r object.Request) (int64, error) {
			if op == deposit {
				h.Call(op, r)
			}
			return h.Call(op, r)
		}), "not within 0 and 10"},
		"never comes back": {flawed(object.Accounts, "account", func(h object.Hand, op int, r object.Request) (int64, error) {
			<-stuck
			return 0, object.ErrStopped
		}), "never came back"},
		"fails": {flawed(object.Accounts, "account", func(object.Hand, int, object.Request) (int64, error) {
			return 0, errors.New("out of order\nfor good")
		}), "out of order"},
		"lost item": {flawed(object.Buffers, "buffer", func(h object.Hand, op int, r object.Request) (int64, error) {
			if op == put && r.Value%10 == 0 {
				return 0, nil
			}
			return h.Call(op, r)
		}), "lost"},
		"doubled item": {flawed(object.Buffers, "buffer", func(h object.Hand, op int, r object.Request) (int64, error) {
			if op == put && r.Value%10 == 0 {
				h.Call(op, r)
			}
			return h.Call(op, r)
		}), "after its item"},
		"changed item": {flawed(object.Buffers, "buffer", func(h object.Hand, op int, r object.Request) (int64, error) {
			if op == put && r.Value%10 == 0 {
				r.Value = -1
			}
			return h.Call(op, r)
		}), "nobody put"},
		"double write": {flawed(object.Stores, "readers-0", func(h object.Hand, op int, r object.Request) (int64, error) {
			if op == write {
				h.Call(op, r)
			}
			return h.Call(op, r)
		}), "were answered"},
		"lost write": {flawed(object.Stores, "readers-0", func(h object.Hand, op int, r object.Request) (int64, error) {
			return h.Call(read, r)
		}), "a writer made version 0 after 0"},
		"wrong key": {flawed(object.Stores, "store", func(h object.Hand, op int, r object.Request) (int64, error) {
			if op == write {
				r.Key = 0
			}
			return h.Call(op, r)
		}), "saw version 0 after"},
	} {
		t.Run(name, func(t *testing.T) {
			s := defaults()
			s.workloads, s.models = []*workload.Workload{test.workload}, model.All[:1]
			s.duration, s.patience = 100*time.Millisecond, 20*time.Millisecond
			var stdout, stderr bytes.Buffer
			if code := s.run(t.Context(), &stdout, &stderr); code != exitWrong {
				t.Errorf("exit code %d, want %d", code, exitWrong)
			}
			if out := stdout.String(); !strings.Contains(out, "WRONG: ") || !strings.Contains(out, test.want) {
				t.Errorf("the table does not say %q:\n%s", test.want, out)
			}
		})
	}
}
