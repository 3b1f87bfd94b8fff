package ai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/llm/llmtest"
)

// fixPattern orders a correction without a credential, and returns the token.
func (s *modelled) fixPattern(t *testing.T, pattern, language string) string {
	t.Helper()
	var out struct{ TaskTokenJwt string }
	answer := s.Body(t, "", http.MethodPost, "/api/ai/pattern_fix", fmt.Sprintf(`{"pattern":%q,"language":%q}`, pattern, language), http.StatusOK)
	if err := json.Unmarshal([]byte(answer), &out); err != nil || out.TaskTokenJwt == "" {
		t.Fatal(answer, err)
	}
	return out.TaskTokenJwt
}

// patternResult waits for the end of a correction.
func (s *modelled) patternResult(t *testing.T, token string) (result string) {
	t.Helper()
	apitest.Eventually(t, "the correction ends", func() bool {
		result = s.Get(t, "/api/tasks/v2/"+token)
		return !strings.Contains(result, "TASK_STATUS_IN_PROGRESS")
	})
	return result
}

func withPatternFixes(daily int) func(*config.Config) {
	return func(c *config.Config) { c.PatternFixDaily = daily }
}

func patternReply(pattern string) llmtest.Reply {
	return llmtest.JSON(map[string]any{"pattern": pattern})
}

// TestPatternFix: anybody orders a correction, and everybody with the token and a credential gets it.
func TestPatternFix(t *testing.T) {
	t.Parallel()
	const file = "rules:\n- id: x\n  languages: [go]\n  message: m\n  severity: ERROR\n  pattern: f(...)\n"
	answer := func(r llmtest.Request) llmtest.Reply {
		if strings.Contains(r.Prompt, "severity: BAD") {
			return patternReply(file)
		}
		return patternReply("exec(...)\n")
	}
	eachModelled(t, answer, withPatternFixes(100), func(t *testing.T, s *modelled) {
		token := s.fixPattern(t, "exec(. ..", "py")
		want := `{"taskResult":{"status":"TASK_STATUS_COMPLETED","resultString":"exec(...)"},"status":"TASK_STATUS_COMPLETED"}`
		if got := s.patternResult(t, token); got != want {
			t.Errorf("got %s", got)
		}
		asked := s.model.Requests()[0]
		if !strings.Contains(asked.Prompt, "exec(. ..") || !strings.Contains(asked.Prompt, "python") || strings.Contains(asked.System, "exec(. ..") || asked.MaxTokens == 0 {
			t.Errorf("asked %+v", asked)
		}
		other := s.AddTenant(t, "umbrella")
		if got := s.Body(t, other.Token, http.MethodGet, "/api/tasks/v2/"+token, "", http.StatusOK); got != want {
			t.Errorf("another deployment got %s", got)
		}
		s.Body(t, "", http.MethodGet, "/api/tasks/v2/"+token, "", http.StatusUnauthorized)
		s.Body(t, s.Token, http.MethodGet, "/api/tasks/v2/"+token[:len(token)-4], "", http.StatusNotFound)

		ordered, err := aiv1.NewAiTasksServiceClient(s.Conn).CreatePatternFixTask(t.Context(), &aiv1.CreatePatternFixTaskRequest{Pattern: strings.Replace(file, "ERROR", "BAD", 1)})
		if err != nil {
			t.Fatal(err)
		}
		s.patternResult(t, ordered.GetTaskTokenJwt())
		result, err := platformv1.NewTasksServiceClient(s.Conn).GetTaskResult(s.Context(t, s.Token), &platformv1.GetTaskResultRequest{TaskTokenJwt: ordered.GetTaskTokenJwt()})
		if err != nil || result.GetTaskResult().GetResultString()+"\n" != file {
			t.Errorf("the file is %v, %v", result, err)
		}
	})
}

// TestPatternFixFailures: a pattern that the parser refuses is tried again, and is no result.
func TestPatternFixFailures(t *testing.T) {
	t.Parallel()
	answer := func(r llmtest.Request) llmtest.Reply {
		switch {
		case strings.Contains(r.Prompt, "rejected"):
			return llmtest.Status(http.StatusUnauthorized, "")
		case strings.Contains(r.Prompt, "empty"):
			return patternReply("")
		}
		return patternReply("rules: [{id: other}]")
	}
	eachModelled(t, answer, withPatternFixes(100), func(t *testing.T, s *modelled) {
		for pattern, text := range map[string]string{
			"empty(":    "the model proposes no valid pattern",
			"invalid(":  "the model proposes no valid pattern",
			"rejected(": "the language model gave no answer: its operator finds the reason in the server's log",
		} {
			want := fmt.Sprintf(`{"taskResult":{"status":"TASK_STATUS_FAILED","resultString":%q},"status":"TASK_STATUS_FAILED"}`, text)
			if got := s.patternResult(t, s.fixPattern(t, pattern, "python")); got != want {
				t.Errorf("%s: %s", pattern, got)
			}
		}
	})
}

// TestPatternFixLimits: off by default, for valid requests only, and bounded by address and day.
func TestPatternFixLimits(t *testing.T) {
	t.Parallel()
	answer := func(llmtest.Request) llmtest.Reply { return patternReply("exec(...)") }
	const body = `{"pattern":"exec(","language":"python"}`
	eachModelled(t, answer, nil, func(t *testing.T, s *modelled) {
		if got := s.Body(t, "", http.MethodPost, "/api/ai/pattern_fix", body, http.StatusBadRequest); !strings.Contains(got, "pattern-fix-daily") {
			t.Errorf("while it is off: %s", got)
		}
	})
	eachModelled(t, answer, withPatternFixes(100), func(t *testing.T, s *modelled) {
		for body, field := range map[string]string{
			`{"language":"python"}`:               "pattern",
			`{"pattern":"exec("}`:                 "language",
			`{"pattern":"exec(","language":"??"}`: "allowed are",
			`{"pattern":"` + strings.Repeat("x", 8001) + `","language":"python"}`: "pattern",
		} {
			if got := s.Body(t, "", http.MethodPost, "/api/ai/pattern_fix", body, http.StatusBadRequest); !strings.Contains(got, field) {
				t.Errorf("%.60s: %s", body, got)
			}
		}
		for range 10 {
			s.fixPattern(t, "exec(", "python")
		}
		s.Body(t, "", http.MethodPost, "/api/ai/pattern_fix", body, http.StatusTooManyRequests)
	})
	eachModelled(t, answer, withPatternFixes(1000), func(t *testing.T, s *modelled) {
		s.addWaitingPatterns(t, 100)
		s.Body(t, "", http.MethodPost, "/api/ai/pattern_fix", body, http.StatusTooManyRequests)
	})
	eachModelled(t, answer, withPatternFixes(2), func(t *testing.T, s *modelled) {
		for range 2 {
			s.patternResult(t, s.fixPattern(t, "exec(", "python")) // ended ones count, too
		}
		_, err := aiv1.NewAiTasksServiceClient(s.Conn).CreatePatternFixTask(t.Context(), &aiv1.CreatePatternFixTaskRequest{Pattern: "exec(", Language: "python"})
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("the third of two: %v", err)
		}
	})
}

// addWaitingPatterns inserts jobs that wait for a day.
func (s *modelled) addWaitingPatterns(t *testing.T, n int) {
	t.Helper()
	args, state, later := `'{"deployment_id":0}'`, "'scheduled'", "datetime('now', '+1 day')"
	if s.Store.Postgres() {
		args, state, later = args+"::jsonb", state+"::river_job_state", "now() + interval '1 day'"
	}
	_, writer := s.Store.DB()
	for range n {
		_, err := writer.ExecContext(t.Context(), "INSERT INTO river_job (kind, args, max_attempts, queue, priority, state, scheduled_at) VALUES ('pattern_fix', "+
			args+", 3, 'pattern_fix', 1, "+state+", "+later+")")
		if err != nil {
			t.Fatal(err)
		}
	}
}
