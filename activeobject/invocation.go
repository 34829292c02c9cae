package activeobject

import (
	"context"
	"reflect"

	"github.com/sluice-go/sluice/internal/engine"
)

// invocation is an operation with an argument.
//
// It is all of a request that is compiled for each operation, besides the fast path of a
// call: what a program pays for an operation that it declares is the code of these six
// methods. Everything else knows an invocation as typed, and is compiled once.
type invocation[T, A, R any] struct {
	_   incomparable
	op  *Operation[T, A, R]
	arg A
}

// incomparable is in what nothing compares, so that no function is compiled for that.
type incomparable [0]func()

// typed is an *invocation of whatever types.
type typed interface {
	// evaluate evaluates the guard, and returns the part of it that is false. It is given
	// the object, a *host[T], or a state, a *T; and so is apply.
	evaluate(at any) (falsePart string)
	// apply runs the body, and writes the result to place, which is a *R unless one of the two types
	// has been erased: see put.
	apply(at any, ctx context.Context, place any) error
	// undoes returns what undoes the body, which has run at the object or state, and has a result in its
	// place. O, which may be nil, is told if that fails.
	undoes(o *objectHeader, at, place any) undoer
	// act does one of the things that are done less often.
	act(do verb, x any) any
	// answer carries out the operation for a message, and reports false if the argument is of
	// the wrong type.
	answer(ctx context.Context, o *objectHeader, l requestMessage) (accepted bool)
	// info returns what is known of the operation.
	info() *operationInfo
}

func (i *invocation[T, A, R]) evaluate(at any) (falsePart string) {
	return i.op.evaluate(stateOf[T](at), i.arg)
}

func (i *invocation[T, A, R]) apply(at any, ctx context.Context, place any) (err error) {
	var r R
	if state := stateOf[T](at); i.op.leaf != nil {
		r, err = i.op.leaf(state, i.arg)
	} else {
		r, err = i.op.blocks(state, ctx, i.arg)
	}
	if p, ok := place.(*R); ok {
		*p = r
	} else {
		put(place, r)
	}
	return err
}

func (i *invocation[T, A, R]) answer(ctx context.Context, o *objectHeader, l requestMessage) (accepted bool) {
	op := i.op
	arg, ok := accept(op, l.invoke.Argument)
	if !ok {
		return false
	}
	s, returned := callState{requestMessage: l}, false
	defer func() { s.answered(&op.info, o, returned) }()
	r, c, err := start(op, ctx, o.box.Host().(*host[T]).object(), arg, answering, &s)
	if c == nil && l.sender != nil {
		s.result = r
	}
	s.err = err
	returned = true
	return true
}

func (i *invocation[T, A, R]) info() *operationInfo { return &i.op.info }

// stateOf returns the state of an object, or what is given if that is one.
func stateOf[T any](at any) *T {
	if h, ok := at.(*host[T]); ok {
		return h.state
	}
	return at.(*T)
}

// verb is what act does.
type verb uint8

const (
	getArgument    verb = iota // return the argument
	getKey                     // return the key of its family, or, if that is not equal to itself, an unequal
	tellKeys                   // do what x, an *opened, says
	letGo                      // drop the argument, and the result, if x is the place of one
	bindArgument               // return an invocation whose argument is x; if that is none, it is a nil interface
	acceptArgument             // the same for x that has come in a message; return nil if it is no argument
	endDeclaration             // end the operation's declaration, with the number x
	extendType                 // return the *operation of x, an *extension
)

func (i *invocation[T, A, R]) act(do verb, x any) any {
	switch op := i.op; do {
	case getArgument:
		return i.arg
	case getKey:
		key, equal := op.key(i.arg, true)
		if !equal {
			return unequal{key}
		}
		return key
	case tellKeys:
		o := x.(*opened)
		op.keys[o.family](i.arg, o.open)
	case letGo:
		var none A
		i.arg = none
		if place, ok := x.(*R); ok {
			var none R
			*place = none
		}
	case bindArgument:
		return &invocation[T, A, R]{op: op, arg: as[A](x)}
	case acceptArgument:
		if arg, ok := accept(op, x); ok {
			return &invocation[T, A, R]{op: op, arg: arg}
		}
	case endDeclaration:
		completeOperation(op, x.(int))
	case extendType:
		e := x.(*extension[T])
		return &inheritOperation(e.derived, e.part, op).operation
	}
	return nil
}

// undoing is what undoes a body that has run.
type undoing[T, A, R any] struct {
	_      incomparable
	op     *Operation[T, A, R]
	o      *objectHeader
	state  *T
	arg    A
	result R
}

func (i *invocation[T, A, R]) undoes(o *objectHeader, at, place any) undoer {
	u := &undoing[T, A, R]{op: i.op, o: o, state: stateOf[T](at), arg: i.arg}
	if p, ok := place.(*R); ok {
		u.result = *p
	} else if r, ok := reflect.ValueOf(place).Elem().Interface().(R); ok {
		u.result = r
	}
	return u
}

// Undo implements engine.Undoer.
func (u *undoing[T, A, R]) Undo() error {
	return u.op.info.undo(u.o, u.undo)
}

func (u *undoing[T, A, R]) undo() { u.op.undo(u.state, u.arg, u.result) }

// undoer is an *undoing of whatever types.
type undoer interface {
	engine.Undoer
	undo()
}

// accept returns the argument of a message.
func accept[T, A, R any](op *Operation[T, A, R], x any) (arg A, ok bool) {
	if op.accept != nil {
		return op.accept(x)
	}
	if arg, ok = x.(A); !ok && x == nil {
		ok = op.info.acceptsNil()
	}
	return arg, ok
}
