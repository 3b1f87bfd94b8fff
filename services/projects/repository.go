package projects

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apierr"
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

// bindRepository sets the repository with the project's code.
func bindRepository(update *ent.ProjectUpdateOne, repository string) {
	by := boundByAdmin
	if repository == "" {
		by = ""
	}
	update.SetRepositoryURL(repository).SetBoundBy(by)
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
