package engine

import "runtime"

// Panicked returns what a function that did not return has panicked with; or nil, if it has
// called runtime.Goexit, so that the goroutine is ending. It is called by a deferred function, or
// by one that a deferred function calls with recover() as the argument.
//
// A nil value does not tell the two apart: with GODEBUG=panicnil=1 panic(nil) has one. Nor does
// another value, if a deferred function has panicked while the goroutine was ending: recover ends
// that panic, and then the goroutine goes on ending. The caller of the deferred function does
// tell. Deferred functions before the one that recovers are called by runtime.Goexit if the
// goroutine is ending, and else by the function that has deferred them, which is about to return.
// So where it matters whether the goroutine goes on there are two of them:
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
// Where it does not matter one is enough, which calls Panicked(recover()).
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
