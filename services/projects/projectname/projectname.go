// Package projectname says what a new project may be called. It is asked where projects are made; those that are there
// keep their names.
package projectname

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// routes are what paths of the API have behind the name of a project.
var routes = []string{"tags", "managed-scan"}

// Normal is the one spelling of a name: in Unicode's form NFC, without white space around it.
func Normal(name string) string { return norm.NFC.String(strings.TrimSpace(name)) }

// blanks are letters that are shown as nothing: the fillers of Hangul, and the empty pattern of Braille.
const blanks = "\u115f\u1160\u2800\u3164\uffa0"

// Check returns the rule that a name in the normal form breaks, in words that go on after "the name of a project"; ""
// if it breaks none.
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
