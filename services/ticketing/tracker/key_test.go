package tracker_test

import (
	"testing"

	"github.com/palisade/palisade/services/ticketing/tracker"
)

func TestKey(t *testing.T) {
	for _, c := range []struct {
		kind      tracker.Kind
		base, url string
		want      string // empty: not a ticket
	}{
		{tracker.GitHub, "https://github.com", "https://github.com/acme/web/issues/12", "acme/web#12"},
		{tracker.GitHub, "https://github.com/", "https://GitHub.com/acme/web/issues/12/?a=b#issuecomment-1", "acme/web#12"},
		{tracker.GitHub, "https://git.acme.test:8443", "https://git.acme.test:8443/acme/web.js/issues/1", "acme/web.js#1"},
		{tracker.GitHub, "https://github.com", "https://github.com/acme/web/pull/12", ""},
		{tracker.GitHub, "https://github.com", "https://github.com/acme/web/issues", ""},
		{tracker.GitHub, "https://github.com", "https://github.com/acme/web/issues/0", ""},
		{tracker.GitHub, "https://github.com", "https://github.com.evil.test/acme/web/issues/12", ""},
		{tracker.GitHub, "https://github.com", "https://github.com@evil.test/acme/web/issues/12", ""},
		{tracker.GitHub, "https://github.com", "https://x:y@github.com/acme/web/issues/12", ""},
		{tracker.GitHub, "https://github.com", "http://github.com/acme/web/issues/12", ""},
		{tracker.GitHub, "https://github.com", "acme/web#12", ""},
		{tracker.GitLab, "https://gitlab.com", "https://gitlab.com/acme/platform/api/-/issues/7", "acme/platform/api#7"},
		{tracker.GitLab, "https://gitlab.com", "https://gitlab.com/acme/api/-/work_items/7", "acme/api#7"},
		{tracker.GitLab, "https://gitlab.com", "https://gitlab.com/acme/api/issues/7", "acme/api#7"},
		{tracker.GitLab, "https://acme.test/gitlab", "https://acme.test/gitlab/acme/api/-/issues/7", "acme/api#7"},
		{tracker.GitLab, "https://acme.test/gitlab", "https://acme.test/acme/api/-/issues/7", ""},
		{tracker.GitLab, "https://gitlab.com", "https://gitlab.com/acme/api/-/merge_requests/7", ""},
		{tracker.Jira, "https://acme.atlassian.net", "https://acme.atlassian.net/browse/SEC-12", "SEC-12"},
		{tracker.Jira, "https://acme.atlassian.net", "https://acme.atlassian.net/browse/sec-12?focusedCommentId=1", "SEC-12"},
		{tracker.Jira, "https://acme.atlassian.net", "https://acme.atlassian.net/jira/projects/SEC/boards/1?selectedIssue=SEC-12", "SEC-12"},
		{tracker.Jira, "https://acme.atlassian.net", "https://acme.atlassian.net/jira/software/c/projects/SEC/issues/SEC-12", "SEC-12"},
		{tracker.Jira, "https://acme.atlassian.net", "https://globex.atlassian.net/browse/SEC-12", ""},
		{tracker.Jira, "https://acme.atlassian.net", "https://acme.atlassian.net/browse/SEC", ""},
		{tracker.Jira, "https://acme.atlassian.net", "https://acme.atlassian.net/browse/SEC-12/../../x", ""},
		{tracker.JiraDataCenter, "https://acme.test/jira", "https://acme.test/jira/browse/SEC-12", "SEC-12"},
		{tracker.JiraDataCenter, "https://acme.test/jira", "https://acme.test/jira/projects/SEC/issues/SEC-12", "SEC-12"},
		{tracker.JiraDataCenter, "https://acme.test/jira", "https://acme.test/jirabrowse/SEC-12", ""},
		{tracker.JiraDataCenter, "https://acme.test/jira", "https://acme.test/other?selectedIssue=SEC-12", ""},
		{"trello", "https://acme.test", "https://acme.test/browse/SEC-12", ""},
		{tracker.Jira, "", "/browse/SEC-12", ""},
	} {
		if key, ok := tracker.Key(c.kind, c.base, c.url); key != c.want || ok != (c.want != "") {
			t.Errorf("%s, %s: %q, %v; want %q", c.kind, c.url, key, ok, c.want)
		}
	}
}
