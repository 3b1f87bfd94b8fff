package scans_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// times repeats a report.
func times(n int, report []byte) [][]byte { return slices.Repeat([][]byte{report}, n) }

// TestScanningStops: nothing is uploaded when scanning stops, so time has to tell, once for each change.
func TestScanningStops(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newWatched(t, s)
		changes := w.wantsFreshness(t)
		w.daily(t, times(7, sarifOf(t, run{Tool: "gosec", Version: "2.21", Results: []result{sqli}, Files: targets("db.go", "web.go")}))...)
		w.after(t, 47*time.Hour)
		wantList(t, "in time", w.states(t), "acme/web refs/heads/main gosec ok")
		apitest.Golden(t, "freshness", s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/freshness", s.DeploymentID)))
		w.after(t, 48*time.Hour)
		wantList(t, "two days", w.states(t), "acme/web refs/heads/main gosec late")
		var nodes sync.WaitGroup
		for range 4 {
			other := newWatched(t, s)
			nodes.Go(func() { other.after(t, 92*day) })
		}
		nodes.Wait()
		wantList(t, "three months", w.states(t), "acme/web refs/heads/main gosec silent")
		wantList(t, "messages", changes(), "ok > late", "late > silent")
		w.after(t, 93*day)
		w.moveBack(t, 92*day)
		one := w.list(t, "?state=silent&state=late&project=acme/web", &scansv1.ListFreshnessRequest{State: []string{"silent", "late"}, Project: "acme/web"})[0]
		for _, part := range []string{"No successful scan for 92 days; usually there is one every day.", "archive the project"} {
			if !strings.Contains(one.GetReason(), part) {
				t.Errorf("reason %q", one.GetReason())
			}
		}
		if since := one.GetSince().AsTime().Sub(one.GetLastSuccessAt().AsTime()); since != 14*day {
			t.Errorf("silent since %v after the last scan", since)
		}
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{sqli}}))
		wantList(t, "scanned again", w.states(t), "acme/web refs/heads/main gosec ok")
		wantList(t, "messages", changes(), "ok > late", "late > silent", "silent > ok")
		if n := len(w.list(t, "?state=late", &scansv1.ListFreshnessRequest{State: []string{"late"}})); n != 0 {
			t.Errorf("%d are late", n)
		}
	})
}

// TestScansShrink: a scan that finds or covers much less than before is told at once.
func TestScansShrink(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newWatched(t, s)
		changes := w.wantsFreshness(t)
		files := make([]string, 40)
		for i := range files {
			files[i] = fmt.Sprintf("src/%d.go", i)
		}
		covers := func(results, covered int) []byte {
			return sarifOf(t, run{Tool: "gosec", Results: manyResults(results), Files: targets(files[:covered]...)})
		}
		w.daily(t, times(4, covers(60, 40))...)
		w.moveBack(t, day)
		w.daily(t, covers(20, 10))
		one := w.list(t, "", &scansv1.ListFreshnessRequest{})[0]
		if one.GetState() != "shrunk" || !strings.HasPrefix(one.GetReason(), "Dropped: results from 60 to 20, files from ") {
			t.Errorf("%v", one)
		}
		w.daily(t, covers(60, 40))
		wantList(t, "again as before", w.states(t), "acme/web refs/heads/main gosec ok")
		wantList(t, "messages", changes(), "ok > shrunk", "shrunk > ok")
	})
}

// TestScansFail: scans that fail store nothing, so the job looks for them.
func TestScansFail(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w, c := newWatched(t, s), newScanner(s)
		changes := w.wantsFreshness(t)
		c.scan(t, recorded(t, "results"))
		w.after(t, 0)
		want := w.states(t)
		if len(want) != 1 || !strings.HasSuffix(want[0], " semgrep ok") {
			t.Fatalf("%v", want)
		}
		c.dies(t, "")
		w.after(t, 0)
		wantList(t, "one failed scan", w.states(t), want...)
		c.dies(t, "")
		c.dies(t, "", with("feature", "project_metadata", "branch"))
		w.after(t, 0)
		w.after(t, 0)
		one := w.list(t, "", &scansv1.ListFreshnessRequest{})
		if len(one) != 1 || one[0].GetState() != "failing" || one[0].GetLastScan().GetStatus() != failed ||
			!strings.Contains(one[0].GetReason(), "The last 2 scans failed since ") || !strings.Contains(one[0].GetReason(), "exit code 4") {
			t.Errorf("%v", one)
		}
		c.scan(t, recorded(t, "results"))
		wantList(t, "a successful scan", w.states(t), want...)
		wantList(t, "messages", changes(), "ok > failing", "failing > ok")
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Version: "2.21", Failed: true}))
		w.moveBack(t, time.Hour)
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Version: "2.21", Failed: true}))
		w.after(t, 0)
		if got := w.list(t, "?state=failing", &scansv1.ListFreshnessRequest{State: []string{"failing"}}); len(got) != 1 || got[0].GetTool() != "gosec" || got[0].LastSuccessAt != nil ||
			got[0].GetLastScan().GetStatus() != failed || got[0].GetScannerVersion() != "2.21" {
			t.Errorf("reports of failed runs: %v", got)
		}
	})
}

// TestStatusOfFailedReports: an upload whose tool failed is an error wherever scans are listed, and only its own tool
// fails.
func TestStatusOfFailedReports(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newWatched(t, s)
		good := run{Tool: "eslint", Results: []result{xss}, Files: targets("web.go")}
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Failed: true}, good))
		upload(t, s, "main", sarifOf(t, good))
		w.moveBack(t, time.Hour)
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Failed: true}))
		w.after(t, 0)
		for _, row := range s.Store.Reader.Scan.Query().AllX(s.System(t)) {
			want := map[int64]scansv1.ScanStatus{1: failed, 2: completed, 3: failed}[row.ID].String()
			if row.Status != want {
				t.Errorf("scan %d is stored as %s, want %s", row.ID, row.Status, want)
			}
		}
		v1 := s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/scans/search", s.DeploymentID), `{"statuses":["SCAN_STATUS_ERROR"]}`, 200)
		if strings.Count(v1, `"status":"SCAN_STATUS_ERROR"`) != 2 {
			t.Errorf("failed scans: %s", v1)
		}
		shown := func(what string) {
			t.Helper()
			var list []string
			for _, one := range w.list(t, "", &scansv1.ListFreshnessRequest{}) {
				list = append(list, fmt.Sprintf("%s %s %d %s", one.GetTool(), one.GetState(), one.GetLastScan().GetId(), one.GetLastScan().GetStatus()))
			}
			wantList(t, what, list, "gosec failing 3 SCAN_STATUS_ERROR", "eslint ok 2 SCAN_STATUS_COMPLETED")
		}
		shown("at once")
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.Freshness.Delete().Exec(ctx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		w.catchUp(t)
		w.after(t, 0)
		shown("from the stored scans")
	})
}

// TestWhichRefsCount: pull requests, short-lived branches and archived projects are not late.
func TestWhichRefsCount(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w, report := newWatched(t, s), sarifOf(t, run{Tool: "gosec"})
		for _, ref := range []string{"main", "feature", "release", "refs/pull/7/merge", "refs/tags/v1"} {
			upload(t, s, ref, report)
		}
		w.moveBack(t, 31*day)
		upload(t, s, "release", report)
		main, release := "acme/web refs/heads/main gosec ", "acme/web refs/heads/release gosec "
		w.after(t, 0)
		wantList(t, "primary and long-lived", w.states(t), main+"late", release+"ok")
		w.after(t, 60*day)
		wantList(t, "two months", w.states(t), release+"silent", main+"silent")
		if feature := w.row(t, "refs/heads/feature"); feature.State != 0 || feature.DueAt != nil {
			t.Errorf("the feature branch: %v", feature)
		}
		w.after(t, 91*day)
		wantList(t, "the release branch is forgotten", w.states(t), main+"silent")

		upload(t, s, "next", report)
		s.Body(t, s.Token, http.MethodPatch, "/api/v1/deployments/acme/projects/acme/web", `{"primary_branch":"next"}`, http.StatusOK)
		w.catchUp(t)
		w.after(t, time.Minute)
		wantList(t, "another primary branch", w.states(t), main+"silent", "acme/web refs/heads/next gosec ok")

		archive := func(at string) {
			err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				_, err := tx.ExecContext(ctx, "UPDATE projects SET archived_at = "+at)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		archive(fmt.Sprint(store.Now()))
		wantList(t, "archived", w.states(t))
		w.after(t, 60*day)
		archive("NULL")
		wantList(t, "while it was archived, nobody looked", w.states(t), main+"silent", "acme/web refs/heads/next gosec ok")
		w.after(t, 62*day)
		wantList(t, "in use again", w.states(t), "acme/web refs/heads/next gosec silent", main+"silent")
		s.Body(t, s.Token, http.MethodDelete, "/api/v1/deployments/acme/projects/acme/web", "", http.StatusOK)
		if n := s.Store.Reader.Freshness.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d rows of a deleted project", n)
		}
	})
}

// TestFreshnessOfEarlierScans: scans that nodes of an earlier version stored count, too.
func TestFreshnessOfEarlierScans(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ranAtStart(t, s, "catch_up_freshness")
		w := newWatched(t, s)
		w.daily(t, times(5, sarifOf(t, run{Tool: "gosec", Version: "2.21", Results: []result{sqli, xss}, Files: targets("db.go", "web.go")}))...)
		upload(t, s, "refs/pull/7/merge", sarifOf(t, run{Tool: "gosec"}))
		if n := w.catchUp(t); n != 0 {
			t.Errorf("%d projects of this version", n)
		}
		want := w.row(t, mainRef)
		forget := func() {
			err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				return tx.Freshness.DeleteOneID(w.row(t, mainRef).ID).Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		forget()
		if n := w.catchUp(t); n != 1 {
			t.Errorf("%d projects", n)
		}
		got := w.row(t, mainRef)
		if history(t, got) != history(t, want) || got.State != want.State || got.LastScanID != want.LastScanID || *got.DueAt != *want.DueAt {
			t.Errorf("got %v %s\nwant %v %s", got, history(t, got), want, history(t, want))
		}
		forget()
		w.moveBack(t, 92*day)
		w.catchUp(t)
		wantList(t, "scanning had stopped before", w.states(t), "acme/web refs/heads/main gosec silent")
		if n := w.catchUp(t); n != 0 {
			t.Errorf("%d projects again", n)
		}
	})
}

// TestFreshnessOfTeams: members of a team see the freshness of its projects only, page by page.
func TestFreshnessOfTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, name := range []string{"acme/web", "acme/api"} {
			s.Upload(t, name, "main", sarifOf(t, run{Tool: "gosec"}, run{Tool: "eslint"}, run{Tool: "bandit"}))
		}
		mia := s.AddToken(t, s.Tenant, access.TokenSpec{UserID: memberOf(t, s, "acme/web"), Role: access.RoleMember, Scopes: []access.Scope{access.ScopeWebAPI}})
		client := scansv1.NewFreshnessServiceClient(s.Conn)
		walk := func(token string, limit int32) (list []string) {
			for cursor := ""; ; {
				page, err := client.ListFreshness(s.Context(t, token), &scansv1.ListFreshnessRequest{DeploymentId: s.DeploymentID, Limit: &limit, Cursor: cursor})
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range page.GetFreshness() {
					list = append(list, f.GetProject()+" "+f.GetTool())
				}
				if cursor = page.GetCursor(); cursor == "" {
					return list
				}
			}
		}
		wantList(t, "all pages", walk(s.Token, 2), walk(s.Token, 1000)...)
		if n := len(walk(s.Token, 4)); n != 6 {
			t.Errorf("%d analyses", n)
		}
		mine := walk(mia, 1)
		if len(mine) != 3 || slices.ContainsFunc(mine, func(one string) bool { return !strings.HasPrefix(one, "acme/web ") }) {
			t.Errorf("mia sees %v", mine)
		}
		if _, err := client.ListFreshness(s.Context(t, mia), &scansv1.ListFreshnessRequest{DeploymentId: s.DeploymentID, Project: "acme/api"}); status.Code(err) != codes.NotFound {
			t.Errorf("a project of another team: %v", err)
		}
		other := s.AddTenant(t, "globex")
		if all, err := client.ListFreshness(s.Context(t, other.Token), &scansv1.ListFreshnessRequest{DeploymentId: other.DeploymentID}); err != nil || len(all.GetFreshness()) > 0 {
			t.Errorf("another deployment lists: %v %v", all, err)
		}
	})
}

// TestFreshnessSummary counts analyses by state and by version, and lists can be limited to a version.
func TestFreshnessSummary(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newWatched(t, s)
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Version: "2.20", Results: []result{sqli}}))
		w.moveBack(t, 20*day)
		w.after(t, 0)
		for _, name := range []string{"acme/api", "acme/cli"} {
			s.Upload(t, name, "main", sarifOf(t, run{Tool: "gosec", Version: "2.21"}, run{Tool: "lint"}))
		}
		summary := func(project string) []string {
			out, err := scansv1.NewFreshnessServiceClient(s.Conn).GetFreshnessSummary(s.Context(t, s.Token),
				&scansv1.GetFreshnessSummaryRequest{DeploymentId: s.DeploymentID, Project: project})
			if err != nil {
				t.Fatal(err)
			}
			apitest.Same(t, out, s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/freshness/summary?project=%s", s.DeploymentID, project)))
			var list []string
			for _, one := range out.GetStates() {
				list = append(list, fmt.Sprint(one.GetState(), " ", one.GetAnalyses()))
			}
			for _, one := range out.GetVersions() {
				list = append(list, fmt.Sprint(one.GetTool(), " ", one.GetVersion(), " ", one.GetAnalyses()))
			}
			return list
		}
		wantList(t, "all", summary(""), "late 1", "ok 4", "gosec 2.21 2", "gosec 2.20 1", "lint  2")
		wantList(t, "a project", summary("acme/api"), "ok 2", "gosec 2.21 1", "lint  1")
		if n := len(w.list(t, "?tool=gosec&scanner_version=2.21", &scansv1.ListFreshnessRequest{Tool: "gosec", ScannerVersion: "2.21"})); n != 2 {
			t.Errorf("%d analyses by gosec 2.21", n)
		}
		s.Body(t, s.Token, http.MethodGet, fmt.Sprintf("/api/v1/deployments/%d/freshness/summary?project=acme/none", s.DeploymentID), "", http.StatusNotFound)
		other := s.AddTenant(t, "globex")
		if body := s.Body(t, other.Token, http.MethodGet, fmt.Sprintf("/api/v1/deployments/%d/freshness/summary", other.DeploymentID), "", http.StatusOK); strings.Contains(body, "gosec") {
			t.Errorf("another deployment sees %s", body)
		}
	})
}
