package chain

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

// readRequest decodes the request, now that it is known who sends it. What is wrong with it is told further in, to who may
// call; until then it counts as empty, but for what the path of an HTTP request says. Streams are read as they come.
// A caller whose limit is used up is refused before.
func readRequest(q *quotas) Link {
	return Link{
		Name: "request",
		Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			c := callFrom(ctx)
			if c.unread != nil {
				if q.usedUp(c) {
					if err := q.count(c); err != nil {
						return nil, err
					}
				}
				err := c.read(ctx, req)
				if apierr.ReasonOf(err) == errorsv1.Reason_REASON_RATE_LIMITED {
					q.callers.refused()
				}
				if err != nil {
					return nil, err
				}
			}
			return handler(ctx, req)
		},
		Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			return handler(srv, ss)
		},
	}
}

// read decodes the request into req. It keeps what is wrong with it for later; the error that it returns is another: the
// caller is gone, say, or was too slow, or there is no room.
func (c *call) read(ctx context.Context, req any) error {
	message, ok := req.(proto.Message)
	if !ok {
		return apierr.Internal(errors.New("a request of something else than a protobuf message"))
	}
	err := c.unread(ctx, message)
	if err == nil {
		return nil
	}
	if c.transport == transportGRPC && (errors.Is(err, io.EOF) || status.Code(err) == codes.Internal) { // of gRPC, which has answered
		err = apierr.InvalidArgument("request", "the request is not a message of this RPC")
	}
	code := status.Code(apierr.Map(err))
	if code == codes.InvalidArgument || code == codes.ResourceExhausted && apierr.ReasonOf(err) != errorsv1.Reason_REASON_RATE_LIMITED {
		c.unreadable = err
		return nil
	}
	return err
}
