package sarif

import (
	"strings"

	"github.com/palisade/palisade/services/findings/vocabulary"
)

// levelNone is the level of what is not a problem.
const levelNone = "none"

// fromLevel maps a SARIF level. An absent or unknown word gives "", so that the next source decides.
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

// severityOf applies the order of the sources. It answers levelNone for what is not to be stored.
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

// isUndecided tells the kinds for which the tool could not decide, and a person has to, from those that passed or
// failed.
func isUndecided(kind string) bool {
	return strings.EqualFold(kind, "open") || strings.EqualFold(kind, "review")
}

// isNoProblem tells the kinds that state something other than a problem.
func isNoProblem(kind string) bool {
	return strings.EqualFold(kind, "pass") || strings.EqualFold(kind, "notApplicable") || strings.EqualFold(kind, "informational")
}

// confidence maps the words of several tools; "" where nothing is known.
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
