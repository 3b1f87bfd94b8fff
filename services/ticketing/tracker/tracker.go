// Package tracker is a client of issue trackers: the issues of GitHub and GitLab, Jira Cloud and Jira Data Center. It
// does not use the database or the RPCs.
//
// A Tracker never retries by itself. All errors are *host.Error, with a text for the person who set up the connection.
// The credential is sent only to the tracker's own address.
package tracker

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/palisade/palisade/services/scm/host"
)

// Kind is a kind of tracker, as stored and shown.
type Kind string

// Kinds of trackers.
const (
	// GitHub is github.com or a GitHub Enterprise server.
	GitHub Kind = "github"
	// GitLab is gitlab.com or a self-managed GitLab.
	GitLab Kind = "gitlab"
	// Jira is Jira Cloud.
	Jira Kind = "jira"
	// JiraDataCenter is a Jira Data Center or Server that the customer runs.
	JiraDataCenter Kind = "jira-data-center"
)

// Config says which tracker to call, and how.
type Config struct {
	Kind Kind
	// BaseURL is the web URL without a trailing slash: "https://acme.atlassian.net", "https://github.com".
	BaseURL string
	// User is the e-mail address of the token's account at Jira Cloud; empty for other kinds.
	User  string
	Token string
	// Client makes the calls. Its transport is the egress guard's. It must follow redirects, because issues and
	// repositories move.
	Client *http.Client
}

// Tracker is an issue tracker with a credential. All errors are *host.Error.
type Tracker interface {
	// Check reports what is wrong with the credential, the project or (Jira) the type of issues, and names what exists.
	Check(ctx context.Context, project, issueType string) error
	// Create creates a ticket.
	Create(ctx context.Context, project string, draft Draft) (Ticket, error)
	// Find returns a ticket with a marker; a zero value if there is none. It may miss tickets from before since, by the
	// tracker's clock, and all but the newest 500 since then. Jira's index is late: it may also miss a ticket of the last
	// seconds.
	Find(ctx context.Context, project, marker string, since time.Time) (Ticket, error)
	// Get reads a ticket. A deleted or hidden one is an error of the kind NotFound. A ticket that was moved has its new
	// key.
	Get(ctx context.Context, key string) (Ticket, error)
	// Comment adds a comment of plain paragraphs.
	Comment(ctx context.Context, key, text string) error
	// SetOpen closes a ticket or opens it again, if it is not so already. Jira makes the transition with the id; if that
	// is empty, the first one that leads to a status of the category "done" (open: of another category).
	SetOpen(ctx context.Context, key string, open bool, transitionID string) error
}

// Draft is the content of a new ticket. All texts may come from a scanner: they appear as they are, without mentions,
// links or markup.
type Draft struct {
	Title string
	// Text are plain paragraphs, with an empty line between them.
	Text string
	// Items are the findings.
	Items []Item
	// Marker identifies the ticket for Find: letters, digits, "-" and "_". It must be hard to guess.
	Marker string
	Labels []string
	// IssueType is the name or id of a type at Jira. The default is "Task", or the project's first type.
	IssueType string
	// Fields are more fields at Jira, as its API takes them. They do not replace what is above.
	Fields map[string]any
}

// Item is a line of a ticket with a link of ours.
type Item struct{ Text, URL string }

// Ticket is a ticket of a tracker.
type Ticket struct {
	// Key is what people see, and what Get takes: "acme/web#12", "SEC-12".
	Key string
	// ID is the tracker's own id.
	ID string
	// URL is its web page.
	URL  string
	Open bool
}

// Open returns a tracker. It sends no request.
func Open(c Config) (Tracker, error) {
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if u, err := url.Parse(c.BaseURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, &host.Error{Kind: host.Malformed, Text: fmt.Sprintf("%q is not the URL of a tracker", c.BaseURL)}
	}
	switch c.Kind {
	case GitHub, GitLab:
		return openHosted(c)
	case Jira, JiraDataCenter:
		return openJira(c), nil
	}
	return nil, &host.Error{Kind: host.Unsupported, Text: fmt.Sprintf("trackers of the kind %q are not supported", c.Kind)}
}

func notFound(text string, values ...any) error {
	return &host.Error{Kind: host.NotFound, Text: fmt.Sprintf(text, values...)}
}

func refused(text string, values ...any) error {
	return &host.Error{Kind: host.Refused, Text: fmt.Sprintf(text, values...)}
}

// markers are the labels and comments that Find looks for.
var markers = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)

func checkMarker(marker string) error {
	if !markers.MatchString(marker) {
		return refused("%q is not a marker of a ticket", oneLine(marker, maxTitle))
	}
	return nil
}

// labels removes what a tracker does not accept in labels.
func labels(kind Kind, list []string) (clean []string) {
	for _, label := range list {
		switch label = oneLine(label, maxTitle); kind {
		case GitLab:
			label = strings.ReplaceAll(label, ",", " ") // divides labels
		case Jira, JiraDataCenter:
			label = strings.ReplaceAll(label, " ", "-")
		}
		if label != "" && !slices.Contains(clean, label) {
			clean = append(clean, label)
		}
	}
	return clean
}
