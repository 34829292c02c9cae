// Package resource has a scheduler for what only one client may use at a time: clients that
// wait for it get it in the order of a policy, and a client that ends gives it back.
//
//	type job struct{ pages, priority int }
//
//	printer, err := resource.New(system, resource.ByPriority(func(j job) int { return j.priority }))
//
//	grant, err := printer.Enter(ctx, job{pages: 3, priority: 7}, resource.Lease(time.Minute))
//	…
//	err = grant.Done()
//
// Enter waits until the resource is granted, and With holds it around a function. For futures, attempts
// and messages the operations are returned bound to the scheduler: Enters and Dones.
//
// The scheduler does not know the resource: to hold its grant is to be allowed to use
// that. So what is done with the resource may block, as the operations of a shared
// object may not.
//
// # Where it comes from
//
// It is the resources scheduler of Lea's Concurrent Programming in Java, in the form of
// a server with guarded suspension, whose policy is a function over the suspended
// clients and their requests. What differs: in that server any call of done gives the
// resource back, also by a client that does not have it; here that takes the grant, once. And there
// a client that ends keeps the resource for ever; see Watched, Lease and During.
package resource
