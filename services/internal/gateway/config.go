package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/pace"
)

// Limits that hold where Config leaves them 0.
const (
	DefaultMaxBody           = 8 << 20 // bytes
	DefaultMaxUpload         = 1 << 30 // bytes, compressed; the contract's upload limit
	DefaultTimeout           = 30 * time.Second
	DefaultUploadTimeout     = time.Hour
	DefaultUploadIdleTimeout = time.Minute
)

// Config is what New needs.
type Config struct {
	// Conn is the connection that RPCs are called on, usually an inprocess.Conn. Its interceptors decode the bodies; see
	// package unread.
	Conn grpc.ClientConnInterface
	// Services are the services to serve; Expose makes one.
	Services []Service
	// Rules returns the rule of an RPC by its full method ("/package.Service/Method"), nil when it has none. Nil
	// reads the rules from the descriptors.
	Rules func(fullMethod string) *optionsv1.MethodRule
	// Routes are further GET and HEAD routes by exact path: health, OpenAPI, keys.
	Routes map[string]http.Handler
	// MaxBody is the limit of a JSON body in bytes, MaxUpload that of an upload as it is sent (compressed).
	MaxBody, MaxUpload int64
	// Timeout is the limit of a request, from its header to the end of its body's processing; UploadTimeout is
	// that of an upload, and UploadIdleTimeout how long an upload may send nothing.
	Timeout, UploadTimeout, UploadIdleTimeout time.Duration
	// HSTS says that callers come by TLS, here or up to a proxy in front: answers then carry Strict-Transport-Security.
	HSTS bool
	// UploadPace is how fast the bytes of an upload must come; the zero rule allows any rate.
	UploadPace pace.Rule
	// UnknownFields, when set, is told how many names of a body the request message of an RPC does not have.
	UnknownFields func(fullMethod string, count int)
	// Logger gets panics and errors that no interceptor has seen. Nil is slog.Default.
	Logger *slog.Logger
}

// Service is one gRPC service and how its routes are registered.
type Service struct {
	// Name is the full name, as in grpc.ServiceDesc.
	Name string
	// Register adds the routes of the google.api.http annotations; nil for a service that has none.
	Register func(ctx context.Context, mux *runtime.ServeMux, conn grpc.ClientConnInterface) error
}

// Expose makes a Service of the generated constructors:
//
//	gateway.Expose(projectsv1.ProjectsService_ServiceDesc.ServiceName,
//		projectsv1.NewProjectsServiceClient, projectsv1.RegisterProjectsServiceHandlerClient)
func Expose[C any](
	name string,
	newClient func(grpc.ClientConnInterface) C,
	register func(context.Context, *runtime.ServeMux, C) error,
) Service {
	return Service{
		Name: name,
		Register: func(ctx context.Context, mux *runtime.ServeMux, conn grpc.ClientConnInterface) error {
			return register(ctx, mux, newClient(conn))
		},
	}
}

// withDefaults fills in the limits and refuses what cannot work.
func (c Config) withDefaults() (Config, error) {
	if c.Conn == nil {
		return c, errors.New("gateway: Conn must be set")
	}
	for path := range c.Routes {
		if !strings.HasPrefix(path, "/") {
			return c, fmt.Errorf("gateway: the path of a route must begin with a slash, got %q", path)
		}
	}
	if c.Rules == nil {
		c.Rules = descriptorRule
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.UnknownFields == nil {
		c.UnknownFields = func(string, int) {}
	}
	c.MaxBody = orDefault(c.MaxBody, DefaultMaxBody)
	c.MaxUpload = orDefault(c.MaxUpload, DefaultMaxUpload)
	c.Timeout = orDefault(c.Timeout, DefaultTimeout)
	c.UploadTimeout = orDefault(c.UploadTimeout, DefaultUploadTimeout)
	c.UploadIdleTimeout = orDefault(c.UploadIdleTimeout, DefaultUploadIdleTimeout)
	return c, nil
}

func orDefault[N int | int64 | time.Duration](value, fallback N) N {
	if value <= 0 {
		return fallback
	}
	return value
}
