package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/etag"
)

// gateway is the handler behind the middleware.
type gateway struct {
	config Config
	mux    *runtime.ServeMux
	routes map[string]*route // by HTTP method, a space and the pattern in grpc-gateway's form
	json   *marshaler
	log    *slog.Logger
	// streamHeaders are the canonical names of the headers that the handlers of streams read. They never become
	// metadata.
	streamHeaders map[string]bool
	// spellings are the second spellings of the routes.
	spellings []Spelling
}

// New returns the handler of the HTTP port. It fails when an RPC has no rule, when an RPC with an upload path has the
// wrong shape, and when another route shadows a route.
func New(config Config) (http.Handler, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	g := &gateway{config: config, routes: map[string]*route{}, log: config.Logger, streamHeaders: map[string]bool{}}
	g.json = &marshaler{unknown: config.UnknownFields}
	g.mux = runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, g.json),
		// canonicalPath leaves no escaped slash, so this mode unescapes everything. The mode for all characters would
		// search each path with a regexp.
		runtime.WithUnescapingMode(runtime.UnescapingModeAllExceptSlash),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithDisableHTTPMethodOverride(),
		runtime.WithWriteContentLength(),
		runtime.WithIncomingHeaderMatcher(incomingHeader),
		runtime.WithOutgoingHeaderMatcher(outgoingHeader),
		runtime.WithOutgoingTrailerMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithForwardResponseOption(writeSuccessCode),
		runtime.WithForwardResponseRewriter(withoutKnown),
		runtime.WithErrorHandler(g.handleError),
		runtime.WithRoutingErrorHandler(g.handleRoutingError),
		runtime.WithMiddlewares(g.perCall),
	)
	for _, service := range config.Services {
		if err := g.addService(service); err != nil {
			return nil, fmt.Errorf("gateway: service %s: %w", service.Name, err)
		}
	}
	g.spellings = g.spelled(config.Spellings)
	if err := g.checkReachable(); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return wrap(http.HandlerFunc(g.dispatch), config.HSTS, config.Logger)
}

func (g *gateway) addService(service Service) error {
	routes, err := routesOf(service.Name, g.config.Rules)
	if err != nil {
		return err
	}
	if service.Register != nil {
		if err := service.Register(context.Background(), g.mux, g.config.Conn); err != nil {
			return err
		}
	}
	for _, rt := range routes {
		if other := g.routes[rt.key()]; other != nil {
			return fmt.Errorf("%s has the route of %s: %s %s", rt.fullMethod, other.fullMethod, rt.httpMethod, rt.pattern)
		}
		if makeHandler := g.streamHandler(rt); makeHandler != nil {
			handler, err := makeHandler(rt)
			if err != nil {
				return fmt.Errorf("%s: %w", rt.fullMethod, err)
			}
			if err := g.mux.HandlePath(rt.httpMethod, rt.pattern, handler); err != nil {
				return fmt.Errorf("%s: %w", rt.fullMethod, err)
			}
		}
		g.routes[rt.key()] = rt
	}
	return nil
}

// streamHandler returns what makes the handler of a streaming RPC; nil for other RPCs, whose handlers are generated.
func (g *gateway) streamHandler(rt *route) func(*route) (runtime.HandlerFunc, error) {
	switch {
	case rt.upload:
		return g.uploadHandler
	case rt.events:
		return g.eventsHandler
	case rt.download:
		return g.downloadHandler
	}
	return nil
}

// dispatch serves the fixed routes. It passes the rest to the router, with a path in canonical escaping.
func (g *gateway) dispatch(w http.ResponseWriter, r *http.Request) {
	g.setDeadlines(w, r)
	if fixed, ok := g.config.Routes[r.URL.Path]; ok {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			g.methodNotAllowed(w, r, "GET, HEAD")
			return
		}
		fixed.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		if page := g.config.Page(r); page != nil {
			page.ServeHTTP(w, r)
			return
		}
	}
	if site := g.site(r.URL.Path); site != nil {
		site.ServeHTTP(w, r)
		return
	}
	ctx, err := g.config.Identify(r)
	if err != nil {
		g.writeError(w, r, err)
		return
	}
	routed, err := g.forRouter(r.WithContext(ctx))
	if err != nil {
		g.writeError(w, r, err)
		return
	}
	g.mux.ServeHTTP(w, routed)
}

// site returns the site of a path, or nil.
func (g *gateway) site(path string) http.Handler {
	if len(path) < 2 {
		return nil
	}
	end := strings.IndexByte(path[1:], '/')
	if end < 0 {
		return nil
	}
	return g.config.Sites[path[:end+2]]
}

// setDeadlines limits how long a client may take to send the body and to read the response. It applies to every route:
// net/http also waits for a body that no handler reads, to find the next request after it.
func (g *gateway) setDeadlines(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	// Some ResponseWriters (in tests) have no deadlines; net/http's do.
	_ = control.SetWriteDeadline(time.Now().Add(g.config.Timeout + writeGrace))
	if r.ContentLength != 0 {
		_ = control.SetReadDeadline(time.Now().Add(g.config.Timeout))
	}
}

func (g *gateway) methodNotAllowed(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	g.writeError(w, r, apierr.MethodNotAllowed(r.Method, allowed))
}

// forwarded are the request headers that become gRPC metadata. All others are dropped: a client must not be able to set
// metadata that the server trusts.
var forwarded = map[string]string{
	"Authorization": "authorization",
	"X-Request-Id":  "x-request-id",
	"Traceparent":   "traceparent",
	"Tracestate":    "tracestate",
	"User-Agent":    "user-agent",
	"If-Match":      "if-match",
	"If-None-Match": etag.IfNoneMatch,
	"Prefer":        "prefer",
}

func incomingHeader(name string) (string, bool) {
	key, ok := forwarded[name]
	// The router forwards Authorization itself.
	return key, ok && name != "Authorization"
}

// outgoingHeader lists the response headers that handlers may set through gRPC header metadata.
func outgoingHeader(name string) (string, bool) {
	switch strings.ToLower(name) {
	case "etag":
		return "ETag", true
	case "x-change-id":
		return "X-Change-Id", true
	case "x-warning":
		return "X-Warning", true
	case "location":
		return "Location", true
	case "preference-applied":
		return "Preference-Applied", true
	}
	return "", false
}

// forRouter copies the request for grpc-gateway's router. HEAD becomes GET (net/http drops the body). The path is
// always in RawPath, because the router unescapes RawPath once, but a Path without it twice. Only permitted headers
// remain. Content-Type is not among them: every body is read as JSON, since many clients send a wrong type or none.
func (g *gateway) forRouter(r *http.Request) (*http.Request, error) {
	path, err := canonicalPath(r.URL)
	if err != nil {
		return nil, err
	}
	routed := new(http.Request)
	*routed = *r
	target := *r.URL
	target.RawPath = g.inContract(path)
	routed.URL = &target
	routed.Host = "" // it would become metadata
	if r.Method == http.MethodHead {
		routed = routed.WithContext(context.WithValue(r.Context(), headKey{}, true))
		routed.Method = http.MethodGet
	}
	routed.Header = make(http.Header, len(forwarded)+1)
	for name := range forwarded {
		if values := r.Header[name]; len(values) > 0 {
			routed.Header[name] = values[:1]
		}
	}
	// Keep all values, so that the interceptors can refuse more than one: a proxy may have checked a value other than
	// the first.
	if values := r.Header["Authorization"]; len(values) > 1 {
		routed.Header["Authorization"] = values
	}
	if values := r.Header["If-None-Match"]; len(values) > 1 { // a list, which may span several lines
		routed.Header["If-None-Match"] = []string{strings.Join(values, ", ")}
	}
	for _, name := range rangeHeaders {
		if values := r.Header[name]; len(values) > 0 {
			routed.Header[name] = values[:1]
		}
	}
	for name := range g.streamHeaders {
		if values := r.Header[name]; len(values) > 0 && name != "Authorization" { // all of its values are there already
			routed.Header[name] = values[:1]
		}
	}
	if values := r.Header["Content-Encoding"]; len(values) > 0 {
		routed.Header["Content-Encoding"] = values
	}
	return routed, nil
}

// noBody stands for a response that the caller already has; it has no body.
type noBody struct{}

// withoutKnown suppresses a response that the caller already has.
func withoutKnown(ctx context.Context, message proto.Message) (any, error) {
	c := callFrom(ctx)
	switch {
	case c == nil:
		return message, nil
	case c.notModified:
		return noBody{}, nil
	}
	return answer{message: message, call: c}, nil
}

// writeSuccessCode sets the status code that the RPC's rule declares, or 304 when the caller already has the response.
func writeSuccessCode(ctx context.Context, w http.ResponseWriter, _ proto.Message) error {
	c := callFrom(ctx)
	if c == nil {
		return nil
	}
	c.quota.WriteHeader(w.Header())
	switch code := int(c.route.rule.GetSuccessCode()); code {
	case 0, http.StatusOK:
		if c.route.httpMethod == http.MethodGet && etag.Matches(c.ifNoneMatch, w.Header().Get("ETag")) {
			c.notModified = true
			w.Header().Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
		}
	case http.StatusNoContent:
		w.Header().Del("Content-Type")
		w.WriteHeader(code)
	default:
		w.WriteHeader(code)
	}
	return nil
}
