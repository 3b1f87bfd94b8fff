package issues_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/agenticissue"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/workflows/issues"
	"github.com/palisade/palisade/services/workflows/step"
)

func TestUpsertAcrossRuns(t *testing.T) {
	each(t, func(t *testing.T, l fixture) {
		if c := l.run(t, "code-audit", nil, sqli(), xss(), sqli()); c != (issues.Counts{Created: 2, Total: 2}) {
			t.Errorf("first run: %+v", c)
		}
		first := l.issue(t, sqli().Title)
		moved := sqli(func(f *issues.Found) {
			f.File, f.StartLine, f.Evidence = "./app/db.py", 99, "99:   "+strings.ReplaceAll(f.Evidence, `"`, "'")
			f.CWEs, f.Actions, f.Severity, f.Title = []string{"CWE-89", "CWE-564"}, []string{"Review callers"}, "critical", "SQL injection by uid"
		})
		if c := l.run(t, "nightly", nil, moved); c != (issues.Counts{Updated: 1, Total: 1}) {
			t.Errorf("second run: %+v", c)
		}
		again := l.issue(t, "SQL injection by uid")
		if again.ID != first.ID || again.CreatedAt != first.CreatedAt || again.LastDetectedAt <= first.LastDetectedAt {
			t.Errorf("%+v\nbecame %+v", first, again)
		}
		got, err := issues.Convert(again)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.GetWorkflowIds(), []string{"code-audit", "nightly"}) || !slices.Equal(got.GetCwes(), []string{"CWE-89", "CWE-564"}) ||
			len(got.GetActions()) != 2 || !slices.Equal(got.GetRefIds(), []string{"refs/heads/main"}) || !slices.Equal(got.GetFilePaths(), []string{"app/db.py"}) {
			t.Errorf("got %v", got)
		}
		history := l.history(t, again)
		if len(history) != 2 || !slices.Equal(history[1].GetChangedFields().GetPaths(), []string{"severity"}) || history[0].OldValues != nil {
			t.Errorf("got %v", history)
		}
	})
}

func TestReopenedAndIgnored(t *testing.T) {
	each(t, func(t *testing.T, l fixture) {
		l.run(t, "code-audit", nil, sqli(), xss())
		fixed, ignored := l.issue(t, sqli().Title), l.issue(t, xss().Title)
		l.triage(t, fixed, "fixed", "")
		l.triage(t, ignored, "ignored", "acceptable_risk")
		call := l.begin(t, "code-audit", l.project, "main")
		l.upsert(t, call, nil, sqli(), xss())
		if got := l.issue(t, sqli().Title); got.TriageState != "reopened" {
			t.Errorf("fixed became %s", got.TriageState)
		}
		if got := l.issue(t, xss().Title); got.TriageState != "ignored" || got.TriageReason != "acceptable_risk" {
			t.Errorf("ignored became %s %s", got.TriageState, got.TriageReason)
		}
		history := l.history(t, fixed)
		last := history[len(history)-1]
		if last.GetActorType().String() != "ACTOR_TYPE_SEMGREP" || last.GetNewValues().GetTriageState().String() != "TRIAGE_STATE_REOPENED" ||
			last.GetReason() != fmt.Sprintf("detected again by run %d of code-audit", call.RunID) {
			t.Errorf("got %v", last)
		}
		// A retry of the same task keeps a person's decision and records nothing twice.
		l.triage(t, fixed, "fixed", "")
		if c := l.upsert(t, call, nil, sqli(), xss()); c.Created != 0 {
			t.Errorf("got %+v", c)
		}
		if got := l.issue(t, sqli().Title); got.TriageState != "fixed" || len(l.history(t, fixed)) != len(history) {
			t.Errorf("the second attempt made it %s with %v", got.TriageState, l.history(t, fixed))
		}
		if report := l.end(t, call, "completed"); report.GetTotalFindings() != 2 {
			t.Errorf("the report has %d results", report.GetTotalFindings())
		}
	})
}

func TestNotDetected(t *testing.T) {
	each(t, func(t *testing.T, l fixture) {
		other := l.addProject(t, "acme/api")
		everything := func() { l.run(t, "code-audit", nil, sqli(), xss()) }
		states := func() string {
			return l.issue(t, sqli().Title).DetectionState + " " + l.issue(t, xss().Title).DetectionState
		}
		for _, c := range []struct {
			name, want string
			run        func()
		}{
			{"nothing found", "not_detected not_detected", func() { l.run(t, "code-audit", nil) }},
			{"one found", "detected not_detected", func() { l.run(t, "code-audit", nil, sqli()) }},
			{"another workflow", "detected detected", func() { l.run(t, "nightly", nil) }},
			{"another file is covered", "detected not_detected", func() { l.run(t, "code-audit", []string{"./app/views.py", "app/x.py"}) }},
			{"no file is covered", "detected detected", func() { l.run(t, "code-audit", []string{}) }},
			{"another project", "detected detected", func() {
				call := l.begin(t, "code-audit", other, "main")
				l.upsert(t, call, nil)
				l.end(t, call, "completed")
			}},
			{"another branch", "detected detected", func() {
				call := l.begin(t, "code-audit", l.project, "feature")
				l.upsert(t, call, nil)
				l.end(t, call, "completed")
			}},
			{"a commit", "not_detected not_detected", func() {
				call := l.begin(t, "code-audit", l.project, strings.Repeat("3f2a9c1d", 5))
				l.upsert(t, call, nil)
				l.end(t, call, "completed")
			}},
			{"failed", "detected detected", func() {
				call := l.begin(t, "code-audit", l.project, "main")
				l.upsert(t, call, nil)
				l.end(t, call, "failed")
			}},
			{"cancelled", "detected detected", func() {
				call := l.begin(t, "code-audit", l.project, "main")
				l.upsert(t, call, nil, sqli())
				l.end(t, call, "cancelled")
			}},
			{"a task failed", "detected detected", func() {
				call := l.begin(t, "code-audit", l.project, "main")
				l.upsert(t, call, nil)
				l.write(t, func(ctx context.Context, tx *ent.Tx) error {
					return tx.WorkflowTask.Create().SetRunID(call.RunID).SetStep("audit").SetPath("units[1]").SetStatus("failed").SetCreatedAt(1).Exec(ctx)
				})
				l.end(t, call, "completed")
			}},
			{"nothing was stored", "detected detected", func() { l.end(t, l.begin(t, "code-audit", l.project, "main"), "completed") }},
			{"detected by a later run", "detected not_detected", func() {
				call := l.begin(t, "code-audit", l.project, "main")
				l.upsert(t, call, nil)
				l.run(t, "code-audit", []string{}, sqli())
				l.end(t, call, "completed")
			}},
		} {
			everything()
			if c.run(); states() != c.want {
				t.Errorf("%s: %s, want %s", c.name, states(), c.want)
			}
		}
		if n := l.Store.Reader.AgenticIssueCoverage.Query().CountX(l.System(t)); n != 0 {
			t.Errorf("%d covered paths are left", n)
		}
		l.run(t, "code-audit", nil)
		history := l.history(t, l.issue(t, xss().Title))
		last := history[len(history)-1]
		if last.GetOldValues().GetDetectionState().String() != "DETECTION_STATE_DETECTED" || last.GetNewValues().GetDetectionState().String() != "DETECTION_STATE_NOT_DETECTED" ||
			!strings.HasPrefix(last.GetReason(), "not detected by run ") {
			t.Errorf("got %v", last)
		}
	})
}

func TestVerified(t *testing.T) {
	each(t, func(t *testing.T, l fixture) {
		verified := func(state string) issues.Found { return sqli(func(f *issues.Found) { f.Verified = state }) }
		if c := l.run(t, "verify", nil, verified("absent")); c.Total != 0 {
			t.Errorf("an issue that nobody knows was made: %+v", c)
		}
		l.run(t, "code-audit", nil, sqli())
		for _, c := range []struct {
			found issues.Found
			want  string
		}{
			{verified("present"), "verified_present"},
			{sqli(), "verified_present"},
			{verified("absent"), "verified_absent"},
			{sqli(), "detected"},
		} {
			l.run(t, "code-audit", nil, c.found)
			if got := l.issue(t, sqli().Title).DetectionState; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		}
		l.run(t, "code-audit", nil, verified("present"))
		l.run(t, "code-audit", nil)
		if got := l.issue(t, sqli().Title).DetectionState; got != "not_detected" {
			t.Errorf("got %s", got)
		}
		call := l.begin(t, "code-audit", l.project, "main")
		l.upsert(t, call, nil, sqli(), verified("absent")) // of contradicting results the detection counts
		if got := l.issue(t, sqli().Title).DetectionState; got != "detected" {
			t.Errorf("got %s", got)
		}
	})
}

func TestReport(t *testing.T) {
	each(t, func(t *testing.T, l fixture) {
		call := l.begin(t, "code-audit", l.project, "main")
		no := false
		var many []issues.Found
		for i := range 600 {
			many = append(many, issues.Found{Title: "Weak hash", Severity: "low", Class: "crypto", File: fmt.Sprintf("app/f%03d.py", i), Evidence: "md5(x)"})
		}
		many = append(many, sqli(), sqli(), xss(), issues.Found{Title: "Looks odd", Severity: "critical", Class: "odd", File: "a.py", Vulnerable: &no})
		if c := l.upsert(t, call, nil, many...); c.Created != 602 || c.Total != 602 {
			t.Errorf("got %+v", c)
		}
		call.TaskID, call.Attempt = 2, 1
		l.upsert(t, call, nil, many...)
		report := l.end(t, call, "completed")
		if report.GetTotalFindings() != 603 || report.GetVulnerableFindings() != 602 || len(report.GetFindings()) != 500 ||
			report.GetRepository() != "acme/web" || report.GetCommit() != "3f2a9c1d" {
			t.Errorf("got %d %d %d", report.GetTotalFindings(), report.GetVulnerableFindings(), len(report.GetFindings()))
		}
		want := map[string]int64{"critical": 1, "high": 1, "medium": 1, "low": 600, "info": 0}
		for severity, n := range want {
			if got, there := report.GetBySeverity()[severity]; got != n || !there {
				t.Errorf("%s: %d, want %d", severity, got, n)
			}
		}
		if first, second := report.GetFindings()[0], report.GetFindings()[1]; first.GetFile() != "app/db.py" || second.GetFile() != "app/views.py" {
			t.Errorf("got %v, %v first", first, second)
		}
		// Agentic issues are not findings of a scan.
		if body := l.Get(t, "/api/v1/deployments/acme/findings"); body != `{"findings":[]}` {
			t.Errorf("findings of scans: %s", body)
		}
	})
}

func TestEndedRunStoresNothing(t *testing.T) {
	each(t, func(t *testing.T, l fixture) {
		call := l.begin(t, "code-audit", l.project, "main")
		l.end(t, call, "cancelled")
		err := l.Store.Write(tenant.NewContext(t.Context(), l.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			_, err := issues.Upsert(ctx, tx, call, []issues.Found{sqli()}, nil)
			return err
		})
		if !step.IsPermanent(err) || l.Store.Reader.AgenticIssue.Query().CountX(l.System(t)) != 0 {
			t.Errorf("got %v", err)
		}
	})
}

// Unbounded texts of models are cut when stored.
func TestBounds(t *testing.T) {
	each(t, func(t *testing.T, l fixture) {
		many := make([]string, 1500)
		for i := range many {
			many[i] = fmt.Sprintf("service-%d", i)
		}
		f := sqli(func(f *issues.Found) {
			f.Title, f.Description, f.Identities = "\x00 "+strings.Repeat("ü", 400), strings.Repeat("x", 30_000), many
			f.Actions = []string{"", " ", "a\xff", "a\xff"}
		})
		l.run(t, "code-audit", nil, f)
		row := l.Store.Reader.AgenticIssue.Query().OnlyX(l.System(t))
		got, err := issues.Convert(row)
		if err != nil {
			t.Fatal(err)
		}
		if n := len([]rune(row.Title)); n != 300 || len([]rune(row.Description)) != 20_000 || len(got.GetIdentities()) != 1000 || len(got.GetActions()) != 1 {
			t.Errorf("%d %d %d %d", n, len(row.Description), len(got.GetIdentities()), len(got.GetActions()))
		}
	})
}

// Concurrent runs over one project create each issue once.
func TestParallelRuns(t *testing.T) {
	each(t, func(t *testing.T, l fixture) {
		var found []issues.Found
		for i := range 50 {
			found = append(found, sqli(func(f *issues.Found) { f.File = fmt.Sprintf("app/f%d.py", i) }))
		}
		var all sync.WaitGroup
		for n := range 4 {
			call := l.begin(t, fmt.Sprintf("audit-%d", n), l.project, "main")
			list := slices.Clone(found)
			if n%2 == 1 {
				slices.Reverse(list)
			}
			all.Go(func() {
				err := l.Store.Write(tenant.NewContext(t.Context(), l.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
					_, err := issues.Upsert(ctx, tx, call, list, nil)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		rows := l.Store.Reader.AgenticIssue.Query().Where(agenticissue.DeploymentID(l.DeploymentID)).AllX(l.System(t))
		for _, row := range rows {
			if got, err := issues.Convert(row); err != nil || len(got.GetWorkflowIds()) != 4 {
				t.Errorf("%v %v", got.GetWorkflowIds(), err)
			}
		}
		if len(rows) != len(found) {
			t.Errorf("%d issues, want %d", len(rows), len(found))
		}
	})
}
