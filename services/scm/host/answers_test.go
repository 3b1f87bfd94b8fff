package host_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// exchange is a request with its answer.
type exchange struct {
	request string
	body    []byte
}

// tampered replaces the answer to one request, counted from 0, and notes all answers.
type tampered struct {
	next      http.RoundTripper
	at        int
	body      string
	status    int // 0 is 200
	exchanges []exchange
}

func (r *tampered) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	if len(r.exchanges) == r.at {
		body, answer.StatusCode = []byte(r.body), cmp.Or(r.status, http.StatusOK)
	}
	r.exchanges = append(r.exchanges, exchange{request.Method + " " + request.URL.Path, body})
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return answer, nil
}

// side is one kind of host, or its applications.
type side struct {
	name string
	// calls starts a host on which all calls succeed, and returns them as they go through a transport.
	calls func(t *testing.T, r *tampered) map[string]call
}

var sides = []side{
	{"github", func(t *testing.T, r *tampered) map[string]call {
		s := hosttest.NewGitHub(t)
		s.Scopes = nil // the permissions are read
		s.Repositories = []hosttest.Repository{
			{ID: 1, Name: "acme/web", DefaultBranch: "main", Visibility: "private"},
			{ID: 2, Name: "octavia/dotfiles", DefaultBranch: "main", Visibility: "private"},
		}
		s.Files, s.PullRequests = hosttest.Files{"main:app/db.py": program}, openRequest()
		s.Comments, s.Writers = []hosttest.Comment{{ID: 99, Author: "palisade"}, {ID: 100, ReplyTo: 99, Author: "grace"}}, []string{"grace"}
		return tamper(t, enterprise, &s.Server, r, "acme", "acme/web")
	}},
	{"gitlab", func(t *testing.T, r *tampered) map[string]call {
		s := hosttest.NewGitLab(t)
		s.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/platform/api", DefaultBranch: "main", Visibility: "private"}}
		s.Files, s.MergeRequests = hosttest.Files{"main:app/db.py": program}, openRequest()
		s.Comments, s.Writers = []hosttest.Comment{{ID: 99, Author: "palisade", Path: "app/db.py", Line: 1}}, []string{"grace"}
		all := tamper(t, selfManaged, &s.Server, r, "acme/platform", "acme/platform/api")
		delete(all, "SetActionsSecret") // it calls nobody
		return all
	}},
	{"azure", func(t *testing.T, r *tampered) map[string]call {
		s := hosttest.NewAzure(t)
		s.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/tools/web", DefaultBranch: "main", Visibility: "private"}}
		s.Files, s.PullRequests = hosttest.Files{"main:app/db.py": program}, openRequest()
		s.Comments, s.Writers = []hosttest.Comment{{ID: 1, Author: "palisade", Path: "app/db.py", Line: 1}}, []string{"grace"}
		all := tamper(t, azureDevOps, &s.Server, r, "acme/tools", "acme/tools/web")
		maps.DeleteFunc(all, func(name string, _ call) bool { return offline(name) })
		return all
	}},
	{"application", func(t *testing.T, r *tampered) map[string]call {
		s := hosttest.NewGitHub(t)
		return appCalls(t.Context(), openApp(t, s, r.client(t)))
	}},
}

func openRequest() map[int64]hosttest.Request {
	return map[int64]hosttest.Request{17: {State: "open", Files: []string{"app/db.py"}}}
}

// client returns a client that goes through the transport.
func (r *tampered) client(t *testing.T) *http.Client {
	c := client(t, egress.Limits{Timeout: time.Minute})
	r.next, c.Transport = c.Transport, r
	return c
}

// tamper fills a host with what the calls need.
func tamper(t *testing.T, kind scmv1.ScmType, s *hosttest.Server, r *tampered, namespace, repository string) map[string]call {
	t.Helper()
	h := open(t, kind, s.URL, s.Token)
	hook := host.Webhook{Callback: "https://palisade.acme.test/hook", Events: []host.Event{host.PullRequestEvent}}
	_, made := h.Subscribe(t.Context(), namespace, hook)
	_, commented := h.Comment(t.Context(), repository, 17, "marker")
	request, read := h.PullRequest(t.Context(), repository, 17)
	_, begun := h.CommentOnLine(t.Context(), repository, request, host.Line{Path: "app/db.py", Line: 1}, "marker")
	_, proposed := h.Propose(t.Context(), repository, host.Change{
		Base: "main", Branch: "palisade/fix-2-2", Path: "app/db.py", Content: []byte("import db\n"), Title: "Fix",
	})
	if err := errors.Join(made, commented, read, begun, proposed); err != nil {
		t.Fatal(err)
	}
	s.AddIssue(hosttest.Issue{Repository: repository, Title: "Leak", Body: "marker"})
	through, err := host.Open(kind, s.URL, s.Token, r.client(t))
	if err != nil {
		t.Fatal(err)
	}
	return calls(t.Context(), through, namespace, repository)
}

// origin is the address of a host, which differs in each run.
var origin = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)

// run calls a host with a replaced answer, and returns the result as text.
func (s side) run(t *testing.T, name string, r *tampered) (result string, err error) {
	t.Helper()
	all := s.calls(t, r)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	value, err := all[name]()
	return origin.ReplaceAllString(fmt.Sprintf("%+v", value), ""), err
}

// unread are the requests whose answers have no content that is read.
func unread(request string) bool {
	return strings.HasPrefix(request, "DELETE ") || strings.HasPrefix(request, "PUT ") && strings.Contains(request, "/actions/secrets/")
}

// TestAnswersWithoutContent replaces each answer that a call reads: it is an error, whatever the host answers.
func TestAnswersWithoutContent(t *testing.T) {
	for _, s := range sides {
		t.Run(s.name, func(t *testing.T) {
			all := s.calls(t, &tampered{at: -1})
			for name := range all {
				t.Run(name, func(t *testing.T) {
					none := &tampered{at: -1}
					if _, err := s.run(t, name, none); err != nil {
						t.Fatal(err)
					}
					for i, one := range none.exchanges {
						list := bytes.HasPrefix(one.body, []byte("["))
						for _, body := range []string{"null", "[null]", "[{}]", "{}", "[]", "", " \n"} {
							_, err := s.run(t, name, &tampered{at: i, body: body})
							ours, _ := err.(*host.Error)
							ok := host.Is(err, host.Malformed) || err == nil && unread(one.request) || list && body == "[]" && (err == nil || ours != nil)
							if !ok {
								t.Errorf("%s answers %q: %v", one.request, body, err)
							}
						}
					}
				})
			}
		})
	}
}

// absent are the members of answers that hosts leave out in some cases, and what then happens.
var absent = map[string]string{
	"github Check [].permissions":          "read_contents:true", // GitHub names them to members
	"gitlab PullRequest diff_refs":         "Commit:3f2a",        // a new request has none yet
	"gitlab CommentOnLine diff_refs":       "try again later",
	"gitlab ReviewThread notes[].position": "Path: Line:0", // a comment on the whole request

	"azure PullRequest lastMergeSourceCommit":         "Commit: ", // a new request has none yet
	"azure PullRequest lastMergeCommit":               "MergeCommit: ",
	"azure CommentOnLine value[].lineDiffBlocks":      "does not change this line", // a binary file
	"azure FindThread value[].threadContext":          "ID: Note:0",                // a comment on the whole request
	"azure ReviewThread threadContext":                "Path: Line:0",
	"azure ReviewThread threadContext.rightFileStart": "Path:app/db.py Line:0",
}

// TestAnswersWithNullInside replaces each object and list in an answer with null. That is an error, or changes nothing.
func TestAnswersWithNullInside(t *testing.T) {
	for _, s := range sides {
		t.Run(s.name, func(t *testing.T) {
			all := s.calls(t, &tampered{at: -1})
			for name := range all {
				t.Run(name, func(t *testing.T) {
					none := &tampered{at: -1}
					want, err := s.run(t, name, none)
					if err != nil {
						t.Fatal(err)
					}
					for i, one := range none.exchanges {
						for member, body := range nulled(t, one.body) {
							got, err := s.run(t, name, &tampered{at: i, body: body})
							if host.Is(err, host.Malformed) || err == nil && got == want {
								continue
							}
							if then, ok := absent[s.name+" "+name+" "+member]; !ok || !strings.Contains(fmt.Sprint(got, err), then) {
								t.Errorf("%s answers with %q null: %s, %v", one.request, member, got, err)
							}
						}
					}
				})
			}
		})
	}
}

// nulled returns a body for each of its objects and lists within, by their paths, with null in its place.
func nulled(t *testing.T, body []byte) map[string]string {
	t.Helper()
	bodies := map[string]string{}
	var root any
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, &root); err != nil {
		t.Fatal(err)
	}
	var visit func(path string, value any, set func(any))
	visit = func(path string, value any, set func(any)) {
		switch value := value.(type) {
		case map[string]any:
			for key, inner := range value {
				visit(strings.TrimPrefix(path+"."+key, "."), inner, func(v any) { value[key] = v })
			}
		case []any:
			for i, inner := range value {
				visit(path+"[]", inner, func(v any) { value[i] = v })
			}
		default:
			return
		}
		if set == nil {
			return
		}
		set(nil)
		changed, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		bodies[path] = string(changed)
		set(value)
	}
	visit("", root, nil)
	return bodies
}

// TestListOfAPersonIsComplete: without its owner's answer, the list has only the public repositories.
func TestListOfAPersonIsComplete(t *testing.T) {
	for status, want := range map[int]host.Kind{502: host.Failed, 429: host.RateLimited, 403: ""} {
		list, err := sides[0].run(t, "Repositories person", &tampered{at: 1, status: status})
		if want == "" && (err != nil || !strings.Contains(list, "octavia/dotfiles")) || want != "" && !host.Is(err, want) {
			t.Errorf("status %d: %s, %v", status, list, err)
		}
	}
}

// TestLabelsOfSeveralTypes: GitLab answers with names or objects, never with both.
func TestLabelsOfSeveralTypes(t *testing.T) {
	s := hosttest.NewGitLab(t)
	h := open(t, selfManaged, s.URL, s.Token)
	s.Answer(hosttest.Status(200, `{"iid":17,"state":"opened","source_branch":"fix","target_branch":"main","changes_count":"1",
		"labels":[{"name":"a"},"b",null]}`))
	if pull, err := h.PullRequest(t.Context(), "acme/platform/api", 17); err != nil || pull.Number != 17 {
		t.Errorf("%+v, %v", pull, err)
	}
	if _, err := h.ChangedFiles(t.Context(), "acme/platform/api", 17); !host.Is(err, host.Malformed) {
		t.Errorf("files: %v", err)
	}
}
