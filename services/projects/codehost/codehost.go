// Package codehost builds links to code at source-code hosts.
package codehost

import (
	"cmp"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// LineURL links to a line of a file at a commit. It returns "" if the repository's URL or the commit is unknown.
// scmType is one of SCM_TYPE_*. If it is unknown, the host's name decides, then the form of the URL, which shows
// Bitbucket Data Center. GitHub's form is the fallback.
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
	base, family := page(scmType, repository)
	return Repository{base: base, family: family}
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
	case dataCenter:
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
	base, family := page(scmType, repository)
	end := strconv.FormatInt(number, 10)
	switch family {
	case "gitlab":
		return base + "/-/merge_requests/" + end
	case "bitbucket", dataCenter:
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
	base, family := page(scmType, repository)
	name := (&url.URL{Path: branch}).EscapedPath()
	switch family {
	case "gitlab":
		return base + "/-/tree/" + name
	case "bitbucket":
		return base + "/src/" + name
	case dataCenter:
		return base + "/browse?at=" + url.QueryEscape(fullRef)
	case "azure":
		return base + "?version=GB" + url.QueryEscape(branch)
	}
	return base + "/tree/" + name
}

// page returns the repository's page, to which paths are added, and the form of the host's links.
func page(scmType, repository string) (base, family string) {
	base = strings.TrimSuffix(repository, "/")
	if family = familyOf(scmType); family != "" && family != dataCenter {
		return base, family
	}
	if own := dataCenterPage(base); own != "" && (family != "" || familyOfHost(base) == "github") {
		return own, dataCenter
	}
	return base, cmp.Or(family, familyOfHost(base))
}

func familyOf(scmType string) string {
	switch scmType {
	case "SCM_TYPE_GITLAB", "SCM_TYPE_GITLAB_SELFMANAGED":
		return "gitlab"
	case "SCM_TYPE_BITBUCKET":
		return "bitbucket"
	case "SCM_TYPE_BITBUCKET_DATACENTER":
		return dataCenter
	case "SCM_TYPE_AZURE_DEVOPS":
		return "azure"
	case "SCM_TYPE_GITHUB", "SCM_TYPE_GITHUB_ENTERPRISE":
		return "github"
	}
	return ""
}

func familyOfHost(repository string) string {
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

const dataCenter = "bitbucket-datacenter"

// dataCenterURL matches the two forms of a repository of Bitbucket Data Center, maybe below a path of the server: of
// its page, and of its clones. The second has an owner ~kim for a repository of a person.
var dataCenterURL = regexp.MustCompile(`^(https?://[^/]+(?:/[^/]+)*?)/(?:((?:projects|users)/[^/]+/repos/[^/]+)(?:/browse)?|scm/(~?)([^/]+)/([^/]+?)(?:\.git)?)$`)

// dataCenterPage returns the page of a repository of Bitbucket Data Center; empty if the URL has another form.
func dataCenterPage(repository string) string {
	m := dataCenterURL.FindStringSubmatch(repository)
	switch {
	case m == nil:
		return ""
	case m[2] != "":
		return m[1] + "/" + m[2]
	case m[3] != "":
		return m[1] + "/users/" + m[4] + "/repos/" + m[5]
	}
	return m[1] + "/projects/" + m[4] + "/repos/" + m[5]
}
