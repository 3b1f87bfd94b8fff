package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/agenticissue"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/tenant"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/issues"
)

const sqlInjection = "SQL injection in user lookup"

var cursors = regexp.MustCompile(`"cursor":"[^"]+"`)

func TestAgenticIssuesGolden(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newAuditFixture(t, s)
		client := workflowsv1.NewAgenticIssuesServiceClient(s.Conn)
		ctx := s.Context(t, s.Token)
		id := l.ids[sqlInjection]
		one := l.path("/issue/%d", id)

		body := s.Get(t, one)
		apitest.Golden(t, "agentic_issue", l.settled(body))
		got, err := client.GetAgenticIssue(ctx, &workflowsv1.GetAgenticIssueRequest{DeploymentId: s.DeploymentID, IssueId: id})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, got, body)

		body = l.post(t, one, `{"triageState":"TRIAGE_STATE_IGNORED","triageReason":"TRIAGE_REASON_ACCEPTABLE_RISK"}`)
		apitest.Golden(t, "agentic_issue_triaged", l.settled(body))
		same, err := client.TriageIssue(ctx, &workflowsv1.TriageIssueRequest{
			DeploymentId: s.DeploymentID, IssueId: id, TriageState: workflowsv1.TriageState_TRIAGE_STATE_IGNORED,
			TriageReason: workflowsv1.TriageReason_TRIAGE_REASON_ACCEPTABLE_RISK,
		})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, same, body) // including the time: repeated triage is a no-op

		body = s.Get(t, one+"/activity")
		apitest.Golden(t, "agentic_issue_activity", l.settled(body))
		history, err := client.GetIssueActivityHistory(ctx, &workflowsv1.GetIssueActivityHistoryRequest{DeploymentId: s.DeploymentID, IssueId: id})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, history, body)

		body = l.post(t, l.path("/search"), `{"sortField":"ISSUE_SORT_FIELD_SEVERITY","limit":3}`)
		apitest.Golden(t, "agentic_issues_search", cursors.ReplaceAllString(l.settled(body), `"cursor":"C"`))
		limit := int32(3)
		list, err := client.SearchIssues(ctx, &workflowsv1.SearchIssuesRequest{
			DeploymentId: s.DeploymentID, SortField: workflowsv1.IssueSortField_ISSUE_SORT_FIELD_SEVERITY, Limit: &limit,
		})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, list, body)

		if body = l.post(t, l.path("/counts"), `{}`); body != `{"count":"4"}` {
			t.Errorf("got %s", body)
		}
		apitest.Golden(t, "agentic_issue_unknown", l.Body(t, s.Token, http.MethodGet, l.path("/issue/9000000"), "", http.StatusNotFound))
	})
}

// settled replaces values that differ between databases.
func (l *auditFixture) settled(body string) string {
	return strings.NewReplacer(fmt.Sprintf(`"projectIds":["%d"]`, l.web), `"projectIds":["WEB"]`, fmt.Sprintf(`"projectIds":["%d"]`, l.api), `"projectIds":["API"]`).Replace(body)
}

func TestTriageIssue(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newAuditFixture(t, s)
		id := l.ids[sqlInjection]
		one := l.path("/issue/%d", id)
		for _, body := range []string{
			`{}`, `{"triageReason":"TRIAGE_REASON_NO_TIME"}`, `{"triageState":"TRIAGE_STATE_UNSPECIFIED"}`, `{"triageState":"closed"}`,
			`{"triageState":99}`, `{"triageState":"TRIAGE_STATE_OPEN","triageReason":"TRIAGE_REASON_BORED"}`, `[]`, `{`,
		} {
			l.Body(t, s.Token, http.MethodPost, one, body, http.StatusBadRequest)
		}
		if n := l.activities(t, id); n != 1 {
			t.Fatalf("%d activities, want the one of the detection", n)
		}
		// Each state and each reason is stored as given.
		for i, state := range []string{"IGNORED", "REOPENED", "REVIEWING", "FIXING", "PROVISIONALLY_IGNORED", "FIXED", "OPEN"} {
			for j, reason := range []string{"FALSE_POSITIVE", "ACCEPTABLE_RISK", "NO_TIME", ""} {
				request := fmt.Sprintf(`{"triageState":"TRIAGE_STATE_%s"}`, state)
				want := fmt.Sprintf(`"triageState":"TRIAGE_STATE_%s","triagedAt"`, state)
				if reason != "" {
					request = fmt.Sprintf(`{"triageState":"TRIAGE_STATE_%s","triageReason":"TRIAGE_REASON_%s"}`, state, reason)
					want = fmt.Sprintf(`"triageState":"TRIAGE_STATE_%s","triageReason":"TRIAGE_REASON_%s","triagedAt"`, state, reason)
				}
				first := l.post(t, one, request)
				if !strings.Contains(first, want) {
					t.Errorf("%s: %s", request, first)
				}
				if again := l.post(t, one, request); again != first {
					t.Errorf("repeated: %s\nbefore: %s", again, first)
				}
				if n := l.activities(t, id); n != 2+i*4+j {
					t.Fatalf("%d activities after %s", n, request)
				}
			}
		}
		entry := s.Store.Reader.AuditEntry.Query().Where(auditentry.MethodHasSuffix("TriageIssue"), auditentry.Code("OK")).
			Order(ent.Asc(auditentry.FieldID)).FirstX(s.System(t))
		if len(entry.Changes) != 1 || entry.Changes[0].Kind != "agentic_issue" || entry.Changes[0].ID != fmt.Sprint(id) ||
			!strings.Contains(string(entry.Changes[0].After), "TRIAGE_STATE_IGNORED") {
			t.Errorf("audited as %+v", entry.Changes)
		}
	})
}

// A decision for the state that an issue already has is a decision with a time, over HTTP and gRPC.
func TestTriageIssueToItsState(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newAuditFixture(t, s)
		id := l.ids[sqlInjection]
		body := l.post(t, l.path("/issue/%d", id), `{"triageState":"TRIAGE_STATE_OPEN"}`)
		if !strings.Contains(body, `"triageState":"TRIAGE_STATE_OPEN","triagedAt":"`) {
			t.Errorf("no time of the decision: %s", body)
		}
		if n := l.activities(t, id); n != 2 {
			t.Errorf("%d activities, want the detection and the decision", n)
		}
		response, err := workflowsv1.NewAgenticIssuesServiceClient(s.Conn).TriageIssue(s.Context(t, s.Token), &workflowsv1.TriageIssueRequest{
			DeploymentId: s.DeploymentID, IssueId: id, TriageState: workflowsv1.TriageState_TRIAGE_STATE_OPEN,
		})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, body)
	})
}

func (l *auditFixture) activities(t *testing.T, id int64) int {
	t.Helper()
	var answer struct{ History []json.RawMessage }
	if err := json.Unmarshal([]byte(l.Get(t, l.path("/issue/%d/activity?limit=1000", id))), &answer); err != nil {
		t.Fatal(err)
	}
	return len(answer.History)
}

func TestIssuesOfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newAuditFixture(t, s)
		other := s.AddTenant(t, "globex")
		id := l.ids[sqlInjection]
		theirs := fmt.Sprintf("/api/issues/%d", other.DeploymentID)
		const triage = `{"triageState":"TRIAGE_STATE_FIXED"}`
		unknown := strings.ReplaceAll(l.Body(t, other.Token, http.MethodGet, theirs+"/issue/9000000", "", http.StatusNotFound), "9000000", fmt.Sprint(id))
		for _, call := range []struct{ method, path, body string }{
			{http.MethodGet, "/issue/%d", ""}, {http.MethodGet, "/issue/%d/activity", ""}, {http.MethodPost, "/issue/%d", triage},
		} {
			if got := l.Body(t, other.Token, call.method, theirs+fmt.Sprintf(call.path, id), call.body, http.StatusNotFound); got != unknown {
				t.Errorf("another's issue: %s\nno issue: %s", got, unknown)
			}
			l.Body(t, other.Token, call.method, l.path(call.path, id), call.body, http.StatusNotFound)
			l.Body(t, "", call.method, l.path(call.path, id), call.body, http.StatusUnauthorized)
			l.Body(t, s.Token, call.method, fmt.Sprintf("/api/issues/%d/issue/x", s.DeploymentID)+strings.TrimPrefix(call.path, "/issue/%d"), call.body, http.StatusNotFound)
		}
		for path, want := range map[string]string{"/search": `{"issues":[],"total":"0","cursor":""}`, "/counts": `{"count":"0"}`} {
			body := fmt.Sprintf(`{"filters":{"ids":["%d"]}}`, id)
			if got := l.Body(t, other.Token, http.MethodPost, theirs+path, body, http.StatusOK); got != want {
				t.Errorf("another deployment sees %s", got)
			}
			if got := l.Body(t, other.Token, http.MethodPost, theirs+path, fmt.Sprintf(`{"filters":{"workflowJobIds":["%d"]}}`, l.runs[0]), http.StatusOK); got != want {
				t.Errorf("another deployment sees %s", got)
			}
			l.Body(t, other.Token, http.MethodPost, l.path("%s", path), `{}`, http.StatusNotFound)
		}
		reader := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleReadOnly})
		l.Body(t, reader, http.MethodGet, l.path("/issue/%d", id), "", http.StatusOK)
		l.Body(t, reader, http.MethodPost, l.path("/search"), "{}", http.StatusOK)
		l.Body(t, reader, http.MethodPost, l.path("/issue/%d", id), triage, http.StatusForbidden)
	})
}

// Team members see and triage the issues of their projects, and no issues without a project.
func TestIssuesOfTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newAuditFixture(t, s)
		member := s.AddUser(t, s.Tenant, "dev@acme.test", access.RoleMember)
		l.write(t, func(ctx context.Context, tx *ent.Tx) error {
			user := s.Store.Reader.User.Query().Order(ent.Desc("id")).FirstX(s.System(t))
			team, err := tx.Team.Create().SetName("API").SetSlug("api").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
			if err != nil {
				return err
			}
			if err := tx.TeamProject.Create().SetTeamID(team.ID).SetProjectID(l.api).SetCreatedAt(1).Exec(ctx); err != nil {
				return err
			}
			return tx.TeamMember.Create().SetTeamID(team.ID).SetUserID(user.ID).SetRole("TEAM_ROLE_MEMBER").SetCreatedAt(1).Exec(ctx)
		})
		if got := titles(t, l.Body(t, member, http.MethodPost, l.path("/search"), "{}", http.StatusOK)); !slices.Equal(got, []string{"Key in the log"}) {
			t.Errorf("a member sees %v", got)
		}
		if got := l.Body(t, member, http.MethodPost, l.path("/counts"), "{}", http.StatusOK); got != `{"count":"1"}` {
			t.Errorf("a member counts %s", got)
		}
		for title, want := range map[string]int{"Key in the log": 200, sqlInjection: 404, "Unused account": 404} {
			l.Body(t, member, http.MethodGet, l.path("/issue/%d", l.ids[title]), "", want)
			l.Body(t, member, http.MethodGet, l.path("/issue/%d/activity", l.ids[title]), "", want)
			l.Body(t, member, http.MethodPost, l.path("/issue/%d", l.ids[title]), `{"triageState":"TRIAGE_STATE_FIXED"}`, want)
		}
	})
}

func titles(t testing.TB, body string) (out []string) {
	t.Helper()
	var answer struct {
		Issues []struct{ Title string }
		Total  string
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	for _, issue := range answer.Issues {
		out = append(out, issue.Title)
	}
	if answer.Total != fmt.Sprint(len(out)) {
		t.Errorf("total is %s of %d issues", answer.Total, len(out))
	}
	return out
}

func TestSearchIssuesFilters(t *testing.T) {
	t.Parallel()
	const size, key, unused = "Größe 100%_ unescaped", "Key in the log", "Unused account"
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newAuditFixture(t, s)
		l.post(t, l.path("/issue/%d", l.ids[key]), `{"triageState":"TRIAGE_STATE_IGNORED","triageReason":"TRIAGE_REASON_NO_TIME"}`)
		l.detect(t, "nightly", &l.api, "release") // the key was removed
		moment := func(title string, of func(*ent.AgenticIssue) int64) string {
			row := s.Store.Reader.AgenticIssue.Query().Where(agenticissue.Title(title)).OnlyX(s.System(t))
			return store.Time(of(row)).Format(time.RFC3339Nano)
		}
		created := func(row *ent.AgenticIssue) int64 { return row.CreatedAt }
		for filter, want := range map[string][]string{
			``: {unused, key, size, sqlInjection},
			fmt.Sprintf(`"ids":["%d","%d"]`, l.ids[key], l.ids[size]): {key, size},
			`"titleQuery":"sql INJ"`:                                  {sqlInjection},
			`"titleQuery":"100%_ UN"`:                                 {size},
			`"titleQuery":"0_%"`:                                      nil,
			`"titleQuery":"größe"`:                                    {size},
			`"titleQuery":"\\"`:                                       nil,
			`"descriptionQuery":"QUERY"`:                              {sqlInjection},
			`"reasoningQuery":"request"`:                              {sqlInjection},
			`"detectionStates":["DETECTION_STATE_NOT_DETECTED"]`:      {key},
			`"detectionStates":["DETECTION_STATE_NOT_DETECTED","DETECTION_STATE_DETECTED"]`: {unused, key, size, sqlInjection},
			`"detectionStates":["DETECTION_STATE_UNSPECIFIED"]`:                             {unused, key, size, sqlInjection},
			`"severities":["SEVERITY_HIGH","SEVERITY_INFO"]`:                                {unused, sqlInjection},
			`"triageStates":["TRIAGE_STATE_IGNORED"]`:                                       {key},
			`"triageStates":["TRIAGE_STATE_OPEN","TRIAGE_STATE_FIXED"]`:                     {unused, size, sqlInjection},
			`"triageReasons":["TRIAGE_REASON_NO_TIME"]`:                                     {key},
			`"triageReasons":["TRIAGE_REASON_UNSPECIFIED"]`:                                 {unused, size, sqlInjection},
			`"actions":["Use a bound parameter","x"]`:                                       {sqlInjection},
			`"workflowIds":["code-audit"]`:                                                  {size, sqlInjection},
			`"identities":["svc-old","svc-render"]`:                                         {unused, size},
			`"triggerSources":["manual"]`:                                                   {unused, key, size, sqlInjection},
			`"triggerSources":["automation"]`:                                               nil,
			fmt.Sprintf(`"projectIds":["%d"]`, l.web):                                       {size, sqlInjection},
			`"refIds":["main"]`:                                                             {size, sqlInjection},
			`"refIds":["refs/heads/release"]`:                                               {key},
			`"filePathQuery":"APP/"`:                                                        {size, sqlInjection},
			fmt.Sprintf(`"createdAt":{"startAt":%q}`, moment(key, created)):                 {unused, key},
			fmt.Sprintf(`"createdAt":{"endAt":%q}`, moment(key, created)):                   {size, sqlInjection},
			fmt.Sprintf(`"lastDetectedAt":{"startAt":%q,"endAt":%q}`, moment(key, created), moment(unused, created)):             {key},
			`"triagedAt":{"startAt":"2026-01-01T00:00:00Z"}`:                                                                     {key},
			`"triagedAt":{"endAt":"2026-01-01T00:00:00Z"}`:                                                                       nil,
			fmt.Sprintf(`"workflowJobIds":["%d","%d"]`, l.runs[1], l.runs[2]):                                                    {unused, key},
			`"severities":["SEVERITY_HIGH","SEVERITY_MEDIUM"],"workflowIds":["code-audit"],"filePathQuery":"views","actions":[]`: {size},
			`"severities":["SEVERITY_CRITICAL"],"workflowIds":["code-audit"]`:                                                    nil,
		} {
			body := `{"filters":{` + filter + `}}`
			if got := titles(t, l.post(t, l.path("/search"), body)); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", filter, got, want)
			}
			if got := l.post(t, l.path("/counts"), body); got != fmt.Sprintf(`{"count":"%d"}`, len(want)) {
				t.Errorf("%s: %s, want %d", filter, got, len(want))
			}
		}
		for _, bad := range []string{
			`{"filters":{"ids":["x"]}}`, `{"filters":{"severities":["dire"]}}`, `{"filters":{"triageStates":[42]}}`, `{"filters":{"createdAt":{"startAt":"today"}}}`,
			`{"filters":{"titleQuery":"` + strings.Repeat("x", 501) + `"}}`,
		} {
			l.Body(t, s.Token, http.MethodPost, l.path("/search"), bad, http.StatusBadRequest)
			l.Body(t, s.Token, http.MethodPost, l.path("/counts"), bad, http.StatusBadRequest)
		}
	})
}

func TestSearchIssuesPages(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newAuditFixture(t, s)
		for i := range 9 {
			l.detect(t, "code-audit", &l.web, "main", issues.Found{
				Title: fmt.Sprintf("Issue %d", i), Severity: issues.Severities[i%3], Class: "x", File: fmt.Sprintf("app/%d.py", i%2), Evidence: string(rune('a' + i)),
			})
		}
		for _, field := range []string{"", "SEVERITY", "LAST_DETECTED_AT", "CREATED_AT", "FILE_PATH"} {
			for _, direction := range []string{"", "ASC", "DESC"} {
				sorted := map[string]any{"filters": map[string]any{"workflowIds": []string{"code-audit"}}}
				if field != "" {
					sorted["sortField"] = "ISSUE_SORT_FIELD_" + field
				}
				if direction != "" {
					sorted["sortDirection"] = "SORT_DIRECTION_" + direction
				}
				whole, _ := l.page(t, sorted, 1000, "")
				var paged []string
				for cursor := ""; ; {
					var part []string
					part, cursor = l.page(t, sorted, 2, cursor)
					paged = append(paged, part...)
					if cursor == "" {
						break
					}
				}
				if len(whole) != 11 || !slices.Equal(whole, paged) {
					t.Errorf("%s %s: %v, in pages %v", field, direction, whole, paged)
				}
			}
		}
		_, cursor := l.page(t, map[string]any{}, 2, "")
		for _, bad := range []string{
			`{"limit":1001}`, `{"limit":-1}`, `{"cursor":"x"}`, `{"sortField":"TITLE"}`, `{"sortDirection":7}`,
			fmt.Sprintf(`{"cursor":%q,"sortField":"ISSUE_SORT_FIELD_SEVERITY"}`, cursor), fmt.Sprintf(`{"cursor":%q,"filters":{"titleQuery":"x"}}`, cursor),
		} {
			l.Body(t, s.Token, http.MethodPost, l.path("/search"), bad, http.StatusBadRequest)
		}
		one := l.path("/issue/%d/activity", l.ids[sqlInjection])
		for _, state := range []string{"FIXING", "FIXED", "OPEN"} {
			l.post(t, l.path("/issue/%d", l.ids[sqlInjection]), `{"triageState":"TRIAGE_STATE_`+state+`"}`)
		}
		var seen []string
		for cursor := ""; ; {
			var answer struct {
				History []struct{ ID string }
				Cursor  string
			}
			if err := json.Unmarshal([]byte(s.Get(t, one+"?limit=3&cursor="+url.QueryEscape(cursor))), &answer); err != nil {
				t.Fatal(err)
			}
			for _, a := range answer.History {
				seen = append(seen, a.ID)
			}
			if cursor = answer.Cursor; cursor == "" {
				break
			}
		}
		if len(seen) != 5 { // with the detection, and later runs that did not detect it
			t.Errorf("got %v", seen)
		}
		for _, bad := range []string{"?limit=0", "?limit=1001", "?limit=x", "?cursor=x"} {
			l.Body(t, s.Token, http.MethodGet, one+bad, "", http.StatusBadRequest)
		}
	})
}

func (l *auditFixture) page(t testing.TB, request map[string]any, limit int, cursor string) (list []string, next string) {
	t.Helper()
	request["limit"], request["cursor"] = limit, cursor
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Issues []struct{ Title string }
		Cursor string
	}
	if err := json.Unmarshal([]byte(l.post(t, l.path("/search"), string(body))), &answer); err != nil {
		t.Fatal(err)
	}
	for _, issue := range answer.Issues {
		list = append(list, issue.Title)
	}
	return list, answer.Cursor
}

// Handlers need a deployment in the context: without one they return an error and no rows.
func TestIssuesWithoutDeployment(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newAuditFixture(t, s)
		rows := s.Store.Reader.AgenticIssue.Query().CountX(tenant.NewContext(t.Context(), l.DeploymentID+1))
		if _, err := s.Store.Reader.AgenticIssue.Query().Count(t.Context()); err == nil || rows != 0 {
			t.Errorf("%d rows, %v", rows, err)
		}
	})
}
