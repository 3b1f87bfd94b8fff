package tracker_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/host/hosttest"
	"github.com/palisade/palisade/services/ticketing/tracker"
	"github.com/palisade/palisade/services/ticketing/tracker/trackertest"
)

// seen is a ticket as the tracker has it.
type seen struct {
	title, body string
	labels      []string
	comments    []string
	open        bool
}

// server is a tracker under test.
type server struct {
	config  tracker.Config
	project string
	// list returns all tickets.
	list func() []seen
	// setOpen changes a ticket as somebody else, and remove deletes it.
	setOpen func(key string, open bool)
	remove  func(key string)
	// lose loses the answer to the next new ticket.
	lose func()
	// answer replaces all responses.
	answer func(http.HandlerFunc)
}

func hostServer(kind tracker.Kind, project string, s *hosttest.Server) server {
	key := func(key string) (repository string, number int64) {
		repository, digits, _ := strings.Cut(key, "#")
		_, _ = fmt.Sscan(digits, &number)
		return repository, number
	}
	return server{
		config: tracker.Config{Kind: kind, BaseURL: s.URL, Token: s.Token}, project: project, lose: s.LoseIssue, answer: s.Answer,
		list: func() (list []seen) {
			for _, one := range s.Issues() {
				list = append(list, seen{one.Title, one.Body, one.Labels, one.Comments, one.Open})
			}
			return list
		},
		setOpen: func(k string, open bool) { repository, number := key(k); s.SetIssueOpen(repository, number, open) },
		remove:  func(k string) { repository, number := key(k); s.DeleteIssue(repository, number) },
	}
}

func jiraServer(kind tracker.Kind, j *trackertest.Jira) server {
	return server{
		config: tracker.Config{Kind: kind, BaseURL: j.URL, User: j.User, Token: j.Token}, project: "SEC",
		lose: j.LoseIssue, answer: func(answer http.HandlerFunc) { j.Answer("", answer) }, remove: j.Delete,
		list: func() (list []seen) {
			for _, one := range j.Issues() {
				list = append(list, seen{one.Title, one.Body, one.Labels, one.Comments, one.Open})
			}
			return list
		},
		setOpen: func(key string, open bool) { j.SetStatus(key, map[bool]string{true: "To Do", false: "Done"}[open]) },
	}
}

// servers starts a tracker of each kind.
func servers(t *testing.T) []server {
	gitHub, gitLab := hosttest.NewGitHub(t), hosttest.NewGitLab(t)
	gitHub.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/web", Visibility: "private", DefaultBranch: "main"}}
	gitLab.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/platform/api", Visibility: "private", DefaultBranch: "main"}}
	return []server{
		hostServer(tracker.GitHub, "acme/web", &gitHub.Server), hostServer(tracker.GitLab, "acme/platform/api", &gitLab.Server),
		jiraServer(tracker.Jira, trackertest.NewCloud(t)), jiraServer(tracker.JiraDataCenter, trackertest.NewDataCenter(t)),
	}
}

// each runs a test on all kinds.
func each(t *testing.T, test func(t *testing.T, tr tracker.Tracker, s server)) {
	for _, s := range servers(t) {
		t.Run(string(s.config.Kind), func(t *testing.T) { test(t, open(t, s.config), s) })
	}
}

// open uses the server's client with the egress guard.
func open(t *testing.T, c tracker.Config) tracker.Tracker {
	t.Helper()
	guard, err := egress.New(egress.Config{Allow: "127.0.0.1", UserAgent: "Palisade/test"})
	if err != nil {
		t.Fatal(err)
	}
	c.Client = guard.Client(egress.Limits{Timeout: time.Minute, MaxRedirects: 3})
	tr, err := tracker.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

var draft = tracker.Draft{
	Title: "SQL injection in login", Text: "The query contains input of the caller.\n\nSeverity: high",
	Items:  []tracker.Item{{Text: "src/login.go:12", URL: "https://palisade.acme.test/findings/7"}, {Text: "src/user.go:40"}},
	Marker: "m4rk-er_1", Labels: []string{"security", "from scanner"},
}

func check(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestLifeOfTicket(t *testing.T) {
	each(t, func(t *testing.T, tr tracker.Tracker, s server) {
		begun := time.Now()
		check(t, "check", tr.Check(t.Context(), s.project, ""))
		created, err := tr.Create(t.Context(), s.project, draft)
		check(t, "create", err)
		if key, ok := tracker.Key(s.config.Kind, s.config.BaseURL, created.URL); !ok || key != created.Key || created.ID == "" || !created.Open {
			t.Errorf("created %+v; its URL has the key %q", created, key)
		}
		for what, read := range map[string]func() (tracker.Ticket, error){
			"find": func() (tracker.Ticket, error) { return tr.Find(t.Context(), s.project, draft.Marker, begun) },
			"get":  func() (tracker.Ticket, error) { return tr.Get(t.Context(), created.Key) },
		} {
			if ticket, err := read(); err != nil || ticket != created {
				t.Errorf("%s: %+v, %v; want %+v", what, ticket, err, created)
			}
		}
		if none, err := tr.Find(t.Context(), s.project, "another", begun); err != nil || none != (tracker.Ticket{}) {
			t.Errorf("another marker: %+v, %v", none, err)
		}
		check(t, "comment", tr.Comment(t.Context(), created.Key, "All findings are fixed."))
		for _, open := range []bool{false, false, true, true, false} { // no error if it is so already
			check(t, "set open", tr.SetOpen(t.Context(), created.Key, open, ""))
			if ticket, err := tr.Get(t.Context(), created.Key); err != nil || ticket.Open != open || s.list()[0].open != open {
				t.Errorf("open %v: %+v, %v", open, ticket, err)
			}
		}
		got := s.list()[0]
		if got.title != draft.Title || !slices.Contains(got.labels, "security") || len(got.comments) != 1 ||
			!strings.Contains(got.comments[0], "All findings are fixed.") {
			t.Errorf("stored %+v", got)
		}
		for _, part := range []string{"The query contains input of the caller.", "https://palisade.acme.test/findings/7", "user.go:40"} {
			if !strings.Contains(got.body, part) {
				t.Errorf("the body lacks %q: %s", part, got.body)
			}
		}
		s.setOpen(created.Key, true)
		if ticket, err := tr.Get(t.Context(), created.Key); err != nil || !ticket.Open {
			t.Errorf("opened outside: %+v, %v", ticket, err)
		}
		s.remove(created.Key)
		for what, do := range map[string]func() error{
			"get":     func() error { _, err := tr.Get(t.Context(), created.Key); return err },
			"comment": func() error { return tr.Comment(t.Context(), created.Key, "Gone?") },
			"close":   func() error { return tr.SetOpen(t.Context(), created.Key, false, "") },
		} {
			if err := do(); !host.Is(err, host.NotFound) {
				t.Errorf("%s of a deleted ticket: %v", what, err)
			}
		}
	})
}

// TestLostAnswer: Find returns the ticket that an interrupted Create left.
func TestLostAnswer(t *testing.T) {
	each(t, func(t *testing.T, tr tracker.Tracker, s server) {
		begun := time.Now()
		s.lose()
		if _, err := tr.Create(t.Context(), s.project, draft); err == nil || host.Is(err, host.Refused) {
			t.Errorf("lost answer: %v", err)
		}
		if ticket, err := tr.Find(t.Context(), s.project, draft.Marker, begun); err != nil || ticket.Key == "" || len(s.list()) != 1 {
			t.Errorf("found %+v, %v", ticket, err)
		}
	})
}

// calls returns all operations of a tracker.
func calls(t *testing.T, tr tracker.Tracker, project, key string) map[string]func() error {
	return map[string]func() error{
		"Check":   func() error { return tr.Check(t.Context(), project, "") },
		"Create":  func() error { _, err := tr.Create(t.Context(), project, draft); return err },
		"Find":    func() error { _, err := tr.Find(t.Context(), project, draft.Marker, time.Now()); return err },
		"Get":     func() error { _, err := tr.Get(t.Context(), key); return err },
		"Comment": func() error { return tr.Comment(t.Context(), key, "Fixed.") },
		"SetOpen": func() error { return tr.SetOpen(t.Context(), key, false, "") },
	}
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   host.Kind
		text   string
	}{
		"unauthorized": {hosttest.Status(401, `{"message":"Bad credentials"}`), host.Unauthorized, "does not accept the"},
		"forbidden":    {hosttest.Status(403, `{"errorMessages":[],"errors":{}}`), host.Forbidden, "may not do this"},
		"hidden":       {hosttest.Status(404, `{"message":"Not Found","errorMessages":["No."],"errors":{}}`), host.NotFound, "not show it"},
		"failed":       {hosttest.Status(500, `<html><body>Internal error</body></html>`), host.Failed, "status 500"},
		"rate limited": {hosttest.Status(429, `<html>Too many</html>`, "Retry-After", "1020"), host.RateLimited, "try again after"},
		"sign-in page": {hosttest.Status(200, `<!DOCTYPE html><title>Log in</title>`), host.Malformed, "check"},
		"cut":          {hosttest.Status(200, `{"id": "42", "key": "SE`), host.Malformed, "check"},
		"other JSON":   {hosttest.Status(200, `{}`), host.Malformed, ""},
		"null":         {hosttest.Status(200, `null`), host.Malformed, ""},
		"nulls":        {hosttest.Status(200, `[null, null]`), host.Malformed, ""},
		"too large":    {hosttest.Status(200, `"`+strings.Repeat("x", 5<<20)+`"`), host.Malformed, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, tr tracker.Tracker, s server) {
				created, err := tr.Create(t.Context(), s.project, draft)
				check(t, "create", err)
				s.answer(c.answer)
				for call, do := range calls(t, tr, s.project, created.Key) {
					err := do()
					nothing := call == "Find" || call == "Create" && host.Is(err, host.Forbidden) // no issues, and no types of issues
					if nothing && (name == "other JSON" || strings.HasPrefix(name, "null")) {
						continue
					}
					if !host.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
						t.Errorf("%s: %v", call, err)
						continue
					}
					if strings.Contains(err.Error(), s.config.Token) || strings.Contains(err.Error(), "127.0.0.1") {
						t.Errorf("%s: the text tells too much: %v", call, err)
					}
					e, _ := err.(*host.Error)
					if left := time.Until(e.Reset); c.want == host.RateLimited && (left > 18*time.Minute || left < 10*time.Minute) {
						t.Errorf("%s: the limit ends at %s", call, e.Reset)
					}
				}
			})
		})
	}
}

// TestCredentialStaysAtItsTracker: redirects to another host are not followed, with any status.
func TestCredentialStaysAtItsTracker(t *testing.T) {
	visits := make(chan string, 100)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { visits <- r.Header.Get("Authorization") }))
	t.Cleanup(thief.Close)
	for _, status := range []int{301, 307} {
		each(t, func(t *testing.T, tr tracker.Tracker, s server) {
			created, err := tr.Create(t.Context(), s.project, draft)
			check(t, "create", err)
			s.answer(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL+r.URL.Path, status) })
			for call, do := range calls(t, tr, s.project, created.Key) {
				if err := do(); err == nil {
					t.Errorf("%s followed a redirect to another host", call)
				}
			}
		})
	}
	if len(visits) != 0 {
		t.Errorf("the other host was called with %q", <-visits)
	}
}

// TestRedirectsDoNotTurnWritesIntoReads: a client follows status 302 with GET.
func TestRedirectsDoNotTurnWritesIntoReads(t *testing.T) {
	j := trackertest.NewCloud(t)
	tr := open(t, jiraServer(tracker.Jira, j).config)
	created, err := tr.Create(t.Context(), "SEC", draft)
	check(t, "create", err)
	j.Answer("POST /rest/api/3/issue/"+created.Key, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/rest/api/3/issue/"+created.Key, http.StatusFound)
	})
	for what, err := range map[string]error{
		"comment": tr.Comment(t.Context(), created.Key, "Fixed."), "close": tr.SetOpen(t.Context(), created.Key, false, ""),
	} {
		if !host.Is(err, host.Malformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestUnusableConfig(t *testing.T) {
	for _, c := range []tracker.Config{
		{Kind: "trello", BaseURL: "https://acme.test"}, {Kind: tracker.Jira, BaseURL: "acme.atlassian.net"}, {Kind: tracker.GitHub},
		{Kind: tracker.Jira, BaseURL: "file:///etc/passwd"},
	} {
		if _, err := tracker.Open(c); !host.Is(err, host.Malformed) && !host.Is(err, host.Unsupported) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestKeysStayKeys: keys, projects and markers do not lead to other paths.
func TestKeysStayKeys(t *testing.T) {
	for _, s := range servers(t) {
		called := 0
		s.config.Client = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			called++
			return nil, fmt.Errorf("%s", r.URL)
		})}
		tr, err := tracker.Open(s.config)
		check(t, "open", err)
		for _, key := range []string{
			"", "..", "SEC", "acme/web", "acme/web#", "acme/web#0", "acme/web#-1", "../x#1x", "SEC-1/comment", "SEC-1?x=1", "SEC-0",
		} {
			if _, err := tr.Get(t.Context(), key); !host.Is(err, host.NotFound) {
				t.Errorf("%s: key %q: %v", s.config.Kind, key, err)
			}
		}
		for _, marker := range []string{"", `x" OR "`, "-->", strings.Repeat("x", 201)} {
			if _, err := tr.Find(t.Context(), s.project, marker, time.Now()); !host.Is(err, host.Refused) {
				t.Errorf("%s: marker %q: %v", s.config.Kind, marker, err)
			}
		}
		if s.config.Kind == tracker.GitLab {
			continue // its projects are escaped
		}
		if _, err := tr.Create(t.Context(), "../user", draft); !host.Is(err, host.NotFound) || called != 0 {
			t.Errorf("%s: project: %v; called %d times", s.config.Kind, err, called)
		}
	}
}

// TestAddresses: cloud services and servers have their APIs at different addresses.
func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		config  tracker.Config
		project string
		want    string // of the first request of a check
	}{
		{tracker.Config{Kind: tracker.GitHub, BaseURL: "https://github.com"}, "acme/web", "https://api.github.com/repos/acme/web"},
		{tracker.Config{Kind: tracker.GitHub, BaseURL: "https://GitHub.com/"}, "acme/web", "https://api.GitHub.com/repos/acme/web"},
		{tracker.Config{Kind: tracker.GitHub, BaseURL: "https://git.acme.test"}, "acme/web", "https://git.acme.test/api/v3/repos/acme/web"},
		{tracker.Config{Kind: tracker.GitLab, BaseURL: "https://gitlab.com"}, "acme/web", "https://gitlab.com/api/v4/projects/acme%2Fweb"},
		{tracker.Config{Kind: tracker.Jira, BaseURL: "https://acme.atlassian.net/"}, "SEC", "https://acme.atlassian.net/rest/api/3/myself"},
		{tracker.Config{Kind: tracker.JiraDataCenter, BaseURL: "https://acme.test/jira"}, "SEC", "https://acme.test/jira/rest/api/2/myself"},
	} {
		called, header := "", ""
		c.config.User, c.config.Token = "u", "t"
		c.config.Client = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			called, header = r.URL.String(), r.Header.Get("Authorization")
			return nil, http.ErrHandlerTimeout
		})}
		tr, err := tracker.Open(c.config)
		check(t, "open", err)
		want := "Bearer t"
		if c.config.Kind == tracker.Jira {
			want = "Basic dTp0"
		}
		if err := tr.Check(t.Context(), c.project, ""); err == nil || called != c.want || header != want {
			t.Errorf("%s: %s with %q, %v", c.config.BaseURL, called, header, err)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
