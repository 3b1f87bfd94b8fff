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

// The limits for zero values in Config.
const (
	DefaultMaxBody           = 8 << 20 // bytes
	DefaultMaxUpload         = 1 << 30 // bytes, compressed; the upload limit of the contract
	DefaultTimeout           = 30 * time.Second
	DefaultUploadTimeout     = time.Hour
	DefaultUploadIdleTimeout = time.Minute
)

// Config configures New.
type Config struct {
	// Conn is the connection for RPCs, usually an inprocess.Conn. Its interceptors decode the bodies; see package
	// unread.
	Conn grpc.ClientConnInterface
	// Services are the exposed services; see Expose.
	Services []Service
	// Rules returns the rule of an RPC by its full method ("/package.Service/Method"), nil when it has none. When Rules
	// is nil, the rules are read from the descriptors.
	Rules func(fullMethod string) *optionsv1.MethodRule
	// Routes are additional GET and HEAD routes by exact path: health, OpenAPI, keys.
	Routes map[string]http.Handler
	// Sites serve all requests below their path, which begins and ends with a slash, by any method: the console, and
	// signing in to it.
	Sites map[string]http.Handler
	// Identify, when set, adds the caller to the context of a request for a service, if something other than its header
	// Authorization names one. It may refuse the request.
	Identify func(r *http.Request) (context.Context, error)
	// Spellings are second spellings of paths. A spelling of an operation that no service has is not served.
	Spellings []Spelling
	// Page, when set, returns the page for a GET or HEAD request of a browser, or nil. Pages come before the routes of
	// services.
	Page func(r *http.Request) http.Handler
	// MaxBody is the limit of a JSON body in bytes. MaxUpload is the limit of an upload in its transferred (compressed)
	// form.
	MaxBody, MaxUpload int64
	// Timeout is the limit of a request, from its header to the end of its processing. UploadTimeout is the limit of an
	// upload, and UploadIdleTimeout how long an upload may send nothing.
	Timeout, UploadTimeout, UploadIdleTimeout time.Duration
	// HSTS adds Strict-Transport-Security. Set it when callers use TLS, to this server or to a proxy in front.
	HSTS bool
	// UploadPace is the minimum speed of an upload. The zero rule allows any.
	UploadPace pace.Rule
	// UnknownFields, when set, is called with the number of field names in a body that the request message does not
	// have.
	UnknownFields func(fullMethod string, count int)
	// Logger gets panics and errors that passed no interceptor. nil is slog.Default.
	Logger *slog.Logger
}

// Service is one gRPC service and the registration of its routes.
type Service struct {
	// Name is the full name, as in grpc.ServiceDesc.
	Name string
	// Register adds the routes of the google.api.http annotations. It is nil for a service without routes.
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

// withDefaults fills in the limits and refuses an invalid configuration.
func (c Config) withDefaults() (Config, error) {
	if c.Conn == nil {
		return c, errors.New("gateway: Conn must be set")
	}
	for path := range c.Routes {
		if !strings.HasPrefix(path, "/") {
			return c, fmt.Errorf("gateway: the path of a route must begin with a slash, got %q", path)
		}
	}
	for path := range c.Sites {
		if len(path) < 3 || !strings.HasPrefix(path, "/") || !strings.HasSuffix(path, "/") {
			return c, fmt.Errorf("gateway: the path of a site must begin and end with a slash, got %q", path)
		}
	}
	if c.Identify == nil {
		c.Identify = func(r *http.Request) (context.Context, error) { return r.Context(), nil }
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
	if c.Page == nil {
		c.Page = func(*http.Request) http.Handler { return nil }
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
