// Package projectname validates names of new projects. Existing projects keep their names.
package projectname

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// routes are the path segments of the API that may follow a project name.
var routes = []string{"tags", "managed-scan"}

// Max is the maximum length of a name, in runes.
const Max = 255

// Aside is the name of a project whose own name another repository has now.
func Aside(name, repositoryID string) string { return name + "~" + repositoryID }

// Normal normalises a name: Unicode NFC, without surrounding white space.
func Normal(name string) string { return norm.NFC.String(strings.TrimSpace(name)) }

// blanks are invisible letters: the Hangul fillers and the blank Braille pattern.
const blanks = "\u115f\u1160\u2800\u3164\uffa0"

// Check returns the rule that a normalised name violates, as a phrase after "the name of a project"; "" if it is valid.
func Check(name string) string {
	for _, r := range name {
		if !unicode.IsPrint(r) || strings.ContainsRune(blanks, r) {
			return fmt.Sprintf("must have no control characters, and none that are invisible or turn the direction of text; it has U+%04X", r)
		}
	}
	parts := strings.Split(name, "/")
	for _, part := range parts {
		switch {
		case strings.TrimSpace(part) == "":
			return "must not be blank, nor have a blank part between slashes"
		case part == "." || part == "..":
			return "must have no part that is . or .., for paths would not reach it"
		case part != strings.TrimSpace(part):
			return "must have no spaces beside a slash"
		}
	}
	if last := parts[len(parts)-1]; len(parts) > 1 && slices.Contains(routes, last) {
		return fmt.Sprintf("must not end in /%s: that is a path of the API below a project", last)
	}
	return ""
}
