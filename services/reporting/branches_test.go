package reporting_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/branchchange"
	"github.com/palisade/palisade/services/internal/apitest"
)

// branchWorld is a project whose primary branch changes.
type branchWorld struct {
	t testing.TB
	*apitest.Server
	period string
}

func newBranchWorld(t testing.TB, s *apitest.Server) *branchWorld {
	t.Helper()
	today := time.Now().UTC().Truncate(day)
	period := fmt.Sprintf(`"timePeriod":{"since":%q,"until":%q},"timeBucketSize":"TIME_BUCKET_SIZE_DAY"`,
		today.Add(-12*day).Format(time.RFC3339), today.Add(2*day).Format(time.RFC3339))
	return &branchWorld{t, s, period}
}

// upload uploads a report with findings in these lines.
func (w *branchWorld) upload(branch string, lines ...int) {
	w.t.Helper()
	results := make([]string, len(lines))
	for n, line := range lines {
		results[n] = result(line, "error")
	}
	w.Upload(w.t, "acme/web", branch, fmt.Appendf(nil, goReport, strings.Join(results, ",")))
}

// pass lets days pass: everything that happened is older.
func (w *branchWorld) pass(days int) {
	w.t.Helper()
	err := w.Store.Write(w.System(w.t), func(ctx context.Context, tx *ent.Tx) error {
		for table, columns := range map[string][]string{
			"finding_events": {"at"}, "findings": {"created_at", "relevant_since"}, "scans": {"started_at", "completed_at"}, "branch_changes": {"at"},
		} {
			for _, column := range columns {
				err := w.Store.Exec(ctx, tx, "UPDATE "+table+" SET "+column+" = "+column+" - ?", int64(days)*day.Microseconds())
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// setPrimary sets the primary branch by the API.
func (w *branchWorld) setPrimary(branch string) {
	w.t.Helper()
	answer := w.Do(w.t, w.Token, http.MethodPatch, "/api/v1/deployments/"+w.Slug+"/projects/acme/web", `{"primary_branch":"`+branch+`"}`)
	if answer.Status != http.StatusOK {
		w.t.Fatalf("primary branch: %d %s", answer.Status, answer.Body)
	}
}

// all returns the answers of all reports.
func (w *branchWorld) all() map[string]string {
	w.t.Helper()
	answers := map[string]string{}
	for name, report := range reports {
		answer := w.Do(w.t, w.Token, http.MethodPost, path(w.Tenant, report), `{"filters":{`+w.period+`}}`)
		if answer.Status != http.StatusOK {
			w.t.Fatalf("%s: %d %s", name, answer.Status, answer.Body)
		}
		answers[name] = answer.Body
	}
	return answers
}

// days returns the buckets of a report.
func days(t testing.TB, answer string) (buckets []string) {
	t.Helper()
	var got struct{ Buckets []json.RawMessage }
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatal(err)
	}
	for _, bucket := range got.Buckets {
		buckets = append(buckets, string(bucket))
	}
	return buckets
}

func (w *branchWorld) wantSame(what string, before map[string]string) {
	w.t.Helper()
	for name, now := range w.all() {
		if now != before[name] {
			w.t.Errorf("%s: %s was\n%s\nand is\n%s", what, name, before[name], now)
		}
	}
}

// seed uploads reports of several days: one finding is fixed, and one appears later.
func (w *branchWorld) seed(branch string) {
	w.upload(branch, 1, 2, 3)
	w.pass(6)
	w.upload(branch, 1, 2, 4)
	w.pass(4)
}

// TestReportsAfterTheBranchWasRenamed: the same findings on a new primary branch change no report, whoever changes the
// branch.
func TestReportsAfterTheBranchWasRenamed(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newBranchWorld(t, s)
		w.seed("develop")
		before := w.all()
		if got := days(t, before["backlog_by_severity"]); !strings.Contains(got[12], `"high":3`) || !strings.Contains(days(t, before["median_age_by_severity"])[12], `"high":10`) {
			t.Fatalf("the test has lost its way: %v", got)
		}
		w.upload("main", 1, 2, 4) // a better guess of the default branch
		w.wantSame("an upload", before)
		w.setPrimary("trunk")
		w.wantSame("a primary branch that was never scanned", before)
		w.upload("trunk", 1, 2, 4)
		w.wantSame("its first scan", before)
		w.setPrimary("develop")
		w.wantSame("the first branch again", before)
		if n := s.Store.Reader.BranchChange.Query().CountX(s.System(t)); n != 3 {
			t.Errorf("%d changes of the branch, want 3", n)
		}
		w.setPrimary("develop")
		if n := s.Store.Reader.BranchChange.Query().Where(branchchange.FromRef("refs/heads/develop")).CountX(s.System(t)); n != 1 {
			t.Errorf("the same branch again: %d changes from it, want 1", n)
		}
	})
}

// TestReportsAfterAnotherBranchIsPrimary: only what differs between the branches moves on the day of the change, and
// earlier days keep the former branch.
func TestReportsAfterAnotherBranchIsPrimary(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newBranchWorld(t, s)
		w.seed("master")
		w.upload("dev", 1, 2, 5)
		w.pass(1)
		before := w.all()
		w.setPrimary("dev")
		after := w.all()
		for name := range before {
			was, is := days(t, before[name]), days(t, after[name])
			for n := range was[:min(12, len(was))] {
				if is[n] != was[n] {
					t.Errorf("%s, %d days ago: was %s, is %s", name, 12-n, was[n], is[n])
				}
			}
		}
		for name, want := range map[string]string{
			"activity": `"opened":1,"ignored":0,"fixed":0,"removed":1,`, "backlog_by_severity": `"high":3`, "median_age_by_severity": `"high":11`,
		} {
			if got := days(t, after[name])[12]; !strings.Contains(got, want) {
				t.Errorf("%s today is %s, want %s", name, got, want)
			}
		}
		for _, name := range []string{"guardrails_activity", "guardrails_adoption"} {
			if after[name] != before[name] {
				t.Errorf("%s was\n%s\nand is\n%s", name, before[name], after[name])
			}
		}
		var listed struct{ Total int }
		read(t, s, s.Token, path(s.Tenant, "findings"), fmt.Sprintf(`{"reportType":"REPORT_TYPE_OPEN_BACKLOG","bucketStart":%q,"filters":{%s}}`,
			time.Now().UTC().Truncate(day).Add(-8*day).Format(time.RFC3339), w.period), &listed)
		if listed.Total != 3 {
			t.Errorf("%d findings behind the backlog of a past day, want 3", listed.Total)
		}
		w.upload("dev", 1, 5)
		if got := days(t, w.all()["activity"])[12]; !strings.Contains(got, `"opened":1,"ignored":0,"fixed":1,"removed":1,`) {
			t.Errorf("a fix on the new branch: %s", got)
		}
		w.upload("master", 9)
		if got := days(t, w.all()["backlog_by_severity"])[12]; !strings.Contains(got, `"high":2`) {
			t.Errorf("a scan of the former branch: %s", got)
		}
	})
}
