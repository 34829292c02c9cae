package engine

import (
	"context"

	"github.com/sluice-go/sluice/internal/waitgraph"
	"github.com/sluice-go/sluice/mailbox"
)

// ending is the end of an object, for which a body waits that closes the object. It comes when all
// bodies that run there have returned. Waiting requests that can start are served before; a body of
// theirs that begins to wait sees this wait.
type ending struct {
	box     *Mailbox
	aborted chan error // why it will not come
}

// AwaitEnd calls end, which brings about the end of the object, and waits for that: until the
// channel that end returns is closed. If the context ends first, it returns the context's error. It
// fails with *DeadlockError if the object cannot end before the caller goes on: before end is
// called, and so with nothing done; or later, as the object is restarted and waits for its children.
func (m *Mailbox) AwaitEnd(ctx context.Context, end func() (idle <-chan struct{})) error {
	e := &ending{box: m, aborted: make(chan error, 1)}
	if chain := ChainOf(ctx); chain != nil {
		// The wait is drawn before the end begins. A body that waits by then is seen here; one
		// that begins to wait later sees this wait.
		w, err := chain.enter(e, e)
		defer w.leave()
		if err != nil {
			return err
		}
	}
	idle := end()
	defer comesBack(leaves(ctx))
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	case err := <-e.aborted:
		return err
	}
	select {
	case <-idle:
		return nil
	default:
		return ctx.Err()
	}
}

// cancel implements canceler.
func (e *ending) cancel(error) bool { return true }

// abort implements canceler.
func (e *ending) abort(err error) { e.aborted <- err }

// Pending implements waitgraph.Goal.
func (e *ending) Pending() bool { return true }

// Object implements waitgraph.Event.
func (e *ending) Object() waitgraph.Point { return e.box }

// Point implements waitgraph.Event: all that runs at the object blocks its end, even where requests wait for
// some of it only.
func (e *ending) Point() waitgraph.Point { return e.box }

// String names it in explanations.
func (e *ending) String() string { return "the end of " + e.box.host.Name() }

// why returns what keeps the object from ending, and whether anything does.
func (e *ending) why() (why mailbox.Reason, pending bool) {
	m := e.box
	m.mu.Lock()
	defer m.mu.Unlock()
	if why.Cause = mailbox.Conflict; m.suspended() != nil {
		why.Cause = mailbox.Suspended
	}
	if k := m.queues.Load(); k != nil {
		for op, o := range m.config.Rules.Operations {
			if k.RunsOf(op) > 0 {
				why.Conflicts = append(why.Conflicts, o.Name)
			}
		}
	}
	return why, why.Cause == mailbox.Suspended || why.Conflicts != nil
}
