package unread

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/services/internal/inprocess"
)

// Request decodes the request of a call into the message that the interceptors have of it, which is empty but for what the
// path of an HTTP request says, and stays so when it fails. It is called once at most, before the call ends.
type Request func(ctx context.Context, into proto.Message) error

type key struct{}

// NewContext returns the context of a call whose request is not decoded.
func NewContext(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, key{}, r)
}

// FromContext returns what decodes the request of a call; nil when that is done.
func FromContext(ctx context.Context) Request {
	if outer := inprocess.Caller(ctx); outer != nil {
		ctx = outer
	}
	r, _ := ctx.Value(key{}).(Request)
	return r
}

// Service makes the unary RPCs of a service of a grpc.Server leave their requests to the interceptors, which must have one
// that decodes them. Where the request is a single message, gRPC does not even receive it before.
func Service(desc *grpc.ServiceDesc) *grpc.ServiceDesc {
	late := *desc
	late.Methods = make([]grpc.MethodDesc, len(desc.Methods))
	for i, method := range desc.Methods {
		late.Methods[i] = grpc.MethodDesc{MethodName: method.MethodName, Handler: handler(method.Handler)}
	}
	return &late
}

func handler(decoded grpc.MethodHandler) grpc.MethodHandler {
	return func(service any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		ctx = NewContext(ctx, func(_ context.Context, into proto.Message) error {
			err := decode(into)
			if err != nil {
				proto.Reset(into)
			}
			return err
		})
		return decoded(service, ctx, func(any) error { return nil }, interceptor)
	}
}
