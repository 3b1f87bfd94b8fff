package policies_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

func (s caller) migrate(t testing.TB, body string, status int, holds ...string) string {
	t.Helper()
	return s.want(t, status, s.Token, "POST", path(s.Tenant, "policies:migrate"), body, "", holds...)
}

func TestMigratePolicies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.board(t, 201, "POST", "", `{"name":"Web team","assigned_repos":["acme/web"]}`)
		preview := s.migrate(t, `{"dry_run":true}`, 200)
		apitest.Golden(t, "migrate_preview", preview)
		s.board(t, 200, "GET", "", "")
		s.migrate(t, `{"undo":true}`, 200, `"migrated":false`)
		first := s.migrate(t, `{}`, 200, `"migrated":true`, `"undo_until":`)
		if again := s.migrate(t, `{}`, 200); again != first {
			t.Errorf("a repeated call answers %s, the first %s", again, first)
		}
		client := policiesv1.NewPoliciesV2ServiceClient(s.Conn)
		same[*policiesv1.MigratePoliciesResponse](t, first)(client.MigratePolicies(s.context(t, ""), &policiesv1.MigratePoliciesRequest{DeploymentId: s.DeploymentID}))
		s.board(t, 410, "GET", "", "", `"code":"DEPLOYMENT_MIGRATED"`)
		user := s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleAdmin)
		s.want(t, 200, user, "GET", boardPath(s.Tenant, ""), "", "", "web-team")
		if got := s.migrate(t, `{"undo":true,"dry_run":true}`, 200); strings.Contains(got, "migrated_at") || !strings.Contains(got, `"migrated":false`) {
			t.Errorf("got %s", got)
		}
		s.migrate(t, `{"undo":true}`, 200, `"migrated":false`)
		s.board(t, 200, "GET", "", "", "web-team")

		s.migrate(t, `{}`, 200)
		err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Deployment.Update().SetPoliciesMigratedAt(store.Micros(time.Now().Add(-31 * 24 * time.Hour))).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.migrate(t, `{"undo":true}`, 400, "FAILED_PRECONDITION", "30 days")
		s.migrate(t, `{"undo":true,"dry_run":true}`, 400, "FAILED_PRECONDITION")
		for _, role := range []access.Role{access.RoleMember, access.RoleReadOnly} {
			s.want(t, 403, s.AddToken(t, s.Tenant, access.TokenSpec{Role: role}), "POST", path(s.Tenant, "policies:migrate"), `{}`, "")
		}
		// Another deployment is not concerned.
		globex := s.AddTenant(t, "globex")
		s.want(t, 200, globex.Token, "GET", boardPath(globex, ""), "", "")
		s.want(t, 404, globex.Token, "POST", path(s.Tenant, "policies:migrate"), `{}`, "")
	})
}

// TestMigratedFromTheStart: with the setting, new deployments begin migrated, and existing ones stay as they are.
func TestMigratedFromTheStart(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		server := apitest.Start(t, func(c *config.Config) { on(c); c.PoliciesMigrated = true })
		s := caller{Server: server, client: policiesv1.NewPoliciesV2ServiceClient(server.Conn)}
		s.board(t, 410, "GET", "", "", `"code":"DEPLOYMENT_MIGRATED"`)
		s.want(t, 410, s.Token, "GET", fmt.Sprintf("/api/v1/deployments/%d/policies", s.DeploymentID), "", "", "DEPLOYMENT_MIGRATED")
		s.want(t, 200, s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleAdmin), "GET", boardPath(s.Tenant, ""), "", "")
		s.Stop(t)
		again := apitest.Start(t, func(c *config.Config) { on(c); c.Data, c.PoliciesMigrated = s.Config.Data, false })
		caller{Server: again}.board(t, 410, "GET", "", "")
	})
}

var parameter = regexp.MustCompile(`\{[^}]*\}`)

// route returns the HTTP method and path of an operation.
func route(method protoreflect.MethodDescriptor) (verb, path string) {
	rule, _ := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
	for verb, path := range map[string]string{
		"GET": rule.GetGet(), "PUT": rule.GetPut(), "POST": rule.GetPost(), "DELETE": rule.GetDelete(),
	} {
		if path != "" {
			return verb, path
		}
	}
	return "", ""
}

// TestRetiredOperations is the matrix: every operation of the three groups, each kind of credential, migrated or not.
func TestRetiredOperations(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		user := s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleAdmin)
		operations := 0
		for _, migrated := range []bool{false, true} {
			if migrated {
				s.migrate(t, `{}`, 200)
			}
			for _, file := range []protoreflect.FileDescriptor{
				policiesv1.File_palisade_policies_v1_policies_proto, policiesv1.File_palisade_policies_v1_ruleboards_proto,
				policiesv1.File_palisade_policies_v1_policies_v2_proto,
			} {
				for i := range file.Services().Len() {
					methods := file.Services().Get(i).Methods()
					for j := range methods.Len() {
						operations++
						for kind, credential := range map[string]string{"token": s.Token, "user": user} {
							s.retired(t, methods.Get(j), kind, credential, migrated)
						}
					}
				}
			}
		}
		if operations != 2*(6+8+11) {
			t.Errorf("%d operations", operations)
		}
	})
}

// retired calls an operation with an empty request and requires 410 exactly where the contract has it.
func (s caller) retired(t testing.TB, method protoreflect.MethodDescriptor, kind, credential string, migrated bool) {
	t.Helper()
	if method.Name() == "MigratePolicies" {
		return
	}
	service := string(method.Parent().Name())
	want := migrated && (strings.HasPrefix(service, "Policies") && service != "PoliciesV2Service" && kind == "token" ||
		service == "RuleboardService" && kind == "token")
	request := dynamicpb.NewMessage(method.Input())
	request.Set(method.Input().Fields().ByName("deployment_id"), protoreflect.ValueOfInt64(s.DeploymentID))
	name := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	err := s.Conn.Invoke(s.Context(t, credential), name, request, dynamicpb.NewMessage(method.Output()))
	if got := strings.Contains(fmt.Sprint(status.Convert(err).Details()), "DEPLOYMENT_MIGRATED"); got != want {
		t.Errorf("%s of a %s, migrated %v: %v", name, kind, migrated, err)
	}
	verb, target := route(method)
	target = parameter.ReplaceAllString(strings.Replace(target, "{deployment_id}", fmt.Sprint(s.DeploymentID), 1), "1")
	if answer := s.Do(t, credential, verb, target, "{}"); (answer.Status == 410) != want || strings.Contains(answer.Body, `"code":"DEPLOYMENT_MIGRATED"`) != want {
		t.Errorf("%s %s of a %s, migrated %v: %d %s", verb, target, kind, migrated, answer.Status, answer.Body)
	}
	rule, _ := proto.GetExtension(method.Options(), optionsv1.E_Rule).(*optionsv1.MethodRule)
	if kind == "user" && strings.HasPrefix(service, "Policies") && rule.GetRetired() == optionsv1.Retired_RETIRED_ALL && err == nil {
		t.Errorf("%s accepts a user", name)
	}
}
