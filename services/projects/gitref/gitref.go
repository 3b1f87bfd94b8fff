// Package gitref normalises Git refs, so that "main" and "refs/heads/main" are the same.
package gitref

import (
	"strings"
	"unicode"
)

// Default is the callers' value for "the primary branch of each project" (contract facts 3.11).
const Default = "_default"

// remotes begins the names that Git gives the branches of its usual remote.
const remotes = "remotes/origin/"

// Full returns the full form of a ref: names without the prefix "refs/" are branches, except pull requests and branches
// of the usual remote, which have a name of their own. It returns "" for "".
func Full(ref string) string {
	short := strings.TrimPrefix(ref, "refs/")
	branch, ofRemote := strings.CutPrefix(short, remotes)
	switch {
	case ref == "":
		return ""
	case ofRemote && branch != "":
		return "refs/heads/" + branch
	case short != ref:
		return ref
	case PullRequest("refs/"+ref) != 0:
		return "refs/" + ref
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
