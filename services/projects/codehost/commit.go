package codehost

// CommitURL links to a commit. It returns "" if the repository's URL or the commit is unknown. scmType is as for
// LineURL.
func CommitURL(scmType, repository, commit string) string {
	if repository == "" || commit == "" {
		return ""
	}
	base, family := page(scmType, repository)
	switch family {
	case "gitlab":
		return base + "/-/commit/" + commit
	case "bitbucket", dataCenter:
		return base + "/commits/" + commit
	}
	return base + "/commit/" + commit
}
