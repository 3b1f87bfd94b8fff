package hosttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// GitLab is a self-managed GitLab with the group "acme/platform" (id 42) and the user "octavia" (id 7). It accepts
// octavia's token.
type GitLab struct {
	Server
	// Scopes are the token's scopes.
	Scopes []string
	// Level is octavia's access level in the group; 0 means no member.
	Level int
	// Repositories are the group's repositories.
	Repositories []Repository
	// Writers are the logins of developers of all projects. Their user ids start at 7.
	Writers []string
	// Comments are the notes of the discussion "6a9c1750b37d513a43987b574953fceb50b03ce7" of merge request 17.
	Comments []Comment

	// Files are the files that can be read and changed.
	Files Files

	// MergeRequests are the states of merge requests by number.
	MergeRequests map[int64]Request

	hooks  []Hook
	pulls  []Pull
	nextID int64
}

// Discussion is the id of the discussion of GitLab.Comments.
const Discussion = "6a9c1750b37d513a43987b574953fceb50b03ce7"

// NewGitLab starts a self-managed GitLab.
func NewGitLab(t testing.TB) *GitLab {
	h := &GitLab{Scopes: []string{"api"}, Level: 50, nextID: 300}
	mux := http.NewServeMux()
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET /api/v4/personal_access_tokens/self":                               h.token,
		"GET /api/v4/groups/{group}":                                            h.group,
		"GET /api/v4/users":                                                     h.users,
		"GET /api/v4/groups/{group}/members/all/{user}":                         h.member,
		"GET /api/v4/groups/{group}/projects":                                   h.projects,
		"GET /api/v4/users/{user}/projects":                                     h.projects,
		"GET /api/v4/groups/{group}/hooks":                                      h.listHooks,
		"POST /api/v4/groups/{group}/hooks":                                     h.createHook,
		"PUT /api/v4/groups/{group}/hooks/{id}":                                 h.editHook,
		"DELETE /api/v4/groups/{group}/hooks/{id}":                              h.deleteHook,
		"GET /api/v4/projects/{project}":                                        h.project,
		"GET /api/v4/projects/{project}/members/all/{user}":                     h.projectMember,
		"GET /api/v4/projects/{project}/merge_requests":                         h.listRequests,
		"POST /api/v4/projects/{project}/merge_requests":                        h.createRequest,
		"GET /api/v4/projects/{project}/repository/files/{path}":                h.getFile,
		"PUT /api/v4/projects/{project}/repository/files/{path}":                h.putFile,
		"GET /api/v4/projects/{project}/merge_requests/{iid}":                   h.mergeRequest,
		"GET /api/v4/projects/{project}/merge_requests/{iid}/diffs":             h.mergeRequestDiffs,
		"GET /api/v4/projects/{project}/merge_requests/{iid}/discussions/{d}":   h.discussion,
		"POST /api/v4/projects/{p}/merge_requests/{i}/discussions/{d}/notes":    h.reply,
		"GET /api/v4/projects/{p}/merge_requests/{i}/notes":                     h.listNotes,
		"POST /api/v4/projects/{p}/merge_requests/{i}/notes":                    h.postNote,
		"PUT /api/v4/projects/{p}/merge_requests/{i}/notes/{id}":                h.putNote,
		"GET /api/v4/projects/{project}/issues":                                 h.getIssues,
		"POST /api/v4/projects/{project}/issues":                                h.postIssue,
		"GET /api/v4/projects/{project}/issues/{iid}":                           h.getIssue,
		"PUT /api/v4/projects/{project}/issues/{iid}":                           h.putIssue,
		"POST /api/v4/projects/{project}/issues/{iid}/notes":                    h.postIssueNote,
		"POST /api/v4/projects/{p}/statuses/{sha}":                              h.postStatus,
		"GET /api/v4/projects/{p}/merge_requests/{i}/discussions":               h.listDiscussions,
		"POST /api/v4/projects/{p}/merge_requests/{i}/discussions":              h.beginDiscussion,
		"PUT /api/v4/projects/{p}/merge_requests/{i}/discussions/{d}":           h.putDiscussion,
		"PUT /api/v4/projects/{p}/merge_requests/{i}/discussions/{d}/notes/{n}": h.putDiscussionNote,
	} {
		mux.HandleFunc(pattern, handler)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { notFoundGitLab(w, "Not Found") })
	h.start(t, mux, func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusUnauthorized, object{"message": "401 Unauthorized"})
	})
	return h
}

func notFoundGitLab(w http.ResponseWriter, what string) {
	write(w, http.StatusNotFound, object{"message": "404 " + what})
}

func (h *GitLab) token(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, object{
		"id": 4, "name": "palisade", "revoked": false, "created_at": "2026-01-20T22:11:48.151Z", "description": "", "scopes": h.Scopes,
		"user_id": 7, "last_used_at": nil, "active": true, "expires_at": "2027-01-20",
	})
}

func (h *GitLab) group(w http.ResponseWriter, r *http.Request) {
	if group := strings.ToLower(r.PathValue("group")); group != "acme/platform" && group != "42" {
		notFoundGitLab(w, "Group Not Found")
		return
	}
	write(w, http.StatusOK, object{
		"id": 42, "name": "Platform", "path": "platform", "full_name": "Acme / Platform", "full_path": "acme/platform", "visibility": "private",
		"web_url": h.URL + "/groups/acme/platform", "parent_id": 41, "created_at": "2020-01-15T12:36:29.590Z",
	})
}

func (h *GitLab) users(w http.ResponseWriter, r *http.Request) {
	logins := append([]string{"octavia"}, h.Writers...)
	out := []object{}
	if i := slices.Index(logins, r.URL.Query().Get("username")); i >= 0 {
		out = append(out, object{"id": 7 + i, "username": logins[i], "name": logins[i], "state": "active", "web_url": h.URL + "/" + logins[i]})
	}
	write(w, http.StatusOK, out)
}

func (h *GitLab) member(w http.ResponseWriter, r *http.Request) {
	if h.Level == 0 || r.PathValue("user") != "7" {
		notFoundGitLab(w, "Not found")
		return
	}
	write(w, http.StatusOK, object{"id": 7, "username": "octavia", "name": "Octavia", "state": "active", "access_level": h.Level, "expires_at": nil})
}

func (h *GitLab) projectMember(w http.ResponseWriter, r *http.Request) {
	i := int(number(r.PathValue("user"))) - 8
	if i < 0 || i >= len(h.Writers) {
		notFoundGitLab(w, "Not found")
		return
	}
	write(w, http.StatusOK, object{"id": i + 8, "username": h.Writers[i], "name": h.Writers[i], "state": "active", "access_level": 30})
}

func (h *GitLab) projects(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	var all []object
	for _, p := range h.Repositories {
		all = append(all, h.repository(p))
	}
	h.mu.Unlock()
	list(w, r, all)
}

// project answers with one project of the list.
func (h *GitLab) project(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	i := slices.IndexFunc(h.Repositories, func(p Repository) bool { return strings.EqualFold(p.Name, r.PathValue("project")) })
	var found object
	if i >= 0 {
		found = h.repository(h.Repositories[i])
	}
	h.mu.Unlock()
	if found == nil {
		notFoundGitLab(w, "Project Not Found")
		return
	}
	write(w, http.StatusOK, found)
}

func (h *GitLab) repository(p Repository) object {
	parts := strings.Split(p.Name, "/")
	issues := "enabled"
	if h.issues.disabled {
		issues = "disabled"
	}
	return object{
		"issues_access_level": issues,
		"id":                  p.ID, "name": parts[len(parts)-1], "path": parts[len(parts)-1], "path_with_namespace": p.Name, "web_url": h.URL + "/" + p.Name,
		"default_branch": p.DefaultBranch, "visibility": p.Visibility, "archived": p.Archived, "empty_repo": p.DefaultBranch == "", "created_at": "2024-09-30T13:46:02Z",
	}
}

// list writes a page with GitLab's headers.
func list(w http.ResponseWriter, r *http.Request, all []object) {
	items, next := pages(r, all)
	w.Header()["X-Next-Page"] = []string{""}
	if next > 0 {
		w.Header()["X-Next-Page"] = []string{fmt.Sprint(next)}
	}
	w.Header()["X-Total"] = []string{fmt.Sprint(len(all))}
	if items == nil {
		items = []object{}
	}
	write(w, http.StatusOK, items)
}

// Hooks lists the webhooks of the group.
func (h *GitLab) Hooks() []Hook {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Hook(nil), h.hooks...)
}

func gitLabHook(hook Hook) object {
	out := object{
		"id": hook.ID, "url": hook.URL, "name": "", "description": "", "group_id": 42, "push_events": false, "tag_push_events": false, "issues_events": false,
		"merge_requests_events": false, "note_events": false, "enable_ssl_verification": !hook.Insecure, "alert_status": "executable", "created_at": "2026-05-04T10:20:30.123Z",
	}
	for _, event := range hook.Events {
		out[event] = true
	}
	return out
}

func (h *GitLab) listHooks(w http.ResponseWriter, r *http.Request) {
	if h.Level < 50 {
		write(w, http.StatusForbidden, object{"message": "403 Forbidden"})
		return
	}
	var all []object
	for _, hook := range h.Hooks() {
		all = append(all, gitLabHook(hook))
	}
	list(w, r, all)
}

// decodeGitLabHook parses a request. Push events default to on.
func decodeGitLabHook(r *http.Request, id int64) Hook {
	var request map[string]any
	_ = json.NewDecoder(r.Body).Decode(&request)
	hook := Hook{ID: id, Insecure: request["enable_ssl_verification"] != true}
	hook.URL, _ = request["url"].(string)
	hook.Secret, _ = request["token"].(string)
	for _, event := range []string{"merge_requests_events", "note_events", "project_events", "push_events"} {
		on, said := request[event].(bool)
		if on || !said && event == "push_events" {
			hook.Events = append(hook.Events, event)
		}
	}
	return hook
}

func (h *GitLab) createHook(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.nextID++
	hook := decodeGitLabHook(r, h.nextID)
	h.hooks = append(h.hooks, hook)
	h.mu.Unlock()
	write(w, http.StatusCreated, gitLabHook(hook))
}

func (h *GitLab) editHook(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.hooks {
		if h.hooks[i].ID == number(r.PathValue("id")) {
			h.hooks[i] = decodeGitLabHook(r, h.hooks[i].ID)
			write(w, http.StatusOK, gitLabHook(h.hooks[i]))
			return
		}
	}
	notFoundGitLab(w, "Not found")
}

func (h *GitLab) deleteHook(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.hooks {
		if h.hooks[i].ID == number(r.PathValue("id")) {
			h.hooks = append(h.hooks[:i:i], h.hooks[i+1:]...)
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	notFoundGitLab(w, "Not found")
}

func (h *GitLab) mergeRequest(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	request := h.MergeRequests[number(r.PathValue("iid"))]
	h.mu.Unlock()
	state, count := "merged", number10(int64(len(request.Files)))
	if request.State == "open" {
		state = "opened"
	} else if request.State != "" {
		state = request.State
	}
	if request.Uncounted {
		count += "+"
	}
	write(w, http.StatusOK, object{
		"id": 88, "iid": number(r.PathValue("iid")), "project_id": 5, "state": state, "title": "Fix it", "source_branch": "fix/login", "target_branch": "main",
		"diff_refs": object{"base_sha": "77aa", "start_sha": "77ab", "head_sha": request.head()},
		"sha":       request.head(), "changes_count": count, "web_url": h.URL + "/" + r.PathValue("project") + "/-/merge_requests/" + r.PathValue("iid"),
	})
}

func (h *GitLab) mergeRequestDiffs(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	request := h.MergeRequests[number(r.PathValue("iid"))]
	h.mu.Unlock()
	all := []object{}
	for _, file := range request.Files {
		before, after := renamed(file)
		all = append(all, object{"old_path": before, "new_path": after, "a_mode": "100644", "b_mode": "100644", "diff": "", "renamed_file": before != after})
	}
	list(w, r, all)
}

func gitLabNote(c Comment) object {
	out := object{
		"id": c.ID, "type": "DiffNote", "body": c.Body, "author": object{"id": 1, "username": c.Author}, "system": false,
		"noteable_type": "MergeRequest", "noteable_iid": 17, "resolvable": true, "created_at": "2026-05-04T10:20:30.123Z",
	}
	if c.Path != "" {
		out["position"] = object{"base_sha": "77aa", "start_sha": "77aa", "head_sha": "3f2a", "position_type": "text", "old_path": c.Path, "new_path": c.Path, "new_line": c.Line}
	}
	return out
}

func (h *GitLab) discussion(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.PathValue("d") != Discussion {
		notFoundGitLab(w, "Discussion Not Found")
		return
	}
	notes := []object{}
	for _, c := range h.Comments {
		notes = append(notes, gitLabNote(c))
	}
	write(w, http.StatusOK, object{"id": Discussion, "individual_note": false, "notes": notes})
}

func (h *GitLab) reply(w http.ResponseWriter, r *http.Request) {
	var request struct{ Body string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nextID++
	c := Comment{ID: h.nextID, Author: "octavia", Body: request.Body}
	h.Comments = append(h.Comments, c)
	write(w, http.StatusCreated, gitLabNote(c))
}
