package activeobject_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// A gauge divides by what it was given.
type gauge struct{ per int }

func (g *gauge) Set(per int)             { g.per = per }
func (g *gauge) Read(n int) (int, error) { return n / g.per, nil }
func newGauge() (*gauge, error)          { return &gauge{per: 1}, nil }
func decide(d proto.Directive) func(any) proto.Directive {
	return func(any) proto.Directive { return d }
}

var (
	gauges    = activeobject.NewType[gauge]("gauge")
	setGauge  = activeobject.Procedure(gauges, "set", activeobject.Arg((*gauge).Set))
	readGauge = activeobject.Function(gauges, "read", (*gauge).Read)
)

// An object that has failed is restarted: its factory makes another state. The request
// that failed is told at once; those that wait meanwhile are served by the new state.
func ExampleSupervisor() {
	system := actor.NewSystem(actor.Logger(slog.New(slog.DiscardHandler)))
	ctx := context.Background()
	defer system.Close(ctx)
	restart := proto.NewOneForOneStrategy(3, time.Minute, decide(proto.RestartDirective))
	g, err := activeobject.NewFrom(system, gauges, newGauge, activeobject.Name("pressure"), activeobject.Supervisor(restart))
	if err != nil {
		fmt.Println(err)
		return
	}
	setGauge.Call(ctx, g, 0)
	_, err = readGauge.Call(ctx, g, 12)
	fmt.Println(err)
	n, err := readGauge.Call(ctx, g, 12)
	fmt.Println(n, err)

	fmt.Println(g.Close(ctx))
	_, err = readGauge.Call(ctx, g, 12)
	fmt.Println(errors.Is(err, activeobject.ErrStopped))
	// Output:
	// sluice: pressure.read panicked: runtime error: integer divide by zero
	// 12 <nil>
	// <nil>
	// true
}
