package inprocess

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc"

	"github.com/palisade/palisade/services/internal/apierr"
)

// guardUnary turns a panic that no interceptor caught into an error. In a stream, which runs on a goroutine of the
// connection, it would end the process.
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

// ChainUnary combines interceptors, the first outermost, as grpc.ChainUnaryInterceptor does. No interceptor may call
// its handler twice, because a call keeps its position in the chain instead of a function for each link.
func ChainUnary(interceptors []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		c := &chained{rest: interceptors, info: info, handler: handler}
		c.next = c.call
		return c.call(ctx, request)
	}
}

// chained is a unary call on its way through the interceptors.
type chained struct {
	rest    []grpc.UnaryServerInterceptor
	info    *grpc.UnaryServerInfo
	handler grpc.UnaryHandler
	next    grpc.UnaryHandler // the method call, bound once
}

func (c *chained) call(ctx context.Context, request any) (any, error) {
	if len(c.rest) == 0 {
		return c.handler(ctx, request)
	}
	interceptor := c.rest[0]
	c.rest = c.rest[1:]
	return interceptor(ctx, request, c.info, c.next)
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
