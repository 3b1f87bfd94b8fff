package hosttest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Azure is an Azure DevOps with the organization "acme" and its project "tools". It accepts a personal access token.
type Azure struct {
	Server
	// Denied are the permissions that the token's user does not have, as bits.
	Denied []string
	// Refused are prefixes of requests that the token may not send.
	Refused []string
	// Repositories are the repositories of the project ("acme/tools/web").
	Repositories []Repository
	// Writers are the logins that may push.
	Writers []string
	// Comments are the comments of the thread AzureThread of pull request 17.
	Comments []Comment
	// Files are the files that can be read and changed.
	Files Files
	// NoDiffs says that the host does not compare lines.
	NoDiffs bool
	// PullRequests are the states of pull requests by number.
	PullRequests map[int64]Request

	hooks  []azureHook
	pulls  []Pull
	nextID int64
}

// AzureThread is the id of the thread of Azure.Comments, and AzureProject the id of the project.
const (
	AzureThread  = "100"
	AzureProject = "6ce954b1-ce1f-45d1-b94d-e6bf2464ba2c"
)

// azureHook is a subscription of a service hook.
type azureHook struct {
	ID, EventType, ResourceVersion  string
	PublisherInputs, ConsumerInputs map[string]string
}

// NewAzure starts an Azure DevOps.
func NewAzure(t testing.TB) *Azure {
	h := &Azure{}
	h.numbered = true
	const git = "/{org}/{project}/_apis/git/repositories/{repo}"
	const pull = git + "/pullRequests/{number}"
	mux := http.NewServeMux()
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET /{org}/_apis/connectionData":              h.connection,
		"GET /{org}/_apis/projects/{project}":          h.project,
		"GET /{org}/_apis/permissions/{space}/{bits}":  h.permission,
		"GET /{org}/_apis/identities":                  h.identities,
		"GET /{org}/_apis/accesscontrollists/{space}":  h.accessLists,
		"GET /{org}/_apis/git/repositories":            h.repositories,
		"GET /{org}/{project}/_apis/git/repositories":  h.repositories,
		"GET /{org}/_apis/hooks/subscriptions":         h.listHooks,
		"POST /{org}/_apis/hooks/subscriptions":        h.setHook,
		"PUT /{org}/_apis/hooks/subscriptions/{id}":    h.setHook,
		"DELETE /{org}/_apis/hooks/subscriptions/{id}": h.deleteHook,
		"GET " + git:                                             h.repository,
		"GET " + git + "/items":                                  h.item,
		"GET " + git + "/refs":                                   h.refs,
		"POST " + git + "/pushes":                                h.push,
		"GET " + git + "/pullrequests":                           h.listPulls,
		"POST " + git + "/pullrequests":                          h.createPull,
		"POST " + git + "/filediffs":                             h.fileDiffs,
		"POST " + git + "/commits/{sha}/statuses":                h.postStatus,
		"GET " + pull:                                            h.pullRequest,
		"GET " + pull + "/iterations":                            h.iterations,
		"GET " + pull + "/iterations/{iteration}/changes":        h.changes,
		"POST " + pull + "/statuses":                             h.postStatus,
		"GET " + pull + "/threads":                               h.listThreads,
		"POST " + pull + "/threads":                              h.beginThread,
		"GET " + pull + "/threads/{thread}":                      h.thread,
		"PATCH " + pull + "/threads/{thread}":                    h.patchThread,
		"POST " + pull + "/threads/{thread}/comments":            h.reply,
		"PATCH " + pull + "/threads/{thread}/comments/{number2}": h.patchComment,
	} {
		mux.HandleFunc(pattern, handler)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { h.notFound(w) })
	h.start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasPrefix(r.URL.Query().Get("api-version"), "7.1"):
			azureError(w, http.StatusBadRequest, "VssVersionNotSpecifiedException", "No api-version was supplied")
		case slices.ContainsFunc(h.Refused, func(p string) bool { return strings.HasPrefix(r.Method+" "+r.URL.Path, p) }):
			azureError(w, http.StatusForbidden, "AccessCheckException", "TF401027: You need the Git permission to perform this action")
		default:
			mux.ServeHTTP(w, r)
		}
	}), signIn)
	h.credential = "Basic " + base64.StdEncoding.EncodeToString([]byte(":"+h.Token))
	return h
}

// signIn is the answer to a wrong token.
func signIn(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusNonAuthoritativeInfo)
	_, _ = w.Write([]byte("<!DOCTYPE html><title>Azure DevOps Services | Sign In</title>"))
}

func azureError(w http.ResponseWriter, status int, kind, text string) {
	write(w, status, object{"$id": "1", "innerException": nil, "message": text, "typeName": "Microsoft.TeamFoundation." + kind, "typeKey": kind, "errorCode": 0, "eventId": 3000})
}

func (h *Azure) notFound(w http.ResponseWriter) {
	azureError(w, http.StatusNotFound, "GitRepositoryNotFoundException", "TF401019: The Git repository does not exist or you do not have permissions")
}

func values[T any](w http.ResponseWriter, all []T) {
	if all == nil {
		all = []T{}
	}
	write(w, http.StatusOK, object{"count": len(all), "value": all})
}

// AcceptBearer accepts the token of an application, too.
func (h *Azure) AcceptBearer(token string) {
	h.authorized = func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+token }
}

func (h *Azure) connection(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, object{"authenticatedUser": object{"id": "7", "providerDisplayName": "Octavia"}, "instanceId": "1cd3a6a7-2b1f-4a44-9b4e-8b4e2f0f2c11"})
}

func (h *Azure) projectObject() object {
	return object{"id": AzureProject, "name": "tools", "state": "wellFormed", "revision": 11, "visibility": "private"}
}

func (h *Azure) project(w http.ResponseWriter, r *http.Request) {
	if name := r.PathValue("project"); r.PathValue("org") != "acme" || !strings.EqualFold(name, "tools") {
		azureError(w, http.StatusNotFound, "ProjectDoesNotExistWithNameException", "TF200016: The following project does not exist: "+name)
		return
	}
	write(w, http.StatusOK, h.projectObject())
}

func (h *Azure) permission(w http.ResponseWriter, r *http.Request) {
	values(w, []bool{!slices.Contains(h.Denied, r.PathValue("bits"))})
}

// descriptor is the identity of a login.
func descriptor(login string) string {
	return `Microsoft.IdentityModel.Claims.ClaimsIdentity;1d2c\` + login
}

// identities knows everybody but the address that nobody has.
func (h *Azure) identities(w http.ResponseWriter, r *http.Request) {
	login := r.URL.Query().Get("filterValue")
	if strings.HasSuffix(login, "@example.com") {
		values[object](w, nil)
		return
	}
	text := func(value string) object { return object{"$type": "System.String", "$value": value} }
	values(w, []object{{
		"id": "d6245f20-2af8-44f4-9451-8107cb2767db", "descriptor": descriptor(login), "providerDisplayName": login, "isActive": true, "isContainer": false,
		"properties": object{"SchemaClassName": text("User"), "Account": text(login), "Mail": text(login)},
	}})
}

func (h *Azure) accessLists(w http.ResponseWriter, r *http.Request) {
	allow, of := 2, r.URL.Query().Get("descriptors")
	h.mu.Lock()
	for _, writer := range h.Writers {
		if descriptor(writer) == of {
			allow = 2 | 4 | 16384
		}
	}
	h.mu.Unlock()
	if r.URL.Query().Get("includeExtendedInfo") != "true" || !strings.HasPrefix(r.URL.Query().Get("token"), "repoV2/"+AzureProject+"/") {
		values[object](w, nil)
		return
	}
	values(w, []object{{
		"inheritPermissions": true, "token": r.URL.Query().Get("token"), "includeExtendedInfo": true,
		"acesDictionary": object{of: object{"descriptor": of, "allow": 0, "deny": 0, "extendedInfo": object{"effectiveAllow": allow, "inheritedAllow": allow}}},
	}})
}

// AzureID is the id of a repository with a number.
func AzureID(n int64) string { return fmt.Sprintf("2f3d611a-f012-4b39-b157-%012d", n) }

func (h *Azure) repositoryObject(p Repository) object {
	name := p.Name[strings.LastIndex(p.Name, "/")+1:]
	project := h.projectObject()
	if p.Visibility == "public" {
		project["visibility"] = "public"
	}
	out := object{
		"id": AzureID(p.ID), "name": name, "project": project, "size": 728, "isDisabled": p.Archived,
		"remoteUrl": h.URL + "/acme/tools/_git/" + name, "webUrl": h.URL + "/acme/tools/_git/" + name, "url": h.URL + "/acme/_apis/git/repositories/" + AzureID(p.ID),
	}
	if p.DefaultBranch != "" {
		out["defaultBranch"] = "refs/heads/" + p.DefaultBranch
	}
	return out
}

func (h *Azure) repositories(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []object
	for _, one := range h.Repositories {
		all = append(all, h.repositoryObject(one))
	}
	values(w, all)
}

func (h *Azure) repository(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := "acme/" + r.PathValue("project") + "/" + r.PathValue("repo")
	i := slices.IndexFunc(h.Repositories, func(p Repository) bool { return strings.EqualFold(p.Name, name) })
	if i < 0 {
		h.notFound(w)
		return
	}
	write(w, http.StatusOK, h.repositoryObject(h.Repositories[i]))
}

// Hooks lists the service hooks of the project, one for each event.
func (h *Azure) Hooks() (list []Hook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.hooks {
		if one.PublisherInputs["projectId"] != AzureProject || one.ConsumerInputs["basicAuthUsername"] == "" {
			panic(fmt.Sprintf("an incomplete subscription: %+v", one))
		}
		list = append(list, Hook{
			ID: number(one.ID), URL: one.ConsumerInputs["url"], Secret: one.ConsumerInputs["basicAuthPassword"], Events: []string{one.EventType},
			Insecure: one.ConsumerInputs["acceptUntrustedCerts"] == "true",
		})
	}
	return list
}

func (one azureHook) object() object {
	inputs := object{}
	for name, value := range one.ConsumerInputs {
		inputs[name] = value
	}
	inputs["basicAuthPassword"] = "********"
	return object{
		"id": one.ID, "status": "enabled", "publisherId": "tfs", "eventType": one.EventType, "resourceVersion": one.ResourceVersion, "consumerId": "webHooks",
		"consumerActionId": "httpRequest", "publisherInputs": one.PublisherInputs, "consumerInputs": inputs,
	}
}

func (h *Azure) listHooks(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []object
	for _, one := range h.hooks {
		all = append(all, one.object())
	}
	values(w, all)
}

func (h *Azure) setHook(w http.ResponseWriter, r *http.Request) {
	var one azureHook
	_ = json.NewDecoder(r.Body).Decode(&one)
	h.mu.Lock()
	defer h.mu.Unlock()
	if one.EventType == "ms.vss-code.git-pullrequest-comment-event" && one.ResourceVersion != "2.0" || one.ConsumerInputs["url"] == "" {
		azureError(w, http.StatusBadRequest, "SubscriptionInputException", "The subscription is not valid")
		return
	}
	if id := r.PathValue("id"); id != "" {
		i := slices.IndexFunc(h.hooks, func(s azureHook) bool { return s.ID == id })
		if i < 0 {
			azureError(w, http.StatusNotFound, "SubscriptionNotFoundException", "The subscription does not exist")
			return
		}
		one.ID = id
		h.hooks[i] = one
	} else {
		h.nextID++
		one.ID = fmt.Sprint(300 + h.nextID)
		h.hooks = append(h.hooks, one)
	}
	write(w, http.StatusOK, one.object())
}

func (h *Azure) deleteHook(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hooks = slices.DeleteFunc(h.hooks, func(s azureHook) bool { return s.ID == r.PathValue("id") })
	w.WriteHeader(http.StatusNoContent)
}

// DropHook deletes the subscriptions of an event.
func (h *Azure) DropHook(event string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hooks = slices.DeleteFunc(h.hooks, func(s azureHook) bool { return s.EventType == event })
}

// CopyHook doubles the subscription of an event.
func (h *Azure) CopyHook(event string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.hooks {
		if one.EventType == event {
			h.nextID++
			one.ID = fmt.Sprint(300 + h.nextID)
			h.hooks = append(h.hooks, one)
			return
		}
	}
}
