package policies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// caller sends requests about the policies of the first deployment, which has a project, a tag and a rule.
type caller struct {
	*apitest.Server
	client policiesv1.PoliciesV2ServiceClient
}

func each(t *testing.T, test func(t *testing.T, s caller)) {
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{Server: server, client: policiesv1.NewPoliciesV2ServiceClient(server.Conn)}
		s.seed(t, server.Tenant)
		test(t, s)
	})
}

func (s caller) seed(t testing.TB, of apitest.Tenant) {
	t.Helper()
	err := s.Store.Write(tenant.NewContext(t.Context(), of.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		name := of.Slug + "/web"
		if err := tx.Project.Create().SetName(name).SetNameKey(name).SetCreatedAt(store.Now()).Exec(ctx); err != nil {
			return err
		}
		if err := tx.Tag.Create().SetName(of.Slug + "-pci").SetCreatedAt(store.Now()).Exec(ctx); err != nil {
			return err
		}
		return tx.Rule.Create().SetTool("gosec").SetName(of.Slug + ".G401").SetCategory("security").SetConfidence("high").SetContent([]byte{}).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func path(of apitest.Tenant, more string) string {
	return fmt.Sprintf("/api/policies/v2/deployments/%d/%s", of.DeploymentID, more)
}

func (s caller) remediation() string { return path(s.Tenant, "remediation-policies") }

// version returns the state_version of an answer.
func version(t testing.TB, body string) string {
	t.Helper()
	var answer struct {
		StateVersion string `json:"state_version"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || !strings.HasPrefix(answer.StateVersion, "sha256:") {
		t.Fatalf("%s: %v", body, err)
	}
	return answer.StateVersion
}

// current returns the current state_version.
func (s caller) current(t testing.TB) string { return version(t, s.Get(t, s.remediation())) }

// put applies policies, a JSON list, to the current state and requires a status.
func (s caller) put(t testing.TB, policies string, status int, holds ...string) string {
	t.Helper()
	return s.want(t, status, s.Token, http.MethodPut, s.remediation(), `{"bundle":{"policies":`+policies+`}}`, s.current(t), holds...)
}

// dry performs a dry run.
func (s caller) dry(t testing.TB, policies string) string {
	t.Helper()
	return s.want(t, 200, s.Token, http.MethodPost, s.remediation()+":dryRun", `{"bundle":{"policies":`+policies+`}}`, "")
}

// want sends a request and requires a status and texts in the answer.
func (s caller) want(t testing.TB, status int, token, method, path, body, ifMatch string, holds ...string) string {
	t.Helper()
	var header []string
	if ifMatch != "" {
		header = []string{"If-Match", ifMatch}
	}
	answer := s.Body(t, token, method, path, body, status, header...)
	for _, text := range holds {
		if !strings.Contains(answer, text) {
			t.Errorf("%s %s %s: %s does not say %s", method, path, body, answer, text)
		}
	}
	return answer
}

// context is the context of a gRPC call with a credential and, if not empty, the metadata if-match.
func (s caller) context(t testing.TB, ifMatch string) context.Context {
	ctx := s.Context(t, s.Token)
	if ifMatch != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "if-match", ifMatch)
	}
	return ctx
}

// same requires that gRPC gives the same answer as HTTP.
func same[T proto.Message](t testing.TB, body string) func(T, error) {
	t.Helper()
	return func(answer T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, answer, body)
	}
}

const (
	critical = `{"slug":"no-critical","name":"No critical findings","description":"Agreed in March.","active":true,
		"filters":{"mode":"all","conditions":[
			{"type":"severity","values":["Critical","high","critical"]},
			{"type":"project","values":["acme/web"],"mode":"include"},
			{"type":"autotriage_verdict","values":["false_positive"],"mode":"exclude"}]},
		"actions":[{"type":"block","config":{"reason":"Ask #appsec"}},{"type":"comment"}]}`
	secrets = `{"name":"No Secrets, ever","active":true,
		"filters":{"mode":"any","conditions":[{"type":"product","values":["secrets"]},{"type":"rule","values":["acme.G401"]},{"type":"project_tag","values":["acme-pci"]}]},
		"actions":[{"type":"block"}]}`
)
