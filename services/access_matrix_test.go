package services_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/palisade/palisade/ent/user"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/apitest"
)

// verdict is the access decision for a credential: the status, and the code and the exact text of a refusal.
type verdict struct {
	http   int // 0: permitted
	grpc   codes.Code
	reason errorsv1.Reason
	text   string
}

var (
	pass          = verdict{}
	noCredential  = verdict{401, codes.Unauthenticated, errorsv1.Reason_REASON_UNAUTHENTICATED, "authentication is required: send the header Authorization: Bearer <API token or JSON Web Token>"}
	badCredential = verdict{401, codes.Unauthenticated, errorsv1.Reason_REASON_UNAUTHENTICATED, "the credential is not valid: it is malformed, unknown, expired or revoked"}
	noWebAPI      = verdict{404, codes.NotFound, errorsv1.Reason_REASON_SCOPE_MISSING, "not found: this requires an API token with the scope "}
	noDeployment  = verdict{404, codes.NotFound, errorsv1.Reason_REASON_NOT_FOUND, "deployment not found"}
	formerMember  = verdict{403, codes.PermissionDenied, errorsv1.Reason_REASON_PERMISSION_DENIED, "the creator of this API token is no longer a member of its deployment: an administrator " +
		"can hand the token over to the deployment (palisade token hand-over), or create another"}
	onlyJWT   = verdict{403, codes.PermissionDenied, errorsv1.Reason_REASON_SCHEME_NOT_ACCEPTED, "this operation accepts only a user's JSON Web Token"}
	onlyToken = verdict{403, codes.PermissionDenied, errorsv1.Reason_REASON_SCHEME_NOT_ACCEPTED, "this operation accepts only an API token"}
)

func wrongRole(role access.Role, allowed string) verdict {
	return verdict{403, codes.PermissionDenied, errorsv1.Reason_REASON_PERMISSION_DENIED, "the role " + string(role) + " may not do this: it requires one of " + allowed}
}

const (
	triagers  = "ORG_ROLE_ADMIN, ORG_ROLE_MEMBER, ORG_ROLE_IMPERSONATOR"
	uploaders = "ORG_ROLE_ADMIN, ORG_ROLE_MEMBER"
	admins    = "ORG_ROLE_ADMIN"
)

// matrix lists the verdict of each credential for each permission. It is written out, not computed, because it is the
// specification.
var matrix = map[optionsv1.Permission]map[string]verdict{
	optionsv1.Permission_PERMISSION_PUBLIC: {
		"none": pass, "garbage": pass, "expired": pass, "revoked": pass, "of a former member": pass, "other tenant": pass,
		"agent scope only": pass,
		"limited scopes":   pass, "read-only": pass, "member": pass, "admin": pass, "jwt read-only": pass,
		"jwt admin": pass, "jwt outsider": pass,
	},
	optionsv1.Permission_PERMISSION_AUTHENTICATED: {
		"none": noCredential, "garbage": badCredential, "expired": badCredential, "revoked": badCredential,
		"of a former member": formerMember, "other tenant": pass,
		"agent scope only": noWebAPI, "limited scopes": noWebAPI, "read-only": pass, "member": pass, "admin": pass,
		"jwt read-only": pass, "jwt admin": pass, "jwt outsider": pass,
	},
	optionsv1.Permission_PERMISSION_READ: {
		"none": noCredential, "garbage": badCredential, "expired": badCredential, "revoked": badCredential,
		"of a former member": formerMember, "other tenant": noDeployment,
		"agent scope only": noWebAPI, "limited scopes": noWebAPI, "read-only": pass, "member": pass, "admin": pass,
		"jwt read-only": pass, "jwt admin": pass, "jwt outsider": noDeployment,
	},
	optionsv1.Permission_PERMISSION_TRIAGE: {
		"none": noCredential, "garbage": badCredential, "expired": badCredential, "revoked": badCredential,
		"of a former member": formerMember, "other tenant": noDeployment,
		"agent scope only": noWebAPI, "limited scopes": noWebAPI, "read-only": wrongRole(access.RoleReadOnly, triagers),
		"member": pass,
		"admin":  pass, "jwt read-only": wrongRole(access.RoleReadOnly, triagers), "jwt admin": pass,
		"jwt outsider": noDeployment,
	},
	optionsv1.Permission_PERMISSION_UPLOAD: {
		"none": noCredential, "garbage": badCredential, "expired": badCredential, "revoked": badCredential,
		"of a former member": formerMember, "other tenant": noDeployment,
		"agent scope only": noWebAPI, "limited scopes": noWebAPI, "read-only": wrongRole(access.RoleReadOnly, uploaders),
		"member": pass,
		"admin":  pass, "jwt read-only": wrongRole(access.RoleReadOnly, uploaders), "jwt admin": pass,
		"jwt outsider": noDeployment,
	},
	optionsv1.Permission_PERMISSION_MANAGE: {
		"none": noCredential, "garbage": badCredential, "expired": badCredential, "revoked": badCredential,
		"of a former member": formerMember, "other tenant": noDeployment,
		"agent scope only": noWebAPI, "limited scopes": noWebAPI, "read-only": wrongRole(access.RoleReadOnly, admins),
		"member": wrongRole(access.RoleMember, admins), "admin": pass,
		"jwt read-only": wrongRole(access.RoleReadOnly, admins), "jwt admin": pass, "jwt outsider": noDeployment,
	},
	optionsv1.Permission_PERMISSION_MANAGE_TEAMS: {
		"none": noCredential, "garbage": badCredential, "expired": badCredential, "revoked": badCredential,
		"of a former member": formerMember, "other tenant": noDeployment,
		"agent scope only": noWebAPI, "limited scopes": noWebAPI, "read-only": wrongRole(access.RoleReadOnly, uploaders),
		"member": pass,
		"admin":  pass, "jwt read-only": wrongRole(access.RoleReadOnly, uploaders), "jwt admin": pass,
		"jwt outsider": noDeployment,
	},
	optionsv1.Permission_PERMISSION_JOIN: {
		"none": noCredential, "garbage": badCredential, "expired": badCredential, "revoked": badCredential,
		"of a former member": formerMember, "other tenant": noDeployment,
		"agent scope only": noWebAPI, "limited scopes": noWebAPI, "read-only": pass, "member": pass, "admin": pass,
		"jwt read-only": pass, "jwt admin": pass, "jwt outsider": noDeployment,
	},
}

// expected is the row's verdict, except for an operation that does not accept this kind of credential. A member of the
// deployment then gets that error before any other.
func expected(rpc operation, kind string, row map[string]verdict) verdict {
	rule, want := rpc.rule, row[kind]
	if rule.GetScanner() {
		want = scannerVerdict(rpc.descriptor, kind, want)
	}
	if want == noWebAPI && kind == "agent scope only" {
		want = scopeVerdict(rpc, access.ScopeAgent, "agent")
	} else if want == noWebAPI {
		want = scopeVerdict(rpc, "", "web-api, limited to click-to-fix")
	}
	if rule.GetPermission() == optionsv1.Permission_PERMISSION_PUBLIC || want.http == http.StatusUnauthorized || want == formerMember {
		return want
	}
	inside := want != noDeployment || rule.GetPermission() == optionsv1.Permission_PERMISSION_JOIN
	scheme, refusal := optionsv1.Scheme_SCHEME_WEB_TOKEN, onlyJWT
	if strings.HasPrefix(kind, "jwt ") {
		scheme, refusal = optionsv1.Scheme_SCHEME_JWT, onlyToken
	}
	if inside && !slices.Contains(rule.GetSchemes(), scheme) {
		return refusal
	}
	return want
}

// scannerVerdict applies the scanner protocol: a request that names no deployment acts in the credential's deployment.
func scannerVerdict(d protoreflect.MethodDescriptor, kind string, want verdict) verdict {
	named := d.Input().Fields().ByName("deployment_id") != nil || d.Input().Fields().ByName("deployment_slug") != nil
	if kind == "other tenant" && !named {
		return pass
	}
	return want
}

// TestAccessMatrix calls every RPC with every kind of credential, over both transports. It fails for an RPC whose
// permission has no row, and for a kind of credential that a row lacks.
func TestAccessMatrix(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		credentials := matrixCredentials(t, s)
		all := operations()
		if len(all) < 15 {
			t.Fatalf("found only %d RPCs: the descriptors are not linked in", len(all))
		}
		for _, rpc := range all {
			row, ok := matrix[rpc.rule.GetPermission()]
			if !ok {
				t.Errorf("%s: no row for %v", rpc.name, rpc.rule.GetPermission())
				continue
			}
			for kind, credential := range credentials {
				if _, ok := row[kind]; !ok {
					t.Errorf("%v: the matrix says nothing about %q", rpc.rule.GetPermission(), kind)
					continue
				}
				want := expected(rpc, kind, row)
				checkGRPC(t, s, rpc, kind, credential, want)
				if rpc.path != "" { // some server streams have no path
					checkHTTP(t, s, rpc, kind, credential, want)
				}
			}
		}
	})
}

func matrixCredentials(t *testing.T, s *apitest.Server) map[string]string {
	revoked := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "revoked"})
	tokens := access.NewTokens(s.Store)
	list, err := tokens.List(t.Context(), s.DeploymentID)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range list {
		if token.Name == "revoked" {
			if err := tokens.Revoke(t.Context(), s.DeploymentID, token.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	expired := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "expired", ExpiresAt: time.Now().Add(time.Hour)})
	s.ExpireToken(t, "expired")
	return map[string]string{
		"none":               "",
		"garbage":            "sgp_garbagegarbagegarbagegarbagegarbagegarbage",
		"expired":            expired,
		"revoked":            revoked,
		"other tenant":       s.AddTenant(t, "umbrella").Token,
		"of a former member": tokenOfFormerMember(t, s),
		"agent scope only":   s.AddToken(t, s.Tenant, access.TokenSpec{Scopes: []access.Scope{access.ScopeAgent}}),
		"limited scopes":     s.AddToken(t, s.Tenant, access.TokenSpec{Scopes: []access.Scope{access.ScopeWebAPI}, LimitedScopes: []string{"click-to-fix"}}),
		"read-only":          s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleReadOnly}),
		"member":             s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember}),
		"admin":              s.Token,
		"jwt read-only":      s.AddUser(t, s.Tenant, "reader@acme.test", access.RoleReadOnly),
		"jwt admin":          s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin),
		"jwt outsider":       s.AddUser(t, s.Tenant, "outsider@acme.test", ""),
	}
}

// tokenOfFormerMember creates a token of a person who is not a member of the deployment any more.
func tokenOfFormerMember(t *testing.T, s *apitest.Server) string {
	s.AddUser(t, s.Tenant, "former@acme.test", "")
	id := s.Store.Reader.User.Query().Where(user.Email("former@acme.test")).OnlyIDX(s.System(t))
	return s.AddToken(t, s.Tenant, access.TokenSpec{UserID: id})
}

// maturities are the words of the contract's section on versioning.
var maturities = map[optionsv1.Maturity]string{
	optionsv1.Maturity_MATURITY_EXPERIMENTAL: "Experimental", optionsv1.Maturity_MATURITY_BETA: "Beta", optionsv1.Maturity_MATURITY_STABLE: "Stable",
}

// operation is one RPC and its options.
type operation struct {
	name       string // /package.Service/Method
	rule       *optionsv1.MethodRule
	descriptor protoreflect.MethodDescriptor
	method     string // HTTP
	path       string
}

func operations() (list []operation) {
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			if !strings.HasPrefix(string(service.FullName()), "palisade.") {
				continue
			}
			for j := range service.Methods().Len() {
				list = append(list, newOperation(service.Methods().Get(j)))
			}
		}
		return true
	})
	return list
}

func newOperation(d protoreflect.MethodDescriptor) operation {
	rpc := operation{
		name:       "/" + string(d.Parent().FullName()) + "/" + string(d.Name()),
		rule:       proto.GetExtension(d.Options(), optionsv1.E_Rule).(*optionsv1.MethodRule),
		descriptor: d,
	}
	route := proto.GetExtension(d.Options(), annotations.E_Http).(*annotations.HttpRule)
	switch pattern := route.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		rpc.method, rpc.path = http.MethodGet, pattern.Get
	case *annotations.HttpRule_Put:
		rpc.method, rpc.path = http.MethodPut, pattern.Put
	case *annotations.HttpRule_Post:
		rpc.method, rpc.path = http.MethodPost, pattern.Post
	case *annotations.HttpRule_Patch:
		rpc.method, rpc.path = http.MethodPatch, pattern.Patch
	case *annotations.HttpRule_Delete:
		rpc.method, rpc.path = http.MethodDelete, pattern.Delete
	default:
		rpc.method, rpc.path = http.MethodPost, rpc.rule.GetUploadPath()
		if events := rpc.rule.GetEventsPath(); events != "" {
			rpc.method, rpc.path = http.MethodGet, events
		}
		if download := rpc.rule.GetDownloadPath(); download != "" {
			rpc.method, rpc.path = http.MethodGet, download
		}
	}
	return rpc
}

// parameter is a variable of a path.
var parameter = regexp.MustCompile(`\{([a-z_]+)(=\*\*)?\}`)

// request is an HTTP request that names this deployment, and otherwise objects that do not exist.
func (rpc operation) request(s *apitest.Server) (path, body string) {
	path = parameter.ReplaceAllStringFunc(rpc.path, func(variable string) string {
		switch name := parameter.FindStringSubmatch(variable)[1]; name {
		case "deployment_slug":
			return s.Slug
		case "deployment_id":
			return strconv.FormatInt(s.DeploymentID, 10)
		default:
			return "999999"
		}
	})
	if rpc.method == http.MethodGet || rpc.method == http.MethodDelete {
		return path, ""
	}
	if rpc.descriptor.Input().Fields().ByName("deployment_id") != nil && !strings.Contains(rpc.path, "{deployment_") {
		return path, fmt.Sprintf(`{"deploymentId":"%d"}`, s.DeploymentID)
	}
	if rpc.descriptor.Input().Fields().ByName("deployment_slug") != nil && !strings.Contains(rpc.path, "{deployment_") {
		return path, fmt.Sprintf(`{"deployment_slug":%q}`, s.Slug)
	}
	return path, "{}"
}

func checkGRPC(t *testing.T, s *apitest.Server, rpc operation, kind, credential string, want verdict) {
	t.Helper()
	got := status.Convert(call(s.Context(t, credential), s.Conn, rpc, about(rpc, s.Tenant)))
	if want == pass {
		if refused(got.Code(), got.Message()) {
			t.Errorf("gRPC %s with %s: %v %q, want to be let through", rpc.name, kind, got.Code(), got.Message())
		}
		return
	}
	if got.Code() != want.grpc || got.Message() != want.text || apierr.ReasonOf(got.Err()) != want.reason {
		t.Errorf("gRPC %s with %s: %v, want %v %v %q", rpc.name, kind, got, want.grpc, want.reason, want.text)
	}
}

func call(ctx context.Context, conn *grpc.ClientConn, rpc operation, request proto.Message) error {
	response := dynamicpb.NewMessage(rpc.descriptor.Output())
	shape := &grpc.StreamDesc{ClientStreams: rpc.descriptor.IsStreamingClient(), ServerStreams: rpc.descriptor.IsStreamingServer()}
	if !shape.ClientStreams && !shape.ServerStreams {
		return conn.Invoke(ctx, rpc.name, request, response)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // some streams of the server do not end by themselves
	stream, err := conn.NewStream(ctx, shape, rpc.name)
	if err != nil {
		return err
	}
	_ = stream.SendMsg(request) // the response has the error
	_ = stream.CloseSend()
	return stream.RecvMsg(response)
}

func checkHTTP(t *testing.T, s *apitest.Server, rpc operation, kind, credential string, want verdict) {
	t.Helper()
	path, body := rpc.request(s)
	answer := s.Do(t, credential, rpc.method, path, body)
	var got struct {
		Error, Message, Code, Status, RequestID string
		Details                                 []any
	}
	if answer.Status >= 300 && rpc.rule.GetScanner() {
		if err := json.Unmarshal([]byte(answer.Body), &got); err != nil || got.Error == "" || got.RequestID != "" || got.Message != "" {
			t.Errorf("HTTP %s with %s: error body %s, want the single key error", rpc.name, kind, answer.Body)
		}
		if want.http == http.StatusUnauthorized {
			want.text = "Not authorized"
		}
	} else if answer.Status >= 300 {
		if err := json.Unmarshal([]byte(answer.Body), &got); err != nil || got.Error != got.Message || got.RequestID == "" || got.Details == nil {
			t.Errorf("HTTP %s with %s: error body %s", rpc.name, kind, answer.Body)
		}
	}
	if want == pass {
		if answer.Status == 401 || answer.Status == 403 || answer.Status == 404 && (isNoWebAPI(got.Error) || got.Error == noDeployment.text) {
			t.Errorf("HTTP %s with %s: %d %s, want to be let through", rpc.name, kind, answer.Status, answer.Body)
		}
		return
	}
	if answer.Status != want.http || got.Error != want.text {
		t.Errorf("HTTP %s with %s: %d %q, want %d %q", rpc.name, kind, answer.Status, got.Error, want.http, want.text)
	}
	code := apierr.ReasonName(want.reason)
	if rpc.rule.GetScanner() && want.reason != errorsv1.Reason_REASON_SCOPE_MISSING {
		code = "" // scanners get codes of scope errors only
	}
	if got.Code != code {
		t.Errorf("HTTP %s with %s: code %q, want %v", rpc.name, kind, got.Code, want.reason)
	}
	if challenge := answer.Header.Get("WWW-Authenticate"); (answer.Status == 401) != (challenge != "") {
		t.Errorf("HTTP %s with %s: %d with WWW-Authenticate %q", rpc.name, kind, answer.Status, challenge)
	}
	if maturity := answer.Header.Get("X-Api-Maturity"); maturity != maturities[rpc.rule.GetMaturity()] {
		t.Errorf("HTTP %s: X-Api-Maturity %q", rpc.name, maturity)
	}
}

func refused(code codes.Code, text string) bool {
	switch code {
	case codes.Unauthenticated, codes.PermissionDenied, codes.Internal:
		return true
	case codes.Unimplemented:
		return true
	case codes.NotFound:
		return isNoWebAPI(text) || text == noDeployment.text
	}
	return false
}
