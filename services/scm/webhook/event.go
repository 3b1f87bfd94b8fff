package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind is the kind of an event.
type Kind string

// Kinds of events that are processed.
const (
	// Other is any other event.
	Other Kind = ""
	// Pushed: a pull (or merge) request was opened or reopened, or has new commits.
	Pushed Kind = "pushed"
	// Closed: a pull (or merge) request was closed, merged or not.
	Closed Kind = "closed"
	// Commented: someone replied in a review thread of a pull (or merge) request.
	Commented Kind = "commented"
	// Changed: a repository was created, renamed, transferred, archived, unarchived or edited.
	Changed Kind = "repository"
	// Deleted: a repository was deleted.
	Deleted Kind = "repository_deleted"
	// BranchDeleted: a branch was deleted.
	BranchDeleted Kind = "branch_deleted"
	// Installed: an application's installation was created, deleted, suspended or resumed.
	Installed Kind = "installed"
)

// Event holds the processed fields of a webhook.
type Event struct {
	Kind Kind
	// At is the event's time by the host's clock; zero if the body has none.
	At time.Time
	// Repository is the full name ("acme/web", "acme/platform/api"), RepositoryID the host's id of it, empty if the body
	// has none, RepositoryURL its web page, and Number the pull request's number. Set for Pushed, Closed and Commented;
	// other kinds about a repository have no Number.
	Repository    string
	RepositoryID  string `json:",omitempty"`
	RepositoryURL string
	Number        int64
	// Former is the full name before a rename or transfer, and State the repository after it. Set for Changed.
	Former string `json:",omitempty"`
	State  *State `json:",omitempty"`
	// Ref is the full ref of a deleted branch.
	Ref string `json:",omitempty"`
	// MoreRefs are the full refs of the other branches that the same push deleted.
	MoreRefs []string `json:",omitempty"`
	// Commit is the head of the pull request, at Azure DevOps its merge with the base; empty if the body does not say. Set
	// for Pushed.
	Commit string `json:",omitempty"`
	// Merged is set for Closed.
	Merged bool
	// Comment is set for Commented.
	Comment Comment
	// Installation is set for Installed. Other kinds have only the ID, if an application's webhook sent it.
	Installation Installation
}

// State is what a body says about its repository.
type State struct {
	// DefaultBranch is the short name.
	DefaultBranch string
	// Visibility is "public" or "private".
	Visibility string
	Archived   bool
}

// Comment is a reply in a review thread.
type Comment struct {
	// ID is the comment's id, Thread the thread id that package host takes.
	ID, Thread string
	Body       string
	// Author is the login; Bot is true for a program.
	Author string
	Bot    bool
	// Path and Line locate the thread in the newer version of the file; empty and 0 if it has no location.
	Path string
	Line int64
}

// Installation is an application's installation in a namespace.
type Installation struct {
	// ID is the host's id.
	ID int64
	// Namespace is the organization or user.
	Namespace string
	// Present is false after deletion.
	Present   bool
	Suspended bool
	// ReadsCode reports whether the application may read code there; nil if the body does not say.
	ReadsCode *bool `json:",omitempty"`
	// UpdatedAt is when the host last changed the installation, to the second; zero if the body has no time. It orders
	// states of an installation, but is not the time of an event: a deletion has the time of the previous change.
	UpdatedAt time.Time
}

// Refs returns the refs under which scanners report a pull request: its head, and its merge with the base.
func Refs(host Host, number int64) []string {
	if host == GitLab {
		return []string{fmt.Sprintf("refs/merge-requests/%d/head", number), fmt.Sprintf("refs/merge-requests/%d/merge", number)}
	}
	return []string{fmt.Sprintf("refs/pull/%d/head", number), fmt.Sprintf("refs/pull/%d/merge", number)}
}

// RequestURL is the web page of a pull request, in the form that the host's API uses.
func RequestURL(host Host, repositoryURL string, number int64) string {
	if host == GitLab {
		return fmt.Sprintf("%s/-/merge_requests/%d", repositoryURL, number)
	}
	if host == AzureDevOps {
		return fmt.Sprintf("%s/pullrequest/%d", repositoryURL, number)
	}
	return fmt.Sprintf("%s/pull/%d", repositoryURL, number)
}

// ErrMalformed: the body is not in the host's format.
var ErrMalformed = errors.New("the body is not a webhook of this host")

const (
	// formField begins the body of a webhook that a host sends as a form (application/x-www-form-urlencoded).
	formField         = "payload="
	contentTypeAdvice = "set the content type of the webhook to application/json"
)

// Payload returns the JSON of a verified body. GitHub can send it as the field payload of a form; the signature covers
// the form.
func Payload(body []byte) ([]byte, error) {
	if !bytes.HasPrefix(body, []byte(formField)) {
		if start := bytes.TrimSpace(body); len(start) > 0 && start[0] != '{' {
			return nil, fmt.Errorf("%w: it is neither JSON nor a form with payload: %s", ErrMalformed, contentTypeAdvice)
		}
		return body, nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("%w: the form cannot be read: %s", ErrMalformed, contentTypeAdvice)
	}
	return []byte(form.Get(strings.TrimSuffix(formField, "="))), nil
}

// Parse parses a body. name is the host's event name from the header; Azure DevOps has it in the body. Events that are
// not processed have the kind Other, without an error. All texts of an event are valid UTF-8 without NUL characters.
func Parse(host Host, name string, body []byte) (Event, error) {
	if host == AzureDevOps {
		var err error
		if name, err = azureType(body); err != nil {
			return Event{}, err
		}
	}
	parse := parsers[host][name]
	if parse == nil {
		return Event{}, nil
	}
	e, err := parse(body)
	if err != nil {
		return Event{}, fmt.Errorf("%w: %s: %v", ErrMalformed, name, err) //nolint:errorlint // texts of the JSON decoder
	}
	if err := e.check(); err != nil {
		return Event{}, fmt.Errorf("%w: %s: %w", ErrMalformed, name, err)
	}
	return e, nil
}

var parsers = map[Host]map[string]func([]byte) (Event, error){
	GitHub: {
		"pull_request":                gitHubPullRequest,
		"pull_request_review_comment": gitHubComment,
		"installation":                gitHubInstallation,
		"repository":                  gitHubChange,
		"delete":                      gitHubDelete,
		"push":                        gitHubPush,
	},
	GitLab: {
		"Merge Request Hook": gitLabMergeRequest,
		"Note Hook":          gitLabNote,
		"Push Hook":          gitLabPush,
		"Project Hook":       gitLabChange,
		"System Hook":        gitLabChange,
	},
	AzureDevOps: {
		"git.pullrequest.created":                   azureOpened,
		"git.pullrequest.updated":                   azurePullRequest,
		"git.pullrequest.merged":                    azurePullRequest,
		"ms.vss-code.git-pullrequest-comment-event": azureComment,
		"git.push": azurePush,
	},
}

// idText is an id of a host; empty for none.
func idText(id int64) string {
	if id <= 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// decode parses JSON. Field names are matched case-insensitively; no host depends on case.
func decode[T any](body []byte) (T, error) {
	var payload T
	err := json.Unmarshal(body, &payload)
	return payload, err
}

// check rejects events without the fields that processing needs.
func (e *Event) check() error {
	e.Comment.Body = strings.ReplaceAll(strings.ToValidUTF8(e.Comment.Body, ""), "\x00", "")
	for _, name := range append([]string{
		e.Repository, e.RepositoryID, e.RepositoryURL, e.Former, e.Ref, e.Commit, e.Comment.ID, e.Comment.Thread, e.Comment.Author, e.Comment.Path, e.Installation.Namespace,
	}, e.MoreRefs...) {
		if len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
			return errors.New("a name is too long, or has control characters")
		}
	}
	switch e.Kind {
	case Closed, Pushed:
		return e.checkRequest()
	case Commented:
		if e.Comment.ID == "0" || e.Comment.Thread == "" || e.Comment.Author == "" {
			return errors.New("the comment, its thread or its author is missing")
		}
		return e.checkRequest()
	case Installed:
		if e.Installation.ID <= 0 || e.Installation.Namespace == "" {
			return errors.New("the installation or its account is missing")
		}
	case Changed, Deleted, BranchDeleted:
		return e.checkRepository()
	case Other:
	}
	return nil
}

// maxName is the maximum length of a name in bytes.
const maxName = 4096

func (e *Event) checkRequest() error {
	if !strings.Contains(e.Repository, "/") || e.Number <= 0 {
		return errors.New("the repository or the number of the request is missing")
	}
	return nil
}

// checkRepository requires the id: without it, nobody knows which repository has the name now.
func (e *Event) checkRepository() error {
	if !strings.Contains(e.Repository, "/") || e.RepositoryID == "" {
		return errors.New("the repository or its id is missing")
	}
	return nil
}
