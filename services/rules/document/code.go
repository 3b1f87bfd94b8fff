package document

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// bracketLanguages are languages whose code always has balanced brackets outside of texts and comments.
var bracketLanguages = []string{
	"c", "cpp", "csharp", "dart", "go", "java", "javascript", "json", "jsonnet", "kotlin", "lua", "php", "python", "python2", "python3", "ruby",
	"rust", "scala", "solidity", "swift", "terraform", "typescript",
}

// uncertain are marks of comments, escapes, and texts with other delimiters. Code with one of them is not judged.
var uncertain = []string{"'", "`", "\\", "/", "#", "--", `""`, "<<", "|||", "[["}

// deepEllipsis matches the begin of <... x ...>. In types and tags, something other than a space follows.
var deepEllipsis = regexp.MustCompile(`<\.\.\.\s`)

// codeProblem says why no scanner can parse the code of a pattern; empty if it is unknown. Only scanners have parsers.
// This finds brackets and double quotes without a partner, where each character is certain.
func codeProblem(code string, languages []string) string {
	for _, language := range languages {
		if !slices.Contains(bracketLanguages, language) {
			return ""
		}
	}
	isUncertain := func(mark string) bool { return strings.Contains(code, mark) }
	if len(languages) == 0 || slices.ContainsFunc(uncertain, isUncertain) {
		return ""
	}
	if !strings.Contains(code, `"`) {
		if begin := deepEllipsis.FindStringIndex(code); begin != nil && !strings.Contains(code[begin[1]:], "...>") {
			return "the <... is not closed: write ...> behind it"
		}
		if strings.Contains(code, "....") {
			return "an ellipsis has three dots"
		}
	}
	if strings.Count(code, `"`)%2 == 1 {
		return `a " is not closed`
	}
	var open []byte
	inText := false
	for i := range len(code) {
		c := code[i]
		switch {
		case c == '"':
			inText = !inText
		case inText && c == '\n':
			return "" // a text of several lines, as some languages have
		case inText:
		case c == '(' || c == '[' || c == '{':
			open = append(open, c)
		case c == ')' || c == ']' || c == '}':
			if len(open) == 0 || partners[open[len(open)-1]] != c {
				return fmt.Sprintf("the %c is not opened", c)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("the %c is not closed", open[len(open)-1])
	}
	return ""
}

var partners = map[byte]byte{'(': ')', '[': ']', '{': '}'}
