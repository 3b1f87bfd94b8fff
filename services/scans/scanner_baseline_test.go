package scans_test

import (
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// compared makes a diff scan of a branch that compares with an earlier commit.
func compared(ref, letter, base string) func(object) {
	return func(body object) {
		with(ref, "project_metadata", "branch")(body)
		with(false, "project_metadata", "is_full_scan")(body)
		with(strings.Repeat(base, 40), "project_metadata", "base_sha")(body)
		commit(letter)(body)
	}
}

// A diff scan does not report what its base has. If the base is an earlier commit of the same ref, that is no proof
// that a finding is fixed. What the ref got since is fixed if the scan looked at its file, except on the default
// branch.
func TestScannerDiffAgainstItsOwnRef(t *testing.T) {
	t.Parallel()
	const found, first = "app/new.py:12 unresolved open", "app/new.py:12 fixed fixed"
	type diff struct{ letter, base string }
	silent := diffOf(t, "app/other.py", "app/new.py") // looked at app/new.py and reports nothing
	for name, c := range map[string]struct {
		ref  string
		then []diff
		want string
	}{
		"main":                           {mainRef, []diff{{"c", "b"}}, found},
		"main, other base":               {mainRef, []diff{{"c", "a"}}, found},
		"feature":                        {"refs/heads/feature", []diff{{"c", "b"}}, found},
		"feature, base of an older scan": {"refs/heads/feature", []diff{{"c", "a"}}, first},
		"feature, twice":                 {"refs/heads/feature", []diff{{"c", "b"}, {"d", "c"}}, found},
		"pull request":                   {"refs/pull/3/merge", []diff{{"c", "b"}}, found},
		"pull request, target branch":    {"refs/pull/3/merge", []diff{{"c", "0"}}, first},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apitest.Each(t, func(t *testing.T, s *apitest.Server) {
				scanner := newScanner(s)
				nothing := recorded(t, "results", lines(), with([]any{}, "ignores"))
				scanner.scan(t, nothing, commit("0"))
				scanner.scan(t, nothing, with(c.ref, "project_metadata", "branch"), commit("a"))
				scanner.scan(t, diffOf(t, "app/new.py"), compared(c.ref, "b", "a"))
				for _, next := range c.then {
					scanner.scan(t, silent, compared(c.ref, next.letter, next.base))
				}
				wantList(t, name, scanner.findingsOf(t, c.ref), c.want)
			})
		})
	}
}
