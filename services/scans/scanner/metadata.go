package scanner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/palisade/palisade/services/findings/vocabulary"
)

// Metadata is the part of a rule's metadata that the server uses. The server adds some of it to the rules that it hands
// out, and the scanner sends all of it back with every finding.
type Metadata struct {
	// Product is sast, sca, secrets or ai_sast; empty if the rule does not say.
	Product string
	// Category, Confidence (low, medium or high), Subcategories, Classes, CWE and OWASP describe the rule.
	Category, Confidence               string
	Subcategories, Classes, CWE, OWASP []string
	Tags                               []string
	// Policy is the slug of the rule mode: rule-board-*.
	Policy string
	// PreviousScan says that the rule is an old version. It runs in addition, to distinguish a fix from a change of the
	// rule.
	PreviousScan bool
	// SCAKind is reachable, upgrade-only, legacy or malicious. Advisory is an identifier. Fixes are versions by
	// package.
	SCAKind, Advisory string
	Fixes             []Fix
	// ReachableIf is the condition under which a vulnerable version is a problem.
	ReachableIf string
	// SecretType is the kind of secret that the rule finds.
	SecretType string
	// URL and References are pages about the rule and about the problem.
	URL        string
	References []string
	// PublishedAt is the day of the rule's publication; zero if unknown.
	PublishedAt time.Time
	// Origin is custom, community or pro_rules; empty if the rule does not say.
	Origin string
}

// Fix is a version of a package without the vulnerability.
type Fix struct{ Package, Version string }

const maxWords = 50

// ParseMetadata reads a rule's metadata. Missing or malformed fields are empty.
func ParseMetadata(v []byte) Metadata {
	var m map[string]any
	if len(v) == 0 || json.Unmarshal(v, &m, decodeOptions) != nil {
		return Metadata{}
	}
	out := Metadata{
		Product: product(word(m["product"])), Category: word(m["category"]), Confidence: confidence(word(m["confidence"])),
		Subcategories: list(m["subcategory"]), Classes: list(m["vulnerability_class"]), CWE: list(m["cwe"]), OWASP: list(m["owasp"]),
		Tags: list(m["tags"]), SCAKind: word(m["sca-kind"]), Advisory: word(m["sca-vuln-database-identifier"]), Fixes: fixes(m["sca-fix-versions"]),
		PreviousScan: word(lookup(m, "semgrep.dev", "src")) == "previous-scan",
		ReachableIf:  condition(m["sca-reachable-if"]), SecretType: word(m["secret_type"]), PublishedAt: day(word(m["publish-date"])),
		Origin: origins[word(lookup(m, "semgrep.dev", "rule", "origin"))],
	}
	if page := list(lookup(m, "semgrep.dev", "rule", "url")); len(page) == 1 && isPage(page[0]) {
		out.URL = page[0]
	}
	for _, page := range list(m["references"]) {
		if isPage(page) {
			out.References = append(out.References, page)
		}
	}
	out.Policy = word(lookup(m, "semgrep.dev", "policy", "slug"))
	if out.Policy == "" {
		out.Policy = word(lookup(m, "semgrep.policy", "slug"))
	}
	if !slices.Contains([]string{"rule-board-audit", "rule-board-pr-comments", "rule-board-block"}, out.Policy) {
		out.Policy = ""
	}
	return out
}

// origins maps the origins of rules in metadata to stored ones. The server writes starter, import and publish into the
// rules that it hands out.
var origins = map[string]string{
	"starter": "community", "import": "custom", "publish": "custom", "community": "community", "custom": "custom", "pro_rules": "pro_rules",
}

// lookup returns a value under nested keys, or under keys that are joined by dots.
func lookup(m map[string]any, path ...string) any {
	for n := len(path); n > 0; n-- {
		value, ok := m[strings.Join(path[:n], ".")]
		if !ok {
			continue
		}
		if n == len(path) {
			return value
		}
		if inner, ok := value.(map[string]any); ok {
			if found := lookup(inner, path[n:]...); found != nil {
				return found
			}
		}
	}
	return nil
}

// condition is a text of several sentences.
func condition(value any) string {
	s, _ := value.(string)
	return plain(strings.TrimSpace(s), maxMessage)
}

// day reads the date of a time or of a date alone.
func day(text string) time.Time {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil && at.Year() >= 1970 && at.Year() <= 9999 {
			return at.UTC()
		}
	}
	return time.Time{}
}

func isPage(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

func word(value any) string {
	s, _ := value.(string)
	return plain(strings.TrimSpace(s), 255)
}

// list reads a text or a list of texts.
func list(value any) (words []string) {
	switch v := value.(type) {
	case string:
		if w := word(v); w != "" {
			words = append(words, w)
		}
	case []any:
		for _, item := range v[:min(len(v), maxWords)] {
			if w := word(item); w != "" && !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
	}
	return words
}

func product(w string) string {
	switch w = strings.ToLower(w); w {
	case vocabulary.SAST, vocabulary.SCA, vocabulary.Secrets, vocabulary.AISAST:
		return w
	}
	return ""
}

func confidence(w string) string {
	switch w = strings.ToLower(w); w {
	case "low", "medium", "high":
		return w
	}
	return ""
}

// fixes reads [{"package": "version"}, …], where a version may be a number.
func fixes(value any) (all []Fix) {
	entries, _ := value.([]any)
	for _, entry := range entries[:min(len(entries), maxWords)] {
		byPackage, _ := entry.(map[string]any)
		for name, version := range byPackage {
			if s := plain(strings.TrimSpace(fmt.Sprint(version)), 255); s != "" && version != nil {
				all = append(all, Fix{plain(name, 255), s})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Fix) int { return strings.Compare(a.Package, b.Package) })
	return all
}
