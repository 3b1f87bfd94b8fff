package deployments_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/user"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/storetest"
)

func TestSSOProviders(t *testing.T) {
	const issuer = "https://id.acme.test/realms/dev"
	check := func(t *testing.T, database string) {
		s := caller{apitest.Start(t, func(c *config.Config) {
			c.OIDCIssuer, c.OIDCAudience, c.Database = issuer, "palisade", database
		})}
		other := s.AddTenant(t, "umbrella")
		for email, tenant := range map[string]apitest.Tenant{"dana@acme.test": s.Tenant, "kim@acme.test": s.Tenant, "lee@umbrella.test": other} {
			s.AddUser(t, tenant, email, access.RoleMember)
			err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				return tx.User.Update().Where(user.Email(email)).SetIssuer(issuer).SetSubject(email).Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		s.AddUser(t, s.Tenant, "local@acme.test", access.RoleMember)
		path := fmt.Sprintf("/api/auth/sso/deployments/%d/providers", s.DeploymentID)
		body := s.admin(t, http.MethodGet, path, "")
		apitest.Golden(t, "sso_providers", body)
		same(t, body)(deploymentsv1.NewDeploymentSsoProvidersServiceClient(s.Conn).ListDeploymentSsoProviders(s.Context(t, s.Token),
			&deploymentsv1.ListDeploymentSsoProvidersRequest{DeploymentId: s.DeploymentID}))
		s.refuses(t, http.StatusNotFound, other.Token, http.MethodGet, path, "", "deployment not found")
	}
	t.Run("sqlite", func(t *testing.T) { check(t, "") })
	t.Run("postgres", func(t *testing.T) { check(t, storetest.Postgres(t)) })
}

func TestNoSSOProvider(t *testing.T) {
	s := caller{apitest.Start(t, nil)}
	path := fmt.Sprintf("/api/auth/sso/deployments/%d/providers", s.DeploymentID)
	if got := s.admin(t, http.MethodGet, path, ""); got != `{"providers":[]}` {
		t.Errorf("got %s", got)
	}
}

func TestFeatureRollouts(t *testing.T) {
	s := caller{apitest.Start(t, nil)}
	body := s.admin(t, http.MethodGet, "/api/agent/features", "")
	apitest.Golden(t, "features", body)
	same(t, body)(deploymentsv1.NewFeatureRolloutsServiceClient(s.Conn).ListAvailableFeatureRollouts(s.Context(t, s.Token),
		&deploymentsv1.ListAvailableFeatureRolloutsRequest{}))
	s.want(t, http.StatusUnauthorized, "", http.MethodGet, "/api/agent/features", "")
}
