package gateway

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

// route is one HTTP route of one RPC.
type route struct {
	fullMethod string
	method     protoreflect.MethodDescriptor
	rule       *optionsv1.MethodRule
	httpMethod string
	pattern    string // in grpc-gateway's form: every variable with its template
	pathFields []protoreflect.Name
	hasBody    bool
	upload     bool
	events     bool
	download   bool
}

func (rt *route) key() string { return rt.httpMethod + " " + rt.pattern }

// maturity is the value of X-Api-Maturity, in the contract's words. "" means that the rule has none.
func (rt *route) maturity() string {
	switch rt.rule.GetMaturity() {
	case optionsv1.Maturity_MATURITY_EXPERIMENTAL:
		return "Experimental"
	case optionsv1.Maturity_MATURITY_BETA:
		return "Beta"
	case optionsv1.Maturity_MATURITY_STABLE:
		return "Stable"
	}
	return ""
}

// descriptorRule reads the rule of an RPC from its options.
func descriptorRule(fullMethod string) *optionsv1.MethodRule {
	name := strings.ReplaceAll(strings.TrimPrefix(fullMethod, "/"), "/", ".")
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil
	}
	rule, _ := proto.GetExtension(descriptor.Options(), optionsv1.E_Rule).(*optionsv1.MethodRule)
	return rule
}

// routesOf reads the routes of a service from its descriptor.
func routesOf(service string, rules func(string) *optionsv1.MethodRule) ([]*route, error) {
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil, fmt.Errorf("no such service is linked into this binary: %w", err)
	}
	described, ok := descriptor.(protoreflect.ServiceDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is not a service", service)
	}
	var routes []*route
	for i := range described.Methods().Len() {
		method := described.Methods().Get(i)
		fullMethod := "/" + service + "/" + string(method.Name())
		rule := rules(fullMethod)
		if rule == nil {
			return nil, fmt.Errorf("%s has no rule", fullMethod)
		}
		if path := rule.GetUploadPath(); path != "" {
			routes = append(routes, newRoute(fullMethod, method, rule, http.MethodPost, path, true))
			routes[len(routes)-1].upload = true
		}
		if path := rule.GetEventsPath(); path != "" {
			routes = append(routes, newRoute(fullMethod, method, rule, http.MethodGet, path, false))
			routes[len(routes)-1].events = true
		}
		if path := rule.GetDownloadPath(); path != "" {
			routes = append(routes, newRoute(fullMethod, method, rule, http.MethodGet, path, false))
			routes[len(routes)-1].download = true
		}
		bindings, err := bindingsOf(method)
		if err != nil {
			return nil, err
		}
		for _, binding := range bindings {
			httpMethod, path := verbOf(binding)
			if httpMethod == "" {
				return nil, fmt.Errorf("%s: only get, put, post, delete and patch are served", fullMethod)
			}
			routes = append(routes, newRoute(fullMethod, method, rule, httpMethod, path, binding.GetBody() != ""))
		}
	}
	return routes, nil
}

func bindingsOf(method protoreflect.MethodDescriptor) ([]*annotations.HttpRule, error) {
	first, _ := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
	if first == nil {
		return nil, nil
	}
	bindings := append([]*annotations.HttpRule{first}, first.GetAdditionalBindings()...)
	for _, binding := range bindings {
		if body := binding.GetBody(); body != "" && body != "*" {
			return nil, fmt.Errorf("%s: the body must be \"*\", got %q", method.FullName(), body)
		}
	}
	return bindings, nil
}

func verbOf(binding *annotations.HttpRule) (httpMethod, path string) {
	switch pattern := binding.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		return http.MethodGet, pattern.Get
	case *annotations.HttpRule_Put:
		return http.MethodPut, pattern.Put
	case *annotations.HttpRule_Post:
		return http.MethodPost, pattern.Post
	case *annotations.HttpRule_Delete:
		return http.MethodDelete, pattern.Delete
	case *annotations.HttpRule_Patch:
		return http.MethodPatch, pattern.Patch
	}
	return "", ""
}

// variable matches a path variable with its optional template.
var variable = regexp.MustCompile(`\{([^=}]+)(?:=([^}]*))?\}`)

func newRoute(fullMethod string, method protoreflect.MethodDescriptor, rule *optionsv1.MethodRule, httpMethod, path string, hasBody bool) *route {
	rt := &route{fullMethod: fullMethod, method: method, rule: rule, httpMethod: httpMethod, hasBody: hasBody}
	for _, match := range variable.FindAllStringSubmatch(path, -1) {
		top, _, _ := strings.Cut(match[1], ".")
		rt.pathFields = append(rt.pathFields, protoreflect.Name(top))
	}
	rt.pattern = variable.ReplaceAllStringFunc(path, func(text string) string {
		if match := variable.FindStringSubmatch(text); match[2] == "" {
			return "{" + match[1] + "=*}"
		}
		return text
	})
	return rt
}

// sample is a path that the route should match.
func (rt *route) sample() string {
	return variable.ReplaceAllStringFunc(rt.pattern, func(text string) string {
		template := variable.FindStringSubmatch(text)[2]
		return strings.ReplaceAll(strings.ReplaceAll(template, "**", "1/2"), "*", "1")
	})
}

// probe finds the route of a request without serving it.
type probe struct {
	matched string // key of the route, "" when none
}

type probeKey struct{}

func probeFrom(ctx context.Context) *probe {
	p, _ := ctx.Value(probeKey{}).(*probe)
	return p
}

// match returns the key of the route that takes the request, or "". The request must come from forRouter.
func (g *gateway) match(r *http.Request, httpMethod string) string {
	p := &probe{}
	asked := r.WithContext(context.WithValue(r.Context(), probeKey{}, p))
	asked.Method = httpMethod
	g.mux.ServeHTTP(discard{}, asked)
	return p.matched
}

// allowed returns the methods of the request's path, in the form of the Allow header.
func (g *gateway) allowed(r *http.Request) string {
	var methods []string
	for _, httpMethod := range []string{http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut} {
		if g.match(r, httpMethod) == "" {
			continue
		}
		methods = append(methods, httpMethod)
		if httpMethod == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	return strings.Join(methods, ", ")
}

// checkReachable fails when a declared route does not get its own requests: it was not registered, or a later route
// shadows it.
func (g *gateway) checkReachable() error {
	keys := make([]string, 0, len(g.routes))
	for key := range g.routes {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		rt := g.routes[key]
		raw, err := http.NewRequest(rt.httpMethod, rt.sample(), http.NoBody) //nolint:noctx // never leaves this process
		if err != nil {
			return fmt.Errorf("%s: %s: %w", rt.fullMethod, key, err)
		}
		request, err := g.forRouter(raw)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", rt.fullMethod, key, err)
		}
		switch matched := g.match(request, rt.httpMethod); matched {
		case key:
		case "":
			return fmt.Errorf("%s: the route %s is not registered", rt.fullMethod, key)
		default:
			return fmt.Errorf("%s: requests of the route %s go to %s: declare that one first", rt.fullMethod, key, matched)
		}
	}
	return nil
}

// discard is the ResponseWriter of a probe.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
