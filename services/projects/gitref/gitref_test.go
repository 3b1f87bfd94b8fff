package gitref

import "testing"

func TestFull(t *testing.T) {
	for ref, want := range map[string]string{
		"": "", "main": "refs/heads/main", "release/2": "refs/heads/release/2", "refs/heads/main": "refs/heads/main",
		"refs/pull/7/merge": "refs/pull/7/merge", "refs/tags/v1": "refs/tags/v1",
	} {
		if got := Full(ref); got != want || Full(got) != want {
			t.Errorf("Full(%q) = %q, want %q", ref, got, want)
		}
	}
	if !IsBranch("refs/heads/main") || IsBranch("refs/pull/7/merge") || IsBranch("refs/tags/v1") {
		t.Error("only refs/heads/… are branches")
	}
}
