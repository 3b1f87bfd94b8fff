package host

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"
	"golang.org/x/time/rate"
)

// gitLab is gitlab.com or a self-managed GitLab.
type gitLab struct {
	web    string
	client *gitlab.Client
}

func openGitLab(baseURL string, api *url.URL, token string, client *http.Client) (*gitLab, error) {
	c, err := gitlab.NewClient("", // confined adds the token
		gitlab.WithHTTPClient(confine(client, api, token)),
		gitlab.WithBaseURL(api.String()),
		gitlab.WithUserAgent(userAgent),
		// The client would retry and throttle itself longer than callers wait; the caller decides about retries.
		gitlab.WithoutRetries(),
		gitlab.WithCustomLimiter(rate.NewLimiter(rate.Inf, 0)),
		gitlab.WithURLWarningLogger(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		return nil, malformed("baseUrl is not the URL of a GitLab", err)
	}
	return &gitLab{web: strings.TrimRight(baseURL, "/"), client: c}, nil
}

// owner is a GitLab namespace: exactly one field is set.
type owner struct {
	group *gitlab.Group
	user  *gitlab.User
}

// owner reads the group with a path, or the user with that name.
func (h *gitLab) owner(ctx context.Context, namespace string) (owner, error) {
	//lint:ignore SA1019 GitLab's API keeps the parameter; without it the answer holds 100 whole projects
	group, _, err := h.client.Groups.GetGroup(namespace, &gitlab.GetGroupOptions{WithProjects: gitlab.Ptr(false)}, gitlab.WithContext(ctx))
	if err == nil && group.ID == 0 {
		return owner{}, malformed("the host's answer is not from GitLab: check type and baseUrl", nil)
	}
	if err == nil {
		return owner{group: group}, nil
	}
	missing := gitLabError(err)
	if !Is(missing, NotFound) || strings.Contains(namespace, "/") {
		return owner{}, missing
	}
	user, err := h.user(ctx, namespace)
	if err != nil {
		return owner{}, err
	}
	if user == nil {
		return owner{}, missing
	}
	return owner{user: user}, nil
}

// user finds a user by login; nil if there is none.
func (h *gitLab) user(ctx context.Context, login string) (*gitlab.User, error) {
	users, _, err := h.client.Users.ListUsers(&gitlab.ListUsersOptions{Username: &login}, gitlab.WithContext(ctx))
	if err != nil {
		return nil, gitLabError(err)
	}
	for _, user := range users {
		if strings.EqualFold(user.Username, login) {
			return user, nil
		}
	}
	return nil, nil
}

// Repositories lists the projects of a group with its subgroups, or of a user. Projects shared by other groups are
// excluded.
func (h *gitLab) Repositories(ctx context.Context, namespace string) iter.Seq2[Repository, error] {
	return func(yield func(Repository, error) bool) {
		of, err := h.owner(ctx, namespace)
		if err != nil {
			yield(Repository{}, err)
			return
		}
		list := gitLabPages(func(options gitlab.ListOptions) ([]*gitlab.Project, *gitlab.Response, error) {
			if of.user != nil {
				return h.client.Projects.ListUserProjects(of.user.ID, &gitlab.ListProjectsOptions{
					ListOptions: options, OrderBy: gitlab.Ptr("id"), Sort: gitlab.Ptr("asc")}, gitlab.WithContext(ctx))
			}
			return h.client.Groups.ListGroupProjects(of.group.ID, &gitlab.ListGroupProjectsOptions{
				ListOptions: options, IncludeSubGroups: gitlab.Ptr(true), WithShared: gitlab.Ptr(false),
				OrderBy: gitlab.Ptr("id"), Sort: gitlab.Ptr("asc"),
			}, gitlab.WithContext(ctx))
		})
		for project, err := range paged(list) {
			if !yield(convertGitLabProject(project), err) {
				return
			}
		}
	}
}

// Repository reads one project.
func (h *gitLab) Repository(ctx context.Context, repository string) (Repository, error) {
	project, _, err := h.client.Projects.GetProject(repository, nil, gitlab.WithContext(ctx))
	if err != nil {
		return Repository{}, gitLabError(err)
	}
	if project.ID == 0 || project.PathWithNamespace == "" {
		return Repository{}, malformed("the host's answer is not a project of GitLab", nil)
	}
	return convertGitLabProject(project), nil
}

// SetActionsSecret is not for GitLab.
func (h *gitLab) SetActionsSecret(context.Context, string, string, string) error {
	return &Error{Kind: Unsupported, Text: "secrets for GitHub Actions exist only at GitHub: add the token to the CI variables of the project"}
}

// gitLabPages adapts a list of the client to paged. X-Next-Page has the page number.
func gitLabPages[T any](list func(gitlab.ListOptions) ([]T, *gitlab.Response, error)) func(int) ([]T, int, error) {
	return func(page int) ([]T, int, error) {
		items, response, err := list(gitlab.ListOptions{Page: int64(page), PerPage: pageSize})
		if err != nil {
			return nil, 0, gitLabError(err)
		}
		return items, int(response.NextPage), nil
	}
}

func convertGitLabProject(p *gitlab.Project) Repository {
	if p == nil {
		return Repository{}
	}
	visibility := "private"
	if p.Visibility == gitlab.PublicVisibility {
		visibility = "public"
	}
	return Repository{
		ID: strconv.FormatInt(p.ID, 10), Name: printable(p.PathWithNamespace), URL: printable(p.WebURL), DefaultBranch: printable(p.DefaultBranch),
		Visibility: visibility, Archived: p.Archived,
	}
}

// CanWrite reads the user's access level, including inherited ones: developers and above may push.
func (h *gitLab) CanWrite(ctx context.Context, repository, login string) (bool, error) {
	user, err := h.user(ctx, login)
	if err != nil || user == nil {
		return false, err
	}
	member, _, err := h.client.ProjectMembers.GetInheritedProjectMember(repository, user.ID, gitlab.WithContext(ctx))
	if errors.Is(err, gitlab.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, gitLabError(err)
	}
	return member.State == "active" && member.AccessLevel >= gitlab.DeveloperPermissions, nil
}

// ReviewThread returns the first note of a discussion.
func (h *gitLab) ReviewThread(ctx context.Context, repository string, number int64, thread string) (ReviewComment, error) {
	discussion, _, err := h.client.Discussions.GetMergeRequestDiscussion(repository, number, thread, gitlab.WithContext(ctx))
	if err != nil {
		return ReviewComment{}, gitLabError(err)
	}
	if discussion.ID == "" || len(discussion.Notes) == 0 {
		return ReviewComment{}, malformed("the host's answer is not a discussion of GitLab", nil)
	}
	first := discussion.Notes[0]
	comment := ReviewComment{
		ID: discussion.ID, Author: first.Author.Username, Body: first.Body,
		URL: h.web + "/" + repository + "/-/merge_requests/" + strconv.FormatInt(number, 10) + "#note_" + strconv.FormatInt(first.ID, 10),
	}
	if first.Position != nil {
		comment.Path, comment.Line = first.Position.NewPath, first.Position.NewLine
	}
	return comment, nil
}

// ReplyToReviewComment adds a note to a discussion.
func (h *gitLab) ReplyToReviewComment(ctx context.Context, repository string, number int64, thread, text string) error {
	_, _, err := h.client.Discussions.AddMergeRequestDiscussionNote(repository, number, thread,
		&gitlab.AddMergeRequestDiscussionNoteOptions{Body: &text}, gitlab.WithContext(ctx))
	return gitLabError(err)
}

// PullRequest reads a merge request.
func (h *gitLab) PullRequest(ctx context.Context, repository string, number int64) (PullRequest, error) {
	request, _, err := h.client.MergeRequests.GetMergeRequest(repository, number, nil, gitlab.WithContext(ctx))
	if err != nil {
		return PullRequest{}, gitLabError(err)
	}
	if request.IID == 0 {
		return PullRequest{}, malformed("the host's answer is not a merge request of GitLab", nil)
	}
	return PullRequest{
		Number: request.IID, Open: request.State == "opened" || request.State == "locked", Merged: request.State == "merged",
		Head: request.SourceBranch, Base: request.TargetBranch, URL: request.WebURL, Commit: request.SHA, MergeCommit: request.MergeCommitSHA,
		diff: diffCommits{base: request.DiffRefs.BaseSha, start: request.DiffRefs.StartSha, head: request.DiffRefs.HeadSha},
	}, nil
}

// gitLabError converts the client's errors; nil stays nil.
func gitLabError(err error) error {
	var ours *Error
	var answer *gitlab.ErrorResponse
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours):
		return ours
	case errors.Is(err, gitlab.ErrNotFound):
		return refusal(http.StatusNotFound, "", err)
	case errors.As(err, &answer) && answer.Response != nil:
		if answer.Response.StatusCode == http.StatusTooManyRequests {
			return rateLimited(gitLabReset(answer.Response.Header), err)
		}
		return refusal(answer.Response.StatusCode, gitLabDetail(answer), err)
	}
	return connection(err)
}

// gitLabDetail is GitLab's own error text; empty for a body that is not JSON.
func gitLabDetail(answer *gitlab.ErrorResponse) string {
	if strings.HasPrefix(answer.Message, "failed to parse") {
		return ""
	}
	return answer.Message
}

// gitLabReset parses the end of the rate limit: RateLimit-Reset is in seconds since 1970.
func gitLabReset(header http.Header) time.Time {
	seconds, err := strconv.ParseInt(header.Get("Ratelimit-Reset"), 10, 64)
	if err != nil || seconds <= 0 {
		return retryAfter(header)
	}
	return time.Unix(seconds, 0)
}
