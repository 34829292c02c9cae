package object

import (
	"strings"
	"testing"
)

// settingOf returns a setting of two callers.
func settingOf(shares ...float64) Setting {
	return Setting{Callers: 2, Objects: 1, Keys: 1, Shares: shares, Work: make([]Work, len(shares))}
}

// TestBooks expects the books to balance after right results, and to say what is
// wrong otherwise, where the program as a whole would need a data race for that.
func TestBooks(t *testing.T) {
	expect := func(name string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	s := settingOf(.5, .5)
	expect("torn write", auditStores([]*store{{[]cell{{first: 2, second: 1}}}}, accessors(s)), "torn write was left: 2 and 1")
	torn := &store{[]cell{{first: 2, second: 1}}}
	_, err := torn.read(Request{})
	expect("torn read", err, "saw a torn write: 2 and 1")
	expect("overdrawn", auditAccounts([]*account{{balance: opening, lowest: -1}}, nil), "overdrawn to -1")
	expect("unanswered", auditAccounts([]*account{{balance: opening, changes: 1}}, nil), "1 operations ran, 0 were answered")
	expect("overfull", auditBuffers([]*buffer{{fill: capacity + 1}}, nil), "holds 17 items")
	expect("invented", auditBuffers([]*buffer{{fill: 1}}, nil), "1 items too many")
	swapped := traders(s)[0].(*trader)
	swapped.gave.add(1)
	expect("exchanged", auditBuffers([]*buffer{{fill: 1, items: [capacity]int64{2}}}, []Caller{swapped}), "other items came out")
}

// TestCallersBalance has callers take turns at an object that nobody protects, and
// expects no complaint.
func TestCallersBalance(t *testing.T) {
	serve(t, &Accounts, settingOf(.25, .25, .5))
	serve(t, &Stores, settingOf(.5, .5))
	serve(t, &Buffers, settingOf(.5, .5))
}

func serve[T any](t *testing.T, declared *Type[T], s Setting) {
	t.Helper()
	state, callers := declared.New(s), declared.Callers(s)
	waiting := make([]*Step, len(callers))
	served := 0
	for range 1000 {
		for i, c := range callers {
			if waiting[i] == nil {
				step := c.Next()
				waiting[i] = &step
			}
			op := &declared.Operations[waiting[i].Op]
			if op.Holds != nil && !op.Holds(state, waiting[i].Request) {
				continue
			}
			value, err := op.Run(state, waiting[i].Request)
			if err == nil {
				err = c.Done(*waiting[i], value)
			}
			if err != nil {
				t.Fatalf("%s: %v", declared.Name, err)
			}
			waiting[i] = nil
			served++
		}
	}
	if err := declared.Audit([]*T{state}, callers); err != nil {
		t.Errorf("%s: %v", declared.Name, err)
	}
	if served < 1000 {
		t.Errorf("%s: %d requests were served", declared.Name, served)
	}
}

func TestDraw(t *testing.T) {
	d := newDraw(settingOf(0, .25, .75, 0), 0)
	var count [4]int
	for range 10_000 {
		count[d.op()]++
	}
	if count[0]+count[3] > 0 || count[1] < 2000 || count[1] > 3000 {
		t.Errorf("shares 0, ¼, ¾, 0 were drawn %v", count)
	}
}
