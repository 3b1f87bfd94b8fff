package scans_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// part is what a job with --include reports.
func part(t testing.TB, dir string, change ...func(object)) string {
	t.Helper()
	change = append(change, func(b object) {
		for _, name := range []string{"findings", "ignores", "searched_paths"} {
			var own []any
			for _, item := range b[name].([]any) {
				path, _ := item.(string)
				if f, ok := item.(object); ok {
					path, _ = f["path"].(string)
				}
				if strings.HasPrefix(path, dir+"/") {
					own = append(own, item)
				}
			}
			b[name] = append([]any{}, own...)
		}
	})
	return recorded(t, "results", change...)
}

// Jobs of a matrix scan parts of a commit. None of them closes findings of another one, and each closes its own.
func TestScannerMatrixJobs(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		want := []string{"app/run.py:12", "app/run.py:20", "lib/hash.py:4", "lib/old.py:7"}
		open := func(what string, want ...string) {
			t.Helper()
			wantList(t, what, c.openFindings(t, "acme/web"), want...)
		}
		c.scan(t, recorded(t, "results"), oldCommit)
		c.scan(t, part(t, "app"), newCommit)
		open("the first part after a whole scan", want...)
		c.scan(t, part(t, "lib"), newCommit)
		open("the second part", want...)
		later := atCommit(strings.Repeat("c", 40), "2026-11-20T10:10:00")
		c.scan(t, part(t, "lib", without(func(f object) bool { return f["line"] != 4.0 })), later)
		open("a finding is fixed in a part", want[0], want[1], want[3])
		c.scan(t, part(t, "app"), later)
		open("the other part of that commit", want[0], want[1], want[3])
		latest := atCommit(strings.Repeat("d", 40), "2026-11-20T10:15:00")
		c.scan(t, part(t, "lib", lines(), with([]any{}, "ignores"), with([]any{"lib/clean.py"}, "searched_paths")), latest)
		open("a file is deleted in a part", want[0], want[1])
		events := c.Store.Reader.FindingEvent.Query().CountX(s.System(t))
		if last := s.Store.Reader.FindingEvent.Query().AllX(s.System(t))[events-1]; last.Reason != "its file was not scanned any more: lib/old.py" {
			t.Errorf("%v", last)
		}
	})
}

// A file that cannot be parsed does not keep findings of its language open for ever.
func TestScannerKeepsFindingsWhileParsingChanges(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		scan := func(what string, unparsed int, findings func(object), want ...string) {
			t.Helper()
			id := c.create(t)
			task := c.results(t, id, recorded(t, "results", findings, with([]any{}, "ignores")))
			rate := object{"python": object{"targets_parsed": 4 - min(unparsed, 1), "num_targets": 4, "bytes_parsed": 900 - unparsed, "num_bytes": 900}}
			body := recorded(t, "complete", with(task, "task_id"), with(rate, "stats", "parse_rate"))
			apitest.Eventually(t, "the results are stored", func() bool {
				return c.ok(t, http.MethodPost, completePath(id), body)["success"] == true
			})
			wantList(t, what, c.openFindings(t, "acme/web"), want...)
		}
		scan("a part of a file cannot be parsed", 100, lines(4, 12, 20), "app/run.py:12", "app/run.py:20", "lib/hash.py:4")
		scan("it is the same part, and a finding is fixed", 100, lines(12, 20), "app/run.py:12", "app/run.py:20")
		scan("another part, too", 150, lines(20), "app/run.py:12", "app/run.py:20")
		scan("the same part again", 150, lines(), "app/run.py:12")
		scan("all is parsed", 0, lines())
	})
}
