package findings_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

var committed = timestamppb.New(store.Time(base))

// common returns the content that all variants share.
func common() *storev1.FindingContent {
	return &storev1.FindingContent{
		Location:       &findingsv1.FindingLocation{FilePath: "app/db <1>.py", Line: 42, Column: 9, EndLine: 43, EndColumn: 31},
		Message:        "Query built from \"input\" & <tags> – ünïcode",
		SyntacticId:    "5e1f",
		MatchBasedId:   "ab12_0",
		Commit:         "3f2a9c1",
		ReviewComments: []*findingsv1.ReviewComment{{ExternalDiscussionId: "d-9", ExternalNoteId: 9007199254740993}},
		ExternalTicket: &findingsv1.ExternalTicket{ExternalSlug: "SEC-7", Id: 12, LinkedIssueIds: []int64{1, 2}, Url: "https://tickets.acme.test/SEC-7"},
	}
}

func assisted() *storev1.FindingContent {
	c := common()
	c.Assistant = &findingsv1.Assistant{
		Autofix:         &findingsv1.AssistantAutofix{Explanation: "binds the value", FixCode: "db.query(sql, [id])\n"},
		Autotriage:      &findingsv1.AssistantAutotriage{Reason: "reachable from a route", Verdict: "true_positive"},
		Component:       &findingsv1.AssistantComponent{Risk: "high", Tag: "user data"},
		Guidance:        &findingsv1.AssistantGuidance{Instructions: "1. bind", Summary: "bind it"},
		RuleExplanation: &findingsv1.AssistantRuleExplanation{Explanation: "long", Summary: "short"},
	}
	c.ClickToFixPrs = []*findingsv1.ClickToFixPr{{CreatedAt: committed, Url: "https://git.acme.test/acme/web/pull/8"}}
	c.ClickToFixFailures = []*findingsv1.ClickToFixFailure{{CreatedAt: committed, Reason: "no write access"}}
	c.AiImpact = "reads any account"
	return c
}

func supplied() *storev1.FindingContent {
	c := common()
	c.Lockfile, c.LockfileLine, c.CommittedAt = "package-lock.json", 7, committed.AsTime().UnixMicro()
	c.FixRecommendations = []*findingsv1.FixRecommendation{{Package: "left-pad", Version: "1.3.1"}, {Package: "left-pad", Version: "2.0.0"}}
	c.FoundDependency = &findingsv1.FoundDependency{
		Ecosystem: "npm", Package: "left-pad", Version: "1.3.0", Transitivity: "transitive",
	}
	c.ReachableCondition = "when called with a length"
	c.VulnerabilityIdentifier = "CVE-2026-1234"
	c.Usage = &findingsv1.Usage{
		ExternalTicket: &findingsv1.ExternalTicket{ExternalSlug: "SEC-8", Id: 13, Url: "https://tickets.acme.test/SEC-8"},
		Location: &findingsv1.UsageLocation{
			FilePath: "web/pad.js", Line: 3, Column: 1, EndLine: 3, EndColumn: 20, Path: "web/pad.js", StartLine: 3, StartCol: 1, EndCol: 20,
		},
	}
	return c
}

func secretContent() *storev1.FindingContent {
	c := common()
	c.HistoricalCommit, c.HistoricalCommitAt = "aa11bb2", committed
	return c
}

// seedGolden stores two findings of each variant: one with all fields and one with the required fields only.
func seedGolden(t *testing.T, s *apitest.Server) {
	t.Helper()
	l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){
		"acme/web":  func(p *ent.ProjectCreate) { p.SetScmType("SCM_TYPE_GITHUB").SetVisibility("private") },
		"acme/void": func(p *ent.ProjectCreate) { p.SetURL("").SetDefaultBranch("") },
	})
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Exploit.Create().SetDeploymentID(s.DeploymentID).SetCve("CVE-2026-1234").SetScore(0.00123).SetPercentile(0.5).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	empty := &storev1.FindingContent{}
	l.seed(t, s,
		fact{label: "sast", rule: "full", triage: "ignored", reason: "acceptable_risk", note: "agreed", triagedAt: 1, policy: "rule-board-block", content: assisted()},
		fact{label: "sast-empty", project: "acme/void", rule: "bare", content: empty},
		fact{label: "sca", kind: "sca", rule: "full", exposure: "always_reachable", malicious: true, content: supplied()},
		fact{label: "sca-empty", kind: "sca", project: "acme/void", rule: "bare", content: empty},
		fact{label: "ai", kind: "ai_sast", rule: "full", policy: "rule-board-pr-comments", content: assisted()},
		fact{label: "ai-empty", kind: "ai_sast", project: "acme/void", rule: "bare", content: empty},
		fact{label: "secret", kind: "secrets", rule: "full", validation: "confirmed_valid", policy: "rule-board-block", historical: true, content: secretContent()},
		fact{label: "secret-empty", kind: "secrets", project: "acme/void", rule: "bare", content: empty},
	)
}

// The JSON of each variant equals its golden file, with all fields and with the required fields only, over HTTP and
// gRPC.
func TestGoldenBodies(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seedGolden(t, s)
		client := findingsv1.NewFindingsServiceClient(s.Conn)
		for name, query := range map[string]string{
			"list_sast": "", "list_sca": "issue_type=sca", "list_ai_sast": "issue_type=ai_sast", "list_empty": "page=1",
		} {
			body := s.Get(t, "/api/v1/deployments/acme/findings?"+query)
			apitest.Golden(t, name, body)
			request := &findingsv1.ListFindingsRequest{DeploymentSlug: "acme", IssueType: []string{strings.TrimPrefix(query, "issue_type=")}}
			switch name {
			case "list_sast":
				request.IssueType = nil
			case "list_empty":
				request.IssueType, request.Page = nil, 1
			}
			response, err := client.ListFindings(s.Context(t, s.Token), request)
			if err != nil {
				t.Fatal(err)
			}
			apitest.Same(t, response, body)
		}
		if body := s.Get(t, "/api/v1/deployments/acme/findings?page=7"); body != `{"findings":[]}` {
			t.Errorf("a page past the end is %s", body)
		}
	})
}

// secretsPath returns the path of the list of secrets of a deployment.
func secretsPath(of apitest.Tenant) string {
	return "/api/v1/deployments/" + strconv.FormatInt(of.DeploymentID, 10) + "/secrets"
}

func TestGoldenSecrets(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seedGolden(t, s)
		client := findingsv1.NewSecretsServiceClient(s.Conn)
		for name, repo := range map[string]string{"secrets": "", "secrets_empty": "acme/none"} {
			body := s.Get(t, secretsPath(s.Tenant)+"?repo="+repo)
			apitest.Golden(t, name, body)
			request := &findingsv1.ListSecretsRequest{DeploymentId: s.DeploymentID}
			if repo != "" {
				request.Repo = []string{repo}
			}
			response, err := client.ListSecrets(s.Context(t, s.Token), request)
			if err != nil {
				t.Fatal(err)
			}
			apitest.Same(t, response, body)
		}
	})
}

// Golden files replace all times. This test checks the times.
func TestTimes(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		l.seed(t, s,
			fact{label: "a", at: 1, createdAt: -30_123_456, updatedAt: 44, triage: "fixing", triagedAt: 877_000},
			fact{label: "b", kind: "secrets", createdAt: -30_123_456, updatedAt: 44, triage: "fixing", triagedAt: 877_000})
		body := s.Get(t, "/api/v1/deployments/acme/findings")
		for _, want := range []string{
			`"created_at":"2026-05-04T10:20:00.000000Z"`, `"relevant_since":"2026-05-04T10:20:30.123457Z"`,
			`"state_updated_at":"2026-05-04T10:20:30.123500Z"`, `"triaged_at":"2026-05-04T10:20:31.000456Z"`,
		} {
			if !strings.Contains(body, want) {
				t.Errorf("no %s in %s", want, body)
			}
		}
		secrets := s.Get(t, secretsPath(s.Tenant))
		for _, want := range []string{`"createdAt":"2026-05-04T10:20:00.000000Z"`, `"updatedAt":"2026-05-04T10:20:31.000456Z"`} {
			if !strings.Contains(secrets, want) {
				t.Errorf("no %s in %s", want, secrets)
			}
		}
	})
}
