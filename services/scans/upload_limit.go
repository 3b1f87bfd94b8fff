package scans

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/teamproject"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// mayUpload reports whether the caller may send results of a project. A report closes findings that it does not repeat,
// so a caller that must not see a project must not write to it either.
func mayUpload(ctx context.Context, db *ent.Client, p *ent.Project) (bool, error) {
	if id := projectOfToken(ctx); id != 0 {
		return id == p.ID, nil
	}
	limit := access.UploadsFromContext(ctx)
	if limit == nil {
		return true, nil
	}
	var teams []int64
	err := db.TeamProject.Query().Where(teamproject.ProjectID(p.ID)).Select(teamproject.FieldTeamID).Scan(ctx, &teams)
	if err != nil || limit.Into(teams, p.CreatorID) || !limit.Into(nil, p.CreatorID) {
		return err == nil && limit.Into(teams, p.CreatorID), err
	}
	// The teams that every new project joins do not end the access of the user who created it.
	chosen, err := db.Team.Query().Where(store.OneOf(team.FieldID, teams), team.IsProjectDefault(false)).Exist(ctx)
	return err == nil && !chosen, err
}

// checkUpload rejects results of a project from callers that may not send them.
func checkUpload(ctx context.Context, db *ent.Client, p *ent.Project) error {
	ok, err := mayUpload(ctx, db, p)
	if err == nil && !ok && projectOfToken(ctx) != 0 {
		return apierr.PermissionDenied("this credential belongs to the CI of another project and may not send results of %s: use the secret of its own repository",
			apierr.Quote(p.Name))
	}
	if err == nil && !ok {
		err = apierr.PermissionDenied("this credential may not send results of the project %s: its user is in none of the project's teams; "+
			"have an administrator add the project to a team of the user, or use a token that an administrator created", apierr.Quote(p.Name))
	}
	return err
}

// mayUploadScan reports whether the caller may send data of a scan.
func mayUploadScan(ctx context.Context, db *ent.Client, row *ent.Scan) (bool, error) {
	if access.UploadsFromContext(ctx) == nil && projectOfToken(ctx) == 0 {
		return true, nil
	}
	p, err := db.Project.Query().Where(project.ID(row.ProjectID)).Only(ctx)
	if ent.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return mayUpload(ctx, db, p)
}

// projectOfToken is the only project that the calling token may send scans of; 0 means no limit.
func projectOfToken(ctx context.Context) int64 {
	if caller, ok := access.FromContext(ctx); ok {
		return caller.ProjectID
	}
	return 0
}

// creator is the user who creates a project by an upload, if uploads of that user are limited. They keep access to it
// until it is in a team that new projects do not join by themselves.
func creator(ctx context.Context) *int64 {
	if limit := access.UploadsFromContext(ctx); limit != nil {
		return &limit.UserID
	}
	return nil
}
