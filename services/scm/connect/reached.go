package connect

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/palisade/palisade/ent"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/scm/host"
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
	for _, config := range configs {
		if !sameOrigin(address, config.BaseURL) {
			continue
		}
		name := nameAt(at.Path, config)
		if inNamespace(name, config.Namespace) && (found == nil || len(config.Namespace) > len(found.Namespace)) {
			found, repository = config, name
		}
	}
	return found, repository
}

// nameAt is the full name of the repository at a path of a connection's host; empty if the host has another path.
func nameAt(path string, config *ent.ScmConfig) string {
	path = strings.Trim(path, "/")
	if u, err := url.Parse(config.BaseURL); err == nil && strings.Trim(u.Path, "/") != "" {
		base := strings.Trim(u.Path, "/") + "/"
		if len(path) < len(base) || !strings.EqualFold(path[:len(base)], base) {
			return ""
		}
		path = path[len(base):]
	}
	if TypeOf(config.Type) == scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS {
		return host.AzureName(path)
	}
	return strings.TrimSuffix(path, ".git")
}

// inNamespace reports whether a repository is in a namespace. Hosts ignore case in names.
func inNamespace(repository, namespace string) bool {
	return strings.HasPrefix(strings.ToLower(repository), strings.ToLower(namespace)+"/") && !strings.Contains(repository, "..")
}

// sameOrigin also compares the scheme: a credential for https is never sent over http.
func sameOrigin(a, b string) bool {
	first, err := url.Parse(a)
	second, err2 := url.Parse(b)
	return err == nil && err2 == nil && first.Scheme == second.Scheme && first.User == nil && strings.EqualFold(first.Host, second.Host)
}
