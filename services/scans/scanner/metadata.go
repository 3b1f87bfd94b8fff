package scanner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/palisade/palisade/services/findings/vocabulary"
)

// Metadata is the part of a rule's metadata that the server uses. The server adds some of it to the rules that it hands
// out, and the scanner sends all of it back with every finding.
type Metadata struct {
	// Product is sast, sca or secrets; empty if the rule does not say.
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
	case vocabulary.SAST, vocabulary.SCA, vocabulary.Secrets:
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
