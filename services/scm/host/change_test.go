package host_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

const program = "import db\n  run(x)\n"

// changed is a host with files that can be read and changed.
type changed struct {
	kind       scmv1.ScmType
	url, token string
	repository string
	file       func(branch, path string) string
	pulls      func() []hosttest.Pull
	webURL     string
}

func hostsWithFiles(t *testing.T) map[string]changed {
	files := func() hosttest.Files { return hosttest.Files{"main:app/db.py": program, "main:README": "read me"} }
	hub, lab, azure := hosttest.NewGitHub(t), hosttest.NewGitLab(t), hosttest.NewAzure(t)
	hub.Files, lab.Files, azure.Files = files(), files(), files()
	return map[string]changed{
		"github": {enterprise, hub.URL, hub.Token, "acme/web", hub.File, hub.Pulls, "/acme/web/pull/"},
		"gitlab": {selfManaged, lab.URL, lab.Token, "acme/platform/api", lab.File, lab.Pulls, "/acme/platform/api/-/merge_requests/"},
		"azure":  {azureDevOps, azure.URL, azure.Token, "acme/tools/web", azure.File, azure.Pulls, "/acme/tools/_git/web/pullrequest/"},
	}
}

func TestProposeAChange(t *testing.T) {
	for name, c := range hostsWithFiles(t) {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			h := open(t, c.kind, c.url, c.token)
			for _, ref := range []string{"main", "3f2a9c1b"} {
				if content, err := h.File(ctx, c.repository, "app/db.py", ref); err != nil || string(content) != program {
					t.Fatalf("%q %v", content, err)
				}
			}
			for _, path := range []string{"", "/etc/passwd", "app/../../x", "app//db.py", "app/db.py\x00", "./app"} {
				if _, err := h.File(ctx, c.repository, path, "main"); !host.Is(err, host.NotFound) {
					t.Errorf("path %q: %v", path, err)
				}
			}
			if _, err := h.File(ctx, c.repository, "app/none.py", "main"); !host.Is(err, host.NotFound) {
				t.Errorf("no such file: %v", err)
			}
			change := host.Change{Base: "main", Branch: "palisade/fix-1-1", Path: "app/db.py", Content: []byte("import db\n  run(safe(x))\n"), Title: "Fix sqli in db.py", Text: "why"}
			first, err := h.Propose(ctx, c.repository, change)
			if err != nil || !first.Open || first.Head != change.Branch || first.Base != "main" || !strings.Contains(first.URL, c.webURL) {
				t.Fatalf("%+v %v", first, err)
			}
			change.Content = []byte("import db\n  run(safer(x))\n")
			second, err := h.Propose(ctx, c.repository, change)
			if err != nil || second.Number != first.Number || len(c.pulls()) != 1 {
				t.Errorf("again: %+v, %d requests, %v", second, len(c.pulls()), err)
			}
			if c.file(change.Branch, "app/db.py") != string(change.Content) || c.file("main", "app/db.py") != program {
				t.Errorf("branch has %q, main %q", c.file(change.Branch, "app/db.py"), c.file("main", "app/db.py"))
			}
			change.Path, change.Branch = "app/none.py", "palisade/fix-2-2"
			if _, err := h.Propose(ctx, c.repository, change); !host.Is(err, host.NotFound) {
				t.Errorf("a file that there is not: %v", err)
			}
		})
	}
}

// TestChangedFiles: all files of a request, over several pages and with former names, or an error.
func TestChangedFiles(t *testing.T) {
	hub, lab, azure := hosttest.NewGitHub(t), hosttest.NewGitLab(t), hosttest.NewAzure(t)
	requests := map[int64]hosttest.Request{
		7: {State: "open", Files: []string{"app/db.py", "old.py => new.py"}}, 8: {State: "open"}, 9: {State: "open", Files: []string{"a"}, Uncounted: true},
		10: {State: "open"},
	}
	many := requests[10]
	for n := range 750 {
		many.Files = append(many.Files, fmt.Sprintf("f%d", n))
	}
	requests[10] = many
	hub.PullRequests, lab.MergeRequests, azure.PullRequests = requests, requests, requests
	for name, c := range map[string]struct {
		h          host.Host
		repository string
	}{
		"github": {open(t, enterprise, hub.URL, hub.Token), "acme/web"}, "gitlab": {open(t, selfManaged, lab.URL, lab.Token), "acme/platform/api"},
		"azure": {open(t, azureDevOps, azure.URL, azure.Token), "acme/tools/web"},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := c.h.ChangedFiles(t.Context(), c.repository, 7)
			slices.Sort(files)
			if files = slices.DeleteFunc(slices.Compact(files), func(f string) bool { return f == "" }); err != nil || !slices.Equal(files, []string{"app/db.py", "new.py", "old.py"}) {
				t.Errorf("%q %v", files, err)
			}
			if files, err := c.h.ChangedFiles(t.Context(), c.repository, 8); err != nil || len(files) != 0 {
				t.Errorf("no files: %q %v", files, err)
			}
			if files, err := c.h.ChangedFiles(t.Context(), c.repository, 9); !host.Is(err, host.Unsupported) {
				t.Errorf("an incomplete list: %q %v", files, err)
			}
			if files, err := c.h.ChangedFiles(t.Context(), c.repository, 10); err != nil || !slices.Contains(files, "f0") || !slices.Contains(files, "f749") {
				t.Errorf("several pages: %d files, %v", len(files), err)
			}
			for number, want := range map[int64]bool{7: true, 1: false} {
				if pull, err := c.h.PullRequest(t.Context(), c.repository, number); err != nil || pull.Open != want || pull.Merged == want {
					t.Errorf("request %d: %+v %v", number, pull, err)
				}
			}
		})
	}
}
