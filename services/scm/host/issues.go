package host

import (
	"context"
	"net/http"
	"time"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
)

// Issues are the issues of a source-code host's repositories. All errors are *Error.
type Issues interface {
	// CheckIssues returns why nobody can create issues in a repository ("acme/web"), as far as reading tells.
	CheckIssues(ctx context.Context, repository string) error
	// CreateIssue creates an issue. It is confidential at GitLab; GitHub has no such issues.
	CreateIssue(ctx context.Context, repository string, draft IssueDraft) (Issue, error)
	// FindIssue returns the newest issue that was created since a time and has a text in its body; a zero value if there
	// is none. It reads at most 500 issues.
	FindIssue(ctx context.Context, repository, text string, since time.Time) (Issue, error)
	// Issue reads an issue. A GitHub issue that was transferred is returned with its new repository and number. At GitLab
	// it counts as closed.
	Issue(ctx context.Context, repository string, number int64) (Issue, error)
	// CommentOnIssue adds a comment in Markdown.
	CommentOnIssue(ctx context.Context, repository string, number int64, text string) error
	// SetIssueOpen closes an issue or opens it again, if it is not so already.
	SetIssueOpen(ctx context.Context, repository string, number int64, open bool) error
}

// IssueDraft is the content of a new issue.
type IssueDraft struct {
	Title string
	// Body is Markdown.
	Body   string
	Labels []string
}

// Issue is an issue of a repository.
type Issue struct {
	// ID is the host's id.
	ID string
	// Repository is the full name, and Number the issue's number there.
	Repository string
	Number     int64
	// URL is its web page.
	URL  string
	Open bool
}

// OpenIssues returns the issues of a host, like Open.
func OpenIssues(kind scmv1.ScmType, baseURL, token string, client *http.Client) (Issues, error) {
	h, err := Open(kind, baseURL, token, client)
	if err != nil {
		return nil, err
	}
	return h.(Issues), nil
}

// issuePageSize limits the size of an answer: an issue of GitHub may have 64 KB.
const issuePageSize = 50
