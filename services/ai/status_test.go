package ai_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/ai"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/llm/llmtest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// usage returns the used quota of the month, over gRPC, and requires that task info agrees over HTTP.
func (s *modelled) usage(t testing.TB) int64 {
	t.Helper()
	status, err := aiv1.NewAiTasksServiceClient(s.Conn).GetAiStatus(s.Context(t, s.Token), &aiv1.GetAiStatusRequest{DeploymentId: s.DeploymentID})
	if err != nil {
		t.Fatal(err)
	}
	var info struct {
		RunsRemaining int64 `json:",string"`
	}
	decode(t, s.Get(t, fmt.Sprintf("/api/ai/%d/info", s.DeploymentID)), &info)
	month := status.GetMonth()
	if left := month.GetMaxAllowed() - month.GetUsed(); left != info.RunsRemaining || status.GetHour().GetUsed() != month.GetUsed() {
		t.Errorf("%v, but %d runs remain", status, info.RunsRemaining)
	}
	return month.GetUsed()
}

// shown is the assistant part of the only code finding, and the only issue.
func (s *modelled) shown(t testing.TB, id int64) (assistant, issue string) {
	t.Helper()
	var list struct {
		Findings []struct{ Assistant rawJSON }
	}
	decode(t, s.Get(t, "/api/v1/deployments/"+s.Slug+"/findings?issue_type=sast"), &list)
	if len(list.Findings) != 1 {
		t.Fatalf("%d findings", len(list.Findings))
	}
	return string(list.Findings[0].Assistant), s.Get(t, fmt.Sprintf("/api/agent/deployments/%d/issues/v2/%d", s.DeploymentID, id))
}

type rawJSON []byte

func (r *rawJSON) UnmarshalJSON(text []byte) error { *r = append(rawJSON(nil), text...); return nil }

// A failed analysis shows its reason in the finding, the issue and the task, and gives its quota back. The next
// analysis that succeeds removes the failure.
func TestFailureIsVisible(t *testing.T) {
	t.Parallel()
	var works atomic.Bool
	answer := func(r llmtest.Request) llmtest.Reply {
		if works.Load() {
			return fitting(r, says("true_positive"))
		}
		return llmtest.Status(http.StatusUnauthorized, "")
	}
	eachModelled(t, answer, func(c *config.Config) { c.AIInputPrice = 3 }, func(t *testing.T, s *modelled) {
		works.Store(false)
		id := s.seed(t, fact{})
		var created struct {
			GroupID   int64 `json:",string"`
			UsageInfo struct {
				Used string
			}
		}
		body := fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id)
		decode(t, s.task(t, body, http.StatusOK), &created)
		s.analysis(t, id)
		if used := s.usage(t); used != 0 || created.UsageInfo.Used != "1" {
			t.Errorf("%d used after the failure, %+v", used, created)
		}
		assistant, issue := s.shown(t, id)
		if !strings.Contains(assistant, `"failure":{"created_at":"20`) || !strings.Contains(assistant, "ai-key") {
			t.Errorf("finding: %s", assistant)
		}
		if !strings.Contains(issue, `"analysisFailure":{"createdAt":"20`) {
			t.Errorf("issue: %s", issue)
		}
		path := fmt.Sprintf("/api/ai/%d/combined_task/%d", s.DeploymentID, created.GroupID)
		task := s.Get(t, path)
		if !strings.Contains(task, `"analyses":{"pending":"0","done":"0","failed":"1"}`) || !strings.Contains(task, `"status":"ANALYSIS_STATUS_FAILED"`) || !strings.Contains(task, "ai-key") {
			t.Errorf("task: %s", task)
		}
		client, ctx := aiv1.NewAiTasksServiceClient(s.Conn), s.Context(t, s.Token)
		request := &aiv1.GetCombinedTaskRequest{DeploymentId: s.DeploymentID, GroupId: created.GroupID}
		if response, err := client.GetCombinedTask(ctx, request); err != nil {
			t.Error(err)
		} else {
			apitest.Same(t, response, task)
		}
		status := s.Get(t, fmt.Sprintf("/api/ai/%d/status", s.DeploymentID))
		if response, err := client.GetAiStatus(ctx, &aiv1.GetAiStatusRequest{DeploymentId: s.DeploymentID}); err != nil {
			t.Error(err)
		} else {
			apitest.Same(t, response, status)
		}
		for _, want := range []string{`"model":"test-model"`, `"disabledReason":""`, `"month":{"used":"0",`, `"failed":"1"`, `"failedAnalyses":[{`, fmt.Sprintf(`"tasks":[{"groupId":"%d","chains":["CHAIN_AUTOTRIAGE_WITH_`, created.GroupID)} {
			if !strings.Contains(status, want) {
				t.Errorf("status lacks %s: %s", want, status)
			}
		}

		works.Store(true)
		decode(t, s.task(t, body, http.StatusOK), &created)
		s.analysis(t, id)
		assistant, issue = s.shown(t, id)
		if strings.Contains(assistant, "failure") || strings.Contains(issue, "analysisFailure") || s.usage(t) != 1 {
			t.Errorf("after a success: %s, %s, %d used", assistant, issue, s.usage(t))
		}
		status = s.Get(t, fmt.Sprintf("/api/ai/%d/status", s.DeploymentID))
		task = s.Get(t, fmt.Sprintf("/api/ai/%d/combined_task/%d", s.DeploymentID, created.GroupID))
		if !strings.HasSuffix(status, `"costUsd":0.003}`) || !strings.Contains(task, `"inputTokens":"1000","outputTokens":"200","costUsd":0.003}`) {
			t.Errorf("costs: %s\n%s", status, task)
		}
	})
}

func TestWhoMaySeeATask(t *testing.T) {
	t.Parallel()
	eachModelled(t, always("true_positive"), nil, func(t *testing.T, s *modelled) {
		var created struct {
			GroupID int64 `json:",string"`
		}
		id := s.seed(t, fact{})
		decode(t, s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK), &created)
		s.analysis(t, id)
		other := s.AddTenant(t, "globex")
		reader := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "reader", Role: access.RoleReadOnly})
		for _, c := range []struct {
			token        string
			deploymentID int64
			group        int64
			want         int
		}{
			{s.Token, s.DeploymentID, created.GroupID, 200}, {s.Token, s.DeploymentID, created.GroupID + 1, 404}, {s.Token, s.DeploymentID, 0, 400},
			{reader, s.DeploymentID, created.GroupID, 403}, {other.Token, s.DeploymentID, created.GroupID, 404}, {other.Token, other.DeploymentID, created.GroupID, 404},
		} {
			path := fmt.Sprintf("/api/ai/%d/combined_task/%d", c.deploymentID, c.group)
			if got := s.Do(t, c.token, http.MethodGet, path, ""); got.Status != c.want {
				t.Errorf("%s: %d %s, want %d", path, got.Status, got.Body, c.want)
			}
		}
	})
}

// Work whose job was cancelled, discarded or deleted ends with a reason, and gives its quota back.
func TestAbandonedWork(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := startModelled(t, func(llmtest.Request) llmtest.Reply { return llmtest.Status(http.StatusServiceUnavailable, "") }, on)
		h := hosttest.NewGitHub(t)
		h.Files = hosttest.Files{"main:app/db.py": vulnerable}
		s.connect(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "acme", h.Token, "acme/web")
		id := s.seed(t, fact{})
		order := func() {
			t.Helper()
			s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK)
			s.autofix(t, id)
			apitest.Eventually(t, "both jobs wait for a retry", func() bool {
				return s.count(t, "river_job WHERE kind IN ('ai_analysis', 'ai_fix') AND state = 'retryable'") == 2
			})
			if used := s.usage(t); used != 2 {
				t.Fatalf("%d used", used)
			}
			if status := s.status(t); strings.Count(status, "the model's API is failing (status 503)") != 2 || strings.Count(status, `"finishedAt"`) != strings.Count(status, "lost") {
				t.Errorf("while both are retried: %s", status)
			}
		}
		requireEnded := func() {
			t.Helper()
			const reason = "its background job was stopped or lost"
			a, f := s.analysis(t, id), s.fix(t, id)
			assistant, issue := s.shown(t, id)
			_, content := s.finding(t, id)
			failures := content.GetClickToFixFailures()
			if a.Status != "failed" || a.Error != reason || f.Status != "failed" || f.Error != reason || !strings.Contains(assistant, reason) ||
				len(failures) == 0 || failures[len(failures)-1].GetReason() != reason {
				t.Errorf("%+v, %+v, %s, %v", a, f, assistant, failures)
			}
			if !strings.Contains(issue, `"fixFailure":{"createdAt":"20`) {
				t.Errorf("issue: %s", issue)
			}
			if used := s.usage(t); used != 0 {
				t.Errorf("%d used", used)
			}
		}

		order()
		now := "'" + time.Now().UTC().Format("2006-01-02 15:04:05.000") + "'"
		s.exec(t, "UPDATE river_job SET state = 'discarded', finalized_at = "+now+" WHERE kind = 'ai_analysis'")
		s.exec(t, "UPDATE river_job SET state = 'cancelled', finalized_at = "+now+" WHERE kind = 'ai_fix'")
		s.swept(t)
		requireEnded()

		order()
		s.exec(t, "UPDATE ai_analyses SET created_at = created_at - 90000000000 WHERE status = 'pending'")
		s.exec(t, "UPDATE ai_fixes SET requested_at = requested_at - 90000000000 WHERE status = 'requested'")
		if err := ai.EndStale(t.Context(), s.Store); err != nil {
			t.Fatal(err)
		}
		if n := s.count(t, "ai_analyses WHERE status = 'pending'") + s.count(t, "ai_fixes WHERE status = 'requested'"); n != 2 {
			t.Errorf("work with a job has ended: %d left", n)
		}
		s.exec(t, "DELETE FROM river_job WHERE kind IN ('ai_analysis', 'ai_fix')")
		if err := ai.EndStale(t.Context(), s.Store); err != nil {
			t.Fatal(err)
		}
		requireEnded()
	})
}

// The explanation of a rule is its help, or else what the model says.
func TestRuleExplanation(t *testing.T) {
	t.Parallel()
	eachModelled(t, always("false_positive"), nil, func(t *testing.T, s *modelled) {
		id := s.seed(t, fact{})
		if assistant, _ := s.shown(t, id); assistant != "{}" {
			t.Errorf("before: %s", assistant)
		}
		s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK)
		s.analysis(t, id)
		const said = `{"explanation":"Input in a query can change what it does.","summary":"Finds queries built from input."}`
		assistant, issue := s.shown(t, id)
		if !strings.Contains(assistant, `"rule_explanation":`+said) || !strings.Contains(issue, `"summary":"Finds queries built from input.","explanation":"Input in`) {
			t.Errorf("of the model: %s, %s", assistant, issue)
		}

		help := "# Injection\n" + strings.Repeat("long ", 1000)
		about, err := proto.Marshal(&findingsv1.FindingRule{Name: "py.sqli", Message: "Query built from input", Help: help})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Rule.UpdateOneID(s.ruleID).SetContent(about).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		assistant, issue = s.shown(t, id)
		if !strings.Contains(assistant, `"rule_explanation":{"explanation":"# Injection\nlong long`) || !strings.Contains(assistant, `…","summary":"Query built from input"}`) {
			t.Errorf("of the rule: %s", assistant)
		}
		if !strings.Contains(issue, `"ruleExplanation":{"id":"","summary":"Query built from input","explanation":"# Injection\nlong`) ||
			!strings.Contains(issue, strings.Repeat("long ", 999)+`long"}`) {
			t.Errorf("of the rule: %s", issue)
		}
		s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d],"regenerate":true}}`, id), http.StatusOK)
		s.analysis(t, id)
		asked := s.model.Requests()
		if first, second := asked[0].Body, asked[1].Body; !strings.Contains(string(first), "rule_summary") || strings.Contains(string(second), "rule_summary") {
			t.Error("the model explains rules that have a help text, or does not explain others")
		}
		shown, err := findingsv1.NewFindingsServiceClient(s.Conn).ListFindings(s.Context(t, s.Token), &findingsv1.ListFindingsRequest{DeploymentSlug: s.Slug, IssueType: []string{"sast"}})
		if err != nil || !strings.HasPrefix(shown.GetFindings()[0].GetAssistant().GetRuleExplanation().GetExplanation(), "# Injection") {
			t.Errorf("%v, %v", shown, err)
		}
	})
}
