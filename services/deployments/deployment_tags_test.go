package deployments_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

func TestTags(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		client := deploymentsv1.NewDeploymentTagServiceClient(s.Conn)
		ctx := s.Context(t, s.Token)
		if got, want := s.admin(t, http.MethodGet, s.of("/tags"), ""), fmt.Sprintf(`{"deployment_id":%d,"repository_tags":[]}`, s.DeploymentID); got != want {
			t.Errorf("at first: %s, want %s", got, want)
		}
		s.write(t, func(ctx context.Context, tx *ent.Tx) error {
			for _, name := range []string{"acme/web", "acme/api"} {
				if err := tx.Project.Create().SetName(name).SetNameKey(name).SetCreatedAt(store.Now()).Exec(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		created := s.admin(t, http.MethodPut, s.of("/tags/pci"), `{}`)
		apitest.Golden(t, "tag_put", created)
		same(t, created)(client.UpdateDeploymentTag(ctx, &deploymentsv1.UpdateDeploymentTagRequest{DeploymentId: s.DeploymentID, RepositoryTag: "pci"}))
		// Tags may contain slashes and blanks; both encodings of a slash are the same path.
		s.admin(t, http.MethodPut, s.of("/tags/team/core%20services"), `{}`)
		slashed := fmt.Sprintf(`{"deployment_id":%d,"repository_tag":"team/core services"}`, s.DeploymentID)
		for _, path := range []string{"/tags/team/core%20services", "/tags/team%2Fcore%20services"} {
			if got := s.admin(t, http.MethodGet, s.of(path), ""); got != slashed {
				t.Errorf("%s: %s, want %s", path, got, slashed)
			}
		}
		for _, project := range []string{"acme/web", "acme/api"} {
			s.admin(t, http.MethodPut, "/api/v1/deployments/acme/projects/"+project+"/tags", `{"tags":["pci"]}`)
		}

		list := s.admin(t, http.MethodGet, s.of("/tags"), "")
		apitest.Golden(t, "tags", list)
		same(t, list)(client.ListDeploymentTags(ctx, &deploymentsv1.ListDeploymentTagsRequest{DeploymentId: s.DeploymentID}))
		found := s.admin(t, http.MethodPost, s.of("/tags/find"), `{"includeCounts":true}`)
		apitest.Golden(t, "tags_counted", found)
		same(t, found)(client.FindDeploymentTags(ctx, &deploymentsv1.FindDeploymentTagsRequest{DeploymentId: s.DeploymentID, IncludeCounts: true}))
		apitest.Golden(t, "tags_found", s.admin(t, http.MethodPost, s.of("/tags/find"), `{}`))

		// The new name is shown in projects; repeating the request changes nothing.
		for range 2 {
			apitest.Golden(t, "tag_renamed", s.admin(t, http.MethodPut, s.of("/tags/pci"), `{"name":" payment cards "}`))
		}
		if got := s.Get(t, "/api/v1/deployments/acme/projects/acme/web"); !strings.Contains(got, `"tags":["payment cards"]`) {
			t.Errorf("the project is %s", got)
		}
		s.refuses(t, http.StatusConflict, s.Token, http.MethodPut, s.of("/tags/payment%20cards"), `{"name":"team/core services"}`, "has a tag")

		if got := s.admin(t, http.MethodDelete, s.of("/tags/payment%20cards"), ""); got != `{}` {
			t.Errorf("got %s", got)
		}
		if got := s.Get(t, "/api/v1/deployments/acme/projects/acme/web"); !strings.Contains(got, `"tags":[]`) {
			t.Errorf("the project is %s", got)
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			s.refuses(t, http.StatusNotFound, s.Token, method, s.of("/tags/payment%20cards"), "", "payment cards")
		}
		code(t, codes.NotFound)(client.DeleteDeploymentTag(ctx, &deploymentsv1.DeleteDeploymentTagRequest{DeploymentId: s.DeploymentID, RepositoryTag: "pci"}))
		same(t, slashed)(client.GetDeploymentTag(ctx, &deploymentsv1.GetDeploymentTagRequest{DeploymentId: s.DeploymentID, RepositoryTag: "team/core services"}))
	})
}

func TestTagsRefuse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		other := s.AddTenant(t, "umbrella")
		theirs := fmt.Sprintf("/api/agent/deployments/%d/tags", other.DeploymentID)
		s.want(t, http.StatusOK, other.Token, http.MethodPut, theirs+"/secret-project", `{}`)
		s.refuses(t, http.StatusNotFound, s.Token, http.MethodGet, s.of("/tags/secret-project"), "", "secret-project")
		s.refuses(t, http.StatusNotFound, s.Token, http.MethodDelete, s.of("/tags/secret-project"), "", "secret-project")
		s.refuses(t, http.StatusNotFound, s.Token, http.MethodGet, theirs, "", "deployment not found")
		s.want(t, http.StatusNotFound, s.Token, http.MethodPut, s.of("/tags/"), `{"name":"x"}`)
		long := strings.Repeat("x", 101)
		s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPut, s.of("/tags/"+long), `{}`, "repositoryTag must have at most 100 characters, got 101")
		s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPut, s.of("/tags/x"), `{"name":"`+long+`"}`, "name must have at most 100 characters, got 101")
		s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPut, s.of("/tags/%20"), `{}`, "repositoryTag must not be blank")
		s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPut, s.of("/tags/x"), `{"name":"  "}`, "name must not be blank")
		member := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember})
		s.refuses(t, http.StatusForbidden, member, http.MethodPut, s.of("/tags/x"), `{}`, "ORG_ROLE_MEMBER")
		s.refuses(t, http.StatusForbidden, member, http.MethodDelete, s.of("/tags/x"), "", "ORG_ROLE_MEMBER")
		if got := s.admin(t, http.MethodPost, s.of("/tags/find"), `{}`); got != `{"tags":[]}` {
			t.Errorf("something refused was stored: %s", got)
		}
	})
}
