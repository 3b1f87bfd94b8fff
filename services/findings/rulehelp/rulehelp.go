// Package rulehelp explains rules of findings by their own help texts.
package rulehelp

import (
	"cmp"
	"strings"
	"unicode/utf8"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
)

// MaxListed is the maximum length of an explanation in a list, in characters: many findings of a page have it.
const MaxListed = 2000

// Explanation returns the help of a rule, cut to limit characters; 0 does not cut. The summary is the description of
// the rule, or the first line of the help. It is nil for a rule without help.
func Explanation(rule *findingsv1.FindingRule, limit int) *findingsv1.AssistantRuleExplanation {
	help := strings.TrimSpace(rule.GetHelp())
	if help == "" {
		return nil
	}
	first, _, _ := strings.Cut(help, "\n")
	return &findingsv1.AssistantRuleExplanation{
		Summary: cmp.Or(rule.GetMessage(), strings.Trim(first, "# \t\r")), Explanation: cut(help, limit),
	}
}

// cut shortens a text to limit characters and ends it with an ellipsis.
func cut(text string, limit int) string {
	if limit == 0 || len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}
