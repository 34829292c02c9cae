// Package activeobject makes plain Go types into shared objects: each object has a scheduler
// that starts a request only when its guard holds and nothing that runs conflicts with it.
//
//	type Account struct{ balance int }
//
//	func (a *Account) Deposit(amount int)                  { a.balance += amount }
//	func (a *Account) Withdraw(amount int) (int, error)    { a.balance -= amount; return a.balance, nil }
//	func (a *Account) Covers(amount int) bool              { return a.balance >= amount }
//	func (a *Account) Balance() int                        { return a.balance }
//
//	var (
//		accounts = activeobject.NewType[Account]("account")
//		deposit  = activeobject.Procedure(accounts, "deposit", activeobject.Arg((*Account).Deposit))
//		withdraw = activeobject.Entry(accounts, "withdraw", (*Account).Withdraw).WhenArg("covered", (*Account).Covers)
//		balance  = activeobject.Function(accounts, "balance", activeobject.Result((*Account).Balance))
//	)
//
//	savings, err := activeobject.New(actor.NewSystem(), accounts, &Account{})
//	err = deposit.Do(ctx, savings, 100)
//	left, err := withdraw.Call(ctx, savings, 70) // waits until covered, or until ctx ends: then it never runs
//	n, err := balance.Call(ctx, savings, nil)
//
// # Where to start
//
// Three ways to make a request serve most programs:
//
//   - Call waits for the result. Do is the same for an operation without a result.
//   - Send returns a Future of the result.
//   - Try does not wait: it runs at once or fails with an error that says why not.
//
// A request whose context has ended never runs, even if the object is idle. So what gives something
// back takes a context that cannot end:
//
//	defer giveBack.Do(context.WithoutCancel(ctx), pool, conn)
//
// Everything else is for a special case:
//
//	Tell                 hand a request in and forget it
//	Begin                a future for one Await, without an allocation
//	Select, Case         one of several calls, the first that can run; Otherwise, After
//	At, Proxy            an operation at an object, as a value for code that does not know the object
//	To, OperationAt      the same at a PID; ActorAt at an actor that is no object
//	Requeue, RequeueTo   in a body: the request waits once more, for any operation
//	SuspendUntil         in a body that Suspends: it waits in the middle, for a condition; SuspendFor, for a future
//	Object.Do, View      a func instead of a declared operation; DoWhen, Until
//	EntryFamily          an entry for each key
//	Derive               a type with another one's operations, and stronger guards
//	NewFrom, Supervisor  objects that are restarted when they fail
//	Defaults             options for all objects of a system
//
// # Operations
//
// There are three kinds, those of Ada's protected objects (Ada Reference Manual, 9.4):
//
//   - a Procedure changes the state and is always open;
//   - an Entry changes the state and waits for its guard;
//   - a Function only reads. With a guard, all requests that wait for it start by one decision.
//
// The body of an operation is a method of the state. Body lists the eight forms that it may have,
// and the function that adapts each. Such a body neither blocks nor calls other objects, and
// may run on the goroutine of another caller. A body that does either takes a context,
//
//	func(*T, context.Context, A) (R, error)
//
// is declared by ProcedureCtx, EntryCtx or FunctionCtx, and runs on the goroutine of its own
// caller, or on one of the system's. The context carries the chain of calls, so that a circle of
// waits is an error and not a hang. Only the body and goroutines that it waits for may use it. A
// wait by other means than Sluice's, or with a context that is not derived from this one, is
// not seen.
//
// If a body or guard names its own operation, or two name each other, package-level variables
// with initializers make an initialization cycle. Declare these variables without one, and assign
// them in init:
//
//	var request *activeobject.Operation[Burst, None, None]
//
//	func init() { request = activeobject.Entry(bursts, "request", …) }
//
// The operations of a generic object are declared once for each instantiation: see Instance.
//
// # The model
//
// An object runs one request at a time, by default on the goroutine of a caller. The model is
// an option of New: CallerThreads, PooledThreads, DedicatedThread and Dispatcher are the active
// object; Callers, Goroutines, Workers and Actors of the package synchronizer run all compatible
// requests at once; and with Monitor each request has its thread from its arrival.
//
// # Is it fair?
//
// Yes, by default, and nothing has to be done: requests start in the order in which they arrived,
// and a request whose guard holds is passed by none that conflicts with it. A request whose own guard
// is false is passed, and stands in no other's way; so one whose guard is seldom true can starve. Three options change that:
//
//   - a policy (ByPriority, ByDeadline, ByLatest, ByRotation, ByOrder, ByChoice), when another
//     order serves the program better than that of arrival;
//   - MaxBypass, when no request may be passed more than n times, whatever the policy;
//   - Operation.HeadOfLine, when a large request at an entry must not be starved by small ones.
//
// # Errors
//
// After an error that matches ErrStopped, ErrRefused or ErrFull, or a context's error, the body has
// not run. PanicError and ExitError are failures of a body, GuardError of a guard; RequeuedError
// lists the bodies that have run. DeadlockError names the circle of waits that the request would
// have closed. Each error says in its comment what it leaves behind.
package activeobject
