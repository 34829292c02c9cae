package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// The models in this file are broken, each in its own way: the program has to
// notice.

// generousTeller asks nobody whether a withdrawal is covered.
type generousTeller struct{ *monitorTeller }

func (t generousTeller) withdraw(_ context.Context, amount int64) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.account.Withdraw(amount)
}

// forgetfulTeller forgets a deposit now and then.
type forgetfulTeller struct{ *monitorTeller }

func (t forgetfulTeller) deposit(ctx context.Context, amount int64) (int64, error) {
	if balance, _ := t.monitorTeller.deposit(ctx, 0); balance%2 == 0 {
		return balance, nil
	}
	return t.monitorTeller.deposit(ctx, amount)
}

// eagerTeller carries out a withdrawal of which it says that it was stopped.
type eagerTeller struct{ *monitorTeller }

func (t eagerTeller) withdraw(ctx context.Context, amount int64) (int64, error) {
	balance, err := t.monitorTeller.withdraw(ctx, amount)
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.account.Withdraw(amount)
	}
	return balance, err
}

// sleepyTeller does not notice that it shall stop.
type sleepyTeller struct{ *monitorTeller }

func (t sleepyTeller) stop() {}

// failingTeller cannot do anything.
type failingTeller struct{ *monitorTeller }

func (failingTeller) withdraw(context.Context, int64) (int64, error) {
	return 0, errors.New("out of order\nfor good")
}

func brokenBank(broken func(*monitorTeller) (teller, host)) workload {
	w := bankWorkload
	w.open = func(_ model, callers int) (*session, error) {
		var b bank
		for i := range b.accounts {
			b.accounts[i] = &account{balance: opening}
			t, h := broken(newMonitorTeller(b.accounts[i]))
			b.tellers[i] = t
			b.hosts = append(b.hosts, h)
		}
		return b.session(callers), nil
	}
	return w
}

// brokenQueue loses, doubles or reorders items.
type brokenQueue struct {
	*monitorQueue
	puts func(q *monitorQueue, item int64) error
}

func (q brokenQueue) put(_ context.Context, item int64) error { return q.puts(q.monitorQueue, item) }

func brokenBuffer(puts func(q *monitorQueue, item int64) error) workload {
	w := bufferWorkload
	w.open = func(_ model, callers int) (*session, error) {
		b := &buffer{}
		q := newMonitorQueue(b)
		return bufferSession(brokenQueue{q, puts}, q, b, callers), nil
	}
	return w
}

// tearingCell lets readers in while it writes: by writing in two parts.
type tearingCell struct{ *monitorCell }

func (c tearingCell) write(context.Context) (int64, error) {
	c.mu.Lock()
	c.register.first++
	c.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.register.second++
	return c.register.first, nil
}

// doublingCell writes twice.
type doublingCell struct{ *monitorCell }

func (c doublingCell) write(ctx context.Context) (int64, error) {
	c.monitorCell.write(ctx)
	return c.monitorCell.write(ctx)
}

// oldCell reads what was there at first.
type oldCell struct{ *monitorCell }

func (oldCell) read(context.Context) (int64, error) { return 0, nil }

func brokenReaders(broken func(*monitorCell) cell) workload {
	w := readersWorkload("readers", "nothing", nothing)
	w.open = func(_ model, callers int) (*session, error) {
		r := &register{work: nothing}
		c := &monitorCell{register: r}
		return readersSession(broken(c), c, r, callers), nil
	}
	return w
}

func TestBrokenModels(t *testing.T) {
	for name, test := range map[string]struct {
		workload workload
		want     string
	}{
		"overdraft": {brokenBank(func(t *monitorTeller) (teller, host) { return generousTeller{t}, t }), "overdrawn"},
		"lost deposit": {brokenBank(func(t *monitorTeller) (teller, host) { return forgetfulTeller{t}, t }),
			"the bank began with 60 and ended with"},
		"ran after stop": {brokenBank(func(t *monitorTeller) (teller, host) { t.account.balance = 0; return eagerTeller{t}, t }), "overdrawn"},
		"never stops":    {brokenBank(func(t *monitorTeller) (teller, host) { t.account.balance = 0; return t, sleepyTeller{t} }), "never came back"},
		"fails":          {brokenBank(func(t *monitorTeller) (teller, host) { return failingTeller{t}, t }), "out of order"},
		"lost item": {brokenBuffer(func(q *monitorQueue, item int64) error {
			if item%10 == 0 {
				return nil
			}
			return q.monitorPut(item)
		}), "lost"},
		"doubled item": {brokenBuffer(func(q *monitorQueue, item int64) error {
			if err := q.monitorPut(item); err != nil || item%10 != 0 {
				return err
			}
			return q.monitorPut(item)
		}), "after its item"},
		"changed item": {brokenBuffer(func(q *monitorQueue, item int64) error {
			if item%10 == 0 {
				item = -1
			}
			return q.monitorPut(item)
		}), "nobody put"},
		"torn write":   {brokenReaders(func(c *monitorCell) cell { return tearingCell{c} }), "torn write"},
		"double write": {brokenReaders(func(c *monitorCell) cell { return doublingCell{c} }), "answered"},
		"old value":    {brokenReaders(func(c *monitorCell) cell { return oldCell{c} }), "saw version 0 after"},
	} {
		t.Run(name, func(t *testing.T) {
			s := defaults()
			s.workloads, s.models = []workload{test.workload}, []model{monitor}
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

// monitorPut is put, for models that break it.
func (q *monitorQueue) monitorPut(item int64) error { return q.put(context.Background(), item) }
