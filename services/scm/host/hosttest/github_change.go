package hosttest

import (
	"crypto/sha1" //nolint:gosec // as git names things
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
)

// Pull is an opened pull (or merge) request.
type Pull struct {
	Number int64
	// Repository is its repository at GitHub ("acme/web").
	Repository              string
	Head, Base, Title, Body string
}

// Files holds the files of all repositories of a host, by branch and path ("main:app/db.py"). Reads by commit return
// the file of main.
type Files map[string]string

// branch reports whether a branch exists.
func (f Files) branch(name string) bool {
	for key := range f {
		if strings.HasPrefix(key, name+":") {
			return true
		}
	}
	return false
}

// fork creates a branch from another.
func (f Files) fork(name, base string) {
	for key, content := range f {
		if path, ok := strings.CutPrefix(key, base+":"); ok {
			f[name+":"+path] = content
		}
	}
}

// at finds a file at a branch or commit.
func (f Files) at(ref, path string) (string, bool) {
	ref = strings.TrimPrefix(ref, "refs/heads/")
	if !f.branch(ref) && len(ref) >= 7 && strings.Trim(ref, "0123456789abcdef") == "" {
		ref = "main"
	}
	content, ok := f[ref+":"+path]
	return content, ok
}

// blob is the SHA of a content.
func blob(content string) string {
	sum := sha1.Sum([]byte(content))
	return hex.EncodeToString(sum[:])
}

// File returns the current content of a file.
func (h *GitHub) File(branch, path string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Files[branch+":"+path]
}

// Pulls lists the pull requests that were opened.
func (h *GitHub) Pulls() []Pull {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Pull(nil), h.pulls...)
}

func (h *GitHub) getContents(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	content, ok := h.Files.at(r.URL.Query().Get("ref"), r.PathValue("path"))
	h.mu.Unlock()
	if !ok {
		h.notFound(w)
		return
	}
	write(w, http.StatusOK, object{
		"type": "file", "encoding": "base64", "size": len(content), "name": "file", "path": r.PathValue("path"), "sha": blob(content),
		"content": base64.StdEncoding.EncodeToString([]byte(content)),
	})
}

func (h *GitHub) putContents(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Message, Content, SHA, Branch string
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	content, err := base64.StdEncoding.DecodeString(request.Content)
	h.mu.Lock()
	defer h.mu.Unlock()
	key, status := request.Branch+":"+r.PathValue("path"), http.StatusOK
	old, exists := h.Files[key]
	if !exists && request.SHA == "" && h.Files.branch(request.Branch) {
		exists, status = true, http.StatusCreated
	} else if request.SHA != blob(old) && old != string(content) { // repositories share the files, and get the same ones at once
		exists = false
	}
	if !exists || err != nil || request.Message == "" {
		write(w, http.StatusConflict, object{"message": "does not match", "status": "409"})
		return
	}
	h.Files[key] = string(content)
	write(w, status, object{"content": object{"path": r.PathValue("path"), "sha": blob(string(content))}, "commit": object{"sha": "c0ffee"}})
}

func (h *GitHub) getRef(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.Files.branch(strings.TrimPrefix(r.PathValue("ref"), "heads/")) {
		h.notFound(w)
		return
	}
	write(w, http.StatusOK, object{"ref": "refs/" + r.PathValue("ref"), "object": object{"type": "commit", "sha": "77aa00"}})
}

func (h *GitHub) createRef(w http.ResponseWriter, r *http.Request) {
	var request struct{ Ref, SHA string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	name := strings.TrimPrefix(request.Ref, "refs/heads/")
	h.mu.Lock()
	defer h.mu.Unlock()
	if request.SHA != "77aa00" || h.Files.branch(name) {
		write(w, http.StatusUnprocessableEntity, object{"message": "Reference already exists", "documentation_url": "https://docs.github.com/rest", "status": "422"})
		return
	}
	h.Files.fork(name, "main")
	write(w, http.StatusCreated, object{"ref": request.Ref, "object": object{"type": "commit", "sha": request.SHA}})
}

func (h *GitHub) opened(p Pull, repository string) object {
	return object{
		"number": p.Number, "state": "open", "merged": false, "title": p.Title, "body": p.Body,
		"head": object{"ref": p.Head, "sha": "3f2a"}, "base": object{"ref": p.Base, "sha": "77aa"}, "html_url": h.URL + "/" + repository + "/pull/" + number10(p.Number),
	}
}

func (h *GitHub) listPulls(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, head, _ := strings.Cut(r.URL.Query().Get("head"), ":")
	out, repository := []object{}, r.PathValue("owner")+"/"+r.PathValue("repo")
	for _, p := range h.pulls {
		if p.Head == head && p.Repository == repository {
			out = append(out, h.opened(p, repository))
		}
	}
	write(w, http.StatusOK, out)
}

func (h *GitHub) createPull(w http.ResponseWriter, r *http.Request) {
	var request struct{ Title, Head, Base, Body string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.Files.branch(request.Head) || !h.Files.branch(request.Base) || request.Title == "" {
		write(w, http.StatusUnprocessableEntity, object{"message": "Validation Failed", "status": "422"})
		return
	}
	h.nextID++
	repository := r.PathValue("owner") + "/" + r.PathValue("repo")
	p := Pull{Number: h.nextID, Repository: repository, Head: request.Head, Base: request.Base, Title: request.Title, Body: request.Body}
	h.pulls = append(h.pulls, p)
	write(w, http.StatusCreated, h.opened(p, repository))
}
