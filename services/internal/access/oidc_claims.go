package access

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/savedview"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/teammember"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// auditTeamMembers is the name of team members in the audit trail.
const auditTeamMembers = "team_members"

// refresh updates the membership of a known user from the claims of a newer token. An older token, which may be valid
// for some hours yet, changes nothing: it could restore a role that the issuer has withdrawn.
func (p *OIDC) refresh(ctx context.Context, found *Principal, who *identity) error {
	return p.st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		issued := store.Micros(who.issuedAt)
		// The second of two concurrent tokens waits here for the first.
		newer, err := tx.User.Update().Where(user.ID(found.ID), user.Or(user.ClaimsAtIsNil(), user.ClaimsAtLT(issued))).
			SetClaimsAt(issued).Save(ctx)
		if err != nil || newer == 0 {
			return err
		}
		first, err := tx.Deployment.Query().Order(deployment.ByID()).First(ctx)
		if ent.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		ctx = p.recorded(tenant.NewContext(ctx, first.ID), found.ID, found.Name)
		row, err := tx.Membership.Query().Where(membership.UserID(found.ID)).Only(ctx)
		if err != nil && !ent.IsNotFound(err) {
			return err
		}
		given, entitled := p.signIn.entitlement(who.claims)
		switch {
		case row == nil && !entitled, row != nil && !row.FromClaims:
			return nil // claims do not change a membership that an administrator gave
		case row == nil:
			return p.rejoin(ctx, tx, found, first.ID, given)
		case !entitled:
			return p.leave(ctx, tx, found, row)
		default:
			return p.update(ctx, tx, found, row, given)
		}
	})
}

// rejoin makes a known user a member again after the claim was missing, or for the first time.
func (p *OIDC) rejoin(ctx context.Context, tx *ent.Tx, who *Principal, deploymentID int64, given Entitlement) error {
	if err := Join(ctx, tx, deploymentID, who.ID, given.Role, true); err != nil {
		return err
	}
	audit.Change(ctx, auditMember, who.ID, nil, p.shown(who.ID, who.Name, given.Role))
	return p.syncTeams(ctx, tx, who.ID, given)
}

// leave ends a membership after its claim is gone. The user's API tokens stay, as for every user who leaves.
func (p *OIDC) leave(ctx context.Context, tx *ent.Tx, who *Principal, row *ent.Membership) error {
	if _, err := tx.TeamMember.Delete().Where(teammember.UserID(who.ID)).Exec(ctx); err != nil {
		return err
	}
	if _, err := tx.SavedView.Delete().Where(savedview.Scope("own"), savedview.OwnerID(who.ID)).Exec(ctx); err != nil {
		return err
	}
	if _, err := RevokeSessions(ctx, tx, who.ID); err != nil {
		return err
	}
	audit.Change(ctx, auditMember, who.ID, p.shown(who.ID, who.Name, Role(row.Role)), nil)
	return tx.Membership.DeleteOneID(row.ID).Exec(ctx)
}

func (p *OIDC) update(ctx context.Context, tx *ent.Tx, who *Principal, row *ent.Membership, given Entitlement) error {
	if row.Role != string(given.Role) {
		if err := tx.Membership.UpdateOneID(row.ID).SetRole(string(given.Role)).SetUpdatedAt(store.Now()).Exec(ctx); err != nil {
			return err
		}
		audit.Change(ctx, auditMember, who.ID, p.shown(who.ID, who.Name, Role(row.Role)), p.shown(who.ID, who.Name, given.Role))
	}
	return p.syncTeams(ctx, tx, who.ID, given)
}

// syncTeams adds a user to the teams that their claim gives, and removes them from the other teams in the map. Teams
// outside the map are managed by people. An existing member keeps their role, because people appoint managers. A team
// in the map that does not exist is skipped; the doctor command reports it.
func (p *OIDC) syncTeams(ctx context.Context, tx *ent.Tx, userID int64, given Entitlement) error {
	named := p.signIn.Claims.Teams()
	if len(named) == 0 {
		return nil
	}
	teams, err := tx.Team.Query().Where(store.OneOf(team.FieldSlug, named)).Select(team.FieldID, team.FieldSlug).All(ctx)
	if err != nil || len(teams) == 0 {
		return err
	}
	ids := make([]int64, len(teams))
	for i, t := range teams {
		ids[i] = t.ID
	}
	in, err := tx.TeamMember.Query().Where(teammember.UserID(userID), store.OneOf(teammember.FieldTeamID, ids)).Select(teammember.FieldTeamID).All(ctx)
	if err != nil {
		return err
	}
	var joins, leaves []int64
	for _, t := range teams {
		is := slices.ContainsFunc(in, func(m *ent.TeamMember) bool { return m.TeamID == t.ID })
		switch should := slices.Contains(given.Teams, t.Slug); {
		case should && !is:
			joins = append(joins, t.ID)
		case is && !should:
			leaves = append(leaves, t.ID)
		}
	}
	return p.moveTeams(ctx, tx, userID, joins, leaves)
}

// moveTeams stores the teams that a user joins and leaves.
func (p *OIDC) moveTeams(ctx context.Context, tx *ent.Tx, userID int64, joins, leaves []int64) error {
	if len(leaves) > 0 {
		if _, err := tx.TeamMember.Delete().Where(teammember.UserID(userID), store.OneOf(teammember.FieldTeamID, leaves)).Exec(ctx); err != nil {
			return err
		}
	}
	for _, id := range leaves {
		audit.Change(ctx, auditTeamMembers, id, membersOf(id, userID), nil)
	}
	for _, id := range joins {
		// Someone may add the user concurrently.
		err := tx.TeamMember.Create().SetTeamID(id).SetUserID(userID).SetRole(joinTeamRole).SetCreatedAt(store.Now()).
			OnConflictColumns(teammember.FieldDeploymentID, teammember.FieldTeamID, teammember.FieldUserID).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
		audit.Change(ctx, auditTeamMembers, id, nil, membersOf(id, userID))
	}
	return nil
}

// membersOf is one member of a team, for the audit trail.
func membersOf(teamID, userID int64) *identityv1.ListTeamUsersResponse {
	return &identityv1.ListTeamUsersResponse{TeamId: teamID, Users: []*identityv1.TeamUser{{UserId: userID, Role: identityv1.TeamRole_TEAM_ROLE_MEMBER}}}
}
