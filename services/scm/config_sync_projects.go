package scm

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/projects/projectname"
	"github.com/palisade/palisade/services/scm/host"
)

// Values of a project's bound_by: who bound it to its repository. A synchronisation does not bind a project to another
// repository if an administrator bound it.
const (
	boundBySync  = "sync"
	boundByAdmin = "admin"
)

// save updates the projects of repositories, and creates missing ones.
func (s *repositorySync) save(ctx context.Context, batch []host.Repository) error {
	if len(batch) == 0 {
		return nil
	}
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error { return s.saveIn(ctx, tx, batch) })
}

func (s *repositorySync) saveIn(ctx context.Context, tx *ent.Tx, batch []host.Repository) error {
	b, err := s.read(ctx, tx, batch)
	if err != nil {
		return err
	}
	for _, repository := range batch {
		if err := b.save(ctx, repository); err != nil {
			return err
		}
	}
	if err := b.create(ctx); err != nil {
		return err
	}
	b.audit(ctx)
	return nil
}

// save updates the projects of a repository, or prepares a new one.
func (b *projectBatch) save(ctx context.Context, r host.Repository) error {
	rows := b.projectsOf(r)
	if b.debug {
		b.log.InfoContext(ctx, "repository", "config_id", b.config.ID, "name", r.Name, "archived", r.Archived, "known", len(rows) > 0)
	}
	if r.Name == "" || utf8.RuneCountInString(r.Name) > projectname.Max {
		b.log.WarnContext(ctx, "a repository's name cannot be a project's", "config_id", b.config.ID, "repository_id", r.ID)
		return nil
	}
	for _, row := range rows {
		if err := b.update(ctx, row, r); err != nil {
			return err
		}
	}
	if len(rows) > 0 {
		return nil
	}
	free, err := b.freeName(ctx, r)
	if err != nil || !free || b.onlyKnown {
		return err
	}
	if rule := projectname.Check(projectname.Normal(r.Name)); rule != "" {
		b.log.WarnContext(ctx, "a repository was left out: the name of a project "+rule, "config_id", b.config.ID, "repository_id", r.ID)
		return nil
	}
	b.fresh = append(b.fresh, r)
	return nil
}

// freeName takes the name of a new repository from the projects of repositories that had it before. It returns false if
// the name must stay where it is.
func (b *projectBatch) freeName(ctx context.Context, r host.Repository) (bool, error) {
	key := strings.ToLower(projectname.Normal(r.Name))
	var former []*ent.Project
	for _, row := range b.rows {
		switch {
		case row.NameKey != key:
		case b.keepsName(row) || row.RepositoryID == nil || r.ID == "":
			b.log.InfoContext(ctx, "a repository has the name of a project that is not bound to it", "config_id", b.config.ID, "project_id", row.ID, "name", r.Name)
			return false, nil
		default:
			former = append(former, row)
		}
	}
	for _, row := range former {
		if err := b.moveAside(ctx, row); err != nil {
			return false, err
		}
	}
	return true, nil
}

// update stores what the host says about a repository with one of its projects.
func (b *projectBatch) update(ctx context.Context, row *ent.Project, r host.Repository) error {
	name, err := b.followedName(ctx, row, r)
	if err != nil {
		return err
	}
	update := row.Update()
	if name != row.Name {
		update.SetName(name).SetNameKey(strings.ToLower(name))
	}
	link := webURL(r.URL)
	if link != "" && link != row.URL {
		update.SetURL(link)
	}
	spelled := row.BoundBy == boundByAdmin && sameRepository(row.RepositoryURL, link) // as the administrator wrote it
	if link != "" && link != row.RepositoryURL && !spelled {
		update.SetRepositoryURL(link)
	}
	if link != "" && row.BoundBy == "" {
		update.SetBoundBy(boundBySync)
	}
	if r.ID != "" && row.RepositoryID == nil && (link != "" || row.RepositoryURL != "") {
		update.SetRepositoryID(r.ID)
	}
	if branch := gitref.Full(r.DefaultBranch); branch != "" && branch != row.DefaultBranch {
		update.SetDefaultBranch(branch)
	}
	if r.Visibility != row.Visibility {
		update.SetVisibility(r.Visibility)
	}
	if b.config.Type != row.ScmType {
		update.SetScmType(b.config.Type)
	}
	if row.LeftHostAt != nil {
		update.ClearLeftHostAt()
	}
	setArchived(update, row, r.Archived)
	return b.change(ctx, row, update, false)
}

// setArchived follows the host if it says something else than before. What an administrator decides stays until then.
func setArchived(update *ent.ProjectUpdateOne, row *ent.Project, archived bool) {
	if row.HostArchived == nil || archived != *row.HostArchived {
		update.SetHostArchived(archived)
	}
	before := row.ArchivedAt != nil
	if row.HostArchived != nil {
		before = *row.HostArchived
	}
	if archived == before {
		return
	}
	switch {
	case !archived:
		update.ClearArchivedAt()
	case row.ArchivedAt == nil:
		update.SetArchivedAt(store.Now())
	}
}

// create creates the projects of new repositories. They inherit the configuration's setting for automatic scans.
func (b *projectBatch) create(ctx context.Context) error {
	if len(b.fresh) == 0 {
		return nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	now := store.Now()
	created, names := make([]*ent.ProjectCreate, len(b.fresh)), make([]string, len(b.fresh))
	for i, r := range b.fresh {
		names[i] = projectname.Normal(r.Name)
		created[i] = b.tx.Project.Create().SetDeploymentID(deploymentID).SetName(names[i]).SetNameKey(strings.ToLower(names[i])).SetURL(webURL(r.URL)).
			SetRepositoryURL(webURL(r.URL)).SetBoundBy(boundBySync).
			SetDefaultBranch(gitref.Full(r.DefaultBranch)).SetVisibility(r.Visibility).SetScmType(b.config.Type).SetHostArchived(r.Archived).
			SetManagedFullScan(b.config.AutoScan).SetManagedDiffScan(b.config.AutoScan && b.config.DiffEnabled).SetCreatedAt(now)
		if r.ID != "" && webURL(r.URL) != "" {
			created[i].SetRepositoryID(r.ID)
		}
		if r.Archived {
			created[i].SetArchivedAt(now)
		}
	}
	if err := b.tx.Project.CreateBulk(created...).OnConflictColumns(project.FieldDeploymentID, project.FieldName).Ignore().Exec(ctx); err != nil {
		return err
	}
	return access.JoinDefaultTeams(ctx, b.tx, now, names...)
}
