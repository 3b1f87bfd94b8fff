package issue_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/issue"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apitest"
)

// base is 2026-05-04T10:20:30.123456Z in microseconds.
const base = int64(1_777_890_030_123_456)

func encoded(t testing.TB, m proto.Message) []byte {
	t.Helper()
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// seed stores a project, a rule, a scan and findings of all types with all columns set.
func seed(t testing.TB, s *apitest.Server) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		owner, err := tx.Project.Create().SetDeploymentID(s.DeploymentID).SetName("acme/web").SetNameKey("acme/web").SetURL("https://git.acme.test/acme/web").
			SetScmType("SCM_TYPE_GITLAB").SetDefaultBranch("refs/heads/main").SetCreatedAt(base).Save(ctx)
		if err != nil {
			return err
		}
		about := &findingsv1.FindingRule{
			Name: "python.flask.sqli", Message: "Queries must not be built from input", Confidence: "medium", Category: "security", Subcategories: []string{"vuln"},
			CweNames: []string{"CWE-89: SQL Injection"}, OwaspNames: []string{"A03:2021 - Injection"},
		}
		r, err := tx.Rule.Create().SetDeploymentID(s.DeploymentID).SetTool("test").SetName(about.GetName()).SetCategory("security").SetConfidence("medium").SetContent(encoded(t, about)).Save(ctx)
		if err != nil {
			return err
		}
		meta := encoded(t, &scansv1.ScanMeta{On: "push", Branch: "refs/heads/main", Commit: "3f2a9c1d", RepoUrl: "https://git.acme.test/acme/web"})
		scan, err := tx.Scan.Create().SetDeploymentID(s.DeploymentID).SetProjectID(owner.ID).SetRef("refs/heads/main").SetCommit("3f2a9c1d").
			SetStatus("SCAN_STATUS_COMPLETED").SetProducts(2).SetIsFullScan(true).SetMeta(meta).SetStats(map[string]any{}).SetStartedAt(base).Save(ctx)
		if err != nil {
			return err
		}
		err = tx.Exploit.Create().SetDeploymentID(s.DeploymentID).SetCve("CVE-2026-0001").SetScore(0.5).SetPercentile(0.9).SetScoredAt(base).
			SetListedAt(base).Exec(ctx)
		if err != nil {
			return err
		}
		for i, f := range findingsOf(tx) {
			content := &storev1.FindingContent{
				Message: "built from input", Snippet: "cur.execute(q + name)", SyntacticId: "syn", MatchBasedId: "match", Commit: "3f2a9c1d",
				Location: &findingsv1.FindingLocation{FilePath: "src/app.py", Line: 7, EndLine: 8, Column: 3, EndColumn: 21},
			}
			f.fill(content)
			row, err := f.row.SetDeploymentID(s.DeploymentID).SetProjectID(owner.ID).SetRuleID(r.ID).SetFirstSeenScanID(scan.ID).SetTool("test").
				SetAnalysisCategory("").SetSeverity("high").SetCreatedAt(base + int64(i)).SetRelevantSince(base + int64(i)).SetStateUpdatedAt(base).
				SetContentHash(1).SetContent(encoded(t, content)).Save(ctx)
			if err != nil {
				return err
			}
			if i == 0 {
				if err := analyse(ctx, t, tx, row); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// analyse stores two analyses of a finding, and a person's feedback on the last.
func analyse(ctx context.Context, t testing.TB, tx *ent.Tx, row *ent.Finding) error {
	t.Helper()
	for _, a := range []struct{ verdict, fix string }{{"true_positive", "old"}, {"false_positive", "cur.execute(q, name)"}} {
		result := encoded(t, &storev1.AiResult{FixCode: a.fix, FixDiff: "-a\n+b", MemoryIdsReferenced: []string{"5"}, MemoryIdsRendered: []string{"5", "6"}})
		analysis, err := tx.AiAnalysis.Create().SetDeploymentID(row.DeploymentID).SetFindingID(row.ID).SetStatus("done").SetVerdict(a.verdict).
			SetResult(result).SetCreatedAt(base).Save(ctx)
		if err != nil {
			return err
		}
		err = tx.AiFeedback.Create().SetDeploymentID(row.DeploymentID).SetAnalysisID(analysis.ID).SetUserID(1).SetRating("RATING_GOOD").SetNote("as " + a.verdict).SetAt(base).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return tx.AiAnalysis.Create().SetDeploymentID(row.DeploymentID).SetFindingID(row.ID).SetStatus("failed").SetCreatedAt(base).Exec(ctx)
}

type seeded struct {
	row  *ent.FindingCreate
	fill func(*storev1.FindingContent)
}

func findingsOf(tx *ent.Tx) []seeded {
	row := func(kind, print, ref, state, triage string) *ent.FindingCreate {
		return tx.Finding.Create().SetIssueType(kind).SetFingerprint(print).SetRef(ref).SetState(cmp.Or(state, lifecycle.Unresolved)).
			SetTriageState(cmp.Or(triage, lifecycle.Untriaged)).SetStatus(lifecycle.Status(cmp.Or(state, lifecycle.Unresolved), triage))
	}
	const main = "refs/heads/main"
	return []seeded{
		{row("sast", "one", main, "", lifecycle.ProvisionallyIgnored).SetAutotriageVerdict("false_positive").SetComponentTag("payments").SetPolicyMode("rule-board-block").
			SetTriageReason("false_positive").SetTriageComment("checked").SetTriagedAt(base), func(c *storev1.FindingContent) {
			c.Assistant = &findingsv1.Assistant{
				Autotriage:      &findingsv1.AssistantAutotriage{Verdict: "false_positive", Reason: "name is a constant"},
				Autofix:         &findingsv1.AssistantAutofix{FixCode: "cur.execute(q, name)", Explanation: "parameters"},
				Guidance:        &findingsv1.AssistantGuidance{Summary: "Use parameters", Instructions: "Pass name as a parameter."},
				Component:       &findingsv1.AssistantComponent{Tag: "payments", Risk: "high"},
				RuleExplanation: &findingsv1.AssistantRuleExplanation{Summary: "Injection", Explanation: "Input becomes code."},
			}
			c.ClickToFixPrs = []*findingsv1.ClickToFixPr{{Url: "https://git.acme.test/acme/web/-/merge_requests/12"}}
			c.ExternalTicket = &findingsv1.ExternalTicket{ExternalSlug: "APP-1", Id: 3, LinkedIssueIds: []int64{1}, Url: "https://tickets.acme.test/APP-1"}
		}},
		{row("sast", "one", "refs/merge-requests/12/head", lifecycle.Muted, ""), func(*storev1.FindingContent) {}},
		{row("sca", "two", main, "", "").SetExposure("always_reachable").SetTransitivity("direct").SetPackage("left-pad").SetAdvisory("CVE-2026-0001").SetEpssProbability("high"), func(c *storev1.FindingContent) {
			c.FoundDependency = &findingsv1.FoundDependency{Package: "left-pad", Version: "1.0.0", Ecosystem: "npm", Transitivity: "direct"}
			c.FixRecommendations = []*findingsv1.FixRecommendation{{Package: "left-pad", Version: "1.0.1"}, {Package: "left-pad", Version: "2.0.0"}}
			c.VulnerabilityIdentifier, c.ReachableCondition = "CVE-2026-0001", "when called"
			c.Manifest = "package.json"
		}},
		{row("secrets", "three", main, "", "").SetValidationState("confirmed_valid").SetHistorical(true), func(c *storev1.FindingContent) {
			c.Snippet, c.HistoricalCommit = "key = ****", "77aa"
			c.HistoricalCommitAt = timestamppb.New(time.UnixMicro(base))
		}},
	}
}

// Each type with all that is stored, in the exact bytes.
func TestConvert(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seed(t, s)
		ctx := tenant.NewContext(t.Context(), s.DeploymentID)
		rows := s.Store.Reader.Finding.Query().Order(ent.Asc(finding.FieldID)).AllX(ctx)
		issues, err := issue.Convert(ctx, s.Store.Reader, rows)
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"sast", "sast_of_a_pull_request", "sca", "secrets"} {
			apitest.Golden(t, name, string(issues[i].AppendJSON(nil)))
		}
		if none, err := issue.Convert(ctx, s.Store.Reader, nil); err != nil || len(none) != 0 {
			t.Errorf("of nothing: %v %v", none, err)
		}
		// The rows that the finding refers to may be gone.
		orphan := &ent.Finding{ID: 999, ProjectID: 999, RuleID: 999, FirstSeenScanID: 999, IssueType: "sca"}
		if _, err := issue.Convert(ctx, s.Store.Reader, []*ent.Finding{orphan}); err != nil {
			t.Error(err)
		}
	})
}

// counting is a driver that counts queries.
type counting struct {
	dialect.Driver
	queries int
}

func (c *counting) Query(ctx context.Context, query string, args, v any) error {
	c.queries++
	return c.Driver.Query(ctx, query, args, v)
}

// Convert and Summaries make the same number of queries for any number of rows, and one more if there are CVEs.
func TestConvertQueries(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seedWhole(t, s)
		db := s.Store.Pools()["reader"]
		if db == nil {
			db = s.Store.Pools()["main"]
		}
		counter := &counting{Driver: entsql.OpenDB(s.Store.Dialect(), db)}
		client, ctx := ent.NewClient(ent.Driver(counter)), tenant.NewContext(t.Context(), s.DeploymentID)
		rows := s.Store.Reader.Finding.Query().Order(ent.Asc(finding.FieldID)).AllX(ctx)
		for n := 1; n <= len(rows); n++ {
			counts := map[string]func() error{
				"an issue": func() error { _, err := issue.Convert(ctx, client, rows[:n]); return err },
				"a summary": func() error {
					_, err := issue.Summaries(ctx, client, rows[:n], issue.Parts{ActivityHistory: true})
					return err
				},
			}
			for what, want := range map[string]int{"an issue": 9, "a summary": 16} {
				if n < 3 { // the third is about a CVE
					want--
				}
				counter.queries = 0
				if err := counts[what](); err != nil || counter.queries != want {
					t.Errorf("%s of %d rows: %d queries, want %d, error %v", what, n, counter.queries, want, err)
				}
			}
		}
	})
}
