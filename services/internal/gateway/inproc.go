package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/fullstorydev/grpchan/inprocgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/palisade/palisade/services/internal/apierr"
)

// InProcessConfig is what the in-process connection shares with the gRPC port.
type InProcessConfig struct {
	// Unary and Stream are the interceptors of the gRPC server, outermost first.
	Unary  []grpc.UnaryServerInterceptor
	Stream []grpc.StreamServerInterceptor
	// Stats is the server's stats handler (tracing); may be nil.
	Stats stats.Handler
	// Logger gets panics that passed the interceptors. Nil is slog.Default.
	Logger *slog.Logger
}

// NewInProcess returns a connection on which calls are function calls through the interceptors. Register the
// services on it as on the grpc.Server; it is both a grpc.ServiceRegistrar and a grpc.ClientConnInterface.
//
// What differs from a socket: messages are not encoded, so the receiver shares lists and inner messages with the
// sender, who must not touch a message after sending it. The gateway does not, and handlers return what they
// made. Deadlines, cancellation, metadata, header metadata and error details pass as usual; the context's other
// values do not.
func NewInProcess(config InProcessConfig) *inprocgrpc.Channel {
	log := config.Logger
	if log == nil {
		log = slog.Default()
	}
	channel := new(inprocgrpc.Channel).WithCloner(shareCloner{})
	unary := append([]grpc.UnaryServerInterceptor{guardUnary(log)}, config.Unary...)
	stream := append([]grpc.StreamServerInterceptor{guardStream(log)}, config.Stream...)
	channel.WithServerUnaryInterceptor(chainUnary(unary)).WithServerStreamInterceptor(chainStream(stream))
	if config.Stats != nil {
		channel.WithServerStatsHandler(config.Stats)
	}
	return channel
}

// shareCloner moves a message to the other side without copying what is in it.
type shareCloner struct{}

// Copy makes out hold what in holds, sharing lists, maps and messages.
func (shareCloner) Copy(out, in any) error {
	target, ok := out.(proto.Message)
	if !ok {
		return fmt.Errorf("in-process call: cannot receive into a %T", out)
	}
	source, ok := in.(proto.Message)
	if !ok {
		return fmt.Errorf("in-process call: cannot send a %T", in)
	}
	to, from := target.ProtoReflect(), source.ProtoReflect()
	if to.Descriptor() != from.Descriptor() {
		return fmt.Errorf("in-process call: cannot receive a %s as a %s", from.Descriptor().FullName(), to.Descriptor().FullName())
	}
	proto.Reset(target)
	from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to.Set(field, value)
		return true
	})
	to.SetUnknown(from.GetUnknown())
	return nil
}

// Clone passes the message itself on.
func (shareCloner) Clone(in any) (any, error) { return in, nil }

// guardUnary keeps a panic that no interceptor caught from ending the process: calls run on a goroutine of the
// connection, which nothing else guards.
func guardUnary(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
		defer recoverInto(ctx, log, info.FullMethod, &err)
		return handler(ctx, request)
	}
}

func guardStream(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
		defer recoverInto(stream.Context(), log, info.FullMethod, &err)
		return handler(server, stream)
	}
}

func recoverInto(ctx context.Context, log *slog.Logger, method string, err *error) {
	if value := recover(); value != nil {
		log.ErrorContext(ctx, "panic in an RPC", slog.String("method", method), slog.Any("panic", value),
			slog.String("stack", string(debug.Stack())))
		*err = apierr.Internal(fmt.Errorf("panic: %v", value))
	}
}

// chainUnary makes one interceptor of many, as grpc.ChainUnaryInterceptor does inside a grpc.Server.
func chainUnary(interceptors []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		for i := len(interceptors) - 1; i >= 0; i-- {
			interceptor, next := interceptors[i], handler
			handler = func(ctx context.Context, request any) (any, error) {
				return interceptor(ctx, request, info, next)
			}
		}
		return handler(ctx, request)
	}
}

func chainStream(interceptors []grpc.StreamServerInterceptor) grpc.StreamServerInterceptor {
	return func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		for i := len(interceptors) - 1; i >= 0; i-- {
			interceptor, next := interceptors[i], handler
			handler = func(server any, stream grpc.ServerStream) error {
				return interceptor(server, stream, info, next)
			}
		}
		return handler(server, stream)
	}
}
