package deployments_test

import (
	"net/http"
	"testing"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

func TestListDeployments(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		other := s.AddTenant(t, "umbrella")
		client := deploymentsv1.NewDeploymentsServiceClient(s.Conn)

		v1 := s.Get(t, "/api/v1/deployments")
		apitest.Golden(t, "list_v1", v1)
		response1, err := client.ListDeploymentsV1(s.Context(t, s.Token), &deploymentsv1.ListDeploymentsV1Request{})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response1, v1)

		v2 := s.Get(t, "/api/v2/deployments")
		apitest.Golden(t, "list_v2", v2)
		response2, err := client.ListDeployments(s.Context(t, s.Token), &deploymentsv1.ListDeploymentsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response2, v2)

		apitest.Golden(t, "list_v2_other", s.Do(t, other.Token, http.MethodGet, "/api/v2/deployments", "").Body)
	})
}

func TestListDeploymentsOfUser(t *testing.T) {
	s := apitest.Start(t, nil)
	stranger := s.AddUser(t, s.Tenant, "stranger@acme.test", "")
	if got := s.Do(t, stranger, http.MethodGet, "/api/v1/deployments", "").Body; got != `{"deployments":[]}` {
		t.Errorf("a user without memberships sees %s", got)
	}
	member := s.AddUser(t, s.Tenant, "dev@acme.test", access.RoleMember)
	if got, want := s.Do(t, member, http.MethodGet, "/api/v1/deployments", "").Body, s.Get(t, "/api/v1/deployments"); got != want {
		t.Errorf("a member sees %s, want %s", got, want)
	}
}
