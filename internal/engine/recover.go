package engine

import "runtime"

// Panicked is called by a deferred function, or by one that it calls with recover() as the
// argument, after a function that did not return. It returns what that panicked with; or
// nil, if it has called runtime.Goexit, so that the goroutine is ending.
//
// A nil value does not tell: with GODEBUG=panicnil=1 panic(nil) has one. Nor does another
// one, if a deferred function has panicked while the goroutine was ending: recover ends that
// panic, and then the goroutine goes on ending. What does tell is by what the deferred
// function was called. Those that a function has deferred before the one that recovers are
// called by runtime.Goexit if the goroutine is ending, and else by the function itself,
// which is about to return. So where it matters whether the goroutine goes on there are two
// of them:
//
//	defer func() { // called second
//		if !returned {
//			failed(engine.Panicked(value), stack)
//		}
//	}()
//	defer func() { // called first
//		if !returned {
//			value, stack = recover(), debug.Stack() // which is the panic's here only
//		}
//	}()
//
// Where it does not matter one will do, which calls Panicked(recover()).
func Panicked(value any) any {
	var callers [1]uintptr
	const panicked, deferred = 2, 1 // and Callers itself
	runtime.Callers(panicked+deferred, callers[:])
	by, _ := runtime.CallersFrames(callers[:]).Next()
	switch {
	case by.Function == "runtime.Goexit":
		return nil
	case value == nil:
		return new(runtime.PanicNilError)
	}
	return value
}
