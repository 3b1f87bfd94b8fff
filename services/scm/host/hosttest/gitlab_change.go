package hosttest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
)

func number10(n int64) string { return strconv.FormatInt(n, 10) }

// File returns the current content of a file.
func (h *GitLab) File(branch, path string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Files[branch+":"+path]
}

// Pulls lists the merge requests that were opened.
func (h *GitLab) Pulls() []Pull {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Pull(nil), h.pulls...)
}

func (h *GitLab) getFile(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	content, ok := h.Files.at(r.URL.Query().Get("ref"), r.PathValue("path"))
	h.mu.Unlock()
	if !ok {
		notFoundGitLab(w, "File Not Found")
		return
	}
	write(w, http.StatusOK, object{
		"file_name": "file", "file_path": r.PathValue("path"), "size": len(content), "encoding": "base64", "ref": r.URL.Query().Get("ref"),
		"content": base64.StdEncoding.EncodeToString([]byte(content)), "blob_id": blob(content), "commit_id": "77aa00", "last_commit_id": blob(content),
	})
}

func (h *GitLab) putFile(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Branch, Content, Encoding string
		StartBranch               string `json:"start_branch"`
		CommitMessage             string `json:"commit_message"`
		LastCommitID              string `json:"last_commit_id"`
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	content, err := base64.StdEncoding.DecodeString(request.Content)
	h.mu.Lock()
	defer h.mu.Unlock()
	if request.StartBranch != "" && !h.Files.branch(request.Branch) {
		h.Files.fork(request.Branch, request.StartBranch)
	}
	key := request.Branch + ":" + r.PathValue("path")
	if old, ok := h.Files[key]; !ok || err != nil || request.CommitMessage == "" || request.LastCommitID != blob(old) {
		write(w, http.StatusBadRequest, object{"message": "You are attempting to update a file that has changed since you started editing it."})
		return
	}
	h.Files[key] = string(content)
	write(w, http.StatusOK, object{"file_path": r.PathValue("path"), "branch": request.Branch})
}

func (h *GitLab) openedRequest(p Pull, project string) object {
	return object{
		"id": 1000 + p.Number, "iid": p.Number, "project_id": 1, "title": p.Title, "description": p.Body, "state": "opened",
		"source_branch": p.Head, "target_branch": p.Base, "web_url": h.URL + "/" + project + "/-/merge_requests/" + number10(p.Number),
	}
}

func (h *GitLab) listRequests(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []object{}
	for _, p := range h.pulls {
		if p.Head == r.URL.Query().Get("source_branch") {
			out = append(out, h.openedRequest(p, r.PathValue("project")))
		}
	}
	write(w, http.StatusOK, out)
}

func (h *GitLab) createRequest(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Title, Description string
		SourceBranch       string `json:"source_branch"`
		TargetBranch       string `json:"target_branch"`
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.Files.branch(request.SourceBranch) || request.Title == "" {
		write(w, http.StatusBadRequest, object{"message": object{"source_branch": []string{"does not exist"}}})
		return
	}
	h.nextID++
	p := Pull{Number: h.nextID, Head: request.SourceBranch, Base: request.TargetBranch, Title: request.Title, Body: request.Description}
	h.pulls = append(h.pulls, p)
	write(w, http.StatusCreated, h.openedRequest(p, r.PathValue("project")))
}
