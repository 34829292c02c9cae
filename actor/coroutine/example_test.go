package coroutine_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/sluice-go/sluice/actor/coroutine"
)

// Two coroutines share a queue of one item. They are run by hand, so that they take turns in the
// same order each time.
func ExampleScheduler_RunNextUnblockedRoutine() {
	ctx := context.Background()
	s, _ := coroutine.NewScheduler()
	q, _ := coroutine.NewQueue[int](s, 1)
	s.Go(ctx, func(c *coroutine.Coroutine) error {
		for i := range 3 {
			fmt.Println("put", i)
			if err := q.BlockingEnqueue(c, i); err != nil {
				return err
			}
		}
		return nil
	})
	s.Go(ctx, func(c *coroutine.Coroutine) error {
		for range 3 {
			i, err := q.BlockingDequeue(c)
			if err != nil {
				return err
			}
			fmt.Println("got", i)
		}
		return nil
	})
	for s.RunNextUnblockedRoutine() == coroutine.RanOneRoutine {
	}
	s.Close(ctx)
	// Output:
	// put 0
	// put 1
	// got 0
	// put 2
	// got 1
	// got 2
}

// Three tasks wait for a gate; one is withdrawn before it opens.
func ExampleScheduler_SetRoutineContinuation() {
	ctx := context.Background()
	s, _ := coroutine.NewScheduler(coroutine.Workers(1))
	var open atomic.Bool
	gate, _ := coroutine.NewBlocker(s, func() bool { return !open.Load() })
	var tasks []*coroutine.Task
	for i := range 3 {
		task, _ := s.SetRoutineContinuation(gate, func(error) { fmt.Println("task", i, "passes") })
		tasks = append(tasks, task)
	}
	fmt.Println(tasks[1].Withdraw())
	open.Store(true)
	gate.Unblocked() // once, for all
	for _, task := range tasks {
		fmt.Println(task.Await(ctx))
	}
	s.Close(ctx)
	// Unordered output:
	// true
	// task 0 passes
	// task 2 passes
	// <nil>
	// sluice: the task was withdrawn
	// <nil>
}
