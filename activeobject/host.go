package activeobject

import (
	"math/bits"
	"runtime/debug"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// host is an Object as its scheduler, its system and its actor know it. It is the same struct, with
// the methods that these call and a user does not.
type host[T any] Object[T]

var (
	_ engine.Host   = (*host[None])(nil)
	_ actor.Subject = (*host[None])(nil)
)

func (o *Object[T]) host() *host[T] { return (*host[T])(o) }

func (h *host[T]) object() *Object[T] { return (*Object[T])(h) }

// In reports whether the object is one of the system's.
func (h *host[T]) In(s *actor.System) bool { return h.config.system == s }

// AskState implements mailbox.Object.
func (h *host[T]) AskState(op int) (falsePart string, err error) {
	returned, value, stack := false, any(nil), []byte(nil)
	defer func() {
		if !returned {
			err = h.guardFailed(op, nil, engine.Panicked(value), stack)
		}
	}()
	defer func() {
		if !returned {
			value, stack = recover(), debug.Stack()
		}
	}()
	switch asked := h.object().Type().op(op); {
	case h.config.audit != nil:
		falsePart, err = h.evaluateTwice(op, nil, func() string { return asked.evaluateState(h.state) })
	case asked.simple == nil:
		falsePart = asked.evaluateState(h.state)
	case !asked.simple(h.state):
		falsePart = asked.info.guard
	}
	returned = true
	return falsePart, err
}

// AskRequest implements mailbox.Object.
func (h *host[T]) AskRequest(r *mailbox.Request) (falsePart string, err error) {
	returned, value, stack := false, any(nil), []byte(nil)
	defer func() {
		if !returned {
			err = h.guardFailed(r.Op, r, engine.Panicked(value), stack)
		}
	}()
	defer func() {
		if !returned {
			value, stack = recover(), debug.Stack()
		}
	}()
	body := r.Record.(*engine.Request).Body
	if h.config.audit != nil {
		falsePart, err = h.evaluateTwice(r.Op, body, body.AskGuard)
	} else {
		falsePart = body.AskGuard()
	}
	returned = true
	return falsePart, err
}

// guardFailed returns the error of a guard that panicked with the value. If it
// has none the guard has called runtime.Goexit, and the goroutine is to be kept
// from leaving the object locked.
func (h *host[T]) guardFailed(op int, r *mailbox.Request, value any, stack []byte) error {
	if value == nil {
		err := h.guardError(op, r, goexit, stack)
		h.failedEvaluating(op, r, err)
		h.box.GuardExited(op, r, err)
		return nil
	}
	err := h.guardError(op, r, value, stack)
	h.failedEvaluating(op, r, err)
	return err
}

// goexit is the value of a failure that is not a panic.
const goexit = "it ended its goroutine (runtime.Goexit)"

// guardError returns the error of a guard: that of the operation, or of r, if that is not nil.
func (o *objectHeader) guardError(op int, r *mailbox.Request, value any, stack []byte) error {
	d := o.config.rule(op)
	err := &mailbox.GuardError{Object: o.Name(), Operation: d.Name, Guard: d.Guard, Value: value, Stack: stack}
	if r != nil {
		if rest, ok := r.Record.(*engine.Request).Body.(*bodyRest); ok {
			err.Guard = rest.name
		}
	}
	return err
}

// Open implements engine.Host.
func (h *host[T]) Open(operations uint64) int {
	for ; operations != 0; operations &= operations - 1 {
		op := bits.TrailingZeros64(operations)
		holds := h.object().Type().op(op).plain
		if holds == nil {
			holds = h.watch // the guard that requests carry
		}
		if holds(h.state) {
			return op
		}
	}
	return -1
}

// Watch implements engine.Host.
func (h *host[T]) Watch(operations uint64) {
	h.watch = nil
	if bits.OnesCount64(operations) == 1 {
		h.watch = h.object().Type().op(bits.TrailingZeros64(operations)).plain
	}
}

// Carries implements engine.Host.
func (h *host[T]) Carries(r *engine.Request) bool {
	in, ok := carried[T](r.Body)
	return ok && in.arg.guard.Looks() == guards.AtState && in.arg.guard.Simple() != nil
}

// WatchGuard implements engine.Host.
func (h *host[T]) WatchGuard(r *engine.Request) {
	in, _ := carried[T](r.Body)
	h.watch = in.arg.guard.Simple()
}

// Halt implements actor.Receiver: it ends the object but not its actor.
func (h *host[T]) Halt() <-chan struct{} {
	return h.box.Close(&mailbox.StoppedError{Object: h.Name(), Cause: h.box.Failure()})
}

// Drain implements actor.Receiver: it ends the object once what waits and can
// start has been served.
func (h *host[T]) Drain() <-chan struct{} {
	return h.box.Drain(&mailbox.StoppedError{Object: h.Name()})
}

// Ended implements engine.Host: the object has stopped, and nothing runs.
func (h *host[T]) Ended() {
	h.config.system.Leave(&h.slot)
	h.object().Type().stopClocks(h.state)
	if d, ok := h.box.Dispatcher().(*actor.Dedicated); ok {
		d.Close()
	}
}
