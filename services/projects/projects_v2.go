package projects

import (
	"context"
	"strings"

	"entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/teamproject"
	"github.com/palisade/palisade/ent/tenant"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
)

// ProjectsV2 is version 2 of the service group "projects".
type ProjectsV2 struct {
	projectsv1.UnimplementedProjectsV2ServiceServer
	store    *store.Store
	projects *Projects
}

// NewProjectsV2 serves projects by id.
func NewProjectsV2(projects *Projects) *ProjectsV2 {
	return &ProjectsV2{store: projects.store, projects: projects}
}

// ListProjectsV2 lists projects by id.
func (s *ProjectsV2) ListProjectsV2(ctx context.Context, r *projectsv1.ListProjectsV2Request) (*projectsv1.ListProjectsV2Response, error) {
	digest, err := page.DigestOf("projects v2"+tenant.Visibility(ctx), r.GetFilter())
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetPageToken())
	if err != nil {
		return nil, err
	}
	where := projectsFilter(r.GetFilter())
	if continued {
		where = append(where, project.IDGT(key.ID))
	}
	size := defaultPageSize
	if r.GetPageSize() > 0 {
		size = int(r.GetPageSize())
	}
	rows, err := s.store.Reader.Project.Query().Where(where...).Order(ent.Asc(project.FieldID)).Limit(size + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &projectsv1.ListProjectsV2Response{}
	if len(rows) > size {
		rows = rows[:size]
		response.PageToken = page.Encode(digest, page.Key{ID: rows[size-1].ID})
	}
	response.Projects, err = convertV2(ctx, s.store.Reader, rows...)
	return response, err
}

// GetProjectV2 returns one project.
func (s *ProjectsV2) GetProjectV2(ctx context.Context, r *projectsv1.GetProjectV2Request) (*projectsv1.GetProjectV2Response, error) {
	row, err := findID(ctx, s.store.Reader, r.GetProjectId())
	if err != nil {
		return nil, err
	}
	found, err := convertV2(ctx, s.store.Reader, row)
	if err != nil {
		return nil, err
	}
	return &projectsv1.GetProjectV2Response{Project: found[0]}, nil
}

// DeleteProjectV2 deletes a project and all its data.
func (s *ProjectsV2) DeleteProjectV2(ctx context.Context, r *projectsv1.DeleteProjectV2Request) (*projectsv1.DeleteProjectV2Response, error) {
	response := &projectsv1.DeleteProjectV2Response{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.projects.lock(ctx, tx, project.ID(r.GetProjectId()), noProjectID(r.GetProjectId()))
		if err != nil {
			return err
		}
		found, err := convertV2(ctx, tx.Client(), row)
		if err != nil {
			return err
		}
		response.Project = found[0]
		return s.projects.remove(ctx, tx, row)
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// GetBranch finds a ref of a project by its id.
func (s *ProjectsV2) GetBranch(ctx context.Context, r *projectsv1.GetBranchRequest) (*projectsv1.GetBranchResponse, error) {
	row, err := findID(ctx, s.store.Reader, r.GetProjectId())
	if err != nil {
		return nil, err
	}
	for _, ref := range []string{row.PrimaryBranch, row.DefaultBranch} {
		if ref != "" && gitref.ID(row.ID, ref) == r.GetBranchId() {
			return branchResponse(r, ref), nil
		}
	}
	scanned, err := s.store.Reader.QueryContext(ctx, scannedRefsSQL, row.DeploymentID, row.ID)
	if err != nil {
		return nil, err
	}
	defer scanned.Close()
	for scanned.Next() {
		var ref string
		if err := scanned.Scan(&ref); err != nil {
			return nil, err
		}
		if gitref.ID(row.ID, ref) == r.GetBranchId() {
			return branchResponse(r, ref), nil
		}
	}
	if err := scanned.Err(); err != nil {
		return nil, err
	}
	return nil, apierr.NotFound("project %d has no branch %d", r.GetProjectId(), r.GetBranchId())
}

// scannedRefsSQL lists the refs of a project that have scans, with one search of an index per ref.
const scannedRefsSQL = "WITH RECURSIVE refs (ref) AS (SELECT MIN(ref) FROM scans WHERE deployment_id = $1 AND project_id = $2 UNION ALL " +
	"SELECT (SELECT MIN(ref) FROM scans WHERE deployment_id = $1 AND project_id = $2 AND ref > refs.ref) FROM refs WHERE refs.ref IS NOT NULL) " +
	"SELECT ref FROM refs WHERE ref IS NOT NULL"

func branchResponse(r *projectsv1.GetBranchRequest, ref string) *projectsv1.GetBranchResponse {
	return &projectsv1.GetBranchResponse{Branch: &projectsv1.Branch{Id: r.GetBranchId(), Name: ref}}
}

func noProjectID(id int64) error { return apierr.NotFound("project %d not found", id) }

func findID(ctx context.Context, db *ent.Client, id int64) (*ent.Project, error) {
	row, err := db.Project.Query().Where(project.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, noProjectID(id)
	}
	return row, err
}

func projectsFilter(f *projectsv1.ProjectsFilter) []predicate.Project {
	where := []predicate.Project{inStatus(f.GetStatuses())}
	var names []predicate.Project
	for _, name := range f.GetNames() {
		if name != "" {
			names = append(names, project.NameKeyContains(strings.ToLower(name)))
		}
	}
	if len(names) > 0 {
		where = append(where, project.Or(names...))
	}
	if f != nil && f.AssignedToTeams != nil {
		where = append(where, either(f.GetAssignedToTeams(), inTeam()))
	}
	return where
}

// inStatus selects projects with any of the states.
func inStatus(statuses []projectsv1.ProjectStatus) predicate.Project {
	var any []predicate.Project
	for _, status := range statuses {
		switch status {
		case projectsv1.ProjectStatus_PROJECT_STATUS_SETUP, projectsv1.ProjectStatus_PROJECT_STATUS_ACTIVE:
			any = append(any, project.And(project.ArchivedAtIsNil(), setUp()))
		case projectsv1.ProjectStatus_PROJECT_STATUS_NOT_SETUP, projectsv1.ProjectStatus_PROJECT_STATUS_UNINITIALIZED:
			any = append(any, project.And(project.ArchivedAtIsNil(), project.Not(setUp())))
		case projectsv1.ProjectStatus_PROJECT_STATUS_ARCHIVED:
			any = append(any, project.ArchivedAtNotNil())
		}
	}
	if len(any) == 0 {
		return project.ArchivedAtIsNil()
	}
	return project.Or(any...)
}

// inTeam selects the projects with a team that is not given to every new project. Policies do not limit the subquery.
func inTeam() predicate.Project {
	return func(p *sql.Selector) {
		links, teams := sql.Table(teamproject.Table), sql.Table(team.Table)
		p.Where(sql.Exists(sql.Dialect(p.Dialect()).Select(links.C(teamproject.FieldID)).From(links).
			Join(teams).On(teams.C(team.FieldID), links.C(teamproject.FieldTeamID)).Where(sql.And(
			sql.ColumnsEQ(links.C(teamproject.FieldDeploymentID), p.C(project.FieldDeploymentID)),
			sql.ColumnsEQ(links.C(teamproject.FieldProjectID), p.C(project.FieldID)),
			sql.EQ(teams.C(team.FieldIsProjectDefault), false),
		))))
	}
}

// convertV2 converts projects, with the same number of queries for any number of projects.
func convertV2(ctx context.Context, db *ent.Client, rows ...*ent.Project) ([]*projectsv1.ProjectV2, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	tags, err := tagsOf(ctx, db, rows...)
	if err != nil {
		return nil, err
	}
	edges, err := scanEdgesOf(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	out := make([]*projectsv1.ProjectV2, len(rows))
	for i, row := range rows {
		out[i] = &projectsv1.ProjectV2{
			Id: row.ID, Name: row.Name, CreateTime: timestamppb.New(store.Time(row.CreatedAt)), Tags: tags[row.ID], Url: row.URL,
			ScmType: scmv1.ScmType(scmv1.ScmType_value[row.ScmType]),
		}
		if latest := edges[row.ID].Latest; latest != nil {
			out[i].LatestScanId = *latest
		}
		if row.DefaultBranch != "" {
			out[i].DefaultBranchId = gitref.ID(row.ID, row.DefaultBranch)
			out[i].PrimaryBranchId = out[i].GetDefaultBranchId()
		}
		if row.PrimaryBranch != "" {
			out[i].PrimaryBranchId = gitref.ID(row.ID, gitref.Full(row.PrimaryBranch))
		}
	}
	return out, nil
}
