package server

import (
	"context"
	"strings"

	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
)

// MakesAdmins lists the slugs of the deployments with administrator as the default role.
func MakesAdmins(ctx context.Context, st *store.Store) ([]string, error) {
	return st.Reader.Deployment.Query().Where(deployment.DefaultRole(string(access.RoleAdmin))).
		Order(deployment.ByID()).Select(deployment.FieldSlug).Strings(tenant.System(ctx))
}

// warnOfSignIn warns when the default role of a deployment makes every user of the issuer an administrator, as earlier
// versions stored it. That may be intended, so the server starts.
func (s *Server) warnOfSignIn(ctx context.Context, st *store.Store) error {
	if s.config.OIDCIssuer == "" {
		return nil
	}
	slugs, err := MakesAdmins(ctx, st)
	if err != nil {
		return err
	}
	if len(slugs) > 0 {
		s.log.Warn("everybody who joins through oidc-issuer becomes an administrator: the default role of these deployments is ORG_ROLE_ADMIN; "+
			"set defaultUserRole to ORG_ROLE_MEMBER and look through the members, as docs/sign-in.md says",
			"deployments", strings.Join(slugs, ","), "oidc_membership", s.config.OIDCMembership)
	}
	return nil
}
