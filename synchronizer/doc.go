// Package synchronizer runs all requests of a shared object at once that are compatible
// with each other: the Synchronizer, for the same declared types as activeobject.
//
//	var (
//		accounts = activeobject.NewType[Account]("account")
//		deposit  = activeobject.Procedure(accounts, "deposit", (*Account).Deposit)
//		withdraw = activeobject.Entry(accounts, "withdraw", (*Account).Withdraw).WhenArg("covered", (*Account).Covers)
//		balance  = activeobject.Function(accounts, "balance", (*Account).Balance)
//	)
//
//	savings, err := synchronizer.New(system, accounts, &Account{})
//	now, err := balance.Call(ctx, savings, nil) // beside other calls of balance
//
// The five phases of the pattern (E. Grasso, "Synchronizer: an Object Behavioral Pattern for
// Concurrent Programming", 1996; here "the text"):
//
//	client proxy ─► request ─► waiting queue ─► scheduler ─► running queue ─► result
//	 (Operation)    (Call,         │      guards · conflict table     │  each on a thread
//	                 Send, …)      └──◄──────── a completion ◄────────┘  of its own
//
// The scheduler selects every waiting request whose guard holds and that conflicts with
// nothing that runs, and only then gives it a thread: none waits for a lock. Of two
// requests that wait and conflict the first comes first, so that a stream of readers
// starves no writer. In the text it does: that is the option AllCompatible, which
// activeobject.MaxBypass can bound.
//
// # Conflicts
//
// Which operations conflict is what the conflict table says (guards.Table). Without one,
// the declaration does: functions are compatible with functions, and everything else
// excludes. Type.Conflicts returns that table, to be changed; guards.NewTable is one without
// conflicts, to which they are added, as in the text:
//
//	table := guards.NewTable(accounts.Operations()...).
//		Exclusive(deposit, withdraw).
//		Conflict(balance, deposit, withdraw)
//
// Conflicts can be narrowed to requests whose arguments overlap: by equal keys, by intervals
// that have a point in common, or by a condition on both arguments (guards.Scope). How many
// run makes no difference for keys, costs a logarithm for intervals, and one evaluation each for a
// condition:
//
//	table := store.Conflicts().EqualKeys(guards.Key(put, Put.Key), guards.Key(get, key))
//
// In a scope each waiting request is considered by itself; elsewhere the first of an operation is
// considered for all of them. So with very many waiting requests in a scope a decision takes longer.
//
// The runtime keeps apart what the table says, and nothing else: two bodies that are
// declared compatible must be safe beside each other. A guard is evaluated while nothing runs
// that conflicts with its own operation; so what it reads is protected by that row of the
// table, and whatever can close it must conflict with it. Whether a table is right can be
// tried: by the package conflicttest.
//
// # Threads
//
// Whose thread runs a request that starts is a choice, as in the text: that of the caller
// that waits for it, which is the default and the cheapest; one of its own (Goroutines); one of
// a pool (Workers), which many objects can share; or that of a worker actor, a child of the
// object's (Actors). A body that takes no context may also be run by a helper: another caller,
// whose own request the body blocks. It runs bodies that have been granted and have not begun, and
// notices the end of its own context only after that. A Try that would have to wait for a thread,
// or for a Limit, is refused.
//
// # The monitor
//
// With Monitor a request has its thread from when it arrives, and keeps it while it waits:
// the thread-per-request model, to compare with. It costs a thread for each request that
// waits, and a pool of them can stand still, which Explain says:
//
//	slots, err := synchronizer.New(system, buffers, &Buffer{}, synchronizer.Monitor(), synchronizer.Workers(pool))
//
// # What is different from an active object
//
// A call that comes back to an object that it is inside of is refused with a
// *DeadlockError, also where it would be compatible; by a requeue likewise. With
// Reentrant it is let in as compatible with its own chain. Of the cases of a Select one
// may come back, if it is compatible.
//
// A body may wait for a request that was sent to its own object, as long as that can run
// beside it. If that changes (the object is restarted, the request requeued, another one
// preferred), the wait ends with *DeadlockError.
package synchronizer
