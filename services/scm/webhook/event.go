package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind is what a webhook tells.
type Kind string

// The kinds of events that mean something here.
const (
	// Other is everything else.
	Other Kind = ""
	// Closed: a pull (or merge) request was closed, with or without a merge.
	Closed Kind = "closed"
	// Commented: somebody answered in a review thread of a pull (or merge) request.
	Commented Kind = "commented"
	// Installed: the installation of an application was made, deleted, suspended or resumed.
	Installed Kind = "installed"
)

// Event is what a webhook tells, as far as it means something here.
type Event struct {
	Kind Kind
	// At is when it happened by the host's clock; zero when the body does not say.
	At time.Time
	// Repository is the full name ("acme/web", "acme/platform/api"), RepositoryURL its web page; Number is the pull
	// request's. For Closed and Commented.
	Repository    string
	RepositoryURL string
	Number        int64
	// Merged is of Closed.
	Merged bool
	// Comment is of Commented.
	Comment Comment
	// Installation is of Installed; of the other kinds it has the ID alone, when an application's webhook told it.
	Installation Installation
}

// Comment is an answer in a review thread.
type Comment struct {
	// ID is the comment's, Thread what package host takes for its thread.
	ID, Thread string
	Body       string
	// Author is the login; Bot is true for a program.
	Author string
	Bot    bool
	// Path and Line are the place of the thread in the newer version of the file; empty and 0 when it has none.
	Path string
	Line int64
}

// Installation is an application's in a namespace.
type Installation struct {
	// ID is the host's number.
	ID int64
	// Namespace is the organization or person.
	Namespace string
	// Present is false after it was deleted.
	Present   bool
	Suspended bool
	// UpdatedAt is when the host changed it last, to the second; zero when the body does not say. It orders what the host
	// tells of installations, but is not when an event happened: a deletion shows the time of the change before.
	UpdatedAt time.Time
}

// Refs are the refs under which scanners report a pull request: its head, and its merge with the base.
func Refs(host Host, number int64) []string {
	if host == GitLab {
		return []string{fmt.Sprintf("refs/merge-requests/%d/head", number), fmt.Sprintf("refs/merge-requests/%d/merge", number)}
	}
	return []string{fmt.Sprintf("refs/pull/%d/head", number), fmt.Sprintf("refs/pull/%d/merge", number)}
}

// RequestURL is the web page of a pull request, as the API of its host writes it too.
func RequestURL(host Host, repositoryURL string, number int64) string {
	if host == GitLab {
		return fmt.Sprintf("%s/-/merge_requests/%d", repositoryURL, number)
	}
	return fmt.Sprintf("%s/pull/%d", repositoryURL, number)
}

// ErrMalformed says that a body is not what its host sends.
var ErrMalformed = errors.New("the body is not that of a webhook of this host")

// Parse reads a body; name is the host's word for what happened, from the header. Events that mean nothing here are of
// the kind Other, without an error. All texts of an event are UTF-8 without zero characters.
func Parse(host Host, name string, body []byte) (Event, error) {
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
	},
	GitLab: {
		"Merge Request Hook": gitLabMergeRequest,
		"Note Hook":          gitLabNote,
	},
}

// decode reads JSON. Fields are matched in any case, which no host relies on.
func decode[T any](body []byte) (T, error) {
	var payload T
	err := json.Unmarshal(body, &payload)
	return payload, err
}

// check refuses events without the facts that they are acted on by.
func (e *Event) check() error {
	e.Comment.Body = strings.ReplaceAll(strings.ToValidUTF8(e.Comment.Body, ""), "\x00", "")
	for _, name := range []string{
		e.Repository, e.RepositoryURL, e.Comment.ID, e.Comment.Thread, e.Comment.Author, e.Comment.Path, e.Installation.Namespace,
	} {
		if len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
			return errors.New("a name is too long, or has control characters")
		}
	}
	switch e.Kind {
	case Closed:
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
	case Other:
	}
	return nil
}

// maxName is in bytes.
const maxName = 4096

func (e *Event) checkRequest() error {
	if !strings.Contains(e.Repository, "/") || e.Number <= 0 {
		return errors.New("the repository or the number of the request is missing")
	}
	return nil
}
