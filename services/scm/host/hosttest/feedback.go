package hosttest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// CommitStatus is a status of a commit.
type CommitStatus struct {
	Commit, Name, State, Text, URL string
}

// feedback is what callers wrote about pull (or merge) requests.
type feedback struct {
	statuses []CommitStatus // in order of arrival
	// notes are the comments on requests themselves, of all requests.
	notes []Comment
	// threads are the review threads on lines, of all requests.
	threads []Thread
	// loseNote ends the connection after the next comment or thread was stored.
	loseNote bool
}

// SetRequest sets one of the host's requests.
func (s *Server) SetRequest(in map[int64]Request, number int64, of Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in[number] = of
}

// Statuses returns the latest status of each name of a commit, sorted by name.
func (s *Server) Statuses(commit string) (list []CommitStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range slices.Backward(s.feedback.statuses) {
		if one.Commit == commit && !slices.ContainsFunc(list, func(known CommitStatus) bool { return known.Name == one.Name }) {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b CommitStatus) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Notes returns the comments on requests.
func (s *Server) Notes() []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.feedback.notes)
}

// AddNote comments on requests as somebody else.
func (s *Server) AddNote(body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feedback.notes = append(s.feedback.notes, Comment{ID: 501, Author: "somebody", Body: body})
}

// DropNotes deletes the comments on requests.
func (s *Server) DropNotes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feedback.notes = nil
}

// LoseNote loses the answer to the next new comment.
func (s *Server) LoseNote() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feedback.loseNote = true
}

// setStatus stores a status from a request with the given names of its fields.
func (s *Server) setStatus(r *http.Request, commit, name, text string) CommitStatus {
	var request map[string]string
	_ = json.NewDecoder(r.Body).Decode(&request)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := CommitStatus{Commit: commit, Name: request[name], State: request["state"], Text: request[text], URL: request["target_url"]}
	s.feedback.statuses = append(s.feedback.statuses, one)
	return one
}

// note stores a new comment. It ends the connection if the answer is to be lost.
func (s *Server) note(r *http.Request) Comment {
	var request struct{ Body string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	return s.storeNote(request.Body)
}

func (s *Server) storeNote(body string) Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := Comment{ID: 700 + int64(len(s.feedback.notes)), Author: "octavia", Body: body}
	s.feedback.notes = append(s.feedback.notes, one)
	if s.feedback.loseNote {
		s.feedback.loseNote = false
		panic(http.ErrAbortHandler)
	}
	return one
}

// editNote replaces a comment. ok is false if there is none.
func (s *Server) editNote(r *http.Request) (one Comment, ok bool) {
	var request struct{ Body string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	return s.changeNote(number(r.PathValue("id")), request.Body)
}

func (s *Server) changeNote(id int64, body string) (one Comment, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.feedback.notes, func(c Comment) bool { return c.ID == id })
	if i < 0 {
		return Comment{}, false
	}
	s.feedback.notes[i].Body = body
	return s.feedback.notes[i], true
}

func (h *GitHub) postStatus(w http.ResponseWriter, r *http.Request) {
	one := h.setStatus(r, r.PathValue("sha"), "context", "description")
	if !slices.Contains([]string{"error", "failure", "pending", "success"}, one.State) || len([]rune(one.Text)) > 140 {
		write(w, http.StatusUnprocessableEntity, object{"message": "Validation Failed"})
		return
	}
	write(w, http.StatusCreated, object{"id": 1, "state": one.State, "context": one.Name, "description": one.Text, "target_url": one.URL})
}

func (h *GitHub) issueComment(c Comment) object {
	return object{"id": c.ID, "body": c.Body, "user": h.user(c.Author, 7100, "User"), "html_url": h.URL + "/acme/web/pull/17#issuecomment-1"}
}

func (h *GitHub) listNotes(w http.ResponseWriter, r *http.Request) {
	all := []object{}
	for _, c := range h.Notes() {
		all = append(all, h.issueComment(c))
	}
	h.list(w, r, all)
}

func (h *GitHub) postNote(w http.ResponseWriter, r *http.Request) {
	write(w, http.StatusCreated, h.issueComment(h.note(r)))
}

func (h *GitHub) patchNote(w http.ResponseWriter, r *http.Request) {
	if one, ok := h.editNote(r); ok {
		write(w, http.StatusOK, h.issueComment(one))
		return
	}
	h.notFound(w)
}

// postStatus refuses a state that the status has already, as GitLab does.
func (h *GitLab) postStatus(w http.ResponseWriter, r *http.Request) {
	before := h.Statuses(r.PathValue("sha"))
	one := h.setStatus(r, r.PathValue("sha"), "name", "description")
	if slices.ContainsFunc(before, func(s CommitStatus) bool { return s.Name == one.Name && s.State == one.State }) {
		write(w, http.StatusBadRequest, object{"message": "Cannot transition status via :drop from :" + one.State})
		return
	}
	write(w, http.StatusCreated, object{"id": 1, "sha": one.Commit, "status": one.State, "name": one.Name, "description": one.Text, "target_url": one.URL})
}

func (h *GitLab) listNotes(w http.ResponseWriter, r *http.Request) {
	all := []object{}
	for _, c := range h.Notes() {
		all = append(all, gitLabNote(c))
	}
	list(w, r, all)
}

func (h *GitLab) postNote(w http.ResponseWriter, r *http.Request) {
	write(w, http.StatusCreated, gitLabNote(h.note(r)))
}

func (h *GitLab) putNote(w http.ResponseWriter, r *http.Request) {
	if one, ok := h.editNote(r); ok {
		write(w, http.StatusOK, gitLabNote(one))
		return
	}
	notFoundGitLab(w, "Not found")
}
