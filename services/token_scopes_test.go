package services_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/apitest"
)

// reachedBy lists all RPCs that tokens of a scope may call, besides public ones. It is written out, so that a new RPC
// must be added here. A token with the scope agent is in every pipeline, so none of its RPCs may read findings, change
// settings or create tokens.
var reachedBy = map[access.Scope][]string{
	access.ScopeAgent: {
		"/palisade.deployments.v1.DeploymentService/GetCurrentDeployment",
		"/palisade.platform.v1.ScannerSupportService/GetDeepEngine",
		"/palisade.platform.v1.ScannerSupportService/GetIdentity",
		"/palisade.rules.v1.ScannerRulesService/GetAutoRules",
		"/palisade.rules.v1.ScannerRulesService/GetRuleConfig",
		"/palisade.rules.v1.ScannerRulesService/GetRulePack",
		"/palisade.rules.v1.ScannerRulesService/GetRuleSnippet",
		"/palisade.scans.v1.ReportUploadsService/UploadReport",
		"/palisade.scans.v1.ScannerProtocolService/CompleteScan",
		"/palisade.scans.v1.ScannerProtocolService/CreateScan",
		"/palisade.scans.v1.ScannerProtocolService/CreateScanV2",
		"/palisade.scans.v1.ScannerProtocolService/GetLegacyScanConfig",
		"/palisade.scans.v1.ScannerProtocolService/GetScanConfig",
		"/palisade.scans.v1.ScannerProtocolService/ReportScanError",
		"/palisade.scans.v1.ScannerProtocolService/UploadScanResults",
	},
	access.ScopeWorkflowTasks: {
		"/palisade.workflows.v1.WorkflowTasksService/ClaimWorkflowTask",
		"/palisade.workflows.v1.WorkflowTasksService/CompleteWorkflowTask",
		"/palisade.workflows.v1.WorkflowTasksService/HeartbeatWorkflowTask",
		"/palisade.workflows.v1.WorkflowTasksService/PutWorkflowArtifact",
	},
	access.ScopeInstallChecks: {
		"/palisade.supplychain.v1.MalwareFirewallService/CheckPackageInstalls",
	},
}

// scopeVerdict is the verdict for a token with one scope, or with no relevant one, and without the Web API. has is what
// the refusal says about the token.
func scopeVerdict(rpc operation, scope access.Scope, has string) verdict {
	if slices.Contains(reachedBy[scope], rpc.name) {
		return pass
	}
	want, required := noWebAPI, "web-api"
	for other, list := range reachedBy {
		if slices.Contains(list, rpc.name) {
			required = string(other) + " or web-api"
		}
	}
	if strings.Contains(has, "limited to") {
		required += ", without limited scopes"
	}
	want.text += required + "; this token has " + has
	return want
}

func isNoWebAPI(text string) bool { return strings.HasPrefix(text, noWebAPI.text) }

// TestScopesOfTokens calls every RPC with a token of every scope and an administrator's role. The permitted RPCs must
// be exactly the list above.
func TestScopesOfTokens(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for scope, want := range reachedBy {
			token := s.AddToken(t, s.Tenant, access.TokenSpec{Scopes: []access.Scope{scope}, Role: access.RoleAdmin})
			var got []string
			for _, rpc := range operations() {
				if rpc.rule.GetPermission() != optionsv1.Permission_PERMISSION_PUBLIC && reaches(t, s, rpc, token) {
					got = append(got, rpc.name)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("a token with the scope %s reaches\n%s\nwant\n%s", scope, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		for _, scope := range access.Scopes {
			if _, listed := reachedBy[scope]; !listed && scope != access.ScopeWebAPI {
				t.Errorf("nothing says what the scope %s opens", scope)
			}
		}
	})
}

// TestScopeErrorsRevealNothing calls every RPC with a token of every scope, about its own deployment, another one and
// one that does not exist. The refusal names the scope. The two deployments that are not the token's look the same.
func TestScopeErrorsRevealNothing(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		other := s.AddTenant(t, "umbrella")
		nobody := apitest.Tenant{Slug: "nobody", DeploymentID: 999_999}
		for scope := range reachedBy {
			token := s.AddToken(t, s.Tenant, access.TokenSpec{Scopes: []access.Scope{scope}})
			for _, rpc := range operations() {
				want := scopeVerdict(rpc, scope, string(scope))
				if want == pass || rpc.rule.GetPermission() == optionsv1.Permission_PERMISSION_PUBLIC ||
					!slices.Contains(rpc.rule.GetSchemes(), optionsv1.Scheme_SCHEME_WEB_TOKEN) {
					continue
				}
				for _, tenant := range []apitest.Tenant{s.Tenant, other, nobody} {
					want := want
					if tenant != s.Tenant && namesDeployment(rpc) {
						want = noDeployment
					}
					got := status.Convert(call(s.Context(t, token), s.Conn, rpc, about(rpc, tenant)))
					if got.Code() != want.grpc || got.Message() != want.text || apierr.ReasonOf(got.Err()) != want.reason {
						t.Errorf("%s about %s with the scope %s: %v, want %q", rpc.name, tenant.Slug, scope, got, want.text)
					}
				}
			}
		}
	})
}

func namesDeployment(rpc operation) bool {
	fields := rpc.descriptor.Input().Fields()
	return fields.ByName("deployment_slug") != nil || fields.ByName("deployment_id") != nil
}

// about is a request that names a deployment and nothing else.
func about(rpc operation, tenant apitest.Tenant) *dynamicpb.Message {
	request := dynamicpb.NewMessage(rpc.descriptor.Input())
	fields := rpc.descriptor.Input().Fields()
	if f := fields.ByName("deployment_slug"); f != nil {
		request.Set(f, protoreflect.ValueOfString(tenant.Slug))
	}
	if f := fields.ByName("deployment_id"); f != nil {
		request.Set(f, protoreflect.ValueOfInt64(tenant.DeploymentID))
	}
	return request
}

// reaches reports whether a call passes the access rules, regardless of its result.
func reaches(t *testing.T, s *apitest.Server, rpc operation, token string) bool {
	t.Helper()
	got := status.Convert(call(s.Context(t, token), s.Conn, rpc, about(rpc, s.Tenant)))
	switch got.Code() {
	case codes.Unauthenticated, codes.PermissionDenied:
		return false
	case codes.NotFound:
		return !isNoWebAPI(got.Message())
	}
	return true
}
