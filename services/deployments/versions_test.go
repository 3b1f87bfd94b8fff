package deployments_test

import (
	"fmt"
	"net/http"
	"testing"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

func TestProjectVersions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		client := deploymentsv1.NewVersionsServiceClient(s.Conn)
		other := s.AddTenant(t, "umbrella")
		_, jwt := s.person(t, "dev@acme.test", access.RoleMember)
		stranger := s.AddUser(t, other, "dev@umbrella.test", access.RoleAdmin)
		path := fmt.Sprintf("/api/agent/versions/%d/project-info/", s.DeploymentID)
		s.Upload(t, "acme/web", "refs/heads/main", []byte(oneResult))
		s.Upload(t, "acme/api", "refs/heads/main", []byte(oneResult))
		s.Upload(t, "acme/api", "refs/heads/dev", []byte(oneResult))

		body := s.want(t, http.StatusOK, jwt, http.MethodGet, path+"sast", "")
		apitest.Golden(t, "versions", body)
		same(t, body)(client.GetProjectVersionInfo(s.Context(t, jwt), &deploymentsv1.GetProjectVersionInfoRequest{DeploymentId: s.DeploymentID, Product: "PRODUCT_SAST"}))
		if got := s.want(t, http.StatusOK, jwt, http.MethodGet, path+"SCA", ""); got != `{"projectInfo":[]}` {
			t.Errorf("supply chain: %s", got)
		}
		for _, product := range []string{"dast", "PRODUCT_", "PRODUCT_UNSPECIFIED", "1"} {
			s.refuses(t, http.StatusBadRequest, jwt, http.MethodGet, path+product, "", "product must be one of sast, sca, secrets, ai_sast")
		}
		s.refuses(t, http.StatusForbidden, s.Token, http.MethodGet, path+"sast", "", "JSON Web Token")
		s.refuses(t, http.StatusNotFound, stranger, http.MethodGet, path+"sast", "", "deployment not found")
	})
}
