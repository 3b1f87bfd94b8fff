// Package codehost builds links to code at source-code hosts.
package codehost

import (
	"net/url"
	"strconv"
	"strings"
)

// LineURL links to a line of a file at a commit. It returns "" if the repository's URL or the commit is unknown.
// scmType is one of SCM_TYPE_*. If it is unknown, the host's name decides, with GitHub's form as the fallback.
func LineURL(scmType, repository, commit, path string, line int32) string {
	if repository == "" {
		return ""
	}
	return NewRepository(scmType, repository).Line(commit, path, line)
}

// Repository builds many links into one repository.
type Repository struct {
	base, family string
}

// NewRepository is the repository with a web URL; see LineURL for scmType.
func NewRepository(scmType, repository string) Repository {
	base := strings.TrimSuffix(repository, "/")
	return Repository{base: base, family: family(scmType, base)}
}

// Known reports whether the repository's URL is known.
func (r Repository) Known() bool { return r.base != "" }

// Line is LineURL.
func (r Repository) Line(commit, path string, line int32) string {
	if r.base == "" || commit == "" || path == "" {
		return ""
	}
	base, number := r.base, strconv.Itoa(int(line))
	file := (&url.URL{Path: path}).EscapedPath()
	switch r.family {
	case "gitlab":
		return base + "/-/blob/" + commit + "/" + file + "#L" + number
	case "bitbucket":
		return base + "/src/" + commit + "/" + file + "#lines-" + number
	case "bitbucket-datacenter":
		return base + "/browse/" + file + "?at=" + url.QueryEscape(commit) + "#" + number
	case "azure":
		return base + "?path=/" + url.QueryEscape(path) + "&version=GC" + url.QueryEscape(commit) + "&line=" + number
	}
	return base + "/blob/" + commit + "/" + file + "#L" + number
}

// PullRequestURL links to a pull (or merge) request. It returns "" if the repository's URL or the number is unknown.
func PullRequestURL(scmType, repository string, number int64) string {
	if repository == "" || number <= 0 {
		return ""
	}
	base, end := strings.TrimSuffix(repository, "/"), strconv.FormatInt(number, 10)
	switch family(scmType, base) {
	case "gitlab":
		return base + "/-/merge_requests/" + end
	case "bitbucket", "bitbucket-datacenter":
		return base + "/pull-requests/" + end
	case "azure":
		return base + "/pullrequest/" + end
	}
	return base + "/pull/" + end
}

// RefURL links to a branch. It returns "" if the repository's URL is unknown or the ref is not a branch.
func RefURL(scmType, repository, fullRef string) string {
	branch, ok := strings.CutPrefix(fullRef, "refs/heads/")
	if repository == "" || !ok {
		return ""
	}
	base, name := strings.TrimSuffix(repository, "/"), (&url.URL{Path: branch}).EscapedPath()
	switch family(scmType, base) {
	case "gitlab":
		return base + "/-/tree/" + name
	case "bitbucket":
		return base + "/src/" + name
	case "bitbucket-datacenter":
		return base + "/browse?at=" + url.QueryEscape(fullRef)
	case "azure":
		return base + "?version=GB" + url.QueryEscape(branch)
	}
	return base + "/tree/" + name
}

func family(scmType, repository string) string {
	switch scmType {
	case "SCM_TYPE_GITLAB", "SCM_TYPE_GITLAB_SELFMANAGED":
		return "gitlab"
	case "SCM_TYPE_BITBUCKET":
		return "bitbucket"
	case "SCM_TYPE_BITBUCKET_DATACENTER":
		return "bitbucket-datacenter"
	case "SCM_TYPE_AZURE_DEVOPS":
		return "azure"
	case "SCM_TYPE_GITHUB", "SCM_TYPE_GITHUB_ENTERPRISE":
		return "github"
	}
	u, err := url.Parse(repository)
	if err != nil {
		return "github"
	}
	switch host := u.Hostname(); {
	case strings.Contains(host, "gitlab"):
		return "gitlab"
	case host == "bitbucket.org":
		return "bitbucket"
	case host == "dev.azure.com" || strings.HasSuffix(host, ".visualstudio.com"):
		return "azure"
	}
	return "github"
}
