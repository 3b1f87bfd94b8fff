package host

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// CheckIssues reads the project and the token's scopes. Tokens that cannot read their scopes pass.
func (h *gitLab) CheckIssues(ctx context.Context, repository string) error {
	project, _, err := h.client.Projects.GetProject(repository, nil, gitlab.WithContext(ctx))
	if err != nil {
		return gitLabError(err)
	}
	switch {
	case project.ID == 0 || project.PathWithNamespace == "":
		return malformed("the host's answer is not a project of GitLab", nil)
	case project.Archived:
		return archived(repository)
	case project.IssuesAccessLevel == gitlab.DisabledAccessControl:
		return issuesDisabled(nil)
	}
	token, _, err := h.client.PersonalAccessTokens.GetSinglePersonalAccessToken(gitlab.WithContext(ctx))
	if err == nil && slices.Contains(token.Scopes, "read_api") && !slices.Contains(token.Scopes, "api") {
		return &Error{Kind: Forbidden, Text: "the access token may only read: give it the scope \"api\" at the host"}
	}
	return nil
}

// CreateIssue creates a confidential issue: only members of the project see it.
func (h *gitLab) CreateIssue(ctx context.Context, repository string, draft IssueDraft) (Issue, error) {
	options := &gitlab.CreateIssueOptions{Title: &draft.Title, Description: &draft.Body, Confidential: gitlab.Ptr(true)}
	if len(draft.Labels) > 0 {
		options.Labels = gitlab.Ptr(gitlab.LabelOptions(draft.Labels))
	}
	issue, _, err := h.client.Issues.CreateIssue(repository, options, gitlab.WithContext(ctx))
	if err != nil {
		return Issue{}, gitLabError(err)
	}
	return convertGitLabIssue(repository, issue)
}

// FindIssue reads the issues that were created since a time, the newest first.
func (h *gitLab) FindIssue(ctx context.Context, repository, text string, since time.Time) (Issue, error) {
	pages := paged(func(page int) ([]*gitlab.Issue, int, error) {
		list, response, err := h.client.Issues.ListProjectIssues(repository, &gitlab.ListProjectIssuesOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: pageSize}, CreatedAfter: gitlab.Ptr(since.Truncate(time.Second)),
			OrderBy: gitlab.Ptr("created_at"), Sort: gitlab.Ptr("desc"),
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, 0, gitLabError(err)
		}
		return list, nextComments(page, int(response.NextPage)), nil
	})
	for issue, err := range pages {
		if err != nil {
			return Issue{}, err
		}
		if strings.Contains(issue.Description, text) {
			return convertGitLabIssue(repository, issue)
		}
	}
	return Issue{}, nil
}

// Issue reads an issue.
func (h *gitLab) Issue(ctx context.Context, repository string, number int64) (Issue, error) {
	issue, _, err := h.client.Issues.GetIssue(repository, number, nil, gitlab.WithContext(ctx))
	if err != nil {
		return Issue{}, gitLabError(err)
	}
	return convertGitLabIssue(repository, issue)
}

// CommentOnIssue adds a note. It first reads the issue: GitLab redirects only reads from the old path of a project.
func (h *gitLab) CommentOnIssue(ctx context.Context, repository string, number int64, text string) error {
	issue, err := h.Issue(ctx, repository, number)
	if err != nil {
		return err
	}
	note, _, err := h.client.Notes.CreateIssueNote(issue.Repository, issue.Number, &gitlab.CreateIssueNoteOptions{Body: &text}, gitlab.WithContext(ctx))
	if err != nil {
		return gitLabError(err)
	}
	if note.ID == 0 {
		return malformed("the host's answer is not a note of GitLab", nil)
	}
	return nil
}

// SetIssueOpen changes the state of an issue where it is now.
func (h *gitLab) SetIssueOpen(ctx context.Context, repository string, number int64, open bool) error {
	issue, err := h.Issue(ctx, repository, number)
	if err != nil || issue.Open == open {
		return err
	}
	event := "close"
	if open {
		event = "reopen"
	}
	changed, _, err := h.client.Issues.UpdateIssue(issue.Repository, number, &gitlab.UpdateIssueOptions{StateEvent: &event}, gitlab.WithContext(ctx))
	if err != nil {
		return gitLabError(err)
	}
	if issue, err = convertGitLabIssue(repository, changed); err != nil {
		return err
	}
	if issue.Open != open {
		return malformed("the host did not change the state of the issue", nil)
	}
	return nil
}

func convertGitLabIssue(repository string, issue *gitlab.Issue) (Issue, error) {
	if issue.ID == 0 || issue.IID == 0 {
		return Issue{}, malformed("the host's answer is not an issue of GitLab", nil)
	}
	if full, _, ok := strings.Cut(issueReference(issue), "#"); ok {
		repository = full
	}
	return Issue{
		ID: strconv.FormatInt(issue.ID, 10), Repository: repository, Number: issue.IID, URL: printable(issue.WebURL), Open: issue.State == "opened",
	}, nil
}

// issueReference is "acme/platform/api#12", with the present path of the project; empty from old servers.
func issueReference(issue *gitlab.Issue) string {
	if issue.References == nil {
		return ""
	}
	return printable(issue.References.Full)
}
