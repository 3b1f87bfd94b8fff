package scm

import (
	"context"
	"net/url"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/scm/host"
)

// Open opens the host of a connection of the context's deployment. Errors are *host.Error, but for a credential that
// cannot be unsealed. With an application it calls the host.
func (c *Connections) Open(ctx context.Context, row *ent.ScmConfig) (host.Host, error) {
	return c.open(ctx, row)
}

// Covering returns of connections, in the order of their ids, the one with the innermost namespace that a project's
// repository is in, and the name of the repository at that host ("acme/web"). nil when there is none.
func Covering(configs []*ent.ScmConfig, row *ent.Project) (found *ent.ScmConfig, repository string) {
	path := row.Name
	if u, err := url.Parse(row.URL); err == nil && row.URL != "" {
		path = u.Path
	}
	for _, config := range configs {
		if row.URL != "" && !sameOrigin(row.URL, config.BaseURL) || !inNamespace(path, row.URL, config) {
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
	if u, err := url.Parse(found.BaseURL); err == nil && row.URL != "" {
		repository = strings.Trim(strings.TrimPrefix(path, u.Path), "/")
	}
	return found, strings.TrimSuffix(repository, ".git")
}
