package scm

import (
	"context"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/syncjob"
	"github.com/palisade/palisade/services/scm/webhook"
)

// projects finds the projects of the event's repository, by id: projects that are bound to it by id or, if they do not
// know its id yet, by URL, and a project without a binding that has its name. Hosts ignore case in names. A project of
// another repository that only has the name is not among them.
func (w *eventActions) projects(ctx context.Context, db *ent.Client, args eventArgs) ([]*ent.Project, error) {
	about, address := args.Event, args.repositoryURL()
	where := []predicate.Project{
		project.NameKey(strings.ToLower(about.Repository)), store.OneOf(project.FieldRepositoryURL, spellings(address)),
	}
	if about.RepositoryID != "" {
		where = append(where, project.RepositoryID(about.RepositoryID))
	}
	rows, err := db.Project.Query().Where(project.Or(where...)).Order(ent.Asc(project.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	var bound []*ent.Project
	var named *ent.Project
	for _, row := range rows {
		switch {
		case !isAt(row, args.BaseURL):
		case row.RepositoryURL != "" || row.RepositoryID != nil:
			if isBoundTo(row, about.RepositoryID, address) {
				bound = append(bound, row)
			}
		case named == nil || row.Name == about.Repository:
			named = row
		}
	}
	if named != nil {
		bound = append(bound, named)
	}
	return bound, nil
}

// repositoryURL is the URL of the event's repository at the host of the connection.
func (a eventArgs) repositoryURL() string {
	return webhook.RepositoryURL(a.Host, a.BaseURL, a.Event.Repository)
}

// identify stores the id of the event's repository with the projects that are bound to its URL and do not know it yet.
// If the event shows that the repository has another name than its projects know, it is read in the background: GitLab
// does not tell groups that a project was renamed.
func (w *eventActions) identify(ctx context.Context, tx *ent.Tx, args eventArgs) error {
	id := args.Event.RepositoryID
	if id == "" {
		return nil
	}
	addresses := append(spellings(args.repositoryURL()), spellings(args.formerURL())...)
	rows, err := tx.Project.Query().Where(project.Or(
		project.RepositoryID(id), project.And(project.RepositoryIDIsNil(), store.OneOf(project.FieldRepositoryURL, addresses)),
	)).Order(ent.Asc(project.FieldID)).All(ctx)
	if err != nil {
		return err
	}
	renamed := false
	for _, row := range rows {
		switch {
		case !isAt(row, args.BaseURL):
		case row.RepositoryID != nil:
			renamed = renamed || !sameRepository(row.RepositoryURL, args.repositoryURL())
		default:
			// An administrator may bind the project to another repository at the same time.
			n, err := tx.Project.Update().Where(project.ID(row.ID), project.RepositoryIDIsNil(), project.RepositoryURL(row.RepositoryURL)).
				SetRepositoryID(id).Save(ctx)
			if err != nil {
				return err
			}
			if n > 0 {
				after := *row
				after.RepositoryID = &id
				audit.Change(ctx, "project", row.ID, auditedProject(row), auditedProject(&after))
			}
		}
	}
	if !renamed || args.Event.Kind == webhook.Changed || args.Event.Kind == webhook.Deleted {
		return nil
	}
	configs, err := tx.ScmConfig.Query().Order(ent.Asc(scmconfig.FieldID)).All(ctx)
	if err != nil {
		return err
	}
	config, name, _ := connect.Reached(configs, &ent.Project{RepositoryURL: args.repositoryURL()})
	if config == nil {
		return nil
	}
	return jobs.FromContext(ctx).Enqueue(ctx, syncjob.Args{DeploymentID: config.DeploymentID, ConfigID: config.ID, Repository: name}, nil)
}

// lockProjects serializes imports into projects, triage and this event. On SQLite all writes are serialized anyway. It
// returns the projects that still exist.
func (w *eventActions) lockProjects(ctx context.Context, tx *ent.Tx, rows []*ent.Project) ([]*ent.Project, error) {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	query := tx.Project.Query().Where(store.WithIDs[predicate.Project](ids)).Order(ent.Asc(project.FieldID))
	if w.store.Postgres() {
		query.ForUpdate()
	}
	return query.All(ctx)
}
