package access

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/membership"
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

// followed is what a newer token of a known user means, for the log.
type followed struct {
	gap gap
	// member says that the user stays a member.
	member bool
	// lastAdmin is the slug of the deployment whose last administrator lost the role.
	lastAdmin string
}

// refresh updates a known user from a newer token: address and name, and the membership if claims decide about it.
func (p *OIDC) refresh(ctx context.Context, found *Principal, who *identity) error {
	var what followed
	var kept string
	err := p.st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		if who.differs(found) {
			if err := serialize(ctx, tx, usersLock); err != nil {
				return err
			}
		}
		newest, err := isNewest(ctx, tx, found.ID, who)
		if err != nil || !newest {
			return err
		}
		if kept, err = p.rename(ctx, tx, found, who); err == nil && p.signIn.Admission == AdmitClaim {
			what, err = p.follow(ctx, tx, found, who)
		}
		return err
	})
	if err != nil {
		return err
	}
	if kept != "" {
		p.log.WarnContext(ctx, "a user keeps the earlier e-mail address, because another user has the new one", "user", found.ID, "address", kept,
			"cure", "remove the member who had the address before")
	}
	if what.gap != gapNone { // once for each token: the next request with it is not newer
		effect := "the user does not become a member"
		if what.member {
			effect = "the member keeps role and teams"
		}
		p.warnOfGap(ctx, what.gap, who, effect)
	}
	if what.lastAdmin != "" {
		p.log.WarnContext(ctx, "the last administrator lost the role by the claim of an ID token", "deployment", what.lastAdmin,
			"user", found.ID, "claim", p.signIn.Claim, "remains", AdminEmail+", with palisade console-link")
	}
	return nil
}

// warnOfGap logs that a token does not say what its user may do, without the token.
func (p *OIDC) warnOfGap(ctx context.Context, g gap, who *identity, effect string) {
	cause, cure := g.explain(p.signIn.Claim)
	p.log.WarnContext(ctx, "an ID token does not say what its user may do", "cause", cause, "effect", effect, "cure", cure,
		"subject", who.Subject)
}

// follow applies the claims of the newest token.
func (p *OIDC) follow(ctx context.Context, tx *ent.Tx, found *Principal, who *identity) (what followed, err error) {
	first, err := tx.Deployment.Query().Order(deployment.ByID()).First(ctx)
	if ent.IsNotFound(err) {
		return what, nil
	}
	if err != nil {
		return what, err
	}
	ctx = p.recorded(tenant.NewContext(ctx, first.ID), found.ID, found.Name)
	row, err := tx.Membership.Query().Where(membership.UserID(found.ID)).Only(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return what, err
	}
	given, entitled := p.signIn.entitlement(who.claims)
	missing := p.signIn.gap(who.claims)
	switch {
	case row != nil && !row.FromClaims:
		return what, nil // claims do not change a membership that an administrator gave
	case row == nil && !entitled:
		return followed{gap: missing}, nil
	case row == nil:
		return what, p.rejoin(ctx, tx, found, first.ID, given)
	case missing != gapNone:
		return followed{gap: missing, member: true}, nil
	case !entitled:
		err = p.leave(ctx, tx, found, row)
	default:
		err = p.update(ctx, tx, found, row, given)
	}
	if err != nil || Role(row.Role) != RoleAdmin || entitled && given.Role == RoleAdmin {
		return what, err
	}
	others, err := otherAdmins(ctx, tx)
	if err == nil && !others {
		what.lastAdmin = first.Slug
	}
	return what, err
}

// otherAdmins reports whether the deployment has an administrator who is a person.
func otherAdmins(ctx context.Context, tx *ent.Tx) (bool, error) {
	admins, err := tx.Membership.Query().Where(membership.Role(string(RoleAdmin))).Select(membership.FieldUserID).All(ctx)
	if err != nil {
		return false, err
	}
	ids := make([]int64, len(admins))
	for i, m := range admins {
		ids[i] = m.UserID
	}
	return tx.User.Query().Where(store.OneOf(user.FieldID, ids), user.EmailNEQ(AdminEmail)).Exist(tenant.System(ctx))
}

// rejoin makes a known user a member again after the claim was missing, or for the first time.
func (p *OIDC) rejoin(ctx context.Context, tx *ent.Tx, who *Principal, deploymentID int64, given Entitlement) error {
	if err := Join(ctx, tx, deploymentID, who.ID, given.Role, true); err != nil {
		return err
	}
	audit.Change(ctx, auditMember, who.ID, nil, p.shown(who.ID, who.Name, given.Role))
	return p.syncTeams(ctx, tx, who.ID, given)
}

// leave ends a membership after its claim is gone. The user's API tokens can do nothing then, as for every user who
// leaves.
func (p *OIDC) leave(ctx context.Context, tx *ent.Tx, who *Principal, row *ent.Membership) error {
	audit.Change(ctx, auditMember, who.ID, p.shown(who.ID, who.Name, Role(row.Role)), nil)
	return EndMembership(ctx, tx, row.ID, who.ID)
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
