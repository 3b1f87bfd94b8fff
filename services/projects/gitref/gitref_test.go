package gitref

import "testing"

func TestFull(t *testing.T) {
	for ref, want := range map[string]string{
		"": "", "main": "refs/heads/main", "release/2": "refs/heads/release/2", "refs/heads/main": "refs/heads/main",
		"refs/pull/7/merge": "refs/pull/7/merge", "refs/tags/v1": "refs/tags/v1", "pull/5/merge": "refs/pull/5/merge",
		"merge-requests/3/head": "refs/merge-requests/3/head", "pull/5": "refs/heads/pull/5", "pull/x/merge": "refs/heads/pull/x/merge",
		"refs/remotes/origin/main": "refs/heads/main", "remotes/origin/a/b": "refs/heads/a/b", "origin/main": "refs/heads/origin/main",
		"refs/remotes/fork/main": "refs/remotes/fork/main",
	} {
		if got := Full(ref); got != want || Full(got) != want {
			t.Errorf("Full(%q) = %q, want %q", ref, got, want)
		}
	}
	if !IsBranch("refs/heads/main") || IsBranch("refs/pull/7/merge") || IsBranch("refs/tags/v1") {
		t.Error("only refs/heads/… are branches")
	}
}

func TestCheck(t *testing.T) {
	for ref, good := range map[string]bool{
		"main": true, "refs/pull/7/merge": true, "feature/Grüße-世界": true, "release-1.2.3": true, "a@b": true, "@": true, "user/fix#12,3": true, "HEAD": true,
		"a..b": false, "../x": false, "refs/heads/..": false, "a b": false, "a\u202eb": false, "a\nb": false, "a~1": false, "a^": false, "a:b": false, "a*": false, "a?": false,
		"a[b": false, "a\\b": false, "a@{1}": false, "a.": false, "a/": false, "a//b": false, "a/.b": false, "x.lock": false, "x.lock/y": false, "refs/": false,
	} {
		if got := Check(Full(ref)); (got == "") != good {
			t.Errorf("%q: %q", ref, got)
		}
	}
}
