// Package hosttest runs source-code hosts for tests: loopback servers with the wire formats of GitHub, GitLab and
// Azure DevOps from their public documentation, including failures.
package hosttest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Server is the common part of all hosts.
type Server struct {
	// URL is the web URL, without a trailing slash.
	URL string
	// Token is the only accepted credential.
	Token string
	// Code serves the repositories to Git, at their URLs with the suffix .git; nil: the host has none.
	Code http.Handler

	// credential is the accepted header Authorization; empty: the token as bearer token.
	credential string
	// authorized accepts other credentials; nil: none.
	authorized func(*http.Request) bool
	// numbered gives threads ids that are numbers.
	numbered bool

	mu       sync.Mutex
	answer   http.HandlerFunc
	requests []string
	agents   []string
	feedback feedback
	issues   issues
}

// start serves api until the test ends. unauthorized answers requests without the token.
func (s *Server) start(t testing.TB, api http.Handler, unauthorized http.HandlerFunc) {
	s.Token = "hosttest-0123456789-credential"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
		s.agents = append(s.agents, r.UserAgent())
		answer := s.answer
		s.mu.Unlock()
		switch {
		case answer != nil:
			answer(w, r)
		case s.Code != nil && strings.Contains(r.URL.Path, ".git/"):
			s.Code.ServeHTTP(w, r)
		case r.Header.Get("Authorization") != cmp.Or(s.credential, "Bearer "+s.Token) && (s.authorized == nil || !s.authorized(r)):
			unauthorized(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
}

// Answer replaces all responses; nil restores the host.
func (s *Server) Answer(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// Status responds with a status, headers (pairs of name and value) and a body.
func Status(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header()[http.CanonicalHeaderKey(header[i])] = []string{header[i+1]}
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// Hang does not respond until the client has disconnected.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Requests lists the requests as "GET /path?query", in order of arrival.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count returns how many requests have a prefix ("POST /api/v3/orgs").
func (s *Server) Count(prefix string) (n int) {
	for _, request := range s.Requests() {
		if strings.HasPrefix(request, prefix) {
			n++
		}
	}
	return n
}

// Agents lists the User-Agent headers received.
func (s *Server) Agents() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.agents)
}

// Repository is a repository of a host.
type Repository struct {
	ID int64
	// Name is the full name.
	Name          string
	DefaultBranch string
	// Visibility is "public", "private" or "internal".
	Visibility string
	Archived   bool
}

// Hook is a webhook of a host.
type Hook struct {
	ID  int64
	URL string
	// Secret is the signing secret.
	Secret string
	Events []string
	// Insecure is true if certificate verification is off.
	Insecure bool
}

// Comment is a comment of a review thread.
type Comment struct {
	ID int64
	// ReplyTo is the first comment of its thread (GitHub); 0 for the first comment itself.
	ReplyTo int64
	Author  string
	Body    string
	Path    string
	Line    int64
}

// Request is the state of a pull (or merge) request. The default is a merged one without files.
type Request struct {
	// State is "open", "closed" or "merged".
	State string
	// Commit is the head; empty for "3f2a".
	Commit string
	// Files are the changed files, with "old => new" for renamed ones.
	Files []string
	// Unchanged are paths in whose lines nobody can comment.
	Unchanged []string
	// Uncounted says that the host lists only some of them, or Azure DevOps thousands more.
	Uncounted bool
}

// head is the commit of the head.
func (r Request) head() string { return cmp.Or(r.Commit, "3f2a") }

// renamed splits a file of a request.
func renamed(file string) (before, after string) {
	before, after, ok := strings.Cut(file, " => ")
	if !ok {
		after = before
	}
	return before, after
}

// pages returns the page of a list that the query asks for, and the number of the next page, 0 after the last.
func pages[T any](r *http.Request, all []T) (items []T, next int) {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil && n > 0 {
			return n
		}
		return otherwise
	}
	page, size := number("page", 1), number("per_page", 30)
	begin := min((page-1)*size, len(all))
	end := min(begin+size, len(all))
	if end < len(all) {
		next = page + 1
	}
	return all[begin:end], next
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

type object = map[string]any
