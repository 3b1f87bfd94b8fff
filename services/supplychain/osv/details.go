package osv

import (
	"encoding/json"
	"strings"
	"unicode"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// Limits of what is kept for findings. Longer texts are cut, and longer lists end.
const (
	maxText       = 4000
	maxIDs        = 50
	maxReferences = 20
	maxWord       = 200
	maxURL        = 1000
)

// details reads what a document says about its problem. A part of an unknown form is left out: none of them decides
// whether a package is affected.
func details(d *document) *storev1.AdvisoryDetails {
	out := &storev1.AdvisoryDetails{
		Aliases: words(d.Aliases, maxIDs, maxID), Upstream: words(d.Upstream, maxIDs, maxID), Text: cut(strings.TrimSpace(d.Details), maxText), Cvss: vector(d.Severity),
	}
	var pages []string
	for _, r := range d.References {
		pages = append(pages, r.URL)
	}
	out.References = words(pages, maxReferences, maxURL)
	var word string
	if json.Unmarshal(d.DatabaseSpecific["severity"], &word) == nil {
		out.Severity = cut(word, maxWord)
	}
	var cwe []string
	if json.Unmarshal(d.DatabaseSpecific["cwe_ids"], &cwe) == nil {
		out.Cwe = words(cwe, maxIDs, maxWord)
	}
	return out
}

// vector returns the CVSS vector of the newest version. The scores of version 2 do not compare with later ones.
func vector(raw json.RawMessage) (newest string) {
	var all []struct{ Type, Score string }
	if json.Unmarshal(raw, &all) != nil {
		return ""
	}
	kind := "CVSS_V2"
	for _, one := range all {
		if strings.HasPrefix(one.Type, "CVSS_V") && one.Type > kind && len(one.Score) <= maxWord {
			kind, newest = one.Type, one.Score
		}
	}
	return newest
}

// words returns at most n texts that are not longer than size.
func words(list []string, n, size int) (kept []string) {
	for _, text := range list {
		if text = strings.TrimSpace(text); text != "" && len(text) <= size && len(kept) < n && !strings.ContainsFunc(text, unicode.IsControl) {
			kept = append(kept, text)
		}
	}
	return kept
}

// cut shortens a text to a number of characters, and removes what databases cannot store.
func cut(text string, most int) string {
	runes := []rune(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", ""))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}
