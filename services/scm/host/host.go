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

// Host is a source-code host, with a credential for it. Every error is an *Error.
type Host interface {
	// Check asks who a namespace is and what the credential may do.
	Check(ctx context.Context, namespace string) (Account, error)
	// Repositories lists all repositories of a namespace, those of its subgroups too. After an error it ends.
	Repositories(ctx context.Context, namespace string) iter.Seq2[Repository, error]
	// Subscriptions lists the webhooks of a namespace, other people's too: compare Callback.
	Subscriptions(ctx context.Context, namespace string) ([]Subscription, error)
	// Subscribe makes a webhook. Namespaces that cannot have any (persons) are an error of the kind Unsupported.
	Subscribe(ctx context.Context, namespace string, hook Webhook) (Subscription, error)
	// UpdateWebhook gives an existing webhook this callback, secret and list of events.
	UpdateWebhook(ctx context.Context, namespace, id string, hook Webhook) (Subscription, error)
	// Unsubscribe deletes a webhook; one that is gone already is no error.
	Unsubscribe(ctx context.Context, namespace, id string) error
	// CanWrite reports whether a person may push to a repository ("acme/web").
	CanWrite(ctx context.Context, repository, login string) (bool, error)
	// ReviewThread returns the first comment of a review thread. thread is the id of any comment of it (GitHub), or of the
	// discussion (GitLab); number is the pull request's in its repository.
	ReviewThread(ctx context.Context, repository string, number int64, thread string) (ReviewComment, error)
	// ReplyToReviewComment answers in a review thread, which is named as for ReviewThread.
	ReplyToReviewComment(ctx context.Context, repository string, number int64, thread, text string) error
	// PullRequest returns a pull (or merge) request.
	PullRequest(ctx context.Context, repository string, number int64) (PullRequest, error)
	// File reads a file at a branch, tag or commit. What is no file of at most a megabyte is an error of the kind
	// Unsupported.
	File(ctx context.Context, repository, path, ref string) ([]byte, error)
	// Propose commits a change to a branch and opens a pull request for it. Called again with the same branch, it brings
	// the branch up to date and returns the pull request that there is.
	Propose(ctx context.Context, repository string, change Change) (PullRequest, error)
}

// Entity is what a namespace is.
type Entity string

// The kinds of namespaces, as ScmConfig.entity_type holds them.
const (
	Org  Entity = "ORG"
	User Entity = "USER"
)

// Account is a namespace at a host.
type Account struct {
	// ID is the host's number of the namespace.
	ID string
	// Path is how the host itself spells the namespace.
	Path string
	// Name is for people.
	Name string
	// URL is its web page.
	URL    string
	Entity Entity
	// Scopes are what the credential may do there.
	Scopes *scmv1.ScmTokenScopes
}

// Repository is a repository at a host.
type Repository struct {
	// ID is the host's number.
	ID string
	// Name is the full one: "acme/web", "acme/platform/api".
	Name string
	// URL is its web page.
	URL string
	// DefaultBranch is the short name; empty for a repository without commits.
	DefaultBranch string
	// Visibility is "public" or "private"; what an instance shows to its own users ("internal") is private.
	Visibility string
	Archived   bool
}

// Event is what a webhook tells.
type Event string

// The events that webhooks can be made for.
const (
	// PullRequestEvent is a pull (or merge) request that was opened, changed or closed.
	PullRequestEvent Event = "pull_request"
	// ReviewCommentEvent is a comment in a review thread.
	ReviewCommentEvent Event = "review_comment"
)

// Webhook is what a webhook is made of.
type Webhook struct {
	// Callback is the URL that the host calls.
	Callback string
	// Secret is what it signs its calls with (GitHub) or sends along (GitLab).
	Secret string
	Events []Event
}

// Subscription is a webhook at a host.
type Subscription struct {
	// ID is the host's.
	ID string
	// Callback is the URL that it calls.
	Callback string
	// URL is the web page of the namespace that it watches.
	URL string
	// Events are the host's words for what it tells, sorted.
	Events []string
	Active bool
}

// ReviewComment is the first comment of a review thread.
type ReviewComment struct {
	// ID is the thread's, as ReplyToReviewComment takes it.
	ID string
	// Author is the login.
	Author string
	Body   string
	// Path is the file that it was made on; empty for a comment on the whole.
	Path string
	// Line in the newer version of the file; 0 when the line is gone or the comment is on none.
	Line int64
	// URL is its web page; empty where the host gives none.
	URL string
}

// PullRequest is a pull (or merge) request.
type PullRequest struct {
	Number int64
	// Open is false once it is merged or closed.
	Open   bool
	Merged bool
	// Head and Base are the short names of the branches.
	Head, Base string
	// URL is its web page.
	URL string
}

// Supported lists the kinds of hosts that Open knows.
var Supported = []scmv1.ScmType{
	scmv1.ScmType_SCM_TYPE_GITHUB, scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE,
	scmv1.ScmType_SCM_TYPE_GITLAB, scmv1.ScmType_SCM_TYPE_GITLAB_SELFMANAGED,
}

// Open returns the host at a web URL ("https://github.com", "https://git.acme.test"), which is called with the client
// and the credential. A kind of host that is not supported yet is an error of the kind Unsupported.
func Open(kind scmv1.ScmType, baseURL, token string, client *http.Client) (Host, error) {
	api, err := apiURL(kind, baseURL)
	if err != nil {
		return nil, err
	}
	switch kind {
	case scmv1.ScmType_SCM_TYPE_GITHUB, scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE:
		return openGitHub(baseURL, api, token, client), nil
	default:
		return openGitLab(baseURL, api, token, client)
	}
}

// Callable says why a host cannot be called at all, without calling it: its kind is not supported yet, or its URL is
// none.
func Callable(kind scmv1.ScmType, baseURL string) error {
	_, err := apiURL(kind, baseURL)
	return err
}

// CloudURL is the web URL of a kind of host that is a service on the internet; empty for those that people run.
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

// apiURL is where the host at a web URL answers programs. It ends in a slash.
func apiURL(kind scmv1.ScmType, baseURL string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(baseURL, "/") + "/")
	if err != nil || u.Host == "" {
		return nil, &Error{Kind: Malformed, Text: fmt.Sprintf("%q is not the URL of a source-code host", baseURL), cause: err}
	}
	switch kind {
	case scmv1.ScmType_SCM_TYPE_GITHUB:
		u.Host = "api." + u.Host
	case scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE:
		if strings.HasSuffix(u.Hostname(), ".ghe.com") { // GitHub's own cloud for enterprises
			u.Host = "api." + u.Host
		} else {
			u.Path += "api/v3/"
		}
	case scmv1.ScmType_SCM_TYPE_GITLAB, scmv1.ScmType_SCM_TYPE_GITLAB_SELFMANAGED:
		u.Path += "api/v4/"
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
