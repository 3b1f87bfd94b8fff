package hosttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Thread is a review thread on a line that a caller began.
type Thread struct {
	// ID is the thread's id, and First its first comment.
	ID       string
	First    Comment
	Commit   string
	Resolved bool
}

// Threads returns the review threads that callers began.
func (s *Server) Threads() []Thread {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.feedback.threads)
}

// DropThreads deletes the threads.
func (s *Server) DropThreads() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feedback.threads = nil
}

// begin stores a thread. It ends the connection if the answer is to be lost.
func (s *Server) begin(one Thread) Thread {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int64(len(s.feedback.threads))
	one.ID, one.First.ID, one.First.Author = fmt.Sprintf("PRRT_kwDO%d", n), 9100+n, "octavia"
	if s.numbered {
		one.ID, one.First.ID = fmt.Sprint(9100+n), 1
	}
	s.feedback.threads = append(s.feedback.threads, one)
	if s.feedback.loseNote {
		s.feedback.loseNote = false
		panic(http.ErrAbortHandler)
	}
	return one
}

// change changes the thread that a condition selects. ok is false if there is none.
func (s *Server) change(which func(Thread) bool, change func(*Thread)) (one Thread, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.feedback.threads, which)
	if i < 0 {
		return Thread{}, false
	}
	change(&s.feedback.threads[i])
	return s.feedback.threads[i], true
}

func (h *GitHub) beginThread(w http.ResponseWriter, of Request, body, path, commit, side string, line int64) {
	if slices.Contains(of.Unchanged, path) || side != "RIGHT" || line <= 0 || commit != of.head() {
		write(w, http.StatusUnprocessableEntity, object{"message": "Validation Failed", "errors": []object{{
			"resource": "PullRequestReviewComment", "code": "custom", "field": "pull_request_review_thread.line",
			"message": "pull_request_review_thread.line must be part of the diff",
		}}})
		return
	}
	one := h.begin(Thread{Commit: commit, First: Comment{Body: body, Path: path, Line: line}})
	write(w, http.StatusCreated, h.reviewComment(one.First))
}

func (h *GitHub) listReviewComments(w http.ResponseWriter, r *http.Request) {
	all := []object{}
	for _, one := range h.Threads() {
		all = append(all, h.reviewComment(one.First))
	}
	h.list(w, r, all)
}

func (h *GitHub) patchReviewComment(w http.ResponseWriter, r *http.Request) {
	var request struct{ Body string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	one, ok := h.change(func(t Thread) bool { return t.First.ID == number(r.PathValue("id")) }, func(t *Thread) { t.First.Body = request.Body })
	if !ok {
		h.notFound(w)
		return
	}
	write(w, http.StatusOK, h.reviewComment(one.First))
}

// graphQL knows the threads of a pull request, in pages of two, and their resolution.
func (h *GitHub) graphQL(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Query     string
		Variables struct {
			ID    string
			After string
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	if strings.Contains(request.Query, "reviewThreads") {
		h.threadPage(w, int(number(request.Variables.After)))
		return
	}
	resolved := strings.Contains(request.Query, " resolveReviewThread")
	_, ok := h.change(func(t Thread) bool { return t.ID == request.Variables.ID }, func(t *Thread) { t.Resolved = resolved })
	if !ok {
		write(w, http.StatusOK, object{"data": nil, "errors": []object{{"type": "NOT_FOUND", "message": "Could not resolve to a node"}}})
		return
	}
	write(w, http.StatusOK, object{"data": object{"resolveReviewThread": object{"thread": object{"isResolved": resolved}}}})
}

func (h *GitHub) threadPage(w http.ResponseWriter, begin int) {
	all := h.Threads()
	end := min(begin+2, len(all))
	nodes := []object{}
	for _, one := range all[begin:end] {
		nodes = append(nodes, object{"id": one.ID, "isResolved": one.Resolved, "comments": object{"nodes": []object{{"databaseId": one.First.ID}}}})
	}
	write(w, http.StatusOK, object{"data": object{"repository": object{"pullRequest": object{"reviewThreads": object{
		"pageInfo": object{"hasNextPage": end < len(all), "endCursor": fmt.Sprint(end)}, "nodes": nodes,
	}}}}})
}

func gitLabDiscussion(one Thread) object {
	return object{"id": one.ID, "individual_note": false, "notes": []object{gitLabNote(one.First)}}
}

func (h *GitLab) beginDiscussion(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Body     string
		Position struct {
			Type    string `json:"position_type"`
			Base    string `json:"base_sha"`
			Start   string `json:"start_sha"`
			Head    string `json:"head_sha"`
			OldPath string `json:"old_path"`
			NewPath string `json:"new_path"`
			NewLine int64  `json:"new_line"`
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	h.mu.Lock()
	of := h.MergeRequests[number(r.PathValue("i"))]
	h.mu.Unlock()
	at := request.Position
	if at.Type != "text" || at.Base == "" || at.Start == "" || at.Head != of.head() || at.OldPath == "" || at.NewLine <= 0 || slices.Contains(of.Unchanged, at.NewPath) {
		write(w, http.StatusBadRequest, object{"message": `400 Bad request - Note {:line_code=>["can't be blank", "must be a valid line code"]}`})
		return
	}
	write(w, http.StatusCreated, gitLabDiscussion(h.begin(Thread{Commit: at.Head, First: Comment{Body: request.Body, Path: at.NewPath, Line: at.NewLine}})))
}

func (h *GitLab) listDiscussions(w http.ResponseWriter, r *http.Request) {
	all := []object{}
	for _, one := range h.Threads() {
		all = append(all, gitLabDiscussion(one))
	}
	list(w, r, all)
}

func (h *GitLab) putDiscussion(w http.ResponseWriter, r *http.Request) {
	var request struct{ Resolved bool }
	_ = json.NewDecoder(r.Body).Decode(&request)
	one, ok := h.change(func(t Thread) bool { return t.ID == r.PathValue("d") }, func(t *Thread) { t.Resolved = request.Resolved })
	if !ok {
		notFoundGitLab(w, "Discussion Not Found")
		return
	}
	write(w, http.StatusOK, gitLabDiscussion(one))
}

func (h *GitLab) putDiscussionNote(w http.ResponseWriter, r *http.Request) {
	var request struct{ Body string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	one, ok := h.change(func(t Thread) bool { return t.ID == r.PathValue("d") }, func(t *Thread) { t.First.Body = request.Body })
	if !ok {
		notFoundGitLab(w, "Not found")
		return
	}
	write(w, http.StatusOK, gitLabNote(one.First))
}
