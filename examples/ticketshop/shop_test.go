package main

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/objecttest"
)

// journalOf returns a journal in a file of its own.
func journalOf(t *testing.T) *FileJournal {
	j, err := OpenJournal(filepath.Join(t.TempDir(), "tickets"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func TestASeatIsForTheNextWhenTheTimeOfItsHoldIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop, err := NewShop(objecttest.NewSystem(t), journalOf(t), map[string][]string{"gala": {"A1"}}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer shop.Close(t.Context())
		gala, _ := shop.Event("gala")
		ann, bob := Ticket{Order: "1", Event: "gala", Seat: "A1"}, Ticket{Order: "2", Event: "gala", Seat: "A1"}
		start := time.Now()
		if _, err := gala.Hold.Call(t.Context(), ann); err != nil {
			t.Fatal(err)
		}
		if err := shop.Open(ann); err != nil {
			t.Fatal(err)
		}
		if _, err := gala.Hold.Call(t.Context(), bob); err != nil || time.Since(start) != time.Minute {
			t.Errorf("bob: after %v, %v", time.Since(start), err)
		}
		synctest.Wait()
		if _, err := shop.Order("1"); err != errNoOrder {
			t.Errorf("ann's order: %v", err)
		}
	})
}

// The hall's guard and function are pure, and its operations open what they declare.
func TestTheHallIsDeclaredAsItIs(t *testing.T) {
	journal := journalOf(t)
	state, err := NewHall("gala", []string{"A1", "A2"}, journal)
	if err != nil {
		t.Fatal(err)
	}
	hall := activeobject.Must(activeobject.New(objecttest.NewSystem(t), halls, state, objecttest.Checked(t, journal)))
	a1, a2, next := Ticket{Order: "1", Seat: "A1"}, Ticket{Order: "2", Seat: "A2"}, Ticket{Order: "3", Seat: "A1"}
	for _, seat := range []Ticket{a1, a2} {
		if _, err := hold.Call(t.Context(), hall, seat); err != nil {
			t.Fatal(err)
		}
	}
	waits := hold.Send(t.Context(), hall, next)
	release.Call(t.Context(), hall, next) // not hers
	if _, err := sell.Call(t.Context(), hall, next); err != errLost {
		t.Error(err)
	}
	sell.Call(t.Context(), hall, a2)
	release.Call(t.Context(), hall, a2) // too late
	if waits.Ready() {
		t.Error("she got a seat that is on hold")
	}
	sell.Call(t.Context(), hall, a1)
	if _, err := waits.Await(t.Context()); err != errSold {
		t.Error(err)
	}
	if all, err := plan.Call(t.Context(), hall, nil); err != nil || len(all["sold"]) != 2 {
		t.Error(all, err)
	}
}

// The hall may fail after it has sold. Whether it has, the journal knows.
func TestAnOrderAsksTheJournalIfTheHallFails(t *testing.T) {
	for _, sold := range []bool{true, false} {
		journal, sell := journalOf(t), objecttest.NewFake[Ticket, none](t, "sell")
		ticket := Ticket{Order: "1", Event: "gala", Seat: "A1"}
		if sold {
			journal.Append(ticket)
		}
		failure := &activeobject.PanicError{}
		sell.Fail(failure)
		order := &Order{ticket: ticket, status: Held, sell: sell, journal: journal}
		is, err := order.Pay(t.Context(), nil)
		if sold && (is != Sold || err != nil) || !sold && (is != Held || err != failure) {
			t.Errorf("sold: %v: %s, %v", sold, is, err)
		}
	}
}
