package sarif

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// Redacted replaces a secret. With [WithRedactionKey] a snippet is "[redacted 0123456789abcdef]" instead.
const Redacted = "[redacted]"

// wellKnown matches tokens with a recognisable form, for messages of tools without a snippet to compare with.
var wellKnown = regexp.MustCompile(strings.Join([]string{
	`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,
	`\bgh[pousr]_[0-9A-Za-z]{30,}`,
	`\bgithub_pat_[0-9A-Za-z_]{40,}`,
	`\bglpat-[0-9A-Za-z_-]{20,}`,
	`\bxox[abeoprs]-[0-9A-Za-z-]{10,}`,
	`\b[sr]k_(?:live|test)_[0-9A-Za-z]{16,}`,
	`\bAIza[0-9A-Za-z_-]{30,}`,
	`\beyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]*`,
	`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
	`://[^/\s:@]+:[^/\s@]+@`,
}, "|"))

// redactor removes secrets from what is kept of one result.
type redactor struct {
	key     []byte
	secrets []string // the longest first, so that a part never hides the whole
	unsure  bool     // there are more candidates than are compared
}

func newRedactor(key []byte, snippets ...string) redactor {
	r := redactor{key: key}
	for _, snippet := range snippets {
		found := candidates(snippet)
		r.unsure = r.unsure || len(found) >= maxCandidates
		r.secrets = append(r.secrets, found...)
	}
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
	r.secrets = slices.Compact(r.secrets)
	return r
}

// snippet replaces the whole snippet, because only the tool knows where the secret is in it.
func (r redactor) snippet(text string) string {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return ""
	case len(r.key) == 0:
		return Redacted
	}
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(text))
	return "[redacted " + hex.EncodeToString(mac.Sum(nil)[:8]) + "]"
}

// text removes the secret from other text of the result. If there are too many candidates, it removes all of the text.
func (r redactor) text(s string) string {
	if r.unsure && s != "" {
		return Redacted
	}
	for _, secret := range r.secrets {
		s = strings.ReplaceAll(s, secret, Redacted)
	}
	return wellKnown.ReplaceAllString(s, Redacted)
}

// leaks reports whether a text contains the secret.
func (r redactor) leaks(s string) bool { return r.text(s) != s }

const (
	// minSecret is the length below which a text is too common to be replaced everywhere.
	minSecret = 4
	// maxCandidates bounds the work for a snippet of many words.
	maxCandidates = 200
)

// candidates are the parts of a snippet that may be the secret: the whole, each line, quoted or assigned values, and
// every word that mixes letters and digits.
func candidates(snippet string) []string {
	var found []string
	add := func(s string) {
		if s = strings.TrimSpace(s); len(s) >= minSecret && len(found) < maxCandidates {
			found = append(found, s)
		}
	}
	add(snippet)
	for line := range strings.Lines(snippet) {
		if len(found) >= maxCandidates {
			break
		}
		add(line)
		for _, m := range quoted.FindAllStringSubmatch(line, maxCandidates) {
			add(m[1])
		}
		if _, value, ok := strings.Cut(line, "="); ok {
			add(strings.Trim(value, " \t\r\n\"';,`"))
		} else if _, value, ok := strings.Cut(line, ": "); ok {
			add(strings.Trim(value, " \t\r\n\"';,`"))
		}
		for _, word := range strings.FieldsFunc(line, isSeparator) {
			if len(word) >= 6 && strings.ContainsAny(word, "0123456789") {
				add(word)
			}
		}
	}
	return found
}

var quoted = regexp.MustCompile("[\"'`]([^\"'`]{4,})[\"'`]")

func isSeparator(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`=:,;()[]{}<>", r) }

// Redactor removes secrets from the texts of a finding in another format than SARIF.
type Redactor struct{ redactor redactor }

// NewRedactor takes the code that may contain the secret, if it is known. Without a key, all redacted code looks the
// same.
func NewRedactor(key []byte, code ...string) Redactor { return Redactor{newRedactor(key, code...)} }

// Text removes the secret, and everything that looks like a well-known kind of token.
func (r Redactor) Text(s string) string { return r.redactor.text(s) }

// Sensitive reports by id and tags whether results of a rule may contain a secret, regardless of their product.
func Sensitive(ruleID string, tags []string) bool { return sensitiveRule(ruleID, tags) }
