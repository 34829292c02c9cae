package activeobject

import (
	"strings"

	"github.com/sluice-go/sluice/actor"
	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/mailbox"
	"github.com/sluice-go/sluice/mailbox/kernel"
)

// Concurrency is how requests run at once, at an object that is On: a Synchronizer. The
// package synchronizer says what the parts mean, and has options for them. An object of
// this package runs one request at a time, whatever else its type's defaults say here.
type Concurrency struct {
	On      bool
	Table   *guards.Table   // nil stands for that of Type.Conflicts
	Threads mailbox.Threads // nil stands for those of callers; it must be comparable
	Crew    Crew            // if it is not nil, threads of the object's own instead; it must be comparable
	// OnArrival assigns threads when requests arrive, and not when they start.
	OnArrival bool
	Limit     int // 0 is none
	Hard      bool
}

// Crew makes threads for one object each.
type Crew interface {
	// Threads returns the threads of the object, which is just being made; they must be
	// comparable.
	Threads(system *actor.System, object actor.Spawner) mailbox.Threads
}

// Concurrent is an option that changes the Concurrency of an object.
func Concurrent(change func(*Concurrency)) Option {
	return func(s *settings) { change(&s.concurrent) }
}

// Wrong is an option that fails New with an *OptionError: for packages that have options
// of their own.
func Wrong(option, reason string) Option { return wrong(option, reason) }

func (t *Type[T]) fan(c *Concurrency) *mailbox.Fan {
	return &mailbox.Fan{Threads: c.Threads, OnArrival: c.OnArrival, Limit: c.Limit, Hard: c.Hard, Leaf: func(i int) bool {
		op := t.op(i)
		return op.leafed && op.looks&guards.AtWaiting == 0
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
func (s signature) reads() bool { return s.kind == kernel.Function }

// unsynchronizable returns what makes no sense for an object that runs requests at once.
func (s *settings) unsynchronizable(operations []string) senseless {
	c := &s.concurrent
	switch {
	case s.thread != borrowed:
		return senseless{[...]string{pooled: "Pooled", dedicated: "Dedicated", given: "On"}[s.thread], "gives an object one thread at a time: a Synchronizer has options of its own"}
	case c.OnArrival && c.Crew != nil:
		return senseless{"Monitor", "gives requests their threads when they arrive, and worker actors get theirs when they start: use the callers' threads, Spawned or On"}
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
	return senseless{}
}

// conflicts returns the table for the kernel: the given one, or that of the declaration,
// and what is not declared: Do conflicts with all, View and Until are as functions.
func (t *Type[T]) conflicts(table *guards.Table) guards.Table {
	own := t.Conflicts()
	if table != nil {
		own = *table
	}
	all := append(t.signatures(), signature{"do", kernel.Procedure}, signature{"view", kernel.Function}, signature{"until", kernel.Function})
	n, names := own.Len(), make([]string, len(all))
	for i, op := range all {
		names[i] = op.name
	}
	return guards.Where(names, func(i, j int) bool {
		if j < n {
			return own.Between(i, j)
		}
		return !all[i].reads() || !all[j].reads()
	})
}
