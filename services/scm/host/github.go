package host

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v84/github"

	"github.com/palisade/palisade/services/internal/egress"
)

// gitHub is github.com or a GitHub Enterprise server.
type gitHub struct {
	web    string
	client *github.Client
}

func openGitHub(baseURL string, api *url.URL, token string, client *http.Client) *gitHub {
	c := github.NewClient(confine(client, api, token))
	c.BaseURL = api
	c.UserAgent = userAgent
	return &gitHub{web: strings.TrimRight(baseURL, "/"), client: c}
}

// gitHubName matches owners, repositories and logins. The client puts them into paths unescaped.
var gitHubName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}(\[bot\])?$`)

func checkGitHubName(what, name string) error {
	if !gitHubName.MatchString(name) || strings.Trim(name, ".") == "" {
		return &Error{Kind: NotFound, Text: "GitHub has no " + what + " of the name " + strconv.Quote(clip(name))}
	}
	return nil
}

// splitRepository splits "acme/web".
func splitRepository(repository string) (owner, name string, err error) {
	owner, name, _ = strings.Cut(repository, "/")
	for _, part := range []string{owner, name} {
		if err := checkGitHubName("repository", part); err != nil {
			return "", "", err
		}
	}
	return owner, name, nil
}

// account reads the organization or user with a name.
func (h *gitHub) account(ctx context.Context, namespace string) (*github.User, *github.Response, error) {
	if err := checkGitHubName("organization or user", namespace); err != nil {
		return nil, nil, err
	}
	user, response, err := h.client.Users.Get(ctx, namespace)
	if err != nil {
		return nil, nil, gitHubError(err)
	}
	if user.GetID() == 0 || user.GetLogin() == "" {
		return nil, nil, malformed("the host's answer is not from GitHub: check type and baseUrl", nil)
	}
	return user, response, nil
}

// entity distinguishes organizations from users.
func entity(user *github.User) Entity {
	if user.GetType() == "Organization" {
		return Org
	}
	return User
}

// Repositories lists the repositories of an organization or user.
func (h *gitHub) Repositories(ctx context.Context, namespace string) iter.Seq2[Repository, error] {
	return func(yield func(Repository, error) bool) {
		account, _, err := h.account(ctx, namespace)
		if err != nil {
			yield(Repository{}, err)
			return
		}
		list := h.repositoriesOf(ctx, account)
		convert(paged(list), convertGitHubRepository)(yield)
	}
}

// repositoriesOf selects the most complete list: a user's private repositories appear only in the user's own list.
func (h *gitHub) repositoriesOf(ctx context.Context, account *github.User) func(int) ([]*github.Repository, int, error) {
	login := account.GetLogin()
	page := func(page int) github.ListOptions { return github.ListOptions{Page: page, PerPage: pageSize} }
	if entity(account) == Org {
		return gitHubPages(func(n int) ([]*github.Repository, *github.Response, error) {
			return h.client.Repositories.ListByOrg(ctx, login, &github.RepositoryListByOrgOptions{Type: "all", Sort: "full_name", ListOptions: page(n)})
		})
	}
	self, err := gitHubAnswer(h.client.Users.Get(ctx, ""))
	if err != nil && !Is(err, Unauthorized) && !Is(err, Forbidden) && !Is(err, NotFound) { // it may be this user
		return func(int) ([]*github.Repository, int, error) { return nil, 0, err }
	}
	if strings.EqualFold(self.GetLogin(), login) {
		return gitHubPages(func(n int) ([]*github.Repository, *github.Response, error) {
			return h.client.Repositories.ListByAuthenticatedUser(ctx, &github.RepositoryListByAuthenticatedUserOptions{
				Affiliation: "owner", Sort: "full_name", ListOptions: page(n)})
		})
	}
	return gitHubPages(func(n int) ([]*github.Repository, *github.Response, error) {
		return h.client.Repositories.ListByUser(ctx, login, &github.RepositoryListByUserOptions{Type: "owner", Sort: "full_name", ListOptions: page(n)})
	})
}

// gitHubPages adapts a list of the client to paged. The client only takes the page number from the Link header.
func gitHubPages[T any](list func(page int) ([]*T, *github.Response, error)) func(int) ([]*T, int, error) {
	return func(page int) ([]*T, int, error) {
		items, response, err := list(page)
		if err != nil {
			return nil, 0, gitHubError(err)
		}
		return items, response.NextPage, nil
	}
}

func convertGitHubRepository(r *github.Repository) (Repository, error) {
	if r.GetID() == 0 || r.GetFullName() == "" {
		return Repository{}, malformed("the host's answer is not a repository of GitHub", nil)
	}
	visibility := "public"
	if r.GetPrivate() || r.GetVisibility() == "private" || r.GetVisibility() == "internal" {
		visibility = "private"
	}
	return Repository{
		ID: strconv.FormatInt(r.GetID(), 10), Name: printable(r.GetFullName()), URL: printable(r.GetHTMLURL()),
		DefaultBranch: printable(r.GetDefaultBranch()),
		Visibility:    visibility, Archived: r.GetArchived(),
	}, nil
}

// CanWrite reads the user's permission. GitHub reports "maintain" as write and "triage" as read.
func (h *gitHub) CanWrite(ctx context.Context, repository, login string) (bool, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return false, err
	}
	if err := checkGitHubName("user", login); err != nil {
		return false, err
	}
	level, err := gitHubAnswer(h.client.Repositories.GetPermissionLevel(ctx, owner, name, login))
	if err != nil {
		return false, err
	}
	if level.GetPermission() == "" {
		return false, malformed("the host's answer is not a permission of GitHub", nil)
	}
	return level.GetPermission() == "admin" || level.GetPermission() == "write", nil
}

// ReviewThread finds the first comment of the thread.
func (h *gitHub) ReviewThread(ctx context.Context, repository string, _ int64, thread string) (ReviewComment, error) {
	owner, name, id, err := gitHubComment(repository, thread)
	if err != nil {
		return ReviewComment{}, err
	}
	comment, err := gitHubAnswer(h.client.PullRequests.GetComment(ctx, owner, name, id))
	if err == nil && comment.GetInReplyTo() != 0 {
		comment, err = gitHubAnswer(h.client.PullRequests.GetComment(ctx, owner, name, comment.GetInReplyTo()))
	}
	if err != nil {
		return ReviewComment{}, err
	}
	if comment.GetID() == 0 || comment.GetUser().GetLogin() == "" {
		return ReviewComment{}, malformed("the host's answer is not a review comment of GitHub", nil)
	}
	return ReviewComment{
		ID: strconv.FormatInt(comment.GetID(), 10), Author: comment.GetUser().GetLogin(), Body: comment.GetBody(),
		Path: comment.GetPath(), Line: int64(comment.GetLine()), URL: comment.GetHTMLURL(),
	}, nil
}

// ReplyToReviewComment replies in a comment's thread.
func (h *gitHub) ReplyToReviewComment(ctx context.Context, repository string, number int64, thread, text string) error {
	owner, name, id, err := gitHubComment(repository, thread)
	if err != nil {
		return err
	}
	_, err = gitHubAnswer(h.client.PullRequests.CreateCommentInReplyTo(ctx, owner, name, int(number), text, id))
	return err
}

func gitHubComment(repository, thread string) (owner, name string, id int64, err error) {
	if owner, name, err = splitRepository(repository); err != nil {
		return "", "", 0, err
	}
	if id, err = strconv.ParseInt(thread, 10, 64); err != nil || id <= 0 {
		return "", "", 0, &Error{Kind: NotFound, Text: "GitHub has no review comment " + strconv.Quote(clip(thread))}
	}
	return owner, name, id, nil
}

// PullRequest reads a pull request.
func (h *gitHub) PullRequest(ctx context.Context, repository string, number int64) (PullRequest, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return PullRequest{}, err
	}
	pull, err := gitHubAnswer(h.client.PullRequests.Get(ctx, owner, name, int(number)))
	if err != nil {
		return PullRequest{}, err
	}
	request, err := gitHubPull(pull)
	request.Commit, request.MergeCommit = pull.GetHead().GetSHA(), pull.GetMergeCommitSHA()
	return request, err
}

// gitHubError converts the client's errors; nil stays nil.
func gitHubError(err error) error {
	var ours *Error
	var primary *github.RateLimitError
	var secondary *github.AbuseRateLimitError
	var answer *github.ErrorResponse
	var otp *github.TwoFactorAuthError
	var redirect *github.RedirectionError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &primary):
		return rateLimited(primary.Rate.Reset.Time, err)
	case errors.As(err, &secondary):
		reset := retryAfter(secondary.Response.Header)
		if reset.IsZero() && secondary.RetryAfter != nil { // X-RateLimit-Reset, or an earlier answer
			reset = time.Now().Add(*secondary.RetryAfter)
		}
		return rateLimited(reset, err)
	case errors.As(err, &otp):
		return refusal(http.StatusUnauthorized, "", err)
	case errors.As(err, &redirect):
		return refusal(redirect.StatusCode, "", err)
	case errors.As(err, &answer) && answer.Response != nil:
		if answer.Response.StatusCode == http.StatusTooManyRequests {
			return rateLimited(retryAfter(answer.Response.Header), err)
		}
		return refusal(answer.Response.StatusCode, gitHubDetail(answer), err)
	}
	return connection(err)
}

// gitHubDetail is GitHub's own error text, with the accepted scopes if GitHub names them.
func gitHubDetail(answer *github.ErrorResponse) string {
	text := answer.Message
	for _, e := range answer.Errors {
		if e.Message != "" {
			text += "; " + e.Message
		}
	}
	accepted := answer.Response.Header.Get("X-Accepted-Oauth-Scopes")
	if fine := answer.Response.Header.Get("X-Accepted-Github-Permissions"); accepted == "" {
		accepted = fine
	}
	if accepted != "" && answer.Response.StatusCode == http.StatusForbidden {
		text += "; needed: " + accepted
	}
	return text
}

// retryAfter is the end of a rate limit; zero if the host does not say it.
func retryAfter(header http.Header) time.Time {
	now := time.Now()
	delay, ok := egress.RetryAfter(header, now)
	if !ok {
		return time.Time{}
	}
	return now.Add(delay)
}
