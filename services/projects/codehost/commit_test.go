package codehost

import "testing"

func TestCommitLinks(t *testing.T) {
	for want, got := range map[string]string{
		"https://git.acme.test/acme/web/commit/3f2a":      CommitURL("", "https://git.acme.test/acme/web/", "3f2a"),
		"https://gitlab.com/acme/web/-/commit/3f2a":       CommitURL("", "https://gitlab.com/acme/web", "3f2a"),
		"https://bitbucket.org/acme/web/commits/3f2a":     CommitURL("", "https://bitbucket.org/acme/web", "3f2a"),
		"https://bb.acme.test/projects/A/r/commits/3f2a":  CommitURL("SCM_TYPE_BITBUCKET_DATACENTER", "https://bb.acme.test/projects/A/r", "3f2a"),
		"https://dev.azure.com/acme/_git/web/commit/3f2a": CommitURL("", "https://dev.azure.com/acme/_git/web", "3f2a"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := CommitURL("", "", "3f2a") + CommitURL("", "https://git.acme.test/a", ""); got != "" {
		t.Errorf("a link from unknown facts: %s", got)
	}
}
