package chain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/buckets"
	"github.com/palisade/palisade/services/internal/intake"
)

// readRequest receives and decodes the request after authentication, within the memory limit of the caller. Errors of
// the request are reported further in, to authorized callers only. Until then a broken request counts as empty, except
// for the values in the path of an HTTP request. Streams are read as they arrive. A caller over its rate limit is
// refused first.
func readRequest(d Deps, q *quotas) Link {
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
				room := d.room(c)
				defer room.Release()
				err := room.Spend(callCost(c))
				if err == nil {
					err = c.read(ctx, req, room)
				}
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
			c := callFrom(ss.Context())
			if c.principal != nil {
				return handler(srv, ss)
			}
			room := d.room(c)
			defer room.Release()
			if err := room.Spend(callCost(c)); err != nil {
				return err
			}
			return handler(srv, &countingStream{ServerStream: ss, room: room})
		},
	}
}

// callCost is the memory of an open call in bytes: its goroutines and buffers. It limits the open calls of
// unauthenticated callers.
func callCost(c *call) int64 {
	if c.principal == nil && !isHealth(c.method) {
		return 32 << 10
	}
	return 4 << 10
}

// countingStream reserves memory for all messages of an unauthenticated caller, since the handler may collect them.
type countingStream struct {
	grpc.ServerStream
	room *intake.Share
}

// RecvMsg receives the next message.
func (s *countingStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if message, ok := m.(proto.Message); ok && err == nil {
		err = s.room.Spend(int64(proto.Size(message)))
	}
	return err
}

const (
	// healthMemory is the memory of a node for health checks, healthMessage the largest message of one, in bytes.
	healthMemory, healthMessage = 16 << 20, 4 << 10
)

// room starts the share of a call in the request memory.
func (d Deps) room(c *call) *intake.Share {
	limits := intake.Limits{MaxSize: d.MaxMessage, Compressed: true, Timeout: d.RequestTimeout, First: c.stream == nil}
	if c.rule.GetPermission() == optionsv1.Permission_PERMISSION_UPLOAD {
		limits.Timeout = 0 // uploads have a minimum rate instead
	}
	switch {
	case isHealth(c.method): // separate, so that nothing else makes a node look unhealthy
		limits.MaxSize, limits.Compressed = healthMessage, false
		return d.health.Share(intake.Caller{Address: buckets.Network(c.remote)}, limits)
	case c.principal == nil: // anyone can send these, so they must be cheap
		limits.MaxSize, limits.Compressed = min(d.MaxMessage, intake.Small), false
		return d.Intake.Share(intake.Caller{Address: buckets.Network(c.remote)}, limits)
	}
	return d.Intake.Share(intake.Caller{Kind: c.principal.Kind, ID: c.principal.ID}, limits)
}

// receivingStream receives the messages of a gRPC stream within the request memory. It releases the memory of a message
// when the next one is requested.
type receivingStream struct {
	grpc.ServerStream
	deps Deps
	call *call

	mu        sync.Mutex
	room      *intake.Share // nil before the first message, when the caller is not known yet
	receiving bool
	ended     bool
}

// RecvMsg receives the next message. When it returns, the waiting goroutine may have given up and the call may be over.
func (s *receivingStream) RecvMsg(m any) error {
	into, ok := m.(proto.Message)
	if !ok {
		return apierr.Internal(fmt.Errorf("a message of type %T, want one of protobuf", m))
	}
	s.mu.Lock()
	if s.room == nil {
		s.room = s.deps.room(s.call)
	}
	s.room.Release()
	s.receiving = true
	s.mu.Unlock()
	err := s.room.ReceiveGRPC(s.Context(), into)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.receiving = false; s.ended {
		s.room.Release()
	}
	return err
}

// end releases the memory, now or when the arriving message is complete.
func (s *receivingStream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended = true; s.room != nil && !s.receiving {
		s.room.Release()
	}
}

// read decodes the request into req. It keeps errors of the request for later. It returns other errors: the caller has
// gone or was too slow, or there is no memory.
func (c *call) read(ctx context.Context, req any, room *intake.Share) error {
	message, ok := req.(proto.Message)
	if !ok {
		return apierr.Internal(errors.New("a request that is not a protobuf message"))
	}
	err := c.unread(ctx, message, room)
	if err == nil {
		return nil
	}
	if c.transport == transportGRPC && (errors.Is(err, io.EOF) || status.Code(err) == codes.Internal) { // grpc-go itself has answered
		err = apierr.InvalidArgument("request", "the request is not a message of this RPC")
	}
	code := status.Code(apierr.Map(err))
	if code == codes.InvalidArgument || code == codes.ResourceExhausted && apierr.ReasonOf(err) != errorsv1.Reason_REASON_RATE_LIMITED {
		c.unreadable = err
		return nil
	}
	return err
}
