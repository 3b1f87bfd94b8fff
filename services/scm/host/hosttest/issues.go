package hosttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Issue is an issue of a repository.
type Issue struct {
	ID         int64
	Repository string
	Number     int64
	Title      string
	Body       string
	Labels     []string
	// Comments are the texts of the comments, the oldest first.
	Comments []string
	Open     bool
	// Reason is the last state_reason (GitHub).
	Reason string
	// Confidential is for GitLab.
	Confidential bool
	// PullRequest says that it is a pull request, which GitHub lists among the issues.
	PullRequest bool
	Created     time.Time

	deleted bool
	moved   *Issue // where it is after a transfer
}

// issues are the issues of all repositories of a host.
type issues struct {
	list []*Issue
	// disabled says that the repositories have no issues.
	disabled bool
	// lose ends the connection after the next issue was stored.
	lose bool
}

// Issues returns the issues of all repositories that exist, the oldest first.
func (s *Server) Issues() (list []Issue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.issues.list {
		if !one.deleted && one.moved == nil {
			list = append(list, one.copy())
		}
	}
	return list
}

func (i *Issue) copy() Issue {
	out := *i
	out.Labels, out.Comments = slices.Clone(i.Labels), slices.Clone(i.Comments)
	return out
}

// AddIssue stores an open issue as somebody else. The time of the creation is now, if it has none.
func (s *Server) AddIssue(issue Issue) Issue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addIssue(issue).copy()
}

// addIssue numbers issues of all repositories together, from 101.
func (s *Server) addIssue(issue Issue) *Issue {
	n := int64(len(s.issues.list))
	issue.ID, issue.Number, issue.Open = 880_001+n, 101+n, true
	if issue.Created.IsZero() {
		issue.Created = time.Now()
	}
	s.issues.list = append(s.issues.list, &issue)
	return &issue
}

// SetIssueOpen closes an issue or opens it again, as somebody else.
func (s *Server) SetIssueOpen(repository string, number int64, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issue(repository, number).Open = open
}

// DeleteIssue deletes an issue.
func (s *Server) DeleteIssue(repository string, number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issue(repository, number).deleted = true
}

// TransferIssue moves an issue to another repository, where it has another number.
func (s *Server) TransferIssue(repository string, number int64, to string) Issue {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.issue(repository, number)
	issue := from.copy()
	issue.Repository = to
	from.moved = s.addIssue(issue)
	from.Open = false
	return from.moved.copy()
}

// DisableIssues says whether the repositories have no issues.
func (s *Server) DisableIssues(disabled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issues.disabled = disabled
}

// LoseIssue loses the answer to the next new issue.
func (s *Server) LoseIssue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issues.lose = true
}

// issue returns an issue by its place; a deleted one, which no answer shows, if there is none.
func (s *Server) issue(repository string, number int64) *Issue {
	for _, one := range s.issues.list {
		if strings.EqualFold(one.Repository, repository) && one.Number == number {
			return one
		}
	}
	return &Issue{deleted: true}
}

// createIssue stores a new issue. It ends the connection if the answer is to be lost.
func (s *Server) createIssue(issue Issue) *Issue {
	stored := s.addIssue(issue)
	if s.issues.lose {
		s.issues.lose = false
		panic(http.ErrAbortHandler)
	}
	return stored
}

// listIssues returns the issues of a repository that a condition selects, the newest first.
func (s *Server) listIssues(repository string, which func(*Issue) bool) (list []*Issue) {
	for _, one := range slices.Backward(s.issues.list) {
		if strings.EqualFold(one.Repository, repository) && !one.deleted && which(one) {
			list = append(list, one)
		}
	}
	slices.SortStableFunc(list, func(a, b *Issue) int { return b.Created.Compare(a.Created) })
	return list
}

func timeOf(r *http.Request, parameter string) time.Time {
	at, _ := time.Parse(time.RFC3339, r.URL.Query().Get(parameter))
	return at
}

const gitHubDocs = "https://docs.github.com/v3/issues/"

// withIssues returns the repository of a request. If it or its issues do not exist, the request is answered.
func (h *GitHub) withIssues(w http.ResponseWriter, r *http.Request) (repository string, ok bool) {
	repository = r.PathValue("owner") + "/" + r.PathValue("repo")
	if !slices.ContainsFunc(h.Repositories, func(one Repository) bool { return strings.EqualFold(one.Name, repository) }) {
		h.notFound(w)
		return "", false
	}
	if h.issues.disabled {
		write(w, http.StatusGone, object{"message": "Issues has been disabled in this repository.", "documentation_url": gitHubDocs})
		return "", false
	}
	return repository, true
}

func (h *GitHub) issueObject(i *Issue) object {
	labels := []object{}
	for _, label := range i.Labels {
		labels = append(labels, object{"id": 208045946, "name": label, "color": "ededed", "default": false})
	}
	state := "closed"
	if i.Open {
		state = "open"
	}
	out := object{
		"id": i.ID, "node_id": "I_kwDO", "number": i.Number, "state": state, "state_reason": nil, "locked": false,
		"title": i.Title, "body": i.Body,
		"labels": labels, "comments": len(i.Comments), "user": h.user("octavia", 7002, "User"),
		"url":            fmt.Sprintf("%s/api/v3/repos/%s/issues/%d", h.URL, i.Repository, i.Number),
		"repository_url": h.URL + "/api/v3/repos/" + i.Repository, "html_url": fmt.Sprintf("%s/%s/issues/%d", h.URL, i.Repository, i.Number),
		"created_at": i.Created.UTC().Format(time.RFC3339), "updated_at": i.Created.UTC().Format(time.RFC3339), "closed_at": nil,
	}
	if i.Reason != "" {
		out["state_reason"] = i.Reason
	}
	if i.PullRequest {
		out["pull_request"] = object{"url": fmt.Sprintf("%s/api/v3/repos/%s/pulls/%d", h.URL, i.Repository, i.Number)}
	}
	return out
}

// getIssues applies state and since, as GitHub does: since is about the last change.
func (h *GitHub) getIssues(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	repository, ok := h.withIssues(w, r)
	if !ok {
		return
	}
	state, since := r.URL.Query().Get("state"), timeOf(r, "since")
	all := []object{}
	for _, one := range h.listIssues(repository, func(i *Issue) bool {
		return i.moved == nil && !i.Created.Before(since) && (state == "all" || i.Open == (state != "closed"))
	}) {
		all = append(all, h.issueObject(one))
	}
	h.list(w, r, all)
}

func (h *GitHub) postIssue(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Title, Body string
		Labels      []string
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	h.mu.Lock()
	defer h.mu.Unlock()
	repository, ok := h.withIssues(w, r)
	if !ok {
		return
	}
	if request.Title == "" || len([]rune(request.Title)) > 256 || len([]rune(request.Body)) > 65536 {
		problem := object{"resource": "Issue", "code": "missing_field", "field": "title"}
		write(w, http.StatusUnprocessableEntity, object{"message": "Validation Failed", "errors": []object{problem}})
		return
	}
	issue := Issue{Repository: repository, Title: request.Title, Body: request.Body, Labels: request.Labels}
	write(w, http.StatusCreated, h.issueObject(h.createIssue(issue)))
}

// placed finds the issue of a request. It answers for deleted and transferred ones; ok is then false.
func (h *GitHub) placed(w http.ResponseWriter, r *http.Request) (issue *Issue, ok bool) {
	repository, ok := h.withIssues(w, r)
	if !ok {
		return nil, false
	}
	issue = h.issue(repository, number(r.PathValue("number")))
	switch {
	case issue.deleted && issue.ID != 0:
		write(w, http.StatusGone, object{"message": "This issue was deleted", "documentation_url": gitHubDocs, "status": "410"})
	case issue.deleted:
		h.notFound(w)
	case issue.moved != nil:
		_, rest, _ := strings.Cut(r.URL.Path, "/issues/"+r.PathValue("number"))
		w.Header().Set("Location", fmt.Sprintf("%s/api/v3/repos/%s/issues/%d%s", h.URL, issue.moved.Repository, issue.moved.Number, rest))
		write(w, http.StatusMovedPermanently, object{"message": "Moved Permanently"})
	default:
		return issue, true
	}
	return nil, false
}

func (h *GitHub) getIssue(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if issue, ok := h.placed(w, r); ok {
		write(w, http.StatusOK, h.issueObject(issue))
	}
}

func (h *GitHub) patchIssue(w http.ResponseWriter, r *http.Request) {
	var request struct {
		State  string
		Reason string `json:"state_reason"`
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	h.mu.Lock()
	defer h.mu.Unlock()
	issue, ok := h.placed(w, r)
	if !ok {
		return
	}
	if request.State != "open" && request.State != "closed" {
		write(w, http.StatusUnprocessableEntity, object{"message": "Validation Failed"})
		return
	}
	issue.Open, issue.Reason = request.State == "open", request.Reason
	write(w, http.StatusOK, h.issueObject(issue))
}

// postIssueComment comments on an issue, or else on a pull request.
func (h *GitHub) postIssueComment(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	if issue := h.issue(r.PathValue("owner")+"/"+r.PathValue("repo"), number(r.PathValue("number"))); issue.ID == 0 {
		h.mu.Unlock()
		h.postNote(w, r)
		return
	}
	defer h.mu.Unlock()
	if issue, ok := h.placed(w, r); ok {
		write(w, http.StatusCreated, h.issueComment(issue.comment(r)))
	}
}

func (i *Issue) comment(r *http.Request) Comment {
	var request struct{ Body string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	i.Comments = append(i.Comments, request.Body)
	return Comment{ID: i.ID*100 + int64(len(i.Comments)), Author: "octavia", Body: request.Body}
}

// hasProject reports whether the project of a request exists; if not, the request is answered.
func (h *GitLab) hasProject(w http.ResponseWriter, r *http.Request) bool {
	exists := slices.ContainsFunc(h.Repositories, func(one Repository) bool { return strings.EqualFold(one.Name, r.PathValue("project")) })
	switch {
	case !exists:
		notFoundGitLab(w, "Project Not Found")
	case h.issues.disabled:
		write(w, http.StatusForbidden, object{"message": "403 Forbidden"})
	}
	return exists && !h.issues.disabled
}

func (h *GitLab) issueObject(i *Issue) object {
	state := "closed"
	if i.Open {
		state = "opened"
	}
	out := object{
		"id": i.ID, "iid": i.Number, "project_id": 5, "state": state, "title": i.Title, "description": i.Body,
		"labels":       append([]string{}, i.Labels...),
		"confidential": i.Confidential, "moved_to_id": nil, "created_at": i.Created.UTC().Format("2006-01-02T15:04:05.000Z"), "closed_at": nil,
		"web_url":    fmt.Sprintf("%s/%s/-/issues/%d", h.URL, i.Repository, i.Number),
		"references": object{"short": fmt.Sprintf("#%d", i.Number), "full": fmt.Sprintf("%s#%d", i.Repository, i.Number)},
	}
	if i.moved != nil {
		out["moved_to_id"] = i.moved.ID
	}
	return out
}

func (h *GitLab) getIssues(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.hasProject(w, r) {
		return
	}
	after := timeOf(r, "created_after")
	all := []object{}
	for _, one := range h.listIssues(r.PathValue("project"), func(i *Issue) bool { return !i.Created.Before(after) }) {
		all = append(all, h.issueObject(one))
	}
	list(w, r, all)
}

func (h *GitLab) postIssue(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Title, Description, Labels string
		Confidential               bool
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.hasProject(w, r) {
		return
	}
	if request.Title == "" || len([]rune(request.Title)) > 255 {
		write(w, http.StatusBadRequest, object{"message": object{"title": []string{"can't be blank"}}})
		return
	}
	issue := Issue{Repository: r.PathValue("project"), Title: request.Title, Body: request.Description, Confidential: request.Confidential}
	if request.Labels != "" {
		issue.Labels = strings.Split(request.Labels, ",")
	}
	write(w, http.StatusCreated, h.issueObject(h.createIssue(issue)))
}

// placed finds the issue of a request. It answers if there is none.
func (h *GitLab) placed(w http.ResponseWriter, r *http.Request) (issue *Issue, ok bool) {
	if !h.hasProject(w, r) {
		return nil, false
	}
	issue = h.issue(r.PathValue("project"), number(r.PathValue("iid")))
	if issue.deleted {
		notFoundGitLab(w, "Issue Not Found")
	}
	return issue, !issue.deleted
}

func (h *GitLab) getIssue(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if issue, ok := h.placed(w, r); ok {
		write(w, http.StatusOK, h.issueObject(issue))
	}
}

func (h *GitLab) putIssue(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Event string `json:"state_event"`
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	h.mu.Lock()
	defer h.mu.Unlock()
	issue, ok := h.placed(w, r)
	if !ok {
		return
	}
	if request.Event != "close" && request.Event != "reopen" {
		write(w, http.StatusBadRequest, object{"error": "state_event does not have a valid value"})
		return
	}
	issue.Open = request.Event == "reopen"
	write(w, http.StatusOK, h.issueObject(issue))
}

func (h *GitLab) postIssueNote(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if issue, ok := h.placed(w, r); ok {
		write(w, http.StatusCreated, gitLabNote(issue.comment(r)))
	}
}
