// Package transaction makes calls of several shared objects one transaction: all of them count, or
// none does, and what runs at the same time sees them as if they had run one after the other.
//
//	manager, err := transaction.NewManager(system)
//
//	err = manager.Run(ctx, func(ctx context.Context) error {
//		if err := withdraw.Do(ctx, savings, 30); err != nil {
//			return err // and nothing has been withdrawn
//		}
//		return deposit.Do(ctx, checking, 30)
//	})
//
// Calls belong to the transaction whose context they are made with. The objects take part whose type
// says how its operations are undone: see activeobject.Operation.Undo and activeobject.Type.Copies.
//
//	             call           body ends                      commit
//	transaction ──────► request ─────────► held by the object ────────► released
//	                    waits, runs        (what conflicts waits)  rollback: undone, then released
//
// # Isolation
//
// There is one level, serializable, by strict two-phase locking, as the Transactional Synchronizer of the
// text 003 has it: a request whose body has ended stays in the running queue of its object until the
// transaction ends, so that nothing starts which conflicts with it. A transaction never conflicts with
// itself: a later request of the same transaction passes all that wait, as these may well wait for the
// transaction. (Its bodies that run at the same time are kept apart like any others.) So what a
// transaction reads stays as it is, and what it writes nothing else sees, before its end.
//
// Requests that belong to no transaction are scheduled among them as usual: each is a transaction of its
// own.
//
// What conflicts between transactions is more than what conflicts between bodies: two deposits may be
// safe together, and a third transaction see one of them that is undone later. So beside what a
// transaction holds only functions run that conflict with no function, unless the type Commutes. An active
// object takes part exclusively: one transaction at a time may change it, any number read it.
//
// An object whose type declares no Undo and has no Copies takes no part: a call of it runs at once, is
// seen at once by all, and stays if the transaction is rolled back. The ready-made objects (semaphores,
// locks, buffers, barriers) take no part. OnlyParticipants makes such a call an error, for one object or a
// whole system.
//
// # Participants
//
// They have the names of the text.
//
//	transaction identifier    Transaction.ID, a UUID; it stands in explanations, logs and errors
//	transaction object        Transaction
//	coordinator               the resource of a transaction that releases what its objects hold, and undoes it
//	resource                  Resource: what is told how the transaction ends
//	transactional scheduler   mailbox.Scheduler, whose Complete retains the requests of transactions
//
// What decides between several resources is the Manager.
//
// # Waiting
//
// A request of a transaction waits like any other: for its guard, which sees what the transaction has done,
// or for what conflicts, and holds meanwhile what the transaction holds. It ends with its context, by a
// *WaitError, which says what it waited for, and what the transaction kept waiting. Transaction.Explain
// says it at any time.
//
// A circle of waits is found when it arises. One of the transactions in it, by default the youngest, is
// rolled back: its request fails with an *activeobject.DeadlockError that names the circle. Run then runs it
// again, as old as it was, so that it is the oldest in the end, and wins.
//
// A circle that leads through something else, such as the locks of a database, is not seen, nor is a guard that
// the transaction itself would have to open: another of its goroutines may. Those end with a context, or a lease.
//
// A transaction that has not ended within its lease is rolled back, and that is logged.
//
// # Several resources
//
// A Resource registered with a transaction is told to prepare, and then to commit or to roll back; see
// Registrar. The objects have no say in it: they can always commit, and are released when the decision
// has been made. With one resource, that decides. With more, the decision goes to a Log before any of them
// is told to commit, and Recover ends what a crash has left. The packages below have a log, and the
// resources of databases.
//
// Objects are in memory, and end with their process: a transaction over objects alone needs no log.
package transaction
