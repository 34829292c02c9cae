// Package leaderfollowers is the Leader/Followers pattern: threads that take turns at waiting for
// events, and at processing them.
//
//	  handles                   handle set              thread pool
//	┌─────────────────┐       ┌────────────┐  waits   ┌──────────┐
//	│ connections     │──────►│            │◄─────────│  leader  │◄───────┐
//	│ listeners       │       │  Handles() │  event   └────┬─────┘        │ promoted
//	│ timers, wake-ups│──────►│            │               │ 1. promotes a follower
//	│ mailboxes       │       └────────────┘               ▼              │
//	└─────────────────┘              ▲              ┌────────────┐  ┌───────────┐
//	                     active again│              │ processing │─►│ followers │
//	                                 └──────────────│ 2. handler │  │ (wait at a shared object)
//	                                                └────────────┘  └───────────┘
//
// One thread at a time, the leader, waits for an event of a handle in the handle set. When there is
// one, it first promotes a follower to be the next leader, and then processes the event: it calls the
// handler of the handle. Meanwhile the handle is deactivated. Then it follows again, or leads at once
// if no other thread does. So no event is handed from one thread to another, and there is no queue
// between those that wait and those that work.
//
// The pattern is that of Schmidt, Stal, Rohnert and Buschmann, "Pattern-Oriented Software Architecture,
// Volume 2" (2000). Its participants have their names here: Handle, HandleSet, EventHandler, and
// Pool, whose threads are Leader, Processing or Follower. The synchronizer that followers wait at is a
// shared object of the package activeobject: an entry whose guard is that no thread leads, under a
// policy that is the order of promotion (LIFO, FIFO).
//
//	pool, err := leaderfollowers.New(system, 4)
//	conn, err := pool.Handles().Conn(c)              // a net.Conn
//	err = conn.Activate(handler, leaderfollowers.Read)
//
//	account, err := activeobject.New(system, accounts, state, activeobject.Dispatcher(pool.Dispatcher()))
//	store, err := synchronizer.New(system, stores, state, leaderfollowers.Threads(pool))
//	props := actor.PropsFromProducer(producer, actor.WithDispatcher(pool.ForActors(0)))
//
// # What a thread is here
//
// A thread is a goroutine. A handler that needs a thread of the operating system locks it, by
// runtime.LockOSThread, and unlocks it before it returns; a leader waits as a parked goroutine, and
// keeps no thread of the operating system.
//
// Go's scheduler does much of this pattern already. A goroutine that reads from a net.Conn is parked;
// the runtime has one epoll instance; the thread of the operating system that finds nothing else to
// run waits for it, and makes the goroutines ready whose connections are. So a goroutine for each
// connection is the usual server in Go, and mostly the fastest. A pool is worth it where
//
//   - there are very many connections that are mostly idle, and a goroutine's stack, with a buffer for
//     each of them, is too much: an idle handle has neither;
//   - no more than so many events are to be processed at once, whatever waits;
//   - handlers are not to block, and their connections' reads and writes are under the program's own
//     control, as in Conn;
//   - objects and actors are many and their turns short: over memory there is little to demultiplex,
//     but a thread that comes back takes the next event without a switch of goroutines.
//
// docs/performance.md has what was measured.
package leaderfollowers
