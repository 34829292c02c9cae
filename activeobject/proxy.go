package activeobject

import "context"

// Proxy is the client proxy of an operation: the operation at an object, as a caller
// sees it. The caller knows that it takes an A and returns an R, but not the object,
// the type of its state, or where it is. So code that is written against a Proxy can be
// tested without any object; the package objecttest has a Fake.
//
// There is no Begin and no Case here: a ticket is the record of a request in this process,
// and a Select has one word that the objects compete for, which has no place elsewhere.
//
// At returns the proxy of a local object. The methods are those of Operation, where
// it says what they do and what they fail with.
type Proxy[A, R any] interface {
	// Call waits for the result.
	Call(ctx context.Context, arg A) (R, error)
	// Try refuses to wait, with an error that matches ErrRefused.
	Try(ctx context.Context, arg A) (R, error)
	// Send returns the future of the result.
	Send(ctx context.Context, arg A) Future[R]
	// Tell hands the request in and forgets it.
	Tell(ctx context.Context, arg A) error
}

// At returns the operation's client proxy at an object. It is made once, for any
// number of calls; a call by it costs that of the operation and of a method of an
// interface, and allocates nothing more.
//
// (It is no method, as an Operation would then have its proxies compiled whether there are any or
// not.)
func At[T, A, R any](op *Operation[T, A, R], o *Object[T]) Proxy[A, R] { return &local[T, A, R]{op, o} }

// local is the client proxy of an object in this process.
type local[T, A, R any] struct {
	op *Operation[T, A, R]
	o  *Object[T]
}

// Call implements Proxy.
func (p *local[T, A, R]) Call(ctx context.Context, arg A) (R, error) {
	return p.op.Call(ctx, p.o, arg)
}

// Try implements Proxy.
func (p *local[T, A, R]) Try(ctx context.Context, arg A) (R, error) { return p.op.Try(ctx, p.o, arg) }

// Send implements Proxy.
func (p *local[T, A, R]) Send(ctx context.Context, arg A) Future[R] { return p.op.Send(ctx, p.o, arg) }

// Tell implements Proxy.
func (p *local[T, A, R]) Tell(ctx context.Context, arg A) error { return p.op.Tell(ctx, p.o, arg) }

// String returns the names of object and operation.
func (p *local[T, A, R]) String() string { return p.o.Name() + "." + p.op.Name() }
