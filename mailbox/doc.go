// Package mailbox is the scheduler of one object's mailbox, which decides which request
// may start: a pure state machine, without goroutine, lock, clock or channel.
//
//	          Arrive                admit                    start             Complete
//	request ─────────► entry queue ───────► waiting queues ─────────► running ──────────►
//	             │       ▲                   ▲ │ guards · conflicts · policy │
//	             ▼       │                   │ └──► Withdraw                 │
//	       overflow queue                    └─────────── Requeue ───────────┘
//
// Arrivals, completions, requeues and withdrawals go in; the requests to start
// come out of Next, one at a time, whenever a goroutine is ready to run one. A Scheduler
// is not safe for concurrent use, and can be driven by hand: see the example. The objects of
// package activeobject run on one each.
//
// The package also has the words for what a scheduler says: why a request waits (Reason,
// Snapshot), what has been counted (Stats), and how a request fails that has not run.
//
// # Rules
//
// A request waits in the entry queue until it is admitted, and then in the queue of its
// operation. The rules say when it starts. The code cites them by their numbers.
//
// R1, conflicts. Nothing that runs conflicts with it. The conflict table says so of operations,
// and where that has scopes, of requests by their footprints: see Claim.
//
// R2, guards. Its guard holds. A guard is evaluated only when R1 is met, and no result outlives
// the start or the completion of a request that changes the state, or, of a guard over waiting
// counts, an admission or departure. Requests that share operation and guard result form a line:
// all of an entry, if its guard looks at the state alone; those with equal keys, of a family. One
// evaluation serves the line. A guard over the argument is evaluated for each request, or only for
// the head of the line, behind which the others wait. A family can have operations that declare
// which keys they open: a result that is false stands for the other keys.
//
// R3, entry queue. When a request completes, the admitted ones are considered until none can
// start; then those in the entry queue that meet R1 are admitted, one at a time in order of
// arrival: one that can start does so before the next is admitted. This is the eggshell of Ada's
// protected objects: a guard over waiting counts never sees those outside, and a burst that passes
// is not joined by later arrivals. A policy that compares requests is shown all of them, so all
// are admitted before it is asked. Functions that run beside each other and wait for one guard
// start by one decision. A request that is requeued is admitted at once: it joins behind the
// admitted ones and before the entry queue.
//
// R4, overtaking. It passes no request that comes before it and conflicts with it, unless that
// request is closed: its guard is known to be false. (With Rules.AllCompatible also one that waits
// for what runs is passed, as in the Synchronizer's text, by which a stream of readers starves a
// writer; but one in the entry queue that could be admitted is considered first.)
//
// R5, bypasses. A bypass is the start of a later arrival while a request waits and its guard holds,
// or is not known to be false. Nothing that conflicts with a request starts before it once that has
// been bypassed Rules.MaxBypass times, whatever the policy says. If its guard turns false the
// reservation lapses, and the count stays.
//
// R6, order. Admitted requests come before those in the entry queue; among the former those
// that are at the bound of R5 come first, by arrival; then the policy decides; then arrival. The
// entry queue is in order of arrival.
//
// R7, bounds. A request that has to wait where too many do is refused, or takes the place of
// the oldest, or waits in the overflow queue: for room, or until it could start at once; it is
// considered last, and is before none. One that is requeued beyond a bound fails when nothing more
// can start.
//
// R8, suspension. Nothing starts while the object is held, and no guard is evaluated.
//
// R9, Try. It is decided as soon as it meets R1, and then starts or is refused: it never waits for
// its guard, or for a request that comes first. One that is requeued is decided before all others.
//
// R10, nested requests. A request that has been called from inside of others that run conflicts
// with none of them, and passes all that wait. So does one of a transaction with those that the
// transaction retains, which run for all others until it is released.
//
// R11, threads. Where threads are assigned on arrival, a request without one waits before the entry
// queue, and is before none: see ArriveAwaitingThread.
//
// R12, failures. A guard, predicate or policy that fails takes the requests with it that it was
// asked about. What has failed is told before anything starts.
//
// # Lines
//
// What stands between a line and its start is said by judge, and which requests come before others
// by walk, for all lines, and by ahead, for one request. Both are asked to evaluate or only to
// look. Lines that are known to be closed are not looked at: see places.
//
// # Invariants
//
// I1. Evaluating a guard, a predicate or an order may end the goroutine (GuardFailed, PolicyFailed).
// The scheduler belongs to another one then. So nothing is deferred, and before a request is
// taken from where it is, nothing is evaluated that it needs to get to its next place.
//
// I2. Between the last word of the caller (may, of NextFor) and the start of a request nothing is
// evaluated, so that the start cannot fail.
//
// I3. Order numbers are unique among those that wait, and a list is sorted by them.
package mailbox
