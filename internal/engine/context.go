package engine

import (
	"context"
	"errors"
	"reflect"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/sluice-go/sluice/mailbox"
)

// A caller's context is the caller's code: its Done, Err, Deadline and Value may panic, block,
// end the goroutine, or call the object that calls it. So none of them is called with the mu of an
// object held, nor by a goroutine that owns an object or runs on behalf of other callers. In
// these places only methods of tame contexts are called.
//
// (T1) The ctx of a request is tame: its methods run only code of the context package and of this
// one, which neither waits nor comes back to an object. A context of the context package is tame
// if all those that it is derived from are. For any other a sheltered context stands in, which is
// made before the request is handed in, on the goroutine of its caller, which holds nothing. Its
// deadline and values are those of that moment, as the caller's goroutine sees them.
//
// (T2) A context that has ended never runs. What says that it has ended is its Done channel. A
// sheltered context has fetched that channel once. By the contract of a context it is closed
// before the end is known anywhere else, and looking at it runs no foreign code. Err of a
// sheltered context is such a look. So an owner that is about to start a request sees every end
// that happened before, as it does with Err of the context package's contexts.
//
// (T3) Why a sheltered context has ended only its own Err can say. Err is called once the request
// has left its queue: for a call on its caller's goroutine, where a panic is the caller's own;
// for a posted request on a worker, which contains the panic. Until then the error is errEnded.
//
// (T4) A goroutine that has taken an object on the fast path, and has to call a context that is
// not known to be tame, releases the object first, and the request goes through the scheduler.
// For one request that is not possible: its body has run on the fast path, and asks for a requeue
// to the same object, which is part of the same step. Its context is called by its own caller's
// goroutine, and a panic or exit is contained; but if the context waits for the object, it waits
// for itself.

// errEnded stands for the error of a context that has ended, until its Err is called (T3).
var errEnded = errors.New("sluice: the context has ended")

// sheltered is a context that stands for another one, whose code is foreign. Only this package
// and the context package use it: it has no values but those that they look for. Bodies and
// interceptors get the original.
type sheltered struct {
	ctx         context.Context
	done        <-chan struct{}
	deadline    time.Time
	hasDeadline bool
	frame       any // the values that are looked for
	attributes  any
	thread      any
	parent      any
}

// Done implements context.Context.
func (s *sheltered) Done() <-chan struct{} { return s.done }

// Deadline implements context.Context.
func (s *sheltered) Deadline() (time.Time, bool) { return s.deadline, s.hasDeadline }

// Err implements context.Context.
func (s *sheltered) Err() error {
	select {
	case <-s.done:
		return errEnded
	default:
		return nil
	}
}

// Value implements context.Context.
func (s *sheltered) Value(key any) any {
	switch key {
	case frameKey{}:
		return s.frame
	case attributesKey{}:
		return s.attributes
	case threadKey{}:
		return s.thread
	case parentKey:
		return s.parent
	}
	return nil
}

// parentKey is the key by which the context package looks for the innermost of its own contexts
// that a context is derived from. Where it finds one it needs no goroutine to watch the context.
var parentKey = func() any {
	p := probe{Context: context.Background()}
	_ = context.Cause(&p)
	return p.key
}()

// probe is a context that notes the key of the last call of Value.
type probe struct {
	context.Context
	key any
}

// Value implements context.Context.
func (p *probe) Value(key any) any {
	p.key = key
	return nil
}

// Tame returns ctx, if that is tame, or else a context that stands for it here. It calls the
// methods of ctx.
func Tame(ctx context.Context) context.Context {
	if Tamed(ctx) {
		return ctx
	}
	s := &sheltered{ctx: ctx, done: ctx.Done(), frame: ctx.Value(frameKey{}), attributes: ctx.Value(attributesKey{}), thread: ctx.Value(threadKey{})}
	s.deadline, s.hasDeadline = ctx.Deadline()
	if s.done != nil && parentKey != nil {
		s.parent = ctx.Value(parentKey)
	}
	return s
}

// original returns the context that a tame one stands for, or the tame one itself.
func original(ctx context.Context) context.Context {
	if s, ok := ctx.(*sheltered); ok {
		return s.ctx
	}
	return ctx
}

// The types of the context package's contexts, as words has them.
var (
	backgroundType, _ = words(context.Background())
	todoType, _       = words(context.TODO())
	valueType         = derivedType(context.WithValue(context.Background(), attributesKey{}, nil))
	lastingType       = derivedType(context.WithoutCancel(context.Background()))
	cancelType        = func() unsafe.Pointer {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return derivedType(ctx)
	}()
	timerType = func() unsafe.Pointer {
		ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(time.Hour))
		cancel()
		return derivedType(ctx)
	}()
)

// words returns the two words of a context: its type, and a pointer to its data. Looking into
// contexts this way takes a nanosecond or two each.
func words(ctx context.Context) (typ, value unsafe.Pointer) {
	v := any(ctx)
	w := (*[2]unsafe.Pointer)(unsafe.Pointer(&v))
	return w[0], w[1]
}

// derivedType returns the type of a context that begins with the one that it is derived from. If
// ctx does not begin so, as may happen with another version of the context package, it returns
// nil, which is the type of no context.
func derivedType(ctx context.Context) unsafe.Pointer {
	t := reflect.TypeOf(ctx)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for t.Kind() == reflect.Struct && t.NumField() > 0 {
		t = t.Field(0).Type
	}
	if t != reflect.TypeFor[context.Context]() {
		return nil
	}
	typ, _ := words(ctx)
	return typ
}

// Tamed reports whether ctx is tame, without calling its methods.
func Tamed(ctx context.Context) bool {
	_, tame := innermost(ctx)
	return tame
}

// Outside reports whether ctx is tame and belongs to no call chain, so that its caller's
// goroutine may run the bodies of other callers.
func Outside(ctx context.Context) bool {
	f, tame := innermost(ctx)
	return tame && (f == nil || f.over.Load())
}

// innermost reports whether ctx is tame, and then returns the innermost link of its call chain,
// which is ChainOf if it has not ended. It calls no method of ctx: it looks at the types of the
// contexts that ctx is derived from. A type of the context package that it does not know, such as
// one of a later version, is not tame.
func innermost(ctx context.Context) (f *Frame, tame bool) {
	if typ, _ := words(ctx); typ == backgroundType {
		return nil, true // most are
	}
	if s, ok := ctx.(*sheltered); ok {
		f, _ := s.frame.(*Frame)
		return f, true
	}
	for ctx != nil {
		switch typ, value := words(ctx); typ {
		case backgroundType, todoType:
			return nil, true
		case cancelType, valueType, timerType, lastingType:
			ctx = *(*context.Context)(value)
		default:
			f, ok := ctx.(*Frame)
			return f, ok && f.tame
		}
	}
	return nil, false
}

// ended returns the error of ctx, which has ended.
func ended(ctx context.Context) error {
	if err := original(ctx).Err(); err != nil {
		return err
	}
	return context.Canceled // ctx breaks its contract
}

// Ended calls do with the error of ctx, the context of the named request, which has ended. If ctx
// panics or ends the goroutine when it is called, that is a *ContextPanicError.
func Ended(ctx context.Context, request string, do func(error)) {
	err := error(nil)
	defer func() {
		if err == nil {
			err = &mailbox.ContextPanicError{Request: request, Value: Panicked(recover()), Stack: debug.Stack()}
		}
		do(err)
	}()
	err = ended(ctx)
}
