package inprocess

import (
	"context"
	"log/slog"

	"github.com/fullstorydev/grpchan/inprocgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Config contains what the connection shares with the gRPC port.
type Config struct {
	// Unary and Stream are the interceptors of the gRPC server, outermost first.
	Unary  []grpc.UnaryServerInterceptor
	Stream []grpc.StreamServerInterceptor
	// Logger gets panics that passed the interceptors. nil is slog.Default.
	Logger *slog.Logger
}

// Conn is a connection on which calls are function calls through the interceptors. Register the services on it as on
// the grpc.Server. It is both a grpc.ServiceRegistrar and a grpc.ClientConnInterface.
//
// Unlike a socket, it does not encode messages: the receiver shares lists and inner messages with the sender, who must
// not change a message after sending it. The gateway does not change its messages, and handlers return what they made.
// Deadlines, cancellation, metadata, header metadata and error details pass as usual; other values of the context do
// not. A unary call runs on the goroutine of its caller and returns when the handler does, so a handler must observe
// its context.
type Conn struct {
	streams inprocgrpc.Channel
	unary   grpc.UnaryServerInterceptor
	methods map[string]method // by full name
}

// method is a unary RPC with its service.
type method struct {
	service any
	handler grpc.MethodHandler
}

var (
	_ grpc.ClientConnInterface = (*Conn)(nil)
	_ grpc.ServiceRegistrar    = (*Conn)(nil)
)

// New returns a connection without services.
func New(config Config) *Conn {
	log := config.Logger
	if log == nil {
		log = slog.Default()
	}
	c := &Conn{
		unary:   ChainUnary(append([]grpc.UnaryServerInterceptor{guardUnary(log)}, config.Unary...)),
		methods: make(map[string]method),
	}
	stream := chainStream(append([]grpc.StreamServerInterceptor{guardStream(log)}, config.Stream...))
	c.streams.WithCloner(cloner{}).WithServerUnaryInterceptor(c.unary).WithServerStreamInterceptor(stream)
	return c
}

// RegisterService registers a service and its implementation.
func (c *Conn) RegisterService(desc *grpc.ServiceDesc, service any) {
	c.streams.RegisterService(desc, service)
	for _, m := range desc.Methods {
		c.methods["/"+desc.ServiceName+"/"+m.MethodName] = method{service: service, handler: m.Handler}
	}
}

// NewStream starts a streaming call.
func (c *Conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, name string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.streams.NewStream(ctx, desc, name, options...)
}

// Invoke makes a unary call. It supports the options grpc.Header and grpc.Trailer.
func (c *Conn) Invoke(ctx context.Context, name string, request, response any, options ...grpc.CallOption) error {
	m, known := c.methods[name]
	if !known {
		return c.streams.Invoke(ctx, name, request, response, options...) // it refuses unknown methods
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &transport{name: name, caller: ctx}
	result, err := m.handler(m.service, serverContext(ctx, t), func(into any) error { return share(into, request) }, c.unary)
	header, trailer := t.finish()
	for _, option := range options {
		switch o := option.(type) {
		case grpc.HeaderCallOption:
			*o.HeaderAddr = header
		case grpc.TrailerCallOption:
			*o.TrailerAddr = trailer
		}
	}
	if err != nil {
		return err
	}
	return share(response, result)
}

// serverContext is the context of the handler: the cancellation of the caller's context and a copy of its metadata.
func serverContext(ctx context.Context, t *transport) context.Context {
	md, _ := metadata.FromOutgoingContext(ctx)
	return grpc.NewContextWithServerTransportStream(metadata.NewIncomingContext(withoutValues{ctx}, md), t)
}

// Caller returns the caller's context of a call over this connection. It is nil for other calls.
func Caller(ctx context.Context) context.Context {
	if t, ok := grpc.ServerTransportStreamFromContext(ctx).(*transport); ok {
		return t.caller
	}
	return inprocgrpc.ClientContext(ctx) // of a stream
}

// withoutValues is a context that ends with another one but has none of its values.
type withoutValues struct{ context.Context }

// Value answers only package context, which looks up the cancellation above by a key of type *int. Otherwise each
// derived timeout would need a goroutine that waits for the end of this context.
func (c withoutValues) Value(key any) any {
	if _, internal := key.(*int); internal {
		return c.Context.Value(key)
	}
	return nil
}
