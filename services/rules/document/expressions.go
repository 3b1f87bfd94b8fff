package document

import (
	"regexp"
	"slices"
	"strings"
)

// patternKeys are the keys of a rule with patterns.
var patternKeys = []string{
	"pattern", "patterns", "pattern-either", "pattern-regex", "match", "taint",
	"pattern-sources", "pattern-sinks", "pattern-sanitizers", "pattern-propagators",
}

// readExpressions validates the texts inside of the rule's patterns, as far as that is possible without a scanner's
// engine.
func (p *parser) readExpressions(v *value, languages []string) {
	e := expressions{p, languages}
	for i, key := range v.keys {
		if slices.Contains(patternKeys, key) {
			e.read(key, v.items[i])
		}
	}
	if fix := v.get("fix-regex").get("regex"); fix != nil && !pythonOnly.MatchString(fix.text) {
		p.regex(fix, "fix-regex.regex")
	}
	for _, key := range []string{"include", "exclude"} {
		if globs := v.get("paths").get(key); globs != nil {
			for i, glob := range globs.items {
				if open := strings.LastIndexByte(glob.text, '['); open >= 0 && !strings.Contains(glob.text[open:], "]") && !strings.HasSuffix(glob.text[:open], `\`) {
					p.problem(glob.line, "paths.%s[%d]: %s is not a glob: the [ is not closed", key, i, glob)
				}
			}
		}
	}
}

// pythonOnly matches what Python accepts and PCRE does not. Some scanners replace with Python.
var pythonOnly = regexp.MustCompile(`\\[uUN]|\(\?[a-zA-Z-]*[uL]|\[:`)

// expressions reads the patterns of one language.
type expressions struct {
	*parser
	languages []string
}

// isRegexOnly reports whether scanners only run regular expressions for the languages.
func (e expressions) isRegexOnly() bool {
	return len(e.languages) > 0 && !slices.ContainsFunc(e.languages, func(language string) bool { return language != "regex" && language != "none" })
}

// read reads the value of an operator, and what is below it.
func (e expressions) read(key string, v *value) {
	switch {
	case v.kind == text:
		e.readText(key, v)
	case v.kind == array:
		for _, item := range v.items {
			e.read(key, item)
		}
	case v.kind == object:
		if language := v.get("language"); language != nil { // of a metavariable's content
			full, known := Language(language.text)
			if !known {
				e.problem(language.line, "%s: language must be one of %s, got %s", key, strings.Join(Languages(), ", "), language)
				return
			}
			e.languages = []string{full}
		}
		if key == "metavariable-type" && v.get("language") == nil && slices.ContainsFunc(e.languages, hasNoTypes) {
			e.problem(v.line, "metavariable-type is not allowed with the languages %s, which have no types", strings.Join(e.languages, ", "))
		}
		e.readSideEffect(v)
		for i, name := range v.keys {
			e.read(name, v.items[i])
		}
	}
}

func hasNoTypes(language string) bool {
	return slices.Contains([]string{"regex", "none", "generic", "spacegrep", "aliengrep"}, language)
}

// readText reads a text below a pattern.
func (e expressions) readText(key string, v *value) {
	switch key {
	case "pattern-regex", "pattern-not-regex", "regex":
		e.regex(v, key)
	case "pattern", "pattern-not", "pattern-inside", "pattern-not-inside", "semgrep-internal-pattern-anywhere",
		"match", "not", "inside", "anywhere", "all", "any", "sources", "sinks", "sanitizers":
		if e.isRegexOnly() {
			e.problem(v.line, "%s is not allowed with the languages %s: they allow pattern-regex and pattern-not-regex only", key, strings.Join(e.languages, ", "))
			return
		}
		if wrong := codeProblem(v.text, e.languages); wrong != "" {
			e.problem(v.line, "%s: %s cannot be parsed: %s", key, v, wrong)
		}
	case "comparison":
		if wrong := comparisonProblem(v.text); wrong != "" {
			e.problem(v.line, "comparison: %s cannot be parsed: %s", v, wrong)
		}
	case "requires":
		if wrong := requiresProblem(v.text); wrong != "" {
			e.problem(v.line, "requires: %s cannot be parsed: %s", v, wrong)
		}
	case "analyzer":
		if !slices.Contains(analyzers, v.text) {
			e.problem(v.line, "analyzer must be one of %s, got %s", strings.Join(analyzers, ", "), v)
		}
	}
}

// regex validates a regular expression; v may be nil.
func (p *parser) regex(v *value, what string) {
	if v == nil || v.kind != text {
		return
	}
	if wrong := regexProblem(v.text); wrong != "" {
		p.problem(v.line, "%s: %s is not a regular expression: %s", what, v, wrong)
	}
}
