package scans_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/palisade/palisade/ent/findingevent"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// Closes are held if they concern all of ten or more open findings, or more than 60 % of fifty or more.
func TestHeldClosesAtTheLimits(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, c := range []struct{ open, stay, fixed, held int }{
			{9, 0, 9, 0}, {10, 0, 0, 10}, {10, 1, 9, 0}, {49, 1, 48, 0}, {50, 20, 30, 0}, {50, 19, 0, 31}, {51, 20, 0, 31}, {51, 21, 30, 0},
		} {
			what := fmt.Sprintf("%d of %d stay", c.stay, c.open)
			upload(t, s, "main", manyOf(t, c.open), "category", what)
			wantHeld(t, what, s, manyOf(t, c.stay), int32(c.fixed), int32(c.held), "category", what)
		}
		// New findings do not make up for old ones that are gone.
		upload(t, s, "main", manyOf(t, 12), "category", "new")
		moved := manyResults(24)[12:]
		wantHeld(t, "other findings", s, sarifOf(t, run{Tool: "gosec", Results: moved}), 0, 12, "category", "new")
		// Another ref, category or tool is another analysis.
		upload(t, s, "dev", manyOf(t, 3), "category", "new")
		if r := upload(t, s, "dev", manyOf(t, 0), "category", "new"); r.GetFixed() != 3 || r.GetHeldCloses() != 0 {
			t.Errorf("dev: %v", r)
		}
	})
}

// The same file without results would close 309 findings. It closes none; a person confirms.
func TestHeldClosesOfAnEmptyRun(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := testdata(t, "gosec.sarif")
		if r := upload(t, s, "main", report); r.GetCreated() != 309 {
			t.Fatalf("%v", r)
		}
		empty := emptied(t, report)
		r := wantHeld(t, "empty", s, empty, 0, 309)
		warnings := strings.Join(r.GetRuns()[0].GetWarnings(), "\n")
		for _, part := range []string{"all 309 open findings", "held closes 1", "palisade closes confirm 1", "palisade closes reject 1"} {
			if !strings.Contains(warnings, part) {
				t.Errorf("no %q in the warnings %q", part, warnings)
			}
		}
		if got := statesOf(t, s); got["fixed"]+got["removed"] > 0 {
			t.Errorf("states %v", got)
		}
		wantList(t, "holds", holds(t, s), "1 pending 309/309 309 ")
		if stats := s.Store.Reader.Scan.GetX(s.System(t), 2).Stats; fmt.Sprint(stats["held_closes"]) != "309" {
			t.Errorf("statistics of the scan: %v", stats)
		}
		wantPages(t, s)

		client, ctx := scansv1.NewHeldClosesServiceClient(s.Conn), s.Context(t, s.Token)
		confirmed, err := client.ConfirmHeldCloses(ctx, &scansv1.ConfirmHeldClosesRequest{DeploymentSlug: s.Slug, HeldClosesId: 1, Note: "rules are off"})
		if err != nil || confirmed.GetClosed() != 309 || confirmed.GetHeldCloses().GetState() != "confirmed" {
			t.Fatalf("%v %v", confirmed, err)
		}
		if got := statesOf(t, s); got["unresolved"]+got["muted"] > 0 {
			t.Errorf("states %v", got)
		}
		event := s.Store.Reader.FindingEvent.Query().Where(findingevent.ActorKind("token")).FirstX(s.System(t))
		if event.Note != "rules are off" || event.Kind != "fixed" || event.ToStatus != "fixed" || *event.ScanID != 2 || event.Reason != "gone from the report: rule ran" {
			t.Errorf("event %v", event)
		}
		answer := held(t, s, s.Token, http.StatusBadRequest, http.MethodPost, "held-closes/1/reject", "{}", nil)
		if !strings.Contains(answer.Body, "confirmed already") {
			t.Errorf("%s", answer.Body)
		}
		wantAudit(t, s, "held_closes", "HeldClosesService/ConfirmHeldCloses")
		if r := upload(t, s, "main", report); r.GetReopened() != 309 {
			t.Errorf("reported again: %v", r)
		}
	})
}

func emptied(t testing.TB, report []byte) []byte {
	t.Helper()
	parsed := parsed(t, string(report))
	for _, r := range parsed["runs"].([]any) {
		r.(object)["results"] = []any{}
	}
	return []byte(written(t, parsed))
}

func wantAudit(t testing.TB, s *apitest.Server, kind, method string) {
	t.Helper()
	trail := s.Get(t, fmt.Sprintf("/api/audit/v1/deployments/%d/entries?objectKind=%s", s.DeploymentID, kind))
	if !strings.Contains(trail, method) {
		t.Errorf("the audit trail has no %s: %s", method, trail)
	}
}

// wantPages reads the 309 findings of held closes 1 page by page.
func wantPages(t testing.TB, s *apitest.Server) {
	t.Helper()
	path, seen := "held-closes/1?limit=100", map[int64]bool{}
	for pages := 1; ; pages++ {
		out := &scansv1.GetHeldClosesResponse{}
		held(t, s, s.Token, http.StatusOK, http.MethodGet, path, "", out)
		for _, f := range out.GetFindings() {
			seen[f.GetId()] = true
			if !f.GetWaiting() || f.GetClosesAs() != "fixed" || f.GetStatus() == "fixed" || f.GetRuleName() == "" || f.GetPath() == "" || f.GetReason() == "" {
				t.Fatalf("finding %v", f)
			}
		}
		if out.GetCursor() == "" {
			if pages != 4 || len(seen) != 309 {
				t.Errorf("%d findings on %d pages", len(seen), pages)
			}
			return
		}
		path = "held-closes/1?limit=100&cursor=" + out.GetCursor()
	}
}

// Two reports in a row that miss the same findings are evidence. What the second one reports again stays.
func TestHeldClosesAreConfirmedByAScan(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", manyOf(t, 12))
		wantHeld(t, "first", s, manyOf(t, 0), 0, 12)
		wantHeld(t, "failed", s, sarifOf(t, run{Tool: "gosec", Failed: true}), 0, 0)
		wantList(t, "holds", holds(t, s), "1 pending 12/12 12 ")
		wantHeld(t, "second", s, manyOf(t, 5), 7, 0)
		wantList(t, "holds", holds(t, s), "1 confirmed 12/12 0 scan")
		closed := reasons(t, s)
		if want := slices.Repeat([]string{"fixed: gone from the report; two reports in a row miss it"}, 7); !slices.Equal(closed, want) {
			t.Errorf("events %q", closed)
		}
		if r := upload(t, s, "main", manyOf(t, 12)); r.GetReopened() != 7 {
			t.Errorf("%v", r)
		}
		wantHeld(t, "missed once again", s, manyOf(t, 0), 0, 12)
		wantHeld(t, "all are back", s, manyOf(t, 12), 0, 0)
		wantList(t, "holds", holds(t, s), "2 superseded 12/12 0 scan", "1 confirmed 12/12 0 scan")
	})
}

// Later closes that are held replace earlier ones.
func TestNewHeldClosesReplaceOlderOnes(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", manyOf(t, 100))
		wantHeld(t, "70 are gone", s, manyOf(t, 30), 0, 70)
		wantHeld(t, "all are gone", s, manyOf(t, 0), 70, 30) // 70 were missed before, the other 30 were not
		wantList(t, "holds", holds(t, s), "2 pending 30/30 30 ", "1 confirmed 70/100 0 scan")
		wantHeld(t, "once more", s, manyOf(t, 0), 30, 0)
	})
}

// Rejected closes are held again until a person confirms them, the tool changes, or the findings are reported.
func TestRejectedHeldCloses(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		of := func(n int, version string) []byte {
			return sarifOf(t, run{Tool: "gosec", Version: version, Results: manyResults(n)})
		}
		upload(t, s, "main", of(12, "1"))
		wantHeld(t, "gone", s, of(0, "1"), 0, 12)
		rejected := &scansv1.RejectHeldClosesResponse{}
		held(t, s, s.Token, http.StatusOK, http.MethodPost, "held-closes/1/reject", `{"note":"no licence"}`, rejected)
		if rejected.GetKept() != 12 || rejected.GetHeldCloses().GetState() != "rejected" || rejected.GetHeldCloses().GetNote() != "no licence" {
			t.Errorf("%v", rejected)
		}
		if got, want := reasons(t, s), slices.Repeat([]string{"close_rejected: stays open although scan 2 did not report it"}, 12); !slices.Equal(got, want) {
			t.Errorf("events %q", got)
		}
		wantAudit(t, s, "held_closes", "HeldClosesService/RejectHeldCloses")
		for range 3 {
			r := wantHeld(t, "gone again", s, of(0, "1"), 0, 12)
			if !strings.Contains(strings.Join(r.GetRuns()[0].GetWarnings(), ""), "only a person can close them, or a report of another version of the tool") {
				t.Errorf("warnings %q", r.GetRuns()[0].GetWarnings())
			}
		}
		wantList(t, "holds", holds(t, s), "2 pending 12/12 12 ", "1 rejected 12/12 12 token")
		// Ten of the findings are reported again, so their rejection is settled. Below the limit, the two still wait.
		wantHeld(t, "two are gone", s, of(10, "1"), 0, 2)
		wantHeld(t, "another version of the tool", s, of(10, "2"), 2, 0)
		wantList(t, "holds", holds(t, s), "2 confirmed 12/12 0 scan", "1 rejected 12/12 12 token")
	})
}

// Files that are gone are evidence enough, and do not count.
func TestHeldClosesAndFiles(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		var all []string
		for _, r := range manyResults(30) {
			all = append(all, r.File)
		}
		of := func(results []result, files []string) []byte {
			return sarifOf(t, run{Tool: "gosec", Files: targets(files...), Results: results})
		}
		upload(t, s, "main", of(manyResults(30), all), "commit", "c1")
		upload(t, s, "main", of(manyResults(12), all[:12]), "commit", "c2")
		if r := wantHeld(t, "18 files are missing twice", s, of(manyResults(12), all[:12]), 0, 0, "commit", "c3"); r.GetRemoved() != 18 {
			t.Errorf("%v", r)
		}
		wantHeld(t, "the other 12 were scanned", s, of(nil, all[:12]), 0, 12, "commit", "c4")
	})
}

// A new version of the tool that renamed the rule explains why its findings are gone.
func TestHeldClosesAndRenamedRules(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		renamed, all := []declared{{ID: "injection", Former: "sqli"}, {ID: "other"}}, append(manyResults(12), xss)
		of := func(version string, rules []declared, results ...result) []byte {
			return sarifOf(t, run{Tool: "gosec", Version: version, Rules: rules, Results: results})
		}
		for _, category := range []string{"same version", "no alias", "upgraded", "empty"} {
			upload(t, s, "main", of("1", nil, all...), "category", category)
		}
		// Before the alias is known.
		wantHeld(t, "no alias", s, of("2", nil), 0, 13, "category", "no alias")
		wantHeld(t, "same version", s, of("1", renamed), 0, 13, "category", "same version")
		wantHeld(t, "an empty run of another version", s, of("2", renamed), 0, 13, "category", "empty")
		wantHeld(t, "upgraded", s, of("2", renamed, xss), 12, 0, "category", "upgraded")
	})
}

// A report that is uploaded twice at the same time holds, and then confirms.
func TestHeldClosesAtOnce(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", manyOf(t, 12))
		empty, answers := manyOf(t, 0), make(chan *scansv1.UploadReportResponse, 2)
		for range cap(answers) {
			go func() {
				out := &scansv1.UploadReportResponse{}
				answer := s.Try(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/reports?project=acme/web&ref=main", string(empty))
				if err := protojson.Unmarshal([]byte(answer.Body), out); err != nil || answer.Status != http.StatusOK {
					t.Errorf("%v: %d %s", err, answer.Status, answer.Body)
				}
				answers <- out
			}()
		}
		a, b := <-answers, <-answers
		if a.GetHeldCloses()+b.GetHeldCloses() != 12 || a.GetFixed()+b.GetFixed() != 12 {
			t.Errorf("%v and %v", a, b)
		}
		wantList(t, "holds", holds(t, s), "1 confirmed 12/12 0 scan")
		upload(t, s, "main", manyOf(t, 12))
		wantHeld(t, "again", s, empty, 0, 12)
		codes := make(chan int, 6)
		for n := range cap(codes) {
			go func() {
				path := "/api/v1/deployments/acme/held-closes/2/" + []string{"confirm", "reject"}[n%2]
				codes <- s.Try(t, s.Token, http.MethodPost, path, "{}").Status
			}()
		}
		counts := map[int]int{}
		for range cap(codes) {
			counts[<-codes]++
		}
		if counts[200] != 1 || counts[400] != cap(codes)-1 {
			t.Errorf("answers of six decisions: %v", counts)
		}
	})
}
