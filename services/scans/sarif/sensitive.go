package sarif

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/palisade/palisade/services/findings/vocabulary"
)

// sensitiveTools report secrets beside other problems: their results are redacted, but not of the product secrets.
var sensitiveTools = []string{"patternmatcher", "credscan", "credential scanner"}

// secretPhrase matches names and descriptions of rules that look for secrets, in lower case with single spaces.
var secretPhrase = regexp.MustCompile(strings.NewReplacer(
	"NOUN", `(?:passwords?|passwd|pwd|secrets?|credentials?|tokens?|passphrases?|(?:private|api|access|secret|encryption|crypto\w*|ssh) ?keys?)`,
	"FEW", `(?:\S+ ){0,4}`,
).Replace(strings.Join([]string{
	`\b(?:hard ?coded?|plain ?text|clear ?text|exposed|leaked|committed|embedded|apparent|detected|possible|potential|generic) FEWNOUN\b`,
	`\b(?:NOUN|keys?) FEW(?:hard ?coded?|plain ?text|exposure|leaked)\b`,
	`\bhard ?coded? (?:\S+ ){0,2}keys?\b`,
	`\b(?:private|api|access|secret) ?(?:keys?|tokens?)$`,
	`\b(?:NOUN|keys?) (?:used )?in (?:\S+ )?(?:code|url|source|files?|config\w*|repo\w*|arg|env\w*)\b`,
	`\bpasswords and secrets\b`, `^no secrets\b`,
}, "|")))

// secretCWEs are the weaknesses of credentials in code.
var secretCWEs = map[string]bool{"CWE-259": true, "CWE-321": true, "CWE-547": true, "CWE-798": true}

func isSecretCWE(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		id, _, _ := strings.Cut(name, ":")
		return secretCWEs[id]
	})
}

// sensitiveRule reports whether a rule looks for secrets, although its tool is not a secrets tool. Its snippets contain
// secrets, too. The texts are its name and description.
func sensitiveRule(id string, tags []string, texts ...string) bool {
	lower := strings.ToLower(id)
	if strings.HasPrefix(lower, "ckv_secret") {
		return true
	}
	for _, part := range strings.FieldsFunc(lower, func(r rune) bool { return r == '.' || r == '/' || r == ':' }) {
		if part == "secrets" || part == "secret" {
			return true
		}
	}
	if productWord(tags) == vocabulary.Secrets {
		return true
	}
	return slices.ContainsFunc(slices.Concat([]string{id}, texts, tags), mentionsSecret)
}

// mentionsSecret reports whether a name or a text says that there is a secret in the code: "hardcoded-password",
// "HardcodedCredentials", "Possible hardcoded secret".
func mentionsSecret(text string) bool {
	lower := strings.ToLower(text[:min(len(text), 200)])
	named := slices.ContainsFunc(secretNouns, func(noun string) bool { return strings.Contains(lower, noun) })
	return named && secretPhrase.MatchString(words(text[:min(len(text), 200)]))
}

// secretNouns are in every text that secretPhrase matches. They are faster to find.
var secretNouns = []string{"passw", "pwd", "secret", "credential", "token", "passphrase", "key"}

// words splits a name or text into words in lower case.
func words(text string) string {
	var b strings.Builder
	last := ' '
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = ' '
		case unicode.IsUpper(r) && unicode.IsLower(last):
			b.WriteByte(' ')
		}
		if r != ' ' || last != ' ' {
			b.WriteRune(unicode.ToLower(r))
		}
		last = r
	}
	return strings.TrimSpace(b.String())
}

// isSensitive reports whether texts of a result may contain a secret.
func (run *Run) isSensitive(res *Result) bool {
	return run.Secrets || res.Product == vocabulary.Secrets || res.Rule.sensitive || isSecretCWE(res.CWENames) ||
		res.Rule.Stub && mentionsSecret(res.Message)
}
