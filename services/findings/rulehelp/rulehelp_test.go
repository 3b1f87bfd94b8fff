package rulehelp_test

import (
	"strings"
	"testing"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/rulehelp"
)

func TestExplanation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule                 *findingsv1.FindingRule
		limit                int
		summary, explanation string
	}{
		"described": {&findingsv1.FindingRule{Message: "Finds eval", Help: " # Eval\nText\n"}, 0, "Finds eval", "# Eval\nText"},
		"only help": {&findingsv1.FindingRule{Help: "## Eval\r\nText"}, 0, "Eval", "## Eval\r\nText"},
		"cut":       {&findingsv1.FindingRule{Message: "m", Help: strings.Repeat("ü", 9)}, 5, "m", "üüüü…"},
		"fits":      {&findingsv1.FindingRule{Message: "m", Help: strings.Repeat("ü", 5)}, 5, "m", "üüüüü"},
		"no help":   {&findingsv1.FindingRule{Message: "m", Help: " \n"}, 0, "", ""},
		"no rule":   {nil, 5, "", ""},
	} {
		got := rulehelp.Explanation(c.rule, c.limit)
		if got.GetSummary() != c.summary || got.GetExplanation() != c.explanation || (got == nil) != (c.explanation == "") {
			t.Errorf("%s: %v", name, got)
		}
	}
}
