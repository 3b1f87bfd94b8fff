// Package trackertest runs a Jira for tests: a loopback server with the wire formats of Jira Cloud or Data Center from
// their public documentation, including failures. The issues of GitHub and GitLab are in package hosttest.
package trackertest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Jira is a Jira with the project "SEC" (id 10001), which has the types Epic (10000), Task (10002), Bug (10004) and
// Sub-task (10003), and a project "OPS" (id 10005) with the type Incident (10010). All issues have one workflow: To Do,
// In Progress, Done.
type Jira struct {
	// URL is the web URL, without a trailing slash.
	URL string
	// User and Token are the only accepted credential. User is empty for a Data Center.
	User, Token string

	cloud bool

	mu       sync.Mutex
	answers  map[string]http.HandlerFunc // by prefix of the request
	requests []string
	issues   []*Issue
	created  int
	required []string // more fields for new issues
	lose     bool
	// resolve says that the transition to Done requires a resolution.
	resolve bool
	// indexed is how many of the issues a search finds; all if it is negative.
	indexed int
}

// Issue is an issue of a project.
type Issue struct {
	ID, Key string
	// Title is the summary.
	Title string
	// Body is the description: a document in JSON (Cloud) or wiki text (Data Center).
	Body   string
	Type   string
	Labels []string
	// Comments have the format of the body; the oldest is first.
	Comments []string
	// Status is "To Do", "In Progress" or "Done".
	Status string
	// Resolution is the id of the resolution; empty for none.
	Resolution string
	Open       bool
	// Fields are all fields of the request that created it.
	Fields map[string]any

	earlier []string // keys before moves
}

// Statuses and their categories.
var categories = map[string]string{"To Do": "new", "In Progress": "indeterminate", "Done": "done"}

// NewCloud starts a Jira Cloud.
func NewCloud(t testing.TB) *Jira { return start(t, true) }

// NewDataCenter starts a Jira Data Center.
func NewDataCenter(t testing.TB) *Jira { return start(t, false) }

func start(t testing.TB, cloud bool) *Jira {
	j := &Jira{Token: "trackertest-0123456789-credential", cloud: cloud, answers: map[string]http.HandlerFunc{}, indexed: -1}
	version, search := "2", "search"
	if cloud {
		version, search, j.User = "3", "search/jql", "octavia@acme.test"
	}
	mux := http.NewServeMux()
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET myself":            j.myself,
		"GET project":           j.projects,
		"GET project/search":    j.projects,
		"GET project/{project}": j.project,
		"GET issue/createmeta/{project}/issuetypes": j.issueTypes,
		"POST issue":                   j.create,
		"GET issue/{key}":              j.get,
		"POST issue/{key}/comment":     j.comment,
		"GET issue/{key}/transitions":  j.transitions,
		"POST issue/{key}/transitions": j.transition,
		"POST " + search:               j.search,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /rest/api/"+version+"/"+path, handler)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html;charset=UTF-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<html><head><title>Oops, you've found a dead link.</title></head></html>"))
	})
	if cloud {
		mux.HandleFunc("POST /rest/api/3/search", func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusGone, nil, "The requested API has been removed. Please migrate to the /rest/api/3/search/jql API.")
		})
	}
	server := httptest.NewServer(j.guard(mux))
	t.Cleanup(server.Close)
	j.URL = server.URL
	return j
}

// guard records requests, gives the answers that a test set, and checks the credential.
func (j *Jira) guard(next http.Handler) http.Handler {
	want := "Bearer " + j.Token
	if j.cloud {
		want = "Basic " + base64.StdEncoding.EncodeToString([]byte(j.User+":"+j.Token))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := r.Method + " " + r.URL.RequestURI()
		j.mu.Lock()
		j.requests = append(j.requests, line)
		answer := j.answer(line)
		j.mu.Unlock()
		switch {
		case answer != nil:
			answer(w, r)
		case r.Header.Get("Authorization") != want:
			w.Header().Set("WWW-Authenticate", "OAuth realm=\""+j.URL+"\"")
			w.Header().Set("X-Seraph-Loginreason", "AUTHENTICATED_FAILED")
			write(w, http.StatusUnauthorized, object{"message": "Client must be authenticated to access this resource.", "status-code": 401})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// answer is the one with the longest prefix; nil if there is none.
func (j *Jira) answer(request string) (answer http.HandlerFunc) {
	longest := -1
	for prefix, one := range j.answers {
		if strings.HasPrefix(request, prefix) && len(prefix) > longest {
			answer, longest = one, len(prefix)
		}
	}
	return answer
}

// Answer replaces the responses to requests with a prefix ("POST /rest/api/3/issue", "" for all); nil restores them.
// hosttest.Status makes answers.
func (j *Jira) Answer(prefix string, answer http.HandlerFunc) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if answer == nil {
		delete(j.answers, prefix)
		return
	}
	j.answers[prefix] = answer
}

// Requests lists the requests as "GET /path?query", in order of arrival.
func (j *Jira) Requests() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.requests)
}

// Issues returns all issues, the oldest first.
func (j *Jira) Issues() (list []Issue) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, one := range j.issues {
		issue := *one
		issue.Labels, issue.Comments = slices.Clone(one.Labels), slices.Clone(one.Comments)
		issue.Open = categories[one.Status] != "done"
		list = append(list, issue)
	}
	return list
}

// SetStatus sets the status of an issue ("Done"), as somebody else.
func (j *Jira) SetStatus(key, status string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if issue := j.issue(key); issue != nil {
		issue.Status = status
	}
}

// Move gives an issue another key, as a move to another project does.
func (j *Jira) Move(key, to string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if issue := j.issue(key); issue != nil {
		issue.earlier, issue.Key = append(issue.earlier, issue.Key), to
	}
}

// Delete deletes an issue.
func (j *Jira) Delete(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.issues = slices.DeleteFunc(j.issues, func(one *Issue) bool { return one.Key == key })
}

// RequireFields refuses new issues without fields ("customfield_10011").
func (j *Jira) RequireFields(names ...string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.required = names
}

// RequireResolution says whether the transition to Done requires a resolution.
func (j *Jira) RequireResolution(required bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.resolve = required
}

// LoseIssue loses the answer to the next new issue.
func (j *Jira) LoseIssue() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lose = true
}

// StopIndex hides new issues from searches, as an index that is late does, until StartIndex.
func (j *Jira) StopIndex() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.indexed = len(j.issues)
}

// StartIndex lets searches find all issues.
func (j *Jira) StartIndex() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.indexed = -1
}

type object = map[string]any

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// refuse answers with errors of fields and of the whole request.
func refuse(w http.ResponseWriter, status int, fields map[string]string, messages ...string) {
	write(w, status, object{"errorMessages": append([]string{}, messages...), "errors": fields})
}

func (j *Jira) myself(w http.ResponseWriter, _ *http.Request) {
	if j.cloud {
		write(w, http.StatusOK, object{"accountId": "5b10a2844c20165700ede21g", "emailAddress": j.User, "active": true, "displayName": "Octavia"})
		return
	}
	write(w, http.StatusOK, object{"name": "octavia", "key": "JIRAUSER10100", "emailAddress": "octavia@acme.test", "active": true})
}

// projectIDs are the ids of the projects by key.
var projectIDs = map[string]string{"OPS": "10005", "SEC": "10001"}

// projectKey finds a project by its key or id; empty if there is none.
func projectKey(name string) string {
	for key, id := range projectIDs {
		if strings.EqualFold(name, key) || name == id {
			return key
		}
	}
	return ""
}

func projectObject(key string) object {
	return object{"id": projectIDs[key], "key": key, "name": key, "projectTypeKey": "software"}
}

func (j *Jira) projects(w http.ResponseWriter, _ *http.Request) {
	list := []object{projectObject("OPS"), projectObject("SEC")}
	if j.cloud {
		write(w, http.StatusOK, object{"values": list, "total": len(list), "isLast": true})
		return
	}
	write(w, http.StatusOK, list)
}

func (j *Jira) project(w http.ResponseWriter, r *http.Request) {
	key := projectKey(r.PathValue("project"))
	if key == "" {
		refuse(w, http.StatusNotFound, nil, fmt.Sprintf("No project could be found with key '%s'.", r.PathValue("project")))
		return
	}
	write(w, http.StatusOK, projectObject(key))
}

func typeObject(id, name string, subtask bool) object {
	return object{"id": id, "name": name, "subtask": subtask, "description": ""}
}

// typesOf are the types of issues of a project, in the order of Jira.
func typesOf(project string) []object {
	if project == "OPS" {
		return []object{typeObject("10011", "Step", true), typeObject("10010", "Incident", false)}
	}
	return []object{
		typeObject("10003", "Sub-task", true), typeObject("10000", "Epic", false),
		typeObject("10002", "Task", false), typeObject("10004", "Bug", false),
	}
}

func (j *Jira) issueTypes(w http.ResponseWriter, r *http.Request) {
	key := projectKey(r.PathValue("project"))
	if key == "" {
		refuse(w, http.StatusNotFound, nil, "Issue Does Not Exist")
		return
	}
	name := "values"
	if j.cloud {
		name = "issueTypes"
	}
	write(w, http.StatusOK, object{"startAt": 0, "maxResults": 50, "total": len(typesOf(key)), name: typesOf(key)})
}

// issue finds an issue by its id, its key or an earlier key; nil if there is none.
func (j *Jira) issue(key string) *Issue {
	for _, one := range j.issues {
		if one.ID == key || strings.EqualFold(one.Key, key) || slices.Contains(one.earlier, key) {
			return one
		}
	}
	return nil
}

// placed finds the issue of a request. It answers if there is none.
func (j *Jira) placed(w http.ResponseWriter, r *http.Request) *Issue {
	issue := j.issue(r.PathValue("key"))
	if issue == nil {
		refuse(w, http.StatusNotFound, nil, "Issue does not exist or you do not have permission to see it.")
	}
	return issue
}

func (j *Jira) object(issue *Issue) object {
	var resolution any
	if issue.Resolution != "" {
		resolution = object{"id": issue.Resolution, "name": resolutions[issue.Resolution]}
	}
	return object{
		"id": issue.ID, "key": issue.Key, "self": j.URL + "/rest/api/latest/issue/" + issue.ID, "expand": "renderedFields,names,schema",
		"fields": object{"status": statusObject(issue.Status), "resolution": resolution},
	}
}

func statusObject(name string) object {
	return object{"name": name, "id": strconv.Itoa(len(name)), "statusCategory": object{"id": 2, "key": categories[name], "name": name}}
}

func (j *Jira) get(w http.ResponseWriter, r *http.Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if issue := j.placed(w, r); issue != nil {
		write(w, http.StatusOK, j.object(issue))
	}
}
