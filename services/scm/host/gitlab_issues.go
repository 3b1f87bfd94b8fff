package host

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// CheckIssues reads the project and the token's scopes. Tokens that cannot read their scopes pass.
func (h *gitLab) CheckIssues(ctx context.Context, repository string) error {
	var project struct {
		ID                int64
		Archived          bool
		PathWithNamespace string                    `json:"path_with_namespace"`
		IssuesAccessLevel gitlab.AccessControlValue `json:"issues_access_level"`
	}
	if _, err := h.read(ctx, http.MethodGet, gitLabProject(repository), nil, &project); err != nil {
		return err
	}
	switch {
	case project.ID == 0 || project.PathWithNamespace == "":
		return malformed("the host's answer is not a project of GitLab", nil)
	case project.Archived:
		return archived(repository)
	case project.IssuesAccessLevel == gitlab.DisabledAccessControl:
		return issuesDisabled(nil)
	}
	var token struct{ Scopes []string }
	_, err := h.read(ctx, http.MethodGet, "personal_access_tokens/self", nil, &token)
	if Is(err, Malformed) || err == nil && token.Scopes == nil {
		return malformed("the host's answer is not an access token of GitLab", err)
	}
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
	var issue gitLabIssue
	if _, err := h.read(ctx, http.MethodPost, gitLabIssues(repository), options, &issue); err != nil {
		return Issue{}, err
	}
	return issue.convert(repository)
}

// FindIssue reads the issues that were created since a time, the newest first.
func (h *gitLab) FindIssue(ctx context.Context, repository, text string, since time.Time) (Issue, error) {
	pages := paged(func(page int) (list []*gitLabIssue, next int, err error) {
		response, err := h.read(ctx, http.MethodGet, gitLabIssues(repository), &gitlab.ListProjectIssuesOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: issuePageSize}, CreatedAfter: gitlab.Ptr(since.Truncate(time.Second)),
			OrderBy: gitlab.Ptr("created_at"), Sort: gitlab.Ptr("desc"),
		}, &list)
		if err != nil {
			return nil, 0, err
		}
		return list, nextComments(page, int(response.NextPage)), nil
	})
	for issue, err := range pages {
		if err != nil {
			return Issue{}, err
		}
		if strings.Contains(issue.Description, text) {
			return issue.convert(repository)
		}
	}
	return Issue{}, nil
}

// Issue reads an issue.
func (h *gitLab) Issue(ctx context.Context, repository string, number int64) (Issue, error) {
	var issue gitLabIssue
	if _, err := h.read(ctx, http.MethodGet, gitLabIssues(repository)+issueNumber(number), nil, &issue); err != nil {
		return Issue{}, err
	}
	return issue.convert(repository)
}

// CommentOnIssue adds a note. It first reads the issue: GitLab redirects only reads from the old path of a project.
func (h *gitLab) CommentOnIssue(ctx context.Context, repository string, number int64, text string) error {
	issue, err := h.Issue(ctx, repository, number)
	if err != nil {
		return err
	}
	var note struct{ ID int64 }
	path := gitLabIssues(issue.Repository) + issueNumber(number) + "/notes"
	if _, err := h.read(ctx, http.MethodPost, path, &gitlab.CreateIssueNoteOptions{Body: &text}, &note); err != nil {
		return err
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
	var changed gitLabIssue
	options := &gitlab.UpdateIssueOptions{StateEvent: &event}
	if _, err := h.read(ctx, http.MethodPut, gitLabIssues(issue.Repository)+issueNumber(number), options, &changed); err != nil {
		return err
	}
	if issue, err = changed.convert(repository); err != nil {
		return err
	}
	if issue.Open != open {
		return malformed("the host did not change the state of the issue", nil)
	}
	return nil
}

// gitLabIssue is an issue in an answer. The client's own type panics if an answer has no id.
type gitLabIssue struct {
	ID, IID            int64
	State, Description string
	WebURL             string `json:"web_url"`
	// References has the present path of the project: "acme/platform/api#12". Old servers have none.
	References struct{ Full string }
}

func gitLabProject(repository string) string { return "projects/" + gitlab.PathEscape(repository) }

func gitLabIssues(repository string) string { return gitLabProject(repository) + "/issues" }

func issueNumber(number int64) string { return "/" + strconv.FormatInt(number, 10) }

// read sends a request and reads the answer into a value, which stays as it is if the answer is null. The client's own
// methods return nil then.
func (h *gitLab) read(ctx context.Context, method, path string, options, into any) (*gitlab.Response, error) {
	request, err := h.client.NewRequest(method, path, options, []gitlab.RequestOptionFunc{gitlab.WithContext(ctx)})
	if err != nil {
		return nil, gitLabError(err)
	}
	response, err := h.client.Do(request, into)
	return response, gitLabError(err)
}

func (i gitLabIssue) convert(repository string) (Issue, error) {
	if i.ID == 0 || i.IID == 0 || i.State == "" {
		return Issue{}, malformed("the host's answer is not an issue of GitLab", nil)
	}
	if full, _, ok := strings.Cut(printable(i.References.Full), "#"); ok {
		repository = full
	}
	return Issue{
		ID: strconv.FormatInt(i.ID, 10), Repository: repository, Number: i.IID, URL: printable(i.WebURL), Open: i.State == "opened",
	}, nil
}
