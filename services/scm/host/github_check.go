package host

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-github/v84/github"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
)

// Check reads the namespace and the token's scopes there.
func (h *gitHub) Check(ctx context.Context, namespace string) (Account, error) {
	user, response, err := h.account(ctx, namespace)
	if err != nil {
		return Account{}, err
	}
	account := Account{
		ID: strconv.FormatInt(user.GetID(), 10), Path: user.GetLogin(), Name: user.GetName(), URL: user.GetHTMLURL(), Entity: entity(user),
	}
	// For classic tokens, each response lists the scopes, even if there are none. Fine-grained and application tokens get
	// no list.
	if lists, classic := response.Header[http.CanonicalHeaderKey("X-OAuth-Scopes")]; classic {
		account.Scopes = classicScopes(strings.Join(lists, ","))
		return account, nil
	}
	account.Scopes, err = h.probeScopes(ctx, user)
	return account, err
}

// classicScopes parses a list of OAuth scopes. "public_repo" equals "repo" for public repositories, and such a token
// reaches only those.
func classicScopes(list string) *scmv1.ScmTokenScopes {
	var scopes []string
	for scope := range strings.SplitSeq(list, ",") {
		scopes = append(scopes, strings.TrimSpace(scope))
	}
	has := func(any ...string) bool {
		return slices.ContainsFunc(any, func(scope string) bool { return slices.Contains(scopes, scope) })
	}
	repo := has("repo", "public_repo")
	return &scmv1.ScmTokenScopes{
		ReadMetadata: repo, ReadPullRequest: repo, WritePullRequestComment: repo, ReadContents: repo, WriteContents: repo, WritePullRequest: repo,
		ReadMembers:    has("read:org", "write:org", "admin:org"),
		ManageWebhooks: has("admin:org_hook"),
	}
}

// probeScopes finds the permissions of a token without a list by reading. Writing cannot be tested without side
// effects. It is reported if the matching read works and the repository says that the caller may push, which is an
// upper bound.
func (h *gitHub) probeScopes(ctx context.Context, account *github.User) (*scmv1.ScmTokenScopes, error) {
	login, scopes := account.GetLogin(), &scmv1.ScmTokenScopes{}
	repositories, _, err := h.repositoriesOf(ctx, account)(1)
	if repositories, err = checkList(repositories, err); err != nil {
		return scopes, allowed(&scopes.ReadMetadata, err)
	}
	scopes.ReadMetadata = true
	if entity(account) == Org {
		one := github.ListOptions{PerPage: 1}
		_, err := gitHubList(h.client.Organizations.ListMembers(ctx, login, &github.ListMembersOptions{ListOptions: one}))
		if err := allowed(&scopes.ReadMembers, err); err != nil {
			return nil, err
		}
		_, err = gitHubList(h.client.Organizations.ListHooks(ctx, login, &one))
		if err := allowed(&scopes.ManageWebhooks, err); err != nil {
			return nil, err
		}
	}
	if len(repositories) == 0 {
		return scopes, nil
	}
	return scopes, h.probeRepository(ctx, probeTarget(repositories), scopes)
}

// probeTarget selects the repository to probe. Anyone may read a public one; only a private one shows the permission.
func probeTarget(repositories []*github.Repository) *github.Repository {
	private := func(r *github.Repository) bool { return r.GetPrivate() && !r.GetArchived() }
	if i := slices.IndexFunc(repositories, private); i >= 0 {
		return repositories[i]
	}
	return repositories[0]
}

func (h *gitHub) probeRepository(ctx context.Context, r *github.Repository, scopes *scmv1.ScmTokenScopes) error {
	owner, name, err := splitRepository(r.GetFullName())
	if err != nil {
		return malformed("the host's list of repositories is not in GitHub's format", err)
	}
	one := github.ListOptions{PerPage: 1}
	_, err = gitHubList(h.client.PullRequests.List(ctx, owner, name, &github.PullRequestListOptions{ListOptions: one}))
	if err := allowed(&scopes.ReadPullRequest, err); err != nil {
		return err
	}
	_, err = gitHubList(h.client.Repositories.ListBranches(ctx, owner, name, &github.BranchListOptions{ListOptions: one}))
	if err := allowed(&scopes.ReadContents, err); err != nil {
		return err
	}
	push := r.GetPermissions().GetPush()
	scopes.WritePullRequest = push && scopes.GetReadPullRequest()
	scopes.WritePullRequestComment = scopes.GetWritePullRequest()
	scopes.WriteContents = push && scopes.GetReadContents()
	return nil
}

// allowed records whether a probe was allowed. A refusal is a result; other errors end the check.
func allowed(scope *bool, err error) error {
	*scope = err == nil
	if Is(err, Forbidden) || Is(err, NotFound) {
		return nil
	}
	return err
}
