package unread

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/services/internal/inprocess"
	"github.com/palisade/palisade/services/internal/intake"
)

// Request receives and decodes the request of a call, within the share room, into the message that the interceptors
// use. That message is empty, or has the values in the path of an HTTP request. It stays unchanged when Request fails.
// Request is called at most once, before the call ends.
type Request func(ctx context.Context, into proto.Message, room *intake.Share) error

type key struct{}

// NewContext returns the context of a call with an undecoded request.
func NewContext(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, key{}, r)
}

// FromContext returns the function that decodes the request of a call. It is nil when the request is decoded already.
func FromContext(ctx context.Context) Request {
	if outer := inprocess.Caller(ctx); outer != nil {
		ctx = outer
	}
	r, _ := ctx.Value(key{}).(Request)
	return r
}

// Service makes the unary RPCs of a grpc.Server's service leave their requests undecoded. The chain must have an
// interceptor that receives them.
func Service(desc *grpc.ServiceDesc) *grpc.ServiceDesc {
	late := *desc
	late.Methods = make([]grpc.MethodDesc, len(desc.Methods))
	for i, method := range desc.Methods {
		late.Methods[i] = grpc.MethodDesc{MethodName: method.MethodName, Handler: handler(method.Handler)}
	}
	return &late
}

func handler(decoded grpc.MethodHandler) grpc.MethodHandler {
	return func(service any, ctx context.Context, _ func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		ctx = NewContext(ctx, func(ctx context.Context, into proto.Message, room *intake.Share) error {
			return room.ReceiveGRPC(ctx, into)
		})
		return decoded(service, ctx, func(any) error { return nil }, interceptor)
	}
}
