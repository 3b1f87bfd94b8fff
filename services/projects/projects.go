// Package projects serves projects: usually one repository each.
package projects

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/agenticissue"
	"github.com/palisade/palisade/ent/agenticissueevent"
	"github.com/palisade/palisade/ent/agenticissuelabel"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/aifix"
	"github.com/palisade/palisade/ent/aimemory"
	"github.com/palisade/palisade/ent/aimemoryuse"
	"github.com/palisade/palisade/ent/branchchange"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/detectionexception"
	"github.com/palisade/palisade/ent/exceptionrequest"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/findingmatch"
	"github.com/palisade/palisade/ent/freshness"
	"github.com/palisade/palisade/ent/heldclose"
	"github.com/palisade/palisade/ent/identitychange"
	"github.com/palisade/palisade/ent/managedscan"
	"github.com/palisade/palisade/ent/policyact"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/pullrequestfeedback"
	"github.com/palisade/palisade/ent/ruleboardproject"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scananswer"
	"github.com/palisade/palisade/ent/scancoverage"
	"github.com/palisade/palisade/ent/scanpayload"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/ent/teamproject"
	"github.com/palisade/palisade/ent/ticket"
	"github.com/palisade/palisade/ent/ticketlink"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/ent/triagechangefinding"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/names"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/branches"
	"github.com/palisade/palisade/services/projects/byname"
)

const defaultPageSize = 100

// Projects is the service group "projects".
type Projects struct {
	projectsv1.UnimplementedProjectsServiceServer
	store  *store.Store
	jobs   *jobs.Jobs
	tokens *access.Tokens
}

// NewProjects serves projects from the store. Jobs apply changed patterns of ignored files.
func NewProjects(st *store.Store, queue *jobs.Jobs) *Projects {
	return &Projects{store: st, jobs: queue, tokens: access.NewTokens(st)}
}

// ListProjects lists the projects that are not archived, by id.
func (s *Projects) ListProjects(ctx context.Context, r *projectsv1.ListProjectsRequest) (*projectsv1.ListProjectsResponse, error) {
	size := int64(defaultPageSize)
	if r.PageSize != nil {
		size = r.GetPageSize()
	}
	const far = int64(1) << 40
	if r.GetPage() > far/size {
		return &projectsv1.ListProjectsResponse{}, nil
	}
	rows, err := s.store.Reader.Project.Query().Where(project.ArchivedAtIsNil()).Order(ent.Asc(project.FieldID)).
		Offset(int(r.GetPage() * size)).Limit(int(size)).All(ctx)
	if err != nil {
		return nil, err
	}
	tags, err := tagsOf(ctx, s.store.Reader, rows...)
	if err != nil {
		return nil, err
	}
	response := &projectsv1.ListProjectsResponse{}
	for _, row := range rows {
		item := convert(row, tags[row.ID])
		// List items omit these.
		item.ManagedScanConfig, item.RepositoryUrl, item.RepositoryId, item.LeftHostAt = nil, "", "", nil
		item.IgnoredFiles, item.ProductIgnoredFiles = nil, nil
		response.Projects = append(response.Projects, item)
	}
	return response, nil
}

// GetProject returns one project.
func (s *Projects) GetProject(ctx context.Context, r *projectsv1.GetProjectRequest) (*projectsv1.GetProjectResponse, error) {
	row, err := find(ctx, s.store.Reader, r.GetProjectName())
	if err != nil {
		return nil, err
	}
	tags, err := tagsOf(ctx, s.store.Reader, row)
	if err != nil {
		return nil, err
	}
	return &projectsv1.GetProjectResponse{Project: convert(row, tags[row.ID])}, nil
}

// ToggleProjectManagedScan enables or disables managed scans.
func (s *Projects) ToggleProjectManagedScan(ctx context.Context, r *projectsv1.ToggleProjectManagedScanRequest) (*projectsv1.ToggleProjectManagedScanResponse, error) {
	out, err := s.change(ctx, r.GetProjectName(), func(_ context.Context, _ *ent.Tx, _ *ent.Project, update *ent.ProjectUpdateOne) error {
		if r.GetDiffScan() != nil {
			update.SetManagedDiffScan(r.GetDiffScan().GetEnabled())
		}
		if r.GetFullScan() != nil {
			update.SetManagedFullScan(r.GetFullScan().GetEnabled())
		}
		return nil
	})
	return &projectsv1.ToggleProjectManagedScanResponse{Project: out}, err
}

// AddProjectTags adds tags and creates missing ones.
func (s *Projects) AddProjectTags(ctx context.Context, r *projectsv1.AddProjectTagsRequest) (*projectsv1.AddProjectTagsResponse, error) {
	out, err := s.change(ctx, r.GetProjectName(), func(ctx context.Context, tx *ent.Tx, row *ent.Project, _ *ent.ProjectUpdateOne) error {
		return addTags(ctx, tx, []int64{row.ID}, r.GetTags())
	})
	return &projectsv1.AddProjectTagsResponse{Project: out}, err
}

// maxTags is the maximum number of tags of a request, as in the protos.
const maxTags = 100

// DeleteProjectTags removes tags from this project only. A value with commas is one tag if the deployment has it, even
// if the project does not: otherwise the second of two equal requests would remove other tags than the first.
func (s *Projects) DeleteProjectTags(ctx context.Context, r *projectsv1.DeleteProjectTagsRequest) (*projectsv1.DeleteProjectTagsResponse, error) {
	out, err := s.change(ctx, r.GetProjectName(), func(ctx context.Context, tx *ent.Tx, row *ent.Project, _ *ent.ProjectUpdateOne) error {
		tags, err := names.Split("tags", r.GetTags(), maxTags, func(values []string) ([]string, error) {
			return tx.Tag.Query().Where(store.OneOf(tag.FieldName, values)).Select(tag.FieldName).Strings(ctx)
		})
		if err != nil {
			return err
		}
		return removeTags(ctx, tx, row.ID, tags)
	})
	return &projectsv1.DeleteProjectTagsResponse{Project: out}, err
}

// DeleteProject deletes a project and all its data in one transaction.
func (s *Projects) DeleteProject(ctx context.Context, r *projectsv1.DeleteProjectRequest) (*projectsv1.DeleteProjectResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.lockName(ctx, tx, r.GetProjectName())
		if err != nil {
			return err
		}
		return s.remove(ctx, tx, row)
	})
	if err != nil {
		return nil, err
	}
	return &projectsv1.DeleteProjectResponse{ProjectName: r.GetProjectName()}, nil
}

// remove deletes a locked project with all its data, and revokes the tokens of its CI.
func (s *Projects) remove(ctx context.Context, tx *ent.Tx, row *ent.Project) error {
	tags, err := tagsOf(ctx, tx.Client(), row)
	if err != nil {
		return err
	}
	audit.Change(ctx, "project", row.ID, convert(row, tags[row.ID]), nil)
	if err := s.deleteContents(ctx, tx, row.DeploymentID, row.ID); err != nil {
		return err
	}
	if err := s.tokens.RevokeWhere(ctx, tx, token.ProjectID(row.ID)); err != nil {
		return err
	}
	return tx.Project.DeleteOneID(row.ID).Exec(ctx)
}

// deleteContents deletes what belongs to a project.
func (s *Projects) deleteContents(ctx context.Context, tx *ent.Tx, deploymentID, projectID int64) error {
	if err := s.keepUse(ctx, tx, deploymentID, projectID); err != nil {
		return err
	}
	for _, table := range []string{findingevent.Table, findingmatch.Table, aianalysis.Table, aifix.Table, aimemoryuse.Table} {
		err := s.store.Exec(ctx, tx, `DELETE FROM `+table+` WHERE deployment_id = ? AND finding_id IN
			(SELECT id FROM findings WHERE deployment_id = ? AND project_id = ?)`, deploymentID, deploymentID, projectID)
		if err != nil {
			return err
		}
	}
	// An undo counts what is gone. What was decided and written about it is deleted.
	err := s.store.Exec(ctx, tx, `UPDATE `+triagechangefinding.Table+` SET triage_state = '', triage_reason = NULL, triage_comment = NULL, triaged_at = NULL
		WHERE deployment_id = ? AND finding_id IN (SELECT id FROM findings WHERE deployment_id = ? AND project_id = ?)`, deploymentID, deploymentID, projectID)
	if err != nil {
		return err
	}
	err = s.store.Exec(ctx, tx, `DELETE FROM `+scanpayload.Table+` WHERE deployment_id = ? AND scan_id IN
		(SELECT id FROM scans WHERE deployment_id = ? AND project_id = ?)`, deploymentID, deploymentID, projectID)
	if err != nil {
		return err
	}
	for _, table := range []string{agenticissueevent.Table, agenticissuelabel.Table} {
		err := s.store.Exec(ctx, tx, `DELETE FROM `+table+` WHERE deployment_id = ? AND issue_id IN
			(SELECT id FROM agentic_issues WHERE deployment_id = ? AND project_id = ?)`, deploymentID, deploymentID, projectID)
		if err != nil {
			return err
		}
	}
	err = s.store.Exec(ctx, tx, `DELETE FROM `+ticket.Table+` WHERE deployment_id = ? AND id IN
		(SELECT ticket_id FROM ticket_links WHERE deployment_id = ? AND project_id = ?) AND NOT EXISTS
		(SELECT 1 FROM ticket_links o WHERE o.deployment_id = ? AND o.ticket_id = tickets.id AND o.project_id <> ?)`,
		deploymentID, deploymentID, projectID, deploymentID, projectID)
	if err != nil {
		return err
	}
	for _, table := range contents {
		err := s.store.Exec(ctx, tx, `DELETE FROM `+table+` WHERE deployment_id = ? AND project_id = ?`, deploymentID, projectID)
		if err != nil {
			return err
		}
	}
	return nil
}

// contents are the tables whose rows belong to one project and end with it. Deliveries and runs of workflows are the
// deployment's log: they stay until their time is over.
var contents = []string{
	finding.Table, scan.Table, managedscan.Table, scananswer.Table, scancoverage.Table, freshness.Table, heldclose.Table, identitychange.Table, branchchange.Table,
	exceptionrequest.Table, dependency.Table, policyact.Table, pullrequestfeedback.Table, ticketlink.Table, agenticissue.Table, aimemory.Table,
	projecttag.Table, teamproject.Table, ruleboardproject.Table, detectionexception.Table,
}

// keepUse keeps the analyses and fixes of this month that used the quota or cost money, without what they say about the
// findings.
func (s *Projects) keepUse(ctx context.Context, tx *ent.Tx, deploymentID, projectID int64) error {
	now := time.Now().UTC()
	month := store.Micros(time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC))
	for _, change := range []string{
		`UPDATE ` + aianalysis.Table + ` SET finding_id = 0, content_hash = 0, verdict = '', result = NULL, error = ''
			WHERE status <> 'pending' AND created_at >= ?`,
		`UPDATE ` + aifix.Table + ` SET finding_id = 0, branch = '', pr_url = ''
			WHERE status = 'opened' AND requested_at >= ?`,
	} {
		// A join may read the findings of the project for each of them.
		err := s.store.Exec(ctx, tx, change+` AND deployment_id = ? AND
			(SELECT project_id FROM findings WHERE id = finding_id AND +deployment_id = ?) = ?`, month, deploymentID, deploymentID, projectID)
		if err != nil {
			return err
		}
	}
	return nil
}

// change changes one project in a transaction and returns the result.
func (s *Projects) change(ctx context.Context, name string, fn func(context.Context, *ent.Tx, *ent.Project, *ent.ProjectUpdateOne) error) (out *projectsv1.Project, err error) {
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.lockName(ctx, tx, name)
		if err != nil {
			return err
		}
		tags, err := tagsOf(ctx, tx.Client(), row)
		if err != nil {
			return err
		}
		before := convert(row, tags[row.ID])
		update := row.Update()
		if err := fn(ctx, tx, row, update); err != nil {
			return err
		}
		if len(update.Mutation().Fields())+len(update.Mutation().ClearedFields()) > 0 {
			former := row
			if row, err = update.Save(ctx); err != nil {
				return err
			}
			if err := branches.Record(ctx, tx, former, row); err != nil {
				return err
			}
		}
		if tags, err = tagsOf(ctx, tx.Client(), row); err != nil {
			return err
		}
		out = convert(row, tags[row.ID])
		audit.Change(ctx, "project", row.ID, before, out)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// lockName is lock for the project with a name.
func (s *Projects) lockName(ctx context.Context, tx *ent.Tx, name string) (*ent.Project, error) {
	return s.lock(ctx, tx, byname.Is(ctx, name), noProject(name))
}

// lock finds a project and locks it until the end of the transaction. missing is the error if there is none.
func (s *Projects) lock(ctx context.Context, tx *ent.Tx, which predicate.Project, missing error) (*ent.Project, error) {
	query := tx.Project.Query().Where(which)
	if s.store.Postgres() {
		query.ForUpdate()
	}
	row, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, missing
	}
	return row, err
}

func find(ctx context.Context, db *ent.Client, name string) (*ent.Project, error) {
	row, err := db.Project.Query().Where(byname.Is(ctx, name)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, noProject(name)
	}
	return row, err
}

func noProject(name string) error { return apierr.NotFound("project %q not found", name) }

func convert(row *ent.Project, tags []string) *projectsv1.Project {
	out := &projectsv1.Project{
		Id: row.ID, Name: row.Name, Url: row.URL, Tags: tags, CreatedAt: timestamppb.New(store.Time(row.CreatedAt)),
		DefaultBranch: row.DefaultBranch, PrimaryBranch: row.PrimaryBranch,
		RepositoryUrl: row.RepositoryURL, IgnoredFiles: row.IgnoredFiles, ProductIgnoredFiles: productIgnoredFiles(row.ProductIgnoredFiles),
		ManagedScanConfig: &projectsv1.ManagedScanConfig{
			DiffScan: &projectsv1.DiffScan{Enabled: row.ManagedDiffScan},
			FullScan: &projectsv1.FullScan{Enabled: row.ManagedFullScan},
		},
		Archived: row.ArchivedAt != nil, LeftHostAt: store.Timestamp(row.LeftHostAt),
	}
	if row.RepositoryID != nil {
		out.RepositoryId = *row.RepositoryID
	}
	if out.PrimaryBranch == "" {
		out.PrimaryBranch = row.DefaultBranch
	}
	if row.LatestScanAt != nil {
		out.LatestScanAt = timestamppb.New(store.Time(*row.LatestScanAt))
	}
	return out
}
