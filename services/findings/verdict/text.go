package verdict

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Maximal lengths of texts that automation may store, in runes. Longer texts are cut.
const (
	MaxReason      = 3000
	MaxSummary     = 500
	MaxGuidance    = 10_000
	MaxFix         = 20_000
	MaxExplanation = 3000
	MaxTag         = 60
)

// bound truncates and cleans the texts of a verdict, because a model may write anything.
func (v *Verdict) bound() {
	v.Reason = Text(v.Reason, MaxReason)
	v.GuidanceSummary = Text(v.GuidanceSummary, MaxSummary)
	v.GuidanceText = Text(v.GuidanceText, MaxGuidance)
	v.FixCode = Text(v.FixCode, MaxFix)
	v.FixDiff = Text(v.FixDiff, MaxFix)
	v.FixExplanation = Text(v.FixExplanation, MaxExplanation)
	v.RuleSummary = Text(v.RuleSummary, MaxSummary)
	v.RuleExplanation = Text(v.RuleExplanation, MaxGuidance)
	v.ComponentTag = Text(strings.Join(strings.Fields(v.ComponentTag), " "), MaxTag)
	switch v.ComponentRisk {
	case "high", "low", "neutral":
	default:
		v.ComponentRisk = "neutral"
	}
}

// Text removes broken UTF-8, and control and invisible format characters, which can hide or reorder text. It cuts to a
// number of runes.
func Text(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
			return -1
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)
	return string(runes[:limit-1]) + "…"
}
