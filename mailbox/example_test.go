package mailbox_test

import (
	"fmt"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
)

// buffer is a shared object with room for one item.
type buffer struct{ full bool }

const put, get = 0, 1

func (b *buffer) AskState(op int) (falsePart string, err error) {
	switch {
	case op == put && b.full:
		return "not full", nil
	case op == get && !b.full:
		return "not empty", nil
	}
	return "", nil
}

func (b *buffer) AskRequest(*mailbox.Request) (string, error) { panic("no guard looks at an argument") }

// A get waits at an empty buffer until a put has ended. The scheduler only decides;
// whoever drives it runs the bodies.
func ExampleScheduler() {
	b := &buffer{}
	k := mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "put", Kind: mailbox.Entry, Guard: "not full"},
			{Name: "get", Kind: mailbox.Entry, Guard: "not empty"},
		},
		Conflicts: guards.NewExclusive("put", "get"),
	}, b)
	next := func() *mailbox.Request {
		r, err := k.Next()
		switch {
		case r == nil:
			fmt.Println("nothing can start")
		case err != nil:
			fmt.Println("fails:", err)
		default:
			fmt.Println("starts:", r.Record)
		}
		return r
	}

	first := &mailbox.Request{Op: get, Record: "get"}
	k.Arrive(first)
	next()
	fmt.Println("get waits:", k.Why(first))

	k.Arrive(&mailbox.Request{Op: put, Record: "put"})
	running := next()
	fmt.Println("get waits:", k.Why(first))

	b.full = true // the body of put
	k.Complete(running)
	running = next()

	b.full = false // the body of get
	k.Complete(running)
	next()
	fmt.Println("idle:", k.Idle())

	// Output:
	// nothing can start
	// get waits: guard "not empty" was false at step 1
	// starts: put
	// get waits: conflicts with put, running; guard "not empty" was false at step 1
	// starts: get
	// nothing can start
	// idle: true
}

// A Try does not wait; its refusal says why it would have had to.
func ExampleRefusedError() {
	k := mailbox.New(&mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "put", Kind: mailbox.Entry, Guard: "not full"},
			{Name: "get", Kind: mailbox.Entry, Guard: "not empty"},
		},
		Conflicts: guards.NewExclusive("put", "get"),
	}, &buffer{})
	k.Arrive(&mailbox.Request{Op: get, Try: true})
	_, err := k.Next()
	fmt.Println(err)
	// Output: get would wait: guard "not empty" is false
}
