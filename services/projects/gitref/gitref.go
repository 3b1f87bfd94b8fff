// Package gitref brings the spellings of a Git ref into one form, so that "main" and "refs/heads/main" are the same.
package gitref

import "strings"

// Default is what callers send for "the primary branch of each project" (contract facts 3.11).
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

// Short returns the branch name of a full ref, and any other ref as it is.
func Short(full string) string { return strings.TrimPrefix(full, "refs/heads/") }
