package projects

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/projects/codehost"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/syncjob"
)

// boundByAdmin is the value of bound_by for a repository set by an administrator: a synchronisation does not change it.
const boundByAdmin = "admin"

// boundBySync is the value of bound_by for a repository that a synchronisation describes.
const boundBySync = "sync"

// checkRepository rejects anything but a plain web URL of a repository; "" removes the binding.
func checkRepository(raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "",
		strings.Trim(u.Path, "/") == "", slices.Contains(strings.Split(u.Path, "/"), ".."), strings.ContainsFunc(raw, unicode.IsSpace):
		return apierr.InvalidArgument("repository_url",
			"repository_url must be the web URL of a repository, as https://github.com/acme/web, without user, query and fragment, got %q", raw)
	}
	return nil
}

// bindRepository sets the repository with the project's code. What the host said about another repository ends: its id,
// that it is archived, and that it left the host.
func (s *Projects) bindRepository(ctx context.Context, tx *ent.Tx, row *ent.Project, update *ent.ProjectUpdateOne, repository string) error {
	by := boundByAdmin
	if repository == "" {
		by = ""
	}
	update.SetRepositoryURL(repository).SetBoundBy(by)
	if repository != "" && strings.EqualFold(codehost.Plain(repository), codehost.Plain(row.RepositoryURL)) {
		return nil
	}
	update.ClearRepositoryID().ClearLeftHostAt().ClearHostArchived()
	if row.HostArchived == nil || *row.HostArchived {
		update.ClearArchivedAt()
	}
	return s.readRepository(ctx, tx, repository)
}

// readRepository reads a repository in the background, so that its id is known. A host that is not connected is read
// when it is.
func (s *Projects) readRepository(ctx context.Context, tx *ent.Tx, repository string) error {
	if repository == "" {
		return nil
	}
	configs, err := tx.ScmConfig.Query().Order(scmconfig.ByID()).All(ctx)
	if err != nil {
		return err
	}
	config, name, _ := connect.Reached(configs, &ent.Project{RepositoryURL: repository})
	if config == nil || connect.Callable(config) != nil {
		return nil
	}
	return s.jobs.Enqueue(ctx, syncjob.Args{DeploymentID: config.DeploymentID, ConfigID: config.ID, Repository: name}, nil)
}

// setURL sets the URL for links. The URL of a synchronised project comes from the source-code host, which finds
// the project by it. Clients that send it back unchanged are no error.
func setURL(row *ent.Project, update *ent.ProjectUpdateOne, link string) error {
	if link == row.URL {
		return nil
	}
	if row.BoundBy == boundBySync {
		return apierr.FailedPrecondition("the url of this project comes from its source-code host, which synchronises it: %s", apierr.Quote(row.URL))
	}
	update.SetURL(link)
	return nil
}
