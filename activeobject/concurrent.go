package activeobject

import (
	"reflect"
	"runtime/debug"
	"strings"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/settings"
	"github.com/sluice-go/sluice/mailbox"
)

func (t *Type[T]) parallel(c *settings.Concurrency) *engine.Parallel {
	return &engine.Parallel{Threads: c.Threads, OnArrival: c.OnArrival, Limit: c.Limit, Hard: c.Hard, Leaf: func(i int) bool {
		op := t.op(i)
		return op.info.leafed && op.info.looks&guards.AtWaiting == 0
	}}
}

// Conflicts returns the conflict table that follows from the declaration: functions are
// compatible with functions, and everything else excludes. The declaration must be
// complete: what is declared later is not in the table.
func (t *Type[T]) Conflicts() guards.Table {
	all := t.signatures()
	return guards.Where(t.Operations(), func(i, j int) bool { return !all[i].reads() || !all[j].reads() })
}

// reads reports whether the operation changes nothing.
func (s signature) reads() bool { return s.kind == mailbox.Function }

// unsynchronizable returns what makes no sense for an object that runs requests at once.
func (s *objectSettings) unsynchronizable(operations []string, argument func(op int) reflect.Type) senseless {
	c := &s.concurrent
	switch {
	case s.thread != borrowed:
		return senseless{[...]string{pooled: "PooledThreads", dedicated: "DedicatedThread", given: "Dispatcher"}[s.thread], "gives an object one thread at a time: a Synchronizer has options of its own"}
	case c.OnArrival && c.Workers != nil:
		return senseless{"Monitor", "gives requests their threads when they arrive, and worker actors get theirs when they start: use the callers' threads, Goroutines or Workers"}
	case c.Limit < 0:
		return senseless{"Limit", "is less than 1"}
	case c.Table == nil:
		return senseless{}
	}
	if err := c.Table.Err(); err != nil {
		return senseless{"Table", "is wrong: " + err.Error()}
	}
	if names := c.Table.Names(); strings.Join(names, "\n") != strings.Join(operations, "\n") {
		return senseless{"Table", "is for another type: its operations are " + strings.Join(names, ", ") + " instead of " + strings.Join(operations, ", ")}
	}
	if err := c.Table.Fits(argument); err != nil {
		return senseless{"Table", "is wrong: " + err.Error()}
	}
	return senseless{}
}

// conflicts returns the table for the scheduler: the given one, or that of the declaration,
// and what is not declared: Do conflicts with all, View and Until are as functions.
func (t *Type[T]) conflicts(table *guards.Table) guards.Table {
	own := t.Conflicts()
	if table != nil {
		own = *table
	}
	all := append(t.signatures(), signature{"do", mailbox.Procedure}, signature{"view", mailbox.Function}, signature{"until", mailbox.Function})
	var hidden []string
	for _, op := range all[own.Len():] {
		hidden = append(hidden, op.name)
	}
	grown := own.Grown(hidden, func(i, j int) bool { return !all[i].reads() || !all[j].reads() })
	var rests []string
	var of []int
	for _, rest := range t.hidden.rests {
		rests, of = append(rests, rest.info.name), append(of, t.byName[rest.info.restOf].info.index)
	}
	return grown.Alike(rests, of)
}

// footprint returns what an invocation takes up of the scopes of the object's
// conflict table; nil if it needs none. If a key or an interval cannot be found out the error
// is a *KeyError.
func (op *operationInfo) footprint(o *objectHeader, in typed, t *engine.Transaction) (c *mailbox.Claim, err error) {
	if !o.config.footprints || !o.config.engine.Rules.Scoped(op.index) {
		return nil, nil
	}
	if t == nil && !o.config.needsClaim(op.index) {
		return nil, nil
	}
	returned := false
	defer func() {
		if !returned {
			c, err = nil, op.keyFailed(o, engine.Panicked(recover()))
		}
	}()
	if t != nil && o.config.typ.transactional {
		c = t.At(&o.box).Claim()
	} else {
		c = &mailbox.Claim{}
	}
	if table := &o.config.engine.Rules.Conflicts; table.Narrowed(op.index) {
		scopes := table.Scopes()
		c.Extents = make([]guards.Extent, len(scopes))
		a := in.act(getArgument, nil)
		for i := range scopes {
			if c.Extents[i], err = scopes[i].Extent(op.index, a); err != nil {
				c, err = nil, &KeyError{Object: o.Name(), Operation: op.name, Value: err}
				break
			}
		}
	}
	returned = true
	return c, err
}

// needsClaim reports whether requests of the operation that belong to no transaction have a claim.
func (c *objectConfig) needsClaim(op int) bool {
	rules := c.engine.Rules
	return rules.Reentrant || rules.Conflicts.Narrowed(op)
}

// Clash implements mailbox.Clasher.
func (h *host[T]) Clash(scope int, a, b *mailbox.Request) (clash bool, err error) {
	returned, value, stack := false, any(nil), []byte(nil)
	defer func() {
		if !returned {
			err = h.clashFailed(a, b, engine.Panicked(value), stack)
		}
	}()
	defer func() {
		if !returned {
			value, stack = recover(), debug.Stack()
		}
	}()
	s := &h.config.engine.Rules.Conflicts.Scopes()[scope]
	clash = s.Predicate(a.Op, a.Record.(*engine.Request).Body.Argument(), b.Record.(*engine.Request).Body.Argument())
	returned = true
	return clash, nil
}

// clashFailed returns the error of a condition that panicked with the value when it was evaluated
// for a. A nil value says that it has called runtime.Goexit, as in guardFailed.
func (o *objectHeader) clashFailed(a, b *mailbox.Request, value any, stack []byte) error {
	err := &mailbox.ConflictError{Object: o.Name(), Operation: o.config.rule(a.Op).Name, With: o.config.rule(b.Op).Name, Value: value, Stack: stack}
	if value == nil {
		err.Value = goexit
	}
	if a.Waits() { // else a has failed of this condition, and that has been reported
		o.report(err.Operation, a.Arrival(), err)
	}
	if value == nil {
		o.box.ConflictExited(a, err)
	}
	return err
}
