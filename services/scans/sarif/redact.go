package sarif

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// Redacted is what stands for a secret. With [WithRedactionKey] a snippet is "[redacted 0123456789abcdef]" instead.
const Redacted = "[redacted]"

// wellKnown are the forms of tokens that name themselves, for messages of tools that give no snippet to compare with.
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

// snippet replaces the whole snippet: where in it the secret is, only the tool knows.
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

// text removes the secret from other text of the result; all of the text if the secret may be any of too many words.
func (r redactor) text(s string) string {
	if r.unsure && s != "" {
		return Redacted
	}
	for _, secret := range r.secrets {
		s = strings.ReplaceAll(s, secret, Redacted)
	}
	return wellKnown.ReplaceAllString(s, Redacted)
}

// leaks tells whether a text holds the secret.
func (r redactor) leaks(s string) bool { return r.text(s) != s }

const (
	// minSecret is the length below which a text is too common to be replaced wherever it occurs.
	minSecret = 4
	// maxCandidates bounds the work for a snippet of many words.
	maxCandidates = 200
)

// candidates are the parts of a snippet that may be the secret: the whole, each line, what is quoted or assigned, and
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

// Redactor removes secrets from texts of a finding that came in another format than SARIF.
type Redactor struct{ redactor redactor }

// NewRedactor takes the code that may hold the secret, as far as it is known. Without a key, redacted code looks all
// the same.
func NewRedactor(key []byte, code ...string) Redactor { return Redactor{newRedactor(key, code...)} }

// Text removes the secret, and whatever looks like a well-known kind of token.
func (r Redactor) Text(s string) string { return r.redactor.text(s) }

// Sensitive tells the rules whose results may hold a secret, by id and tags, whatever their product is.
func Sensitive(ruleID string, tags []string) bool { return sensitiveRule(ruleID, tags) }
