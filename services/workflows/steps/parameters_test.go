package steps_test

import (
	"strings"
	"testing"

	"github.com/palisade/palisade/services/workflows/step"
	"github.com/palisade/palisade/services/workflows/steps"
)

type with = map[string]any

func TestCheckAccepts(t *testing.T) {
	kinds := steps.Registry(steps.Needs{})
	for _, c := range []struct {
		kind string
		with with
	}{
		{"pass", nil},
		{"pass", with{"output": with{"a": []any{1, "${{ item }}"}}}},
		{"external", with{"payload": "${{ item }}"}},
		{"llm", with{"prompt": "Look at ${{ item }}", "maxTokens": 100, "schema": with{"type": "object"}, "artifacts": []any{with{"taskId": "17", "name": "unit-00000"}}}},
		{"llm", with{"prompt": "?", "maxTokens": "${{ inputs.tokens }}", "artifacts": "${{ item }}", "schema": with{"enum": "${{ inputs.words }}"}}},
		{"http", with{"url": "${{ inputs.url }}", "method": "POST", "headers": with{"X-Team": "appsec"}, "body": with{"a": 1}, "expect": []any{201}}},
		{"http", with{"url": "https://api.acme.test/${{ item }}"}},
		{"findings.query", nil},
		{"findings.query", with{"status": "open", "severities": []any{"high"}, "issueTypes": "${{ inputs.types }}", "limit": 3000, "projectId": 5.0}},
		{"findings.verdict", with{"findingId": "${{ item.id }}", "verdict": "${{ steps.ask.output.verdict }}", "reason": "r"}},
		{"findings.verdict", with{"findingId": 5, "verdict": "false_positive"}},
		{"code.fetch", with{"include": []any{"src/**/*.go", "*.ts"}, "exclude": "vendor/", "maxBytes": 1000, "unitBytes": 4096}},
	} {
		if err := kinds[c.kind].Check(c.with); err != nil {
			t.Errorf("%s %v: %v", c.kind, c.with, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	kinds := steps.Registry(steps.Needs{})
	for _, c := range []struct {
		kind string
		with with
		want string
	}{
		{"pass", with{"out": 1}, `no parameter "out", want one of output`},
		{"external", with{"data": 1}, `no parameter "data"`},
		{"llm", nil, "prompt is missing"},
		{"llm", with{"prompt": 5}, "prompt must be a text, got number"},
		{"llm", with{"prompt": "?", "maxTokens": -1}, "maxTokens"},
		{"llm", with{"prompt": "?", "maxTokens": 1.5}, "maxTokens must be a whole number"},
		{"llm", with{"prompt": "?", "schema": with{"type": "objekt"}}, "schema:"},
		{"llm", with{"prompt": "?", "schema": with{"$ref": "file:///etc/passwd"}}, "schema:"},
		{"llm", with{"prompt": "?", "artifacts": []any{with{"name": "x"}}}, "artifacts"},
		{"llm", with{"prompt": "?", "artifacts": []any{with{"taskId": "x", "name": "y"}}}, "id"},
		{"http", nil, "url is missing"},
		{"http", with{"url": "file:///etc/passwd"}, "url must be"},
		{"http", with{"url": "https://a.test", "method": "TRACE"}, "method must be one of GET"},
		{"http", with{"url": "https://a.test", "body": "x"}, "body is not for"},
		{"http", with{"url": "https://a.test", "headers": with{"host": "b"}}, "header Host cannot be set"},
		{"http", with{"url": "https://a.test", "headers": with{"transfer-encoding": "b"}}, "Transfer-Encoding"},
		{"http", with{"url": "https://a.test", "headers": with{"A B": "b"}}, "is not a header name"},
		{"http", with{"url": "https://a.test", "headers": with{"A": "b\r\nC: d"}}, "is not a header name"},
		{"http", with{"url": "https://a.test", "headers": with{"A": 1}}, "headers"},
		{"http", with{"url": "https://a.test", "expect": []any{1000}}, "expect"},
		{"http", with{"url": "https://a.test", "maxBytes": 2 << 20}, "maxBytes"},
		{"findings.query", with{"severity": "high"}, `no parameter "severity", want one of status, severities`},
		{"findings.query", with{"severities": []any{"urgent"}}, `severities must be of critical, high, medium, low, got "urgent"`},
		{"findings.query", with{"status": "closed"}, "status must be of open"},
		{"findings.query", with{"issueTypes": []any{"dast"}}, "issueTypes"},
		{"findings.query", with{"limit": 3001}, "limit must be 1 to 3000"},
		{"findings.verdict", with{"verdict": "true_positive"}, "findingId is missing"},
		{"findings.verdict", with{"findingId": 1, "verdict": "ignored"}, "verdict must be true_positive or false_positive"},
		{"code.fetch", with{"include": []any{"a["}}, "is not a glob"},
		{"code.fetch", with{"maxBytes": 1 << 30}, "maxBytes must be"},
		{"code.fetch", with{"unitBytes": 10}, "unitBytes must be 4096"},
	} {
		if err := kinds[c.kind].Check(c.with); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: got %v, want %q", c.kind, c.with, err, c.want)
		}
	}
}

// Values of expressions are validated like literals, and an error is permanent.
func TestRunChecksWhatExpressionsGave(t *testing.T) {
	kinds := steps.Registry(steps.Needs{Egress: guard(t)})
	for kind, parameters := range map[string]with{
		"llm": {"prompt": 17}, "http": {"url": "ftp://a"}, "findings.query": {"limit": "all"}, "findings.verdict": {"findingId": "x"},
		"code.fetch": {"include": []any{""}},
	} {
		if err := failure(t, kinds, kind, step.Call{With: parameters}); !step.IsPermanent(err) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestEveryKindIsDescribed(t *testing.T) {
	kinds := steps.Registry(steps.Needs{})
	if got := strings.Join(kinds.Names(), " "); got != "code.fetch external findings.query findings.verdict http issue.upsert llm notify pass" {
		t.Error(got)
	}
	for name, kind := range kinds {
		if kind.Doc == "" || kind.Check == nil || (kind.Run == nil) != (name == "external") {
			t.Errorf("%s: %+v", name, kind)
		}
	}
	out, _ := run[map[string]any](t, kinds, "pass", step.Call{With: with{"output": with{"a": 1}}})
	if out["a"] != 1.0 {
		t.Error(out)
	}
}
