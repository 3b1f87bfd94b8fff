package scans

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/teamproject"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
)

// mayUpload reports whether the caller may send results of a project. A report closes findings that it does not repeat,
// so a caller that must not see a project must not write to it either.
func mayUpload(ctx context.Context, db *ent.Client, p *ent.Project) (bool, error) {
	limit := access.UploadsFromContext(ctx)
	if limit == nil {
		return true, nil
	}
	var teams []int64
	err := db.TeamProject.Query().Where(teamproject.ProjectID(p.ID)).Select(teamproject.FieldTeamID).Scan(ctx, &teams)
	return err == nil && limit.Into(teams, p.CreatorID), err
}

// checkUpload rejects results of a project from callers that may not send them.
func checkUpload(ctx context.Context, db *ent.Client, p *ent.Project) error {
	ok, err := mayUpload(ctx, db, p)
	if err == nil && !ok {
		err = apierr.PermissionDenied("this credential may not send results of the project %s: its user is in none of the project's teams; "+
			"have an administrator add the project to a team of the user, or use a token that an administrator created", apierr.Quote(p.Name))
	}
	return err
}

// mayUploadScan reports whether the caller may send data of a scan.
func mayUploadScan(ctx context.Context, db *ent.Client, row *ent.Scan) (bool, error) {
	if access.UploadsFromContext(ctx) == nil {
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

// creator is the user who creates a project by an upload, if uploads of that user are limited. They keep access to it
// until it is in a team.
func creator(ctx context.Context) *int64 {
	if limit := access.UploadsFromContext(ctx); limit != nil {
		return &limit.UserID
	}
	return nil
}
