package activeobject

import (
	"strings"

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
	Limit   int             // 0 is none
	Hard    bool
}

// Concurrent is an option that changes the Concurrency of an object.
func Concurrent(change func(*Concurrency)) Option {
	return func(s *settings) { change(&s.concurrent) }
}

// Wrong is an option that fails New with an *OptionError: for packages that have options
// of their own.
func Wrong(option, reason string) Option { return wrong(option, reason) }

func (c *Concurrency) fan() *mailbox.Fan {
	return &mailbox.Fan{Threads: c.Threads, Limit: c.Limit, Hard: c.Hard}
}

// Conflicts returns the conflict table that follows from the declaration: functions are
// compatible with functions, and everything else excludes. The declaration must be
// complete: what is declared later is not in the table.
func (t *Type[T]) Conflicts() guards.Table {
	table := guards.Exclusive(t.Operations()...)
	functions := t.functions()
	for _, i := range functions {
		for _, j := range functions {
			table = table.Allow(i, j)
		}
	}
	return table
}

// functions returns the numbers of the operations that only read.
func (t *Type[T]) functions() (numbers []int) {
	for i, op := range t.signatures() {
		if op.kind == kernel.Function {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// unsynchronizable returns what makes no sense for an object that runs requests at once.
func (s *settings) unsynchronizable(operations []string) senseless {
	c := &s.concurrent
	switch {
	case s.thread != borrowed:
		return senseless{[...]string{pooled: "Pooled", dedicated: "Dedicated", given: "On"}[s.thread], "gives an object one thread at a time: a Synchronizer has options of its own"}
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
	n := own.Len()
	all := guards.Exclusive(append(own.Names(), "do", "view", "until")...)
	readers := append(t.functions(), n+1, n+2)
	for i := range n {
		for j := range n {
			if !own.Between(i, j) {
				all = all.Allow(i, j)
			}
		}
	}
	for _, i := range readers {
		for _, j := range readers {
			if i >= n || j >= n {
				all = all.Allow(i, j)
			}
		}
	}
	return all
}
