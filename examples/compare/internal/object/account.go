package object

import (
	"fmt"
	"sync"
)

// account is the account of the Synchronizer text.
type account struct {
	balance int64
	lowest  int64 // balance ever
	changes int64
}

func (a *account) deposit(r Request) (int64, error) {
	balance := a.balance
	r.Work.Do() // between reading and writing, where a second body would be noticed
	a.balance = balance + r.Value
	a.changes++
	return a.balance, nil
}

func (a *account) withdraw(r Request) (int64, error) {
	balance := a.balance
	r.Work.Do()
	a.balance = balance - r.Value
	a.changes++
	a.lowest = min(a.lowest, a.balance)
	return a.balance, nil
}

func (a *account) covers(r Request) bool { return a.balance >= r.Value }

func (a *account) read(r Request) (int64, error) {
	before := a.balance
	r.Work.Do()
	if a.balance != before {
		return 0, fmt.Errorf("a balance changed from %d to %d while it was read", before, a.balance)
	}
	return before, nil
}

// The operations of an account.
const (
	deposit = iota
	withdraw
	balance
)

// Accounts declares the account.
var Accounts = Type[account]{
	Name:  "account",
	About: "callers withdraw money, which waits until it is covered, and pay it in again",
	Operations: []Operation[account]{
		deposit:  {Name: "deposit", Body: (*account).deposit},
		withdraw: {Name: "withdraw", Body: (*account).withdraw, Guard: "covered", Holds: (*account).covers},
		balance:  {Name: "balance", Body: (*account).read, Reads: true},
	},
	New:     func(Setting) *account { return &account{balance: opening} },
	ByHand:  newAccountByHand,
	Callers: tellers,
	Check:   checkAccounts,
	Audit:   auditAccounts,
}

// accountByHand is the account in a monitor.
type accountByHand struct {
	gate
	mu      sync.RWMutex
	covered *sync.Cond
	account *account
	run     Run
}

func newAccountByHand(a *account, run Run) Hand {
	h := &accountByHand{account: a, run: run}
	h.gate.mu = &h.mu
	h.covered = h.condition()
	return h
}

// Call implements Hand.
func (h *accountByHand) Call(op int, r Request) (int64, error) {
	switch op {
	case deposit:
		return h.deposit(r)
	case withdraw:
		return h.withdraw(r)
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.run(balance, r)
}

func (h *accountByHand) deposit(r Request) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	value, err := h.run(deposit, r)
	h.covered.Broadcast() // they wait for different amounts
	return value, err
}

func (h *accountByHand) withdraw(r Request) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.account.covers(r) {
		if h.stopped {
			return 0, ErrStopped
		}
		h.covered.Wait()
	}
	return h.run(withdraw, r)
}

// The first balance of an account, and the largest amount that is withdrawn. A
// caller who has withdrawn money pays it in before it withdraws more; so if all of
// them wait, all the money of the bank lies there, and one account covers the
// amount.
const (
	opening = 10
	most    = 5
)

// teller is a caller of accounts.
type teller struct {
	_ [128]byte // keeps the callers' books out of each other's cache lines
	draw
	amount  int64
	carries bool
	from    int // account
	changes int64
}

// checkAccounts refuses more withdrawals than deposits: all callers would end up
// waiting; and more deposits are not to be had, as nobody has the money.
func checkAccounts(s Setting) *SettingError {
	if d := s.Shares[deposit] - s.Shares[withdraw]; d > shareError || d < -shareError {
		return &SettingError{"operations.deposit.share", "must be that of withdraw, since what is withdrawn is paid in again"}
	}
	return nil
}

func tellers(s Setting) []Caller {
	callers := make([]Caller, s.Callers)
	for i := range callers {
		callers[i] = &teller{draw: newDraw(s, i), amount: int64(1 + i%most)}
	}
	return callers
}

// Next implements Caller.
func (t *teller) Next() Step {
	switch op := t.op(); {
	case op == balance:
		return t.step(t.object(), balance, 0, 0)
	case t.carries:
		return t.step(t.from, deposit, 0, t.amount)
	}
	return t.step(t.object(), withdraw, 0, t.amount)
}

// Done implements Caller.
func (t *teller) Done(s Step, value int64) error {
	if value < 0 || value > opening {
		return fmt.Errorf("%s was answered with a balance of %d, which is not within 0 and %d", Accounts.Operations[s.Op].Name, value, opening)
	}
	if s.Op != balance {
		t.carries = s.Op == withdraw
		t.from = s.Object
		t.changes++
	}
	return nil
}

// auditAccounts compares accounts with what their callers carry and have done.
func auditAccounts(accounts []*account, callers []Caller) error {
	var money, ran, answered int64
	for _, c := range callers {
		t := c.(*teller)
		answered += t.changes
		if t.carries {
			money += t.amount
		}
	}
	for _, a := range accounts {
		if a.lowest < 0 {
			return fmt.Errorf("an account was overdrawn to %d", a.lowest)
		}
		money += a.balance
		ran += a.changes
	}
	switch begun := int64(len(accounts)) * opening; {
	case money != begun:
		return fmt.Errorf("the accounts began with %d and ended with %d", begun, money)
	case ran != answered:
		return fmt.Errorf("%d operations ran, %d were answered", ran, answered)
	}
	return nil
}
