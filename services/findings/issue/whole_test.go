package issue_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/issue"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// trace is a data flow of `semgrep ci`.
const trace = `{"taint_source":["CliLoc",[{"path":"src/in.py","start":{"line":3,"col":1},"end":{"line":3,"col":9}},"read(TRACED)"]],` +
	`"intermediate_vars":[{"location":{"path":"src/app.py","start":{"line":5,"col":1},"end":{"line":5,"col":4}},"content":"name = TRACED"}],` +
	`"taint_sink":["CliLoc",[{"path":"src/app.py","start":{"line":7,"col":3},"end":{"line":7,"col":21}},"cur.execute(q + name)"]]}`

// flows is the context of a report with a flow, a fix and code.
func flows(t testing.TB) []byte {
	step := func(path, code string, line int32) *findingsv1.FlowStep {
		return &findingsv1.FlowStep{Snippet: code, Location: &findingsv1.RelatedLocation{Path: path, Line: line, EndLine: line, Column: 1, EndColumn: 9}}
	}
	return encoded(t, &findingsv1.FindingContext{
		CodeFlows: []*findingsv1.CodeFlow{{ThreadFlows: []*findingsv1.ThreadFlow{{Steps: []*findingsv1.FlowStep{
			step("src/in.py", "read(TRACED)", 3), step("src/app.py", "cur.execute(q + name)", 7),
		}}}}},
		Fixes: []*findingsv1.ProposedFix{{Changes: []*findingsv1.ProposedChange{{Path: "src/app.py", Line: 7, InsertedText: "TRACED"}}}},
	})
}

// seedWhole adds everything that an issue can show to the seed: its history, a later scan, the origin of its rule,
// flows and an exception request. It returns the rows by id.
func seedWhole(t testing.TB, s *apitest.Server) []*ent.Finding {
	t.Helper()
	seed(t, s)
	s.AddUser(t, s.Tenant, "ann@acme.test", access.RoleMember)
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		ann, err := tx.User.Query().Where(user.Email("ann@acme.test")).OnlyID(ctx)
		if err != nil {
			return err
		}
		if err := tx.Rule.Update().SetOrigin("community").Exec(ctx); err != nil {
			return err
		}
		rows, err := tx.Finding.Query().Order(ent.Asc(finding.FieldID)).All(ctx)
		if err != nil {
			return err
		}
		first, main := rows[0], rows[0].Ref
		meta := encoded(t, &scansv1.ScanMeta{On: "schedule", Branch: main, Commit: "77aa"})
		scan, err := tx.Scan.Create().SetDeploymentID(s.DeploymentID).SetProjectID(first.ProjectID).SetRef(main).SetCommit("77aa").
			SetStatus("SCAN_STATUS_COMPLETED").SetProducts(2).SetIsFullScan(true).SetMeta(meta).SetStats(map[string]any{}).SetStartedAt(base + 9).Save(ctx)
		if err != nil {
			return err
		}
		err = tx.ScanCoverage.Create().SetDeploymentID(s.DeploymentID).SetScanID(scan.ID).SetProjectID(first.ProjectID).SetRef(main).SetTool("test").
			SetAnalysisCategory("").SetIsFullScan(true).SetProducts(15).SetContent([]byte{}).SetAt(base + 9).Exec(ctx)
		if err != nil {
			return err
		}
		if err := tx.Finding.UpdateOneID(rows[2].ID).SetLastSeenScanID(first.FirstSeenScanID).Exec(ctx); err != nil {
			return err
		}
		traced := &storev1.FindingContent{
			Message: "built from input", Snippet: "cur.execute(q + name)", SyntacticId: "syn", MatchBasedId: "match", Commit: "3f2a9c1d", DataflowTrace: []byte(trace),
			Location: &findingsv1.FindingLocation{FilePath: "src/app.py", Line: 7, EndLine: 7, Column: 3, EndColumn: 21},
		}
		err = tx.Finding.Create().SetIssueType("ai_sast").SetFingerprint("four").SetRef(main).SetState(lifecycle.Unresolved).SetStatus(lifecycle.Open).
			SetTriageState(lifecycle.Untriaged).SetDeploymentID(s.DeploymentID).SetProjectID(first.ProjectID).SetRuleID(first.RuleID).
			SetFirstSeenScanID(first.FirstSeenScanID).SetTool("test").SetAnalysisCategory("").SetSeverity("critical").SetCreatedAt(base + 4).
			SetRelevantSince(base + 4).SetStateUpdatedAt(base).SetContentHash(1).SetContent(encoded(t, traced)).Exec(ctx)
		if err != nil {
			return err
		}
		// A scanner that does not know what is secret reports flows of secrets, too.
		leaked := &storev1.FindingContent{
			Snippet: "key = TRACED", DataflowTrace: []byte(trace), Context: flows(t), FixedLines: []string{"key = TRACED"},
			Location: &findingsv1.FindingLocation{FilePath: "config.py", Line: 1},
		}
		if err := tx.Finding.UpdateOneID(rows[3].ID).SetContent(encoded(t, leaked)).Exec(ctx); err != nil {
			return err
		}
		return seedHistory(ctx, tx, first, ann)
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.Store.Reader.Finding.Query().Order(ent.Asc(finding.FieldID)).AllX(s.System(t))
}

// seedHistory stores one event of each source.
func seedHistory(ctx context.Context, tx *ent.Tx, of *ent.Finding, ann int64) error {
	event := func(at int64, kind, to, reason, note, actor string, actorID int64) *ent.FindingEventCreate {
		return tx.FindingEvent.Create().SetDeploymentID(of.DeploymentID).SetFindingID(of.ID).SetKind(kind).SetFromStatus("open").SetToStatus(to).
			SetReason(reason).SetNote(note).SetActorKind(actor).SetActorID(actorID).SetAt(base + at)
	}
	err := tx.FindingEvent.CreateBulk(
		event(1, "created", "open", "", "", "scan", of.FirstSeenScanID),
		event(5, "autotriaged", "provisionally_ignored", "false_positive", "name is a constant", "job", 7),
		event(6, "exception_requested", "open", "acceptable_risk", "only in tests", "user", ann),
		event(7, "exception_rejected", "open", "acceptable_risk", "it is not", "token", 1),
		event(8, "triaged", "ignored", "false_positive", "checked", "user", ann),
		event(9, "noted", "ignored", "", "<b>by hand</b>", "host", 0).SetActorName("octo"),
		event(10, "future_kind", "open", "why", "", "scan", 3),
	).Exec(ctx)
	if err != nil {
		return err
	}
	err = tx.ExceptionRequest.Create().SetDeploymentID(of.DeploymentID).SetProjectID(of.ProjectID).SetFindingID(of.ID).SetState("rejected").
		SetSource("platform").SetReason("acceptable_risk").SetNote("only in tests").SetRequesterKind("user").SetRequesterID(ann).SetRequesterUserID(ann).
		SetRequesterLogin("ann@acme.test").SetRequesterName("Ann").SetCreatedAt(base + 6).SetReviewID(4).SetReviewerKind("user").SetReviewerID(ann).
		SetReviewerLogin("bob@acme.test").SetReviewerName("Bob").SetReviewNote("it is not").SetReviewedAt(base + 7).Exec(ctx)
	if err != nil {
		return err
	}
	for _, fix := range []struct{ status, url, why string }{{"opened", "https://git.acme.test/acme/web/-/merge_requests/12", ""}, {"failed", "", "no write access"}} {
		err := tx.AiFix.Create().SetDeploymentID(of.DeploymentID).SetFindingID(of.ID).SetStatus(fix.status).SetPrURL(fix.url).SetError(fix.why).
			SetActorKind("user").SetActorID(ann).SetRequestedAt(base + 2).SetFinishedAt(base + 3).Exec(ctx)
		if err != nil {
			return err
		}
	}
	task, err := tx.AiTaskGroup.Create().SetDeploymentID(of.DeploymentID).SetChains([]string{"CHAIN_AUTOTRIAGE_WITH_GUIDANCE_AND_AUTOFIX"}).
		SetRegenerate(true).SetIssues(1).SetActorKind("user").SetActorID(ann).SetCreatedAt(base).Save(ctx)
	if err != nil {
		return err
	}
	return tx.AiAnalysis.Create().SetDeploymentID(of.DeploymentID).SetFindingID(of.ID).SetGroupID(task.ID).SetStatus("pending").SetCreatedAt(base + 4).Exec(ctx)
}

func path(of apitest.Tenant, id int64) string {
	return fmt.Sprintf("/api/agent/deployments/%d/issues/v2/%d", of.DeploymentID, id)
}

// An issue of each type with everything that is stored, in the exact bytes, over HTTP and gRPC.
func TestGetIssueBodies(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		rows := seedWhole(t, s)
		client := findingsv1.NewIssuesServiceClient(s.Conn)
		for i, name := range []string{"whole_sast", "", "whole_sca", "whole_secrets", "whole_ai_sast"} {
			if name == "" {
				continue
			}
			body := s.Get(t, path(s.Tenant, rows[i].ID)+"?includeCodeSnippet=true&includeIsArchived=true")
			apitest.Golden(t, name, body)
			request := &findingsv1.GetIssueRequest{DeploymentId: s.DeploymentID, IssueId: rows[i].ID, IncludeCodeSnippet: true, IncludeIsArchived: true}
			response, err := client.GetIssue(s.Context(t, s.Token), request)
			if err != nil {
				t.Fatal(err)
			}
			apitest.Same(t, response, body)
			pieces := s.Get(t, path(s.Tenant, rows[i].ID)+"/code-snippets")
			apitest.Golden(t, strings.Replace(name, "whole", "snippets", 1), pieces)
			snippets, err := client.GetIssueCodeSnippets(s.Context(t, s.Token), &findingsv1.GetIssueCodeSnippetsRequest{DeploymentId: s.DeploymentID, IssueId: rows[i].ID})
			if err != nil {
				t.Fatal(err)
			}
			apitest.Same(t, snippets, pieces)
			if name == "whole_secrets" && strings.Contains(body+pieces, "TRACED") {
				t.Errorf("code of a secret is shown: %s %s", body, pieces)
			}
		}
		plain := s.Get(t, path(s.Tenant, rows[4].ID))
		if !strings.Contains(plain, `"codeSnippet":"","dataflowTrace"`) || !strings.Contains(plain, `"codeSnippets":[]`) {
			t.Errorf("code without a request for it: %s", plain)
		}
	})
}

// Another tenant, a member of no team, a removed and a merged finding get the same answer as an id that does not exist.
func TestGetIssueOfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		rows := seedWhole(t, s)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			if err := tx.Finding.UpdateOneID(rows[1].ID).SetState(lifecycle.Removed).SetStatus(lifecycle.Removed).Exec(ctx); err != nil {
				return err
			}
			if err := tx.Finding.UpdateOneID(rows[2].ID).SetMergedInto(rows[0].ID).Exec(ctx); err != nil {
				return err
			}
			// With a team, members see the projects of their teams only.
			team, err := tx.Team.Create().SetDeploymentID(s.DeploymentID).SetName("Web").SetSlug("web").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
			if err != nil {
				return err
			}
			return tx.TeamProject.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetProjectID(rows[0].ProjectID).SetCreatedAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		rival := s.AddTenant(t, "rival")
		teamless := s.AddUser(t, s.Tenant, "new@acme.test", access.RoleMember)
		client := findingsv1.NewIssuesServiceClient(s.Conn)
		for _, c := range []struct {
			what, token string
			in          apitest.Tenant
			id          int64
		}{
			{"another tenant", rival.Token, rival, rows[0].ID}, {"a member of no team", teamless, s.Tenant, rows[0].ID},
			{"removed", s.Token, s.Tenant, rows[1].ID}, {"merged", s.Token, s.Tenant, rows[2].ID},
		} {
			for _, suffix := range []string{"", "/code-snippets"} {
				got := s.Body(t, c.token, http.MethodGet, path(c.in, c.id)+suffix, "", 404)
				absent := s.Body(t, c.token, http.MethodGet, path(c.in, 98765)+suffix, "", 404)
				if want := strings.ReplaceAll(absent, "98765", fmt.Sprint(c.id)); got != want {
					t.Errorf("%s%s: %s, want %s", c.what, suffix, got, want)
				}
			}
			_, err := client.GetIssueCodeSnippets(s.Context(t, c.token), &findingsv1.GetIssueCodeSnippetsRequest{DeploymentId: c.in.DeploymentID, IssueId: c.id})
			if status.Code(err) != codes.NotFound {
				t.Errorf("%s: %v", c.what, err)
			}
		}
	})
}

// The entries of a list with all optional parts, and with none.
func TestSummaries(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		rows := seedWhole(t, s)
		ctx := tenant.NewContext(t.Context(), s.DeploymentID)
		all := issue.Parts{Remediation: true, ActivityHistory: true, IsArchived: true, FirstDetectedAt: true}
		full, err := issue.Summaries(ctx, s.Store.Reader, rows, all)
		if err != nil {
			t.Fatal(err)
		}
		apitest.Golden(t, "summary_full", string(full[0].AppendJSON(nil)))
		bare, err := issue.Summaries(ctx, s.Store.Reader, rows, issue.Parts{})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Golden(t, "summary", string(bare[0].AppendJSON(nil)))
		for i, row := range rows {
			if full[i].GetIssue().GetId() != row.ID || bare[i].GetIssue().GetId() != row.ID {
				t.Errorf("row %d: %v %v", i, full[i], bare[i])
			}
		}
		if got := full[1]; got.GetTriageCount() != 1 || !slices.Equal(got.GetAllRefs(), []string{"refs/heads/main", "refs/merge-requests/12/head"}) {
			t.Errorf("the pull request's row: %v", got)
		}
		if none, err := issue.Summaries(ctx, s.Store.Reader, nil, all); err != nil || len(none) != 0 {
			t.Errorf("of nothing: %v %v", none, err)
		}
	})
}

// A long history is cut to its newest entries.
func TestLongHistory(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		rows := seedWhole(t, s)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			list := make([]*ent.FindingEventCreate, 300)
			for i := range list {
				list[i] = tx.FindingEvent.Create().SetDeploymentID(s.DeploymentID).SetFindingID(rows[0].ID).SetKind("updated").SetFromStatus("open").
					SetToStatus("open").SetReason(fmt.Sprint(i)).SetActorKind("scan").SetActorID(1).SetAt(base + 100 + int64(i))
			}
			return tx.FindingEvent.CreateBulk(list...).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx := tenant.NewContext(t.Context(), s.DeploymentID)
		whole, err := issue.Whole(ctx, s.Store.Reader, rows[0])
		if err != nil {
			t.Fatal(err)
		}
		if list := whole.GetActivityHistory(); len(list) != 200 || list[0].GetNote() != "299" || list[199].GetNote() != "100" {
			t.Errorf("%d entries: %v", len(list), list[0])
		}
		list, err := issue.Summaries(ctx, s.Store.Reader, rows, issue.Parts{ActivityHistory: true})
		if err != nil {
			t.Fatal(err)
		}
		if list := list[0].GetIssue().GetActivityHistory(); len(list) != 20 || list[0].GetNote() != "299" || list[19].GetNote() != "280" {
			t.Errorf("%d entries of a list: %v", len(list), list)
		}
	})
}
