package steps_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/services/scm/clone/clonetest"
	"github.com/palisade/palisade/services/workflows/step"
)

// fetchedCode is the output of code.fetch.
type fetchedCode struct {
	Commit, Ref    string
	Files, Skipped int
	SkippedBecause map[string]int
	Units          []struct {
		Index, Bytes int
		TaskID       int64
		Artifact     string
		Files        []string
	}
}

// gitHost starts a source-code host, connects the deployment to it and creates a project.
func (w fixture) gitHost(t testing.TB) (*clonetest.Server, int64) {
	t.Helper()
	host := clonetest.New(t)
	host.Username, host.Password = "x-access-token", "pw-4711-canary"
	w.connect(t, w.Tenant, "SCM_TYPE_GITHUB_ENTERPRISE", host.URL, "acme", host.Password)
	return host, w.project(t, w.Tenant, "acme/web", host.URL+"/acme/web")
}

func TestCodeFetch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w fixture) {
		host, web := w.gitHost(t)
		commit := host.Commit(t, "acme/web", "refs/heads/main", map[string]string{
			"src/a.go": "package a\n\nfunc A() {}\n", "src/b.go": strings.Repeat("var x = 1\n", 900), "src/a_test.go": "package a\n", "README.md": "# Web\n",
			"src/logo.go": "\x00\x01", "src/latin.go": "caf\xe9\n", "src/min.go": strings.Repeat("a", 5000), "src/huge.go": strings.Repeat("y\n", 20_000),
			"src/odd\nname.go": "package odd\n", "src/link.go@": "a.go", "src/empty.go": "",
		})
		call := w.call(web, with{"include": []any{"src/**/*.go"}, "exclude": []any{"*_test.go"}, "maxFileBytes": 30_000, "unitBytes": 4096})
		out, result := run[fetchedCode](t, w.kinds, "code.fetch", call)
		if out.Commit != commit || result.Commit != commit || out.Ref != "refs/heads/main" || out.Files != 3 || out.Skipped != 5 ||
			!reflect.DeepEqual(out.SkippedBecause, map[string]int{"binary": 2, "long_lines": 1, "large": 1, "path": 1}) {
			t.Errorf("got %+v", out)
		}
		var lines int
		for i, unit := range out.Units {
			artifact := result.Artifacts[i]
			if unit.Index != i || unit.TaskID != 70 || unit.Artifact != artifact.Name || unit.Bytes != len(artifact.Content) || unit.Bytes > 4096 {
				t.Errorf("unit %+v, artifact %s", unit, artifact.Name)
			}
			lines += strings.Count(string(artifact.Content), ": var x = 1\n")
		}
		if lines != 900 || len(out.Units) != len(result.Artifacts) || len(out.Units) < 3 {
			t.Errorf("%d lines in %d units", lines, len(out.Units))
		}
		if first := string(result.Artifacts[0].Content); !strings.HasPrefix(first, "=== src/a.go (lines 1-3 of 3)\n1: package a\n2: \n3: func A() {}\n") {
			t.Errorf("got %.80q", first)
		}
		again, second := run[fetchedCode](t, w.kinds, "code.fetch", call)
		if !reflect.DeepEqual(again, out) || !reflect.DeepEqual(second, result) {
			t.Error("a second attempt brings something else")
		}
		if small, _ := run[fetchedCode](t, w.kinds, "code.fetch", w.call(web, with{"maxBytes": 100, "include": "*.go"})); small.SkippedBecause["budget"] != 3 {
			t.Errorf("beyond maxBytes: %+v", small)
		}
		w.nothingLeft(t)
	})
}

func TestCodeFetchRefs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w fixture) {
		host, web := w.gitHost(t)
		main := host.Commit(t, "acme/web", "refs/heads/main", map[string]string{"a": "main"})
		topic := host.Commit(t, "acme/web", "refs/heads/topic", map[string]string{"a": "topic"})
		release := host.Commit(t, "acme/web", "refs/heads/release", map[string]string{"a": "release"})
		fetch := func(runs, given string) string {
			call := w.call(web, with{"ref": given})
			call.GitRef = runs
			out, _ := run[fetchedCode](t, w.kinds, "code.fetch", call)
			return out.Commit
		}
		for _, c := range []struct{ runs, given, want string }{
			{"", "", main}, {"topic", "", topic}, {"topic", "refs/heads/release", release}, {"", topic, topic},
		} {
			if got := fetch(c.runs, c.given); got != c.want {
				t.Errorf("%+v: got %s", c, got)
			}
		}
		w.write(t, func(ctx context.Context, tx *ent.Tx) error {
			return tx.Project.Update().Where(project.ID(web)).SetPrimaryBranch("refs/heads/topic").Exec(ctx)
		})
		if got := fetch("", ""); got != topic {
			t.Errorf("of the primary branch: %s", got)
		}
	})
}

// nestedTrees returns trees of two entries that both point to the next tree. Git stores one tree per level, but a
// checkout has one file per path.
func nestedTrees(levels int) map[string]string {
	files := map[string]string{}
	for i := range 1 << levels {
		path := make([]string, levels)
		for level := range path {
			path[level] = string(rune('a' + i>>level&1))
		}
		files[strings.Join(path, "/")+"/x.go"] = "x\n"
	}
	return files
}

func TestCodeFetchFailures(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w fixture) {
		host, web := w.gitHost(t)
		files := map[string]string{}
		for i := range 12_000 {
			files[fmt.Sprintf("%s/%05d.go", strings.Repeat("long", 25), i)] = "x\n"
		}
		host.Commit(t, "acme/web", "refs/heads/main", map[string]string{"a": "b"})
		host.Commit(t, "acme/wide", "refs/heads/main", files)
		host.Commit(t, "acme/bomb", "refs/heads/main", nestedTrees(16))
		other := w.AddTenant(t, "globex")
		w.connect(t, other, "SCM_TYPE_GITHUB_ENTERPRISE", host.URL, "globex", host.Password)
		for name, c := range map[string]struct {
			call      step.Call
			before    func(http.ResponseWriter, *http.Request) bool
			permanent bool
			want      string
		}{
			"no project":        {w.call(0, nil), nil, true, "about no single project"},
			"unknown project":   {w.call(987654, nil), nil, true, "does not exist"},
			"another tenant's":  {w.call(w.project(t, other, "globex/web", host.URL+"/globex/web"), nil), nil, true, "does not exist"},
			"not connected":     {w.call(w.project(t, w.Tenant, "initech/web", host.URL+"/initech/web"), nil), nil, true, "no source-code host is configured for project initech/web"},
			"another namespace": {w.call(w.project(t, w.Tenant, "globex/api", host.URL+"/globex/api"), nil), nil, true, "no source-code host is configured"},
			"another host":      {w.call(w.project(t, w.Tenant, "acme/elsewhere", "https://git.acme.test/acme/elsewhere"), nil), nil, true, "no source-code host is configured"},
			"dots in the path":  {w.call(w.project(t, w.Tenant, "acme/dots", host.URL+"/acme/../globex/web"), nil), nil, true, "no source-code host is configured"},
			"no such ref":       {w.call(web, with{"ref": "gone"}), nil, true, `no ref "gone"`},
			"too many files":    {w.call(w.project(t, w.Tenant, "acme/wide", host.URL+"/acme/wide"), nil), nil, true, "too many files (12000)"},
			"nested trees":      {w.call(w.project(t, w.Tenant, "acme/bomb", host.URL+"/acme/bomb"), nil), nil, true, "too many files (50000)"},
			"refused": {w.call(web, nil), func(w http.ResponseWriter, _ *http.Request) bool {
				http.Error(w, "pw-4711-canary", http.StatusUnauthorized)
				return true
			}, true, "does not accept the stored credential"},
			"out of order": {w.call(web, nil), func(w http.ResponseWriter, _ *http.Request) bool {
				http.Error(w, "pw-4711-canary", http.StatusBadGateway)
				return true
			}, false, "status 502"},
		} {
			host.Before = c.before
			err := failure(t, w.kinds, "code.fetch", c.call)
			if step.IsPermanent(err) != c.permanent || !strings.Contains(err.Error(), c.want) || strings.Contains(fmt.Sprintf("%+v", err), "canary") {
				t.Errorf("%s: got %v (permanent %v)", name, err, step.IsPermanent(err))
			}
		}
		w.nothingLeft(t)
	})
}

// A project's name does not locate its code: the project must be bound. Tokens use the host's scheme.
func TestCodeFetchOfBoundProject(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w fixture) {
		host := clonetest.New(t)
		host.Username, host.Password = "oauth2", "pw-4711"
		w.connect(t, w.Tenant, "SCM_TYPE_GITLAB_SELFMANAGED", host.URL, "acme", "wrong")
		w.connect(t, w.Tenant, "SCM_TYPE_GITLAB_SELFMANAGED", host.URL, "acme/platform", host.Password)
		commit := host.Commit(t, "acme/platform/api", "refs/heads/main", map[string]string{"a": "b"})
		err := failure(t, w.kinds, "code.fetch", w.call(w.project(t, w.Tenant, "acme/platform/api", ""), nil))
		if !step.IsPermanent(err) || !strings.Contains(err.Error(), "is bound to no repository") {
			t.Errorf("of a project that is bound to nothing: %v", err)
		}
		out, _ := run[fetchedCode](t, w.kinds, "code.fetch", w.call(w.project(t, w.Tenant, "other", host.URL+"/acme/platform/api"), nil))
		if out.Commit != commit {
			t.Errorf("got %+v", out)
		}
	})
}
