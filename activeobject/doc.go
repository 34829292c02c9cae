// Package activeobject is for objects that are shared: declare the operations of
// a plain Go type once, and every object of it is an actor that runs one request
// at a time, and starts a request only when its guard holds.
//
//	type Account struct{ balance int64 }
//
//	func (a *Account) Deposit(amount int64) (int64, error)  { a.balance += amount; return a.balance, nil }
//	func (a *Account) Withdraw(amount int64) (int64, error) { a.balance -= amount; return a.balance, nil }
//	func (a *Account) Covers(amount int64) bool             { return a.balance >= amount }
//
//	var (
//		accounts = activeobject.NewType[Account]("account")
//		deposit  = activeobject.Procedure(accounts, "deposit", (*Account).Deposit)
//		withdraw = activeobject.Entry(accounts, "withdraw", (*Account).Withdraw).WhenArg("covered", (*Account).Covers)
//	)
//
//	savings, err := activeobject.New(system, accounts, &Account{})
//	left, err := withdraw.Call(ctx, savings, 100) // waits until covered, or until ctx ends: then it never runs
//
// # Operations
//
// There are three kinds, those of Ada's protected objects. A Procedure changes
// the state and is always open. An Entry changes the state and waits for its
// guard. A Function only reads. The body of an operation is a method of the
// state, of the form
//
//	func(*T, A) (R, error)
//
// Get, Put, Do and ResultError adapt methods without argument, result or error. Such a
// body is a leaf: it neither blocks nor calls other objects, and the goroutine of
// another caller may run it. A body that does either takes a context,
//
//	func(*T, context.Context, A) (R, error)
//
// is declared by ProcedureCtx, EntryCtx or FunctionCtx, and runs on its own
// caller's goroutine or a worker's. The context carries the chain of calls, so
// that a circle of waits is an error and not a hang. The body may use it, and so may
// goroutines that the body waits for. Other goroutines must not: what they wait for
// is not what the body waits for. A wait by other means than Sluice's, or with a
// context that is not derived from this one, is not seen.
//
// A body or guard that names its own operation, or two that name each other, make
// an initialization cycle if the operations are package-level variables with
// initializers. Declare those variables without one, and assign them in init:
//
//	var request *activeobject.Operation[Burst, None, None]
//
//	func init() { request = activeobject.Entry(bursts, "request", …) }
//
// A type can be derived from another, with stronger guards, further operations or
// other options, while the other stays as it is: see Derive.
//
// # Calls
//
// The client proxy of an operation, made by At, is for code that is not to know the
// object: see Proxy. To call methods instead, write a struct around the object:
//
//	func (a SharedAccount) Withdraw(ctx context.Context, amount int64) (int64, error) {
//		return withdraw.Call(ctx, a.object, amount)
//	}
//
// Call waits for the result; Send returns a Future of it, and Begin a Ticket, which
// is good for one Await; Try refuses to wait; Tell forgets it. Select makes one of
// several calls, the first that can run. A request whose context ends while it waits
// never runs.
//
// A body that returns Requeue has its request wait again, for any operation. What is
// worth no declaration is a plain func: Do runs it as a procedure, View as a function.
// Until waits for a guard, and does nothing.
//
// Options say which of the requests that can start does (ByArrival, ByLatest, ByPriority,
// ByOrder and others), and how many may wait (Bound). Both can be defaults of a
// type.
package activeobject
