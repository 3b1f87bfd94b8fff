package connect

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/palisade/palisade/ent"
)

// Reached returns the connection, of those in id order, with the innermost namespace that contains a project's
// repository, and the repository's name at that host ("acme/web"). If there is none, why says what is missing and who
// can fix it. It is the only check before a deployment's credential is used: the repository must have been bound to the
// project by a synchronisation or an administrator. The project's name and the URL of an upload are not trusted,
// because any uploader chooses them.
func Reached(configs []*ent.ScmConfig, row *ent.Project) (config *ent.ScmConfig, repository, why string) {
	if row.RepositoryURL == "" {
		return nil, "", fmt.Sprintf("the project %s is bound to no repository, and what an upload names is not trusted: "+
			"synchronise its source-code host, or have an administrator set repository_url of the project", row.Name)
	}
	if config, repository = covering(configs, row.RepositoryURL); config == nil {
		why = fmt.Sprintf("no source-code host is configured for project %s: no connection covers its repository %s", row.Name, row.RepositoryURL)
	}
	return config, repository, why
}

// covering finds the connection for a repository's URL, and the repository's name there.
func covering(configs []*ent.ScmConfig, address string) (found *ent.ScmConfig, repository string) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, ""
	}
	path := at.Path
	for _, config := range configs {
		if !sameOrigin(address, config.BaseURL) || !inNamespace(path, config) {
			continue
		}
		if found == nil || len(config.Namespace) > len(found.Namespace) {
			found = config
		}
	}
	if found == nil {
		return nil, ""
	}
	repository = strings.Trim(path, "/")
	if u, err := url.Parse(found.BaseURL); err == nil {
		repository = strings.Trim(strings.TrimPrefix(path, u.Path), "/")
	}
	return found, strings.TrimSuffix(repository, ".git")
}

// inNamespace reports whether a repository's path is in a connection's namespace. Hosts ignore case in names.
func inNamespace(path string, config *ent.ScmConfig) bool {
	prefix := config.Namespace
	if u, err := url.Parse(config.BaseURL); err == nil {
		prefix = u.Path + "/" + config.Namespace
	}
	path, prefix = strings.ToLower(strings.Trim(path, "/")), strings.ToLower(strings.Trim(prefix, "/"))+"/"
	return strings.HasPrefix(path, prefix) && !strings.Contains(path, "..")
}

// sameOrigin also compares the scheme: a credential for https is never sent over http.
func sameOrigin(a, b string) bool {
	first, err := url.Parse(a)
	second, err2 := url.Parse(b)
	return err == nil && err2 == nil && first.Scheme == second.Scheme && first.User == nil && strings.EqualFold(first.Host, second.Host)
}
