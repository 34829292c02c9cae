package activeobject

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// None is the argument of an operation that takes none, and the result of one
// that returns none.
type None = guards.None

// Type is the declaration of a kind of shared object, whose state is a T: its
// name and its operations. It is sealed by its first object, those of types that
// are derived from it included; from then on it may be used from any goroutine.
type Type[T any] struct {
	typeInfo
	base parent[T] // nil unless it is derived

	ops    []*operation[T]          // until then without those it inherits
	byName map[string]*operation[T] // likewise
	rules  *mailbox.Rules           // of the active object: one request at a time; nil until an object is made
	hidden undeclared[T]
	count  atomic.Uint64 // objects so far

	defaults objectSettings
	own      bool                     // the defaults are not those of the base
	taken    map[string]*operation[T] // inherited operations that In has returned
	stronger []strengthening[T]
}

// typeInfo is what a type is whatever its state.
type typeInfo struct {
	name string
	self any // the *Type[T]
	tag  uint32
	line []*typeInfo // the type, its base, and so on

	mu     sync.Mutex
	sealed bool             // the declaration has ended
	all    []*operationInfo // the operations, from then on
	rests  map[int]int      // of the operations whose bodies may suspend: the number of that of the rest

	transactions
}

// operation is what a type knows of an operation without its argument and result.
// (It has no methods, as Operation, which embeds it, would have them compiled for each
// operation again.)
type operation[T any] struct {
	info          operationInfo
	typ           *Type[T]
	simple        func(*T) bool   // the guard, if it is one condition that does not look at the argument
	plain         func(*T) bool   // likewise, if it does not look at waiting counts either
	evaluateState func(*T) string // the guard, if it does not look at the argument
}

// operationInfo is what an operation is whatever its types. A derived type's operation
// begins with a copy of its base's.
type operationInfo struct {
	idle, mark word.Word // what the fast path compares and swaps
	unasked    word.Word // idle, once it is known that the request belongs to no transaction

	typ       *typeInfo
	alone     *typeInfo // the same; nil if requests may belong to transactions, so that the context has to be asked
	self      any       // the *operation[T]
	prototype typed     // an invocation without an argument
	handedTo  string    // the derived type to which In has handed it on

	index     int
	name      string
	kind      mailbox.Kind
	guard     string
	looks     guards.Looks
	argument  reflect.Type
	result    reflect.Type
	resultPtr reflect.Type // of a result: a pointer to one
	changed   bool         // the body may change the state
	leafed    bool         // the body neither blocks nor calls others

	restOf     string   // of the rests of bodies that suspend: the operation whose bodies these are
	family     bool     // of entries, or hidden; the key is in forms
	keyed      bool     // the key is computed before the object is taken
	opens      []string // what families it can open some keys of; which ones, is in forms
	headOfLine bool
	own        bool // a leaf that runs on its own caller's goroutine only
	suspends   bool // its body may suspend: see Operation.Suspends
	undoes     bool // it can be undone: see Operation.Undo
	copied     bool // it is inherited from a type with Copies
	bound      mailbox.Bound

	pools pools
}

// where names the operation in the text of a panic.
func (op *operationInfo) where() string {
	return fmt.Sprintf("activeobject: %s %q of type %q", op.kind, op.name, op.typ.name)
}

// declaring locks the type for a change of the operation's declaration, and
// returns what unlocks it. It panics if it is too late.
func (op *operationInfo) declaring(what string) (done func()) {
	op.typ.mu.Lock()
	switch {
	case op.typ.sealed:
		op.typ.mu.Unlock()
		panic(fmt.Sprintf("%s gets %s after the first object was made: add it where the %s is declared", op.where(), what, op.kind))
	case op.handedTo != "":
		op.typ.mu.Unlock()
		panic(fmt.Sprintf("%s gets %s after In has handed it on to type %q: add it before that", op.where(), what, op.handedTo))
	}
	return op.typ.mu.Unlock
}

// hand notes that the operation is handed on to a derived type.
func (op *operationInfo) hand(to string) {
	op.typ.mu.Lock()
	defer op.typ.mu.Unlock()
	op.handedTo = to
}

// types is how many types there have been. It numbers them, so that an object and an
// operation can be matched in the same step in which the object is taken. A number is
// given once: what is made for each object or system must not draw any.
var types atomic.Uint64

// noTag is the tag of objects that no operation may take by that step, and the tag of types for
// which no other number is left. An operation of such a type does not take objects by that step.
const noTag = 0

// newTag returns a number that no other type has, or noTag.
func newTag() uint32 {
	if n := types.Add(1); n <= math.MaxUint32 {
		return uint32(n)
	}
	return noTag
}

// NewType declares a type of shared object. The name is that of its objects in
// errors and explanations; it panics if the name is empty.
func NewType[T any](name string) *Type[T] {
	if name == "" {
		panic("activeobject: a type has no name: pass one to NewType, such as \"account\"")
	}
	t := &Type[T]{byName: map[string]*operation[T]{}, taken: map[string]*operation[T]{}}
	t.name, t.tag, t.self, t.line = name, newTag(), t, []*typeInfo{&t.typeInfo}
	return t
}

// Name returns the name of the type.
func (t *Type[T]) Name() string { return t.name }

// Operations returns the names of the type's operations in the order of their
// declaration, inherited ones first.
func (t *Type[T]) Operations() []string {
	names := []string{}
	for _, op := range t.signatures() {
		names = append(names, op.name)
	}
	return names
}

// signature is what there is to say of an operation before its type is sealed.
type signature struct {
	name string
	kind mailbox.Kind
}

// signatures returns those of the operations, by their number.
func (t *Type[T]) signatures() (all []signature) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.base != nil && !t.sealed {
		all = t.base.signatures()
	}
	for _, op := range t.ops {
		all = append(all, signature{op.info.name, op.info.kind})
	}
	return all
}

// String implements fmt.Stringer.
func (t *Type[T]) String() string { return t.name }

// Default sets the options that all objects of the type get, unless New is given
// others. Said again, it replaces what was said before; said of a derived type,
// what was said of its base. It returns the type. An option that makes no sense
// fails New, not Default. Options of the package synchronizer are for those objects
// that are Synchronizers; whether one is, its New says.
//
// It panics if the type is sealed, an option is nil, or one of them is Name,
// since no two objects have the same name.
func (t *Type[T]) Default(options ...Option) *Type[T] {
	var s objectSettings
	for i, o := range options {
		if o == nil {
			panic(fmt.Sprintf("activeobject: default option %d of type %q is nil: pass options such as ByRotation()", i+1, t.name))
		}
		o(&s)
	}
	s.concurrent.On, s.ordered = false, false
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.sealed:
		panic(fmt.Sprintf("activeobject: type %q gets default options after the first object was made: call Default where the type is declared", t.name))
	case s.name != "":
		panic(fmt.Sprintf("activeobject: type %q gets a default name, which only one object could have: pass Name to New", t.name))
	}
	t.defaults, t.own = s, true
	return t
}

// add makes op an operation of the type. It panics if that is a mistake.
func (t *Type[T]) add(op *operation[T], body bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case op.info.name == "":
		panic(fmt.Sprintf("activeobject: an operation of type %q has no name: pass one after the type", t.name))
	case t.sealed:
		panic(op.info.where() + " is declared after the first object was made: declare it in a package-level variable or in init")
	case t.byName[op.info.name] != nil:
		panic(op.info.where() + " is declared twice: give one of the two another name")
	case t.base != nil && slices.ContainsFunc(t.base.signatures(), func(s signature) bool { return s.name == op.info.name }):
		panic(op.info.where() + t.clash())
	case !body:
		panic(op.info.where() + " has no body: pass the function that carries it out")
	}
	t.ops = append(t.ops, op)
	t.byName[op.info.name] = op
}

// seal ends the declaration. It panics if that is incomplete.
func (t *Type[T]) seal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rules != nil {
		return
	}
	t.completeOperations()
	declared := make([]mailbox.Operation, len(t.ops))
	names := make([]string, len(t.ops))
	for i, op := range t.ops {
		if op.info.kind == mailbox.Entry && op.info.guard == "" {
			panic(fmt.Sprintf("activeobject: entry %q of type %q has no guard: say when it is open with When, WhenArg, WhenWaiting, WhenTime or Guard, or declare it a Procedure", op.info.name, t.name))
		}
		declared[i] = op.info.rule()
		names[i] = op.info.name
		for _, family := range op.info.opens {
			declared[i].Opens = append(declared[i].Opens, t.byName[family].info.index)
		}
	}
	t.hidden = newUndeclared(t)
	for _, op := range [...]*operation[T]{&t.hidden.do.operation, &t.hidden.view.operation, &t.hidden.until.operation} {
		declared = append(declared, op.info.rule())
		names = append(names, op.info.name)
	}
	for _, rest := range t.hidden.rests {
		declared = append(declared, rest.info.rule())
		declared[rest.info.index].Opens = declared[t.byName[rest.info.restOf].info.index].Opens
		names = append(names, rest.info.name)
	}
	conflicts := guards.NewExclusive(names...)
	if t.transactional { // bodies run one at a time anyway; several transactions may have called functions
		conflicts = guards.Where(names, func(i, j int) bool {
			return declared[i].Kind != mailbox.Function || declared[j].Kind != mailbox.Function
		})
	}
	t.rules = &mailbox.Rules{Operations: declared, Conflicts: conflicts, Transactional: t.transactional, Commuting: t.commutes}
}

// rule returns what the scheduler knows of the operation.
func (op *operationInfo) rule() mailbox.Operation {
	return mailbox.Operation{
		Name: op.name, Kind: op.kind, Guard: op.guard, Looks: op.looks,
		Family: op.family, Bound: op.bound,
		HeadOfLine: op.headOfLine && op.looks&guards.AtArgument != 0, // all others are that anyway
		Resumes:    op.restOf != "",
	}
}

// op returns the operation with a number, those that are not declared included.
func (t *Type[T]) op(i int) *operation[T] {
	switch i -= len(t.ops); {
	case i < 0:
		return t.ops[i+len(t.ops)]
	case i == 0:
		return &t.hidden.do.operation
	case i == 1:
		return &t.hidden.view.operation
	case i == 2:
		return &t.hidden.until.operation
	default:
		return t.hidden.rests[i-3]
	}
}

// bind connects the Queues and the Clock in the state of an object of type k, which is t or
// derived from it. It returns the name of a type whose part of the state is
// missing.
func (t *Type[T]) bind(state *T, k *typeInfo, box *engine.Mailbox) (missing string) {
	if q, ok := any(state).(interface {
		bind(k *typeInfo, box *engine.Mailbox)
	}); ok {
		q.bind(k, box)
	}
	if c, ok := any(state).(interface{ bindClock(box *engine.Mailbox) }); ok {
		c.bindClock(box)
	}
	if t.base != nil {
		return t.base.bind(state, k, box)
	}
	return ""
}

// stopClocks stops the Clocks of a state that is not an object's any more.
func (t *Type[T]) stopClocks(state *T) {
	if c, ok := any(state).(interface{ stopClock() }); ok {
		c.stopClock()
	}
	if t.base != nil {
		t.base.stopClocks(state)
	}
}

// objectConfig is what the objects of one type in one system that have the same options
// share. It is not changed once an object uses it.
type objectConfig struct {
	typ    *typeInfo
	system *actor.System
	engine engine.Config

	filters    []Interceptor // nil if there are none
	audit      *audit        // nil if guards and functions are trusted
	around     bool          // there is something around bodies, or may be
	footprints bool          // requests take up something of the conflict table's scopes
	fits       bool          // there are filters, or footprints, or it is strict
	strict     bool          // it takes no part in transactions, and no request of one
	local      bool          // see LocalLifecycle
}

// rule returns what the scheduler knows of an operation.
func (c *objectConfig) rule(op int) *mailbox.Operation { return &c.engine.Rules.Operations[op] }

// configOf returns the configuration of objects with the given settings in a system. Those
// with the type's defaults share it, unless each has a goroutine of its own.
func (t *Type[T]) configOf(system *actor.System, s *objectSettings, version *[]Option) *objectConfig {
	defaults := t.settingsIn(system, version)
	defaults.place = nil // the one thing here that is each object's own
	defaults.concurrent.On = s.concurrent.On
	if *s == defaults && s.thread != dedicated {
		return system.Shared(shared{&t.typeInfo, s.concurrent.On, version}, func() any { return t.newConfig(system, s) }).(*objectConfig)
	}
	return t.newConfig(system, s)
}

// shared is the key of an objectConfig with the defaults of the type.
type shared struct {
	typ        *typeInfo
	concurrent bool
	version    *[]Option // of the defaults of the system
}

func (t *Type[T]) newConfig(system *actor.System, s *objectSettings) *objectConfig {
	rules := t.rules
	if s.order.policy != nil || s.maxBypass != 0 || s.log != nil || s.bound != (mailbox.Bound{}) || s.checked || s.counted || s.concurrent.On {
		changed := *rules
		changed.Policy, changed.MaxBypass, changed.Bound, changed.Check = s.order.policy, s.maxBypass, s.bound, s.checked
		if s.counted {
			changed.CountBypass = bypassesCounted
		}
		if s.log != nil {
			changed.Log = *s.log
		}
		if s.concurrent.On {
			changed.Conflicts = t.conflicts(s.concurrent.Table)
			changed.Reentrant, changed.AllCompatible = s.concurrent.Reentrant, s.concurrent.AllCompatible
		}
		rules = &changed
	}
	c := &objectConfig{typ: &t.typeInfo, system: system, local: s.local, engine: engine.Config{
		Rules: rules, Tag: t.tag, Workers: system.Workers(), HelpLimit: helpLimit, NoFastPath: s.noFastPath,
		Views: s.order.views, Counted: s.counted, Timed: s.counted, Patience: s.patience, Unwanted: unwanted,
	}}
	if until := t.hidden.until.info.index; until < 64 {
		c.engine.Carried = until + 1
	}
	switch s.order.rank {
	case byPriority:
		c.engine.Rank, c.engine.Prioritized = engine.ByPriority, true
	case byDeadline:
		c.engine.Rank = engine.ByDeadline
	}
	if rules.Policy != nil && rules.Policy.Fallible {
		c.engine.Failed = policyFailed
	}
	if s.patience > 0 {
		c.engine.Overdue, c.engine.Overlong = overdue(system.Logger()), overlong(system.Logger())
	}
	if s.concurrent.On {
		c.engine.Parallel = t.parallel(&s.concurrent)
	}
	if s.counted {
		c.engine.Tag = noTag // no request takes the way that counts nothing
	}
	if s.filters != nil {
		c.filters, c.engine.NoFastPath = *s.filters, true
	}
	if s.audit != nil {
		c.audit, c.engine.NoFastPath = s.audit, true
	}
	if c.strict = s.strict && !t.transactional; c.strict {
		c.engine.NoFastPath = true // where nothing asks for the context
	}
	c.footprints = rules.Reentrant || rules.Transactional || len(rules.Conflicts.Scopes()) > 0
	c.fits = c.filters != nil || c.footprints || c.strict
	c.around = c.filters != nil || c.audit != nil
	switch s.thread {
	case pooled:
		c.engine.Dispatcher = system.Workers()
	case dedicated:
		c.engine.Dispatcher = actor.NewDedicated()
	case given:
		c.engine.Dispatcher, c.engine.Turn = engine.Lend(*s.dispatcher), turnOn(*s.dispatcher)
	}
	c.engine.Prepare(func(i int) bool { op := t.op(i); return op.plain != nil && !op.info.family })
	return c
}

// helpLimit is how many requests of others a goroutine serves before it passes the
// object on: enough to spread the price of passing, not so many that its own
// caller notices.
const helpLimit = 32
