package buffer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/activeobject/buffer"
	"github.com/sluice-go/sluice/actor"
)

// Every history of a buffer must be that of a sequential one: each request takes effect at
// one moment between its call and its return. One that was withdrawn has taken no effect,
// so it is left out; were it needed to explain the others, the check would fail.

// step is what a client asked for, and answer what it got.
type step struct {
	do  string
	arg int
}

type answer struct {
	value  int
	serial uint64
	fate   fate
}

type fate string

const (
	done          fate = ""
	closed        fate = "closed"
	uninitialized fate = "uninitialized"
	refused       fate = "refused" // by a guard
	behind        fate = "behind"  // another request came first, which says nothing about the state
)

// The models. Next says what comes of a step, and whether it can be made at all.
type model[S comparable] func(s S, in step) (after S, out answer, open bool)

// line is the state of all that hand on what is put in order. Items are bytes.
type line struct {
	items  string
	closed bool
}

// fifo is a line with so much room; one that is full overwrites, or has to wait.
func fifo(room int, overwrites bool) model[line] {
	return func(s line, in step) (line, answer, bool) {
		var out answer
		switch {
		case in.do == "len":
			return s, answer{value: len(s.items)}, true
		case in.do == "get" && s.items != "":
			return line{s.items[1:], s.closed}, answer{value: int(s.items[0])}, true
		case in.do == "get":
			return s, answer{fate: closed}, s.closed
		case s.closed: // put, close
			return s, answer{fate: closed}, true
		case in.do == "close":
			return line{s.items, true}, out, true
		case len(s.items) == room && !overwrites:
			return s, out, false
		case len(s.items) == room:
			out.value, s.items = int(s.items[0]), s.items[1:]
		}
		return line{s.items + string([]byte{byte(in.arg)}), false}, out, true
	}
}

// latest is the state of those that hold the latest value.
type latest struct {
	value    int
	serial   uint64
	taken    uint64 // the serial number of what was read last
	byReader [2]uint64
	closed   bool
}

// put is what both do when a value is put, or they are closed.
func (s latest) put(in step) (latest, answer, bool) {
	switch {
	case s.closed:
		return s, answer{fate: closed}, true
	case in.do == "close":
		s.closed = true
	default:
		s.value, s.serial = in.arg, s.serial+1
	}
	return s, answer{}, true
}

func readAny(s latest, in step) (latest, answer, bool) {
	switch {
	case in.do != "get":
		return s.put(in)
	case s.closed:
		return s, answer{value: s.value, fate: closed}, true
	case s.serial == 0:
		return s, answer{fate: uninitialized}, true
	}
	return s, answer{value: s.value}, true
}

func readNew(s latest, in step) (latest, answer, bool) {
	after, out := uint64(in.arg), answer{value: s.value}
	seen := &after
	switch in.do {
	case "get":
		seen = &s.taken
	case "get by 0", "get by 1":
		seen = &s.byReader[in.do[7]-'0']
	case "get after":
		out.serial = s.serial
	default:
		return s.put(in)
	}
	if *seen == s.serial {
		return s, answer{fate: closed}, s.closed
	}
	*seen = s.serial
	return s, out, true
}

// porcupined is the model as porcupine wants it.
func (next model[S]) porcupined() porcupine.Model {
	return porcupine.Model{
		Init: func() any { var s S; return s },
		Step: func(state, input, output any) (bool, any) {
			in, out := input.(step), output.(answer)
			after, want, open := next(state.(S), in)
			switch out.fate {
			case behind:
				return true, state
			case refused:
				return !open, state
			}
			return open && out == want, after
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
	}
}

// performer makes a step in one of the ways of making a request.
type performer func(ctx context.Context, way int, in *step, out *answer) error

const (
	clients = 6
	steps   = 20 // of each client
)

// check has clients make random requests of a buffer, some of which are canceled, and
// compares their history with the model.
func check[S comparable](t *testing.T, next model[S], kinds []string, perform performer) {
	t.Helper()
	var clock, items atomic.Int64
	var mu sync.Mutex
	var history []porcupine.Operation
	var all sync.WaitGroup
	fates := make(fates, clients)
	start, over := make(chan struct{}), make(chan struct{})
	for client := range clients {
		all.Go(func() {
			<-start
			for range steps {
				in := step{do: kinds[rand.N(len(kinds))]}
				if in.do == "close" && rand.N(10) > 0 {
					in.do = "put"
				}
				if in.do == "put" {
					in.arg = int(items.Add(1))
				}
				ctx, cancel := fates.next(client)
				called := clock.Add(1)
				var out answer
				err := perform(ctx, rand.N(3), &in, &out)
				returned := clock.Add(1)
				cancel()
				if r, ok := errors.AsType[*activeobject.RefusedError](err); ok {
					out.fate = refused
					if r.Behind != "" {
						out.fate = behind
					}
				} else if errors.Is(err, buffer.ErrClosed) {
					out.fate = closed
				} else if _, ok := errors.AsType[*buffer.UninitializedError](err); ok {
					out.fate = uninitialized
				} else if errors.Is(err, context.Canceled) {
					continue
				} else if err != nil {
					t.Error(err)
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: called, Output: out, Return: returned})
				mu.Unlock()
			}
		})
	}
	go func() { all.Wait(); close(over) }()
	close(start)
	fates.strike(over)
	if !porcupine.CheckOperations(next.porcupined(), history) {
		for _, o := range history {
			t.Logf("%4d to %4d: client %d %+v: %+v", o.Call, o.Return, o.ClientId, o.Input, o.Output)
		}
		t.Fatal("no sequential buffer has this history")
	}
}

// one of the three ways of making a request.
func one[A, R any](way int, ctx context.Context, call func() (R, error), p activeobject.LocalProxy[A, R], arg A) (R, error) {
	switch way {
	case 0:
		return call()
	case 1:
		return p.Try(ctx, arg)
	}
	return p.Send(ctx, arg).Await(background)
}

type none = activeobject.None

// nothing gives a function that returns only an error a result.
func nothing(f func() error) func() (none, error) {
	return func() (none, error) { return nil, f() }
}

func TestHistoriesAreSequential(t *testing.T) {
	everywhere(t, func(t *testing.T, system *actor.System, options ...activeobject.Option) {
		for range 15 {
			for _, room := range []int{1, 3} {
				b := must[*buffer.Bounded[int]](t)(buffer.NewBounded[int](system, room, options...))
				check(t, fifo(room, false), []string{"put", "put", "get", "get", "len", "close"}, func(ctx context.Context, way int, in *step, out *answer) (err error) {
					switch in.do {
					case "put":
						_, err = one(way, ctx, nothing(func() error { return b.Put(ctx, in.arg) }), b.Puts(), in.arg)
					case "get":
						out.value, err = one(way, ctx, func() (int, error) { return b.Get(ctx) }, b.Gets(), nil)
					case "len":
						out.value, err = b.Len()
					case "close":
						_, err = one(way, background, nothing(b.Close), b.Closes(), nil)
					}
					return err
				})
				b.Object().Stop()
			}

			o := must[*buffer.Overwriting[int]](t)(buffer.NewOverwriting[int](system, 2, options...))
			check(t, fifo(2, true), []string{"put", "put", "get", "get", "len", "close"}, func(ctx context.Context, way int, in *step, out *answer) (err error) {
				switch in.do {
				case "put":
					var d buffer.Dropped[int]
					d, err = one(way, background, func() (buffer.Dropped[int], error) { return o.Put(in.arg) }, o.Puts(), in.arg)
					out.value = d.Item
				case "get":
					out.value, err = one(way, ctx, func() (int, error) { return o.Get(ctx) }, o.Gets(), nil)
				case "len":
					out.value, err = o.Len()
				case "close":
					_, err = one(way, background, nothing(o.Close), o.Closes(), nil)
				}
				return err
			})
			o.Object().Stop()

			u := must[*buffer.Unbounded[int]](t)(buffer.NewUnbounded[int](system, options...))
			check(t, fifo(-1, false), []string{"put", "get", "get", "len", "close"}, func(ctx context.Context, way int, in *step, out *answer) (err error) {
				if n, _ := u.Len(); n > 5 && in.do == "put" {
					in.do = "len" // the order of many puts at once has too many explanations
				}
				switch in.do {
				case "put":
					_, err = one(way, background, nothing(func() error { return u.Put(in.arg) }), u.Puts(), in.arg)
				case "get":
					out.value, err = one(way, ctx, func() (int, error) { return u.Get(ctx) }, u.Gets(), nil)
				case "len":
					out.value, err = u.Len()
				case "close":
					_, err = one(way, background, nothing(u.Close), u.Closes(), nil)
				}
				return err
			})
			u.Object().Stop()

			a := must[*buffer.ReadAny[int]](t)(buffer.NewReadAny[int](system, options...))
			check(t, readAny, []string{"put", "get", "get", "close"}, func(ctx context.Context, way int, in *step, out *answer) (err error) {
				switch in.do {
				case "put":
					_, err = one(way, background, nothing(func() error { return a.Put(in.arg) }), a.Puts(), in.arg)
				case "get":
					out.value, err = one(way, background, a.Get, a.Gets(), nil)
				case "close":
					_, err = one(way, background, nothing(a.Close), a.Closes(), nil)
				}
				return err
			})
			a.Object().Stop()

			h := must[*buffer.ReadWriteNew[int]](t)(buffer.NewReadWriteNew[int](system, options...))
			check(t, fifo(1, false), []string{"put", "put", "get", "get", "close"}, func(ctx context.Context, way int, in *step, out *answer) (err error) {
				switch in.do {
				case "put":
					_, err = one(way, ctx, nothing(func() error { return h.Put(ctx, in.arg) }), h.Puts(), in.arg)
				case "get":
					out.value, err = one(way, ctx, func() (int, error) { return h.Get(ctx) }, h.Gets(), nil)
				case "close":
					_, err = one(way, background, nothing(h.Close), h.Closes(), nil)
				}
				return err
			})
			h.Object().Stop()

			n := must[*buffer.ReadNew[int]](t)(buffer.NewReadNew[int](system, options...))
			readers := [2]*buffer.Reader[int]{must[*buffer.Reader[int]](t)(n.Register()), must[*buffer.Reader[int]](t)(n.Register())}
			var known atomic.Uint64 // that a client knows of
			check(t, readNew, []string{"put", "put", "get", "get by 0", "get by 1", "get after", "close"}, func(ctx context.Context, way int, in *step, out *answer) (err error) {
				switch in.do {
				case "put":
					_, err = one(way, background, nothing(func() error { return n.Put(in.arg) }), n.Puts(), in.arg)
				case "get":
					out.value, err = one(way, ctx, func() (int, error) { return n.Get(ctx) }, n.Gets(), nil)
				case "get by 0", "get by 1":
					r := readers[in.do[7]-'0']
					out.value, err = one(way, ctx, func() (int, error) { return r.Get(ctx) }, n.ReaderGets(), r.ID())
				case "get after":
					after := known.Load()
					in.arg = int(after)
					var s buffer.Serial[int]
					s, err = one(way, ctx, func() (s buffer.Serial[int], err error) {
						s.Value, s.Serial, err = n.GetAfter(ctx, after)
						return s, err
					}, n.GetsAfter(), after)
					if out.value, out.serial = s.Value, s.Serial; err == nil {
						known.Store(s.Serial) // it may go back, which is as good
					}
				case "close":
					_, err = one(way, background, nothing(n.Close), n.Closes(), nil)
				}
				return err
			})
			n.Object().Stop()
		}
	})
}
