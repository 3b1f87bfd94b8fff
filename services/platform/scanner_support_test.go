package platform_test

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// The other requests of a scanner, with the scope agent only.
func TestScannerSupport(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		agent := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "pipeline", Scopes: []access.Scope{access.ScopeAgent}, Role: access.RoleMember})
		client := platformv1.NewScannerSupportServiceClient(s.Conn)

		identity := s.Do(t, agent, http.MethodGet, "/api/agent/identity", "").Body
		apitest.Golden(t, "scanner_identity", identity)
		answer, err := client.GetIdentity(s.Context(t, agent), &platformv1.GetIdentityRequest{})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, answer, identity)
		if body := s.Do(t, s.AddUser(t, s.Tenant, "dev@acme.test", access.RoleReadOnly), http.MethodGet, "/api/agent/identity", "").Body; body != `{"identity":"dev@acme.test"}` {
			t.Errorf("identity of a user: %s", body)
		}

		version := s.Do(t, "", http.MethodGet, "/api/check-version?version=1.97.0", "").Body
		apitest.Golden(t, "scanner_check_version", version)
		checked, err := client.CheckVersion(t.Context(), &platformv1.CheckVersionRequest{})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, checked, version)

		// The token's deployment: numbers are numbers, and nothing is null (scan protocol, section 9).
		if body := s.Do(t, agent, http.MethodGet, "/api/agent/deployments/current", "").Body; body != `{"deployment":{"id":1,"name":"Acme Corp"}}` {
			t.Errorf("current deployment: %s", body)
		}

		for _, path := range []string{"/api/agent/identity", "/api/agent/deployments/current", "/api/agent/deployments/deepbinary/manylinux"} {
			if answer := s.Do(t, "", http.MethodGet, path, ""); answer.Status != http.StatusUnauthorized || answer.Body != `{"error":"Not authorized"}` {
				t.Errorf("%s without a credential: %d %s", path, answer.Status, answer.Body)
			}
		}
	})
}

// The deep engine is rejected on all platforms, with a text that says what to do instead.
func TestDeepEngine(t *testing.T) {
	s := apitest.Start(t, nil)
	agent := s.AddToken(t, s.Tenant, access.TokenSpec{Scopes: []access.Scope{access.ScopeAgent}})
	for _, platform := range []string{"manylinux", "linux-arm64", "osx-arm64", "osx-x86_64", "win-x86_64"} {
		answer := s.Do(t, agent, http.MethodGet, "/api/agent/deployments/deepbinary/"+platform+"?version=1.97.0", "")
		if answer.Status != http.StatusForbidden || !strings.Contains(answer.Body, "--oss-only") || !strings.HasPrefix(answer.Body, `{"error":"`) {
			t.Errorf("%s: %d %s", platform, answer.Status, answer.Body)
		}
	}
	if answer := s.Do(t, agent, http.MethodGet, "/api/agent/deployments/deepbinary/7", ""); answer.Status != http.StatusBadRequest {
		t.Errorf("no platform: %d %s", answer.Status, answer.Body)
	}
	_, err := platformv1.NewScannerSupportServiceClient(s.Conn).GetDeepEngine(s.Context(t, agent), &platformv1.GetDeepEngineRequest{Platform: "manylinux"})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("gRPC: %v", err)
	}
}
