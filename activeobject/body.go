package activeobject

import "context"

// Body is what an operation does: a method of the state that takes an argument and returns
// a result and an error. A method that lacks one of these is adapted by the function that is
// named after what it has:
//
//	func (*T) M(A) (R, error)    (*T).M
//	func (*T) M(A) R             ArgResult((*T).M)
//	func (*T) M(A) error         ArgError((*T).M)
//	func (*T) M(A)               Arg((*T).M)
//	func (*T) M() (R, error)     ResultError((*T).M)
//	func (*T) M() R              Result((*T).M)
//	func (*T) M() error          Error((*T).M)
//	func (*T) M()                Plain((*T).M)
//
// The argument or result that is not there has the type None. If the compiler says that a
// method does not match Body, its row is missing here, or its adapter there.
//
// A Body neither blocks nor calls other objects; BodyCtx does.
type Body[T, A, R any] func(state *T, arg A) (R, error)

// BodyCtx is a Body that may block or call other objects, with the context that it receives.
// It has one form, and a body of another one is a function literal.
type BodyCtx[T, A, R any] func(state *T, ctx context.Context, arg A) (R, error)

// ArgResult makes a Body of a method with an argument and a result, which cannot fail.
func ArgResult[T, A, R any](m func(*T, A) R) Body[T, A, R] {
	return func(s *T, a A) (R, error) { return m(s, a), nil }
}

// ArgError makes a Body of a method with an argument, which returns no more than an error.
func ArgError[T, A any](m func(*T, A) error) Body[T, A, None] {
	return func(s *T, a A) (None, error) { return nil, m(s, a) }
}

// Arg makes a Body of a method with an argument, which returns nothing.
func Arg[T, A any](m func(*T, A)) Body[T, A, None] {
	return func(s *T, a A) (None, error) { m(s, a); return nil, nil }
}

// ResultError makes a Body of a method without argument, which returns a result and an error.
func ResultError[T, R any](m func(*T) (R, error)) Body[T, None, R] {
	return func(s *T, _ None) (R, error) { return m(s) }
}

// Result makes a Body of a method without argument, which returns a result and cannot fail.
func Result[T, R any](m func(*T) R) Body[T, None, R] {
	return func(s *T, _ None) (R, error) { return m(s), nil }
}

// Error makes a Body of a method without argument, which returns no more than an error.
func Error[T any](m func(*T) error) Body[T, None, None] {
	return func(s *T, _ None) (None, error) { return nil, m(s) }
}

// Plain makes a Body of a method that takes and returns nothing.
func Plain[T any](m func(*T)) Body[T, None, None] {
	return func(s *T, _ None) (None, error) { m(s); return nil, nil }
}
