package host

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
)

// Host is a source-code host with a credential. All errors are *Error.
type Host interface {
	// Check reads a namespace and the credential's permissions there.
	Check(ctx context.Context, namespace string) (Account, error)
	// Repositories lists all repositories of a namespace, including subgroups. It ends after an error.
	Repositories(ctx context.Context, namespace string) iter.Seq2[Repository, error]
	// Repository reads one repository ("acme/web"). A renamed one is returned with its new name.
	Repository(ctx context.Context, repository string) (Repository, error)
	// Subscriptions lists all webhooks of a namespace, including other people's: compare Callback.
	Subscriptions(ctx context.Context, namespace string) ([]Subscription, error)
	// Subscribe creates a webhook. Namespaces without webhooks (users) give an error of the kind Unsupported.
	Subscribe(ctx context.Context, namespace string, hook Webhook) (Subscription, error)
	// UpdateWebhook sets an existing webhook's callback, secret and events.
	UpdateWebhook(ctx context.Context, namespace, id string, hook Webhook) (Subscription, error)
	// Unsubscribe deletes a webhook. A missing one is not an error.
	Unsubscribe(ctx context.Context, namespace, id string) error
	// CanWrite reports whether a user may push to a repository ("acme/web").
	CanWrite(ctx context.Context, repository, login string) (bool, error)
	// ReviewThread returns the first comment of a review thread. thread is the id of any comment in it (GitHub), of the
	// discussion (GitLab), or of the thread (Azure DevOps). number is the pull request's number in its repository.
	ReviewThread(ctx context.Context, repository string, number int64, thread string) (ReviewComment, error)
	// ReplyToReviewComment replies in a review thread, which is identified as for ReviewThread.
	ReplyToReviewComment(ctx context.Context, repository string, number int64, thread, text string) error
	// SetStatus sets a status of a commit.
	SetStatus(ctx context.Context, repository, commit string, status Status) error
	// FindComment returns the id of the first comment on a pull request itself that has a text; empty if there is none.
	// It reads the first 1,000 comments.
	FindComment(ctx context.Context, repository string, number int64, text string) (string, error)
	// Comment comments on a pull request itself, in Markdown, and returns the id of the comment.
	Comment(ctx context.Context, repository string, number int64, text string) (string, error)
	// EditComment replaces the text of a comment by its id.
	EditComment(ctx context.Context, repository string, number int64, id, text string) error
	// CommentOnLine begins a review thread on a line of the newer version of a file, in Markdown. A line that the request
	// does not change is an error of the kind Outside.
	CommentOnLine(ctx context.Context, repository string, request PullRequest, at Line, text string) (Thread, error)
	// FindThread returns the review thread whose first comment has a text; a zero value if there is none. It reads the
	// first 1,000 threads or comments.
	FindThread(ctx context.Context, repository string, number int64, text string) (Thread, error)
	// EditThread replaces the text of a thread's first comment.
	EditThread(ctx context.Context, repository string, number int64, thread Thread, text string) error
	// ResolveThread resolves a thread, or opens it again.
	ResolveThread(ctx context.Context, repository string, number int64, thread Thread, resolved bool) error
	// PullRequest returns a pull (or merge) request.
	PullRequest(ctx context.Context, repository string, number int64) (PullRequest, error)
	// ChangedFiles lists the paths that a pull (or merge) request changes, before and after. It returns all of them or an
	// error: of the kind Unsupported if the host does not list all.
	ChangedFiles(ctx context.Context, repository string, number int64) ([]string, error)
	// File reads a file at a branch, tag or commit. A directory or a file above one megabyte is an error of the kind
	// Unsupported.
	File(ctx context.Context, repository, path, ref string) ([]byte, error)
	// Propose commits a change to a branch and opens a pull request for it. If the branch exists, it updates the branch
	// and returns the existing pull request.
	Propose(ctx context.Context, repository string, change Change) (PullRequest, error)
	// SetActionsSecret creates or replaces a secret of a repository for GitHub Actions. It is an error of the kind
	// Unsupported at other hosts.
	SetActionsSecret(ctx context.Context, repository, name, value string) error
}

// Entity is the kind of a namespace.
type Entity string

// Kinds of namespaces, as stored in ScmConfig.entity_type.
const (
	Org  Entity = "ORG"
	User Entity = "USER"
)

// Account is a namespace at a host.
type Account struct {
	// ID is the host's id of the namespace.
	ID string
	// Path is the host's spelling of the namespace.
	Path string
	// Name is the display name.
	Name string
	// URL is its web page.
	URL    string
	Entity Entity
	// Scopes are the credential's permissions there.
	Scopes *scmv1.ScmTokenScopes
}

// Repository is a repository at a host.
type Repository struct {
	// ID is the host's id.
	ID string
	// Name is the full name: "acme/web", "acme/platform/api".
	Name string
	// URL is its web page.
	URL string
	// DefaultBranch is the short name; empty for a repository without commits.
	DefaultBranch string
	// Visibility is "public" or "private". "internal" (visible to an instance's own users) counts as private.
	Visibility string
	Archived   bool
}

// Event is a kind of webhook event.
type Event string

// Events that webhooks can subscribe to.
const (
	// PullRequestEvent: a pull (or merge) request was opened, changed or closed.
	PullRequestEvent Event = "pull_request"
	// ReviewCommentEvent: a comment in a review thread.
	ReviewCommentEvent Event = "review_comment"
	// RepositoryEvent: a repository was created, renamed, transferred, archived, edited or deleted. GitLab tells groups
	// only about created and deleted ones.
	RepositoryEvent Event = "repository"
	// BranchDeletedEvent: a branch was deleted. GitLab and Azure DevOps send all pushes.
	BranchDeletedEvent Event = "branch_deleted"
)

// Webhook is the content of a webhook to create.
type Webhook struct {
	// Callback is the URL that the host calls.
	Callback string
	// Secret signs the host's requests (GitHub) or is sent with them (GitLab, Azure DevOps).
	Secret string
	Events []Event
}

// Subscription is a webhook at a host.
type Subscription struct {
	// ID is the host's id.
	ID string
	// Callback is the URL that it calls.
	Callback string
	// URL is the web page of the namespace.
	URL string
	// Events are the host's event names, sorted.
	Events []string
	Active bool
}

// ReviewComment is the first comment of a review thread.
type ReviewComment struct {
	// ID is the thread's id for ReplyToReviewComment.
	ID string
	// Author is the login.
	Author string
	Body   string
	// Path is the commented file; empty for a comment on the whole request.
	Path string
	// Line is in the newer version of the file; 0 if the line is gone or there is none.
	Line int64
	// URL is its web page; empty if the host has none.
	URL string
}

// Line is a line in the newer version of a file.
type Line struct {
	Path string
	Line int64
}

// Thread is a review thread that begins with a comment of ours.
type Thread struct {
	// ID is the discussion's (GitLab), the thread's (Azure DevOps) or the first comment's (GitHub), as for ReviewThread.
	ID string
	// Note is the id of the first comment.
	Note int64
}

// Status is what a service says about a commit.
type Status struct {
	// Name tells statuses of a commit apart. A later one replaces the earlier one.
	Name string
	// Number is the pull request's. Azure DevOps shows statuses there; 0 is the commit itself.
	Number int64
	// Passed is false if the commit must not be merged. Pending says that it is not known yet; Passed is false then.
	Passed, Pending bool
	// Text is one line, at most MaxStatusText runes.
	Text string
	// URL is a page with more.
	URL string
}

// word is the host's word for the status.
func (s Status) word(passed, failed, pending string) string {
	switch {
	case s.Pending:
		return pending
	case s.Passed:
		return passed
	}
	return failed
}

// MaxStatusText is the limit of the host with the shortest descriptions, GitHub.
const MaxStatusText = 140

// maxCommentPages limits the comments that FindComment reads.
const maxCommentPages = 10

// nextComments is the page of comments after this one; 0 ends the search.
func nextComments(page, next int) int {
	if page >= maxCommentPages {
		return 0
	}
	return next
}

// PullRequest is a pull (or merge) request.
type PullRequest struct {
	Number int64
	// Open is false after a merge or close.
	Open   bool
	Merged bool
	// Head and Base are the short names of the branches.
	Head, Base string
	// Commit is the head's, and MergeCommit the host's own merge of it with the base; may be empty.
	Commit, MergeCommit string
	// URL is its web page.
	URL string

	diff diffCommits
}

// diffCommits are the commits that a comment on a line names at GitLab.
type diffCommits struct{ base, start, head string }

// Supported lists the kinds of hosts that Open supports.
var Supported = []scmv1.ScmType{
	scmv1.ScmType_SCM_TYPE_GITHUB, scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE,
	scmv1.ScmType_SCM_TYPE_GITLAB, scmv1.ScmType_SCM_TYPE_GITLAB_SELFMANAGED, scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS,
}

// Open returns the host at a web URL ("https://github.com", "https://git.acme.test"), using the client and the
// credential. An unsupported kind of host is an error of the kind Unsupported.
func Open(kind scmv1.ScmType, baseURL, token string, client *http.Client) (Host, error) {
	api, err := apiURL(kind, baseURL)
	if err != nil {
		return nil, err
	}
	switch kind {
	case scmv1.ScmType_SCM_TYPE_GITHUB, scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE:
		return openGitHub(baseURL, api, token, client), nil
	case scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS:
		return openAzure(baseURL, api, token, false, client), nil
	default:
		return openGitLab(baseURL, api, token, client)
	}
}

// Callable returns why a host cannot be called, without calling it: its kind is unsupported, or its URL is invalid.
func Callable(kind scmv1.ScmType, baseURL string) error {
	_, err := apiURL(kind, baseURL)
	return err
}

// CloudURL is the web URL of a cloud service; empty for self-hosted kinds.
func CloudURL(kind scmv1.ScmType) string {
	switch kind {
	case scmv1.ScmType_SCM_TYPE_GITHUB:
		return "https://github.com"
	case scmv1.ScmType_SCM_TYPE_GITLAB:
		return "https://gitlab.com"
	case scmv1.ScmType_SCM_TYPE_BITBUCKET:
		return "https://bitbucket.org"
	case scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS:
		return "https://dev.azure.com"
	case scmv1.ScmType_SCM_TYPE_HARNESS:
		return "https://app.harness.io"
	}
	return ""
}

// apiURL is the API's base URL for a host's web URL. It ends in a slash.
func apiURL(kind scmv1.ScmType, baseURL string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(baseURL, "/") + "/")
	if err != nil || u.Host == "" {
		return nil, &Error{Kind: Malformed, Text: fmt.Sprintf("%q is not the URL of a source-code host", baseURL), cause: err}
	}
	switch kind {
	case scmv1.ScmType_SCM_TYPE_GITHUB:
		u.Host = "api." + u.Host
	case scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE:
		if strings.HasSuffix(u.Hostname(), ".ghe.com") { // GitHub Enterprise Cloud with data residency
			u.Host = "api." + u.Host
		} else {
			u.Path += "api/v3/"
		}
	case scmv1.ScmType_SCM_TYPE_GITLAB, scmv1.ScmType_SCM_TYPE_GITLAB_SELFMANAGED:
		u.Path += "api/v4/"
	case scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS: // the API is below the organization
	default:
		return nil, unsupported(kind)
	}
	return u, nil
}

func unsupported(kind scmv1.ScmType) error {
	names := make([]string, len(Supported))
	for i, k := range Supported {
		names[i] = k.String()
	}
	return &Error{Kind: Unsupported, Text: fmt.Sprintf("calling a host of type %s is not supported yet; supported: %s", kind, strings.Join(names, ", "))}
}
