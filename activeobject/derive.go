package activeobject

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// Derive declares a type of shared object that extends another, which is left as
// it is. The new type has all operations of its base, with their bodies and
// guards. Their guards can be strengthened, one by one through In or all at once
// by Strengthen; their bodies can be overridden; operations can be added as to any
// other type; and Default replaces the options that the base's objects have.
//
// The state S of the new type contains that of the base, and part returns it. A
// type that adds no state has that of its base, and passes Same. Then handles of
// the base work at the new type's objects too, and obey the new type's guards.
//
//	type Locked struct {
//		Account
//		locked bool
//	}
//
//	lockedAccounts = activeobject.Derive(accounts, "locked account", func(l *Locked) *Account { return &l.Account })
//
// Deriving does not seal the base: what is declared later is inherited too, until
// the first object of either type is made. That seals both. A derived type may be
// derived from again.
//
// It panics if the base or part is nil, or the name empty.
//
// That an extension must not need the text of what it extends is the subject of
// Matsuoka and Yonezawa, "Analysis of Inheritance Anomaly in Object-Oriented
// Concurrent Programming Languages" (1993); that guards are joined by And is
// Frølund's answer, "Inheritance of Synchronization Constraints in Concurrent
// Object-Oriented Programming Languages" (1992).
func Derive[S, T any](base *Type[T], name string, part func(*S) *T) *Type[S] {
	switch {
	case base == nil:
		panic(fmt.Sprintf("activeobject: type %q is derived from nil: pass a type made by NewType or Derive; if it is assigned in init, derive from it there", name))
	case name == "":
		panic(fmt.Sprintf("activeobject: a type derived from %q has no name: pass one to Derive, such as \"checked account\"", base.name))
	case part == nil:
		panic(fmt.Sprintf("activeobject: type %q is derived from %q without a part: pass the function that returns the base's state in that of the derived type, or Same", name, base.name))
	}
	t := NewType[S](name)
	t.line = append(t.line, base.line...)
	t.base = &derivation[S, T]{derived: t, base: base, part: part}
	return t
}

// Same returns its argument. It is the part to pass to Derive when the derived
// type has the state of its base.
func Same[T any](s *T) *T { return s }

// In returns the handle of an inherited operation in a derived type: for calls to
// its objects, and, before the first of them is made, to strengthen the guard (by
// When, WhenArg, WhenWaiting and Guard, which join theirs to the inherited one by
// And) or to Override the body. A procedure that gets a guard becomes an entry of
// the derived type. In the base nothing changes.
//
// The operation is one of the derived type's base, or of that one's bases as long
// as they have the same state; through several states In is said step by step. In
// its own type an operation is its own handle. What In has handed on must not get
// further guards in the base. For a family there is InFamily.
//
// It panics if the type or the operation is nil, or the one does not inherit the
// other.
func In[S, T, A, R any](derived *Type[S], op *Operation[T, A, R]) *Operation[S, A, R] {
	switch {
	case derived == nil:
		panic("activeobject: In of a nil type: if it is assigned in init, call In there, after that")
	case op == nil:
		panic(fmt.Sprintf("activeobject: In(%q) of a nil operation: if it is assigned in init, call In there, after that", derived.name))
	}
	if own, ok := any(op).(*Operation[S, A, R]); ok && own.typ == derived {
		return own
	}
	h := find(derived, op)
	if h == nil {
		if derived.extends(op.info.typ) {
			panic(fmt.Sprintf("activeobject: type %q inherits operation %q of type %q through a type with another state: pass its handle in the base, which In returns too", derived.name, op.info.name, op.typ.name))
		}
		panic(fmt.Sprintf("activeobject: type %q does not inherit operation %q of type %q: pass an operation of its base, or derive it from that type", derived.name, op.info.name, op.typ.name))
	}
	return h
}

// InFamily is In for a family of entries: WhenKey adds to its guard, and operations
// of the derived type, inherited ones included, can declare by Opens which of its
// keys they open.
//
//	express = activeobject.Derive(lifts, "express", func(e *Express) *Lift { return &e.Lift })
//	leap    = activeobject.Procedure(express, "leap", activeobject.Arg((*Express).Leap))
//
//	activeobject.Opens(leap, activeobject.InFamily(express, stops), func(floor int) int { return floor })
//
// It panics as In does.
func InFamily[S, T any, K comparable, A, R any](derived *Type[S], family *Family[T, K, A, R]) *Family[S, K, A, R] {
	if family == nil {
		return &Family[S, K, A, R]{In(derived, (*Operation[T, A, R])(nil)), nil} // which panics
	}
	return &Family[S, K, A, R]{In(derived, family.Operation), family.key}
}

// Override replaces the body of an inherited operation in a derived type, which
// In has returned; guards stay. The new body reaches the old one as a method of
// the part of its state that the base knows. It returns the operation, and panics
// if that is not inherited, the body is nil, or the type sealed.
func (op *Operation[T, A, R]) Override(body Body[T, A, R]) *Operation[T, A, R] {
	op.override(body, nil)
	return op
}

// OverrideCtx is Override with a body that may block or call other objects, as in
// ProcedureCtx.
func (op *Operation[T, A, R]) OverrideCtx(body BodyCtx[T, A, R]) *Operation[T, A, R] {
	op.override(nil, body)
	return op
}

func (op *Operation[T, A, R]) override(leaf func(*T, A) (R, error), blocks func(*T, context.Context, A) (R, error)) {
	defer op.info.overriding(op.inherited != nil, leaf != nil || blocks != nil)()
	op.leaf, op.blocks, op.undo = leaf, blocks, nil
	op.info.undoes, op.info.copied, op.info.suspends = false, false, false
}

// overriding locks the type for a change of the operation's body, as declaring does. It panics
// if the operation is not inherited, or there is no body.
func (op *operationInfo) overriding(inherited, body bool) (done func()) {
	done = op.declaring("another body")
	switch {
	case !inherited:
		done()
		panic(op.where() + " is not inherited: pass its body where it is declared, or Override it in a derived type, as In(derived, operation)")
	case !body:
		done()
		panic(op.where() + " is overridden without a body: pass the function that carries it out")
	}
	return done
}

// Strengthen makes all inherited procedures and entries of a derived type wait
// until the named condition over the state holds too, those excepted that are
// given. Procedures become entries by it; functions change nothing, and stay as
// they are (In and When make one wait). The condition must not look at Queues, as WhenWaiting's may. Strengthen
// returns the type. It is for extensions that know nothing of what they extend,
// such as a lock over a whole object.
//
// It panics if the type is not derived or is sealed, the name is empty, the
// condition nil, or an exception is not inherited.
func (t *Type[T]) Strengthen(name string, holds func(*T) bool, except ...interface{ known() *operationInfo }) *Type[T] {
	s := strengthening[T]{guard: guards.When(name, holds), except: map[string]bool{}}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.base == nil:
		panic(fmt.Sprintf("activeobject: type %q is strengthened but inherits nothing: derive it with Derive, or give its entries their guards", t.name))
	case t.sealed:
		panic(fmt.Sprintf("activeobject: type %q is strengthened after the first object was made: call Strengthen where the type is declared", t.name))
	}
	for _, e := range except {
		op := e.known()
		if op.typ == &t.typeInfo && t.taken[op.name] == nil || !t.extends(op.typ) {
			panic(fmt.Sprintf("activeobject: type %q is strengthened except for operation %q, which it does not inherit: pass operations of its bases", t.name, op.name))
		}
		s.except[op.name] = true
	}
	t.stronger = append(t.stronger, s)
	return t
}

// strengthening is a guard for all inherited operations but a few.
type strengthening[T any] struct {
	guard  guards.Guard[T, None]
	except map[string]bool
}

// parent is what a type with state S is derived from, whatever its state.
type parent[S any] interface {
	String() string
	signatures() []signature
	// inherit seals the base and returns its operations as those of the derived
	// type, in the same order, and so with the same numbers.
	inherit() []*operation[S]
	defaults() objectSettings
	// adopt returns an operation that a base with the same state has got since it was
	// sealed as one of the derived type; nil if it does not inherit that with the state.
	adopt(op *operation[S]) *operation[S]
	// bind connects the Queues in the base's part of the state, and in the parts
	// of that. It returns the name of a type whose part is missing.
	bind(state *S, t *typeInfo, box *engine.Mailbox) (missing string)
	// stopClocks stops the Clocks there.
	stopClocks(state *S)
}

// derivation is the step from a type to the one that is derived from it.
type derivation[S, T any] struct {
	derived *Type[S]
	base    *Type[T]
	part    func(*S) *T
}

// String implements parent: it returns the name of the base.
func (d *derivation[S, T]) String() string { return d.base.name }

// Operations implements parent: it returns the names of the base's operations.
func (d *derivation[S, T]) signatures() []signature { return d.base.signatures() }

func (d *derivation[S, T]) defaults() objectSettings { return d.base.defaults }

func (d *derivation[S, T]) inherit() []*operation[S] {
	d.base.mu.Lock()
	defer d.base.mu.Unlock()
	d.base.completeOperations()
	inherited := make([]*operation[S], len(d.base.ops))
	for i, op := range d.base.ops {
		if own := d.derived.taken[op.info.name]; own != nil {
			inherited[i] = own
		} else if part, ok := any(d.part).(func(*S) *S); ok {
			inherited[i] = extended(&op.info, d.derived, part)
		} else {
			// Here nothing tells the types of its argument and result; and it takes
			// In, which is told them, to call it other than by message.
			inherited[i] = &inheritOperation(d.derived, d.part, erase(op)).operation
		}
	}
	return inherited
}

func (d *derivation[S, T]) bind(state *S, t *typeInfo, box *engine.Mailbox) (missing string) {
	part := d.part(state)
	if part == nil {
		return d.base.name
	}
	return d.base.bind(part, t, box)
}

func (d *derivation[S, T]) stopClocks(state *S) { d.base.stopClocks(d.part(state)) }

// find returns the operation's handle in a derived type, or nil if that does not
// inherit it through types with the operation's own state.
func find[S, T, A, R any](derived *Type[S], op *Operation[T, A, R]) *Operation[S, A, R] {
	d, ok := derived.base.(*derivation[S, T])
	if !ok {
		return nil
	}
	if d.base != op.typ {
		if op = find(d.base, op); op == nil {
			return nil
		}
	}
	derived.mu.Lock()
	defer derived.mu.Unlock()
	if derived.sealed {
		if own, ok := derived.all[op.info.index].prototype.(*invocation[S, A, R]); ok {
			return own.op
		}
	}
	if own := derived.taken[op.info.name]; own != nil {
		return own.info.prototype.(*invocation[S, A, R]).op
	}
	own := inheritOperation(derived, d.part, op)
	if derived.sealed {
		completeOperation(own, op.info.index)
	} else {
		op.info.hand(derived.name)
	}
	derived.taken[op.info.name] = &own.operation
	return own
}

// inheritOperation makes an operation one of a derived type. What does not depend on the
// state is copied; what does is applied to the base's part of it. The guard is
// looked up when the derived type is sealed, and so the base's complete.
func inheritOperation[S, T, A, R any](derived *Type[S], part func(*S) *T, from *Operation[T, A, R]) *Operation[S, A, R] {
	op := newOperation[S, A, R](derived)
	op.info.copy(&from.info)
	op.forms = from.forms
	op.keys = slices.Clip(op.keys) // what others derived from it add is theirs
	if undo := from.undo; undo != nil {
		op.undo = func(s *S, a A, r R) { undo(part(s), a, r) }
		derived.transactional = true
	}
	if copies := from.info.typ.copies; copies != nil && derived.copies == nil {
		derived.transactional = true
		derived.copies = func(at any) (restore func()) { return copies(part(stateOf[S](at))) }
		derived.copiesPart = true
	}
	op.info.copied = from.info.copied || from.info.typ.copies != nil
	if leaf := from.leaf; leaf != nil {
		op.leaf = func(s *S, a A) (R, error) { return leaf(part(s), a) }
	}
	if blocks := from.blocks; blocks != nil {
		op.blocks = func(s *S, ctx context.Context, a A) (R, error) { return blocks(part(s), ctx, a) }
	}
	op.inherited = func() guards.Guard[S, A] { return guards.Part(from.guarded, part) }
	return op
}

// copy makes what is known of the operation that of one of a base, as far as it is
// inherited.
func (op *operationInfo) copy(from *operationInfo) {
	typ, self, prototype := op.typ, op.self, op.prototype
	*op = operationInfo{
		typ: typ, self: self, prototype: prototype, resultPtr: op.resultPtr,
		index: from.index, name: from.name, kind: from.kind, guard: from.guard, looks: from.looks,
		argument: from.argument, result: from.result, changed: from.changed, leafed: from.leafed,
		family: from.family, keyed: from.keyed, opens: slices.Clip(from.opens),
		headOfLine: from.headOfLine, own: from.own, bound: from.bound, undoes: from.undoes, suspends: from.suspends,
	}
}

// extension is a derived type with the same state.
type extension[T any] struct {
	derived *Type[T]
	part    func(*T) *T
}

// extended returns an operation as that of a derived type with the same state. (It is not
// given the derivation: then the linker would take every type for one that is derived from.)
func extended[T any](op *operationInfo, derived *Type[T], part func(*T) *T) *operation[T] {
	return op.prototype.act(extendType, &extension[T]{derived, part}).(*operation[T])
}

// erase makes an operation one that takes and returns anything. It is only good for
// inheritOperation.
func erase[T any](op *operation[T]) *Operation[T, any, any] {
	from := op.info.prototype
	erased := newOperation[T, any, any](op.typ)
	erased.info.copy(&op.info)
	erased.accept = func(x any) (any, bool) {
		in, ok := from.act(acceptArgument, x).(typed)
		if !ok {
			return nil, false
		}
		return in.act(getArgument, nil), true
	}
	if op.info.leafed {
		erased.leaf = func(s *T, a any) (any, error) { return applied(from, s, nil, a) }
	} else {
		erased.blocks = func(s *T, ctx context.Context, a any) (any, error) { return applied(from, s, ctx, a) }
	}
	if op.info.family {
		erased.key = func(a any, _ bool) (any, bool) { return keyOf(invoke(from, a)) }
	}
	for i := range op.info.opens {
		erased.keys = append(erased.keys, func(a any, open func(any)) { invoke(from, a).act(tellKeys, &opened{i, open}) })
	}
	erased.guarded = erasedGuard(op)
	if op.info.undoes {
		erased.undo = func(s *T, a, r any) { invoke(from, a).undoes(nil, s, &r).undo() }
	}
	return erased
}

// invoke returns an invocation of the prototype's operation with an argument that is one, or,
// for a nil interface, nil.
func invoke(prototype typed, x any) typed { return prototype.act(bindArgument, x).(typed) }

// applied runs the body of the prototype's operation on a state, which is a *T, and returns
// its result.
func applied(prototype typed, state any, ctx context.Context, argument any) (result any, err error) {
	err = invoke(prototype, argument).apply(state, ctx, &result)
	return result, err
}

// erasedGuard returns the operation's guard as one that takes any argument.
func erasedGuard[T any](op *operation[T]) (none guards.Guard[T, any]) {
	switch {
	case op.info.guard == "":
		return none
	case op.simple != nil && op.info.looks&guards.AtWaiting != 0:
		return guards.Over[any](guards.WhenWaiting(op.info.guard, op.simple))
	case op.simple != nil && op.info.looks&guards.AtTime != 0:
		return guards.Over[any](guards.WhenTime(op.info.guard, op.simple))
	case op.simple != nil:
		return guards.Over[any](guards.When(op.info.guard, op.simple))
	}
	from := op.info.prototype
	return guards.Of(op.info.guard, op.info.looks, func(s *T, a any) string { return invoke(from, a).evaluate(s) })
}

// as returns an argument that is an A, or, as that is an interface, nil.
func as[A any](a any) A {
	arg, _ := a.(A)
	return arg
}

// inheritedBy returns the operation as that of an object whose type inherits it, with the
// same state all the way, or nil if there is none. The types are sealed.
func (op *operationInfo) inheritedBy(o *objectHeader) *operationInfo {
	if !o.config.typ.extends(op.typ) {
		return nil
	}
	own := o.config.typ.all[op.index]
	if reflect.TypeOf(own.prototype) != reflect.TypeOf(op.prototype) { // which In has made since, from one with another state
		own = o.box.Host().(interface {
			adopt(*operationInfo) *operationInfo
		}).adopt(op)
	}
	return own
}

func (h *host[T]) adopt(op *operationInfo) *operationInfo {
	base := h.object().Type().base
	if base == nil {
		return nil
	}
	if own := base.adopt(op.self.(*operation[T])); own != nil {
		return &own.info
	}
	return nil
}

// adopt implements parent. It is find where the types of argument and result are not known.
func (d *derivation[S, T]) adopt(op *operation[S]) *operation[S] {
	part, ok := any(d.part).(func(*S) *S)
	if !ok {
		return nil
	}
	if op.info.typ != &d.base.typeInfo {
		if d.base.base == nil {
			return nil
		}
		if op = any(d.base.base).(parent[S]).adopt(op); op == nil {
			return nil
		}
	}
	d.derived.mu.Lock()
	defer d.derived.mu.Unlock()
	if taken := d.derived.taken[op.info.name]; taken != nil {
		return taken
	}
	own := extended(&op.info, d.derived, part)
	own.info.prototype.act(endDeclaration, op.info.index)
	d.derived.taken[op.info.name] = own
	return own
}

// extends reports whether the type is other or derived from it, so that the operations
// of other have the same numbers in both.
func (s *typeInfo) extends(other *typeInfo) bool { return slices.Contains(s.line, other) }

// completeOperations completes the list of operations, and ends the declaration of each. It is
// called with mu held.
func (t *Type[T]) completeOperations() {
	if t.sealed {
		return
	}
	var all []*operation[T]
	if t.base != nil {
		all = t.base.inherit()
		for _, op := range all {
			if own := t.byName[op.info.name]; own != nil {
				panic(own.info.where() + t.clash())
			}
		}
		if !t.own {
			t.defaults = t.base.defaults()
		}
	}
	t.ops = append(all, t.ops...)
	for i, op := range t.ops {
		op.info.prototype.act(endDeclaration, i)
		t.all = append(t.all, &op.info)
		t.byName[op.info.name] = op
	}
	t.sealed = true
}

func (t *Type[T]) clash() string {
	return fmt.Sprintf(" has the name of one that its type inherits from %q: give it another name, or take the inherited one with In", t.base)
}

// completeOperation ends the declaration of the operation: it numbers it, joins its guards, and
// prepares it for calls.
func completeOperation[T, A, R any](op *Operation[T, A, R], index int) {
	parts := op.parts
	if op.inherited != nil {
		parts = nil
		if g := op.inherited(); !g.IsZero() {
			parts = append(parts, g)
		}
		parts = append(parts, op.parts...)
		for _, g := range op.typ.strengthens(&op.info) {
			parts = append(parts, guards.Over[A](g))
		}
	}
	op.simple, op.plain, op.evaluateState, op.single = nil, nil, nil, nil
	if len(parts) > 0 {
		g := guards.And(parts...)
		op.guarded, op.simple, op.single = g, g.Simple(), g.SimpleArg()
		if g.Looks() == guards.AtState {
			op.plain = op.simple
		}
		if g.Looks()&guards.AtArgument == 0 {
			op.evaluateState = func(s *T) string {
				var none A
				return g.Ask(s, none)
			}
		}
	}
	op.info.complete(index, op.leaf != nil, op.guarded.Name(), op.guarded.Looks())
}

// strengthens returns the guards of Strengthen for an inherited operation.
func (t *Type[T]) strengthens(op *operationInfo) (all []guards.Guard[T, None]) {
	if op.kind == mailbox.Function {
		return nil
	}
	for _, s := range t.stronger {
		if !s.except[op.name] {
			all = append(all, s.guard)
		}
	}
	return all
}

// complete is the part of completeOperation that need not know the types.
func (op *operationInfo) complete(index int, leaf bool, guard string, looks guards.Looks) {
	op.index, op.mark, op.leafed = index, word.Mark(index), leaf
	op.guard, op.looks = guard, looks
	if guard != "" && op.kind == mailbox.Procedure {
		op.kind = mailbox.Entry // it waits from now on
	}
	op.idle, op.unasked, op.alone = word.Idle(op.typ.tag), word.Never, op.typ
	if !leaf || looks&guards.AtWaiting != 0 || op.keyed || op.typ.tag == noTag {
		// No fast path: bodies that may block are known to the scheduler, so that circles
		// of waiting can be followed; a request that arrives counts itself; and a key is
		// looked at before the object is taken. (A head of line that waits closes
		// the fast path for all, so where it is open there is none to pass.) Nor has
		// a type without a tag, as its objects cannot be told from others by their word.
		op.idle = word.Never
	}
	if op.typ.transactional { // the context has to be asked first
		op.idle, op.unasked, op.alone = word.Never, op.idle, nil
	}
}
