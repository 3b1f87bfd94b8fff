package hosttest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// File returns the current content of a file.
func (h *Azure) File(branch, path string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Files[branch+":"+path]
}

// Pulls lists the pull requests that were opened.
func (h *Azure) Pulls() []Pull {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Pull(nil), h.pulls...)
}

func (h *Azure) item(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	ref, path := query.Get("versionDescriptor.version"), strings.TrimPrefix(query.Get("path"), "/")
	h.mu.Lock()
	content, ok := h.Files.at(ref, path)
	commit := !h.Files.branch(ref)
	h.mu.Unlock()
	if !ok || commit != (query.Get("versionDescriptor.versionType") == "commit") {
		azureError(w, http.StatusNotFound, "GitItemNotFoundException", "TF401174: The item "+path+" could not be found")
		return
	}
	out := object{
		"objectId": blob(content), "gitObjectType": "blob", "commitId": "77aa00", "path": "/" + path, "url": h.URL,
		"contentMetadata": object{"encoding": 65001, "fileName": path, "extension": "", "isBinary": strings.ContainsRune(content, 0)},
	}
	if query.Get("includeContent") == "true" && !strings.ContainsRune(content, 0) {
		out["content"] = content
	}
	write(w, http.StatusOK, out)
}

// tip is the commit of a branch: the hash of its files.
func (f Files) tip(branch string) string {
	var all []string
	for key, content := range f {
		if strings.HasPrefix(key, branch+":") {
			all = append(all, key+content)
		}
	}
	slices.Sort(all)
	return blob(strings.Join(all, "\n"))
}

// refs also answers with longer names, as the host does.
func (h *Azure) refs(w http.ResponseWriter, r *http.Request) {
	filter := strings.TrimPrefix(r.URL.Query().Get("filter"), "heads/")
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []object
	var names []string
	for key := range h.Files {
		name, _, _ := strings.Cut(key, ":")
		if strings.HasPrefix(name, filter) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		all = append(all, object{"name": "refs/heads/" + name, "objectId": h.Files.tip(name), "url": h.URL})
	}
	values(w, all)
}

func (h *Azure) push(w http.ResponseWriter, r *http.Request) {
	var request struct {
		RefUpdates []struct{ Name, OldObjectID string }
		Commits    []struct {
			Comment string
			Changes []struct {
				ChangeType string
				Item       struct{ Path string }
				NewContent struct{ Content, ContentType string }
			}
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(request.RefUpdates) != 1 || len(request.Commits) != 1 || len(request.Commits[0].Changes) != 1 || request.Commits[0].Comment == "" {
		azureError(w, http.StatusBadRequest, "InvalidArgumentValueException", "One ref and one commit are required")
		return
	}
	branch, change := strings.TrimPrefix(request.RefUpdates[0].Name, "refs/heads/"), request.Commits[0].Changes[0]
	from := branch
	if !h.Files.branch(branch) {
		from = "main"
	}
	content, err := base64.StdEncoding.DecodeString(change.NewContent.Content)
	path := strings.TrimPrefix(change.Item.Path, "/")
	if _, ok := h.Files[from+":"+path]; !ok || err != nil || change.ChangeType != "edit" || h.Files.tip(from) != request.RefUpdates[0].OldObjectID {
		azureError(w, http.StatusConflict, "GitReferenceStaleException", "TF401028: The reference has already been updated by another client")
		return
	}
	if from != branch {
		h.Files.fork(branch, from)
	}
	h.Files[branch+":"+path] = string(content)
	write(w, http.StatusCreated, object{"pushId": 11, "refUpdates": []object{{"name": request.RefUpdates[0].Name, "newObjectId": h.Files.tip(branch)}}})
}

func (h *Azure) pullObject(n int64, status, head, base, commit string) object {
	return object{
		"pullRequestId": n, "codeReviewId": n, "status": status, "title": "Fix it", "sourceRefName": "refs/heads/" + head, "targetRefName": "refs/heads/" + base,
		"mergeStatus": "succeeded", "isDraft": false, "lastMergeSourceCommit": object{"commitId": commit}, "lastMergeTargetCommit": object{"commitId": "77aa"},
		"lastMergeCommit": object{"commitId": "99cc"}, "createdBy": object{"displayName": "Octavia", "uniqueName": "octavia"},
	}
}

// request is the request of a URL. An uncounted one has more files than callers read.
func (h *Azure) request(r *http.Request) Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.PullRequests[number(r.PathValue("number"))]
	if of.Uncounted {
		of.Files = slices.Clone(of.Files)
		for n := range 3000 {
			of.Files = append(of.Files, "generated/"+strconv.Itoa(n))
		}
	}
	return of
}

func (h *Azure) pullRequest(w http.ResponseWriter, r *http.Request) {
	of := h.request(r)
	status := map[string]string{"open": "active", "closed": "abandoned"}[of.State]
	if status == "" {
		status = "completed"
	}
	write(w, http.StatusOK, h.pullObject(number(r.PathValue("number")), status, "fix/login", "main", of.head()))
}

func (h *Azure) iterations(w http.ResponseWriter, r *http.Request) {
	of := h.request(r)
	values(w, []object{
		{"id": 1, "sourceRefCommit": object{"commitId": "0001"}, "targetRefCommit": object{"commitId": "77aa"}, "commonRefCommit": object{"commitId": "77aa"}},
		{"id": 2, "sourceRefCommit": object{"commitId": of.head()}, "targetRefCommit": object{"commitId": "77aa"}, "commonRefCommit": object{"commitId": "77aa"}},
	})
}

// changes answers in pages of at most 500.
func (h *Azure) changes(w http.ResponseWriter, r *http.Request) {
	of := h.request(r)
	if r.PathValue("iteration") != "2" {
		azureError(w, http.StatusNotFound, "GitPullRequestIterationNotFoundException", "The iteration does not exist")
		return
	}
	skip, _ := strconv.Atoi(r.URL.Query().Get("$skip"))
	top, _ := strconv.Atoi(r.URL.Query().Get("$top"))
	end := min(skip+min(top, 500), len(of.Files))
	entries := []object{}
	for i := min(skip, end); i < end; i++ {
		before, after := renamed(of.Files[i])
		entry := object{"changeTrackingId": i + 1, "changeId": i + 1, "changeType": "edit", "item": object{"objectId": blob(after), "path": "/" + after}}
		if before != after {
			entry["changeType"], entry["originalPath"] = "edit, rename", "/"+before
		}
		if after == "" {
			entry["changeType"], entry["item"] = "delete", object{"originalObjectId": blob(before)}
		}
		entries = append(entries, entry)
	}
	out := object{"changeEntries": entries}
	if end < len(of.Files) {
		out["nextSkip"], out["nextTop"] = end, 500
	}
	write(w, http.StatusOK, out)
}

// fileDiffs changes the first hundred lines of each file, but no line of unchanged ones.
func (h *Azure) fileDiffs(w http.ResponseWriter, r *http.Request) {
	var request struct {
		BaseVersionCommit, TargetVersionCommit string
		FileDiffParams                         []struct{ Path, OriginalPath string }
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	if h.NoDiffs {
		h.notFound(w)
		return
	}
	if request.BaseVersionCommit == "" || request.TargetVersionCommit == "" || len(request.FileDiffParams) != 1 || request.FileDiffParams[0].OriginalPath == "" {
		azureError(w, http.StatusBadRequest, "InvalidArgumentValueException", "A commit or a path is missing")
		return
	}
	file := request.FileDiffParams[0]
	lines := 100
	h.mu.Lock()
	for _, of := range h.PullRequests {
		if slices.Contains(of.Unchanged, strings.TrimPrefix(file.Path, "/")) && of.head() == request.TargetVersionCommit {
			lines = 0
		}
	}
	h.mu.Unlock()
	values(w, []object{{"path": file.Path, "originalPath": file.OriginalPath, "lineDiffBlocks": []object{
		{"changeType": "edit", "originalLineNumberStart": 1, "originalLinesCount": 1, "modifiedLineNumberStart": 1, "modifiedLinesCount": lines},
		{"changeType": "none", "originalLineNumberStart": 2, "originalLinesCount": 900, "modifiedLineNumberStart": 1 + lines, "modifiedLinesCount": 900},
	}}})
}

func (h *Azure) listPulls(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []object
	for _, one := range h.pulls {
		if r.URL.Query().Get("searchCriteria.sourceRefName") == "refs/heads/"+one.Head && r.URL.Query().Get("searchCriteria.status") == "active" {
			all = append(all, h.pullObject(one.Number, "active", one.Head, one.Base, "3f2a"))
		}
	}
	values(w, all)
}

func (h *Azure) createPull(w http.ResponseWriter, r *http.Request) {
	var request struct{ SourceRefName, TargetRefName, Title, Description string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	h.mu.Lock()
	defer h.mu.Unlock()
	one := Pull{
		Number: int64(21 + len(h.pulls)), Head: strings.TrimPrefix(request.SourceRefName, "refs/heads/"), Base: strings.TrimPrefix(request.TargetRefName, "refs/heads/"),
		Title: request.Title, Body: request.Description,
	}
	if request.Title == "" || len([]rune(request.Description)) > 4000 || one.Head == request.SourceRefName || one.Base == request.TargetRefName {
		azureError(w, http.StatusBadRequest, "InvalidArgumentValueException", "The pull request is not valid")
		return
	}
	h.pulls = append(h.pulls, one)
	write(w, http.StatusCreated, h.pullObject(one.Number, "active", one.Head, one.Base, "3f2a"))
}
