package activeobject_test

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// A Bench packs parts, and has labels printed by a Printer.
type Bench struct {
	printer *activeobject.Object[Printer]
	parts   int
	open    int // packets that are being packed
}

type Printer struct{}

func (*Printer) Print(parts int) string { return fmt.Sprintf("%d parts", parts) }

var (
	printers   = activeobject.NewType[Printer]("printer")
	printLabel = activeobject.Procedure(printers, "print", activeobject.ArgResult((*Printer).Print))

	benches = activeobject.NewType[Bench]("bench")
	supply  = activeobject.Procedure(benches, "supply", activeobject.Arg(func(b *Bench, parts int) { b.parts += parts }))
	opened  = activeobject.Function(benches, "open", activeobject.Result(func(b *Bench) int { return b.open }))

	pack = activeobject.ProcedureCtx(benches, "pack", func(b *Bench, ctx context.Context, parts int) (string, error) {
		b.open++ // others see that
		err := activeobject.SuspendUntil(ctx, "parts there", func() bool { return b.parts >= parts })
		if err != nil {
			b.open--
			return "", err
		}
		b.parts -= parts
		label, err := activeobject.SuspendFor(ctx, printLabel.Send(ctx, b.printer, parts)) // Await would keep others out
		b.open--
		return label, err
	}).Suspends()
)

// A body waits in the middle, and lets others run at its object meanwhile.
func ExampleSuspendUntil() {
	ctx, system := context.Background(), actor.NewSystem()
	defer system.Close(ctx)
	printer := activeobject.Must(activeobject.New(system, printers, &Printer{}))
	bench := activeobject.Must(activeobject.New(system, benches, &Bench{printer: printer}, activeobject.Name("bench")))

	five, two := pack.Send(ctx, bench, 5), pack.Send(ctx, bench, 2)
	fmt.Println(opened.Call(ctx, bench, nil))
	for _, w := range bench.Explain().Waiting {
		fmt.Println(w.Operation, "waits until", w.Reason.Guard)
	}
	supply.Call(ctx, bench, 3)
	fmt.Println(two.Await(ctx))
	supply.Call(ctx, bench, 4)
	fmt.Println(five.Await(ctx))
	// Output:
	// 2 <nil>
	// pack (rest) waits until parts there
	// pack (rest) waits until parts there
	// 2 parts <nil>
	// 5 parts <nil>
}
