package steps

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/workflows/step"
)

func TestUpsertParameters(t *testing.T) {
	kind := upsertIssues(nil)
	for text, want := range map[string]string{
		`{}`:                                   "issues is missing",
		`{"issues":null}`:                      "issues is missing",
		`{"issues":[]}`:                        "",
		`{"issues":"${{ steps.a.output }}"}`:   "",
		`{"issues":["${{ steps.a.output }}"]}`: "",
		`{"issues":{}}`:                        "issues and files must be lists",
		`{"issues":[1]}`:                       "each of issues must be an object",
		`{"issues":[{}]}`:                      "issues[0].title is missing",
		`{"issues":[{"title":" ","evidence":"x"}]}`:                          "issues[0].title is missing",
		`{"issues":[{"title":" ","evidence":"x","vulnerable":false}]}`:       "",
		`{"issues":[{"title":"a"},[{"title":"b","severity":"bad"}]]}`:        "issues[1].severity must be one of info, low, medium, high, critical",
		`{"issues":[{"title":"a","severity":" High ","verified":"Absent"}]}`: "",
		`{"issues":[{"title":"a","verified":"maybe"}]}`:                      "issues[0].verified must be present or absent",
		`{"issues":[{"title":"a","startLine":"x"}]}`:                         "startLine of an issue must be a whole number, got string",
		`{"issues":[{"title":"a","startLine":1e30,"endLine":4.5}]}`:          "",
		`{"issues":[],"files":["a",["b"]]}`:                                  "",
		`{"issues":[],"file":"a"}`:                                           `there is no parameter "file"`,
	} {
		var with map[string]any
		if err := json.Unmarshal([]byte(text), &with); err != nil {
			t.Fatal(err)
		}
		err := kind.Check(with)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if strings.Contains(text, "${{") || want == "" {
			continue
		}
		if _, err := kind.Run(t.Context(), step.Call{With: with}); !step.IsPermanent(err) {
			t.Errorf("%s runs: %v", text, err)
		}
	}
}

func TestUpsertReadsWhatJoinsBring(t *testing.T) {
	p, err := decodeParameters[upsertParameters](step.Call{With: map[string]any{
		"issues": []any{
			nil, []any{map[string]any{"title": "a", "cwes": "CWE-89", "owasps": []any{"A03"}, "startLine": 4.0, "more": map[string]any{}}},
			[]any{[]any{map[string]any{"title": "b"}}, nil}, map[string]any{"title": "c", "actions": nil},
		},
		"files": []any{[]any{"x.py"}, []any{}, "y.py"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, f := range p.Issues {
		titles = append(titles, f.Title)
	}
	if !reflect.DeepEqual(titles, []string{"a", "b", "c"}) || !reflect.DeepEqual(p.Issues[0].CWEs, []string{"CWE-89"}) || p.Issues[0].StartLine != 4 ||
		!reflect.DeepEqual([]string(p.Files), []string{"x.py", "y.py"}) {
		t.Errorf("got %+v", p)
	}
	none, err := decodeParameters[upsertParameters](step.Call{With: map[string]any{"issues": []any{}}})
	some, _ := decodeParameters[upsertParameters](step.Call{With: map[string]any{"issues": []any{}, "files": []any{}}})
	if err != nil || none.Files != nil || some.Files == nil {
		t.Errorf("no files: %v, an empty list: %v, %v", none.Files, some.Files, err)
	}
}

func TestNotifyParameters(t *testing.T) {
	kind := notify(nil)
	for text, want := range map[string]string{
		`{}`:            "title is missing",
		`{"title":" "}`: "title is missing",
		`{"title":"${{ inputs.title }}","message":"m","ruleIds":[1,"2"]}`: "",
		`{"title":"t","ruleIds":"x"}`:                                     "parameter ruleIds must be a list",
		`{"title":"t","ruleIds":["x"]}`:                                   "an id must be a whole number",
		`{"title":"t","text":"x"}`:                                        `there is no parameter "text"`,
	} {
		var with map[string]any
		if err := json.Unmarshal([]byte(text), &with); err != nil {
			t.Fatal(err)
		}
		err := kind.Check(with)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := kind.Run(t.Context(), step.Call{With: map[string]any{"title": "t"}}); err == nil || step.IsPermanent(err) {
		t.Errorf("outside of a job: %v", err)
	}
	if got := cut(strings.Repeat("ü", 300), maxTitle); len([]rune(got)) != maxTitle || !strings.HasSuffix(got, "…") {
		t.Errorf("got %q", got)
	}
}
