package scans_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/services/internal/apitest"
)

// commit sets the commit of a scan: 40 times the letter.
func commit(letter string) func(object) {
	return with(strings.Repeat(letter, 40), "project_metadata", "commit")
}

// diffOf is the report of a diff scan that looked at some files. The first of them, if it is app/new.py, has a finding.
func diffOf(t testing.TB, files ...string) string {
	t.Helper()
	return recorded(t, "results", without(func(f object) bool { return f["line"] == 12.0 && len(files) > 0 && files[0] == "app/new.py" }), func(b object) {
		list, _ := b["findings"].([]any)
		for _, f := range list {
			with("app/new.py", "path")(f.(object))
		}
		paths := make([]any, len(files))
		for i, file := range files {
			paths[i] = file
		}
		b["ignores"], b["searched_paths"] = []any{}, paths
	})
}

const (
	newOpen    = "app/new.py:12 unresolved open"
	newRemoved = "app/new.py:12 removed removed"
)

// TestRevertedFile: a file that is no longer in the diff of a pull request takes its finding along. Everything that
// could be another reason for the missing file keeps it.
func TestRevertedFile(t *testing.T) {
	t.Parallel()
	type step struct {
		results string
		change  []func(object)
	}
	diff := func(letter string, files ...string) step {
		return step{diffOf(t, files...), []func(object){pull, commit(letter)}}
	}
	also := func(s step, change ...func(object)) step { return step{s.results, append(s.change, change...)} }
	edit := func(s step, change func(object)) step {
		body := parsed(t, s.results)
		change(body)
		return step{written(t, body), s.change}
	}
	cases := map[string]struct {
		steps []step
		want  string
	}{
		"reverted, other files stay":   {[]step{diff("a", "app/new.py", "app/other.py"), diff("b", "app/other.py")}, newRemoved},
		"reverted, other files come":   {[]step{diff("a", "app/new.py"), diff("b", "go.sum")}, newRemoved},
		"the only file is reverted":    {[]step{diff("a", "app/new.py"), diff("b")}, newRemoved},
		"a second run changes nothing": {[]step{diff("a", "app/new.py"), diff("b", "x.py"), diff("b", "x.py")}, newRemoved},
		"it comes back":                {[]step{diff("a", "app/new.py"), diff("b", "x.py"), diff("c", "app/new.py", "x.py")}, newOpen},
		"the same commit again":        {[]step{diff("a", "app/new.py"), diff("a", "app/other.py")}, newOpen},
		"jobs that scan parts":         {[]step{diff("a", "app/new.py"), diff("a", "lib/b.py"), diff("b", "lib/b.py")}, newOpen},
		"the scan compares with the last commit": {[]step{
			diff("a", "app/new.py"), also(diff("b", "x.py"), with(strings.Repeat("a", 40), "project_metadata", "base_branch_head_commit"))}, newOpen},
		"no pull request": {[]step{
			also(diff("a", "app/new.py"), with(pullRef+"s", "project_metadata", "branch"), with(nil, "project_metadata", "pull_request_id")),
			also(diff("b", "x.py"), with(pullRef+"s", "project_metadata", "branch"), with(nil, "project_metadata", "pull_request_id"))}, newOpen},
		"a scan of some rules":   {[]step{diff("a", "app/new.py"), also(diff("b", "x.py"), with([]any{"another"}, "scan_metadata", "partial_scan_rule_ids"))}, newOpen},
		"a scan without rules":   {[]step{diff("a", "app/new.py"), edit(diff("b", "x.py"), with([]any{}, "rule_ids"))}, newOpen},
		"the rule did not run":   {[]step{diff("a", "app/new.py"), edit(diff("b", "x.py"), with([]any{"another.rule"}, "rule_ids"))}, newOpen},
		"the file was skipped":   {[]step{diff("a", "app/new.py"), edit(diff("b", "x.py"), with([]any{"app/new.py"}, "skipped_paths"))}, newOpen},
		"a scan of one product":  {[]step{diff("a", "app/new.py"), also(diff("b", "x.py"), with([]any{"sca"}, "scan_metadata", "requested_products"))}, newOpen},
		"a full scan reports it": {[]step{diff("a", "app/new.py"), also(diff("b", "app/new.py"), with(true, "project_metadata", "is_full_scan")), diff("c", "x.py")}, newOpen},
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		n := 0
		for name, one := range cases {
			n++
			c := newScanner(s)
			repository := fmt.Sprintf("acme/reverted-%d", n)
			for _, step := range one.steps {
				c.scan(t, step.results, append(step.change, with(repository, "project_metadata", "repository"), with(repository, "project_metadata", "repo_display_name"))...)
			}
			if got := c.findingsIn(t, repository); len(got) != 1 || got[0] != one.want {
				t.Errorf("%s: %q, want %q", name, got, one.want)
			}
		}
		reasons := s.Store.Reader.FindingEvent.Query().Where(findingevent.Kind("removed")).Order(ent.Asc(findingevent.FieldID)).AllX(s.System(t))
		for _, e := range reasons {
			if e.Reason != "its file is no longer in the pull request: app/new.py" || e.ActorKind != "scan" {
				t.Errorf("%v", e)
			}
		}
		if len(reasons) != 5 {
			t.Errorf("%d findings were removed, want 5", len(reasons))
		}
	})
}
