package chain

import (
	"context"

	"google.golang.org/grpc"

	"github.com/palisade/palisade/services/internal/apierr"
)

// untilDraining ends a stream when the server stops. Otherwise it would last until the end of the grace period.
func untilDraining(srv any, ss grpc.ServerStream, ctx, draining context.Context, handler grpc.StreamHandler) error {
	if draining == nil {
		return handler(srv, withContext(ss, ctx))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(draining, cancel)()
	err := handler(srv, &drainingStream{ServerStream: ss, ctx: ctx})
	if err != nil && draining.Err() != nil {
		return finish(ctx, apierr.Unavailable(nil, "the server is stopping: connect again"))
	}
	return err
}

// drainingStream also stops waiting for messages when its context ends. The stream below only knows the context of the
// connection.
type drainingStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context ends when the server drains.
func (s *drainingStream) Context() context.Context { return s.ctx }

// RecvMsg receives the next message into m, unless the context ends first; then m must not be used. The read below ends
// with the stream, which is soon, because the handler got the error.
func (s *drainingStream) RecvMsg(m any) error {
	received := make(chan error, 1)
	go func() { received <- s.ServerStream.RecvMsg(m) }()
	select {
	case err := <-received:
		return err
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}
