package main

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
)

// account is the shared object: plain sequential Go.
type account struct {
	balance int64
	lowest  int64 // balance ever
	served  int64 // deposits and withdrawals
}

func (a *account) Deposit(amount int64) (int64, error) {
	a.balance += amount
	a.served++
	return a.balance, nil
}

func (a *account) Withdraw(amount int64) (int64, error) {
	a.balance -= amount
	a.served++
	a.lowest = min(a.lowest, a.balance)
	return a.balance, nil
}

func (a *account) Covers(amount int64) bool { return a.balance >= amount }

// The account, declared for Sluice.
var (
	accounts = activeobject.NewType[account]("account")
	deposit  = activeobject.Procedure(accounts, "deposit", (*account).Deposit)
	withdraw = activeobject.Entry(accounts, "withdraw", (*account).Withdraw).WhenArg("covered", (*account).Covers)
)

// teller is the account as its callers see it under every model.
type teller interface {
	deposit(ctx context.Context, amount int64) (int64, error)
	withdraw(ctx context.Context, amount int64) (int64, error) // waits for cover
}

// activeTeller is the account as an active object.
type activeTeller struct{ o *activeobject.Object[account] }

func (t activeTeller) deposit(ctx context.Context, amount int64) (int64, error) {
	return deposit.Call(ctx, t.o, amount)
}

func (t activeTeller) withdraw(ctx context.Context, amount int64) (int64, error) {
	return withdraw.Call(ctx, t.o, amount)
}

// monitorTeller is the account in a monitor.
type monitorTeller struct {
	gate
	covered condition
	account *account
}

func newMonitorTeller(a *account) *monitorTeller {
	t := &monitorTeller{account: a}
	t.covered = t.condition()
	return t
}

func (t *monitorTeller) deposit(_ context.Context, amount int64) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	balance, err := t.account.Deposit(amount)
	t.covered.Broadcast() // they wait for different amounts
	return balance, err
}

func (t *monitorTeller) withdraw(_ context.Context, amount int64) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.account.Covers(amount) {
		if t.stopped {
			return 0, errStopped
		}
		t.covered.Wait()
	}
	return t.account.Withdraw(amount)
}

// The account as a server that gets its requests as messages.
const (
	askDeposit = iota
	askWithdraw
)

// serve implements server.
func (a *account) serve(q query) (answer, bool) {
	switch {
	case q.op == askDeposit:
		return answerOf(a.Deposit(q.arg)), true
	case a.Covers(q.arg):
		return answerOf(a.Withdraw(q.arg)), true
	}
	return answer{}, false
}

type askedTeller struct{ asker }

func (t askedTeller) deposit(_ context.Context, amount int64) (int64, error) {
	return t.ask(query{askDeposit, amount})
}

func (t askedTeller) withdraw(_ context.Context, amount int64) (int64, error) {
	return t.ask(query{askWithdraw, amount})
}

var bankWorkload = workload{
	name:       "bank",
	about:      "callers carry money between two accounts; a withdrawal waits until it is covered",
	operations: "withdrawals and deposits",
	every:      sampled,
	open:       openBank,
}

func openBank(m model, callers int) (*session, error) {
	var b bank
	for i := range b.accounts {
		a := &account{balance: opening}
		t, h, err := openAccount(m, a)
		if err != nil {
			return nil, err
		}
		b.accounts[i], b.tellers[i] = a, t
		b.hosts = append(b.hosts, h)
	}
	return b.session(callers), nil
}

func openAccount(m model, a *account) (teller, host, error) {
	switch m {
	case monitor:
		t := newMonitorTeller(a)
		return t, t, nil
	case sluice, dedicated:
		h, err := activate(accounts, a, m)
		if err != nil {
			return nil, nil, err
		}
		return activeTeller{h.object}, h, nil
	}
	s := listen(m, a)
	return askedTeller{s}, s, nil
}

// The first balance of an account, and the largest amount that is carried. If all
// callers waited for cover, all the money would lie in the accounts, and one of
// them would cover any amount: so that they never all wait, unless all of them
// carry in one direction.
const (
	opening = 30
	most    = 5
)

// bank is two accounts.
type bank struct {
	accounts [2]*account
	tellers  [2]teller
	hosts    hosts
}

// courier is a caller of a bank. It withdraws an amount from one account and pays
// it into the other; if it is the only one, then back again.
type courier struct {
	_        [128]byte // keeps the callers' books out of each other's cache lines
	from, to teller
	amount   int64
	carrying bool
	turns    bool
	calls    int64
}

func (c *courier) step(ctx context.Context) error {
	if !c.carrying {
		if _, err := c.from.withdraw(ctx, c.amount); err != nil {
			return err
		}
	} else {
		if _, err := c.to.deposit(ctx, c.amount); err != nil {
			return err
		}
		if c.turns {
			c.from, c.to = c.to, c.from
		}
	}
	c.carrying = !c.carrying
	c.calls++
	return nil
}

func (b *bank) session(callers int) *session {
	s := &session{host: b.hosts}
	couriers := make([]*courier, callers)
	for i := range couriers {
		couriers[i] = &courier{from: b.tellers[i%2], to: b.tellers[1-i%2], amount: int64(1 + i/2%most), turns: callers == 1}
		s.callers = append(s.callers, couriers[i])
	}
	s.check = func() error { return b.audit(couriers) }
	return s
}

// audit compares the accounts with what the couriers carry and have done.
func (b *bank) audit(couriers []*courier) error {
	var money, served, calls int64
	for _, c := range couriers {
		calls += c.calls
		if c.carrying {
			money += c.amount
		}
	}
	for _, a := range b.accounts {
		if a.lowest < 0 {
			return fmt.Errorf("an account was overdrawn to %d", a.lowest)
		}
		money += a.balance
		served += a.served
	}
	switch {
	case money != 2*opening:
		return fmt.Errorf("the bank began with %d and ended with %d", 2*opening, money)
	case served != calls:
		return fmt.Errorf("%d operations ran, %d were answered", served, calls)
	}
	return nil
}
