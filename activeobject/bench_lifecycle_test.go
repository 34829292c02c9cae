package activeobject_test

import (
	"testing"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject"
	"github.com/sluice-go/sluice/actor"
)

// A restart neither fails nor moves those that wait; it costs one question per guard
// that is waited for, however many wait for it.
func BenchmarkRestart(b *testing.B) {
	for name, waiters := range map[string]int{"none waits": 0, "10000 wait": 10000} {
		b.Run(name, func(b *testing.B) {
			ls := newLanterns()
			system := actor.NewSystem(actor.Logger(quiet))
			defer system.Close(background)
			made := make(chan None, 1)
			o := activeobject.Must(activeobject.NewFrom(system, ls.Type, func() (*lantern, error) {
				select {
				case made <- nil:
				default:
				}
				return &lantern{}, nil
			}))
			pid := o.PID()
			<-made
			for range waiters {
				ls.burn.Send(background, o, 1)
			}
			process, _ := system.Actors().ProcessRegistry.Get(pid)
			for b.Loop() {
				process.SendSystemMessage(pid, &proto.Restart{})
				<-made
				if _, err := ls.made.Call(background, o, nil); err != nil { // it goes on
					b.Fatal(err)
				}
			}
			if n := ls.burn.Waiting(o); n != waiters {
				b.Fatalf("%d wait", n)
			}
		})
	}
}
