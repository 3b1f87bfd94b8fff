package connect

import (
	"context"
	"net/url"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scmconfig"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/scm/clone"
	"github.com/palisade/palisade/services/scm/host"
)

// Repository returns where the code of a project is, and the credential to read it. Errors are ent's for a missing
// project, and [*clone.Error] if the host is not connected or fails. For an application it sends requests to the host.
func (c *Hosts) Repository(ctx context.Context, projectID int64) (clone.Source, error) {
	row, err := c.store.Reader.Project.Query().Where(project.ID(projectID)).Only(ctx)
	if err != nil {
		return clone.Source{}, err
	}
	configs, err := c.store.Reader.ScmConfig.Query().Order(ent.Asc(scmconfig.FieldID)).All(ctx)
	if err != nil {
		return clone.Source{}, err
	}
	config, _, why := Reached(configs, row)
	if config == nil {
		return clone.Source{}, &clone.Error{Text: why, Permanent: true}
	}
	token, err := c.gitToken(ctx, credentialsOf(config))
	if text := ErrorText(err); text != "" {
		passing := host.Is(err, host.RateLimited) || host.Is(err, host.TimedOut) || host.Is(err, host.Unreachable) || host.Is(err, host.Failed)
		return clone.Source{}, &clone.Error{Text: text, Permanent: !passing}
	}
	kind := TypeOf(config.Type)
	return clone.Source{
		URL: gitURL(kind, row.RepositoryURL), Username: gitUser(kind), Password: token, MultiACK: kind == scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS,
	}, err
}

// gitToken is the stored access token, or a fresh token of the application.
func (c *Hosts) gitToken(ctx context.Context, with Credentials) (string, error) {
	token, err := c.seals.Open(ConfigTable, AccessToken, with.DeploymentID, with.ConfigID, with.SealedToken)
	if err != nil || token != "" {
		return token, err
	}
	opened, err := c.OpenWith(ctx, with)
	if err != nil {
		return "", err
	}
	return host.Credential(opened), nil
}

// gitURL is the URL that Git clones: the web URL of the repository with the suffix that all hosts but one accept.
func gitURL(kind scmv1.ScmType, address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		address = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	if kind == scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS { // there, the suffix is part of a name
		return strings.TrimRight(address, "/")
	}
	return strings.TrimSuffix(strings.TrimRight(address, "/"), ".git") + ".git"
}

// gitUser is the user name to use with a token as password.
func gitUser(kind scmv1.ScmType) string {
	switch kind {
	case scmv1.ScmType_SCM_TYPE_GITLAB, scmv1.ScmType_SCM_TYPE_GITLAB_SELFMANAGED:
		return "oauth2"
	case scmv1.ScmType_SCM_TYPE_BITBUCKET, scmv1.ScmType_SCM_TYPE_BITBUCKET_DATACENTER:
		return "x-token-auth"
	}
	return "x-access-token"
}
