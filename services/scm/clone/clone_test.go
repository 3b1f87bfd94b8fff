package clone_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/scm/clone"
	"github.com/palisade/palisade/services/scm/clone/clonetest"
)

func guard(t testing.TB) *egress.Guard {
	t.Helper()
	g, err := egress.New(egress.Config{Allow: "127.0.0.1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func source(s *clonetest.Server) clone.Source {
	return clone.Source{URL: s.URL + "/acme/web.git", Username: s.Username, Password: s.Password}
}

// prelude is the host's response before the pack.
var prelude = "0034shallow " + strings.Repeat("ab", 20) + "00000008NAK\n"

var files = map[string]string{"main.go": "package main\n", "web/api.go": "package web\n", "web/deep/er/x.go": "package er\n", "empty": "", "aux/.git.": "odd", "link@": "main.go"}

// contents reads all files; "-" marks a file that was left out.
func contents(t testing.TB, c *clone.Checkout) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := c.Files(t.Context(), func(f clone.File) error {
		if f.Size < 0 {
			out[f.Path] = "-"
			return nil
		}
		content, err := f.Content(t.Context())
		out[f.Path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFetch(t *testing.T) {
	s := clonetest.New(t)
	s.Username, s.Password = "x-access-token", "pw-4711"
	first := s.Commit(t, "acme/web", "refs/heads/main", map[string]string{"main.go": "old"})
	head := s.Commit(t, "acme/web", "refs/heads/main", files)
	release := s.Commit(t, "acme/web", "refs/heads/release/2", map[string]string{"only": "here"})
	pull := s.Commit(t, "acme/web", "refs/pull/7/merge", map[string]string{"pulled": "in"})
	s.Tag(t, "acme/web", "v1", first)
	want := map[string]string{"main.go": "package main\n", "web/api.go": "package web\n", "web/deep/er/x.go": "package er\n", "empty": "", "aux/.git.": "odd"}
	for ref, c := range map[string]struct {
		commit, full string
		files        map[string]string
	}{
		"":                  {head, "refs/heads/main", want},
		"main":              {head, "refs/heads/main", want},
		"refs/heads/main":   {head, "refs/heads/main", want},
		head:                {head, head, want},
		"release/2":         {release, "refs/heads/release/2", map[string]string{"only": "here"}},
		"refs/pull/7/merge": {pull, "refs/pull/7/merge", map[string]string{"pulled": "in"}},
		"v1":                {first, "refs/tags/v1", map[string]string{"main.go": "old"}},
	} {
		dir := t.TempDir()
		got, err := clone.Fetch(t.Context(), guard(t), source(s), ref, dir, clone.Limits{})
		if err != nil {
			t.Errorf("%q: %v", ref, err)
			continue
		}
		if found := contents(t, got); got.Commit != c.commit || got.Ref != c.full || !reflect.DeepEqual(found, c.files) {
			t.Errorf("%q: %s %s %q", ref, got.Commit, got.Ref, found)
		}
		if err := got.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%q: %s is left", ref, left[0].Name())
		}
	}
	if r := s.Uploads()[0]; r.Depth != packp.Depth(packp.DepthCommits(1)) {
		t.Errorf("the history was asked for: %+v", r)
	}
}

// Hosts with a filter for large files, and hosts without shallow fetches, both work.
func TestWhatHostsCan(t *testing.T) {
	s := clonetest.New(t)
	s.Commit(t, "acme/web", "refs/heads/main", map[string]string{"a": "old"})
	s.Commit(t, "acme/web", "refs/heads/main", map[string]string{"a": "new", "large.bin": strings.Repeat("x", 5000)})
	for name, c := range map[string]struct {
		capabilities []capability.Capability
		limit        int64
		large        string
	}{
		"all":     {s.Capabilities, 1000, "-"},
		"nothing": {nil, 1000, strings.Repeat("x", 5000)},
		"deltas":  {[]capability.Capability{capability.OFSDelta, capability.Sideband}, 0, strings.Repeat("x", 5000)},
	} {
		s.Capabilities = c.capabilities
		got, err := clone.Fetch(t.Context(), guard(t), source(s), "", t.TempDir(), clone.Limits{File: c.limit})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if found := contents(t, got); found["a"] != "new" || found["large.bin"] != c.large {
			t.Errorf("%s: %q", name, found)
		}
		_ = got.Close()
	}
}

func TestFailures(t *testing.T) {
	answer := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { http.Error(w, body, status); return true }
	}
	onPack := func(do func(http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				do(w)
			}
			return r.Method == http.MethodPost
		}
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the credential went elsewhere") }))
	defer elsewhere.Close()
	const canary = "canary-6f1e"
	for name, c := range map[string]struct {
		change    func(*clonetest.Server, *clone.Source)
		ref       string
		limits    clone.Limits
		permanent bool
		want      string
	}{
		"wrong password": {func(s *clonetest.Server, _ *clone.Source) { s.Password = "other" }, "", clone.Limits{}, true, "accessToken"},
		"forbidden":      {func(s *clonetest.Server, _ *clone.Source) { s.Before = answer(403, canary) }, "", clone.Limits{}, true, "read access"},
		"no repository":  {func(_ *clonetest.Server, c *clone.Source) { c.URL = strings.Replace(c.URL, "web", "none", 1) }, "", clone.Limits{}, true, "no such repository"},
		"no ref":         {nil, "gone", clone.Limits{}, true, `no ref "gone"`},
		"no commit":      {nil, strings.Repeat("ab", 20), clone.Limits{}, true, "is not a commit"},
		"rate limited":   {func(s *clonetest.Server, _ *clone.Source) { s.Before = answer(429, canary) }, "", clone.Limits{}, false, "status 429"},
		"out of order":   {func(s *clonetest.Server, _ *clone.Source) { s.Before = answer(502, canary) }, "", clone.Limits{}, false, "status 502"},
		"other status":   {func(s *clonetest.Server, _ *clone.Source) { s.Before = answer(418, canary) }, "", clone.Limits{}, true, "status 418"},
		"no Git":         {func(s *clonetest.Server, _ *clone.Source) { s.Before = answer(200, canary) }, "", clone.Limits{}, false, "no readable repository"},
		"redirect": {func(s *clonetest.Server, _ *clone.Source) {
			s.Before = func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, elsewhere.URL+r.URL.RequestURI(), http.StatusMovedPermanently)
				return true
			}
		}, "", clone.Limits{}, true, "redirects to another address"},
		"too large": {func(s *clonetest.Server, _ *clone.Source) {
			s.Before = onPack(func(w http.ResponseWriter) {
				_, err := io.WriteString(w, prelude)
				for block := "fff0\x01" + strings.Repeat("x", 0xfff0-5); err == nil; { // endless response
					_, err = io.WriteString(w, block)
				}
			})
		}, "", clone.Limits{Pack: 1 << 20}, true, "more than 1 MiB"},
		"too many refs": {func(s *clonetest.Server, _ *clone.Source) {
			s.Before = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
				_, err := io.WriteString(w, "001e# service=git-upload-pack\n0000")
				capabilities := "\x00ofs-delta shallow"
				for i := 0; err == nil; i++ { // endless response
					line := fmt.Sprintf("%s refs/heads/b%09d%s\n", strings.Repeat("ab", 20), i, capabilities)
					capabilities = ""
					_, err = fmt.Fprintf(w, "%04x%s", len(line)+4, line)
				}
				return true
			}
		}, "", clone.Limits{Refs: 1 << 20}, true, "more than 1 MiB"},
		"endless error": {func(s *clonetest.Server, _ *clone.Source) {
			s.Before = func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusBadGateway)
				for _, err := w.Write(nil); err == nil; {
					_, err = w.Write(make([]byte, 1<<16))
				}
				return true
			}
		}, "", clone.Limits{Timeout: 2 * time.Minute}, false, "status 502"},
		"unpacked too large": {nil, "", clone.Limits{Inflated: 100}, true, "too large"},
		"one file too large": {nil, "", clone.Limits{Object: 20}, true, "does not leave out"},
		"cut off": {func(s *clonetest.Server, _ *clone.Source) {
			s.Before = onPack(func(w http.ResponseWriter) {
				w.Header().Set("Content-Length", "1000")
				_, _ = io.WriteString(w, prelude+"00ff\x01PACK")
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})
		}, "", clone.Limits{}, false, "broke off"},
		"garbage": {func(s *clonetest.Server, _ *clone.Source) {
			s.Before = onPack(func(w http.ResponseWriter) {
				_, _ = io.WriteString(w, prelude+"0011\x01PACKgarbage!0000")
			})
		}, "", clone.Limits{}, false, "no readable repository"},
		"nonsense": {func(s *clonetest.Server, _ *clone.Source) {
			s.Before = onPack(func(w http.ResponseWriter) { _, _ = io.WriteString(w, canary) })
		}, "", clone.Limits{}, false, "no readable repository"},
		"slow": {func(s *clonetest.Server, _ *clone.Source) {
			s.Before = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
		}, "", clone.Limits{Timeout: 20 * time.Millisecond}, false, "in time"},
		"SSH":           {func(_ *clonetest.Server, c *clone.Source) { c.URL = "git@git.acme.test:acme/web.git" }, "", clone.Limits{}, true, "https"},
		"file":          {func(_ *clonetest.Server, c *clone.Source) { c.URL = "file:///etc" }, "", clone.Limits{}, true, "https"},
		"inner address": {func(_ *clonetest.Server, c *clone.Source) { c.URL = "https://10.1.2.3/acme/web.git" }, "", clone.Limits{}, true, "egress-allow"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clonetest.New(t)
			s.Username, s.Password = "oauth2", canary
			s.Commit(t, "acme/web", "refs/heads/main", files)
			from := source(s)
			if c.change != nil {
				c.change(s, &from)
			}
			dir := t.TempDir()
			_, err := clone.Fetch(t.Context(), guard(t), from, c.ref, dir, c.limits)
			var got *clone.Error
			if !errors.As(err, &got) || got.Permanent != c.permanent || !strings.Contains(got.Text, c.want) {
				t.Fatalf("got %+v, want %q (%v)", err, c.want, c.permanent)
			}
			if strings.Contains(fmt.Sprintf("%+v", err), canary) {
				t.Errorf("the error repeats a secret: %v", err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%s is left", left[0].Name())
			}
		})
	}
}

func TestCancel(t *testing.T) {
	s := clonetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.Before = func(http.ResponseWriter, *http.Request) bool { cancel(); return false }
	s.Commit(t, "acme/web", "refs/heads/main", files)
	if _, err := clone.Fetch(ctx, guard(t), source(s), "", t.TempDir(), clone.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWhatDyingProcessesLeftIsRemoved(t *testing.T) {
	s := clonetest.New(t)
	s.Commit(t, "acme/web", "refs/heads/main", files)
	dir := t.TempDir()
	old, young := filepath.Join(dir, "checkout-1"), filepath.Join(dir, "checkout-2")
	for _, d := range []string{old, young} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Now(), time.Now().Add(-25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	c, err := clone.Fetch(t.Context(), guard(t), source(s), "", dir, clone.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old one is there: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Error(err)
	}
}

// Git's own server checks the assumptions of the test host.
func TestGitItself(t *testing.T) {
	where, err := exec.Command("git", "--exec-path").Output()
	backend := filepath.Join(strings.TrimSpace(string(where)), "git-http-backend")
	if _, statErr := os.Stat(backend); err != nil || statErr != nil {
		t.Skip("git has no http-backend here")
	}
	root := t.TempDir()
	repo := filepath.Join(root, "acme", "web.git")
	git := func(args ...string) string {
		command := exec.Command("git", args...)
		command.Dir = root
		command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=Maya", "GIT_AUTHOR_EMAIL=maya@acme.test",
			"GIT_COMMITTER_NAME=Maya", "GIT_COMMITTER_EMAIL=maya@acme.test")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	work := filepath.Join(root, "work")
	git("init", "-q", "-b", "main", work)
	for i := range 3 { // similar files create deltas in the pack
		for j := range 20 {
			name := filepath.Join(work, fmt.Sprintf("f%02d.txt", j))
			if err := os.WriteFile(name, []byte(strings.Repeat(fmt.Sprintf("line of many %d\n", j), 200)+fmt.Sprint(i)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		git("-C", work, "add", ".")
		git("-C", work, "commit", "-q", "-m", "change")
	}
	git("clone", "-q", "--bare", work, repo)
	git("-C", repo, "repack", "-adfq")
	git("-C", repo, "config", "uploadpack.allowFilter", "true")
	server := httptest.NewServer(&cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}, Stderr: t.Output()})
	defer server.Close()
	for _, limit := range []int64{0, 1 << 20, 100, -1} {
		c, err := clone.Fetch(t.Context(), guard(t), clone.Source{URL: server.URL + "/acme/web.git", MultiACK: limit < 0}, "main", t.TempDir(), clone.Limits{File: limit})
		if err != nil {
			t.Fatalf("%d: %v", limit, err)
		}
		found := contents(t, c)
		want := strings.Repeat("line of many 7\n", 200) + "2"
		if limit == 100 {
			want = "-"
		}
		if len(found) != 20 || found["f07.txt"] != want || c.Commit != git("-C", work, "rev-parse", "HEAD") {
			t.Errorf("%d: %s: %d files, %.30q", limit, c.Commit, len(found), found["f07.txt"])
		}
		_ = c.Close()
	}
}
