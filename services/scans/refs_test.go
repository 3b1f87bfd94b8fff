package scans_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/heldclose"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/refs"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

const day = 24 * time.Hour

// change runs statements in the database of the server.
func (c scannerClient) change(t testing.TB, statements ...string) {
	t.Helper()
	err := c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error {
		for _, statement := range statements {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// tidy does the work of the job that tidies refs.
func (c scannerClient) tidy(t testing.TB, ages refs.Ages) {
	t.Helper()
	keyring, err := secret.Open(c.Config.KeyPath(), false)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := egress.New(egress.Config{Allow: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	tidier := refs.NewTidier(c.Store, connect.New(c.Store, keyring, guard, c.Config.EntraURL), ages, slog.New(slog.DiscardHandler))
	if err := tidier.Tidy(tenant.NewContext(t.Context(), c.DeploymentID)); err != nil {
		t.Fatal(err)
	}
}

// reasons are the reasons of all removals, in the order in which they were written: actor reason.
func (c scannerClient) reasons(t testing.TB) (list []string) {
	t.Helper()
	for _, e := range c.Store.Reader.FindingEvent.Query().Where(findingevent.Kind("removed")).Order(ent.Asc(findingevent.FieldID)).AllX(c.System(t)) {
		if e.FromStatus == "removed" || e.ToStatus != "removed" {
			t.Errorf("%v", e)
		}
		list = append(list, e.ActorKind+" "+e.Reason)
	}
	return list
}

// TestStaleRefs: findings of refs that nothing scans leave the lists with an event, and come back with their triage.
func TestStaleRefs(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ranAtStart(t, s, "tidy_refs")
		c := newScanner(s)
		on := func(branch any) func(object) { return with(branch, "project_metadata", "branch") }
		for _, branch := range []string{"main", "old", "new", "HEAD"} {
			c.scan(t, recorded(t, "results"), on(branch))
		}
		lib := "lib/hash.py:4"
		hash := s.Store.Reader.Finding.Query().Where(finding.Ref("refs/heads/old"), finding.FilePath("lib/hash.py")).OnlyX(s.System(t))
		s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%s/triage", s.Slug),
			fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":"ignored","new_triage_reason":"acceptable_risk"}`, hash.ID), http.StatusOK)
		aged := func(ref string, days int) string {
			return fmt.Sprintf("UPDATE scans SET started_at = %d WHERE ref = '%s'", store.Micros(time.Now().Add(-time.Duration(days)*day)), ref)
		}
		c.change(t, aged(mainRef, 400), aged("refs/heads/old", 100), aged("refs/heads/new", 80), aged(detached, 40))

		c.tidy(t, refs.Ages{})
		wantList(t, "0 means never", c.reasons(t))
		c.tidy(t, refs.Ages{Detached: 50 * day, Stale: 120 * day})
		wantList(t, "nothing is old enough", c.reasons(t))
		c.tidy(t, refs.Ages{Detached: 30 * day, Stale: 90 * day})
		removed := strings.Split(strings.ReplaceAll(strings.Join(allFound, ","), "unresolved open", "removed removed"), ",")
		removed[3] = "lib/old.py:7 removed removed"
		wantList(t, "old", c.findingsOf(t, "refs/heads/old"), removed...)
		wantList(t, "detached", c.findingsOf(t, detached), removed...)
		open := slices.Clone(allFound)
		open[2] = lib + " unresolved ignored" // the decision spread
		wantList(t, "main is never stale", c.findingsOf(t, mainRef), open...)
		wantList(t, "new", c.findingsOf(t, "refs/heads/new"), open...)
		since := func(days int) string { return time.Now().Add(-time.Duration(days) * day).UTC().Format(time.DateOnly) }
		list := c.reasons(t)
		wantList(t, "reasons", slices.Compact(slices.Sorted(slices.Values(list))),
			"job nothing scanned its commit without a branch since "+since(40), "job nothing scanned its ref since "+since(100))
		if len(list) != 8 {
			t.Errorf("%d events, want 8", len(list))
		}
		c.tidy(t, refs.Ages{Detached: 30 * day, Stale: 90 * day})
		if again := c.reasons(t); len(again) != 8 {
			t.Errorf("a second run removed %d", len(again)-8)
		}

		c.scan(t, recorded(t, "results"), on("old"))
		wantList(t, "scanned again", c.findingsOf(t, "refs/heads/old"), open...)
	})
}

// TestTidyKeepsRefWithRunningScan: a scan that began since the ref was read wins.
func TestTidyKeepsRefWithRunningScan(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ranAtStart(t, s, "tidy_refs")
		c := newScanner(s)
		branch := with("old", "project_metadata", "branch")
		c.scan(t, recorded(t, "results"))
		c.scan(t, recorded(t, "results"), branch)
		c.change(t, fmt.Sprintf("UPDATE scans SET started_at = %d", store.Micros(time.Now().Add(-100*day))))
		c.create(t, branch)
		c.tidy(t, refs.Ages{Stale: 90 * day})
		wantList(t, "reasons", c.reasons(t))
	})
}

// TestPullRequestsOfHost: what a host says about pull requests removes findings, and nothing else does.
func TestPullRequestsOfHost(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow = "127.0.0.1" })
		ranAtStart(t, s, "tidy_refs")
		c := newScanner(s)
		hub, lab, azure := hosttest.NewGitHub(t), hosttest.NewGitLab(t), hosttest.NewAzure(t)
		for _, one := range []struct{ kind, url, namespace, token string }{
			{"SCM_TYPE_GITHUB_ENTERPRISE", hub.URL, "acme", hub.Token}, {"SCM_TYPE_GITLAB_SELFMANAGED", lab.URL, "acme/platform", lab.Token},
			{"SCM_TYPE_AZURE_DEVOPS", azure.URL, "acme/tools", azure.Token},
		} {
			s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/scm/deployments/%d/configs", s.DeploymentID),
				fmt.Sprintf(`{"type":%q,"namespace":%q,"baseUrl":%q,"accessToken":%q}`, one.kind, one.namespace, one.url, one.token), http.StatusCreated)
		}
		for project, at := range map[string]string{"acme/web": hub.URL + "/acme/web", "acme/platform/api": lab.URL + "/acme/platform/api", "acme/tools/web": azure.URL + "/acme/tools/_git/web", "acme/unbound": ""} {
			of := func(b object) {
				with(project, "project_metadata", "repository")(b)
				with(project, "project_metadata", "repo_display_name")(b)
			}
			c.scan(t, recorded(t, "results"), of)
			c.scan(t, recorded(t, "results"), of, with("refs/pull/12/merge", "project_metadata", "branch")) // a full scan
			for _, number := range []string{"7", "8", "9", "10", "11"} {
				c.scan(t, diffOf(t, "app/new.py"), of, pull, with("refs/pull/"+number+"/merge", "project_metadata", "branch"), with(number, "project_metadata", "pull_request_id"))
			}
			c.change(t, fmt.Sprintf("UPDATE projects SET repository_url = '%s' WHERE name = '%s'", at, project))
		}
		requests := func(seven hosttest.Request) map[int64]hosttest.Request {
			return map[int64]hosttest.Request{
				7: seven, 8: {State: "open", Files: []string{"app/new.py"}}, 9: {State: "open", Files: []string{"src/app/new.py => src/app/newer.py"}},
				10: {State: "open", Files: []string{"x.py"}, Uncounted: true}, 11: {State: "open", Files: []string{"x.py"}}, 12: {State: "open", Files: []string{"x.py"}},
			}
		}
		stands := func(project string) (list []string) {
			for _, row := range c.findingsIn(t, project) {
				if strings.HasPrefix(row, "app/new.py") {
					list = append(list, strings.Fields(row)[2])
				}
			}
			return list
		}
		hub.PullRequests = requests(hosttest.Request{State: "open", Files: []string{"app/new.py"}})
		lab.MergeRequests, azure.PullRequests = hub.PullRequests, hub.PullRequests
		hub.Answer(hosttest.Status(http.StatusInternalServerError, "{}"))
		c.tidy(t, refs.Ages{})
		wantList(t, "a host that fails", stands("acme/web"), "open", "open", "open", "open", "open")
		for _, project := range []string{"acme/platform/api", "acme/tools/web"} {
			wantList(t, "the other host answers", stands(project), "open", "open", "open", "open", "removed")
		}
		hub.Answer(nil)
		c.tidy(t, refs.Ages{})
		wantList(t, "a file is reverted", stands("acme/web"), "open", "open", "open", "open", "removed")
		hub.PullRequests, lab.MergeRequests = requests(hosttest.Request{State: "closed"}), requests(hosttest.Request{State: "merged"})
		azure.PullRequests = lab.MergeRequests
		c.tidy(t, refs.Ages{})
		for _, project := range []string{"acme/web", "acme/platform/api", "acme/tools/web"} {
			wantList(t, project, stands(project), "removed", "open", "open", "open", "removed")
		}
		wantList(t, "no host", stands("acme/unbound"), "open", "open", "open", "open", "open")
		wantList(t, "a full scan of the pull request", slices.Compact(slices.Sorted(slices.Values(c.findingsOf(t, "refs/pull/12/merge")))), allFound...)
		wantList(t, "reasons", slices.Sorted(slices.Values(c.reasons(t))), "host its file is no longer in the pull request: app/new.py",
			"host its file is no longer in the pull request: app/new.py", "host its file is no longer in the pull request: app/new.py",
			"host pull request closed", "host pull request merged", "host pull request merged")
	})
}

// TestMisnamedRefs: what earlier versions stored as a branch named HEAD gets the refs of its commits, as often as an
// earlier version stores more.
func TestMisnamedRefs(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ranAtStart(t, s, "rename_refs")
		c := newScanner(s)
		old := with("legacy", "project_metadata", "branch")
		misname := func() {
			for _, table := range []string{"scans", "findings", "scan_coverages", "held_closes"} {
				c.change(t, fmt.Sprintf("UPDATE %s SET ref = 'refs/heads/HEAD' WHERE ref = 'refs/heads/legacy'", table))
			}
			c.change(t, "UPDATE projects SET default_branch = 'refs/heads/HEAD', primary_branch = 'refs/heads/HEAD'")
		}
		first, second := "refs/detached/"+strings.Repeat("a", 40), "refs/detached/"+strings.Repeat("b", 40)
		c.scan(t, recorded(t, "results"), old, commit("A"))
		c.scan(t, recorded(t, "results"), old, commit("b"))
		c.scan(t, recorded(t, "results"), with("feature", "project_metadata", "branch"))
		misname()
		rename := func() {
			if err := refs.NewRenamer(s.Store, slog.New(slog.DiscardHandler)).Rename(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		rename()
		wantList(t, "findings are those of the newest scan", c.findingsOf(t, second), allFound...)
		wantList(t, "scans", c.scansOf(t), first, second, "refs/heads/feature")
		wantList(t, "coverages", s.Store.Reader.ScanCoverage.Query().Order(ent.Asc("id")).Select("ref").StringsX(s.System(t)), first, second, "refs/heads/feature")
		if of := s.Store.Reader.Project.Query().OnlyX(s.System(t)); of.DefaultBranch != "refs/heads/feature" || of.PrimaryBranch != "" {
			t.Errorf("branches %q, %q", of.DefaultBranch, of.PrimaryBranch)
		}

		// During the upgrade, an earlier version stores the same commit once more, and one finding fewer.
		c.scan(t, recorded(t, "results", without(func(f object) bool { return f["path"] != "lib/hash.py" })), old, commit("b"))
		misname()
		rename()
		wantList(t, "nothing is listed twice", c.findingsOf(t, second), allFound...)
		twins := s.Store.Reader.Finding.Query().Where(finding.RefHasPrefix(second + "/")).AllX(s.System(t))
		for _, f := range twins {
			if f.State != "removed" || f.MergedInto == nil {
				t.Errorf("%v", f)
			}
		}
		if n := s.Store.Reader.Finding.Query().Where(finding.Ref("refs/heads/HEAD")).CountX(s.System(t)); n != 0 || len(twins) == 0 {
			t.Errorf("%d findings keep the name, %d twins", n, len(twins))
		}
		wantList(t, "reasons", slices.Compact(c.reasons(t)), "job it was found again on "+second)
		wantList(t, "scans", c.scansOf(t), first, second, "refs/heads/feature", second)

		// A scan of no commit.
		c.scan(t, recorded(t, "results"), old, with(nil, "project_metadata", "commit"))
		misname()
		rename()
		rename()
		wantList(t, "without a commit", c.findingsOf(t, "refs/detached/HEAD"), allFound...)
		if n := s.Store.Reader.HeldClose.Query().Where(heldclose.RefHasPrefix("refs/heads/")).CountX(s.System(t)); n != 0 {
			t.Errorf("%d held closes", n)
		}
	})
}

// scansOf are the refs of all scans.
func (c scannerClient) scansOf(t testing.TB) []string {
	t.Helper()
	return c.Store.Reader.Scan.Query().Order(ent.Asc(scan.FieldID)).Select(scan.FieldRef).StringsX(c.System(t))
}

// What CI systems send for a checkout without a branch is no branch, in reports, too.
func TestRefsOfCISystems(t *testing.T) {
	t.Parallel()
	const report = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":[]}]}`
	sha := strings.Repeat("3f", 20)
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, c := range []struct{ ref, commit, want string }{
			{"detached", sha, "refs/detached/" + sha}, {"ORIG_HEAD", sha, "refs/detached/" + sha}, {"heads/HEAD", sha, "refs/detached/" + sha},
			{sha, "", "refs/detached/" + sha}, {"pull/5/merge", sha, "refs/pull/5/merge"}, {"refs/remotes/origin/main", sha, "refs/heads/main"},
			{"origin/main", sha, "refs/heads/origin/main"},
		} {
			query := []string{}
			if c.commit != "" {
				query = []string{"commit", c.commit}
			}
			answer := s.Upload(t, "acme/web", c.ref, []byte(report), query...)
			if stored := s.Store.Reader.Scan.Query().Order(ent.Desc(scan.FieldID)).FirstX(s.System(t)); stored.Ref != c.want {
				t.Errorf("%s is %s, want %s", c.ref, stored.Ref, c.want)
			}
			if warned := strings.Contains(answer, "if origin is your remote, pass main as ref"); warned != (c.ref == "origin/main") {
				t.Errorf("%s: %s", c.ref, answer)
			}
		}
		for _, ref := range []string{"detached", "ORIG_HEAD"} {
			path := "/api/v1/deployments/acme/reports?project=acme/web&ref=" + ref
			if answer := s.Do(t, s.Token, http.MethodPost, path, report); answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, "checkout without a branch") {
				t.Errorf("%s without a commit: %d %s", ref, answer.Status, answer.Body)
			}
		}
	})
}
