package sarif

import (
	"strings"

	"github.com/palisade/palisade/services/findings/vocabulary"
)

// levelNone is the level of results that are not problems.
const levelNone = "none"

// fromLevel maps a SARIF level. It returns "" for an absent or unknown level, so that the next source decides.
func fromLevel(level string) string {
	switch strings.ToLower(strings.TrimSpace(level)) {
	case "error":
		return vocabulary.SeverityHigh
	case "warning":
		return vocabulary.SeverityMedium
	case "note":
		return vocabulary.SeverityLow
	case levelNone:
		return levelNone
	}
	return ""
}

// severityOf tries the sources in their order. It returns levelNone for a result that must not be stored.
func (run *Run) severityOf(w *wireResult, rule *Rule) string {
	if s := w.Properties.securitySeverity(); s != "" {
		return s
	}
	if rule.securitySeverity != "" {
		return rule.securitySeverity
	}
	undecided := isUndecided(w.Kind)
	if s := fromLevel(w.Level); s != "" && !(undecided && s == levelNone) {
		return s
	}
	if undecided {
		return vocabulary.SeverityLow
	}
	if s := run.overrideFor(w, rule); s != "" {
		return s
	}
	if rule.defaultLevel != "" {
		return rule.defaultLevel
	}
	return vocabulary.SeverityMedium
}

// isUndecided reports whether the tool left the decision to a person.
func isUndecided(kind string) bool {
	return strings.EqualFold(kind, "open") || strings.EqualFold(kind, "review")
}

// isNoProblem reports whether a kind states something other than a problem.
func isNoProblem(kind string) bool {
	return strings.EqualFold(kind, "pass") || strings.EqualFold(kind, "notApplicable") || strings.EqualFold(kind, "informational")
}

// confidence maps the terms of several tools; "" if none is known.
func confidence(words ...string) string {
	for _, word := range words {
		switch strings.ToLower(strings.TrimSpace(word)) {
		case "very-high", "very high", "high":
			return vocabulary.ConfidenceHigh
		case "medium", "moderate":
			return vocabulary.ConfidenceMedium
		case "low", "very-low", "very low":
			return vocabulary.ConfidenceLow
		}
	}
	return ""
}

// tagConfidence reads tags such as "HIGH CONFIDENCE".
func tagConfidence(tags []string) string {
	for _, tag := range tags {
		word, found := strings.CutSuffix(strings.ToLower(strings.TrimSpace(tag)), "confidence")
		if !found {
			continue
		}
		if c := confidence(strings.Trim(word, " -_")); c != "" {
			return c
		}
	}
	return ""
}
