package identity

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/savedview"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/teammember"
	"github.com/palisade/palisade/ent/teamproject"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/findings/storedfilters"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// maxTeamLevels is the maximum nesting of teams (contract facts 2.5).
	maxTeamLevels = 3
	// maxTeamsShown is the maximum number of teams named in an error.
	maxTeamsShown = 10
)

// Object kinds of teams, their projects and their members in the audit trail.
const (
	auditTeam         = "team"
	auditTeamProjects = "team_repositories"
	auditTeamMembers  = "team_members"
)

// CreateDeploymentTeam is operation 10 of the contract.
func (s *Teams) CreateDeploymentTeam(ctx context.Context, r *identityv1.CreateDeploymentTeamRequest) (*identityv1.CreateDeploymentTeamResponse, error) {
	change, err := newTeamChange(r.GetTeam())
	if err != nil {
		return nil, err
	}
	var out *identityv1.Team
	err = s.change(ctx, func(ctx context.Context, tx *ent.Tx, caller *teamCaller) error {
		parentID := r.GetTeam().GetParentTeamId()
		if err := caller.checkParent(ctx, tx, parentID); err != nil {
			return err
		}
		if err := caller.checkDefaults(r.GetTeam().GetIsProjectDefault(), r.GetTeam().GetIsUserDefault()); err != nil {
			return err
		}
		slug, err := nameTeam(ctx, tx, 0, r.GetTeam().GetName())
		if err != nil {
			return err
		}
		if err := change.check(ctx, tx, caller, 0); err != nil {
			return err
		}
		create := tx.Team.Create().SetDeploymentID(caller.deploymentID).SetName(r.GetTeam().GetName()).SetSlug(slug).
			SetIsProjectDefault(r.GetTeam().GetIsProjectDefault()).SetIsUserDefault(r.GetTeam().GetIsUserDefault()).
			SetCreatedAt(store.Now()).SetUpdatedAt(store.Now())
		if parentID != 0 {
			create.SetParentID(parentID)
		}
		row, err := create.Save(ctx)
		if err != nil {
			return err
		}
		if err := change.apply(ctx, tx, caller.deploymentID, row.ID); err != nil {
			return err
		}
		// Read again: the caller may have become a member of the new team.
		if caller, err = teamCallerOf(ctx, tx); err != nil {
			return err
		}
		converted, err := caller.convert(ctx, tx.Client(), row)
		if err != nil {
			return err
		}
		out = converted[0]
		audit.Change(ctx, auditTeam, row.ID, nil, out)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &identityv1.CreateDeploymentTeamResponse{Team: out}, nil
}

// UpdateDeploymentTeam changes the name, the projects and the members of a team.
func (s *Teams) UpdateDeploymentTeam(ctx context.Context, r *identityv1.UpdateDeploymentTeamRequest) (*identityv1.UpdateDeploymentTeamResponse, error) {
	change, err := updatedTeam(r.GetTeam())
	if err != nil {
		return nil, err
	}
	var out *identityv1.Team
	err = s.change(ctx, func(ctx context.Context, tx *ent.Tx, caller *teamCaller) error {
		row, err := caller.find(ctx, tx.Client(), r.GetTeamId())
		if err != nil {
			return err
		}
		if !caller.manages(row.ID) {
			return apierr.PermissionDenied("only administrators, and managers of team %d or of a team above it, may change it", row.ID)
		}
		before, err := caller.convert(ctx, tx.Client(), row)
		if err != nil {
			return err
		}
		if err := change.check(ctx, tx, caller, row.ID); err != nil {
			return err
		}
		if row, err = setFields(ctx, tx, caller, row, r.GetTeam()); err != nil {
			return err
		}
		if err := change.apply(ctx, tx, caller.deploymentID, row.ID); err != nil {
			return err
		}
		// Read again: a manager may have left the team.
		if caller, err = teamCallerOf(ctx, tx); err != nil {
			return err
		}
		after, err := caller.convert(ctx, tx.Client(), row)
		if err != nil {
			return err
		}
		out = after[0]
		audit.Change(ctx, auditTeam, row.ID, before[0], out)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &identityv1.UpdateDeploymentTeamResponse{Team: out}, nil
}

// setFields sets a new name and its slug, and whether new projects and users join the team, as far as they are given.
func setFields(ctx context.Context, tx *ent.Tx, caller *teamCaller, row *ent.Team, wanted *identityv1.TeamUpdate) (*ent.Team, error) {
	projects := wanted.IsProjectDefault != nil && wanted.GetIsProjectDefault() != row.IsProjectDefault
	users := wanted.IsUserDefault != nil && wanted.GetIsUserDefault() != row.IsUserDefault
	if err := caller.checkDefaults(projects, users); err != nil {
		return nil, err
	}
	update := row.Update().SetUpdatedAt(store.Now()).SetNillableIsProjectDefault(wanted.IsProjectDefault).SetNillableIsUserDefault(wanted.IsUserDefault)
	name := wanted.Name
	if name != nil && *name != row.Name {
		if !caller.owns(row) {
			return nil, apierr.PermissionDenied("only administrators and managers of a team above may rename team %d", row.ID)
		}
		slug, err := nameTeam(ctx, tx, row.ID, *name)
		if err != nil {
			return nil, err
		}
		update.SetName(*name).SetSlug(slug)
		renamed := storedfilters.Renaming{Of: storedfilters.Team, From: row.Name, To: *name}
		if err := renamed.Apply(ctx, tx); err != nil {
			return nil, err
		}
	}
	return update.Save(ctx)
}

// checkDefaults refuses a change of what joins a team by itself to managers: it concerns projects and users beyond the
// team.
func (c *teamCaller) checkDefaults(projects, users bool) error {
	if (projects || users) && c.teams != nil {
		return apierr.PermissionDenied("only administrators may change isProjectDefault and isUserDefault")
	}
	return nil
}

// DeleteDeploymentTeam deletes a team without subteams.
func (s *Teams) DeleteDeploymentTeam(ctx context.Context, r *identityv1.DeleteDeploymentTeamRequest) (*identityv1.DeleteDeploymentTeamResponse, error) {
	err := s.change(ctx, func(ctx context.Context, tx *ent.Tx, caller *teamCaller) error {
		row, err := caller.find(ctx, tx.Client(), r.GetTeamId())
		if err != nil {
			return err
		}
		if !caller.owns(row) {
			return apierr.PermissionDenied("only administrators and managers of a team above may delete team %d", row.ID)
		}
		before, err := caller.convert(ctx, tx.Client(), row)
		if err != nil {
			return err
		}
		if err := requireNoSubteams(ctx, tx, row.ID); err != nil {
			return err
		}
		if n := before[0].GetRepositoryCount(); n > 0 && caller.teams != nil {
			return apierr.PermissionDenied("only administrators may delete a team that has projects: team %d has %d", row.ID, n)
		}
		if _, err := tx.TeamMember.Delete().Where(teammember.TeamID(row.ID)).Exec(ctx); err != nil {
			return err
		}
		if _, err := tx.TeamProject.Delete().Where(teamproject.TeamID(row.ID)).Exec(ctx); err != nil {
			return err
		}
		if _, err := tx.SavedView.Delete().Where(savedview.Scope("team"), savedview.OwnerID(row.ID)).Exec(ctx); err != nil {
			return err
		}
		audit.Change(ctx, auditTeam, row.ID, before[0], nil)
		return tx.Team.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &identityv1.DeleteDeploymentTeamResponse{}, nil
}

// change runs a change of teams in a transaction. Changes in one deployment are serialized, so that checked names,
// levels and permissions still hold when the change is stored.
func (s *Teams) change(ctx context.Context, fn func(context.Context, *ent.Tx, *teamCaller) error) error {
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if s.store.Postgres() { // SQLite has a single writer anyway
			if _, err := tx.Deployment.Query().ForUpdate().OnlyID(ctx); err != nil {
				return fmt.Errorf("lock the teams: %w", err)
			}
		}
		caller, err := teamCallerOf(ctx, tx)
		if err != nil {
			return err
		}
		return fn(ctx, tx, caller)
	})
}

// checkParent checks the parent of a new team; parentID is 0 if there is none.
func (c *teamCaller) checkParent(ctx context.Context, tx *ent.Tx, parentID int64) error {
	if parentID == 0 {
		if c.teams != nil {
			return apierr.PermissionDenied("only administrators may create a team without a team above; managers name one of theirs in team.parentTeamId")
		}
		return nil
	}
	level := 1
	for id := parentID; ; level++ {
		row, err := tx.Team.Query().Where(team.ID(id)).Only(ctx)
		if ent.IsNotFound(err) || id == parentID && !c.sees(id) {
			return apierr.InvalidArgument("team.parentTeamId", "team.parentTeamId must be the id of a team, got %d", parentID)
		}
		if err != nil {
			return err
		}
		if row.ParentID == nil {
			break
		}
		id = *row.ParentID
	}
	if !c.manages(parentID) {
		return apierr.PermissionDenied("only administrators, and managers of team %d or of a team above it, may create a team below it", parentID)
	}
	if level >= maxTeamLevels {
		return apierr.InvalidArgument("team.parentTeamId", "team.parentTeamId must be a team that is not on level %d, the last, got %d", maxTeamLevels, parentID)
	}
	return nil
}

// requireNoSubteams rejects deleting a team with subteams: they would lose their managers and readers, and access to
// their projects would change implicitly.
func requireNoSubteams(ctx context.Context, tx *ent.Tx, id int64) error {
	below, err := tx.Team.Query().Where(team.ParentID(id)).Order(ent.Asc(team.FieldID)).Limit(maxTeamsShown + 1).IDs(ctx)
	if err != nil || len(below) == 0 {
		return err
	}
	list := joinIDs(below[:min(len(below), maxTeamsShown)])
	if len(below) > maxTeamsShown {
		list += " and others"
	}
	return apierr.FailedPrecondition("team %d has teams below it: delete %s first", id, list)
}
