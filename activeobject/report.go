package activeobject

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// What an operator is to see is logged with the attributes object, operation and request,
// the last being the request's arrival, as Explain has it: 0 of one that found the object
// idle, or if it is none in particular.
//
// It is logged by a worker (see System.Log), as a log handler is code that is not ours: the
// functions here may be called by a goroutine that owns the object or holds its mutex.

// report logs the failure of code that is the user's: it has panicked, or called
// runtime.Goexit. It is called where that is found, and nowhere else, so that each failure
// is logged once, however many requests fail of it, and whether any caller is told or not.
func (o *objectHeader) report(operation string, request uint64, err error) {
	stack := stackOf(err)
	if stack == nil {
		stack = debug.Stack()
	}
	name := o.Name()
	o.config.system.Log(func(l *slog.Logger) {
		l.Error(err.Error(), "object", name, "operation", operation, "request", request, "stack", string(stack))
	})
}

// policyFailed is report for a policy that has failed as it compared r, perhaps with others.
func policyFailed(host engine.Host, r *engine.Request, err error) {
	o := host.(interface{ head() *objectHeader }).head()
	o.report(o.config.rule(r.Op).Name, r.Arrival(), err)
}

func (o *objectHeader) head() *objectHeader { return o }

// stackOf returns the stack of a failure that report is to be told of, or has been; nil of
// other errors, and of those that carry none.
func stackOf(err error) []byte {
	switch e := err.(type) {
	case *mailbox.PanicError:
		return e.Stack
	case *mailbox.GuardError:
		return e.Stack
	case *mailbox.PolicyError:
		return e.Stack
	case *mailbox.ConflictError:
		return e.Stack
	case *KeyError:
		return e.Stack
	case *mailbox.RestartError:
		return stackOf(e.Cause)
	}
	return nil
}

// reported reports whether an error has been passed to report.
func reported(err error) bool {
	_, exited := err.(*mailbox.ExitError)
	return exited || stackOf(err) != nil
}

// decided logs what a supervisor has decided about the object.
func (o *objectHeader) decided(what string, about actor.Failure) {
	name := o.Name()
	o.config.system.Log(func(l *slog.Logger) {
		if about == (actor.Failure{}) {
			l.Warn(fmt.Sprintf("sluice: %s is %s", name, what), "object", name, "decision", what)
			return
		}
		operation := ""
		if m, ok := about.Message.(*actor.Invoke); ok {
			operation = m.Operation
		}
		l.Warn(fmt.Sprintf("sluice: %s is %s after a failure", name, what), "object", name, "decision", what,
			"operation", operation, "request", about.Request, "reason", fmt.Sprint(about.Reason))
	})
}

// unheard logs that a request failed whose result nothing waits for. An error that its
// body returned is a result, and forgotten with it.
func (o *objectHeader) unheard(err error) {
	switch causeOf(err).(type) {
	case *mailbox.StoppedError, *mailbox.FullError, *mailbox.PolicyError, *mailbox.UndeclaredError, *mailbox.ContextError, *KeyError, *BadRequeueError:
		o.unanswered(err)
	}
}

// unanswered logs the error of a request whose result nothing waits for, unless that was done
// where it failed.
func (o *objectHeader) unanswered(err error) {
	if !reported(causeOf(err)) {
		o.log(err)
	}
}

// causeOf returns what a request failed with, whether it has been requeued before or not.
func causeOf(err error) error {
	if r, ok := errors.AsType[*mailbox.RequeuedError](err); ok {
		return r.Cause
	}
	return err
}

// log logs an error that is told nowhere else.
func (o *objectHeader) log(err error, attributes ...any) {
	attributes = append([]any{"object", o.Name()}, attributes...)
	o.config.system.Log(func(l *slog.Logger) { l.Error(err.Error(), attributes...) })
}
