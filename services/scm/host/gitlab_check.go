package host

import (
	"context"
	"slices"
	"strconv"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
)

// Check reads the namespace, the token's scopes and the access level of the token's user there. GitLab allows what both
// allow.
func (h *gitLab) Check(ctx context.Context, namespace string) (Account, error) {
	token, err := gitLabAnswer(h.client.PersonalAccessTokens.GetSinglePersonalAccessToken(gitlab.WithContext(ctx)))
	if err != nil {
		return Account{}, err
	}
	if token.UserID == 0 || token.Scopes == nil {
		return Account{}, malformed("the host's answer is not from GitLab: check type and baseUrl", nil)
	}
	of, err := h.owner(ctx, namespace)
	if err != nil {
		return Account{}, err
	}
	level, err := h.level(ctx, of, token.UserID)
	if err != nil {
		return Account{}, err
	}
	account := of.account()
	account.Scopes = gitLabScopes(token.Scopes, level)
	return account, nil
}

func (o owner) account() Account {
	if o.group != nil {
		return Account{ID: strconv.FormatInt(o.group.ID, 10), Path: o.group.FullPath, Name: o.group.Name, URL: o.group.WebURL, Entity: Org}
	}
	return Account{ID: strconv.FormatInt(o.user.ID, 10), Path: o.user.Username, Name: o.user.Name, URL: o.user.WebURL, Entity: User}
}

// level is the access level of a user in a namespace. A user who is not a member has none and reads public content.
func (h *gitLab) level(ctx context.Context, of owner, userID int64) (gitlab.AccessLevelValue, error) {
	if of.user != nil {
		if of.user.ID == userID {
			return gitlab.OwnerPermissions, nil
		}
		return gitlab.NoPermissions, nil
	}
	member, err := gitLabAnswer(h.client.GroupMembers.GetInheritedGroupMember(of.group.ID, userID, gitlab.WithContext(ctx)))
	if Is(err, NotFound) || Is(err, Forbidden) { // no member, or the token has no API scope
		return gitlab.NoPermissions, nil
	}
	if err != nil {
		return gitlab.NoPermissions, err
	}
	if member.ID == 0 {
		return gitlab.NoPermissions, malformed("the host's answer is not a member of a GitLab group", nil)
	}
	return member.AccessLevel, nil
}

// gitLabScopes intersects a token's scopes with its user's access level.
func gitLabScopes(scopes []string, level gitlab.AccessLevelValue) *scmv1.ScmTokenScopes {
	has := func(scope string) bool { return slices.Contains(scopes, scope) }
	api, read := has("api"), has("api") || has("read_api")
	return &scmv1.ScmTokenScopes{
		ReadMetadata:            read,
		ReadPullRequest:         read,
		WritePullRequestComment: api && level >= gitlab.ReporterPermissions,
		ReadContents:            (read || has("read_repository")) && level >= gitlab.ReporterPermissions,
		ReadMembers:             read,
		ManageWebhooks:          api && level >= gitlab.OwnerPermissions,
		WriteContents:           (api || has("write_repository")) && level >= gitlab.DeveloperPermissions,
		WritePullRequest:        api && level >= gitlab.DeveloperPermissions,
	}
}
