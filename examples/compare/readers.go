package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-go/sluice/activeobject"
)

// register is the shared object: a version that is kept twice, and written in
// two steps with the body's work in between. Whoever reads in between, or is
// overtaken while reading, sees two versions.
type register struct {
	first, second int64
	work          func()
}

var errTorn = errors.New("a reader saw a torn write")

func (r *register) Read() (int64, error) {
	version := r.first
	r.work()
	if r.second != version {
		return 0, errTorn
	}
	return version, nil
}

func (r *register) Write() (int64, error) {
	r.first++
	r.work()
	r.second++
	return r.first, nil
}

// The register, declared for Sluice: once with bodies that do not block.
var (
	registers = activeobject.NewType[register]("register")
	read      = activeobject.Function(registers, "read", activeobject.NoArg((*register).Read))
	write     = activeobject.Procedure(registers, "write", activeobject.NoArg((*register).Write))
)

// And once with bodies that wait, and so take a context: each runs on its own
// caller's goroutine, never on a stranger's.
var (
	slowRegisters = activeobject.NewType[register]("slow register")
	slowRead      = activeobject.FunctionCtx(slowRegisters, "read", blocking((*register).Read))
	slowWrite     = activeobject.ProcedureCtx(slowRegisters, "write", blocking((*register).Write))
)

// blocking adapts a method that may block, and does not listen to its context.
func blocking[T, R any](body func(*T) (R, error)) func(*T, context.Context, activeobject.None) (R, error) {
	return func(s *T, _ context.Context, _ activeobject.None) (R, error) { return body(s) }
}

// cell is the register as its callers see it under every model.
type cell interface {
	read(ctx context.Context) (version int64, _ error)
	write(ctx context.Context) (version int64, _ error)
}

// activeCell is the register as an active object.
type activeCell struct {
	o       *activeobject.Object[register]
	reading *activeobject.Operation[register, activeobject.None, int64]
	writing *activeobject.Operation[register, activeobject.None, int64]
}

func (c activeCell) read(ctx context.Context) (int64, error) {
	return c.reading.Call(ctx, c.o, activeobject.None{})
}

func (c activeCell) write(ctx context.Context) (int64, error) {
	return c.writing.Call(ctx, c.o, activeobject.None{})
}

// monitorCell is the register in the monitor that a Go programmer would take:
// nobody waits for a condition here, but readers can share. Its calls end soon,
// so that it need not be stopped.
type monitorCell struct {
	mu       sync.RWMutex
	register *register
}

func (c *monitorCell) read(context.Context) (int64, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.register.Read()
}

func (c *monitorCell) write(context.Context) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.register.Write()
}

func (c *monitorCell) stop()      {}
func (c *monitorCell) end() error { return nil }

// The register as a server that gets its requests as messages.
const (
	askRead = iota
	askWrite
)

// serve implements server.
func (r *register) serve(q query) (answer, bool) {
	if q.op == askRead {
		return answerOf(r.Read()), true
	}
	return answerOf(r.Write()), true
}

type askedCell struct{ asker }

func (c askedCell) read(context.Context) (int64, error)  { return c.ask(query{op: askRead}) }
func (c askedCell) write(context.Context) (int64, error) { return c.ask(query{op: askWrite}) }

// readersWorkload has bodies that do not block, and slowReadersWorkload has ones
// that do.
func readersWorkload(name, body string, work func()) workload {
	return readersAndWriters(name, body, sampled, work, registers, read, write)
}

func slowReadersWorkload(name, body string, work func()) workload {
	return readersAndWriters(name, body, 1, work, slowRegisters, slowRead, slowWrite)
}

func readersAndWriters(name, body string, every int, work func(), t *activeobject.Type[register],
	reading, writing *activeobject.Operation[register, activeobject.None, int64]) workload {
	open := func(m model, callers int) (*session, error) {
		r := &register{work: work}
		switch m {
		case monitor:
			c := &monitorCell{register: r}
			return readersSession(c, c, r, callers), nil
		case sluice, dedicated:
			h, err := activate(t, r, m)
			if err != nil {
				return nil, err
			}
			return readersSession(activeCell{h.object, reading, writing}, h, r, callers), nil
		}
		s := listen(m, r)
		return readersSession(askedCell{s}, s, r, callers), nil
	}
	return workload{
		name:       name,
		about:      fmt.Sprintf("callers read a register, and write it with every tenth call; the body of both is %s", body),
		operations: "reads and writes",
		every:      every,
		open:       open,
	}
}

// accessor is a caller of a cell. Every tenth call is a write.
type accessor struct {
	_      [128]byte // keeps the callers' books out of each other's cache lines
	cell   cell
	toGo   int   // reads before the next write
	seen   int64 // latest version
	writes int64
}

func (a *accessor) step(ctx context.Context) error {
	if a.toGo > 0 {
		version, err := a.cell.read(ctx)
		if err != nil {
			return err
		}
		if version < a.seen {
			return fmt.Errorf("a reader saw version %d after %d", version, a.seen)
		}
		a.seen = version
		a.toGo--
		return nil
	}
	version, err := a.cell.write(ctx)
	if err != nil {
		return err
	}
	if version <= a.seen {
		return fmt.Errorf("a writer made version %d after %d", version, a.seen)
	}
	a.seen = version
	a.writes++
	a.toGo = 9
	return nil
}

func readersSession(c cell, h host, r *register, callers int) *session {
	s := &session{host: h}
	accessors := make([]*accessor, callers)
	for i := range accessors {
		accessors[i] = &accessor{cell: c, toGo: i % 10}
		s.callers = append(s.callers, accessors[i])
	}
	s.check = func() error { return proofread(r, accessors) }
	return s
}

// proofread compares a register with the books of its callers.
func proofread(r *register, accessors []*accessor) error {
	var writes int64
	for _, a := range accessors {
		writes += a.writes
	}
	switch {
	case r.first != r.second:
		return fmt.Errorf("a torn write was left: %d and %d", r.first, r.second)
	case r.first != writes:
		return fmt.Errorf("the register counts %d writes, %d were answered", r.first, writes)
	}
	return nil
}

// The work of the bodies.

func nothing() {}

func waitMillisecond() { time.Sleep(time.Millisecond) }

func spinMicrosecond() { spin(perMicrosecond()) }

// perMicrosecond is how many rounds of spin take a microsecond: by the fastest of
// many short trials, the one that was disturbed least.
var perMicrosecond = sync.OnceValue(func() int {
	const rounds = 20_000
	fastest := time.Hour
	for begun := time.Now(); time.Since(begun) < 50*time.Millisecond; {
		start := time.Now()
		spin(rounds)
		fastest = min(fastest, time.Since(start))
	}
	return max(1, int(rounds*time.Microsecond/fastest))
})

//go:noinline
func spin(rounds int) {
	for range rounds {
	}
}
