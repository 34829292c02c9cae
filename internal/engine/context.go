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
// end the goroutine, or call the object that asks. So none of them is called with the mu of an
// object held, nor by a goroutine that owns an object or runs on behalf of other callers. What
// is, is called on a tame context.
//
// (T1) The ctx of a request is tame: its methods run no code but that of the context package
// and this one's, which neither waits nor comes back. The contexts of the context package are,
// if all those that they are derived from are. Any other is taken in by a sheltered one before
// the request is handed in, on the goroutine of its caller, which holds nothing. Its deadline
// and values are those of that moment, as the caller's goroutine sees them.
//
// (T2) A context that has ended never runs. What says that it has ended is its Done channel,
// which a sheltered context has asked for once: it is closed before the end of a context is
// known to anybody else, by its contract, and can be looked at without running anybody's
// code. Err of a sheltered context is such a look, so that an owner that is about to start a
// request sees every end that happened before; as it does with Err of the context package's.
//
// (T3) Why a sheltered context has ended only its Err can say. That is asked once the request
// has left its queue: of a call on its caller's goroutine, where a panic is the caller's own;
// of what was posted on a worker, which contains it. Until then the error is errEnded.
//
// (T4) Where a goroutine that has taken an object on the fast path has to ask a context of any
// kind, and it is not known to be tame, it gives the object back first, and the request goes
// through the scheduler. One request cannot: its body has run on the fast path, and asks for a
// requeue to the same object, which is part of the same step. Its context is asked by its own
// caller's goroutine, and what it does is contained; but if it waits for the object, it waits for
// itself.

// errEnded stands for the error of a context that has ended and is yet to be asked for it.
var errEnded = errors.New("sluice: the context has ended")

// sheltered is a context that stands for another one, whose code is not ours. It is for the
// eyes of this package and the context package only: it has no other values than they look
// for. Bodies and interceptors get the other one.
type sheltered struct {
	ctx         context.Context
	done        <-chan struct{}
	deadline    time.Time
	hasDeadline bool
	frame       any // the values that are looked for
	attributes  any
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
	case parentKey:
		return s.parent
	}
	return nil
}

// parentKey is the key by which the context package finds the one of its own contexts that a
// context ends with, if there is one. It then needs no goroutine to watch over the context.
var parentKey = func() any {
	p := probe{Context: context.Background()}
	_ = context.Cause(&p)
	return p.key
}()

// probe is a context that notes which value it has been asked for.
type probe struct {
	context.Context
	key any
}

// Value implements context.Context.
func (p *probe) Value(key any) any {
	p.key = key
	return nil
}

// Tame returns ctx, if that is tame, or else a context that stands for it here. It calls
// the methods of ctx.
func Tame(ctx context.Context) context.Context {
	if Tamed(ctx) {
		return ctx
	}
	s := &sheltered{ctx: ctx, done: ctx.Done(), frame: ctx.Value(frameKey{}), attributes: ctx.Value(attributesKey{})}
	s.deadline, s.hasDeadline = ctx.Deadline()
	if s.done != nil && parentKey != nil {
		s.parent = ctx.Value(parentKey)
	}
	return s
}

// wild returns the context that a tame one stands for.
func wild(ctx context.Context) context.Context {
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

// words returns the two words of a context: its type, and a pointer to what it is. Contexts are
// looked into this way as it takes a nanosecond or two each.
func words(ctx context.Context) (typ, value unsafe.Pointer) {
	v := any(ctx)
	w := (*[2]unsafe.Pointer)(unsafe.Pointer(&v))
	return w[0], w[1]
}

// derivedType returns the type of a context that begins with the one that it is derived from.
// If that is not so, as in another version of the context package it may not be, it returns nil,
// which is the type of none.
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
// goroutine may run the bodies of others.
func Outside(ctx context.Context) bool {
	f, tame := innermost(ctx)
	return tame && (f == nil || f.over.Load())
}

// innermost reports whether ctx is tame, and then returns the innermost link of its call chain,
// which is ChainOf if it has not ended. It calls none of the methods of ctx: it looks at the
// types of those that it is derived from. A type of the context package that it does not know,
// such as those of a later version, is not tame.
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

// ended returns why ctx, which has ended, has.
func ended(ctx context.Context) error {
	if err := wild(ctx).Err(); err != nil {
		return err
	}
	return context.Canceled // it breaks its contract
}

// Ended has do told why ctx, the context of the named request, has ended. If ctx panics or ends
// the goroutine when it is asked, that is a *ContextError.
func Ended(ctx context.Context, request string, do func(error)) {
	err := error(nil)
	defer func() {
		if err == nil {
			err = &mailbox.ContextError{Request: request, Value: Panicked(recover()), Stack: debug.Stack()}
		}
		do(err)
	}()
	err = ended(ctx)
}
