package hosttest

import (
	"encoding/json"
	"net/http"
	"slices"
)

// postStatus sets the status of a commit, or of the iteration of a pull request that has it.
func (h *Azure) postStatus(w http.ResponseWriter, r *http.Request) {
	var request struct {
		State, Description, TargetURL string
		Context                       struct{ Name, Genre string }
		IterationID                   int
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	commit := r.PathValue("sha")
	if commit == "" {
		commit = h.request(r).head()
		if request.IterationID != 2 {
			commit = "0001"
		}
	}
	if !slices.Contains([]string{"notSet", "pending", "succeeded", "failed", "error", "notApplicable"}, request.State) || request.Context.Name == "" {
		azureError(w, http.StatusBadRequest, "InvalidArgumentValueException", "The status is not valid")
		return
	}
	h.mu.Lock()
	h.feedback.statuses = append(h.feedback.statuses, CommitStatus{
		Commit: commit, Name: request.Context.Name, State: request.State, Text: request.Description, URL: request.TargetURL,
	})
	h.mu.Unlock()
	write(w, http.StatusCreated, object{
		"id": 1, "iterationId": request.IterationID, "state": request.State, "description": request.Description, "targetUrl": request.TargetURL,
		"context": object{"name": request.Context.Name, "genre": request.Context.Genre},
	})
}

func azureComment(id int64, c Comment) object {
	return object{
		"id": id, "parentCommentId": min(id-1, 1), "content": c.Body, "commentType": "text", "publishedDate": "2026-05-04T10:20:30.123Z",
		"author": object{"displayName": c.Author, "uniqueName": c.Author, "id": "d6245f20-2af8-44f4-9451-8107cb2767db"},
	}
}

func azureThread(id int64, status string, comments ...Comment) object {
	all := []object{}
	for i, c := range comments {
		all = append(all, azureComment(int64(i+1), c))
	}
	out := object{"id": id, "status": status, "isDeleted": false, "comments": all, "threadContext": nil, "properties": object{}}
	if len(comments) > 0 && comments[0].Path != "" {
		at := object{"line": comments[0].Line, "offset": 1}
		out["threadContext"] = object{"filePath": "/" + comments[0].Path, "rightFileStart": at, "rightFileEnd": at, "leftFileStart": nil, "leftFileEnd": nil}
	}
	return out
}

func azureThreadOf(one Thread) object {
	status := "active"
	if one.Resolved {
		status = "fixed"
	}
	return azureThread(number(one.ID), status, one.First)
}

func (h *Azure) listThreads(w http.ResponseWriter, _ *http.Request) {
	var all []object
	for _, c := range h.Notes() {
		all = append(all, azureThread(c.ID, "closed", c))
	}
	for _, one := range h.Threads() {
		all = append(all, azureThreadOf(one))
	}
	values(w, all)
}

func (h *Azure) beginThread(w http.ResponseWriter, r *http.Request) {
	type position struct{ Line, Offset int64 }
	var request struct {
		Comments      []struct{ Content, CommentType string }
		Status        string
		ThreadContext *struct {
			FilePath                     string
			RightFileStart, RightFileEnd position
		}
		PullRequestThreadContext struct {
			ChangeTrackingID int64
			IterationContext struct{ FirstComparingIteration, SecondComparingIteration int }
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	if len(request.Comments) != 1 || request.Comments[0].Content == "" || request.Status == "" {
		azureError(w, http.StatusBadRequest, "InvalidArgumentValueException", "A thread has one comment")
		return
	}
	at := request.ThreadContext
	if at == nil {
		one := h.storeNote(request.Comments[0].Content)
		write(w, http.StatusOK, azureThread(one.ID, request.Status, one))
		return
	}
	if at.FilePath == "" || at.FilePath[0] != '/' || at.RightFileStart.Line <= 0 || at.RightFileStart.Offset <= 0 || at.RightFileEnd != at.RightFileStart ||
		request.PullRequestThreadContext.ChangeTrackingID == 0 || request.PullRequestThreadContext.IterationContext.SecondComparingIteration != 2 {
		azureError(w, http.StatusBadRequest, "InvalidArgumentValueException", "The place of the thread is not valid")
		return
	}
	one := h.begin(Thread{Commit: h.request(r).head(), First: Comment{Body: request.Comments[0].Content, Path: at.FilePath[1:], Line: at.RightFileStart.Line}})
	write(w, http.StatusOK, azureThreadOf(one))
}

func (h *Azure) threadNotFound(w http.ResponseWriter) {
	azureError(w, http.StatusNotFound, "GitPullRequestCommentThreadNotFoundException", "TF401181: The thread does not exist")
}

func (h *Azure) thread(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	comments := slices.Clone(h.Comments)
	h.mu.Unlock()
	threads := h.Threads()
	i := slices.IndexFunc(threads, func(t Thread) bool { return t.ID == r.PathValue("thread") })
	switch {
	case r.PathValue("thread") == AzureThread && len(comments) > 0:
		write(w, http.StatusOK, azureThread(number(AzureThread), "active", comments...))
	case i >= 0:
		write(w, http.StatusOK, azureThreadOf(threads[i]))
	default:
		h.threadNotFound(w)
	}
}

func (h *Azure) patchThread(w http.ResponseWriter, r *http.Request) {
	var request struct{ Status string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	one, ok := h.change(func(t Thread) bool { return t.ID == r.PathValue("thread") }, func(t *Thread) { t.Resolved = request.Status == "fixed" })
	if !ok {
		h.threadNotFound(w)
		return
	}
	write(w, http.StatusOK, azureThreadOf(one))
}

func (h *Azure) patchComment(w http.ResponseWriter, r *http.Request) {
	var request struct{ Content string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	one, ok := h.changeNote(number(r.PathValue("thread")), request.Content)
	if !ok {
		var of Thread
		of, ok = h.change(func(t Thread) bool { return t.ID == r.PathValue("thread") }, func(t *Thread) { t.First.Body = request.Content })
		one = of.First
	}
	if !ok || r.PathValue("number2") != "1" {
		h.threadNotFound(w)
		return
	}
	write(w, http.StatusOK, azureComment(1, one))
}

func (h *Azure) reply(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Content         string
		ParentCommentID int64
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	h.mu.Lock()
	defer h.mu.Unlock()
	if request.Content == "" || request.ParentCommentID != 1 {
		azureError(w, http.StatusBadRequest, "InvalidArgumentValueException", "The comment is not valid")
		return
	}
	c := Comment{ID: int64(len(h.Comments) + 1), ReplyTo: 1, Author: "octavia", Body: request.Content}
	h.Comments = append(h.Comments, c)
	write(w, http.StatusOK, azureComment(c.ID, c))
}
