package transaction

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// Recovered is what recovery has done to the part of one resource in one transaction.
type Recovered struct {
	Transaction uuid.UUID
	Resource    string
	Outcome     Outcome // what the resource was to be told; InDoubt: it is not known
	Err         error   // why it is not finished; nil if the resource has confirmed the outcome
}

// Recover ends what a crash has left: each branch that is in doubt at one of the resources is
// committed if the log that it names has the decision, and else rolled back. Then it
// removes from the logs what all participants have done. It is to be called with all logs,
// last resources and resources that a crashed process used, before the first new
// transaction begins. The context bounds each call.
//
// It returns what it has done, branch by branch, and what it could not do; the error
// is nil if nothing is left. A branch whose log was not given stays in doubt (ErrNoLog): it
// may belong to another manager. A decision for a resource that was not given is kept
// (ErrNoResource). Recover can be called again at any time, also after a crash of its own.
//
// Names must differ among the logs, and among the resources: else it returns a
// *RegistrationError and has done nothing.
func Recover(ctx context.Context, logs []Log, resources ...Recoverable) ([]Recovered, error) {
	return recoverBranches(ctx, logs, resources, nil)
}

// recoverBranches is Recover while transactions run: live reports whether a transaction of this
// process has something left to do, from before the first resource is asked to prepare
// until its participants have nothing unfinished. Then it is left alone.
//
// That is safe, as live is asked after the branches have been listed: a transaction that is
// listed, and no longer live, is done. Records are listed before the branches, so that a
// participant of a record that is not among the branches has finished.
func recoverBranches(ctx context.Context, logs []Log, resources []Recoverable, live func(uuid.UUID) bool) ([]Recovered, error) {
	r := recovery{
		ctx:       ctx,
		logs:      map[string]Log{},
		resources: map[string]Recoverable{},
		missing:   map[string]error{},
		left:      map[uuid.UUID]map[string]bool{},
	}
	for _, l := range logs {
		if _, there := r.logs[l.Name()]; there || l.Name() == "" {
			return nil, &RegistrationError{Resource: l.Name(), Problem: "is not the name of one log"}
		}
		r.logs[l.Name()] = l
	}
	for _, resource := range resources {
		if _, there := r.resources[resource.Name()]; there || resource.Name() == "" {
			return nil, &RegistrationError{Resource: resource.Name(), Problem: "is not the name of one resource"}
		}
		r.resources[resource.Name()] = resource
	}

	records := make([][]Record, len(logs))
	for i, l := range logs {
		records[i] = r.unfinished(l)
	}
	type branchOf struct {
		resource Recoverable
		Branch
	}
	var branches []branchOf
	for _, resource := range resources {
		for _, b := range r.inDoubt(resource) {
			branches = append(branches, branchOf{resource, b})
		}
	}
	for _, b := range branches {
		if live == nil || !live(b.Transaction) {
			r.end(b.resource, b.Branch)
		}
	}
	for i, l := range logs {
		for _, record := range records[i] {
			if live == nil || !live(record.Transaction) {
				r.clear(l, record)
			}
		}
	}
	r.forgetRolledBack()
	return r.list, r.err()
}

// recovery is one run of Recover.
type recovery struct {
	ctx        context.Context
	logs       map[string]Log
	resources  map[string]Recoverable
	missing    map[string]error              // resources that could not say what is in doubt
	left       map[uuid.UUID]map[string]bool // branches that are still prepared
	rolledBack []Branch
	list       []Recovered
}

// call makes one call to a resource or a log.
func (r *recovery) call(name, what string, f func(context.Context) error) error {
	if err := r.ctx.Err(); err != nil {
		return &ResourceError{name, what, err}
	}
	return (&worker{name: name}).call(r.ctx, what, f)
}

// unfinished returns the records of a log. A failure is listed: the log's branches will
// find out by themselves whether it can be asked.
func (r *recovery) unfinished(l Log) (records []Record) {
	var list []Record
	err := r.call(l.Name(), "list the decisions", func(ctx context.Context) (err error) {
		list, err = l.Unfinished(ctx)
		return err
	})
	if err != nil {
		r.list = append(r.list, Recovered{Resource: l.Name(), Err: err})
		return nil
	}
	return list
}

// inDoubt returns the prepared branches of a resource. A failure is listed.
func (r *recovery) inDoubt(resource Recoverable) []Branch {
	var list []Branch
	err := r.call(resource.Name(), "list what is in doubt", func(ctx context.Context) (err error) {
		list, err = resource.InDoubt(ctx)
		return err
	})
	if err != nil {
		r.missing[resource.Name()] = err
		r.list = append(r.list, Recovered{Resource: resource.Name(), Err: err})
		return nil
	}
	return list
}

// end finds out the outcome of a branch, and tells the resource.
func (r *recovery) end(resource Recoverable, b Branch) {
	done := Recovered{Transaction: b.Transaction, Resource: resource.Name()}
	done.Outcome, done.Err = r.outcome(b)
	switch done.Outcome {
	case Committed:
		done.Err = r.call(done.Resource, "commit", func(ctx context.Context) error { return resource.Commit(ctx, b.Transaction) })
	case RolledBack:
		done.Err = r.call(done.Resource, "rollback", func(ctx context.Context) error { return resource.Rollback(ctx, b.Transaction) })
		r.rolledBack = append(r.rolledBack, b)
	}
	if done.Err != nil && !errors.Is(done.Err, ErrHeuristic) {
		if r.left[b.Transaction] == nil {
			r.left[b.Transaction] = map[string]bool{}
		}
		r.left[b.Transaction][done.Resource] = true
	}
	r.list = append(r.list, done)
}

// outcome returns the outcome of a branch, or why it is in doubt.
func (r *recovery) outcome(b Branch) (Outcome, error) {
	if b.Log == "" { // without a log only the sole resource with something to commit has prepared
		return RolledBack, nil
	}
	l := r.logs[b.Log]
	if l == nil {
		return InDoubt, fmt.Errorf("%w: %q has the decision", ErrNoLog, b.Log)
	}
	committed := false
	err := r.call(b.Log, "find out the outcome", func(ctx context.Context) (err error) {
		committed, err = l.Committed(ctx, b.Transaction)
		return err
	})
	switch {
	case err != nil:
		return InDoubt, err
	case committed:
		return Committed, nil
	}
	return RolledBack, nil
}

// clear removes a record if all its participants have finished.
func (r *recovery) clear(l Log, record Record) {
	finished := true
	for _, name := range record.Participants {
		switch {
		case r.resources[name] == nil:
			finished = false
			err := fmt.Errorf("%w: the decision is kept in %q", ErrNoResource, l.Name())
			r.list = append(r.list, Recovered{record.Transaction, name, Committed, err})
		case r.missing[name] != nil:
			finished = false
			r.list = append(r.list, Recovered{record.Transaction, name, Committed, r.missing[name]})
		case r.left[record.Transaction][name]:
			finished = false
		}
	}
	if finished {
		r.done(l, record.Transaction)
	}
}

// forgetRolledBack tells the logs which transactions they will not be asked about again.
func (r *recovery) forgetRolledBack() {
	for _, b := range r.rolledBack {
		if l := r.logs[b.Log]; l != nil && len(r.left[b.Transaction]) == 0 && len(r.missing) == 0 {
			r.done(l, b.Transaction)
		}
	}
}

func (r *recovery) done(l Log, id uuid.UUID) {
	err := r.call(l.Name(), "remove the record", func(ctx context.Context) error { return l.Done(ctx, id) })
	if err != nil {
		r.list = append(r.list, Recovered{id, l.Name(), Committed, err})
	}
}

// err returns what is left over.
func (r *recovery) err() error {
	var all []error
	for _, done := range r.list {
		switch {
		case done.Err == nil:
		case done.Transaction == uuid.Nil:
			all = append(all, fmt.Errorf("sluice: recovery: %w", done.Err))
		default:
			all = append(all, fmt.Errorf("sluice: recovery: transaction %v at %s, %v: %w", done.Transaction, done.Resource, done.Outcome, done.Err))
		}
	}
	return errors.Join(all...)
}
