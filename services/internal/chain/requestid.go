package chain

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/inprocess"
	"github.com/palisade/palisade/services/internal/quota"
	"github.com/palisade/palisade/services/internal/telemetry"
	"github.com/palisade/palisade/services/internal/unread"
)

// RequestIDHeader is the metadata key and HTTP header of the request id. A caller may choose the id; every response has
// it.
const RequestIDHeader = "x-request-id"

// RequestID returns the id of the request, for a handler that puts it into its response.
func RequestID(ctx context.Context) string { return callFrom(ctx).id }

// Remote returns the address of the caller, without port; behind a trusted proxy, the one that the proxy names.
func Remote(ctx context.Context) string { return callFrom(ctx).remote }

// maxRequestID is the longest accepted id of a caller, in characters.
const maxRequestID = 128

// requestID starts a call. It sets the id, the timeout and the record that the other links fill in. At the end it sends
// the id and the quota to the caller.
func requestID(d Deps, limits *quotas) Link {
	return Link{
		Name: "request id",
		Unary: func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			ctx, c := begin(ctx, d, info.FullMethod)
			defer c.answer(ctx, limits)
			if d.RequestTimeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, d.RequestTimeout)
				defer cancel()
			}
			return handler(ctx, req)
		},
		Stream: func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			ctx, c := begin(ss.Context(), d, info.FullMethod)
			if c.stream = ss; c.transport == transportGRPC {
				// It fails only after headers were sent, which nothing outside this link can do.
				_ = ss.SetHeader(metadata.Pairs(RequestIDHeader, c.id))
				receiving := &receivingStream{ServerStream: ss, deps: d, call: c}
				defer receiving.end()
				ss = receiving
			}
			defer c.answer(ctx, limits)
			if c.rule.GetPermission() == optionsv1.Permission_PERMISSION_UPLOAD {
				if c.transport == transportGRPC {
					ss = newPacedStream(ss, d.Uploads.Pace)
				}
				return bounded(srv, ss, ctx, d.UploadTimeout, handler)
			}
			return untilDraining(srv, ss, ctx, d.Draining, handler)
		},
	}
}

func bounded(srv any, ss grpc.ServerStream, ctx context.Context, limit time.Duration, handler grpc.StreamHandler) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	if paced, ok := ss.(*pacedStream); ok {
		paced.ctx = ctx
		return handler(srv, paced)
	}
	return handler(srv, withContext(ss, ctx))
}

func begin(ctx context.Context, d Deps, method string) (context.Context, *call) {
	c := &call{method: method, transport: transportGRPC, rule: d.Rules.Rule(method), unread: unread.FromContext(ctx)}
	if outer := inprocess.Caller(ctx); outer != nil {
		c.transport = transportHTTP
		c.report = quota.FromContext(outer)
		ctx = continueSpan(ctx, outer, method)
	}
	c.remote = remoteAddress(ctx, c.transport)
	// The gateway has validated the id, and its response uses that id.
	if id := metadata.ValueFromIncomingContext(ctx, RequestIDHeader); len(id) == 1 && (c.transport == transportHTTP || validID(id[0])) {
		c.id = id[0]
	} else {
		c.id = newID()
	}
	ctx = context.WithValue(ctx, callKey{}, c)
	return telemetry.WithAttrs(ctx, slog.String("request_id", c.id), slog.String("method", method)), c
}

// answer sends the metadata of every response. Calls that were refused before they were counted show the current quota.
// Over HTTP the gateway sends the request id. The header of a stream is sent with its first message, so streams get
// their quota when they are counted.
func (c *call) answer(ctx context.Context, limits *quotas) {
	if c.quota == nil {
		c.quota = limits.state(c, time.Now(), 0)
		c.quotaSent = false
	}
	switch {
	case c.quotaSent:
	case c.transport == transportHTTP:
		if c.report != nil {
			c.report.Set(c.quota)
		}
	case c.stream != nil:
		if c.quota != nil {
			md := make(metadata.MD, 4)
			c.quota.Metadata(md)
			_ = c.stream.SetHeader(md) // too late for a stream that fails after its first message, and of no use to it
		}
	default:
		md := metadata.MD{RequestIDHeader: {c.id}}
		if c.quota != nil {
			c.quota.Metadata(md)
		}
		_ = grpc.SetHeader(ctx, md)
	}
	c.quotaSent = c.stream != nil
}

// newID is a version 7 UUID: unique, and sortable by time.
func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		// The system's randomness failed. Go ends the program before this code runs.
		return uuid.Nil.String()
	}
	return id.String()
}

// validID accepts an id that is safe in logs, headers and file names.
func validID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	}) < 0
}

// continueSpan gives a call from the gateway the span of its HTTP request, since the in-process connection does not
// pass context values.
func continueSpan(ctx, outer context.Context, method string) context.Context {
	span := trace.SpanFromContext(outer)
	if !span.SpanContext().IsValid() {
		return ctx
	}
	name := strings.TrimPrefix(method, "/")
	span.SetName(name)
	span.SetAttributes(attribute.String("rpc.method", name))
	return trace.ContextWithSpan(ctx, span)
}

// remoteAddress is the caller's address without port. Only the gateway may set another one; the same metadata from
// outside is ignored.
func remoteAddress(ctx context.Context, transport string) string {
	address := ""
	if transport == transportHTTP {
		if named := metadata.ValueFromIncomingContext(ctx, forwardedHeader); len(named) > 0 {
			address = named[0]
		}
	} else if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		address = p.Addr.String()
	}
	if with, err := netip.ParseAddrPort(address); err == nil {
		return with.Addr().Unmap().String()
	}
	return address
}

// forwardedHeader is the metadata key for the address of the gateway's caller.
const forwardedHeader = "x-forwarded-for"
