package host_test

import (
	"context"
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
	hub, lab := hosttest.NewGitHub(t), hosttest.NewGitLab(t)
	hub.Files, lab.Files = files(), files()
	return map[string]changed{
		"github": {enterprise, hub.URL, hub.Token, "acme/web", hub.File, hub.Pulls, "/acme/web/pull/"},
		"gitlab": {selfManaged, lab.URL, lab.Token, "acme/platform/api", lab.File, lab.Pulls, "/acme/platform/api/-/merge_requests/"},
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
