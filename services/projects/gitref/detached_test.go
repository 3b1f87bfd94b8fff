package gitref

import (
	"strings"
	"testing"
)

func TestScanned(t *testing.T) {
	sha := strings.Repeat("3F", 20)
	for _, one := range []struct{ ref, commit, want string }{
		{"main", sha, "refs/heads/main"}, {"refs/pull/7/merge", sha, "refs/pull/7/merge"}, {"refs/heads/HEAD2", sha, "refs/heads/HEAD2"},
		{"HEAD", sha, "refs/detached/" + strings.Repeat("3f", 20)}, {"refs/heads/HEAD", "3f2a9c1", "refs/detached/3f2a9c1"}, {"", sha, "refs/detached/" + strings.Repeat("3f", 20)},
		{"@", sha, "refs/detached/" + strings.Repeat("3f", 20)}, {"origin/HEAD", "3f2a9c1", "refs/detached/3f2a9c1"}, {"remotes/origin/HEAD", "3f2a9c1", "refs/detached/3f2a9c1"},
		{"refs/remotes/origin/HEAD", "3f2a9c1", "refs/detached/3f2a9c1"}, {"FETCH_HEAD", "3f2a9c1", "refs/detached/3f2a9c1"}, {UnknownCommit, "3f2a9c1", "refs/detached/3f2a9c1"},
		{"refs/heads/@", "", UnknownCommit}, {"refs/detached/3f2a9c1", sha, "refs/detached/3f2a9c1"}, {"origin/HEAD2", sha, "refs/heads/origin/HEAD2"},
		{"detached", "3f2a9c1", "refs/detached/3f2a9c1"}, {"ORIG_HEAD", "", UnknownCommit}, {"heads/HEAD", "3f2a9c1", "refs/detached/3f2a9c1"},
		{sha, "", "refs/detached/" + strings.Repeat("3f", 20)}, {"refs/heads/" + sha, "3f2a9c1", "refs/detached/3f2a9c1"}, {"deadbeef", "", "refs/heads/deadbeef"},
		{sha + sha[:24], "", "refs/detached/" + strings.Repeat("3f", 32)}, {"pull/5/merge", sha, "refs/pull/5/merge"}, {"detached-head", sha, "refs/heads/detached-head"},
		{"HEAD", "", UnknownCommit}, {"HEAD", "v1.2 of yesterday", UnknownCommit}, {"", "../..", UnknownCommit}, {"head", sha, "refs/heads/head"},
	} {
		got := Scanned(one.ref, one.commit)
		if IsDetached(got) != strings.HasPrefix(got, DetachedPrefix) || IsHead(got) != (got == UnknownCommit) {
			t.Errorf("%s: detached %t, HEAD %t", got, IsDetached(got), IsHead(got))
		}
		if got != one.want || Check(got) != "" || strings.HasPrefix(got, DetachedPrefix) && IsBranch(got) {
			t.Errorf("%s at %s: %s, want %s", one.ref, one.commit, got, one.want)
		}
	}
}

func TestPullRequest(t *testing.T) {
	for ref, want := range map[string]int64{
		"refs/pull/7/merge": 7, "refs/pull/120/head": 120, "refs/merge-requests/3/head": 3, "refs/pull-requests/9/from": 9,
		"refs/pull/0/merge": 0, "refs/pull/x/merge": 0, "refs/heads/refs/pull/7/merge": 0, "refs/pull/7": 0, "refs/pull/99999999999999999999/merge": 0, "refs/heads/main": 0,
	} {
		if got := PullRequest(ref); got != want {
			t.Errorf("%s: %d, want %d", ref, got, want)
		}
	}
	for _, ref := range PullRequestRefs(42) {
		if got := PullRequest(ref); got != 42 {
			t.Errorf("%s: %d, want 42", ref, got)
		}
	}
}
