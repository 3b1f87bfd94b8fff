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
	options := &gitlab.GetGroupOptions{WithProjects: gitlab.Ptr(false)}
	group, missing := gitLabAnswer(h.client.Groups.GetGroup(namespace, options, gitlab.WithContext(ctx)))
	if missing == nil && (group.ID == 0 || group.FullPath == "") {
		return owner{}, malformed("the host's answer is not from GitLab: check type and baseUrl", nil)
	}
	if missing == nil {
		return owner{group: group}, nil
	}
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
	users, err := gitLabList(h.client.Users.ListUsers(&gitlab.ListUsersOptions{Username: &login}, gitlab.WithContext(ctx)))
	if err != nil {
		return nil, err
	}
	for _, user := range users {
		if user.ID == 0 || user.Username == "" {
			return nil, malformed("the host's answer is not a list of users of GitLab", nil)
		}
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
		convert(paged(list), convertGitLabProject)(yield)
	}
}

// Repository reads one project.
func (h *gitLab) Repository(ctx context.Context, repository string) (Repository, error) {
	project, err := gitLabAnswer(h.client.Projects.GetProject(repository, nil, gitlab.WithContext(ctx)))
	if err != nil {
		return Repository{}, err
	}
	return convertGitLabProject(project)
}

// SetActionsSecret is not for GitLab.
func (h *gitLab) SetActionsSecret(context.Context, string, string, string) error {
	return &Error{Kind: Unsupported, Text: "secrets for GitHub Actions exist only at GitHub: add the token to the CI variables of the project"}
}

// gitLabPages adapts a list of the client to paged. X-Next-Page has the page number.
func gitLabPages[T any](list func(gitlab.ListOptions) ([]*T, *gitlab.Response, error)) func(int) ([]*T, int, error) {
	return func(page int) ([]*T, int, error) {
		items, response, err := list(gitlab.ListOptions{Page: int64(page), PerPage: pageSize})
		if err != nil {
			return nil, 0, gitLabError(err)
		}
		return items, int(response.NextPage), nil
	}
}

func convertGitLabProject(p *gitlab.Project) (Repository, error) {
	if p.ID == 0 || p.PathWithNamespace == "" {
		return Repository{}, malformed("the host's answer is not a project of GitLab", nil)
	}
	visibility := "private"
	if p.Visibility == gitlab.PublicVisibility {
		visibility = "public"
	}
	return Repository{
		ID: strconv.FormatInt(p.ID, 10), Name: printable(p.PathWithNamespace), URL: printable(p.WebURL), DefaultBranch: printable(p.DefaultBranch),
		Visibility: visibility, Archived: p.Archived,
	}, nil
}

// CanWrite reads the user's access level, including inherited ones: developers and above may push.
func (h *gitLab) CanWrite(ctx context.Context, repository, login string) (bool, error) {
	user, err := h.user(ctx, login)
	if err != nil || user == nil {
		return false, err
	}
	member, err := gitLabAnswer(h.client.ProjectMembers.GetInheritedProjectMember(repository, user.ID, gitlab.WithContext(ctx)))
	if Is(err, NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if member.ID == 0 || member.State == "" {
		return false, malformed("the host's answer is not a member of a GitLab project", nil)
	}
	return member.State == "active" && member.AccessLevel >= gitlab.DeveloperPermissions, nil
}

// ReviewThread returns the first note of a discussion.
func (h *gitLab) ReviewThread(ctx context.Context, repository string, number int64, thread string) (ReviewComment, error) {
	discussion, err := gitLabAnswer(h.client.Discussions.GetMergeRequestDiscussion(repository, number, thread, gitlab.WithContext(ctx)))
	if err != nil {
		return ReviewComment{}, err
	}
	root, err := gitLabThread(discussion)
	if err != nil {
		return ReviewComment{}, err
	}
	first := discussion.Notes[0]
	if first.Author.Username == "" {
		return ReviewComment{}, malformed("the host's answer is not a discussion of GitLab", nil)
	}
	comment := ReviewComment{
		ID: root.ID, Author: first.Author.Username, Body: first.Body,
		URL: h.web + "/" + repository + "/-/merge_requests/" + strconv.FormatInt(number, 10) + "#note_" + strconv.FormatInt(root.Note, 10),
	}
	if first.Position != nil {
		comment.Path, comment.Line = first.Position.NewPath, first.Position.NewLine
	}
	return comment, nil
}

// ReplyToReviewComment adds a note to a discussion.
func (h *gitLab) ReplyToReviewComment(ctx context.Context, repository string, number int64, thread, text string) error {
	_, err := gitLabAnswer(h.client.Discussions.AddMergeRequestDiscussionNote(repository, number, thread,
		&gitlab.AddMergeRequestDiscussionNoteOptions{Body: &text}, gitlab.WithContext(ctx)))
	return err
}

// PullRequest reads a merge request.
func (h *gitLab) PullRequest(ctx context.Context, repository string, number int64) (PullRequest, error) {
	request, err := h.mergeRequest(ctx, repository, number)
	if err != nil {
		return PullRequest{}, err
	}
	pull, err := request.convert()
	pull.Commit, pull.MergeCommit = request.SHA, request.MergeCommitSHA
	pull.diff = diffCommits{base: request.DiffRefs.BaseSha, start: request.DiffRefs.StartSha, head: request.DiffRefs.HeadSha}
	return pull, err
}

// gitLabRequest is a merge request in an answer. The client's own type panics if its labels are of several types.
type gitLabRequest struct {
	IID            int64
	State          string
	SourceBranch   string                      `json:"source_branch"`
	TargetBranch   string                      `json:"target_branch"`
	WebURL         string                      `json:"web_url"`
	SHA            string                      `json:"sha"`
	MergeCommitSHA string                      `json:"merge_commit_sha"`
	ChangesCount   string                      `json:"changes_count"`
	DiffRefs       gitlab.MergeRequestDiffRefs `json:"diff_refs"`
}

func (h *gitLab) mergeRequest(ctx context.Context, repository string, number int64) (*gitLabRequest, error) {
	request := &gitLabRequest{}
	_, err := h.read(ctx, http.MethodGet, gitLabRequests(repository)+issueNumber(number), nil, request)
	return checkAnswer(request, err)
}

func gitLabRequests(repository string) string { return gitLabProject(repository) + "/merge_requests" }

func (r *gitLabRequest) convert() (PullRequest, error) {
	if r.IID == 0 || r.State == "" || r.SourceBranch == "" || r.TargetBranch == "" {
		return PullRequest{}, malformed("the host's answer is not a merge request of GitLab", nil)
	}
	return PullRequest{
		Number: r.IID, Open: r.State == "opened" || r.State == "locked", Merged: r.State == "merged",
		Head: r.SourceBranch, Base: r.TargetBranch, URL: r.WebURL,
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
