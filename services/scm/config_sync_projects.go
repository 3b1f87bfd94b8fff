package scm

import (
	"context"
	"net/url"
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

// Values of a project's bound_by: who bound it to its repository. A synchronisation does not change a binding by an
// administrator.
const (
	boundBySync  = "sync"
	boundByAdmin = "admin"
)

// maxName is the maximum length of a project name, in runes.
const maxName = 255

// save creates or updates the projects of repositories. Project names are matched case-insensitively, as scans do.
func (s *repositorySync) save(ctx context.Context, batch []host.Repository) error {
	if len(batch) == 0 {
		return nil
	}
	keys := make([]string, len(batch))
	for i, repository := range batch {
		keys[i] = strings.ToLower(repository.Name)
	}
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		rows, err := tx.Project.Query().Where(store.OneOf(project.FieldNameKey, keys)).Order(ent.Asc(project.FieldID)).All(ctx)
		if err != nil {
			return err
		}
		existing := map[string]*ent.Project{}
		for _, row := range rows {
			if existing[row.NameKey] == nil {
				existing[row.NameKey] = row
			}
			existing["="+row.Name] = row
		}
		var created []*ent.ProjectCreate
		var fresh []string
		now := store.Now()
		for i, repository := range batch {
			row := existing["="+repository.Name]
			if row == nil {
				row = existing[keys[i]]
			}
			if s.debug {
				s.log.InfoContext(ctx, "repository", "config_id", s.config.ID, "name", repository.Name, "archived", repository.Archived, "known", row != nil)
			}
			switch {
			case repository.Name == "" || utf8.RuneCountInString(repository.Name) > maxName:
				s.log.WarnContext(ctx, "a repository's name cannot be a project's", "config_id", s.config.ID, "repository_id", repository.ID)
			case row == nil && projectname.Check(projectname.Normal(repository.Name)) != "":
				s.log.WarnContext(ctx, "a repository was left out: the name of a project "+projectname.Check(projectname.Normal(repository.Name)),
					"config_id", s.config.ID, "repository_id", repository.ID)
			case row == nil:
				repository.Name = projectname.Normal(repository.Name)
				created, fresh = append(created, s.create(ctx, tx, repository, now)), append(fresh, repository.Name)
			default:
				if err := s.update(ctx, row, repository); err != nil {
					return err
				}
			}
		}
		if len(created) == 0 {
			return nil
		}
		if err := tx.Project.CreateBulk(created...).OnConflictColumns(project.FieldDeploymentID, project.FieldName).Ignore().Exec(ctx); err != nil {
			return err
		}
		return access.JoinDefaultTeams(ctx, tx, now, fresh...)
	})
}

// create prepares a new project. It inherits the configuration's setting for automatic scans.
func (s *repositorySync) create(ctx context.Context, tx *ent.Tx, r host.Repository, now int64) *ent.ProjectCreate {
	deploymentID, _ := tenant.FromContext(ctx)
	row := tx.Project.Create().SetDeploymentID(deploymentID).SetName(r.Name).SetNameKey(strings.ToLower(r.Name)).SetURL(webURL(r.URL)).
		SetRepositoryURL(webURL(r.URL)).SetBoundBy(boundBySync).
		SetDefaultBranch(gitref.Full(r.DefaultBranch)).SetVisibility(r.Visibility).SetScmType(s.config.Type).
		SetManagedFullScan(s.config.AutoScan).SetManagedDiffScan(s.config.AutoScan && s.config.DiffEnabled).SetCreatedAt(now)
	if r.Archived {
		row.SetArchivedAt(now)
	}
	return row
}

// update updates a project. A project at another host that only shares the name is left unchanged.
func (s *repositorySync) update(ctx context.Context, row *ent.Project, r host.Repository) error {
	if row.URL != "" && !sameHost(row.URL, s.config.BaseURL) {
		s.log.InfoContext(ctx, "a repository has the name of a project at another host", "config_id", s.config.ID, "name", r.Name)
		return nil
	}
	update := row.Update()
	link := webURL(r.URL)
	if link != "" && link != row.URL {
		update.SetURL(link)
	}
	if link != "" && (row.RepositoryURL != link || row.BoundBy == "") && row.BoundBy != boundByAdmin {
		update.SetRepositoryURL(link).SetBoundBy(boundBySync)
	}
	if branch := gitref.Full(r.DefaultBranch); branch != "" && branch != row.DefaultBranch {
		update.SetDefaultBranch(branch)
	}
	if r.Visibility != row.Visibility {
		update.SetVisibility(r.Visibility)
	}
	if s.config.Type != row.ScmType {
		update.SetScmType(s.config.Type)
	}
	if r.Archived && row.ArchivedAt == nil {
		update.SetArchivedAt(store.Now())
	}
	if !r.Archived && row.ArchivedAt != nil {
		update.ClearArchivedAt()
	}
	if len(update.Mutation().Fields()) == 0 && len(update.Mutation().ClearedFields()) == 0 {
		return nil
	}
	return update.Exec(ctx)
}

func sameHost(a, b string) bool {
	first, err := url.Parse(a)
	second, err2 := url.Parse(b)
	return err == nil && err2 == nil && strings.EqualFold(first.Host, second.Host)
}
