package ai_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/aimemoryuse"
	"github.com/palisade/palisade/ent/finding"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/llm/llmtest"
	"github.com/palisade/palisade/services/internal/store"
)

func TestCombinedTask(t *testing.T) {
	t.Parallel()
	eachModelled(t, always("false_positive"), nil, func(t *testing.T, s *modelled) {
		first, second := s.seed(t, fact{}), s.seed(t, fact{kind: "ai_sast"})
		body := fmt.Sprintf(`{"deploymentId":"%d","task":{"deploymentId":"%[1]d","issueIds":["%d","%d"]}}`, s.DeploymentID, first, second)
		apitest.Golden(t, "combined_task", s.task(t, body, http.StatusOK))
		a := s.analysis(t, first)
		if a.Status != "done" || a.Verdict != "false_positive" || !a.Applied || a.InputTokens != 1000 || a.Model != llmtest.Model || a.Error != "" {
			t.Errorf("analysis %+v", a)
		}
		row, content := s.finding(t, first)
		if row.Status != "provisionally_ignored" || *row.AutotriageVerdict != "false_positive" || content.GetAssistant().GetAutotriage().GetReason() != "name comes from a constant" {
			t.Errorf("finding %+v, %v", row, content.GetAssistant())
		}
		if content.GetAssistant().GetAutofix() != nil || content.GetAssistant().GetComponent() != nil {
			t.Errorf("a fix of a false positive, or what was not asked for: %v", content.GetAssistant())
		}
		if got := s.events(t, first); got != "autotriaged open>provisionally_ignored by job" {
			t.Error(got)
		}
		s.analysis(t, second)
		if row, _ := s.finding(t, second); row.Status != "open" || *row.AutotriageVerdict != "false_positive" {
			t.Errorf("what AI detection found stays open, got %s", row.Status)
		}
		apitest.Golden(t, "combined_task_again", s.task(t, body, http.StatusOK))
		var again struct{ NumAnalyzed string }
		decode(t, s.task(t, strings.Replace(body, `"issueIds"`, `"regenerate":true,"issueIds"`, 1), http.StatusOK), &again)
		if again.NumAnalyzed != "2" {
			t.Errorf("regenerate analysed %s", again.NumAnalyzed)
		}
		s.analysis(t, first)
		s.analysis(t, second)
		if got := s.events(t, first); got != "autotriaged open>provisionally_ignored by job" {
			t.Errorf("the same verdict is no event: %s", got)
		}
		apitest.Golden(t, "task_info", s.Get(t, fmt.Sprintf("/api/ai/%d/info", s.DeploymentID)))
	})
}

func TestTruePositiveWithEverything(t *testing.T) {
	t.Parallel()
	eachModelled(t, always("true_positive"), nil, func(t *testing.T, s *modelled) {
		id := s.seed(t, fact{})
		response, err := aiv1.NewAiTasksServiceClient(s.Conn).CreateCombinedTask(s.Context(t, s.Token), &aiv1.CreateCombinedTaskRequest{
			DeploymentId: s.DeploymentID, Filter: &findingsv1.IssuesFilter{},
			Task: &aiv1.Task{Chains: []aiv1.Chain{aiv1.Chain_CHAIN_ISSUE_TAGS, aiv1.Chain_CHAIN_AUTOTRIAGE_WITH_GUIDANCE_AND_AUTOFIX}},
		})
		if err != nil || response.GetNumAnalyzed() != 1 || len(response.GetFailures()) != 0 {
			t.Fatalf("%v, %v", response, err)
		}
		s.analysis(t, id)
		row, content := s.finding(t, id)
		said := content.GetAssistant()
		if row.Status != "open" || *row.ComponentTag != "user data" || said.GetComponent().GetRisk() != "high" || said.GetGuidance().GetSummary() == "" ||
			said.GetAutofix().GetFixCode() != `cur.execute("SELECT ?", [name])` || said.GetAutotriage().GetVerdict() != "true_positive" {
			t.Errorf("%s %v", row.Status, said)
		}
		asked := s.model.Requests()[0]
		if !strings.Contains(asked.Prompt, `cur.execute("SELECT " + name)`) || asked.Format != "json_schema" || !asked.Strict {
			t.Errorf("asked %s", asked.Body)
		}
	})
}

// An analysis blocks another one for the same parts only.
func TestOtherChains(t *testing.T) {
	t.Parallel()
	eachModelled(t, always("true_positive"), nil, func(t *testing.T, s *modelled) {
		id := s.seed(t, fact{})
		for _, c := range []struct{ chain, analysed string }{
			{"CHAIN_ISSUE_TAGS", "1"}, {"CHAIN_AUTOTRIAGE", "1"}, {"CHAIN_ISSUE_TAGS", "0"}, {"CHAIN_AUTOTRIAGE", "0"},
			{"CHAIN_AUTOTRIAGE_WITH_GUIDANCE_AND_AUTOFIX", "1"}, {"CHAIN_AUTOTRIAGE", "0"},
		} {
			var answer struct{ NumAnalyzed string }
			decode(t, s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d],"chains":[%q]}}`, id, c.chain), http.StatusOK), &answer)
			if answer.NumAnalyzed != c.analysed {
				t.Errorf("%s: %s analysed, want %s", c.chain, answer.NumAnalyzed, c.analysed)
			}
			s.analysis(t, id)
		}
	})
}

func TestPeopleAreNotOverruled(t *testing.T) {
	t.Parallel()
	eachModelled(t, always("false_positive"), nil, func(t *testing.T, s *modelled) {
		triaged := map[int64]string{}
		for _, state := range []string{"ignored", "reviewing", "fixing", "reopened", "provisionally_ignored"} {
			id := s.seed(t, fact{print: state})
			s.call(t, http.MethodPost, "/api/v1/deployments/"+s.Slug+"/triage",
				fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":%q}`, id, state), http.StatusOK)
			row, _ := s.finding(t, id)
			triaged[id] = row.Status
		}
		fixed, muted := s.seed(t, fact{state: "fixed"}), s.seed(t, fact{state: "muted"})
		triaged[fixed], triaged[muted] = "fixed", "ignored"
		for id := range triaged {
			s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d],"chains":["CHAIN_AUTOTRIAGE"]}}`, id), http.StatusOK)
		}
		for id, before := range triaged {
			a := s.analysis(t, id)
			row, content := s.finding(t, id)
			if row.Status != before || a.Applied || content.GetAssistant().GetAutotriage().GetVerdict() != "false_positive" {
				t.Errorf("finding %d was %s and is %s (%+v)", id, before, row.Status, a)
			}
		}
	})
}

func TestVerdictIsTakenBack(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := startModelled(t, llmtest.Script(llmtest.JSON(map[string]any{"verdict": "false_positive", "reason": "a", "memory_ids": []string{}}),
			llmtest.JSON(map[string]any{"verdict": "true_positive", "reason": "b", "memory_ids": []string{}})), on)
		id := s.seed(t, fact{})
		for _, want := range []string{"provisionally_ignored", "open"} {
			s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d],"regenerate":true,"chains":["CHAIN_AUTOTRIAGE"]}}`, id), http.StatusOK)
			s.analysis(t, id)
			if row, _ := s.finding(t, id); row.Status != want || (row.TriagedAt != nil) != (want != "open") {
				t.Errorf("status %s, want %s", row.Status, want)
			}
		}
		if got := s.events(t, id); got != "autotriaged open>provisionally_ignored by job, autotriaged provisionally_ignored>open by job" {
			t.Error(got)
		}
	})
}

func TestRefusedTasks(t *testing.T) {
	t.Parallel()
	eachModelled(t, always("false_positive"), nil, func(t *testing.T, s *modelled) {
		id, removed := s.seed(t, fact{}), s.seed(t, fact{state: "removed"})
		other := s.AddTenant(t, "globex")
		otherProject, otherRule := s.ground(t, other, "")
		foreign := s.seedIn(t, other, otherProject, otherRule, fact{})
		for _, c := range []struct {
			body   string
			status int
		}{
			{`{}`, 400}, {`{"task":{}}`, 400}, {`{"task":{"issueIds":["x"]}}`, 400}, {`{"task":{"issueIds":[0]}}`, 400},
			{`{"task":{"issueIds":[999999]}}`, 404}, {fmt.Sprintf(`{"task":{"issueIds":[%d,%d]}}`, id, foreign), 404}, {fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, removed), 404},
			{fmt.Sprintf(`{"task":{"deploymentId":"%d","issueIds":[%d]}}`, other.DeploymentID, id), 400},
			{fmt.Sprintf(`{"task":{"issueIds":[%d],"chains":["CHAIN_TELEPATHY"]}}`, id), 400},
			{fmt.Sprintf(`{"task":{"issueIds":[%d],"memory":{"id":"999","content":"db is safe"}}}`, id), 404},
			{fmt.Sprintf(`{"task":{"issueIds":[%d],"memory":{"id":"seven","content":"db is safe"}}}`, id), 400},
		} {
			s.task(t, c.body, c.status)
		}
		if n := s.Store.Reader.AiAnalysis.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d analyses of refused tasks", n)
		}
		if len(s.model.Requests()) != 0 {
			t.Error("the model was asked")
		}
		if answer := s.Do(t, other.Token, http.MethodPost, fmt.Sprintf("/api/ai/%d/combined_task", s.DeploymentID), `{"filter":{}}`); answer.Status != http.StatusNotFound {
			t.Errorf("another tenant: %d", answer.Status)
		}
		reader := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "reader", Role: access.RoleReadOnly})
		if answer := s.Do(t, reader, http.MethodPost, fmt.Sprintf("/api/ai/%d/combined_task", s.DeploymentID), `{"filter":{}}`); answer.Status != http.StatusForbidden {
			t.Errorf("a reader: %d", answer.Status)
		}
	})
}

func TestWithoutModel(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, bare *apitest.Server) {
		s := &modelled{Server: bare}
		s.projectID, s.ruleID = s.ground(t, s.Tenant, "")
		id := s.seed(t, fact{})
		body := s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusBadRequest)
		if !strings.Contains(body, "ai-url") || !strings.Contains(body, "ai-model") || !strings.Contains(body, "FAILED_PRECONDITION") {
			t.Error(body)
		}
		if n := s.Store.Reader.AiAnalysis.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d analyses", n)
		}
		apitest.Golden(t, "task_info_without_model", s.Get(t, fmt.Sprintf("/api/ai/%d/info", s.DeploymentID)))
	})
}

func TestQuotaIsRaceSafe(t *testing.T) {
	t.Parallel()
	eachModelled(t, always("true_positive"), func(c *config.Config) { c.AIMonthlyRuns = 5 }, func(t *testing.T, s *modelled) {
		ids := make([]int64, 12)
		for i := range ids {
			ids[i] = s.seed(t, fact{print: fmt.Sprint(i)})
		}
		var group sync.WaitGroup
		answers := make([]apitest.Answer, 6)
		for i := range answers {
			group.Go(func() {
				answers[i] = s.Do(t, s.Token, http.MethodPost, fmt.Sprintf("/api/ai/%d/combined_task", s.DeploymentID),
					fmt.Sprintf(`{"task":{"issueIds":[%d,%d]}}`, ids[2*i], ids[2*i+1]))
			})
		}
		group.Wait()
		taken := 0
		for _, a := range answers {
			switch a.Status {
			case http.StatusOK:
				taken++
			case http.StatusTooManyRequests:
				if !strings.Contains(a.Body, "quota of 5 analyses a month") || !strings.Contains(a.Body, "resets at") || a.Header.Get("Retry-After") == "" {
					t.Errorf("%s %v", a.Body, a.Header)
				}
			default:
				t.Errorf("%d %s", a.Status, a.Body)
			}
		}
		if n := s.Store.Reader.AiAnalysis.Query().CountX(s.System(t)); taken != 2 || n != 4 {
			t.Errorf("%d tasks were taken, with %d analyses", taken, n)
		}
		if info := s.Get(t, fmt.Sprintf("/api/ai/%d/info", s.DeploymentID)); !strings.Contains(info, `"runsRemaining":"1"`) {
			t.Error(info)
		}
	})
}

func TestFailureReasons(t *testing.T) {
	t.Parallel()
	eachModelled(t, always("true_positive"), nil, func(t *testing.T, s *modelled) {
		bare := code("")
		local := proto.Clone(bare).(*storev1.FindingContent)
		local.Commit = ""
		noCommit, here := s.seed(t, fact{content: local}), s.seed(t, fact{content: bare})
		type failed struct {
			Failures []struct{ IssueParentID, Reason, Message string }
		}
		reason := func(id int64) string {
			t.Helper()
			var answer failed
			decode(t, s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK), &answer)
			if len(answer.Failures) != 1 || answer.Failures[0].Message == "" {
				t.Fatalf("%+v", answer)
			}
			return strings.TrimPrefix(answer.Failures[0].Reason, "ANALYSIS_FAILURE_REASON_")
		}
		if got := reason(noCommit); got != "LOCAL_SCAN" {
			t.Errorf("without a commit: %s", got)
		}
		if got := reason(here); got != "NO_SCM_CONFIGURED" {
			t.Errorf("without a connection: %s", got)
		}
		scopes, _ := proto.Marshal(&scmv1.ScmTokenScopes{ReadMetadata: true})
		for _, c := range []struct {
			want   string
			change func(*ent.ScmConfigUpdate)
		}{
			{"SCM_DISCONNECTED", func(u *ent.ScmConfigUpdate) {}}, // no credential
			{"SCM_DISCONNECTED", func(u *ent.ScmConfigUpdate) {
				u.SetAccessToken([]byte("sealed")).SetCheckedAt(1).SetCheckOk(false).SetCheckError("revoked")
			}},
			{"NO_CODE_ACCESS", func(u *ent.ScmConfigUpdate) { u.SetCheckOk(true).SetTokenScopes(scopes) }},
			{"SCM_DISCONNECTED", func(u *ent.ScmConfigUpdate) { u.SetSuspended(true).SetScmAppID(1) }},
			{"SCM_NOT_SUPPORTED", func(u *ent.ScmConfigUpdate) { u.SetType("SCM_TYPE_BITBUCKET_DATACENTER") }},
		} {
			err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				if n, err := tx.ScmConfig.Query().Count(ctx); err != nil || n == 0 {
					err := tx.ScmConfig.Create().SetDeploymentID(s.DeploymentID).SetType("SCM_TYPE_GITLAB_SELFMANAGED").SetNamespace("acme").
						SetBaseURL("https://git.acme.test").SetCreatedAt(1).SetUpdatedAt(1).Exec(ctx)
					if err != nil {
						return err
					}
				}
				u := tx.ScmConfig.Update().SetUpdatedAt(2)
				c.change(u)
				return u.Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := reason(here); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		}
	})
}

func TestMemories(t *testing.T) {
	t.Parallel()
	eachModelled(t, func(r llmtest.Request) llmtest.Reply {
		said := says("true_positive")
		if strings.Contains(r.Prompt, "constants only") {
			said = says("false_positive")
			said["memory_ids"] = []string{"1", "2", "3"}
		}
		return fitting(r, said)
	}, nil, func(t *testing.T, s *modelled) {
		id := s.seed(t, fact{})
		s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK)
		s.analysis(t, id)
		trial := fmt.Sprintf(`{"task":{"issueIds":[%d],"memory":{"content":"name is made of constants only"}}}`, id)
		s.task(t, trial, http.StatusOK)
		a := s.analysis(t, id)
		row, _ := s.finding(t, id)
		if !a.Trial || a.Verdict != "false_positive" || a.Applied || *row.AutotriageVerdict != "true_positive" || row.Status != "open" {
			t.Errorf("a trial changed the finding: %+v, %s", a, row.Status)
		}
		var memoryID int64
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			m, err := tx.AiMemory.Create().SetDeploymentID(s.DeploymentID).SetContent("In app/ names are constants only.").SetRuleID(s.ruleID).
				SetContext([]string{"TRIAGE"}).SetPathPrefixes([]string{"app"}).SetStage("live").SetCreatedAt(store.Now()).SetUpdatedAt(store.Now()).Save(ctx)
			if err != nil {
				return err
			}
			memoryID = m.ID
			return tx.AiMemory.Create().SetDeploymentID(s.DeploymentID).SetContent("not about this").SetContext([]string{}).SetPathPrefixes([]string{"lib"}).
				SetStage("live").SetCreatedAt(store.Now()).SetUpdatedAt(store.Now()).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d],"regenerate":true}}`, id), http.StatusOK)
		a = s.analysis(t, id)
		row, _ = s.finding(t, id)
		uses := s.Store.Reader.AiMemoryUse.Query().Where(aimemoryuse.AnalysisID(a.ID)).AllX(s.System(t))
		if row.Status != "provisionally_ignored" || len(uses) != 1 || uses[0].MemoryID != memoryID || !uses[0].Referenced {
			t.Errorf("%s, uses %v", row.Status, uses)
		}
		asked := s.model.Requests()
		if strings.Contains(asked[len(asked)-1].Prompt, "not about this") {
			t.Error("a memory out of scope is in the prompt")
		}
	})
}

func TestFailedAnalysis(t *testing.T) {
	t.Parallel()
	eachModelled(t, func(llmtest.Request) llmtest.Reply { return llmtest.Status(http.StatusUnauthorized, "") }, nil, func(t *testing.T, s *modelled) {
		id := s.seed(t, fact{})
		s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK)
		a := s.analysis(t, id)
		row, content := s.finding(t, id)
		if a.Status != "failed" || !strings.Contains(a.Error, "ai-key") || strings.ContainsAny(a.Error, "\n") || row.AutotriageVerdict != nil || content.GetAssistant().GetAutotriage() != nil {
			t.Errorf("%+v", a)
		}
		var again struct{ NumAnalyzed string }
		decode(t, s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK), &again)
		if again.NumAnalyzed != "1" {
			t.Error("a failed analysis stands in the way of another")
		}
		s.analysis(t, id)
	})
}

func TestLateVerdict(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"changed", "fixed"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			answerNow, asked := make(chan struct{}), make(chan struct{}, 9)
			eachHeld := func(r llmtest.Request) llmtest.Reply {
				asked <- struct{}{}
				return llmtest.After(answerNow, fitting(r, says("false_positive")))
			}
			s := startModelled(t, eachHeld, nil)
			id := s.seed(t, fact{})
			s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK)
			<-asked
			if body := s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d],"regenerate":true}}`, id), http.StatusOK); !strings.Contains(body, "under way") {
				t.Error(body)
			}
			err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				u := tx.Finding.Update().Where(finding.ID(id))
				if what == "fixed" {
					return u.SetState("fixed").SetStatus("fixed").Exec(ctx)
				}
				return u.SetContentHash(2).Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
			before, _ := s.finding(t, id)
			close(answerNow)
			a := s.analysis(t, id)
			row, _ := s.finding(t, id)
			if row.Status != before.Status || row.TriageState != "untriaged" || a.Verdict != "false_positive" || a.Applied || *row.AutotriageVerdict != "false_positive" {
				t.Errorf("%s %s, %+v", row.Status, row.TriageState, a)
			}
			if n := s.Store.Reader.AiAnalysis.Query().Where(aianalysis.FindingID(id)).CountX(s.System(t)); n != 1 {
				t.Errorf("%d analyses", n)
			}
		})
	}
}
