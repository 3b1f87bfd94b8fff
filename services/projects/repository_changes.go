package projects

import (
	"context"
	"log/slog"
	"strconv"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/tasktoken"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/projects/branches"
	"github.com/palisade/palisade/services/projects/byname"
	"github.com/palisade/palisade/services/projects/projectname"
	"github.com/palisade/palisade/services/scm/connect"
)

// Changes is the part of the service group "projects" that changes repositories and their CI.
type Changes struct {
	projectsv1.UnimplementedRepositoryChangesServiceServer
	store        *store.Store
	projects     *Projects
	repositories *Repositories
	hosts        *connect.Hosts
	jobs         *jobs.Jobs
	tasks        *tasktoken.Tokens
	tokens       *access.Tokens
	publicURL    string
	log          *slog.Logger
}

// NewChanges serves changes of repositories.
func NewChanges(d *server.Deps, projects *Projects, repositories *Repositories) *Changes {
	return &Changes{
		store: d.Store, projects: projects, repositories: repositories, hosts: connect.New(d.Store, d.Keyring, d.Egress, d.Config.EntraURL), jobs: d.Jobs,
		tasks: tasktoken.New(d.Store, d.Keyring, d.Config.BaseURL()), tokens: projects.tokens, publicURL: d.Config.BaseURL(), log: d.Log,
	}
}

// The operations of TagsChanges. The empty one adds, because clients leave out the first word of an enum.
const (
	addTagsWord    = "ADD_TAGS"
	removeTagsWord = "REMOVE_TAGS"
	setTagsWord    = "SET_TAGS"
)

// EditRepo changes one repository.
func (s *Changes) EditRepo(ctx context.Context, r *projectsv1.EditRepoRequest) (*projectsv1.EditRepoResponse, error) {
	if r.GetPrimaryBranch() != "" {
		if err := checkPrimaryBranch("primaryBranch", r.GetPrimaryBranch()); err != nil {
			return nil, err
		}
	}
	for _, change := range r.GetTagsChanges() {
		if change.GetOperation() == setTagsWord && len(r.GetTagsChanges()) > 1 {
			return nil, apierr.InvalidArgument("tagsChanges", "tagsChanges must have no other change beside %s", setTagsWord)
		}
	}
	response := &projectsv1.EditRepoResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.projects.lock(ctx, tx, byIDOrName(ctx, r.GetIdOrName()), apierr.NotFound("repository %q not found", r.GetIdOrName()))
		if err != nil {
			return err
		}
		err = s.audited(ctx, tx, []*ent.Project{row}, func() error {
			if err := s.editFields(ctx, tx, row, r); err != nil {
				return err
			}
			return editTags(ctx, tx, row.ID, r.GetTagsChanges())
		})
		if err != nil {
			return err
		}
		if row, err = tx.Project.Get(ctx, row.ID); err != nil {
			return err
		}
		if r.GetPrimaryBranch() != "" {
			if err := warnUnscanned(ctx, tx, row); err != nil {
				return err
			}
		}
		response.Repo, err = s.repositories.describe(ctx, tx.Client(), row)
		return err
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// byIDOrName selects by id if the text is a number.
func byIDOrName(ctx context.Context, text string) predicate.Project {
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		return project.ID(id)
	}
	return byname.Is(ctx, text)
}

func (s *Changes) editFields(ctx context.Context, tx *ent.Tx, row *ent.Project, r *projectsv1.EditRepoRequest) error {
	update := row.Update()
	setScans(update.Mutation(), r.GetManagedScans(), r.GetAiScans())
	if r.GetPrimaryBranch() != "" {
		update.SetPrimaryBranch(storedBranch(r.GetPrimaryBranch()))
	}
	if name := projectname.Normal(r.GetName()); name != "" && name != row.Name {
		if err := checkRename(ctx, tx, row, name); err != nil {
			return err
		}
		update.SetName(name).SetNameKey(strings.ToLower(name))
		renamed := remediation.Renaming{Of: remediation.RefProject, From: row.Name, To: name}
		if err := renamed.Apply(ctx, s.store, tx); err != nil {
			return err
		}
	}
	if len(update.Mutation().Fields()) == 0 {
		return nil
	}
	after, err := update.Save(ctx)
	if ent.IsConstraintError(err) {
		return errNameTaken(r.GetName())
	}
	if err != nil {
		return err
	}
	return branches.Record(ctx, tx, row, after)
}

// checkRename rejects names that are invalid or taken. Scans find their project by the name in any case.
func checkRename(ctx context.Context, tx *ent.Tx, row *ent.Project, name string) error {
	if rule := projectname.Check(name); rule != "" {
		return apierr.InvalidArgument("name", "the name of a project %s; got %s", rule, apierr.Quote(name))
	}
	if row.BoundBy == boundBySync {
		return apierr.FailedPrecondition("the name of this project comes from its source-code host, which synchronises it: %s", apierr.Quote(row.Name))
	}
	taken, err := tx.Project.Query().Where(project.NameKey(strings.ToLower(name)), project.IDNEQ(row.ID)).Exist(ctx)
	if err == nil && taken {
		err = errNameTaken(name)
	}
	return err
}

func errNameTaken(name string) error {
	return apierr.AlreadyExists("there is a project with the name %s already", apierr.Quote(name))
}

func editTags(ctx context.Context, tx *ent.Tx, projectID int64, changes []*projectsv1.TagsChanges) error {
	for _, change := range changes {
		var err error
		switch change.GetOperation() {
		case setTagsWord:
			err = replaceTags(ctx, tx, []int64{projectID}, change.GetTags())
		case removeTagsWord:
			err = removeTags(ctx, tx, projectID, change.GetTags())
		case addTagsWord, "":
			err = addTags(ctx, tx, []int64{projectID}, change.GetTags())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setScans sets the settings of scans that are present.
func setScans(m *ent.ProjectMutation, managed *projectsv1.ManagedScanSettings, ai *projectsv1.AiScanSettings) {
	if managed != nil && managed.DiffScan != nil {
		m.SetManagedDiffScan(managed.GetDiffScan())
	}
	if managed != nil && managed.FullScan != nil {
		m.SetManagedFullScan(managed.GetFullScan())
	}
	if ai != nil && ai.FullScan != nil {
		m.SetAiFullScan(ai.GetFullScan())
	}
}

// audited records what change does to locked projects.
func (s *Changes) audited(ctx context.Context, tx *ent.Tx, rows []*ent.Project, change func() error) error {
	tags, err := tagsOf(ctx, tx.Client(), rows...)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	ids, before := make([]int64, len(rows)), make(map[int64]*projectsv1.Repository, len(rows))
	for i, row := range rows {
		ids[i], before[row.ID] = row.ID, settingsOf(row, tags[row.ID])
	}
	after, err := tx.Project.Query().Where(store.WithIDs[predicate.Project](ids)).Order(project.ByID()).All(ctx)
	if err != nil {
		return err
	}
	if tags, err = tagsOf(ctx, tx.Client(), after...); err != nil {
		return err
	}
	for _, row := range after {
		audit.Change(ctx, "project", row.ID, before[row.ID], settingsOf(row, tags[row.ID]))
	}
	return nil
}

// settingsOf are the parts of a repository that callers set, for the audit trail.
func settingsOf(row *ent.Project, tags []string) *projectsv1.Repository {
	out := &projectsv1.Repository{
		Id: row.ID, Name: row.Name, Tags: tags, AiScans: &projectsv1.RepositoryAiScans{FullScan: row.AiFullScan},
		ManagedScans: &projectsv1.RepositoryManagedScans{DiffScan: row.ManagedDiffScan, FullScan: row.ManagedFullScan},
	}
	if row.PrimaryBranch != "" {
		out.PrimaryRef = &projectsv1.RepositoryPrimaryRef{Ref: row.PrimaryBranch, IsOverride: true}
	}
	return out
}
