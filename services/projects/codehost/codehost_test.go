package codehost

import (
	"strings"
	"testing"
)

func TestLinks(t *testing.T) {
	const path = "app/a b.go"
	for name, c := range map[string]struct{ scmType, repository, line, ref string }{
		"GitHub":               {"SCM_TYPE_UNKNOWN", "https://git.acme.test/acme/web/", "https://git.acme.test/acme/web/blob/3f2a/app/a%20b.go#L42", "https://git.acme.test/acme/web/tree/release/2"},
		"GitLab by type":       {"SCM_TYPE_GITLAB_SELFMANAGED", "https://git.acme.test/acme/web", "https://git.acme.test/acme/web/-/blob/3f2a/app/a%20b.go#L42", "https://git.acme.test/acme/web/-/tree/release/2"},
		"GitLab by host":       {"", "https://gitlab.com/acme/web", "https://gitlab.com/acme/web/-/blob/3f2a/app/a%20b.go#L42", "https://gitlab.com/acme/web/-/tree/release/2"},
		"GitHub by type":       {"SCM_TYPE_GITHUB_ENTERPRISE", "https://gitlab-mirror.acme.test/a/b", "https://gitlab-mirror.acme.test/a/b/blob/3f2a/app/a%20b.go#L42", "https://gitlab-mirror.acme.test/a/b/tree/release/2"},
		"Bitbucket":            {"", "https://bitbucket.org/acme/web", "https://bitbucket.org/acme/web/src/3f2a/app/a%20b.go#lines-42", "https://bitbucket.org/acme/web/src/release/2"},
		"Bitbucket Datacenter": {"SCM_TYPE_BITBUCKET_DATACENTER", "https://bb.acme.test/projects/A/repos/web", "https://bb.acme.test/projects/A/repos/web/browse/app/a%20b.go?at=3f2a#42", "https://bb.acme.test/projects/A/repos/web/browse?at=refs%2Fheads%2Frelease%2F2"},
		"Azure":                {"", "https://dev.azure.com/acme/_git/web", "https://dev.azure.com/acme/_git/web?path=/app%2Fa+b.go&version=GC3f2a&line=42", "https://dev.azure.com/acme/_git/web?version=GBrelease%2F2"},
	} {
		if got := LineURL(c.scmType, c.repository, "3f2a", path, 42); got != c.line {
			t.Errorf("%s line: %s, want %s", name, got, c.line)
		}
		if got := RefURL(c.scmType, c.repository, "refs/heads/release/2"); got != c.ref {
			t.Errorf("%s ref: %s, want %s", name, got, c.ref)
		}
	}
	for _, c := range [][3]string{
		{"", "https://git.acme.test/acme/web/", "https://git.acme.test/acme/web/pull/7"}, {"", "https://gitlab.com/acme/web", "https://gitlab.com/acme/web/-/merge_requests/7"},
		{"", "https://bitbucket.org/acme/web", "https://bitbucket.org/acme/web/pull-requests/7"}, {"", "https://dev.azure.com/acme/_git/web", "https://dev.azure.com/acme/_git/web/pullrequest/7"},
		{"SCM_TYPE_BITBUCKET_DATACENTER", "https://bb.acme.test/projects/A/repos/web", "https://bb.acme.test/projects/A/repos/web/pull-requests/7"}, {"", "", ""},
	} {
		if got := PullRequestURL(c[0], c[1], 7); got != c[2] {
			t.Errorf("pull request of %s: %s, want %s", c[1], got, c[2])
		}
	}
	for _, unknown := range []string{LineURL("", "", "3f2a", path, 1), LineURL("", "https://x.test/a", "", path, 1), LineURL("", "https://x.test/a", "3f2a", "", 1),
		RefURL("", "", "refs/heads/main"), RefURL("", "https://x.test/a", "refs/pull/7/merge")} {
		if unknown != "" {
			t.Errorf("a link from unknown facts: %s", unknown)
		}
	}
}

// TestBitbucketDataCenter: its repositories are recognised by their URLs, and links lead to their pages.
func TestBitbucketDataCenter(t *testing.T) {
	const page = "https://bb.acme.test/projects/PR/repos/r"
	for repository, want := range map[string]string{
		page: page, page + "/": page, page + "/browse": page, "https://bb.acme.test/scm/PR/r.git": page, "https://bb.acme.test/scm/PR/r": page,
		"https://bb.acme.test/scm/~kim/r.git":            "https://bb.acme.test/users/kim/repos/r",
		"https://bb.acme.test/users/kim/repos/r":         "https://bb.acme.test/users/kim/repos/r",
		"https://acme.test/bitbucket/scm/PR/r.git":       "https://acme.test/bitbucket/projects/PR/repos/r",
		"http://bb.acme.test:7990/projects/PR/repos/r.x": "http://bb.acme.test:7990/projects/PR/repos/r.x",
	} {
		for _, scmType := range []string{"", "SCM_TYPE_UNKNOWN", "SCM_TYPE_BITBUCKET_DATACENTER"} {
			for got, want := range map[string]string{
				LineURL(scmType, repository, "3f2a", "a/b.go", 3):    want + "/browse/a/b.go?at=3f2a#3",
				RefURL(scmType, repository, "refs/heads/main"):       want + "/browse?at=refs%2Fheads%2Fmain",
				PullRequestURL(scmType, repository, 7):               want + "/pull-requests/7",
				CommitURL(scmType, repository, "3f2a"):               want + "/commits/3f2a",
				NewRepository(scmType, repository).Line("c", "d", 1): want + "/browse/d?at=c#1",
			} {
				if got != want {
					t.Errorf("%s %s: %s, want %s", scmType, repository, got, want)
				}
			}
		}
	}
	for _, c := range [][2]string{ // other hosts
		{"", "https://gitlab.acme.test/scm/team/r"}, {"SCM_TYPE_GITLAB_SELFMANAGED", "https://git.acme.test/scm/team/r"},
		{"", "https://git.acme.test/scm/r"}, {"", "https://git.acme.test/projects/r"}, {"SCM_TYPE_GITHUB_ENTERPRISE", page},
	} {
		if got := LineURL(c[0], c[1], "3f2a", "a.go", 3); strings.Contains(got, "/browse/") {
			t.Errorf("%s: %s", c, got)
		}
	}
}
