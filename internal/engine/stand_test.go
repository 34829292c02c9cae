package engine_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/guards"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/word"
	"github.com/sluice-go/sluice/mailbox"
)

// newLine makes a room with an entry that has a head of line.
func newLine() *room {
	config := engine.Config{Rules: &mailbox.Rules{
		Operations: []mailbox.Operation{
			{Name: "tidy", Kind: mailbox.Procedure},
			{Name: "pass", Kind: mailbox.Entry, Guard: "open", Looks: guards.AtArgument, HeadOfLine: true},
			{Name: "look", Kind: mailbox.Function},
		},
		Conflicts: guards.NewExclusive("tidy", "pass", "look"),
	}, Tag: 1, Workers: goroutines{}, HelpLimit: 32}
	r := &room{}
	r.Init(config.Prepare(func(int) bool { return false }), r)
	return r
}

// A request that arrives while a body runs is not admitted, also if it has to stand in a line: a body
// that counts the admitted requests twice does not find more the second time.
func TestNobodyJoinsALineWhileABodyRuns(t *testing.T) {
	r := newLine()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		all.Go(func() {
			for i := range 500 {
				v := r.visit(pass, "v")
				v.ForCall(0)
				all.Go(func() { r.Call(ctx, &v.Request, engine.Now()) })
				if i%16 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	grown, bodies := 0, 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, ok := r.Take(word.Mark(look)); ok {
				n, j := r.Waiting(pass), r.Joined(pass)
				linger(50)
				bodies++
				if r.Waiting(pass) != n || r.Joined(pass) != j {
					grown++
				}
				l := engine.Leaving{Op: look}
				if !r.Look(&l) {
					r.Yield(l)
				}
			}
		}
	}()
	r.queued(t, pass, 4*500)
	close(stop)
	<-done
	cancel()
	r.Close(errors.New("over"))
	all.Wait()
	require.Zero(t, grown, "of %d bodies", bodies)
}
