package tracker

import (
	"net/url"
	"regexp"
	"strings"
)

// webPaths match the paths of tickets below the base URL. The groups are the key's parts.
var webPaths = map[Kind]*regexp.Regexp{
	GitHub: regexp.MustCompile(`^/([A-Za-z0-9._-]+/[A-Za-z0-9._-]+)/issues/([1-9][0-9]{0,8})/?$`),
	// Newer versions of GitLab show issues as work items, older ones without "-".
	GitLab:         regexp.MustCompile(`^/([A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)+?)(?:/-)?/(?:issues|work_items)/([1-9][0-9]{0,8})/?$`),
	Jira:           jiraPath,
	JiraDataCenter: jiraPath,
}

// jiraPath matches the page of an issue, and an issue in the pages of its project.
var jiraPath = regexp.MustCompile(`^(?:/.+)?/(?:browse|issues)/([A-Za-z][A-Za-z0-9_]*-[1-9][0-9]{0,17})/?$`)

// Key returns the key of a ticket by its web URL. ok is false if it is not a ticket of this tracker.
func Key(kind Kind, baseURL, ticketURL string) (key string, ok bool) {
	base, err := url.Parse(strings.TrimRight(baseURL, "/"))
	if err != nil || base.Host == "" {
		return "", false
	}
	u, err := url.Parse(strings.TrimSpace(ticketURL))
	if err != nil || u.User != nil || u.Scheme != base.Scheme || !strings.EqualFold(u.Host, base.Host) {
		return "", false
	}
	path, below := strings.CutPrefix(u.Path, base.Path)
	pattern := webPaths[kind]
	if !below || pattern == nil {
		return "", false
	}
	parts := pattern.FindStringSubmatch(path)
	switch len(parts) {
	case 2:
		return strings.ToUpper(parts[1]), true
	case 3:
		return parts[1] + "#" + parts[2], true
	}
	return selectedIssue(kind, u)
}

// URL returns the web page of a ticket.
func URL(kind Kind, baseURL, key string) string {
	base := strings.TrimRight(baseURL, "/")
	repository, number, _ := strings.Cut(key, "#")
	switch kind {
	case GitHub:
		return base + "/" + repository + "/issues/" + number
	case GitLab:
		return base + "/" + repository + "/-/issues/" + number
	}
	return base + "/browse/" + key
}

// Project returns the project of a ticket: "acme/web", "SEC".
func Project(key string) string {
	if repository, _, ok := strings.Cut(key, "#"); ok {
		return repository
	}
	return key[:max(0, strings.LastIndex(key, "-"))]
}

// selectedIssue is the issue that a board of Jira shows at its side.
func selectedIssue(kind Kind, u *url.URL) (key string, ok bool) {
	key = strings.ToUpper(u.Query().Get("selectedIssue"))
	return key, (kind == Jira || kind == JiraDataCenter) && jiraKey.MatchString(key)
}
