package tracker

import (
	"context"
	"strconv"
	"strings"
	"time"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/scm/host"
)

// hosted are the issues of a source-code host. A project is a repository: "acme/web".
type hosted struct {
	kind   Kind
	issues host.Issues
}

func openHosted(c Config) (Tracker, error) {
	issues, err := host.OpenIssues(hostType(c), c.BaseURL, c.Token, c.Client)
	if err != nil {
		return nil, err
	}
	return &hosted{kind: c.Kind, issues: issues}, nil
}

// hostType distinguishes the cloud service from servers.
func hostType(c Config) scmv1.ScmType {
	cloud, own := scmv1.ScmType_SCM_TYPE_GITHUB, scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE
	if c.Kind == GitLab {
		cloud, own = scmv1.ScmType_SCM_TYPE_GITLAB, scmv1.ScmType_SCM_TYPE_GITLAB_SELFMANAGED
	}
	if strings.EqualFold(c.BaseURL, host.CloudURL(cloud)) {
		return cloud
	}
	return own
}

// Check ignores the type of issues: hosts have one.
func (h *hosted) Check(ctx context.Context, project, _ string) error {
	return h.issues.CheckIssues(ctx, project)
}

// hiddenMarker is an invisible text in the body by which the issue is found.
func hiddenMarker(marker string) string { return "<!-- palisade:ticket=" + marker + " -->" }

// Create creates an issue.
func (h *hosted) Create(ctx context.Context, project string, draft Draft) (Ticket, error) {
	if err := checkMarker(draft.Marker); err != nil {
		return Ticket{}, err
	}
	issue, err := h.issues.CreateIssue(ctx, project, host.IssueDraft{
		Title: title(h.kind, draft.Title), Body: hiddenMarker(draft.Marker) + "\n" + markdownFormat.render(draft.Text, draft.Items) + "\n",
		Labels: labels(h.kind, draft.Labels),
	})
	return convertIssue(issue), err
}

// Find looks for the marker in bodies.
func (h *hosted) Find(ctx context.Context, project, marker string, since time.Time) (Ticket, error) {
	if err := checkMarker(marker); err != nil {
		return Ticket{}, err
	}
	issue, err := h.issues.FindIssue(ctx, project, hiddenMarker(marker), since)
	return convertIssue(issue), err
}

// Get reads an issue.
func (h *hosted) Get(ctx context.Context, key string) (Ticket, error) {
	repository, number, err := splitKey(key)
	if err != nil {
		return Ticket{}, err
	}
	issue, err := h.issues.Issue(ctx, repository, number)
	return convertIssue(issue), err
}

// Comment comments on an issue.
func (h *hosted) Comment(ctx context.Context, key, text string) error {
	repository, number, err := splitKey(key)
	if err != nil {
		return err
	}
	return h.issues.CommentOnIssue(ctx, repository, number, markdownFormat.render(text, nil))
}

// SetOpen closes an issue or opens it again. Hosts have no transitions.
func (h *hosted) SetOpen(ctx context.Context, key string, open bool, _ string) error {
	repository, number, err := splitKey(key)
	if err != nil {
		return err
	}
	return h.issues.SetIssueOpen(ctx, repository, number, open)
}

// convertIssue keeps a zero value.
func convertIssue(issue host.Issue) Ticket {
	if issue.ID == "" {
		return Ticket{}
	}
	return Ticket{Key: issueKey(issue.Repository, issue.Number), ID: issue.ID, URL: issue.URL, Open: issue.Open}
}

func issueKey(repository string, number int64) string {
	return repository + "#" + strconv.FormatInt(number, 10)
}

// splitKey splits "acme/web#12".
func splitKey(key string) (repository string, number int64, err error) {
	repository, digits, _ := strings.Cut(key, "#")
	number, err = strconv.ParseInt(digits, 10, 32)
	if err != nil || number <= 0 || !strings.Contains(repository, "/") {
		return "", 0, notFound("%q is not the key of an issue, such as acme/web#12", oneLine(key, maxTitle))
	}
	return repository, number, nil
}
