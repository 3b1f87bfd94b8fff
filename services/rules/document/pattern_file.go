package document

import (
	"encoding/json"
	"regexp"
)

// ruleFile matches the beginning of a file of rules.
var ruleFile = regexp.MustCompile(`(?m)^\s*\{?\s*["']?rules["']?\s*:`)

// IsFile reports whether a text is a file of rules, and not a single pattern.
func IsFile(text string) bool { return ruleFile.MatchString(text) }

// FileOfPattern returns a file with one rule: a pattern for a language.
func FileOfPattern(pattern, language string) ([]byte, error) {
	return json.Marshal(map[string]any{"rules": []map[string]any{{
		"id": "pattern", "pattern": pattern, "languages": []string{language}, "message": "The pattern matches.", "severity": "INFO",
	}}})
}
