package tracker_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/host/hosttest"
	"github.com/palisade/palisade/services/ticketing/tracker"
	"github.com/palisade/palisade/services/ticketing/tracker/trackertest"
)

// jiras runs a test on both kinds of Jira.
func jiras(t *testing.T, test func(t *testing.T, tr tracker.Tracker, j *trackertest.Jira)) {
	for kind, j := range map[tracker.Kind]*trackertest.Jira{
		tracker.Jira: trackertest.NewCloud(t), tracker.JiraDataCenter: trackertest.NewDataCenter(t),
	} {
		t.Run(string(kind), func(t *testing.T) { test(t, open(t, jiraServer(kind, j).config), j) })
	}
}

// TestCheckNamesWhatExists: errors of a check help the person who sets up the connection.
func TestCheckNamesWhatExists(t *testing.T) {
	jiras(t, func(t *testing.T, tr tracker.Tracker, j *trackertest.Jira) {
		for _, c := range []struct {
			project, issueType string
			want               host.Kind
			text               string
		}{
			{"SEC", "Bug", "", ""}, {"10001", "10004", "", ""}, {"OPS", "", "", ""}, {"sec", "bug", "", ""},
			{"WEB", "", host.NotFound, `no project "WEB", or does not show it to this account, which sees: OPS, SEC`},
			{"../myself", "", host.NotFound, "which sees: OPS, SEC"},
			{"SEC", "Story", host.NotFound, `no type of issues "Story"; it has: Epic, Task, Bug`},
			{"SEC", "Sub-task", host.NotFound, "it has: Epic, Task, Bug"},
		} {
			err := tr.Check(t.Context(), c.project, c.issueType)
			if c.want == "" && err == nil {
				continue
			}
			if !host.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s, %s: %v", c.project, c.issueType, err)
			}
		}
	})
	other := jiraServer(tracker.JiraDataCenter, trackertest.NewCloud(t)).config // the wrong kind
	if err := open(t, other).Check(t.Context(), "SEC", ""); !host.Is(err, host.Unauthorized) {
		t.Errorf("a Data Center that is a Cloud: %v", err)
	}
}

func TestTypesAndFields(t *testing.T) {
	jiras(t, func(t *testing.T, tr tracker.Tracker, j *trackertest.Jira) {
		for i, c := range []struct{ project, issueType, want string }{
			{"SEC", "", "Task"}, {"OPS", "", "Incident"}, {"SEC", "bug", "Bug"}, {"SEC", "10000", "Epic"}, {"10005", "", "Incident"},
		} {
			one := draft
			one.IssueType, one.Fields = c.issueType, map[string]any{"priority": map[string]string{"name": "High"}, "summary": "not this one"}
			_, err := tr.Create(t.Context(), c.project, one)
			check(t, "create", err)
			issue := j.Issues()[i]
			if priority := fmt.Sprint(issue.Fields["priority"]); issue.Type != c.want || priority != "map[name:High]" || issue.Title != draft.Title {
				t.Errorf("%+v: %+v", c, issue)
			}
			if !slices.Equal(issue.Labels, []string{"security", "from-scanner", "palisade-" + draft.Marker}) {
				t.Errorf("labels %q", issue.Labels)
			}
		}
		if len(draft.Fields) != 0 {
			t.Errorf("the draft was changed: %v", draft.Fields)
		}
		j.RequireFields("customfield_10011", "components")
		_, err := tr.Create(t.Context(), "SEC", draft)
		text := "components: components is required.; customfield_10011: customfield_10011 is required."
		if !host.Is(err, host.Refused) || !strings.Contains(err.Error(), text) {
			t.Errorf("missing fields: %v", err)
		}
	})
}

// TestTransitions: the workflow has To Do (11), In Progress (21) and Done (31).
func TestTransitions(t *testing.T) {
	jiras(t, func(t *testing.T, tr tracker.Tracker, j *trackertest.Jira) {
		created, err := tr.Create(t.Context(), "SEC", draft)
		check(t, "create", err)
		state := func() string { return j.Issues()[0].Status + j.Issues()[0].Resolution }
		set := func(open bool, transition, want string) {
			t.Helper()
			if err := tr.SetOpen(t.Context(), created.Key, open, transition); err != nil || state() != want {
				t.Errorf("open %v: %v; the status is %s, want %s", open, err, state(), want)
			}
		}
		set(false, "", "Done")
		set(true, "21", "In Progress")
		j.RequireResolution(true)
		set(false, "31", "Done10001") // the resolution "Done" is not the first one
		set(true, "", "To Do")
		for _, transition := range []string{"99", "11"} {
			text := fmt.Sprintf("the transition %q is not possible from the status of the issue; there are: "+
				"Go to In Progress (21, to In Progress), Go to Done (31, to Done)", transition)
			if err := tr.SetOpen(t.Context(), created.Key, false, transition); !host.Is(err, host.Refused) || err.Error() != text {
				t.Errorf("transition %s: %v", transition, err)
			}
		}
		for answer, text := range map[string]string{
			``: "this account has none",
			`{"id":"5","name":"Review","to":{"name":"In Review","statusCategory":{"key":"indeterminate"}}}`:        "Review (5, to In Review)",
			`{"id":"31","name":"Finish","isAvailable":false,"to":{"name":"Done","statusCategory":{"key":"done"}}}`: "this account has none",
		} {
			j.Answer("GET /rest/api/", hosttest.Status(200, `{"transitions":[`+answer+`]}`))
			j.Answer(fmt.Sprintf("GET /rest/api/%s/issue/%s?", version(j), created.Key), hosttest.Status(200,
				`{"id":"20001","key":"SEC-1","fields":{"status":{"name":"To Do","statusCategory":{"key":"new"}}}}`))
			if err := tr.SetOpen(t.Context(), created.Key, false, ""); !host.Is(err, host.Refused) || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v", answer, err)
			}
		}
	})
}

// version of the text is the one of the API.
func version(j *trackertest.Jira) string {
	if j.User != "" {
		return "3"
	}
	return "2"
}

// TestTransitionWithoutForm: a transition that needs no more than a resolution is better than an earlier one that does.
func TestTransitionWithoutForm(t *testing.T) {
	j := trackertest.NewCloud(t)
	tr := open(t, jiraServer(tracker.Jira, j).config)
	created, err := tr.Create(t.Context(), "SEC", draft)
	check(t, "create", err)
	j.Answer("GET /rest/api/3/issue/"+created.Key+"/transitions", hosttest.Status(200, `{"transitions":[
		{"id":"11","name":"Reject","to":{"name":"Rejected","statusCategory":{"key":"done"}},
			"fields":{"customfield_1":{"required":true,"allowedValues":["a"]}}},
		{"id":"31","name":"Finish","to":{"name":"Done","statusCategory":{"key":"done"}},"fields":{"assignee":{"required":false}}}]}`))
	if err := tr.SetOpen(t.Context(), created.Key, false, ""); err != nil || j.Issues()[0].Status != "Done" {
		t.Errorf("%v; %+v", err, j.Issues()[0])
	}
}

// TestMovedIssue: an old key leads to the new one, and Find finds the issue in another project.
func TestMovedIssue(t *testing.T) {
	jiras(t, func(t *testing.T, tr tracker.Tracker, j *trackertest.Jira) {
		created, err := tr.Create(t.Context(), "SEC", draft)
		check(t, "create", err)
		j.Move(created.Key, "OPS-7")
		want := tracker.Ticket{Key: "OPS-7", ID: created.ID, URL: j.URL + "/browse/OPS-7", Open: true}
		if got, err := tr.Get(t.Context(), created.Key); err != nil || got != want {
			t.Errorf("get: %+v, %v", got, err)
		}
		if got, err := tr.Find(t.Context(), "SEC", draft.Marker, time.Now()); err != nil || got != want {
			t.Errorf("find: %+v, %v", got, err)
		}
		if got, err := tr.Get(t.Context(), created.ID); err != nil || got != want {
			t.Errorf("get by id: %+v, %v", got, err)
		}
	})
}

// TestFindUsesTheIndex: the index of Jira is late.
func TestFindUsesTheIndex(t *testing.T) {
	jiras(t, func(t *testing.T, tr tracker.Tracker, j *trackertest.Jira) {
		j.StopIndex()
		created, err := tr.Create(t.Context(), "SEC", draft)
		check(t, "create", err)
		if got, err := tr.Find(t.Context(), "SEC", draft.Marker, time.Now()); err != nil || got != (tracker.Ticket{}) {
			t.Errorf("before the index: %+v, %v", got, err)
		}
		j.StartIndex()
		if got, err := tr.Find(t.Context(), "SEC", draft.Marker, time.Now()); err != nil || got != created {
			t.Errorf("after it: %+v, %v", got, err)
		}
	})
}

func TestRefusalsOfJira(t *testing.T) {
	jiras(t, func(t *testing.T, tr tracker.Tracker, j *trackertest.Jira) {
		basic := j.Token
		if j.User != "" {
			basic = base64.StdEncoding.EncodeToString([]byte(j.User + ":" + j.Token))
		}
		for name, c := range map[string]struct {
			answer http.HandlerFunc
			want   host.Kind
			text   string
		}{
			"captcha": {
				hosttest.Status(403, `<html></html>`, "X-Authentication-Denied-Reason", "CAPTCHA_CHALLENGE; login-url=https://acme.test/login.jsp"),
				host.Unauthorized, "CAPTCHA",
			},
			"anonymous": {
				hosttest.Status(404, `{"errorMessages":["Issue does not exist."]}`, "X-Seraph-Loginreason", "AUTHENTICATED_FAILED"),
				host.Unauthorized, "does not accept the token",
			},
			"messages":   {hosttest.Status(400, `{"errorMessages":["Bad\u0000 thing."]}`), host.Refused, "status 400 (it says: Bad thing.)"},
			"no details": {hosttest.Status(400, `{"errorMessages":null,"errors":[]}`), host.Refused, "status 400"},
			"removed":    {hosttest.Status(410, `{"errorMessages":["The API has been removed."]}`), host.Refused, "has been removed"},
			"echo":       {hosttest.Status(400, `{"errorMessages":["no `+j.Token+`"],"errors":{"x":"no `+basic+`"}}`), host.Refused, "no …"},
			"moved away": {hosttest.Status(302, ``, "Location", "/login.jsp"), host.Malformed, "check"},
		} {
			j.Answer("", c.answer)
			_, err := tr.Get(t.Context(), "SEC-1")
			if name != "moved away" && (!host.Is(err, c.want) || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil || strings.Contains(err.Error(), j.Token) || strings.Contains(err.Error(), basic) {
				t.Errorf("%s: %v", name, err)
			}
		}
		reset := time.Now().Add(40 * time.Minute).UTC()
		j.Answer("", hosttest.Status(429, `<html>Too many requests</html>`, "X-RateLimit-Reset", reset.Format("2006-01-02T15:04Z")))
		_, err := tr.Get(t.Context(), "SEC-1")
		if e, ok := err.(*host.Error); !ok || e.Kind != host.RateLimited || e.Reset.Sub(reset).Abs() > 2*time.Minute {
			t.Errorf("a limit with a date: %#v", err)
		}
	})
}
