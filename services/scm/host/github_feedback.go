package host

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/go-github/v84/github"
)

// SetStatus sets a commit status. Tokens and applications may do that; check runs are for applications only.
func (h *gitHub) SetStatus(ctx context.Context, repository, commit string, status Status) error {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return err
	}
	state := status.word("success", "failure", "pending")
	_, err = gitHubAnswer(h.client.Repositories.CreateStatus(ctx, owner, name, commit, github.RepoStatus{
		State: &state, Context: &status.Name, Description: &status.Text, TargetURL: &status.URL,
	}))
	return err
}

// FindComment reads the comments of the pull request as an issue.
func (h *gitHub) FindComment(ctx context.Context, repository string, number int64, text string) (string, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return "", err
	}
	pages := paged(func(page int) ([]*github.IssueComment, int, error) {
		list, response, err := h.client.Issues.ListComments(ctx, owner, name, int(number), &github.IssueListCommentsOptions{
			ListOptions: github.ListOptions{Page: page, PerPage: pageSize},
		})
		if err != nil {
			return nil, 0, gitHubError(err)
		}
		return list, nextComments(page, response.NextPage), nil
	})
	for comment, err := range pages {
		if err != nil {
			return "", err
		}
		if comment.GetID() == 0 {
			return "", malformed("the host's answer is not a list of comments of GitHub", nil)
		}
		if strings.Contains(comment.GetBody(), text) {
			return strconv.FormatInt(comment.GetID(), 10), nil
		}
	}
	return "", nil
}

// Comment comments on the pull request as an issue.
func (h *gitHub) Comment(ctx context.Context, repository string, number int64, text string) (string, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return "", err
	}
	comment, err := gitHubAnswer(h.client.Issues.CreateComment(ctx, owner, name, int(number), &github.IssueComment{Body: &text}))
	if err != nil {
		return "", err
	}
	if comment.GetID() == 0 {
		return "", malformed("the host's answer is not a comment of GitHub", nil)
	}
	return strconv.FormatInt(comment.GetID(), 10), nil
}

// EditComment replaces a comment's text.
func (h *gitHub) EditComment(ctx context.Context, repository string, _ int64, id, text string) error {
	owner, name, comment, err := gitHubComment(repository, id)
	if err != nil {
		return err
	}
	_, err = gitHubAnswer(h.client.Issues.EditComment(ctx, owner, name, comment, &github.IssueComment{Body: &text}))
	return err
}
