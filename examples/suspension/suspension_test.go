package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/sluice-go/sluice/actor"
)

func TestSuspendedClientsGoOnInTheOrderOfThePolicy(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(nil, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
	const want = `ann has the resource; bob (priority 1), cid (3) and dan (2) ask for it, one after the other.
They get it in this order:
  fifo       ann bob cid dan
  lifo       ann dan cid bob
  priority   ann cid dan bob
  dan first  ann dan bob cid
`
	if stdout.String() != want {
		t.Errorf("got\n%swant\n%s", &stdout, want)
	}
}

func TestSuspensionTakesNoArguments(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run([]string{"-policy", "random"}, &stdout, &stderr); code != 2 || stdout.Len() > 0 {
		t.Errorf("exit code %d, %s", code, &stdout)
	}
	if got, want := stderr.String(), "suspension: argument \"-policy\": there are none\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The text's server has no such thing: its clients wait for ever.
func TestASuspendedClientMayGiveUp(t *testing.T) {
	system := actor.NewSystem()
	defer system.Close(t.Context())
	scheduler := NewScheduler(system, lifo())

	if _, err := scheduler.Enter(t.Context(), "ann", 0).Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	impatient, giveUp := context.WithCancel(t.Context())
	bob := scheduler.Enter(t.Context(), "bob", 0)
	cid := scheduler.Enter(impatient, "cid", 0)
	giveUp()
	if _, err := cid.Await(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("cid: %v", err)
	}
	scheduler.Done("ann")
	if _, err := bob.Await(t.Context()); err != nil { // and not cid, which came last
		t.Errorf("bob: %v", err)
	}
	scheduler.Done("bob")
	if err := scheduler.Done("bob"); err == nil {
		t.Error("bob gives back twice what he has once")
	}
}
