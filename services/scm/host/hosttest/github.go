package hosttest

import (
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// GitHub is a GitHub Enterprise server with the organization "acme" (id 7001) and the user "octavia" (id 7002). It
// accepts octavia's token.
type GitHub struct {
	Server
	// Scopes is the X-OAuth-Scopes header of a classic token. Nil means a fine-grained token, which gets no header.
	Scopes *string
	// Refused lists request prefixes ("GET /api/v3/orgs/acme/hooks") that the fine-grained token may not use.
	Refused []string
	// Repositories are the repositories of "acme" and "octavia".
	Repositories []Repository
	// AppKey is the public key of application 4711, which is installed in "acme" and uses the token there. Nil means no
	// application.
	AppKey *rsa.PublicKey
	// LinkHost is the origin in Link headers; empty is the server's own.
	LinkHost string
	// Writers are the logins that may push.
	Writers []string
	// Comments are review comments of pull request 17 of any repository.
	Comments []Comment

	// Files are the files that can be read and changed.
	Files Files

	// PullRequests are the states of pull requests by number.
	PullRequests map[int64]Request

	hooks   []Hook
	pulls   []Pull
	nextID  int64
	secrets map[string]string
	boxes   boxKeys
}

// NewGitHub starts a GitHub Enterprise server.
func NewGitHub(t testing.TB) *GitHub {
	scopes := "admin:org_hook, read:org, repo"
	h := &GitHub{Scopes: &scopes, nextID: 9000, secrets: map[string]string{}, boxes: newBoxKeys(t)}
	mux := http.NewServeMux()
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET /api/v3/users/{name}":                                        h.account,
		"GET /api/v3/orgs/{org}/installation":                             h.installation,
		"GET /api/v3/app":                                                 h.app,
		"PATCH /api/v3/app/hook/config":                                   h.setAppHook,
		"POST /api/v3/app/installations/{id}/access_tokens":               h.installationToken,
		"GET /api/v3/user":                                                h.self,
		"GET /api/v3/orgs/{owner}/repos":                                  h.repos,
		"GET /api/v3/users/{owner}/repos":                                 h.repos,
		"GET /api/v3/user/repos":                                          h.repos,
		"GET /api/v3/orgs/{org}/members":                                  h.empty,
		"GET /api/v3/orgs/{org}/hooks":                                    h.listHooks,
		"POST /api/v3/orgs/{org}/hooks":                                   h.createHook,
		"PATCH /api/v3/orgs/{org}/hooks/{id}":                             h.editHook,
		"DELETE /api/v3/orgs/{org}/hooks/{id}":                            h.deleteHook,
		"GET /api/v3/repos/{owner}/{repo}":                                h.repo,
		"GET /api/v3/repos/{owner}/{repo}/actions/secrets/public-key":     h.publicKey,
		"PUT /api/v3/repos/{owner}/{repo}/actions/secrets/{name}":         h.putSecret,
		"GET /api/v3/repos/{owner}/{repo}/pulls":                          h.listPulls,
		"POST /api/v3/repos/{owner}/{repo}/pulls":                         h.createPull,
		"GET /api/v3/repos/{owner}/{repo}/contents/{path...}":             h.getContents,
		"PUT /api/v3/repos/{owner}/{repo}/contents/{path...}":             h.putContents,
		"GET /api/v3/repos/{owner}/{repo}/git/ref/{ref...}":               h.getRef,
		"POST /api/v3/repos/{owner}/{repo}/git/refs":                      h.createRef,
		"GET /api/v3/repos/{owner}/{repo}/branches":                       h.empty,
		"GET /api/v3/repos/{owner}/{repo}/collaborators/{who}/permission": h.permission,
		"GET /api/v3/repos/{owner}/{repo}/pulls/comments/{id}":            h.comment,
		"POST /api/v3/repos/{owner}/{repo}/pulls/{number}/comments":       h.reply,
		"PATCH /api/v3/repos/{owner}/{repo}/pulls/comments/{id}":          h.patchReviewComment,
		"POST /api/graphql":                                               h.graphQL,
		"GET /api/v3/repos/{owner}/{repo}/pulls/{number}":                 h.pull,
		"GET /api/v3/repos/{owner}/{repo}/pulls/{number}/{files}":         h.pullFiles,
		"POST /api/v3/repos/{owner}/{repo}/statuses/{sha}":                h.postStatus,
		"GET /api/v3/repos/{owner}/{repo}/issues/{number}/comments":       h.listNotes,
		"POST /api/v3/repos/{owner}/{repo}/issues/{number}/comments":      h.postIssueComment,
		"GET /api/v3/repos/{owner}/{repo}/issues":                         h.getIssues,
		"POST /api/v3/repos/{owner}/{repo}/issues":                        h.postIssue,
		"GET /api/v3/repos/{owner}/{repo}/issues/{number}":                h.getIssue,
		"PATCH /api/v3/repos/{owner}/{repo}/issues/{number}":              h.patchIssue,
		"PATCH /api/v3/repos/{owner}/{repo}/issues/comments/{id}":         h.patchNote,
	} {
		mux.HandleFunc(pattern, handler)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { h.notFound(w) })
	h.authorized = h.application
	h.start(t, h.headers(mux), func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusUnauthorized, object{"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest", "status": "401"})
	})
	return h
}

// headers adds GitHub's standard headers, and rejects requests that the token may not make.
func (h *GitHub) headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header["X-GitHub-Media-Type"] = []string{"github.v3; format=json"}
		header["X-RateLimit-Limit"], header["X-RateLimit-Remaining"], header["X-RateLimit-Reset"] = []string{"5000"}, []string{"4987"}, []string{"4102444800"}
		h.mu.Lock()
		scopes, refused := h.Scopes, h.Refused
		h.mu.Unlock()
		if scopes != nil {
			header["X-OAuth-Scopes"], header["X-Accepted-OAuth-Scopes"] = []string{*scopes}, []string{""}
		}
		for _, prefix := range refused {
			if strings.HasPrefix(r.Method+" "+r.URL.Path, prefix) {
				header["X-Accepted-GitHub-Permissions"] = []string{"organization_hooks=read"}
				write(w, http.StatusForbidden, object{
					"message": "Resource not accessible by personal access token", "documentation_url": "https://docs.github.com/rest", "status": "403",
				})
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (h *GitHub) notFound(w http.ResponseWriter) {
	write(w, http.StatusNotFound, object{"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"})
}

func (h *GitHub) empty(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, []any{}) }

func (h *GitHub) user(login string, id int64, kind string) object {
	return object{
		"login": login, "id": id, "node_id": "O_kgDOABCD", "url": h.URL + "/api/v3/users/" + login, "html_url": h.URL + "/" + login,
		"type": kind, "name": strings.ToUpper(login[:1]) + login[1:] + " Corp", "site_admin": false, "public_repos": 2, "created_at": "2019-03-14T09:26:53Z",
	}
}

func (h *GitHub) account(w http.ResponseWriter, r *http.Request) {
	switch strings.ToLower(r.PathValue("name")) {
	case "acme":
		write(w, http.StatusOK, h.user("acme", 7001, "Organization"))
	case "globex":
		write(w, http.StatusOK, h.user("globex", 7003, "Organization"))
	case "octavia":
		write(w, http.StatusOK, h.user("octavia", 7002, "User"))
	default:
		h.notFound(w)
	}
}

func (h *GitHub) self(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, h.user("octavia", 7002, "User"))
}

func (h *GitHub) repos(w http.ResponseWriter, r *http.Request) {
	owner := r.PathValue("owner")
	if owner == "" {
		owner = "octavia"
	}
	h.mu.Lock()
	var all []object
	for _, repository := range h.Repositories {
		if strings.HasPrefix(repository.Name, owner+"/") {
			all = append(all, h.repository(repository))
		}
	}
	h.mu.Unlock()
	h.list(w, r, all)
}

// repo answers with one repository of the list.
func (h *GitHub) repo(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	at := slices.IndexFunc(h.Repositories, func(one Repository) bool {
		return strings.EqualFold(one.Name, r.PathValue("owner")+"/"+r.PathValue("repo"))
	})
	var found object
	if at >= 0 {
		found = h.repository(h.Repositories[at])
	}
	h.mu.Unlock()
	if at < 0 {
		h.notFound(w)
		return
	}
	write(w, http.StatusOK, found)
}

func (h *GitHub) repository(r Repository) object {
	owner, name, _ := strings.Cut(r.Name, "/")
	out := object{
		"id": r.ID, "node_id": "R_kgDO", "name": name, "full_name": r.Name, "private": r.Visibility != "public", "owner": h.user(owner, 7001, "Organization"),
		"html_url": h.URL + "/" + r.Name, "description": nil, "fork": false, "url": h.URL + "/api/v3/repos/" + r.Name,
		"default_branch": r.DefaultBranch, "archived": r.Archived, "disabled": false, "has_issues": !h.issues.disabled, "visibility": r.Visibility,
		"pushed_at": "2026-04-30T12:00:00Z", "permissions": object{"admin": false, "maintain": false, "push": true, "triage": true, "pull": true},
	}
	return out
}

// list writes a page with GitHub's Link header.
func (h *GitHub) list(w http.ResponseWriter, r *http.Request, all []object) {
	items, next := pages(r, all)
	if next > 0 {
		origin := h.LinkHost
		if origin == "" {
			origin = h.URL
		}
		query := r.URL.Query()
		query.Set("page", fmt.Sprint(next))
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next", <%s%s?page=99>; rel="last"`, origin, r.URL.Path, query.Encode(), origin, r.URL.Path))
	}
	if items == nil {
		items = []object{}
	}
	write(w, http.StatusOK, items)
}

// Hooks lists the webhooks of "acme".
func (h *GitHub) Hooks() []Hook {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Hook(nil), h.hooks...)
}

func (h *GitHub) hook(hook Hook) object {
	return object{
		"type": "Organization", "id": hook.ID, "name": "web", "active": true, "events": hook.Events,
		"config":     object{"content_type": "json", "insecure_ssl": "0", "url": hook.URL, "secret": "********"},
		"updated_at": "2026-05-04T10:20:30Z", "created_at": "2026-05-04T10:20:30Z", "deliveries_url": h.URL + "/api/v3/orgs/acme/hooks/deliveries",
	}
}

func (h *GitHub) listHooks(w http.ResponseWriter, r *http.Request) {
	var all []object
	for _, hook := range h.Hooks() {
		all = append(all, h.hook(hook))
	}
	h.list(w, r, all)
}

type hookRequest struct {
	Name   string
	Active bool
	Events []string
	Config struct {
		URL         string
		Secret      string
		ContentType string `json:"content_type"`
		InsecureSSL string `json:"insecure_ssl"`
	}
}

func (r hookRequest) hook(id int64) Hook {
	return Hook{ID: id, URL: r.Config.URL, Secret: r.Config.Secret, Events: r.Events, Insecure: r.Config.InsecureSSL != "0" || r.Config.ContentType != "json"}
}

func (h *GitHub) createHook(w http.ResponseWriter, r *http.Request) {
	var request hookRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Name != "web" || request.Config.URL == "" {
		write(w, http.StatusUnprocessableEntity, object{"message": "Validation Failed", "errors": []object{{"resource": "Hook", "code": "custom", "message": "Config must contain URL"}}})
		return
	}
	h.mu.Lock()
	h.nextID++
	hook := request.hook(h.nextID)
	h.hooks = append(h.hooks, hook)
	h.mu.Unlock()
	write(w, http.StatusCreated, h.hook(hook))
}

func (h *GitHub) editHook(w http.ResponseWriter, r *http.Request) {
	var request hookRequest
	_ = json.NewDecoder(r.Body).Decode(&request)
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.hooks {
		if h.hooks[i].ID == number(r.PathValue("id")) {
			h.hooks[i] = request.hook(h.hooks[i].ID)
			write(w, http.StatusOK, h.hook(h.hooks[i]))
			return
		}
	}
	h.notFound(w)
}

func (h *GitHub) deleteHook(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.hooks {
		if h.hooks[i].ID == number(r.PathValue("id")) {
			h.hooks = append(h.hooks[:i:i], h.hooks[i+1:]...)
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	h.notFound(w)
}
