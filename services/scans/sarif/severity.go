package sarif

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	cvss20 "github.com/pandatix/go-cvss/20"
	cvss30 "github.com/pandatix/go-cvss/30"
	cvss31 "github.com/pandatix/go-cvss/31"
	cvss40 "github.com/pandatix/go-cvss/40"

	"github.com/palisade/palisade/services/findings/vocabulary"
)

// levelNone is the level of results that are not problems.
const levelNone = "none"

// fromLevel maps a SARIF level, or a word that some tools write instead. It returns "" for an absent or unknown level,
// so that the next source decides.
func fromLevel(level string) string {
	if level = strings.TrimSpace(level); strings.EqualFold(level, levelNone) {
		return levelNone
	}
	return fromWord(level)
}

// severityOf tries the sources in their order. It returns levelNone for a result that must not be stored.
func (run *Run) severityOf(w *wireResult, rule *Rule) string {
	own := cmp.Or(w.Properties.severity(), tagSeverity(w.Properties.texts[factTags]))
	level := fromLevel(w.Level)
	switch {
	case own != "":
		return own
	case rule.score != "":
		return rule.score
	case rule.word != "" && level != levelNone: // a word about the rule does not make a problem of what is none
		return rule.word
	}
	run.told.severity(cmp.Or(w.Properties.unreadScore(), unread(w.Level, level), rule.unreadScore))
	undecided := isUndecided(w.Kind)
	if level != "" && !(undecided && level == levelNone) {
		return level
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
	run.told.severity(rule.unreadLevel)
	return vocabulary.SeverityMedium
}

// isUndecided reports whether the tool left the decision to a person, or only informs. Neither has a level by the
// specification.
func isUndecided(kind string) bool {
	return strings.EqualFold(kind, "open") || strings.EqualFold(kind, "review") || strings.EqualFold(kind, "informational")
}

// isNoProblem reports whether a kind says that there is no problem.
func isNoProblem(kind string) bool {
	return strings.EqualFold(kind, "pass") || strings.EqualFold(kind, "notApplicable")
}

// severity is the severity by a score, else by a word. It returns "" if the bag has neither.
func (b *bag) severity() string { return cmp.Or(b.scored(), b.worded()) }

// scored converts scores and CVSS vectors. security-severity is a string by convention and a number with some tools. A
// score that is 0, out of range or not a number counts as absent.
func (b *bag) scored() string {
	for _, f := range [...]fact{factSecuritySeverity, factCVSS4, factCVSS3, factCVSS, factCVSS2} {
		best := 0.0
		for _, text := range b.texts[f] {
			best = max(best, score(text))
		}
		if f == factCVSS2 {
			best = min(best, mostOfCVSS2)
		}
		if s := fromScore(best); s != "" {
			return s
		}
	}
	return ""
}

// unreadScore is a security-severity that says something unknown, or "". It is a score by convention.
func (b *bag) unreadScore() string {
	text := first(b.texts[factSecuritySeverity])
	if n, err := strconv.ParseFloat(text, 64); err == nil && n == 0 {
		return ""
	}
	return unread(text, "")
}

// unread is a text that no severity was read from, unless it says that there is none.
func unread(text, severity string) string {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "unknown", "undefined", "unspecified", "unassigned", "none", "null", "n/a", "na", "-":
		return ""
	}
	if severity != "" {
		return ""
	}
	return text
}

// mostOfCVSS2 caps scores of CVSS 2, whose highest range is "high".
const mostOfCVSS2 = 8.9

// worded converts words.
func (b *bag) worded() string {
	for _, f := range [...]fact{
		factSecuritySeverity, factSeverity, factCVSS4, factCVSS3, factCVSS, factCVSS2, factPriority, factRisk, factImpact, factProblem,
	} {
		for _, text := range b.texts[f] {
			if s := fromWord(text); s != "" {
				return s
			}
		}
	}
	return ""
}

// loneScore matches a score with a decimal comma, its maximum or its word: "7,5", "9.8/10", "9.8 (critical)".
var loneScore = regexp.MustCompile(`^(\d{1,2}(?:[.,]\d+)?)(?:\s*/\s*10(?:[.,]0+)?)?(?:\s*\(?[A-Za-z]+\)?)?$`)

// score reads a number or a CVSS vector. It returns 0 for anything else.
func score(text string) float64 {
	if parts := loneScore.FindStringSubmatch(text); parts != nil {
		text = strings.Replace(parts[1], ",", ".", 1)
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		if !(n > 0) || n > 10 {
			return 0
		}
		return n
	}
	switch text = strings.Trim(text, "()"); {
	case strings.HasPrefix(text, "CVSS:4.0/"):
		if v, err := cvss40.ParseVector(text); err == nil {
			return v.Score()
		}
	case strings.HasPrefix(text, "CVSS:3.1/"):
		if v, err := cvss31.ParseVector(text); err == nil {
			return v.BaseScore()
		}
	case strings.HasPrefix(text, "CVSS:3.0/"):
		if v, err := cvss30.ParseVector(text); err == nil {
			return v.BaseScore()
		}
	case strings.HasPrefix(text, "AV:"):
		if v, err := cvss20.ParseVector(text); err == nil {
			return min(v.BaseScore(), mostOfCVSS2)
		}
		if v, err := cvss31.ParseVector("CVSS:3.1/" + text); err == nil {
			return v.BaseScore()
		}
	}
	return 0
}

// fromScore has the ranges of CVSS 3 and 4.
func fromScore(score float64) string {
	switch {
	case score >= 9:
		return vocabulary.SeverityCritical
	case score >= 7:
		return vocabulary.SeverityHigh
	case score >= 4:
		return vocabulary.SeverityMedium
	case score > 0:
		return vocabulary.SeverityLow
	}
	return ""
}

// severityWords are the words of many tools. Words for "unknown" are absent, so that the next source decides.
var severityWords = map[string]string{
	"critical": vocabulary.SeverityCritical, "blocker": vocabulary.SeverityCritical, "very high": vocabulary.SeverityCritical,
	"emergency": vocabulary.SeverityCritical, "fatal": vocabulary.SeverityCritical, "urgent": vocabulary.SeverityCritical,
	"p0": vocabulary.SeverityCritical, "p1": vocabulary.SeverityCritical, "crit": vocabulary.SeverityCritical,

	"high": vocabulary.SeverityHigh, "error": vocabulary.SeverityHigh, "important": vocabulary.SeverityHigh, "severe": vocabulary.SeverityHigh,
	"serious": vocabulary.SeverityHigh, "p2": vocabulary.SeverityHigh,

	"medium": vocabulary.SeverityMedium, "moderate": vocabulary.SeverityMedium, "major": vocabulary.SeverityMedium,
	"warning": vocabulary.SeverityMedium, "warn": vocabulary.SeverityMedium, "med": vocabulary.SeverityMedium, "p3": vocabulary.SeverityMedium,

	"low": vocabulary.SeverityLow, "minor": vocabulary.SeverityLow, "note": vocabulary.SeverityLow, "info": vocabulary.SeverityLow,
	"information": vocabulary.SeverityLow, "informational": vocabulary.SeverityLow, "informative": vocabulary.SeverityLow,
	"negligible": vocabulary.SeverityLow, "unimportant": vocabulary.SeverityLow, "trivial": vocabulary.SeverityLow,
	"very low": vocabulary.SeverityLow, "recommendation": vocabulary.SeverityLow, "suggestion": vocabulary.SeverityLow,
	"hint": vocabulary.SeverityLow, "style": vocabulary.SeverityLow, "p4": vocabulary.SeverityLow, "p5": vocabulary.SeverityLow,
}

// fromWord maps "CRITICAL", "very-high", "SEVERITY_HIGH" and "Medium (High)", in which the second word is the
// confidence. It returns "" for anything else.
func fromWord(text string) string {
	if len(text) > 40 {
		return ""
	}
	word, _, _ := strings.Cut(strings.ToLower(text), "(")
	word = strings.Join(strings.FieldsFunc(word, func(r rune) bool { return r == ' ' || r == '_' || r == '-' }), " ")
	word = strings.TrimSuffix(strings.TrimPrefix(word, "severity "), " severity")
	return severityWords[word]
}

// tagSeverity reads tags such as "HIGH" and "severity:high". Other words of severities are also topics ("error").
func tagSeverity(tags []string) string {
	for _, tag := range tags {
		if len(tag) < len("low") || len(tag) > 30 {
			continue
		}
		switch tag = strings.ToLower(tag); tag {
		case "critical", "high", "medium", "moderate", "low":
			return severityWords[tag]
		}
		for _, prefix := range [...]string{"severity", "security-severity", "priority", "risk"} {
			if word, found := strings.CutPrefix(tag, prefix); found && word != "" && strings.ContainsRune(":/=-_ ", rune(word[0])) {
				if s := fromWord(strings.TrimLeft(word, ":/=-_ ")); s != "" {
					return s
				}
			}
		}
	}
	return ""
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
