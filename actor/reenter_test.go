package actor_test

import (
	"errors"
	"fmt"
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// reading is what the result of a lamp's read becomes as a message.
type reading struct {
	text string
	err  error
}

func ExampleFuture_PipeTo() {
	system := actor.NewSystem()
	defer system.Close(background)
	lamp := activeobject.Must(activeobject.New(system, lamps, &lamp{}))
	done := make(chan struct{})
	system.Actors().Root.Spawn(proto.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *proto.Started:
			lampRead.Send(background, lamp, nil).PipeTo(system, c.Self(), func(text string, err error) any { return reading{text, err} })
		case reading:
			fmt.Println(m.text, m.err)
			close(done)
		}
	}))
	lampPush.Call(background, lamp, nil)
	<-done
	// Output: reading <nil>
}

// An actor that answers with what an object has said, and handles other messages meanwhile.
func ExampleReenter() {
	system := actor.NewSystem()
	defer system.Close(background)
	lamp := activeobject.Must(activeobject.New(system, lamps, &lamp{}))
	reader := system.Actors().Root.Spawn(proto.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case string:
			actor.Reenter(c, lampRead.Send(background, lamp, nil), func(text string, err error) { c.Respond(text) })
		case int:
			c.Respond("still here")
		}
	}))
	answer := system.Request(background, reader, "what do you do?")
	fmt.Println(system.Request(background, reader, 1).Await(background))
	lampPush.Call(background, lamp, nil)
	fmt.Println(answer.Await(background))
	// Output:
	// still here <nil>
	// reading <nil>
}

func TestAnActorReentersBetweenTwoMessages(t *testing.T) {
	system := newSystem(t)
	const n = 200
	sum, inside := 0, false // of the actor, and so not locked: the race detector looks
	pid := system.Actors().Root.Spawn(proto.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *actor.Promise[int]:
			inside = true
			actor.Reenter(c, m.Future(), func(v int, err error) {
				if inside {
					err = errors.New("in the middle of a message")
				}
				sum += v
				c.Respond(&actor.Reply{Value: sum, Err: err})
			})
			inside = false
		}
	}))
	var promises []*actor.Promise[int]
	var answers []actor.Future[any]
	for range n {
		p := actor.NewPromise[int]()
		promises, answers = append(promises, p), append(answers, system.Request(background, pid, p))
	}
	for i, p := range promises {
		go p.Settle(i, nil)
	}
	greatest := 0
	for _, a := range answers {
		v, err := a.Await(background)
		require.NoError(t, err)
		greatest = max(greatest, v.(int))
	}
	require.Equal(t, n*(n-1)/2, greatest)
}

func TestAnOutcomeThatIsPipedIsAMessage(t *testing.T) {
	system := newSystem(t)
	got := make(chan any, 10)
	pid := system.Actors().Root.Spawn(proto.PropsFromFunc(func(c actor.Context) {
		if _, started := c.Message().(*proto.Started); !started {
			got <- c.Message()
		}
	}))
	fail := errors.New("no")
	actor.Settled(7, nil).PipeTo(system, pid, nil)
	actor.Settled(0, fail).PipeTo(system, pid, nil)
	actor.Settled(0, fail).PipeTo(system, pid, func(n int, err error) any { return reading{"x", err} })
	actor.Settled(1, nil).PipeTo(system, pid, func(int, error) any { panic("boom") })
	actor.Settled(2, nil).PipeTo(system, pid, func(n int, _ error) any { return n })
	require.Equal(t, &actor.Reply{Value: 7}, <-got)
	require.Equal(t, &actor.Reply{Err: fail}, <-got)
	require.Equal(t, reading{"x", fail}, <-got)
	require.Equal(t, 2, <-got, "nothing has come of the panic")
}
