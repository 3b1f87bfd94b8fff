package access

import (
	"context"

	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// AsTriager returns the context of a request that the user with this e-mail address would send to triage findings of a
// deployment: with the caller, the deployment, and the teams that limit the user. The error is PERMISSION_DENIED if the
// user may not triage there, or if there is none.
func AsTriager(ctx context.Context, st *store.Store, deploymentID int64, email string) (context.Context, error) {
	p, err := findUser(ctx, st, user.Email(normalEmail(email)))
	if err != nil {
		return nil, err
	}
	denied := apierr.PermissionDenied("%s may not triage findings of the deployment", apierr.Quote(email))
	if p == nil {
		return nil, denied
	}
	grant, err := ResolveGrant(p, "", deploymentID, false)
	if err != nil || !Permits(grant.Role, optionsv1.Permission_PERMISSION_TRIAGE) {
		return nil, denied
	}
	ctx = WithGrant(tenant.NewContext(NewContext(ctx, p), deploymentID), grant)
	if grant.Role == RoleAdmin {
		return ctx, nil
	}
	teams, err := TeamsOf(ctx, st.Reader, deploymentID, p.UserID)
	if err != nil || !teams.Enabled {
		return ctx, err
	}
	return tenant.WithTeams(ctx, teams.IDs(TeamTriage)), nil
}
