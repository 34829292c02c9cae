package activeobject

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/mailbox"
)

// Family is the handle of a family of entries, one for each key, declared once: a
// request belongs to the entry of its key, and waits for a guard that may look at
// the key. Requests of one key share a result of the guard. A key without waiting
// requests costs nothing.
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
// is nil. The key function must always return the same key for an argument. If it
// panics, or returns a key that is not equal to itself, the request fails with a
// *KeyError.
func EntryFamily[T any, K comparable, A, R any](t *Type[T], name string, body Body[T, A, R], key func(A) K) *Family[T, K, A, R] {
	return familyOf(declare(t, mailbox.Entry, name, body, nil), key)
}

// EntryFamilyCtx is EntryFamily with a body that may block or call other objects,
// as in ProcedureCtx.
func EntryFamilyCtx[T any, K comparable, A, R any](t *Type[T], name string, body BodyCtx[T, A, R], key func(A) K) *Family[T, K, A, R] {
	return familyOf(declare(t, mailbox.Entry, name, nil, body), key)
}

func familyOf[T any, K comparable, A, R any](op *Operation[T, A, R], key func(A) K) *Family[T, K, A, R] {
	if key == nil {
		panic(op.info.where() + " is a family without keys: pass the function that returns the key of an argument")
	}
	op.key = func(arg A, boxed bool) (any, bool) {
		k := key(arg)
		same := k
		if same != k { // it panics if the key cannot be compared after all
			return k, false
		}
		if !boxed {
			return nil, true
		}
		return k, true
	}
	op.info.family, op.info.keyed = true, true
	return &Family[T, K, A, R]{op, key}
}

// WhenKey makes the entries of the family wait until the named condition over the
// state and the key holds. Added to another guard, both must hold. It returns the
// family.
func (f *Family[T, K, A, R]) WhenKey(name string, holds func(*T, K) bool) *Family[T, K, A, R] {
	if holds == nil {
		panic(f.info.where() + " gets a guard without a condition: pass a func that reports whether it holds")
	}
	guardBy(f.Operation, guards.WhenArg(name, func(s *T, arg A) bool { return holds(s, f.key(arg)) }))
	return f
}

// When is Operation.When; it returns the family.
func (f *Family[T, K, A, R]) When(name string, holds func(*T) bool) *Family[T, K, A, R] {
	f.Operation.When(name, holds)
	return f
}

// WaitingAt returns how many requests of the key are admitted and wait. It must not
// be called by a guard.
func (f *Family[T, K, A, R]) WaitingAt(o *Object[T], key K) int {
	if !o.config.typ.extends(f.info.typ) {
		return 0
	}
	return o.box.WaitingAt(f.info.index, key)
}

// Opens declares that the operation can open no more of the family than the key
// that the function returns for its argument: when it has run, the guards of other
// keys, if they were false, are not evaluated again. Without such a declaration an
// operation is taken to be able to open anything.
//
// An operation that opens what it does not declare leaves requests waiting whose
// guard holds. Objects made with the option CheckOpens find that out. If keys panics,
// all guards are evaluated, and the panic is logged.
//
// In a derived type, In and InFamily return the handles of what is inherited; what an
// inherited operation opens of an inherited family holds there as well.
//
// Opens panics if an argument is nil, the two are not of one type, the type is
// sealed, or the operation has declared its keys of that family already.
func Opens[T any, K comparable, A, R, FA, FR any](op *Operation[T, A, R], f *Family[T, K, FA, FR], keys func(A) K) {
	if keys == nil {
		panic(op.info.where() + " opens keys of a family by a nil function: pass one that returns the key")
	}
	OpensEach(op, f, func(arg A, open func(K)) { open(keys(arg)) })
}

// OpensEach is Opens for an operation that can open several keys: keys passes each
// of them to open, which may be none.
func OpensEach[T any, K comparable, A, R, FA, FR any](op *Operation[T, A, R], f *Family[T, K, FA, FR], keys func(arg A, open func(K))) {
	switch {
	case f == nil:
		panic(op.info.where() + " opens keys of a nil family: declare the family first, or assign it in init")
	case keys == nil:
		panic(op.info.where() + " opens keys of a family by a nil function: pass one that tells open the keys")
	case op.typ != f.typ:
		panic(fmt.Sprintf("%s opens keys of family %q, which belongs to type %q: both must be of one type; for an inherited operation pass the handle that In returns, for an inherited family that of InFamily", op.info.where(), f.info.name, f.typ.name))
	}
	defer op.info.declaring("keys that it opens")()
	if slices.Contains(op.info.opens, f.info.name) {
		panic(fmt.Sprintf("%s declares twice which keys of family %q it opens: say it once, with OpensEach if there are several", op.info.where(), f.info.name))
	}
	op.info.opens = append(op.info.opens, f.info.name) // which is the same in derived types
	op.keys = append(op.keys, func(arg A, open func(any)) {
		keys(arg, func(key K) { open(key) })
	})
}

// unequal is a key that is not equal to itself.
type unequal struct{ key any }

// keyOf returns the key of an invocation, and whether that is equal to itself. It panics if the key
// cannot be compared.
func keyOf(in typed) (key any, equal bool) {
	key = in.act(getKey, nil)
	if u, ok := key.(unequal); ok {
		return u.key, false
	}
	return key, true
}

// keyFor returns the key of a request for the invocation.
func (op *operationInfo) keyFor(o *objectHeader, in typed) (key any, err error) {
	returned := false
	defer func() {
		if !returned {
			key, err = nil, op.keyFailed(o, engine.Panicked(recover()))
		}
	}()
	key, equal := keyOf(in)
	if !equal {
		err = op.unequal(o, key)
	} else if o.config.audit != nil {
		if again, _ := keyOf(in); again != key {
			err = o.config.audit.found(&ImpureError{Object: o.Name(), Operation: op.name, Problem: "its key function gave two keys for one argument"})
		}
	}
	returned = true
	return key, err
}

// checkKey returns the error of keyFor, if there is one, before the object is taken. Key
// reports whether the key is equal to itself, and returns it, if it is not, so that nothing
// is allocated for a good one.
func (op *operationInfo) checkKey(o *objectHeader, key func() (key any, equal bool)) (err error) {
	returned := false
	defer func() {
		if !returned {
			err = op.keyFailed(o, engine.Panicked(recover()))
		}
	}()
	if k, equal := key(); !equal {
		err = op.unequal(o, k)
	}
	returned = true
	return err
}

// keyFailed returns the error of a key function that panicked with the value; if
// there is none the goroutine is ending.
func (op *operationInfo) keyFailed(o *objectHeader, value any) error {
	err := &KeyError{Object: o.Name(), Operation: op.name, Value: value, Stack: debug.Stack()}
	if value == nil {
		o.report(op.name, 0, &mailbox.ExitError{Object: o.Name(), Operation: op.name})
	} else {
		o.report(op.name, 0, err)
	}
	return err
}

func (op *operationInfo) unequal(o *objectHeader, key any) error {
	return &KeyError{Object: o.Name(), Operation: op.name, Value: fmt.Sprintf("key %v is not equal to itself", key)}
}

// opened says which keys of a family an invocation opens: of that family, by its number among
// those that the operation declares.
type opened struct {
	family int
	open   func(key any)
}

// opener returns what an invocation that has run can have opened, for an operation that declares
// that. If its declaration panics, anything can have been opened.
func (op *operationInfo) opener(o *objectHeader, in typed) mailbox.Opener {
	return func(family int, open func(key any)) {
		i := slices.Index(op.opens, o.config.rule(family).Name)
		if i < 0 {
			return
		}
		returned := false
		defer func() {
			if !returned {
				open(mailbox.AnyKey)
				if v := engine.Panicked(recover()); v != nil {
					o.report(op.name, 0, &KeyError{Object: o.Name(), Operation: op.name, Value: v, Stack: debug.Stack()})
				}
			}
		}()
		in.act(tellKeys, &opened{i, open})
		returned = true
	}
}

// Opens implements mailbox.KeyOpener.
func (h *host[T]) Opens(r *mailbox.Request, family int, open func(key any)) {
	if b, ok := r.Record.(*engine.Request).Body.(interface{ current() turn }); ok {
		t := b.current()
		t.op.opener(t.o, t.in)(family, open)
		return
	}
	open(mailbox.AnyKey)
}
