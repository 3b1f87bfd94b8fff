// Package gitref normalises Git refs, so that "main" and "refs/heads/main" are the same.
package gitref

import (
	"strings"
	"unicode"
)

// Default is the callers' value for "the primary branch of each project" (contract facts 3.11).
const Default = "_default"

// Full returns the full form of a ref: names without the prefix "refs/" are branches. It returns "" for "".
func Full(ref string) string {
	if ref == "" || strings.HasPrefix(ref, "refs/") {
		return ref
	}
	return "refs/heads/" + ref
}

// IsBranch reports whether a full ref is a branch, not a tag or a pull request.
func IsBranch(full string) bool { return strings.HasPrefix(full, "refs/heads/") }

// Short returns the branch name of a full ref, and any other ref unchanged.
func Short(full string) string { return strings.TrimPrefix(full, "refs/heads/") }

// Check returns the rule of git (git check-ref-format) that a full ref violates, as a phrase after "a ref"; "" if it is
// valid.
func Check(full string) string {
	switch {
	case strings.ContainsFunc(full, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) }):
		return `must have no spaces, no control characters and none of ~ ^ : ? * [ \`
	case strings.ContainsFunc(full, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }):
		return "must have no characters that turn the direction of text"
	case strings.Contains(full, ".."), strings.Contains(full, "@{"):
		return "must have neither .. nor @{"
	case strings.HasSuffix(full, "."):
		return "must not end in a dot"
	}
	for part := range strings.SplitSeq(full, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return "must have no part between slashes that is empty, begins with a dot or ends in .lock"
		}
	}
	return ""
}
