package ai_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/palisade/palisade/ent"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/llm/llmtest"
	"github.com/palisade/palisade/services/internal/store"
)

// status returns the status of the deployment, which is the same over both wires.
func (s *modelled) status(t testing.TB) string {
	t.Helper()
	body := s.Get(t, fmt.Sprintf("/api/ai/%d/status", s.DeploymentID))
	response, err := aiv1.NewAiTasksServiceClient(s.Conn).GetAiStatus(s.Context(t, s.Token), &aiv1.GetAiStatusRequest{DeploymentId: s.DeploymentID})
	if err != nil {
		t.Fatal(err)
	}
	apitest.Same(t, response, body)
	return body
}

// ordered orders the analysis of a finding and returns the path of the task.
func (s *modelled) ordered(t testing.TB, id int64) string {
	t.Helper()
	var created struct {
		GroupID int64 `json:",string"`
	}
	decode(t, s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK), &created)
	return fmt.Sprintf("/api/ai/%d/combined_task/%d", s.DeploymentID, created.GroupID)
}

// attempted waits until an analysis waits for a retry after some attempts.
func (s *modelled) attempted(t testing.TB, attempts int) {
	t.Helper()
	apitest.Eventually(t, "the analysis waits for a retry", func() bool {
		return s.count(t, fmt.Sprintf("river_job WHERE kind = 'ai_analysis' AND state = 'retryable' AND attempt = %d", attempts)) == 1
	})
}

// retry begins the next attempt at once; last: it has no other after it.
func (s *modelled) retry(t testing.TB, last bool) {
	t.Helper()
	change := "UPDATE river_job SET state = 'available', scheduled_at = '2026-01-01 00:00:00'"
	if last {
		change += ", max_attempts = attempt + 1"
	}
	s.exec(t, change+" WHERE kind = 'ai_analysis' AND state = 'retryable'")
}

// While an analysis is retried, the task and the status show the error of the last attempt. The analysis costs what all
// attempts cost. It fails with the error of the last attempt.
func TestRetriedAnalysis(t *testing.T) {
	t.Parallel()
	const wrong, limited, works = 0, 1, 2
	var state atomic.Int32
	var one sync.Mutex // both databases share the state of the model
	answer := func(r llmtest.Request) llmtest.Reply {
		switch state.Load() {
		case wrong:
			return llmtest.Text(`{"secret":"of the model"}`).Tokens(1000, 200)
		case limited:
			return llmtest.Status(http.StatusTooManyRequests, "0")
		}
		return fitting(r, says("true_positive"))
	}
	eachModelled(t, answer, func(c *config.Config) { c.AIInputPrice = 3 }, func(t *testing.T, s *modelled) {
		const mismatch, limit = "the model's answer does not match the schema, even after a second call", "limits the rate of requests (status 429)"
		one.Lock()
		defer one.Unlock()
		state.Store(wrong)
		id := s.seed(t, fact{})
		task := s.ordered(t, id)
		require := func(after string, want ...string) {
			t.Helper()
			body, status := s.Get(t, task), s.status(t)
			for _, text := range want {
				if !strings.Contains(body, text) || !strings.Contains(status, text) || strings.Contains(body+status, "of the model") {
					t.Errorf("%s: no %s in %s\n%s", after, text, body, status)
				}
			}
		}
		s.attempted(t, 2) // the first retry follows after a second
		require("the second attempt", `"status":"ANALYSIS_STATUS_PENDING"`, mismatch, `"inputTokens":"4000","outputTokens":"800","costUsd":0.012}`)

		state.Store(limited)
		s.retry(t, false)
		s.attempted(t, 3)
		require("the third attempt", limit, `"inputTokens":"4000","outputTokens":"800","costUsd":0.012}`)

		state.Store(works)
		s.retry(t, false)
		s.analysis(t, id)
		body, status := s.Get(t, task), s.status(t)
		if !strings.Contains(body, `"error":""`) || !strings.Contains(body, `"inputTokens":"5000","outputTokens":"1000","costUsd":0.015}`) ||
			!strings.Contains(status, `"failedAnalyses":[]`) || !strings.HasSuffix(status, `"costUsd":0.015}`) {
			t.Errorf("after the success: %s\n%s", body, status)
		}

		state.Store(limited)
		other := s.seed(t, fact{})
		task = s.ordered(t, other)
		s.attempted(t, 2)
		s.retry(t, true)
		a := s.analysis(t, other)
		if a.Status != "failed" || !strings.Contains(a.Error, limit) || s.usage(t) != 1 {
			t.Errorf("after the last attempt: %+v, %d used", a, s.usage(t))
		}
		if body, status := s.Get(t, task), s.status(t); !strings.Contains(body, limit) || !strings.Contains(status, limit) {
			t.Errorf("after the last attempt: %s\n%s", body, status)
		}
	})
}

// Callers who see no analysis of a task do not see the task.
func TestTaskOfAHiddenProject(t *testing.T) {
	t.Parallel()
	eachModelled(t, always("true_positive"), nil, func(t *testing.T, s *modelled) {
		var hidden int64
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			p, err := tx.Project.Create().SetDeploymentID(s.DeploymentID).SetName("acme/hidden").SetNameKey("acme/hidden").SetCreatedAt(1).Save(ctx)
			if err == nil {
				hidden = p.ID
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		mia := memberOf(t, s.Server, s.projectID)
		shown, secret := s.seed(t, fact{}), s.seedIn(t, s.Tenant, hidden, s.ruleID, fact{})
		for id, want := range map[int64]int{shown: http.StatusOK, secret: http.StatusNotFound} {
			task := s.ordered(t, id)
			s.Get(t, task)
			if got := s.Do(t, mia, http.MethodGet, task, ""); got.Status != want {
				t.Errorf("a member: %d %s, want %d", got.Status, got.Body, want)
			}
			s.analysis(t, id)
		}
	})
}

// Deleting a project gives back neither the quota nor the cost of its analyses and fixes, and keeps nothing that they
// say. Callers who see all projects still see the task.
func TestQuotaOfADeletedProject(t *testing.T) {
	t.Parallel()
	eachModelled(t, always("true_positive"), func(c *config.Config) { c.AIInputPrice = 3 }, func(t *testing.T, s *modelled) {
		id := s.seed(t, fact{})
		task := s.ordered(t, id)
		s.analysis(t, id)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			for _, status := range []string{"opened", "failed"} {
				err := tx.AiFix.Create().SetDeploymentID(s.DeploymentID).SetFindingID(id).SetStatus(status).SetPrURL("https://git.acme.test/1").
					SetActorKind("user").SetActorID(1).SetRequestedAt(store.Now()).Exec(ctx)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		mia := memberOf(t, s.Server, s.projectID)
		if used := s.usage(t); used != 2 {
			t.Errorf("%d used before", used)
		}
		s.call(t, http.MethodDelete, "/api/v1/deployments/"+s.Slug+"/projects/acme/web", "", http.StatusOK)
		if used := s.usage(t); used != 2 {
			t.Errorf("%d used after", used)
		}
		if status := s.status(t); !strings.HasSuffix(status, `"costUsd":0.003}`) || !strings.Contains(status, `"failedFixes":[]`) {
			t.Errorf("status: %s", status)
		}
		if body := s.Get(t, task); !strings.Contains(body, `"issueId":"0","status":"ANALYSIS_STATUS_DONE","verdict":"","error":""`) {
			t.Errorf("task: %s", body)
		}
		if got := s.Do(t, mia, http.MethodGet, task, ""); got.Status != http.StatusNotFound {
			t.Errorf("a member: %d %s", got.Status, got.Body)
		}
		if n := s.count(t, "ai_analyses WHERE finding_id <> 0 OR result IS NOT NULL") + s.count(t, "ai_fixes WHERE finding_id <> 0 OR pr_url <> ''"); n != 0 {
			t.Errorf("%d rows say something about the finding", n)
		}
	})
}
