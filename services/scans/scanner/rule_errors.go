package scanner

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// RuleError is a rule that the scanner could not load.
type RuleError struct {
	// Rule is its name.
	Rule string
	// Text is what the scanner says about it.
	Text string
}

const (
	// maxRuleErrors is how many of them are kept. More say something about the scanner.
	maxRuleErrors = 100
	// maxErrorText is the length of a kept text in bytes.
	maxErrorText = 1000
)

// ruleErrorTypes are the types of errors that say that a rule is broken: letters only, in lower case. Other types, such
// as timeouts, are about files, and "incompatible" is about the version of the scanner.
var ruleErrorTypes = []string{"ruleparseerror", "patternparseerror", "invalidruleschemaerror", "unknownlanguageerror"}

// ruleErrorOf parses one error; ok is false if it is not about a rule.
func ruleErrorOf(value raw) (e RuleError, ok bool) {
	var fields struct {
		Rule    string `json:"rule_id"`
		Type    any    `json:"type"`
		Message string `json:"message"`
		Long    string `json:"long_msg"`
		Short   string `json:"short_msg"`
	}
	if json.Unmarshal(value, &fields, decodeOptions) != nil || fields.Rule == "" {
		return RuleError{}, false
	}
	if variant, isList := fields.Type.([]any); isList && len(variant) > 0 { // ["PatternParseError", [places]]
		fields.Type = variant[0]
	}
	word, _ := fields.Type.(string)
	letters := strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, strings.ToLower(word))
	text := fields.Message
	for _, other := range []string{fields.Long, fields.Short, word} {
		if text == "" {
			text = other
		}
	}
	return RuleError{plain(fields.Rule, maxName), plain(text, maxErrorText)}, slices.Contains(ruleErrorTypes, letters)
}

// namedRule finds the name of a rule in what a scanner writes about an error, such as "Pattern parse error in rule
// a.b:".
var namedRule = regexp.MustCompile("(?i)\\brule(?:[ _-]?id)?[\"']?(?:\\s*[:=]\\s*|\\s+)[\"'`]?([A-Za-z0-9_@.+/-]+)")

// isRuleLine matches a line that says that a rule is broken.
var isRuleLine = regexp.MustCompile(`(?i)\b(error|invalid|fail|failed|could not|cannot)\b`)

// isLimitLine matches a line about a limit of the scanner, outside of names of rules. A rule that reaches one, in one
// file, is not broken.
var isLimitLine = regexp.MustCompile(`(?i)\b(time-?outs?|timed out|memory|stack overflow|too many matches)\b`)

// colors matches the escape sequences of terminals.
var colors = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// RuleErrorsIn finds the rules that the output of a scanner calls broken. isRule reports whether a rule has a name.
func RuleErrorsIn(output string, isRule func(name string) bool) []RuleError {
	var list []RuleError
	lines := strings.Split(colors.ReplaceAllString(output, ""), "\n")
	for i, line := range lines {
		if !isRuleLine.MatchString(line) || isLimitLine.MatchString(namedRule.ReplaceAllString(line, "")) {
			continue
		}
		for _, match := range namedRule.FindAllStringSubmatch(line, -1) {
			name := strings.TrimRight(match[1], ".-+/")
			known := func(e RuleError) bool { return e.Rule == name }
			if !isRule(name) || slices.ContainsFunc(list, known) || len(list) >= maxRuleErrors {
				continue
			}
			// The next line often says what is wrong. More of the output could have code in it.
			text := strings.Join(strings.Fields(strings.Join(lines[i:min(i+2, len(lines))], " ")), " ")
			list = append(list, RuleError{name, plain(text, maxErrorText)})
		}
	}
	return list
}
