package access

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

// Rules are the access rules of all registered RPCs by full method name ("/package.Service/Method").
type Rules struct {
	methods map[string]methodAccess
}

type methodAccess struct {
	rule       *optionsv1.MethodRule
	deployment *DeploymentField
}

var reflectionServices = []string{"grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"}

// builtInRules are the rules of gRPC's own services. Their protos cannot carry our option. Health probes have no
// credentials. Reflection reveals no more than the public /openapi.json. channelz reveals who is connected.
func builtInRules() map[string]*optionsv1.MethodRule {
	probe := publicRule()
	probe.NoLog = true
	rules := map[string]*optionsv1.MethodRule{
		"grpc.health.v1.Health":     probe,
		"grpc.channelz.v1.Channelz": authenticatedRule(),
	}
	for _, service := range reflectionServices {
		rules[service] = publicRule()
	}
	return rules
}

func publicRule() *optionsv1.MethodRule {
	return &optionsv1.MethodRule{
		Permission: optionsv1.Permission_PERMISSION_PUBLIC,
		Maturity:   optionsv1.Maturity_MATURITY_STABLE,
	}
}

func authenticatedRule() *optionsv1.MethodRule {
	return &optionsv1.MethodRule{
		Permission: optionsv1.Permission_PERMISSION_AUTHENTICATED,
		Schemes:    []optionsv1.Scheme{optionsv1.Scheme_SCHEME_WEB_TOKEN, optionsv1.Scheme_SCHEME_JWT},
		Maturity:   optionsv1.Maturity_MATURITY_STABLE,
	}
}

// LoadRules reads the rules of the services of a [grpc.Server] (its GetServiceInfo). The error names every RPC without
// a complete rule. The server must not start with one.
func LoadRules(services map[string]grpc.ServiceInfo) (*Rules, error) {
	return loadRules(services, protoregistry.GlobalFiles)
}

func loadRules(services map[string]grpc.ServiceInfo, files protodesc.Resolver) (*Rules, error) {
	builtIn := builtInRules()
	rules := &Rules{methods: make(map[string]methodAccess)}
	var problems []error
	for _, service := range slices.Sorted(maps.Keys(services)) {
		for _, method := range services[service].Methods {
			name := "/" + service + "/" + method.Name
			if rule, ok := builtIn[service]; ok {
				rules.methods[name] = methodAccess{rule: rule}
				continue
			}
			access, err := readRule(files, service, method.Name)
			if err != nil {
				problems = append(problems, fmt.Errorf("RPC %s: %w", strings.TrimPrefix(name, "/"), err))
				continue
			}
			rules.methods[name] = access
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("access rules are incomplete: %w", errors.Join(problems...))
	}
	return rules, nil
}

// Rule returns the rule of an RPC by its full method name. It is nil for an unregistered RPC, and [Authorize] refuses
// nil.
func (r *Rules) Rule(fullMethod string) *optionsv1.MethodRule {
	return r.methods[fullMethod].rule
}

// DeploymentField returns the accessor of the deployment in the RPC's requests. It is nil when they name none.
func (r *Rules) DeploymentField(fullMethod string) *DeploymentField {
	return r.methods[fullMethod].deployment
}

// Methods lists the full names of all RPCs, sorted.
func (r *Rules) Methods() []string { return slices.Sorted(maps.Keys(r.methods)) }

func readRule(files protodesc.Resolver, service, method string) (methodAccess, error) {
	descriptor, err := files.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return methodAccess{}, fmt.Errorf("the service has neither a proto nor a built-in rule")
	}
	sd, ok := descriptor.(protoreflect.ServiceDescriptor)
	if !ok {
		return methodAccess{}, fmt.Errorf("%s is not a service", service)
	}
	md := sd.Methods().ByName(protoreflect.Name(method))
	if md == nil {
		return methodAccess{}, fmt.Errorf("the proto does not have this RPC")
	}
	if !proto.HasExtension(md.Options(), optionsv1.E_Rule) {
		return methodAccess{}, fmt.Errorf("the option (palisade.options.v1.rule) is missing")
	}
	rule, _ := proto.GetExtension(md.Options(), optionsv1.E_Rule).(*optionsv1.MethodRule)
	deployment, err := newDeploymentField(md.Input())
	if err != nil {
		return methodAccess{}, err
	}
	if deployment != nil {
		deployment.inBody = onlyInBody(md)
	}
	if err := checkRule(rule, md, deployment); err != nil {
		return methodAccess{}, err
	}
	return methodAccess{rule: rule, deployment: deployment}, nil
}

func checkRule(rule *optionsv1.MethodRule, md protoreflect.MethodDescriptor, deployment *DeploymentField) error {
	permission := rule.GetPermission()
	_, scoped := allowed[permission]
	scoped = scoped || permission == optionsv1.Permission_PERMISSION_JOIN
	public := permission == optionsv1.Permission_PERMISSION_PUBLIC
	switch {
	case !scoped && !public && permission != optionsv1.Permission_PERMISSION_AUTHENTICATED:
		return fmt.Errorf("rule.permission is %v: name what the caller must be allowed to do", permission)
	case !slices.Contains([]optionsv1.Maturity{
		optionsv1.Maturity_MATURITY_EXPERIMENTAL, optionsv1.Maturity_MATURITY_BETA, optionsv1.Maturity_MATURITY_STABLE,
	}, rule.GetMaturity()):
		return fmt.Errorf("rule.maturity is %v: it must be experimental, beta or stable", rule.GetMaturity())
	case rule.GetScope() != optionsv1.TokenScope_TOKEN_SCOPE_UNSPECIFIED &&
		(ruleScopes[rule.GetScope()] == "" || !slices.Contains(rule.GetSchemes(), optionsv1.Scheme_SCHEME_WEB_TOKEN)):
		return fmt.Errorf("rule.scope is %v: it must be a known scope, and the RPC must accept API tokens", rule.GetScope())
	case public && len(rule.GetSchemes()) > 0:
		return fmt.Errorf("rule.schemes lists %v, but the RPC is public", rule.GetSchemes())
	case !public && len(rule.GetSchemes()) == 0:
		return fmt.Errorf("rule.schemes is empty: name the credentials that are accepted")
	case scoped && deployment == nil && !rule.GetScanner():
		return fmt.Errorf("%v acts in a deployment, but %s has neither a deployment_id nor a deployment_slug", permission, md.Input().FullName())
	}
	for _, scheme := range rule.GetSchemes() {
		if scheme != optionsv1.Scheme_SCHEME_WEB_TOKEN && scheme != optionsv1.Scheme_SCHEME_JWT {
			return fmt.Errorf("rule.schemes lists %v, which is not a scheme", scheme)
		}
	}
	return nil
}
