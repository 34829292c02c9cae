package patterntest

import (
	"flag"
	"fmt"
	"iter"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

var update = flag.Bool("update", false, "write the tables of operations into docs/patterns.md (with -p 1)")

// patience is how long what must happen may take before a test gives up on it.
const patience = 30 * time.Second

// Object is a ready-made object as actors know it.
type Object struct {
	name       string
	pid        *actor.PID
	operations []operationByMessage
	internal   []string

	mu      sync.Mutex
	invoked map[string]bool
}

// operationByMessage is one that a message can invoke.
type operationByMessage struct {
	name             string
	argument, result reflect.Type
}

// Of returns the object behind a handle, which has a method Shared for its tests: users cannot name
// the state.
func Of[T any](handle interface {
	Shared() *activeobject.Object[T]
}) *Object {
	o := handle.Shared()
	of := &Object{name: name(reflect.TypeOf(handle).Elem()), pid: o.PID(), invoked: map[string]bool{}}
	for _, d := range activeobject.Declarations(o.Type()) {
		if internal(d.Argument) {
			of.internal = append(of.internal, d.Name)
		} else {
			of.operations = append(of.operations, operationByMessage{d.Name, d.Argument, d.Result})
		}
	}
	return of
}

// internal reports whether no other package can make an argument of the type.
func internal(argument reflect.Type) bool {
	for argument.Name() == "" && argument.Kind() == reflect.Pointer {
		argument = argument.Elem()
	}
	return argument.PkgPath() != "" && unicode.IsLower([]rune(argument.Name())[0])
}

var ofTests = regexp.MustCompile(`[\w./-]*_test\.`)

// name returns that of a type as a user writes it, and for what a test declares as a type
// argument, such as T, that alone.
func name(t reflect.Type) string {
	if t == reflect.TypeFor[activeobject.None]() {
		return "–"
	}
	return "`" + ofTests.ReplaceAllString(t.String(), "") + "`"
}

// Ask sends the object a message, from the actor that runs the script, and returns the reply.
type Ask func(operation string, argument any) (any, error)

// Clients spawns n plain actors of protoactor, each of which runs the script, and returns when
// all have. What they ask has to be as the declarations say.
func (o *Object) Clients(t *testing.T, system *actor.System, n int, script func(client int, ask Ask)) {
	t.Helper()
	ended := make(chan struct{}, n)
	for i := range n {
		c := &client{object: o.pid, ended: ended}
		c.next, _ = iter.Pull(func(yield func(*actor.Invoke) bool) {
			script(i, func(operation string, argument any) (any, error) {
				yield(&actor.Invoke{Operation: operation, Argument: argument})
				o.check(t, operation, argument, c.reply)
				return c.reply.Value, c.reply.Err
			})
		})
		system.Actors().Root.Spawn(proto.PropsFromProducer(func() proto.Actor { return c }))
	}
	late := time.After(patience)
	for i := range n {
		select {
		case <-ended:
		case <-late:
			require.FailNow(t, "clients still wait", "%d of %d, at %s %v", n-i, n, o.name, system.Explain())
		}
	}
}

// client is an actor that sends a request whenever it has the reply to the last one.
type client struct {
	object *actor.PID
	next   func() (*actor.Invoke, bool)
	reply  *actor.Reply
	ended  chan<- struct{}
}

// Receive implements proto.Actor.
func (c *client) Receive(ctx proto.Context) {
	switch m := ctx.Message().(type) {
	case *proto.Started:
	case *actor.Reply:
		c.reply = m
	default:
		return
	}
	if request, ok := c.next(); ok {
		ctx.Request(c.object, request)
		return
	}
	ctx.Stop(ctx.Self())
	c.ended <- struct{}{}
}

// check compares an invocation with the declaration of the operation.
func (o *Object) check(t *testing.T, operation string, argument any, reply *actor.Reply) {
	for _, d := range o.operations {
		if d.name != operation {
			continue
		}
		if argument != nil || d.argument != reflect.TypeFor[activeobject.None]() {
			assert.Equal(t, d.argument, reflect.TypeOf(argument), "argument of %s of %s", operation, o.name)
		}
		switch {
		case reply.Err != nil:
		case d.result == reflect.TypeFor[activeobject.None]():
			assert.Nil(t, reply.Value, "result of %s of %s", operation, o.name)
		default:
			assert.Equal(t, d.result, reflect.TypeOf(reply.Value), "result of %s of %s", operation, o.name)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.invoked[operation] = true
		return
	}
	assert.Fail(t, "not in the table", "%s of %s", operation, o.name)
}

// Invoke sends an object the message that invokes an operation, and returns the reply.
func Invoke(t *testing.T, system *actor.System, to *actor.PID, operation string, argument any) (any, error) {
	t.Helper()
	reply, err := system.Actors().Root.RequestFuture(to, &actor.Invoke{Operation: operation, Argument: argument}, patience).Result()
	require.NoError(t, err)
	require.IsType(t, &actor.Reply{}, reply)
	r := reply.(*actor.Reply)
	return r.Value, r.Err
}

// Complete requires that clients have invoked all operations of the table, and that other names
// and other arguments are refused.
func (o *Object) Complete(t *testing.T, system *actor.System) {
	t.Helper()
	refused := func(operation string, argument any) {
		t.Helper()
		_, err := Invoke(t, system, o.pid, operation, argument)
		require.ErrorAs(t, err, new(*activeobject.MessageError), "%s(%v) of %s", operation, argument, o.name)
	}
	type foreign struct{}
	for _, d := range o.operations {
		assert.True(t, o.invoked[d.name], "%s of %s has not been invoked", d.name, o.name)
		refused(d.name, foreign{})
	}
	for _, operation := range append(o.internal, "no such operation", "") {
		for _, argument := range []any{nil, nil, foreign{}, 0, true} {
			refused(operation, argument)
		}
	}
}

// Table requires that docs/patterns.md has the table of the operations of these objects, which
// are those of a package, word by word; or writes it there.
func Table(t *testing.T, pkg string, objects ...*Object) {
	t.Helper()
	const page = "../../docs/patterns.md"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	begin, end := fmt.Sprintf("<!-- operations of %s, written by its test with -update -->\n", pkg), fmt.Sprintf("<!-- end of operations of %s -->\n", pkg)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, "%s has no %q", page, begin)
	was, after, found := strings.Cut(rest, end)
	require.True(t, found, "%s has no %q", page, end)

	var table strings.Builder
	table.WriteString("| object | operation | argument | value of the reply |\n|---|---|---|---|\n")
	for _, o := range objects {
		of := o.name
		for _, d := range o.operations {
			fmt.Fprintf(&table, "| %s | `%s` | %s | %s |\n", of, d.name, name(d.argument), name(d.result))
			of = ""
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+table.String()+end+after), 0o644))
		return
	}
	require.Equal(t, table.String(), was, "run the test with -update")
}
