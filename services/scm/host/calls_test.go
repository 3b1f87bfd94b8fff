package host_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// call is a call of a host with its result.
type call = func() (any, error)

// offline reports whether a call may send no request, because a host has no such things.
func offline(call string) bool { return call == "SetActionsSecret" || strings.Contains(call, "Issue") }

// issueNumber is the number of a host's first issue.
const issueNumber = 101

// done is a call without a result.
func done(err error) (any, error) { return nil, err }

// calls returns all operations of a host and of its issues by their names. A word after the name tells several apart.
func calls(ctx context.Context, h host.Host, namespace, repository string) map[string]call {
	hook := host.Webhook{Callback: "https://palisade.acme.test/hook", Secret: "s", Events: []host.Event{host.PullRequestEvent}}
	discussion, webhook := "100", "9001"
	thread := host.Thread{ID: "PRRT_kwDO0", Note: 9100}
	switch namespace {
	case "acme/platform": // GitLab
		discussion, webhook = hosttest.Discussion, "301"
	case "acme/tools": // Azure DevOps
		webhook, thread = hook.Callback, host.Thread{ID: "9100", Note: 1}
	}
	change := host.Change{Base: "main", Branch: "palisade/fix-1-1", Path: "app/db.py", Content: []byte("import db\n"), Title: "Fix"}
	status := host.Status{Name: "palisade", Passed: true, Text: "Passed", URL: "https://palisade.acme.test"}
	repositories := func(namespace string) call {
		return func() (any, error) {
			var list []host.Repository
			for one, err := range h.Repositories(ctx, namespace) {
				if err != nil {
					return nil, err
				}
				list = append(list, one)
			}
			return list, nil
		}
	}
	all := map[string]call{
		"Check":                func() (any, error) { return h.Check(ctx, namespace) },
		"Repositories":         repositories(namespace),
		"Repositories person":  repositories("octavia"),
		"Repository":           func() (any, error) { return h.Repository(ctx, repository) },
		"Subscriptions":        func() (any, error) { return h.Subscriptions(ctx, namespace) },
		"Subscribe":            func() (any, error) { return h.Subscribe(ctx, namespace, hook) },
		"UpdateWebhook":        func() (any, error) { return h.UpdateWebhook(ctx, namespace, webhook, hook) },
		"Unsubscribe":          func() (any, error) { return done(h.Unsubscribe(ctx, namespace, webhook)) },
		"CanWrite":             func() (any, error) { return h.CanWrite(ctx, repository, "grace") },
		"ReviewThread":         func() (any, error) { return h.ReviewThread(ctx, repository, 17, discussion) },
		"ReplyToReviewComment": func() (any, error) { return done(h.ReplyToReviewComment(ctx, repository, 17, "100", "Noted.")) },
		"SetStatus":            func() (any, error) { return done(h.SetStatus(ctx, repository, "3f2a", status)) },
		"SetStatus request": func() (any, error) {
			status.Number = 17
			return done(h.SetStatus(ctx, repository, "3f2a", status))
		},
		"FindComment": func() (any, error) { return h.FindComment(ctx, repository, 17, "marker") },
		"Comment":     func() (any, error) { return h.Comment(ctx, repository, 17, "Text") },
		"EditComment": func() (any, error) { return done(h.EditComment(ctx, repository, 17, "700", "Text")) },
		"CommentOnLine": func() (any, error) {
			request, err := h.PullRequest(ctx, repository, 17)
			if err != nil {
				return nil, err
			}
			return h.CommentOnLine(ctx, repository, request, host.Line{Path: "app/db.py", Line: 1}, "Text")
		},
		"FindThread":    func() (any, error) { return h.FindThread(ctx, repository, 17, "marker") },
		"EditThread":    func() (any, error) { return done(h.EditThread(ctx, repository, 17, thread, "Text")) },
		"ResolveThread": func() (any, error) { return done(h.ResolveThread(ctx, repository, 17, thread, true)) },
		"PullRequest":   func() (any, error) { return h.PullRequest(ctx, repository, 17) },
		"ChangedFiles":  func() (any, error) { return h.ChangedFiles(ctx, repository, 17) },
		"File":          func() (any, error) { return h.File(ctx, repository, "app/db.py", "main") },
		"Propose":       func() (any, error) { return h.Propose(ctx, repository, change) },
		"Propose again": func() (any, error) {
			change.Branch = "palisade/fix-2-2"
			return h.Propose(ctx, repository, change)
		},
		"SetActionsSecret": func() (any, error) { return done(h.SetActionsSecret(ctx, repository, "TOKEN", "secret")) },
	}
	maps.Copy(all, issueCalls(ctx, h.(host.Issues), repository))
	return all
}

func issueCalls(ctx context.Context, issues host.Issues, repository string) map[string]call {
	return map[string]call{
		"CheckIssues": func() (any, error) { return done(issues.CheckIssues(ctx, repository)) },
		"CreateIssue": func() (any, error) {
			return issues.CreateIssue(ctx, repository, host.IssueDraft{Title: "Leak", Body: "Text"})
		},
		"FindIssue":      func() (any, error) { return issues.FindIssue(ctx, repository, "marker", time.Now().Add(-time.Hour)) },
		"Issue":          func() (any, error) { return issues.Issue(ctx, repository, issueNumber) },
		"CommentOnIssue": func() (any, error) { return done(issues.CommentOnIssue(ctx, repository, issueNumber, "Text")) },
		"SetIssueOpen":   func() (any, error) { return done(issues.SetIssueOpen(ctx, repository, issueNumber, false)) },
	}
}

// appCalls returns all operations of an application.
func appCalls(ctx context.Context, app *host.App) map[string]call {
	found := func(h host.Host, err error) (any, error) { return h != nil, err }
	return map[string]call{
		"SetWebhook":     func() (any, error) { return done(app.SetWebhook(ctx, "https://palisade.acme.test/hook", "s")) },
		"ReadsCode":      func() (any, error) { return app.ReadsCode(ctx) },
		"Installation":   func() (any, error) { return found(app.Installation(ctx, 8801)) },
		"InstalledIn":    func() (any, error) { return app.InstalledIn(ctx, "acme") },
		"InstallationIn": func() (any, error) { return found(app.InstallationIn(ctx, "acme")) },
		"OpenInstalled":  func() (any, error) { return found(app.OpenInstalled(ctx, host.Installed{ID: 8801})) },
	}
}

// appKey is the private key of the application.
var appKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// openApp makes an application of a host.
func openApp(t *testing.T, s *hosttest.GitHub, c *http.Client) *host.App {
	t.Helper()
	key, err := appKey()
	if err != nil {
		t.Fatal(err)
	}
	s.AppKey = &key.PublicKey
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return host.OpenApp(enterprise, s.URL, "4711", string(text), c)
}

// TestEveryCallHasARow: the tests of failures cover all methods.
func TestEveryCallHasARow(t *testing.T) {
	names := func(rows map[string]call) (list []string) {
		for row := range rows {
			name, _, _ := strings.Cut(row, " ")
			list = append(list, name)
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	methods := func(types ...reflect.Type) (list []string) {
		for _, of := range types {
			for method := range of.Methods() {
				list = append(list, method.Name)
			}
		}
		slices.Sort(list)
		return list
	}
	s := hosttest.NewGitHub(t)
	rows := calls(t.Context(), open(t, enterprise, s.URL, s.Token), "acme", "acme/web")
	if got, want := names(rows), methods(reflect.TypeFor[host.Host](), reflect.TypeFor[host.Issues]()); !slices.Equal(got, want) {
		t.Errorf("calls has the rows\n%q, want\n%q", got, want)
	}
	app := openApp(t, s, client(t, egress.Limits{Timeout: time.Minute}))
	if got, want := names(appCalls(t.Context(), app)), methods(reflect.TypeFor[*host.App]()); !slices.Equal(got, want) {
		t.Errorf("appCalls has the rows\n%q, want\n%q", got, want)
	}
}
