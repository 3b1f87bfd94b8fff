package steps_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/workflowfinding"
	"github.com/palisade/palisade/services/workflows/step"
)

// listed is one finding of the output of findings.query.
type listed struct {
	ID                                int64
	RuleName, Message, Severity, Path string
	Snippet, Project, Ref             string
	Line, EndLine                     int
}

func ids(list []listed) (out []int64) {
	for _, f := range list {
		out = append(out, f.ID)
	}
	return out
}

func TestFindingsQuery(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w fixture) {
		web, api := w.project(t, w.Tenant, "acme/web", "https://git.acme.test/acme/web"), w.project(t, w.Tenant, "acme/api", "")
		other := w.AddTenant(t, "globex")
		foreignProject := w.project(t, other, "acme/web", "")
		w.finding(t, other, fact{project: foreignProject, severity: "critical"})

		low := w.finding(t, w.Tenant, fact{project: web, severity: "low"})
		high := w.finding(t, w.Tenant, fact{project: web, message: "SQL from input", snippet: "q = 'a' + b"})
		newer := w.finding(t, w.Tenant, fact{project: web, rule: "py.xss"})
		critical := w.finding(t, w.Tenant, fact{project: api, severity: "critical", kind: "sca", verdict: "true_positive"})
		branch := w.finding(t, w.Tenant, fact{project: web, ref: "refs/heads/topic"})
		ignored := w.finding(t, w.Tenant, fact{project: web, triage: "ignored"})
		reopened := w.finding(t, w.Tenant, fact{project: web, triage: "reopened", severity: "medium"})
		w.finding(t, w.Tenant, fact{project: web, state: "fixed"})

		for _, c := range []struct {
			project int64
			ref     string
			with    with
			want    []int64
		}{
			{0, "", nil, []int64{critical, newer, high, reopened, low}},
			{0, "", with{"limit": 2}, []int64{critical, newer}},
			{web, "", nil, []int64{newer, high, reopened, low}},
			{web, "", with{"projectId": fmt.Sprint(api)}, nil},
			{0, "", with{"projectId": api}, []int64{critical}},
			{0, "", with{"projectId": foreignProject}, nil},
			{0, "topic", nil, []int64{branch}},
			{0, "", with{"severities": []any{"low", "medium"}}, []int64{reopened, low}},
			{0, "", with{"issueTypes": []any{"sca"}}, []int64{critical}},
			{0, "", with{"rules": []any{"py.xss", "none"}}, []int64{newer}},
			{0, "", with{"rules": []any{"none"}}, nil},
			{0, "", with{"withoutVerdict": true, "untriagedOnly": true}, []int64{newer, high, low}},
			{0, "", with{"status": "ignored"}, []int64{ignored}},
		} {
			call := w.call(c.project, c.with)
			call.GitRef = c.ref
			if list, result := run[[]listed](t, w.kinds, "findings.query", call); !slices.Equal(ids(list), c.want) || result.Output[0] != '[' {
				t.Errorf("%d %s %v: got %v, want %v", c.project, c.ref, c.with, ids(list), c.want)
			}
		}
		list, _ := run[[]listed](t, w.kinds, "findings.query", w.call(web, with{"rules": "py.sqli", "severities": "high"}))
		want := listed{ID: high, RuleName: "py.sqli", Message: "SQL from input", Severity: "high", Path: "app/db.py", Line: 41, EndLine: 43,
			Snippet: "q = 'a' + b", Project: "acme/web", Ref: "refs/heads/main"}
		if len(list) != 1 || list[0] != want {
			t.Errorf("got %+v", list)
		}
		w.write(t, func(ctx context.Context, tx *ent.Tx) error {
			return tx.Project.Update().Where(project.ID(web)).SetPrimaryBranch("refs/heads/topic").Exec(ctx)
		})
		if list, _ := run[[]listed](t, w.kinds, "findings.query", w.call(web, nil)); !slices.Equal(ids(list), []int64{branch}) {
			t.Errorf("of the primary branch: %v", ids(list))
		}
	})
}

// A list that exceeds the output limit ends early, and long texts are cut.
func TestFindingsQueryIsBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w fixture) {
		web := w.project(t, w.Tenant, "acme/web", "")
		first := w.finding(t, w.Tenant, fact{project: web, message: "m", snippet: strings.Repeat("é", 10_000)})
		w.write(t, func(ctx context.Context, tx *ent.Tx) error {
			row, err := tx.Finding.Query().Where(finding.ID(first)).Only(ctx)
			if err != nil {
				return err
			}
			var rows []*ent.FindingCreate
			for i := range 300 {
				rows = append(rows, tx.Finding.Create().SetDeploymentID(row.DeploymentID).SetProjectID(web).SetRuleID(row.RuleID).SetFirstSeenScanID(411).
					SetRef(row.Ref).SetTool(row.Tool).SetAnalysisCategory("").SetFingerprint(fmt.Sprint(i)).SetIssueType("sast").SetSeverity("low").
					SetState(row.State).SetStatus(row.Status).SetCreatedAt(1).SetRelevantSince(1).SetStateUpdatedAt(1).SetContentHash(1).SetContent(row.Content))
			}
			return tx.Finding.CreateBulk(rows...).Exec(ctx)
		})
		list, result := run[[]listed](t, w.kinds, "findings.query", w.call(0, with{"limit": 3000}))
		if len(result.Output) > step.MaxOutput || len(list) < 200 || len(list) == 301 || len(list[0].Snippet) > 4010 || list[0].ID != first {
			t.Errorf("%d findings in %d bytes, a snippet of %d", len(list), len(result.Output), len(list[0].Snippet))
		}
	})
}

func TestFindingsVerdict(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w fixture) {
		web, api := w.project(t, w.Tenant, "acme/web", ""), w.project(t, w.Tenant, "acme/api", "")
		open := w.finding(t, w.Tenant, fact{project: web})
		ignored := w.finding(t, w.Tenant, fact{project: web, triage: "reviewing"})
		changed := w.finding(t, w.Tenant, fact{project: web})
		inAPI := w.finding(t, w.Tenant, fact{project: api})
		other := w.AddTenant(t, "globex")
		foreign := w.finding(t, other, fact{project: w.project(t, other, "acme/web", "")})
		type verdict struct {
			FindingID int64
			Verdict   string
			Applied   bool
		}
		for _, c := range []struct {
			id      int64
			verdict string
			applied bool
			triage  string
		}{
			{open, "false_positive", true, "provisionally_ignored"},
			{open, "false_positive", false, "provisionally_ignored"},
			{open, "true_positive", true, "untriaged"},
			{ignored, "false_positive", false, "reviewing"},
		} {
			out, _ := run[verdict](t, w.kinds, "findings.verdict", w.call(web, with{"findingId": fmt.Sprint(c.id), "verdict": c.verdict, "reason": "con\x00st\u202eant"}))
			if (out != verdict{c.id, c.verdict, c.applied}) {
				t.Errorf("%+v: got %+v", c, out)
			}
			row := w.row(t, c.id)
			if row.TriageState != c.triage || row.AutotriageVerdict == nil || *row.AutotriageVerdict != c.verdict {
				t.Errorf("%+v: %s %v", c, row.TriageState, row.AutotriageVerdict)
			}
		}
		listed, _ := run[[]map[string]any](t, w.kinds, "findings.query", w.call(web, with{"untriagedOnly": true, "withoutVerdict": true}))
		if len(listed) != 1 || listed[0]["id"] != float64(changed) {
			t.Fatalf("listed %v", listed)
		}
		w.write(t, func(ctx context.Context, tx *ent.Tx) error {
			return tx.Finding.UpdateOneID(changed).SetContentHash(-2).Exec(ctx)
		})
		late := w.call(web, with{"findingId": listed[0]["id"], "verdict": "false_positive", "reason": "constant", "contentHash": listed[0]["contentHash"]})
		late.RunID = 8
		if out, _ := run[verdict](t, w.kinds, "findings.verdict", late); out.Applied || w.row(t, changed).TriageState != "untriaged" || w.row(t, changed).AutotriageVerdict == nil {
			t.Errorf("about a finding that has changed since: %+v", out)
		}
		late.With["contentHash"] = "-2"
		if out, _ := run[verdict](t, w.kinds, "findings.verdict", late); !out.Applied {
			t.Errorf("about the finding as it is: %+v", out)
		}
		for name, call := range map[string]step.Call{
			"of another project": w.call(web, with{"findingId": inAPI, "verdict": "false_positive"}),
			"of another tenant":  w.call(0, with{"findingId": foreign, "verdict": "false_positive"}),
			"of nobody":          w.call(0, with{"findingId": 987654, "verdict": "false_positive"}),
		} {
			if err := failure(t, w.kinds, "findings.verdict", call); !step.IsPermanent(err) || !strings.Contains(err.Error(), "has no finding") {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, id := range []int64{inAPI, foreign} {
			if row := w.row(t, id); row.AutotriageVerdict != nil || row.TriageState != "untriaged" {
				t.Errorf("%d was judged: %v", id, row)
			}
		}
		var results []string
		for _, r := range w.Store.Reader.WorkflowFinding.Query().Where(workflowfinding.RunID(7)).Order(ent.Asc(workflowfinding.FieldID)).AllX(w.System(t)) {
			results = append(results, fmt.Sprintf("%s %v %s", r.Key, r.Vulnerable, r.Reasoning))
		}
		if want := []string{fmt.Sprintf("finding %d true constant", open), fmt.Sprintf("finding %d false constant", ignored)}; !slices.Equal(results, want) {
			t.Errorf("the run has the results %q, want %q", results, want)
		}
	})
}

func (w fixture) row(t testing.TB, id int64) *ent.Finding {
	t.Helper()
	row, err := w.Store.Reader.Finding.Query().Where(finding.ID(id)).Only(w.System(t))
	if err != nil {
		t.Fatal(err)
	}
	return row
}
