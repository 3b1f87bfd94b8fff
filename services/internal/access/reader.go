package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// AsReader limits ctx to what a caller may read in a deployment now. Jobs that work for a caller use it, again and
// again if they take long. The error is PERMISSION_DENIED if the caller may read nothing there any more.
func AsReader(ctx context.Context, st *store.Store, deploymentID int64, kind Kind, id int64) (context.Context, error) {
	ctx = tenant.NewContext(ctx, deploymentID)
	role, userID, err := readerOf(ctx, st, kind, id)
	if err != nil {
		return nil, err
	}
	if !Permits(role, optionsv1.Permission_PERMISSION_READ) {
		return nil, apierr.PermissionDenied("the %s who asked for this may not read the deployment any more", kind)
	}
	if role == RoleAdmin {
		return ctx, nil
	}
	teams, err := TeamsOf(ctx, st.Reader, deploymentID, userID)
	if err != nil || !teams.Enabled {
		return ctx, err
	}
	return tenant.WithTeams(ctx, teams.IDs(TeamRead)), nil
}

// readerOf returns the role of a caller in the deployment of ctx, empty for none, and the user whose teams limit it.
func readerOf(ctx context.Context, st *store.Store, kind Kind, id int64) (role Role, userID int64, err error) {
	if kind == KindUser {
		role, err = memberRole(ctx, st, id)
		return role, id, err
	}
	t, err := st.Reader.Token.Query().Where(token.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("look up token %d: %w", id, err)
	}
	if t.RevokedAt != nil || t.ExpiresAt != nil && *t.ExpiresAt <= store.Now() || !slices.Contains(t.Scopes, string(ScopeWebAPI)) {
		return "", 0, nil
	}
	may := authority{role: Role(t.Role), ofDeployment: OfDeployment(t)}
	if !may.ofDeployment {
		may.creator, err = memberRole(ctx, st, t.UserID)
	}
	return may.now(), t.UserID, err
}

// memberRole returns the role of a user in the deployment of ctx, empty for none.
func memberRole(ctx context.Context, st *store.Store, userID int64) (Role, error) {
	m, err := st.Reader.Membership.Query().Where(membership.UserID(userID)).Only(ctx)
	if ent.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look up the membership of user %d: %w", userID, err)
	}
	return Role(m.Role), nil
}
