package codehost

import "strings"

// CommitURL links to a commit. It returns "" if the repository's URL or the commit is unknown. scmType is as for
// LineURL.
func CommitURL(scmType, repository, commit string) string {
	if repository == "" || commit == "" {
		return ""
	}
	base := strings.TrimSuffix(repository, "/")
	switch family(scmType, base) {
	case "gitlab":
		return base + "/-/commit/" + commit
	case "bitbucket", "bitbucket-datacenter":
		return base + "/commits/" + commit
	}
	return base + "/commit/" + commit
}
