package scans_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/palisade/palisade/services/internal/apitest"
)

// strict is what the scanner's own parser demands of an answer (scan protocol, section 9): required fields, and the
// type of each field that may be present. Nothing may be null.
type strict struct {
	required []string
	types    map[string]string
}

var (
	strictConfig = map[string]string{
		"config.rules": "object", "config.triage_ignored_syntactic_ids": "strings", "config.triage_ignored_match_based_ids": "strings",
		"config.project_merge_base": "string", "config.fips_mode": "bool", "config.nosemgrep_disabled": "bool",
		"engine_params": "object", "engine_params.autofix": "bool", "engine_params.deepsemgrep": "bool", "engine_params.dependency_query": "bool",
		"engine_params.path_to_transitivity": "bool", "engine_params.scan_all_deps_in_diff_scan": "bool", "engine_params.symbol_analysis": "bool",
		"engine_params.transitive_reachability_enabled": "bool", "engine_params.generic_slow_rollout": "bool", "engine_params.always_suppress_errors": "bool",
		"engine_params.ignored_files": "strings", "engine_params.product_ignored_files": "pairs", "engine_params.historical_config": "object",
		"engine_params.historical_config.enabled": "bool", "engine_params.historical_config.lookback_days": "int",
	}
	strictInfo = map[string]string{
		"info": "object", "info.id": "int", "info.enabled_products": "strings", "info.deployment_id": "int", "info.deployment_name": "string",
	}
	infoRequired   = []string{"info", "info.enabled_products", "info.deployment_id", "info.deployment_name"}
	configRequired = []string{"config", "config.rules", "engine_params", "engine_params.historical_config.enabled"}
)

func merged(all ...map[string]string) map[string]string {
	out := map[string]string{"config": "object"}
	for _, m := range all {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// check checks an answer recursively.
func (w strict) check(t *testing.T, what string, answer apitest.Answer) {
	t.Helper()
	if answer.Status != http.StatusOK {
		t.Errorf("%s: %d %.300s", what, answer.Status, answer.Body)
		return
	}
	body := parsed(t, answer.Body)
	if at(body, "config", "rules") != nil { // rules are written by their authors, who may use null
		if !strings.Contains(answer.Body, `"rules":{"rules":[`) {
			t.Errorf("%s: \"rules\" is not the first key of config.rules: %.200s", what, answer.Body)
		}
		at(body, "config").(object)["rules"] = object{}
	}
	if hasNull(body) {
		t.Errorf("%s: something is null: %s", what, written(t, body))
	}
	for _, name := range w.required {
		if at(body, strings.Split(name, ".")...) == nil {
			t.Errorf("%s: %s is missing: %s", what, name, written(t, body))
		}
	}
	w.walk(t, what, "", body)
}

func (w strict) walk(t *testing.T, what, prefix string, body object) {
	t.Helper()
	for name, value := range body {
		path := prefix + name
		want, known := w.types[path]
		if !known {
			continue // unknown extra fields are ignored by the scanner
		}
		if got := typeOf(value); got != want && !(got == "list" && (want == "strings" || want == "pairs" || want == "objects")) {
			t.Errorf("%s: %s is %s %v, want %s", what, path, got, value, want)
		}
		if inner, ok := value.(object); ok {
			w.walk(t, what, path+".", inner)
		}
	}
}

// typeOf tells an empty list from a list of strings.
func typeOf(value any) string {
	switch v := value.(type) {
	case bool:
		return "bool"
	case string:
		return "string"
	case float64:
		return "int"
	case object:
		return "object"
	case []any:
		if len(v) == 0 {
			return "list"
		}
		return typeOf(v[0]) + "s"
	}
	return fmt.Sprintf("%T", value)
}

// hasNull reports whether a member or an element is null. Texts of rules may contain the word.
func hasNull(body any) bool {
	switch v := body.(type) {
	case object:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hasNull)
	case []any:
		return slices.ContainsFunc(v, hasNull)
	}
	return body == nil
}

func TestScannerAnswersAreStrict(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		whole := strict{append(infoRequired, configRequired...), merged(strictInfo, strictConfig)}
		infoOnly := strict{infoRequired, strictInfo}
		config := strict{append([]string{"status", "polling.recommended_wait_seconds", "polling.seconds_until_timeout"}, configRequired...), merged(strictConfig, map[string]string{
			"status": "string", "polling": "object", "polling.recommended_wait_seconds": "int", "polling.seconds_until_timeout": "int",
		})}
		results := strict{[]string{"errors"}, map[string]string{"errors": "objects", "task_id": "string"}}
		complete := strict{[]string{"success"}, map[string]string{"success": "bool", "app_block_override": "bool", "app_block_reason": "string", "app_blocking_match_based_ids": "strings"}}
		legacy := strict{[]string{"deployment_id", "deployment_name", "policy_names", "rule_config"}, map[string]string{
			"deployment_id": "int", "deployment_name": "string", "policy_names": "strings", "rule_config": "string", "autofix": "bool",
			"triage_ignored_syntactic_ids": "strings", "triage_ignored_match_based_ids": "strings", "ignored_files": "strings", "enabled_products": "strings", "actions": "strings",
		}}
		fresh := func() func(object) { return with(uuid.NewString(), "scan_metadata", "unique_id") }
		created := c.send(t, http.MethodPost, cliScans, recorded(t, "create_1.97", fresh()))
		whole.check(t, "v1", created)
		whole.check(t, "v1, newer", c.send(t, http.MethodPost, cliScans, recorded(t, "create_1.173", fresh())))
		whole.check(t, "v1, no rules", c.send(t, http.MethodPost, cliScans, recorded(t, "create_1.97", fresh(), with([]any{"none"}, "scan_metadata", "partial_scan_rule_ids"))))
		whole.check(t, "v1, dry run", c.send(t, http.MethodPost, cliScans, recorded(t, "create_1.97", fresh(), with(true, "scan_metadata", "dry_run"))))
		whole.check(t, "v1, nothing said", c.send(t, http.MethodPost, cliScans, `{}`))
		whole.check(t, "v1, unknown fields", c.send(t, http.MethodPost, cliScans, recorded(t, "create_1.97", fresh(), with(object{"a": []any{1, nil}}, "scan_metadata", "later"), with("x", "later"))))
		unique := uuid.NewString()
		infoOnly.check(t, "v2", c.send(t, http.MethodPost, cliV2, recorded(t, "create_1.173", with(unique, "scan_metadata", "unique_id"))))
		config.check(t, "config", c.send(t, http.MethodGet, cliV2+"/"+unique+"/config", ""))
		id := int64(at(parsed(t, created.Body), "info", "id").(float64))
		complete.check(t, "complete, too early", c.send(t, http.MethodPost, completePath(id), recorded(t, "complete")))
		results.check(t, "results", c.send(t, http.MethodPost, resultsPath(id), recorded(t, "results")))
		c.complete(t, id, "")
		complete.check(t, "complete", c.send(t, http.MethodPost, completePath(id), recorded(t, "complete")))
		problems := c.send(t, http.MethodPost, resultsPath(c.create(t)), `{"findings":[{}]}`)
		results.check(t, "results with a problem", problems)
		if !strings.Contains(problems.Body, `"errors":[{"message":"finding 0 was left out`) {
			t.Errorf("%s", problems.Body)
		}
		answer := c.send(t, http.MethodGet, "/api/agent/deployments/scans/config?dry_run=True&full_scan=True&semgrep_version=1.97.0&sca=False&is_secrets_scan=False&is_code_scan=False&repo_name=acme/web", "")
		legacy.check(t, "legacy", answer)
		if text, _ := parsed(t, answer.Body)["rule_config"].(string); !strings.HasPrefix(text, `{"rules":[{`) {
			t.Errorf("rule_config: %.100s", text)
		}
	})
}

// detached is the ref of the recorded commit.
const detached = "refs/detached/3f2a9c1d5b7e4f60a1b2c3d4e5f60718293a4b5c"

// TestScannerRefs: branches come in all spellings, and a checkout without a branch is not a branch.
func TestScannerRefs(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		for _, one := range []struct {
			branch, pull any
			want         string
		}{
			{"main", nil, mainRef}, {"refs/heads/main", nil, mainRef}, {"refs/pull/7/merge", "7", pullRef}, {"feature/x", "12", "refs/heads/feature/x"},
			{nil, "7", pullRef}, {nil, nil, detached}, {"", "no number", detached}, {"HEAD", nil, detached}, {"refs/heads/HEAD", "", detached},
			{"HEAD", "7", pullRef}, {"refs/heads/HEAD", "7", pullRef},
			{"@", nil, detached}, {"origin/HEAD", nil, detached}, {"refs/remotes/origin/HEAD", nil, detached}, {"remotes/origin/HEAD", "7", pullRef}, {"FETCH_HEAD", "7", pullRef},
		} {
			id := c.create(t, with(one.branch, "project_metadata", "branch"), with(one.pull, "project_metadata", "pull_request_id"))
			if row := s.Store.Reader.Scan.GetX(s.System(t), id); row.Ref != one.want {
				t.Errorf("branch %v, pull request %v: %s, want %s", one.branch, one.pull, row.Ref, one.want)
			}
		}
		for field, bad := range map[string]any{"branch": "two words", "repo_display_name": "acme//web", "repository": "/acme", "commit": strings.Repeat("c", 300)} {
			c.refused(t, 400, http.MethodPost, cliScans, recorded(t, "create_1.97", with(uuid.NewString(), "scan_metadata", "unique_id"), with(bad, "project_metadata", field)), field)
		}
		id := c.create(t, with("acme/web/frontend", "project_metadata", "repo_display_name"), with(nil, "project_config", "tags"))
		row := s.Store.Reader.Scan.GetX(s.System(t), id)
		if p := s.Store.Reader.Project.GetX(s.System(t), row.ProjectID); p.Name != "acme/web/frontend" {
			t.Errorf("%v", p)
		}
	})
}
