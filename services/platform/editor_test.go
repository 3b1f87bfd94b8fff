package platform_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// engine returns the path of a copy of the test's engine, and installs the sandbox where that is possible.
func engine(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		if os.Getenv("CI") == "" {
			t.Skip("there is no bwrap: install bubblewrap")
		}
		if out, err := exec.CommandContext(t.Context(), "../../.ci/debian-program", "bwrap", "bubblewrap").CombinedOutput(); err != nil {
			t.Fatalf("bubblewrap: %v\n%s", err, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "bwrap", "--unshare-all", "--ro-bind", "/", "/", "true").CombinedOutput(); err != nil {
		t.Skipf("this machine has no namespaces for the sandbox: %v %s", err, out)
	}
	script, err := os.ReadFile("playground/testdata/engine.sh")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "engine")
	if err := os.WriteFile(path, script, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

const noEval = `rules:
- id: no-eval
  languages: [python]
  message: No eval.
  severity: ERROR
  pattern: eval(...)
`

func TestEditor(t *testing.T) {
	testrun.Deep(t) // installs programs
	t.Parallel()
	path := engine(t)
	var cfg config.Config
	s := apitest.Start(t, func(c *config.Config) {
		c.EditorEngine = path
		cfg = *c
	})
	token := s.AddUser(t, s.Tenant, "rae@acme.test", access.RoleReadOnly)
	client := platformv1.NewEditorServiceClient(s.Conn)
	runOn := func(t *testing.T, s *apitest.Server, token, pattern, target string) *platformv1.RunPatternResponse {
		t.Helper()
		answer, err := platformv1.NewEditorServiceClient(s.Conn).RunPattern(s.Context(t, token),
			&platformv1.RunPatternRequest{Pattern: pattern, Target: target, Language: "python"})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	run := func(t *testing.T, pattern, target string) *platformv1.RunPatternResponse {
		t.Helper()
		return runOn(t, s, token, pattern, target)
	}

	t.Run("results and expectations", func(t *testing.T) {
		code := "# ruleid: no-eval\neval(x)\n# ok: no-eval\nprint(x)\n# ruleid: no-eval, other\nprint(y)\n# ok: no-eval\n"
		answer := run(t, noEval, code)
		result := answer.GetSemgrepResult()
		if result.GetStatusCode() != 0 || result.GetRunError() != nil || result.GetEnvironment() != "engine" || result.GetRunTime() <= 0 ||
			result.GetOutput().GetFields()["version"].GetStringValue() != "1.0.0" {
			t.Errorf("got %v", result)
		}
		var cases []string
		for _, c := range answer.GetTestResult() {
			cases = append(cases, fmt.Sprintf("%d %s %v %s", c.GetLineNo(), c.GetRuleId(), c.GetMustMatch(), c.GetStatus()))
		}
		if got, want := strings.Join(cases, ", "), "2 no-eval true passed, 4 no-eval false passed, 6 no-eval true failed, 6 other true failed"; got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	})
	t.Run("a single pattern over HTTP", func(t *testing.T) {
		response := s.Do(t, token, http.MethodPost, "/api/run", `{"pattern":"eval(...)","target":"eval(x)","language":"py","isDeep":true}`)
		for _, want := range []string{`"semgrep_result":{"status_code":0,"output":{`, `"check_id":"work.no-eval"`, `"deep":"1"`, `"path":"/work/target.py"`, `"test_result":[],"ai_autofixes":[]`} {
			if !strings.Contains(strings.ReplaceAll(response.Body, `": `, `":`), want) {
				t.Errorf("%s is missing: %s", want, response.Body)
			}
		}
	})
	for name, c := range map[string]struct{ code, kind, text string }{
		"no network":           {"# network\nhttp://" + strings.TrimPrefix(s.URL, "http://"), "", ""},
		"no data of Palisade":  {"# secrets\n" + cfg.Data + " /etc/passwd /root /home", "", ""},
		"bounded output":       {"# output", "output_too_large", "too much"},
		"bounded memory":       {"# memory", "engine", "memory"},
		"an engine that fails": {"# crash", "engine", "engine failed: Fatal: it broke"},
	} {
		t.Run(name, func(t *testing.T) {
			failed := run(t, noEval, c.code).GetSemgrepResult().GetRunError()
			if failed.GetType() != c.kind || !strings.Contains(failed.GetMessage(), c.text) {
				t.Errorf("got %v", failed)
			}
			if c.kind != "" && failed.GetUid() == "" {
				t.Error("there is no request id")
			}
		})
	}
	t.Run("ends in time", func(t *testing.T) { // only here the timeout is so short that a busy machine may exceed it
		s := apitest.Start(t, func(c *config.Config) { c.EditorEngine, c.EditorTimeout = path, 2*time.Second })
		failed := runOn(t, s, s.AddUser(t, s.Tenant, "rae@acme.test", access.RoleReadOnly), noEval, "# sleep").GetSemgrepResult().GetRunError()
		if failed.GetType() != "timeout" || !strings.Contains(failed.GetMessage(), "editor-timeout") || failed.GetUid() == "" {
			t.Errorf("got %v", failed)
		}
	})
	t.Run("refusals", func(t *testing.T) {
		invalid := run(t, "rules: [{id: a b, languages: [python], message: m, severity: ERROR}]", "x").GetSemgrepResult()
		if e := invalid.GetRunError(); invalid.GetStatusCode() != 2 || e.GetType() != "invalid_rule" || len(e.GetExtra().GetFields()["problems"].GetListValue().GetValues()) == 0 {
			t.Errorf("got %v", invalid)
		}
		_, err := client.RunPattern(s.Context(t, token), &platformv1.RunPatternRequest{Pattern: "a", Target: "b", Language: "elvish"})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "python") {
			t.Errorf("an unknown language: %v", err)
		}
		if r := s.Do(t, s.Token, http.MethodPost, "/api/run", `{"pattern":"a","target":"b","language":"python"}`); r.Status != http.StatusForbidden {
			t.Errorf("an API token: %d %s", r.Status, r.Body)
		}
	})
}

// Without an engine, invalid rules are answered, and valid ones refused with the setting.
func TestEditorWithoutEngine(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, func(*config.Config) {})
	token := s.AddUser(t, s.Tenant, "rae@acme.test", access.RoleReadOnly)
	client := platformv1.NewEditorServiceClient(s.Conn)
	ask := func(pattern string) (*platformv1.RunPatternResponse, error) {
		return client.RunPattern(s.Context(t, token), &platformv1.RunPatternRequest{Pattern: pattern, Target: "x"})
	}
	if _, err := ask(noEval); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "editor-engine") {
		t.Errorf("a valid rule: %v", err)
	}
	answer, err := ask("rules: [{id: a}]")
	if err != nil || answer.GetSemgrepResult().GetRunError().GetType() != "invalid_rule" {
		t.Errorf("an invalid rule: %v, %v", answer, err)
	}
}
