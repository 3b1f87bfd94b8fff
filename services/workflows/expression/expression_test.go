package expression_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/workflows/expression"
)

func scope(t testing.TB) expression.Scope {
	t.Helper()
	var decoded expression.Scope
	err := json.Unmarshal([]byte(`{
		"inputs": {"severities": ["high", "critical"], "limit": 50, "ratio": 0.5, "empty": null},
		"run": {"id": 7, "workflow": "code-audit", "gitRef": "refs/heads/main"},
		"steps": {"find": {"output": [{"id": 1, "line": 3}, {"id": 2, "line": 9}]}, "look-up": {"output": {"status": 200}}},
		"item": {"id": 2, "path": "src/a.go", "tags": []}, "index": 1,
		"branches": [{"key": "0", "status": "succeeded", "output": {"issues": [1, 2]}}, {"key": "1", "status": "failed", "output": null}]}`), &decoded)
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestEval(t *testing.T) {
	for text, want := range map[string]any{
		`1 + 1`:              int64(2),
		`${{ 1 + 1 }}`:       int64(2),
		`inputs.limit + 1`:   int64(51),
		`inputs.ratio * 2.0`: 1.0,
		`inputs.limit == 50 && inputs.limit == 50.0`: true,
		`inputs.empty`:                         nil,
		`inputs.empty == null`:                 true,
		`has(inputs.nothing)`:                  false,
		`item.id in [1, 2]`:                    true,
		`steps["look-up"].output.status`:       int64(200),
		`size(steps.find.output)`:              int64(2),
		`steps.find.output.map(f, f.line)`:     []any{int64(3), int64(9)},
		`{"a": {"b": item.path}}`:              map[string]any{"a": map[string]any{"b": "src/a.go"}},
		`inputs.severities.join(",")`:          "high,critical",
		`"%s:%d".format([item.path, index])`:   "src/a.go:1",
		`run.gitRef.replace("refs/heads/","")`: "main",
		`branches.filter(b, b.status == "succeeded").map(b, b.output.issues).flatten()`: []any{int64(1), int64(2)},
		`[3, 1, 2].sort()`:                  []any{int64(1), int64(2), int64(3)},
		`duration("90s")`:                   "90s",
		`timestamp("2026-05-04T10:20:30Z")`: "2026-05-04T10:20:30Z",
		`b"abc"`:                            "YWJj",
		`item`:                              map[string]any{"id": int64(2), "path": "src/a.go", "tags": []any{}},
	} {
		got, err := expression.Eval(text, scope(t))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %#v (%v), want %#v", text, got, err, want)
		}
		if err := expression.Check(text); err != nil {
			t.Errorf("check %s: %v", text, err)
		}
	}
}

func TestEvalRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                               "empty",
		`${{ }}`:                         "empty",
		`1 +`:                            "Syntax error",
		`item.id +`:                      "Syntax error",
		`output.x`:                       "undeclared reference to 'output'",
		`steps.look-up.output`:           "undeclared reference to 'up'",
		`frobnicate(item)`:               "undeclared reference to 'frobnicate'",
		`1 + "a"`:                        "no matching overload",
		strings.Repeat("1+", 4000) + "1": "size exceeds limit",
	} {
		if err := expression.Check(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("check %.40s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`inputs.nothing`:        "no such key: nothing",
		`1 / 0`:                 "division by zero",
		`0.0 / 0.0`:             "not a finite number",
		`{1: 2}`:                "a key that is a int",
		`type(1)`:               "not a JSON value",
		`18446744073709551615u`: "too large",
		`item.path + 1`:         "no such overload",
		`lists.range(20000)`:    "exceeds",
		`lists.range(9000).map(a, lists.range(9000).map(b, b))`: "too costly",
		`lists.range(9000).map(a, "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789")`: "larger than 4 MiB",
	} {
		if got, err := expression.Eval(text, scope(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s = %v (%v), want %s", text, got, err, want)
		}
	}
}

// A text that doubles at each level is stopped by the cost limit before it uses much memory.
func TestEvalEndsAtItsCost(t *testing.T) {
	text := `"0123456789abcdef"`
	for range 40 {
		text = "cel.bind(s, " + text + ", s + s)"
	}
	lists := strings.ReplaceAll(text, `"0123456789abcdef"`, "[1]")
	for _, text := range []string{
		text, lists, "size(" + lists + ")", "true || " + lists + ".sort() == []",
		`cel.bind(s, lists.range(9000).map(i, "0123456789").join(""), s.replace("", s))`,
		`cel.bind(s, lists.range(9000).map(i, "0123456789").join(""), lists.range(9000).map(i, s).join(""))`,
		`cel.bind(s, lists.range(9000).map(i, "0123456789").join(""), lists.range(9000).map(i, "").join(s))`,
		`cel.bind(s, lists.range(9000).map(i, "0123456789").join(""), "%s".format([lists.range(9000).map(i, s)]))`,
	} {
		if got, err := expression.Eval(text, nil); err == nil && got != true || err != nil && !strings.Contains(err.Error(), "too costly") {
			t.Errorf("%.80s: %v", text, err)
		}
	}
}

func TestWideJoin(t *testing.T) {
	branches := make([]any, 10_000)
	for i := range branches {
		branches[i] = map[string]any{"key": fmt.Sprint(i), "status": "succeeded", "output": map[string]any{"issues": []any{map[string]any{"n": float64(i)}}}}
	}
	got, err := expression.Eval(`branches.filter(b, b.status == "succeeded").map(b, b.output.issues).flatten().map(i, i.n)`, expression.Scope{"branches": branches})
	if err != nil || len(got.([]any)) != len(branches) {
		t.Errorf("%v", err)
	}
}

func TestUses(t *testing.T) {
	uses := expression.UsesOf(map[string]any{"a": "x ${{ steps.find.output[0].id }} ${{ steps['look-up'].output.status > inputs.limit ? item : index }}", "b": []any{"${{ branches }}"}})
	want := expression.Uses{
		Variables: map[string]bool{"steps": true, "inputs": true, "item": true, "index": true, "branches": true},
		Steps:     map[string]bool{"find": true, "look-up": true}, Inputs: map[string]bool{"limit": true},
	}
	if !reflect.DeepEqual(uses, want) {
		t.Errorf("got %+v", uses)
	}
}
