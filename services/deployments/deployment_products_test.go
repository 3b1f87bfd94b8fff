package deployments_test

import (
	"net/http"
	"strings"
	"testing"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

func TestProducts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		other := s.AddTenant(t, "umbrella")
		client := deploymentsv1.NewDeploymentProductsServiceClient(s.Conn)
		ctx := s.Context(t, s.Token)
		path := s.of("/products")

		defaults := s.admin(t, http.MethodGet, path, "")
		apitest.Golden(t, "products_default", defaults)
		same(t, defaults)(client.GetDeploymentProductConfig(ctx, &deploymentsv1.GetDeploymentProductConfigRequest{DeploymentId: s.DeploymentID}))

		put := s.admin(t, http.MethodPut, path, `{"ai":{"enabled":true,"allowed_providers":["mistral"],"send_patch_emails":true},
			"sast":{"enabled":true,"ai_autofix":{"enabled":true,"min_confidence":0.5},"triagePermission":"TRIAGE_PERMISSION_REQUEST"},
			"approversTag":"pci","hasDeveloperTriage":true}`)
		apitest.Golden(t, "products_put", put)
		if got := s.admin(t, http.MethodGet, path, ""); got != put {
			t.Errorf("afterwards it is %s, want %s", got, put)
		}
		same(t, put)(client.PutDeploymentProductConfig(ctx, &deploymentsv1.PutDeploymentProductConfigRequest{DeploymentId: s.DeploymentID}))

		// A named product is replaced as a whole; the others stay.
		replaced := s.admin(t, http.MethodPut, path, `{"sast":{},"approversTag":" ","hasDeveloperTriage":false}`)
		apitest.Golden(t, "products_replaced", replaced)
		if got := s.admin(t, http.MethodGet, s.of(""), ""); !strings.Contains(got, `"has_autofix":false`) {
			t.Errorf("the deployment says %s", got)
		}

		for body, text := range map[string]string{
			`{"sast":{"ai_autofix":{"min_confidence":1.5}}}`:                     "sast.ai_autofix.min_confidence must be between 0 and 1, got 1.5",
			`{"sca":{"triagePermission":"TRIAGE_PERMISSION_ALL"}}`:               "TRIAGE_PERMISSION_ALL",
			`{"ai":{"allowed_providers":["` + strings.Repeat("x", 101) + `"]}}`:  "at most 100 characters, got 101",
			`{"approversTag":"` + strings.Repeat("x", 101) + `","sca":{}}`:       "approversTag must have at most 100 characters, got 101",
			`{"secrets":{"global_validation_state_policy":{"error":["block"]}}}`: "error",
		} {
			s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPut, path, body, text)
		}
		if got := s.admin(t, http.MethodGet, path, ""); got != replaced {
			t.Errorf("something refused was stored: %s", got)
		}
		member := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember})
		s.want(t, http.StatusOK, member, http.MethodGet, path, "")
		s.refuses(t, http.StatusForbidden, member, http.MethodPut, path, `{"ai":{}}`, "ORG_ROLE_MEMBER")
		s.refuses(t, http.StatusNotFound, other.Token, http.MethodPut, path, `{"ai":{}}`, "deployment not found")
	})
}

func TestAdminProducts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		client := deploymentsv1.NewDeploymentProductsServiceClient(s.Conn)
		body := s.admin(t, http.MethodGet, s.of("/products/admin"), "")
		apitest.Golden(t, "products_admin", body)
		same(t, body)(client.GetDeploymentAdminProductConfig(s.Context(t, s.Token),
			&deploymentsv1.GetDeploymentAdminProductConfigRequest{DeploymentId: s.DeploymentID}))
		member := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember})
		s.refuses(t, http.StatusForbidden, member, http.MethodGet, s.of("/products/admin"), "", "ORG_ROLE_MEMBER")
	})
}
