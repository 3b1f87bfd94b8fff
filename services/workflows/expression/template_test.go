package expression_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/workflows/expression"
)

func TestRender(t *testing.T) {
	for _, c := range []struct{ value, want any }{
		{"plain $ { } }} text", "plain $ { } }} text"},
		{"${{ item.id }}", int64(2)},
		{"  ${{ item.tags }}\n", []any{}},
		{"line ${{ item.id }} of ${{item.path}}", "line 2 of src/a.go"},
		{"${{ item.id }}${{ index }}", "21"},
		{"null:${{ inputs.empty }}, list:${{ inputs.severities }}, object:${{ {'a': {'b': '<'}} }}", `null:, list:["high","critical"], object:{"a":{"b":"<"}}`},
		{"${{ '}}' }}", "}}"},
		{"${{ '${{' + \" item }}\" }}", "${{ item }}"},
		{`${{ r'\' }} ${{ 'it\'s }}' }} ${{ """ "}} """ }}`, `\ it's }}  "}} `},
		{"${{ 1 // a comment }}\n + 1 }}", int64(2)},
		{map[string]any{"a": []any{"${{ index }}", 1.5, nil, true}, "${{ index }}": "b"}, map[string]any{"a": []any{int64(1), 1.5, nil, true}, "${{ index }}": "b"}},
	} {
		got, err := expression.Render(c.value, scope(t))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %#v (%v), want %#v", c.value, got, err, c.want)
		}
		if err := expression.CheckTexts(c.value); err != nil {
			t.Errorf("check %v: %v", c.value, err)
		}
	}
}

// External text is data: an expression in it stays text.
func TestRenderEvaluatesOnce(t *testing.T) {
	got, err := expression.Render("see ${{ item }}", expression.Scope{"item": "${{ steps.secret.output }}"})
	if err != nil || got != "see ${{ steps.secret.output }}" {
		t.Errorf("%v (%v)", got, err)
	}
}

func TestRenderRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a ${{ item":             "does not end with }}",
		"${{ 'item }}":           "does not end with }}",
		"${{ {'a': 1 }}":         "does not end with }}",
		"${{ 1 // comment }}":    "does not end with }}",
		"x ${{ }}":               "empty",
		"x ${{ item. }}":         "Syntax error",
		"x ${{ item }} ${{ y }}": "undeclared reference to 'y'",
	} {
		if err := expression.CheckTexts([]any{map[string]any{"k": text}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("check %s: %v, want %s", text, err, want)
		}
		if _, err := expression.Render(text, scope(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	_, err := expression.Render([]any{"${{ item }}", "${{ item }}"}, expression.Scope{"item": strings.Repeat("x", expression.MaxResult*2/3)})
	if err == nil || !strings.Contains(err.Error(), "larger than 4 MiB") {
		t.Errorf("two results of a step that are too large together: %v", err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"", "a", "${{ 1 }}", "${{'}}'}}", "x${{ {\"a\":{}} }}y", "${{ r'\\' }}", "${{ \"\"\"", "${{ // }}\n}}", "${{${{}}}}", "${{ '\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checked := expression.CheckTexts(text)
		got, err := expression.Render(text, expression.Scope{"item": "v"})
		if checked != nil && err == nil {
			t.Errorf("%q: refused (%v) and evaluated to %v", text, checked, got)
		}
		if !strings.Contains(text, "${{") && (err != nil || got != text) {
			t.Errorf("%q without an expression became %v (%v)", text, got, err)
		}
	})
}
