package actor

import (
	"context"

	proto "github.com/asynkron/protoactor-go/actor"
)

// Header is the header of a message's envelope, such as a trace context.
type Header = proto.ReadonlyMessageHeader

// headerKey is the key of a context's Header.
type headerKey struct{}

// HeaderOf returns the header of the message by which a request came, from the context of its
// interceptors and its body. It is empty, and never nil, if the request did not come by message,
// or the message had no header. A body that calls other objects with its context passes the header
// on to them.
func HeaderOf(ctx context.Context) Header {
	if h, ok := ctx.Value(headerKey{}).(Header); ok {
		return h
	}
	return proto.EmptyMessageHeader
}

// WithHeader returns a context whose header is h. An object uses it for requests that come by
// message. A test can use it for code that calls HeaderOf.
func WithHeader(ctx context.Context, h Header) context.Context {
	return context.WithValue(ctx, headerKey{}, h)
}
