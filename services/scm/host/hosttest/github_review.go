package hosttest

import (
	"encoding/json"
	"net/http"
	"slices"
)

func (h *GitHub) permission(w http.ResponseWriter, r *http.Request) {
	permission := "read"
	if slices.Contains(h.Writers, r.PathValue("who")) {
		permission = "write"
	}
	write(w, http.StatusOK, object{"permission": permission, "role_name": permission, "user": h.user(r.PathValue("who"), 7100, "User")})
}

func (h *GitHub) reviewComment(c Comment) object {
	out := object{
		"id": c.ID, "pull_request_review_id": 55, "path": c.Path, "body": c.Body, "line": c.Line, "original_line": c.Line, "side": "RIGHT",
		"user": h.user(c.Author, 7100, "User"), "html_url": h.URL + "/acme/web/pull/17#discussion_r1", "commit_id": "3f2a", "created_at": "2026-05-04T10:20:30Z",
	}
	if c.ReplyTo != 0 {
		out["in_reply_to_id"] = c.ReplyTo
	}
	return out
}

func (h *GitHub) comment(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.Comments, func(c Comment) bool { return c.ID == number(r.PathValue("id")) })
	if i < 0 {
		h.notFound(w)
		return
	}
	write(w, http.StatusOK, h.reviewComment(h.Comments[i]))
}

func (h *GitHub) reply(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Body, Path, Side string
		Line             int64
		CommitID         string `json:"commit_id"`
		InReplyTo        int64  `json:"in_reply_to"`
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	if request.InReplyTo == 0 && request.Path != "" {
		h.mu.Lock()
		of := h.PullRequests[number(r.PathValue("number"))]
		h.mu.Unlock()
		h.beginThread(w, of, request.Body, request.Path, request.CommitID, request.Side, request.Line)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if request.InReplyTo == 0 || request.Body == "" {
		write(w, http.StatusUnprocessableEntity, object{"message": "Validation Failed"})
		return
	}
	h.nextID++
	c := Comment{ID: h.nextID, ReplyTo: request.InReplyTo, Author: "octavia", Body: request.Body}
	h.Comments = append(h.Comments, c)
	write(w, http.StatusCreated, h.reviewComment(c))
}

// Replies lists the replies to a comment.
func (h *GitHub) Replies(to int64) []Comment {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []Comment
	for _, c := range h.Comments {
		if c.ReplyTo == to {
			out = append(out, c)
		}
	}
	return out
}

func (h *GitHub) pull(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	request := h.PullRequests[number(r.PathValue("number"))]
	h.mu.Unlock()
	state, merged, count := request.State, request.State == "" || request.State == "merged", len(request.Files)
	if merged {
		state = "closed"
	}
	if request.Uncounted {
		count += 5000
	}
	write(w, http.StatusOK, object{
		"number": number(r.PathValue("number")), "state": state, "merged": merged, "title": "Fix it", "changed_files": count,
		"head": object{"ref": "fix/login", "sha": request.head()}, "merge_commit_sha": "a1b2", "base": object{"ref": "main", "sha": "77aa"},
		"html_url": h.URL + "/" + r.PathValue("owner") + "/" + r.PathValue("repo") + "/pull/" + r.PathValue("number"),
	})
}

func (h *GitHub) pullFiles(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("files") == "comments" {
		h.listReviewComments(w, r)
		return
	}
	h.mu.Lock()
	request := h.PullRequests[number(r.PathValue("number"))]
	h.mu.Unlock()
	all := []object{}
	for _, file := range request.Files {
		before, after := renamed(file)
		one := object{"filename": after, "status": "modified", "additions": 1, "deletions": 1, "changes": 2, "sha": "3f2a"}
		if before != after {
			one["previous_filename"], one["status"] = before, "renamed"
		}
		all = append(all, one)
	}
	h.list(w, r, all)
}
