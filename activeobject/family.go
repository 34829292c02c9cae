package activeobject

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/mailbox/kernel"
)

// Family is the handle of a family of entries, one for each key, declared once: a
// request belongs to the entry of its key, and waits for a guard that may look at
// the key. Requests of one key share an answer of the guard. A key that nobody
// waits for costs nothing.
//
//	stops = activeobject.EntryFamily(lifts, "stop", (*Lift).Stop, func(floor int) int { return floor }).
//		WhenKey("at the floor", (*Lift).At)
//
// (Entry families are from Ada; ARM 9.5.2. There the index is of a discrete type;
// here it is anything comparable.)
type Family[T any, K comparable, A, R any] struct {
	*Operation[T, A, R]
	key func(A) K
}

// EntryFamily declares a family of entries, whose key is that of the argument. It
// is given a guard by WhenKey or When. Otherwise it is like Entry; it panics if key
// is nil. The key function must give the same key whenever it is asked; if it
// panics, or gives a key that is not equal to itself, the request fails with a
// *KeyError.
func EntryFamily[T any, K comparable, A, R any](t *Type[T], name string, body func(*T, A) (R, error), key func(A) K) *Family[T, K, A, R] {
	return familyOf(declare(t, kernel.Entry, name, body, nil), key)
}

// EntryFamilyCtx is EntryFamily with a body that may block or call other objects,
// as in ProcedureCtx.
func EntryFamilyCtx[T any, K comparable, A, R any](t *Type[T], name string, body func(*T, context.Context, A) (R, error), key func(A) K) *Family[T, K, A, R] {
	return familyOf(declare(t, kernel.Entry, name, nil, body), key)
}

func familyOf[T any, K comparable, A, R any](op *Operation[T, A, R], key func(A) K) *Family[T, K, A, R] {
	if key == nil {
		panic(op.where() + " is a family without keys: pass the function that returns the key of an argument")
	}
	op.key = func(arg A) any { return key(arg) }
	op.keyed = func(arg A) bool {
		k := key(arg)
		same := k
		return k == same // it panics if the key cannot be compared after all
	}
	op.family = true
	return &Family[T, K, A, R]{op, key}
}

// WhenKey makes the entries of the family wait until the named condition over the
// state and the key holds. Added to another guard, both must hold. It returns the
// family.
func (f *Family[T, K, A, R]) WhenKey(name string, holds func(*T, K) bool) *Family[T, K, A, R] {
	if holds == nil {
		panic(f.where() + " gets a guard without a condition: pass a func that reports whether it holds")
	}
	f.guardBy(guards.WhenArg(name, func(s *T, arg A) bool { return holds(s, f.key(arg)) }))
	return f
}

// When is Operation.When; it returns the family.
func (f *Family[T, K, A, R]) When(name string, holds func(*T) bool) *Family[T, K, A, R] {
	f.Operation.When(name, holds)
	return f
}

// WaitingAt returns how many requests of the key wait inside the object. It must
// not be called by a guard.
func (f *Family[T, K, A, R]) WaitingAt(o *Object[T], key K) int {
	if !o.class.typ.extends(f.typ) {
		return 0
	}
	return o.box.WaitingAt(f.index, key)
}

// Opens declares that the operation can open no more of the family than the key
// that the function returns for its argument: when it has run, the guards of other
// keys, if they were false, are not asked again. Without such a declaration an
// operation is taken to be able to open anything.
//
// An operation that opens what it does not declare leaves requests waiting whose
// guard holds. Objects made with the option Checked find that out. If keys panics,
// all guards are asked, and the panic is logged.
//
// Opens panics if an argument is nil, the two are not of one type, the type is
// sealed, or the operation has declared its keys of that family already.
func Opens[T any, K comparable, A, R, FA, FR any](op *Operation[T, A, R], f *Family[T, K, FA, FR], keys func(A) K) {
	if keys == nil {
		panic(op.where() + " opens keys of a family by a nil function: pass one that returns the key")
	}
	OpensEach(op, f, func(arg A, open func(K)) { open(keys(arg)) })
}

// OpensEach is Opens for an operation that can open several keys: keys passes each
// of them to open, which may be none.
func OpensEach[T any, K comparable, A, R, FA, FR any](op *Operation[T, A, R], f *Family[T, K, FA, FR], keys func(arg A, open func(K))) {
	switch {
	case f == nil:
		panic(op.where() + " opens keys of a nil family: declare the family first, or assign it in init")
	case keys == nil:
		panic(op.where() + " opens keys of a family by a nil function: pass one that tells open the keys")
	case op.typ != f.typ:
		panic(fmt.Sprintf("%s opens keys of family %q, which belongs to type %q: both must be of one type; for an inherited operation pass the handle that In returns", op.where(), f.name, f.typ.name))
	}
	defer op.declaring("keys that it opens")()
	for _, o := range op.opens {
		if o.family == f.name {
			panic(fmt.Sprintf("%s declares twice which keys of family %q it opens: say it once, with OpensEach if there are several", op.where(), f.name))
		}
	}
	op.opens = append(op.opens, opening[A]{family: f.name, keys: func(arg A, open func(any)) {
		keys(arg, func(key K) { open(key) })
	}})
}

// opening is what an operation declares to be able to open of a family.
type opening[A any] struct {
	family string // its name, which is the same in derived types
	keys   func(arg A, open func(key any))
}

// keyFor returns the key of a request.
func (op *Operation[T, A, R]) keyFor(o *Object[T], arg A) (key any, err error) {
	if op.key == nil {
		return nil, nil
	}
	returned := false
	defer func() {
		if !returned {
			key, err = nil, op.keyFailed(o, recover())
		}
	}()
	key = op.key(arg)
	if key != key { // it panics if the key cannot be compared after all
		err = op.unequal(o, key)
	}
	returned = true
	return key, err
}

// checkKey returns the error of keyFor, if there is one, before anybody takes the
// object. It allocates nothing, whatever the key is.
func (op *Operation[T, A, R]) checkKey(o *Object[T], arg A) (err error) {
	if op.keyed == nil {
		return nil
	}
	returned := false
	defer func() {
		if !returned {
			err = op.keyFailed(o, recover())
		}
	}()
	if !op.keyed(arg) {
		err = op.unequal(o, op.key(arg))
	}
	returned = true
	return err
}

// keyFailed returns the error of a key function that panicked with the value; if
// there is none the goroutine is ending.
func (op *Operation[T, A, R]) keyFailed(o *Object[T], value any) error {
	return &KeyError{Object: o.Name(), Operation: op.name, Value: value, Stack: debug.Stack()}
}

func (op *Operation[T, A, R]) unequal(o *Object[T], key any) error {
	return &KeyError{Object: o.Name(), Operation: op.name, Value: fmt.Sprintf("key %v is not equal to itself", key)}
}

// keyHeld is keyFor for somebody who may have taken the object. If there is no key
// the object is given back.
func (op *Operation[T, A, R]) keyHeld(o *Object[T], arg A, held bool) (key any, err error) {
	found := false
	defer func() {
		if !found && held {
			op.putBack(o)
		}
	}()
	key, err = op.keyFor(o, arg)
	found = err == nil
	return key, err
}

// KeyError fails a request of a family whose key could not be found out. It did not
// run.
type KeyError struct {
	Object    string
	Operation string
	Value     any    // what the key function panicked with, or what is wrong with the key
	Stack     []byte // of the panic
}

// Error implements error.
func (e *KeyError) Error() string {
	if e.Stack == nil {
		return fmt.Sprintf("sluice: %s.%s: %v", e.Object, e.Operation, e.Value)
	}
	return fmt.Sprintf("sluice: key of %s.%s panicked: %v", e.Object, e.Operation, e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *KeyError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// opener returns what a request that has run can have opened; nil if its operation
// does not declare that, or its declaration panics.
func (op *Operation[T, A, R]) opener(o *Object[T], arg A) kernel.Opener {
	if op.opens == nil {
		return nil
	}
	return func(family int, open func(key any)) {
		name := o.class.typ.op(family).name
		for _, declared := range op.opens {
			if declared.family != name {
				continue
			}
			returned := false
			defer func() {
				if !returned {
					open(kernel.AnyKey)
					if v := recover(); v != nil {
						o.log(&KeyError{Object: o.Name(), Operation: op.name, Value: v, Stack: debug.Stack()})
					}
				}
			}()
			declared.keys(arg, open)
			returned = true
		}
	}
}

// Opens implements kernel.KeyOpener.
func (o *Object[T]) Opens(r *kernel.Request, family int, open func(key any)) {
	if b, ok := r.Record.(*mailbox.Request).Body.(interface{ opener() kernel.Opener }); ok {
		b.opener()(family, open)
		return
	}
	open(kernel.AnyKey)
}

func (c *request[T, A, R]) opener() kernel.Opener { return c.op.opener(c.o, c.arg) }
func (h *hop[T, A, R]) opener() kernel.Opener     { return h.op.opener(h.o, h.arg) }
