package host

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v84/github"
)

// CheckIssues reads the repository and its issues. A token that may read issues but not create them passes: GitHub does
// not tell.
func (h *gitHub) CheckIssues(ctx context.Context, repository string) error {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return err
	}
	found, err := gitHubAnswer(h.client.Repositories.Get(ctx, owner, name))
	if err != nil {
		return err
	}
	switch {
	case found.GetID() == 0:
		return malformed("the host's answer is not a repository of GitHub", nil)
	case found.GetArchived():
		return archived(repository)
	case found.HasIssues != nil && !found.GetHasIssues():
		return issuesDisabled(nil)
	}
	list, _, err := h.client.Issues.ListByRepo(ctx, owner, name, &github.IssueListByRepoOptions{ListOptions: github.ListOptions{PerPage: 1}})
	_, err = checkList(list, gitHubIssueError(err))
	return err
}

func archived(repository string) error {
	return &Error{Kind: Refused, Text: "the repository " + strconv.Quote(clip(repository)) + " is archived: its issues cannot change"}
}

func issuesDisabled(cause error) error {
	return &Error{Kind: Unsupported, Text: "issues are disabled in this repository: enable them in its settings at the host", cause: cause}
}

// CreateIssue creates an issue. GitHub creates labels that do not exist, and leaves out all if the token may not push.
func (h *gitHub) CreateIssue(ctx context.Context, repository string, draft IssueDraft) (Issue, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return Issue{}, err
	}
	request := &github.IssueRequest{Title: &draft.Title, Body: &draft.Body}
	if len(draft.Labels) > 0 {
		request.Labels = &draft.Labels
	}
	issue, err := gitHubIssueAnswer(h.client.Issues.Create(ctx, owner, name, request))
	if err != nil {
		return Issue{}, err
	}
	return convertGitHubIssue(repository, issue)
}

// FindIssue reads the list of issues, because GitHub's search is late. GitHub's "since" is the time of the last change,
// which is never before the creation.
func (h *gitHub) FindIssue(ctx context.Context, repository, text string, since time.Time) (Issue, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return Issue{}, err
	}
	pages := paged(func(page int) ([]*github.Issue, int, error) {
		list, response, err := h.client.Issues.ListByRepo(ctx, owner, name, &github.IssueListByRepoOptions{
			State: "all", Sort: "created", Direction: "desc", Since: since, ListOptions: github.ListOptions{Page: page, PerPage: issuePageSize},
		})
		if err != nil {
			return nil, 0, gitHubIssueError(err)
		}
		return list, nextComments(page, response.NextPage), nil
	})
	for issue, err := range pages {
		if err != nil {
			return Issue{}, err
		}
		if issue.CreatedAt == nil {
			return Issue{}, malformed("the host's answer is not a list of issues of GitHub", nil)
		}
		if issue.GetCreatedAt().Before(since.Truncate(time.Second)) {
			break
		}
		if issue.GetPullRequestLinks() == nil && strings.Contains(issue.GetBody(), text) {
			return convertGitHubIssue(repository, issue)
		}
	}
	return Issue{}, nil
}

// Issue reads an issue. The client follows the redirect of a transferred one.
func (h *gitHub) Issue(ctx context.Context, repository string, number int64) (Issue, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return Issue{}, err
	}
	issue, err := gitHubIssueAnswer(h.client.Issues.Get(ctx, owner, name, int(number)))
	if err != nil {
		return Issue{}, err
	}
	return convertGitHubIssue(repository, issue)
}

// CommentOnIssue first reads the issue: a redirect of a transferred one would turn the request into one that reads.
func (h *gitHub) CommentOnIssue(ctx context.Context, repository string, number int64, text string) error {
	issue, err := h.Issue(ctx, repository, number)
	if err != nil {
		return err
	}
	_, err = h.Comment(ctx, issue.Repository, issue.Number, text)
	return err
}

// SetIssueOpen changes the issue where it is now.
func (h *gitHub) SetIssueOpen(ctx context.Context, repository string, number int64, open bool) error {
	issue, err := h.Issue(ctx, repository, number)
	if err != nil || issue.Open == open {
		return err
	}
	owner, name, err := splitRepository(issue.Repository)
	if err != nil {
		return err
	}
	state, reason := "closed", "completed"
	if open {
		state, reason = "open", "reopened"
	}
	request := &github.IssueRequest{State: &state, StateReason: &reason}
	changed, err := gitHubIssueAnswer(h.client.Issues.Edit(ctx, owner, name, int(issue.Number), request))
	if err != nil {
		return err
	}
	if changed.GetState() != state {
		return malformed("the host did not change the state of the issue", nil)
	}
	return nil
}

func convertGitHubIssue(repository string, issue *github.Issue) (Issue, error) {
	if issue.GetID() == 0 || issue.GetNumber() == 0 || issue.GetState() == "" {
		return Issue{}, malformed("the host's answer is not an issue of GitHub", nil)
	}
	if issue.GetPullRequestLinks() != nil {
		return Issue{}, &Error{Kind: NotFound, Text: "GitHub has no issue of this number, but a pull request"}
	}
	if parts := strings.Split(issue.GetRepositoryURL(), "/"); len(parts) > 2 {
		name := strings.Join(parts[len(parts)-2:], "/")
		if _, _, err := splitRepository(name); err != nil {
			return Issue{}, malformed("the host's answer is not an issue of GitHub", err)
		}
		repository = name
	}
	return Issue{
		ID: strconv.FormatInt(issue.GetID(), 10), Repository: repository, Number: int64(issue.GetNumber()),
		URL: printable(issue.GetHTMLURL()), Open: issue.GetState() == "open",
	}, nil
}

// gitHubIssueError is gitHubError for issues: GitHub answers 410 for deleted ones, and if a repository has none.
func gitHubIssueError(err error) error {
	var answer *github.ErrorResponse
	if !errors.As(err, &answer) || answer.Response == nil || answer.Response.StatusCode != http.StatusGone {
		return gitHubError(err)
	}
	if strings.Contains(answer.Message, "disabled") {
		return issuesDisabled(err)
	}
	return &Error{Kind: NotFound, Text: "the issue was deleted at the host", cause: err}
}
