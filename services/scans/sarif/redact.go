package sarif

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Redacted replaces a secret. With [WithRedactionKey] a snippet is "[redacted 0123456789abcdef]" instead.
const Redacted = "[redacted]"

// redactor removes secrets from what is kept of one result. The zero value removes only well-known tokens.
type redactor struct {
	// hides says that the result is about a secret, so its code is hidden completely.
	hides   bool
	key     []byte
	secrets []string // the longest first, so that a part never hides the whole
	// namesRules says that the code has a comment that may name rules.
	namesRules bool
	unsure     bool // there are more candidates than are compared
}

func newRedactor(key []byte, snippets ...string) redactor {
	r := redactor{hides: true, key: key}
	for _, snippet := range snippets {
		r.namesRules = r.namesRules || suppressing.MatchString(snippet)
		r.add(candidates(snippet))
	}
	return r
}

func (r *redactor) add(found []string) {
	r.unsure = r.unsure || len(found) >= maxCandidates
	r.secrets = append(r.secrets, found...)
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
	r.secrets = slices.Compact(r.secrets)
}

// snippet hides the code of a secret, because only the tool knows where the secret is in it.
func (r redactor) snippet(text string) string {
	if !r.hides {
		return redactTokens(text)
	}
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
	return redactTokens(s)
}

// ruleText removes the secret from a text of the rule. A rule is about many results, so that only what can hardly be a
// word of a rule counts: letters and digits, and in an id without spaces small and capital ones.
func (r redactor) ruleText(s string) string {
	isName := !strings.ContainsFunc(s, unicode.IsSpace)
	for _, secret := range r.secrets {
		if len(secret) < minRuleSecret || !strings.Contains(s, secret) || identifier.MatchString(secret) {
			continue
		}
		upper, lower := strings.ContainsFunc(secret, unicode.IsUpper), strings.ContainsFunc(secret, unicode.IsLower)
		if strings.ContainsAny(secret, "0123456789") && (upper || lower) && (!isName || upper && lower && !r.namesRules) {
			s = strings.ReplaceAll(s, secret, Redacted)
		}
	}
	return s
}

// minRuleSecret is the length below which a text is too common to be replaced in a rule.
const minRuleSecret = 8

// suppressing matches comments that name rules.
var suppressing = regexp.MustCompile(`(?i)nosem|nosec|noqa|nosonar|skip|disable|ignore|suppress|allow`)

// redactRule removes the secret from the rule of a result, in a copy.
func (res *Result) redactRule(r redactor) {
	if !r.hides {
		return
	}
	rule := *res.Rule
	rule.ID, rule.Name, rule.Message = r.ruleText(rule.ID), r.ruleText(rule.Name), r.ruleText(rule.Message)
	rule.Help, rule.HelpURI = r.ruleText(rule.Help), r.ruleText(rule.HelpURI)
	if id := r.ruleText(res.RuleID); id != res.RuleID {
		res.RuleID, res.Redacted = id, true
	}
	if rule.ID != res.Rule.ID || rule.Name != res.Rule.Name || rule.Message != res.Rule.Message || rule.Help != res.Rule.Help || rule.HelpURI != res.Rule.HelpURI {
		res.Rule = &rule
	}
}

// quotedText is like quoted, of any length, so that it pairs the right quotes.
var quotedText = regexp.MustCompile("[\"'`]([^\"'`]*)[\"'`]")

// quotedIn returns the quoted parts of a message, except the name of the file: without code to compare with, each may
// be the secret.
func quotedIn(message, file string) (found []string) {
	for _, m := range quotedText.FindAllStringSubmatch(message, maxCandidates-1) {
		if len(m[1]) >= minSecret && !strings.HasSuffix(file, m[1]) {
			found = append(found, m[1])
		}
	}
	if _, value, ok := strings.Cut(message, "="); ok {
		found = append(found, assigned(value)...)
	}
	if _, value, ok := strings.Cut(message, ": "); ok {
		found = append(found, assigned(value)...)
	}
	for _, word := range strings.FieldsFunc(message, isSeparator) {
		word = strings.Trim(word, ".!?")
		mixes := strings.ContainsAny(word, "0123456789") && strings.IndexFunc(word, unicode.IsLetter) >= 0
		if len(word) >= 6 && mixes && !strings.HasSuffix(file, word) && !identifier.MatchString(word) && len(found) < maxCandidates-1 {
			found = append(found, word)
		}
	}
	return found
}

// identifier matches words with digits that are no secrets.
var identifier = regexp.MustCompile(`(?i)^(?:cwe|cve|ghsa|owasp)[-_:]`)

// assigned is a value after a colon or an equals sign, if it is one word.
func assigned(value string) []string {
	if value = strings.Trim(value, " \t\r\n\"'`;,.()[]{}"); len(value) < minSecret || strings.ContainsAny(value, " \t\n") {
		return nil
	}
	return []string{value}
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

// redactedCode matches code that was hidden.
var redactedCode = regexp.MustCompile(`^\[redacted(?: [0-9a-f]{16})?\]$`)

// IsRedacted reports whether the code of a finding was hidden because of a secret.
func IsRedacted(code string) bool { return redactedCode.MatchString(code) }

// RedactorOf takes the code of a stored finding. Without code, quoted parts of the message may be the secret.
func RedactorOf(key []byte, code, message, file string) Redactor {
	r := newRedactor(key, code)
	if code == "" {
		r.add(quotedIn(message, file))
	}
	return Redactor{r}
}

// Code hides code.
func (r Redactor) Code(s string) string { return r.redactor.snippet(s) }

// Leaks reports whether a text contains the secret.
func (r Redactor) Leaks(s string) bool { return r.redactor.leaks(s) }

// Text removes the secret, and everything that looks like a well-known kind of token.
func (r Redactor) Text(s string) string { return r.redactor.text(s) }

// Sensitive reports by id, tags and CWEs whether results of a rule may contain a secret, regardless of their product.
func Sensitive(ruleID string, tags, cwes []string) bool {
	return sensitiveRule(ruleID, tags) || isSecretCWE(cweNames(cwes))
}

// RedactTokens replaces well-known tokens. Texts of findings in any format pass it.
func RedactTokens(s string) string { return redactTokens(s) }
