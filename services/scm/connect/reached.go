package connect

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/palisade/palisade/ent"
)

// Reached finds of connections, in the order of their ids, the one with the innermost namespace that a project's
// repository is in, and the repository's name at that host ("acme/web"). Without one, why says what is missing and who
// mends it. It is the one check of what a deployment's credential is used for: the repository is what a synchronisation
// or an administrator has bound to the project. The project's name and the URL that an upload gave say nothing, for
// whoever may upload chooses them.
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

// covering finds the connection of a repository's URL, and the repository's name there.
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

// inNamespace compares the path of a repository with that of a connection's namespace. Names have no case at the hosts.
func inNamespace(path string, config *ent.ScmConfig) bool {
	prefix := config.Namespace
	if u, err := url.Parse(config.BaseURL); err == nil {
		prefix = u.Path + "/" + config.Namespace
	}
	path, prefix = strings.ToLower(strings.Trim(path, "/")), strings.ToLower(strings.Trim(prefix, "/"))+"/"
	return strings.HasPrefix(path, prefix) && !strings.Contains(path, "..")
}

// sameOrigin compares the scheme, too: a credential for https never goes over http.
func sameOrigin(a, b string) bool {
	first, err := url.Parse(a)
	second, err2 := url.Parse(b)
	return err == nil && err2 == nil && first.Scheme == second.Scheme && first.User == nil && strings.EqualFold(first.Host, second.Host)
}
