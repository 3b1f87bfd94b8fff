package scans_test

import (
	"context"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apitest"
)

// The default branch of a fork is not the one of the project.
func TestScannerPullRequestFromTheBranchNamedLikeTheDefault(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.scan(t, recorded(t, "results"))
		for name, one := range map[string]struct {
			branch, pull string
			full         bool
			want         string
		}{
			"from a fork":   {mainRef, "5", false, "refs/pull/5/merge"},
			"short name":    {"main", "5", false, "refs/pull/5/merge"},
			"full scan":     {mainRef, "5", true, mainRef},
			"not a number":  {mainRef, "5/x", false, mainRef},
			"no pull":       {mainRef, "", false, mainRef},
			"other branch":  {"feature", "5", false, "refs/heads/feature"},
			"without a ref": {"", "5", false, "refs/pull/5/merge"},
		} {
			id := c.create(t, with(one.branch, "project_metadata", "branch"), with(one.pull, "project_metadata", "pull_request_id"),
				with(one.full, "project_metadata", "is_full_scan"))
			if got := s.Store.Reader.Scan.GetX(s.System(t), id).Ref; got != one.want {
				t.Errorf("%s: %s, want %s", name, got, one.want)
			}
		}
	})
}

// A scan of master replaces a guessed default branch, but not one that a source-code host said.
func TestScannerKeepsTheDefaultBranchOfTheHost(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		branch := func(name string) string {
			t.Helper()
			c.scan(t, recorded(t, "results"), with(name, "project_metadata", "branch"))
			return s.Store.Reader.Project.Query().OnlyX(s.System(t)).DefaultBranch
		}
		host := func(change func(*ent.ProjectUpdate) *ent.ProjectUpdate) {
			t.Helper()
			err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				return change(tx.Project.Update().SetDefaultBranch("refs/heads/develop")).Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := branch("develop"); got != "refs/heads/develop" {
			t.Errorf("the first branch: %s", got)
		}
		if got := branch("master"); got != "refs/heads/master" {
			t.Errorf("a guess: %s", got)
		}
		host(func(u *ent.ProjectUpdate) *ent.ProjectUpdate { return u.SetScmType("SCM_TYPE_GITLAB") })
		if got := branch("master"); got != "refs/heads/develop" {
			t.Errorf("a host said it: %s", got)
		}
		host(func(u *ent.ProjectUpdate) *ent.ProjectUpdate {
			return u.SetScmType("SCM_TYPE_UNKNOWN").SetRepositoryURL("https://git.acme.test/acme/web")
		})
		if got := branch("master"); got != "refs/heads/develop" {
			t.Errorf("bound: %s", got)
		}
	})
}
