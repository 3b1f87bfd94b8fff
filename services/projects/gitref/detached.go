package gitref

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// DetachedPrefix begins the refs of checkouts without a branch.
const DetachedPrefix = "refs/detached/"

// UnknownCommit is the ref of a checkout without a branch whose commit is unknown.
const UnknownCommit = DetachedPrefix + "HEAD"

// heads are the names that Git and CI systems give the checked-out commit, as full refs. None is a branch.
var heads = []string{
	"refs/heads/HEAD", "refs/heads/@", "refs/heads/FETCH_HEAD", "refs/heads/origin/HEAD", "refs/heads/remotes/origin/HEAD", "refs/remotes/origin/HEAD",
	"refs/heads/heads/HEAD", "refs/heads/ORIG_HEAD", "refs/heads/MERGE_HEAD", "refs/heads/detached",
}

// commitRef matches a branch whose name is a whole commit hash. CI systems send it without a branch, and hosts refuse
// such branches.
var commitRef = regexp.MustCompile(`^refs/heads/([0-9A-Fa-f]{40}|[0-9A-Fa-f]{64})$`)

// commitHash is a commit that can name a ref.
var commitHash = regexp.MustCompile(`^[0-9A-Fa-f]{7,64}$`)

// Scanned returns the full ref that was scanned. A checkout without a branch, which tools call HEAD, has a ref for its
// commit: it is not a branch, so it is never the default branch of a project.
func Scanned(ref, commit string) string {
	full := Full(ref)
	named := commitRef.FindStringSubmatch(full)
	switch {
	case full != "" && !IsHead(full):
		return full
	case commitHash.MatchString(commit):
		return DetachedPrefix + strings.ToLower(commit)
	case named != nil:
		return DetachedPrefix + strings.ToLower(named[1])
	}
	return UnknownCommit
}

// IsHead reports whether a ref in either form is a name of a checkout without a branch, but not the ref of its commit.
func IsHead(ref string) bool {
	full := Full(ref)
	return slices.Contains(Misnamed(), full) || commitRef.MatchString(full)
}

// IsDetached reports whether a ref in either form belongs to a checkout without a branch.
func IsDetached(ref string) bool { return IsHead(ref) || strings.HasPrefix(Full(ref), DetachedPrefix) }

// Misnamed are the refs under which earlier versions stored checkouts without a branch.
func Misnamed() []string { return append(slices.Clone(heads), UnknownCommit) }

// pullRequest matches the refs under which scanners report pull (or merge) requests.
var pullRequest = regexp.MustCompile(`^refs/(?:pull|pull-requests|merge-requests)/([1-9][0-9]{0,17})/(?:head|merge|from)$`)

// PullRequestRefs returns the refs under which scanners report a pull (or merge) request.
func PullRequestRefs(number int64) (refs []string) {
	for _, kind := range []string{"pull", "pull-requests", "merge-requests"} {
		for _, end := range []string{"merge", "head", "from"} {
			refs = append(refs, fmt.Sprintf("refs/%s/%d/%s", kind, number, end))
		}
	}
	return refs
}

// PullRequest returns the number of the pull (or merge) request that a full ref belongs to; 0 if it belongs to none.
func PullRequest(full string) int64 {
	match := pullRequest.FindStringSubmatch(full)
	if match == nil {
		return 0
	}
	number, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// BetterDefault guesses the default branch of a project that no source-code host describes: the first scanned branch,
// or main or master once it is scanned.
func BetterDefault(known, scanned string) bool {
	usual := func(ref string) bool { return ref == "refs/heads/main" || ref == "refs/heads/master" }
	return known == "" || usual(scanned) && !usual(known)
}
