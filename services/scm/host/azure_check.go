package host

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
)

// Security namespaces of Azure DevOps and their permissions, which are bits.
const (
	gitSecurity    = "2e9eb7ed-3c0a-47d4-87c1-0ffdd275fd87"
	gitContribute  = 4
	gitPullRequest = 16384
	hookSecurity   = "cb594ebe-87dd-4fc9-ac2c-6a10a4c92046"
	hookAll        = 1 | 2 | 4 // view, edit and delete subscriptions
)

// Check reads the namespace, and what the user of the token may do there. Azure DevOps does not tell the scopes of a
// token: a permission that the token may not read counts as missing.
func (h *azure) Check(ctx context.Context, namespace string) (Account, error) {
	at, err := azurePlaceOf(namespace, 1, 2)
	if err != nil {
		return Account{}, err
	}
	account, token, err := h.account(ctx, at)
	if err != nil {
		return Account{}, err
	}
	account.Scopes = &scmv1.ScmTokenScopes{ReadMetadata: true}
	_, err = azureItems[azureRepository](ctx, h, at.path("git/repositories"), nil)
	reads, err := granted(err)
	if err != nil {
		return Account{}, err
	}
	account.Scopes.ReadContents, account.Scopes.ReadPullRequest = reads, reads
	for _, ask := range []struct {
		security, token string
		bits            int
		may             []*bool
	}{
		{gitSecurity, "repoV2" + token, gitPullRequest, []*bool{&account.Scopes.WritePullRequestComment, &account.Scopes.WritePullRequest}},
		{gitSecurity, "repoV2" + token, gitContribute, []*bool{&account.Scopes.WriteContents}},
		{hookSecurity, "PublisherSecurity" + token, hookAll, []*bool{&account.Scopes.ManageWebhooks}},
	} {
		may, err := h.may(ctx, at, ask.security, ask.token, ask.bits)
		if err != nil {
			return Account{}, err
		}
		for _, scope := range ask.may {
			*scope = may
		}
	}
	account.Scopes.WritePullRequest = account.Scopes.WritePullRequest && account.Scopes.WriteContents
	account.Scopes.ManageWebhooks = account.Scopes.ManageWebhooks && at.project != ""
	_, err = h.identitiesOf(ctx, at, "palisade@example.com")
	account.Scopes.ReadMembers, err = granted(err)
	return account, err
}

// granted reports whether a request was not refused. Other errors stay.
func granted(err error) (bool, error) {
	if Is(err, Unauthorized) || Is(err, Forbidden) || Is(err, NotFound) {
		return false, nil
	}
	return err == nil, err
}

// account reads the project, or the organization. token is its part of a security token.
func (h *azure) account(ctx context.Context, at azurePlace) (account Account, token string, err error) {
	if at.project == "" {
		var instance struct{ InstanceID string }
		query := url.Values{"api-version": {azureVersion + "-preview"}}
		if err := h.call(ctx, http.MethodGet, at.of("connectionData"), query, nil, &instance); err != nil {
			return Account{}, "", err
		}
		if instance.InstanceID == "" {
			return Account{}, "", malformed("the host's answer is not an organization of Azure DevOps", nil)
		}
		return Account{ID: instance.InstanceID, Path: at.organization, Name: at.organization, URL: h.web + "/" + at.organization, Entity: Org}, "", nil
	}
	project, err := h.project(ctx, at)
	if err != nil {
		return Account{}, "", err
	}
	path := at.organization + "/" + printable(project.Name)
	return Account{
		ID: printable(project.ID), Path: path, Name: printable(project.Name), URL: h.web + (&url.URL{Path: "/" + path}).EscapedPath(), Entity: Org,
	}, "/" + project.ID, nil
}

// project reads the project of a namespace.
func (h *azure) project(ctx context.Context, at azurePlace) (*azureProject, error) {
	project := &azureProject{}
	if err := h.call(ctx, http.MethodGet, at.of("projects/"+url.PathEscape(at.project)), nil, nil, project); err != nil {
		return nil, err
	}
	if project.ID == "" || project.Name == "" {
		return nil, malformed("the host's answer is not a project of Azure DevOps", nil)
	}
	return project, nil
}

// may reports whether the user of the token has all permissions.
func (h *azure) may(ctx context.Context, at azurePlace, security, token string, bits int) (bool, error) {
	var answer struct{ Value []*bool }
	err := h.call(ctx, http.MethodGet, at.of(fmt.Sprintf("permissions/%s/%d", security, bits)), url.Values{"tokens": {token}}, nil, &answer)
	if ok, err := granted(err); err != nil || !ok {
		return false, err
	}
	if len(answer.Value) != 1 || answer.Value[0] == nil {
		return false, malformed("the host's answer is not a permission of Azure DevOps", nil)
	}
	return *answer.Value[0], nil
}

// azureIdentity is a user in an answer of the service of identities.
type azureIdentity struct {
	Descriptor string
	IsActive   bool
	Properties *struct {
		Account, Mail struct {
			Value string `json:"$value"`
		}
	}
}

// identitiesOf finds users by a login.
func (h *azure) identitiesOf(ctx context.Context, at azurePlace, login string) ([]*azureIdentity, error) {
	var answer azureList[azureIdentity]
	query := url.Values{"searchFilter": {"General"}, "filterValue": {login}, "queryMembership": {"None"}}
	err := h.send(ctx, h.identityCalls, http.MethodGet, h.identities+"/"+at.of("identities"), query, nil, &answer)
	return checkList(answer.Value, err)
}

// CanWrite reads the effective permissions of a user on the repository: who may contribute may push.
func (h *azure) CanWrite(ctx context.Context, repository, login string) (bool, error) {
	at, err := azureRepositoryOf(repository)
	if err != nil {
		return false, err
	}
	users, err := h.identitiesOf(ctx, at, login)
	if err != nil {
		return false, err
	}
	descriptor := ""
	for _, user := range users {
		if user.Descriptor == "" || user.Properties == nil {
			return false, malformed("the host's answer is not a list of users of Azure DevOps", nil)
		}
		if user.IsActive && (strings.EqualFold(user.Properties.Account.Value, login) || strings.EqualFold(user.Properties.Mail.Value, login)) {
			if descriptor != "" && descriptor != user.Descriptor {
				return false, nil // two users have the login: nobody knows which one it was
			}
			descriptor = user.Descriptor
		}
	}
	if descriptor == "" {
		return false, nil
	}
	found, err := h.read(ctx, at)
	if err != nil {
		return false, err
	}
	if found.ID == "" || found.Project == nil || found.Project.ID == "" {
		return false, malformed("the host's answer is not a repository of Azure DevOps", nil)
	}
	return h.contributes(ctx, at, "repoV2/"+found.Project.ID+"/"+found.ID, descriptor)
}

// contributes reads the access control entry of a user, with what groups and parents add to it.
func (h *azure) contributes(ctx context.Context, at azurePlace, token, descriptor string) (bool, error) {
	type entry struct {
		Descriptor   string
		ExtendedInfo *struct{ EffectiveAllow, EffectiveDeny int }
	}
	type entries struct {
		Token          string
		AcesDictionary map[string]*entry
	}
	query := url.Values{"token": {token}, "descriptors": {descriptor}, "includeExtendedInfo": {"true"}, "recurse": {"false"}}
	lists, err := azureItems[entries](ctx, h, at.of("accesscontrollists/"+gitSecurity), query)
	if err != nil {
		return false, err
	}
	for _, list := range lists {
		if list.AcesDictionary == nil {
			return false, malformed("the host's answer is not a list of permissions of Azure DevOps", nil)
		}
		for name, ace := range list.AcesDictionary {
			if ace == nil || ace.ExtendedInfo == nil {
				return false, malformed("the host's answer is not a permission of Azure DevOps", nil)
			}
			if strings.EqualFold(name, descriptor) {
				return ace.ExtendedInfo.EffectiveAllow&gitContribute != 0 && ace.ExtendedInfo.EffectiveDeny&gitContribute == 0, nil
			}
		}
	}
	return false, nil
}
