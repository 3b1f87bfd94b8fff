package starter_test

import (
	"slices"
	"testing"

	"github.com/palisade/palisade/services/rules/starter"
)

// The rules that ship with the product are valid, and there are rules for each language.
func TestRules(t *testing.T) {
	rules, err := starter.Rules()
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) < 25 {
		t.Errorf("%d rules, want at least 25", len(rules))
	}
	for _, language := range []string{"python", "javascript", "typescript", "go", "java"} {
		found := 0
		for _, rule := range rules {
			if slices.Contains(rule.Languages, language) {
				found++
			}
		}
		if found < 3 {
			t.Errorf("%d rules for %s", found, language)
		}
	}
}
