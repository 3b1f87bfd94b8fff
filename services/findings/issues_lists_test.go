package findings_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/findings/snapshots"
	"github.com/palisade/palisade/services/internal/apitest"
)

// issuesPath is the path of an operation on the issues of a deployment.
func issuesPath(of apitest.Tenant, operation string) string {
	return fmt.Sprintf("/api/agent/deployments/%d/%s", of.DeploymentID, operation)
}

// The bodies equal their golden files, with all fields and without, over HTTP and gRPC.
func TestGoldenIssueLists(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seedGolden(t, s)
		client := findingsv1.NewIssuesServiceClient(s.Conn)
		for _, c := range []struct {
			name, operation, body string
			request               proto.Message
			call                  func(context.Context, proto.Message) (proto.Message, error)
		}{
			{"issues", "issues", `{"sortBy":"SORT_BY_SEVERITY","includeIsArchived":true,"includeFirstDetectedAt":true,"includeRemediation":true}`, &findingsv1.ListIssuesRequest{},
				func(ctx context.Context, r proto.Message) (proto.Message, error) {
					return client.ListIssues(ctx, r.(*findingsv1.ListIssuesRequest))
				}},
			{"issues_none", "issues", `{"filter":{"repositoryNames":["acme/none"]}}`, &findingsv1.ListIssuesRequest{},
				func(ctx context.Context, r proto.Message) (proto.Message, error) {
					return client.ListIssues(ctx, r.(*findingsv1.ListIssuesRequest))
				}},
			{"issue_counts", "issue_counts", `{}`, &findingsv1.GetIssueCountsRequest{}, func(ctx context.Context, r proto.Message) (proto.Message, error) {
				return client.GetIssueCounts(ctx, r.(*findingsv1.GetIssueCountsRequest))
			}},
			{"issue_filters", "issue_filters", `{}`, &findingsv1.GetIssueFiltersRequest{}, func(ctx context.Context, r proto.Message) (proto.Message, error) {
				return client.GetIssueFilters(ctx, r.(*findingsv1.GetIssueFiltersRequest))
			}},
			{"issue_groups", "issues/search", `{"sortBy":"SORT_BY_SEVERITY"}`, &findingsv1.ListIssueGroupsRequest{}, func(ctx context.Context, r proto.Message) (proto.Message, error) {
				return client.ListIssueGroups(ctx, r.(*findingsv1.ListIssueGroupsRequest))
			}},
		} {
			answer := s.Do(t, s.Token, http.MethodPost, issuesPath(s.Tenant, c.operation), c.body)
			if answer.Status != http.StatusOK {
				t.Fatalf("%s: %d %s", c.name, answer.Status, answer.Body)
			}
			apitest.Golden(t, c.name, answer.Body)
			if err := protojson.Unmarshal([]byte(c.body), c.request); err != nil {
				t.Fatal(err)
			}
			fields := c.request.ProtoReflect()
			fields.Set(fields.Descriptor().Fields().ByName("deployment_id"), protoreflect.ValueOfInt64(s.DeploymentID))
			response, err := c.call(s.Context(t, s.Token), c.request)
			if err != nil {
				t.Fatal(err)
			}
			apitest.Same(t, response, answer.Body)
		}
	})
}

// summaries are the parts of bodies that tests read.
type summaries struct {
	Issues []struct {
		Issue struct{ ID, Message string }
	}
	Cursor string
	Groups []struct{ IssuesCount, RulePath, Severity string }
	Total  string
	Open   string
	Facets []struct {
		Field  string
		Values []struct{ Value, ID, Count string }
	}
	RepoNames []string
}

func (s *summaries) labels() string {
	names := make([]string, len(s.Issues))
	for i, one := range s.Issues {
		names[i] = one.Issue.Message
	}
	return strings.Join(names, " ")
}

// askIssues requests an operation on issues.
func askIssues(t *testing.T, s *apitest.Server, of apitest.Tenant, token, operation, body string) *summaries {
	t.Helper()
	answer := s.Do(t, token, http.MethodPost, issuesPath(of, operation), body)
	out := &summaries{}
	if err := json.Unmarshal([]byte(answer.Body), out); err != nil || answer.Status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", operation, body, answer.Status, answer.Body)
	}
	return out
}

// Another deployment's issues are neither listed nor counted, and its deployment is not found.
func TestIssueListsOfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ours, theirs := seedTwoTenants(t, s)
		if got := askIssues(t, s, ours.Tenant, s.Token, "issues", `{}`).labels(); got != "secret0 branch0 code0" && got != "code0 branch0 secret0" {
			t.Errorf("ours: %s", got)
		}
		foreign := fmt.Sprintf(`{"filter":{"ids":[%d]}}`, theirs.findings["code1"])
		if got := askIssues(t, s, ours.Tenant, s.Token, "issues", foreign).labels(); got != "" {
			t.Errorf("by a foreign id: %s", got)
		}
		if got := askIssues(t, s, ours.Tenant, s.Token, "issue_counts", `{}`).Open; got != "3" {
			t.Errorf("%s open findings", got)
		}
		for _, operation := range []string{"issues", "issue_counts", "issue_filters", "issues/search"} {
			of := failure(t, s, http.StatusNotFound, http.MethodPost, issuesPath(theirs.Tenant, operation), `{}`)
			absent := failure(t, s, http.StatusNotFound, http.MethodPost, issuesPath(apitest.Tenant{DeploymentID: 987}, operation), `{}`)
			if strings.ReplaceAll(of, fmt.Sprint(theirs.DeploymentID), "987") != absent {
				t.Errorf("%s: %s, absent: %s", operation, of, absent)
			}
		}
	})
}

// Callers with teams see the issues of their projects, in lists, numbers, groups and filter values.
func TestIssueListsOfTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
		l.seed(t, s, fact{label: "web"}, fact{label: "api", project: "acme/api", rule: "js.xss"}, fact{label: "api2", project: "acme/api", rule: "py.style"})
		var team int64
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			row, err := tx.Team.Create().SetDeploymentID(s.DeploymentID).SetName("Web").SetSlug("web").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
			if err != nil {
				return err
			}
			team = row.ID
			return tx.TeamProject.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team).SetProjectID(l.projects["acme/web"]).SetCreatedAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		issues := findings.NewIssues(s.Store, nil, snapshots.NewSnapshots(s.Store, 1), nil, nil)
		ctx := tenant.WithTeams(tenant.NewContext(t.Context(), s.DeploymentID), []int64{team})
		for _, filter := range []*findingsv1.IssuesFilter{nil, {Ids: l.ids(t, "web api")}, {RuleIds: []int64{l.rules["py.sqli"], l.rules["js.xss"]}}, {TeamNames: []string{"Web"}}} {
			list, err := issues.ListIssues(ctx, &findingsv1.ListIssuesRequest{Filter: filter, SortBy: findingsv1.SortBy_SORT_BY_REPO})
			if err != nil || len(list.GetIssues()) != 1 || list.GetIssues()[0].GetIssue().GetMessage() != "web" {
				t.Errorf("%v: %v %v", filter, list, err)
			}
			counts, err := issues.GetIssueCounts(ctx, &findingsv1.GetIssueCountsRequest{Filter: filter})
			if err != nil || counts.GetOpen() != 1 {
				t.Errorf("%v: %v %v", filter, counts, err)
			}
			groups, err := issues.ListIssueGroups(ctx, &findingsv1.ListIssueGroupsRequest{Filter: filter})
			if err != nil || groups.GetTotal() != 1 || groups.GetGroups()[0].GetRulePath() != "py.sqli" {
				t.Errorf("%v: %v %v", filter, groups, err)
			}
			values, err := issues.GetIssueFilters(ctx, &findingsv1.GetIssueFiltersRequest{Filter: filter})
			if err != nil || len(values.GetRepos()) != 1 || len(values.GetRules()) != 1 || strings.Contains(values.String(), "acme/api") {
				t.Errorf("%v: %v %v", filter, values, err)
			}
		}
	})
}

// Archived projects: left out, listed alone, and counted.
func TestIssuesOfArchivedProjects(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/old": func(p *ent.ProjectCreate) { p.SetArchivedAt(1) }})
		l.seed(t, s, fact{label: "new"}, fact{label: "old", project: "acme/old"}, fact{label: "old2", project: "acme/old", severity: "low"})
		for body, want := range map[string]string{
			`{"filter":{}}`: "new", `{"filter":{"includeArchived":true}}`: "old old2",
			`{"filter":{"includeArchived":true,"severities":["SEVERITY_LOW"]}}`: "old2",
		} {
			if got := askIssues(t, s, s.Tenant, s.Token, "issues", body).labels(); got != want {
				t.Errorf("%s: got %s, want %s", body, got, want)
			}
		}
		for body, want := range map[string]string{
			`{}`: `"open":"1"`, `{"filter":{"severities":["SEVERITY_LOW"]}}`: `"archived":"1"`, `{"filter":{"includeArchived":true}}`: `"archived":"2"`,
		} {
			if answer := s.Do(t, s.Token, http.MethodPost, issuesPath(s.Tenant, "issue_counts"), body); !strings.Contains(answer.Body, want) {
				t.Errorf("%s: no %s in %s", body, want, answer.Body)
			}
		}
	})
}

// Removed and merged findings are in no list, number, group, filter value, preview and bulk update, and in no issue,
// whatever the filter names.
func TestRemovedIssuesNeverAppear(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		l.seed(t, s, fact{label: "open"}, fact{label: "fixed", state: "fixed"}, fact{label: "gone", state: "removed", rule: "js.xss"},
			fact{label: "merged", state: "removed", triage: "ignored", reason: "no_time"})
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Finding.UpdateOneID(l.findings["merged"]).SetMergedInto(l.findings["open"]).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			filter, issues, counts string
			n                      int
		}{
			{`{}`, "open fixed", `"open":"1"`, 2},
			{`{"tab":"ISSUE_TAB_CLOSED"}`, "fixed", `"closed":"1"`, 1},
			{`{"status":["ISSUE_STATUS_REMOVED"]}`, "", `"closed":"0"`, 0},
			{`{"aggregateIssueStates":["AGGREGATE_ISSUE_STATE_REMOVED","AGGREGATE_ISSUE_STATE_FIXED"]}`, "fixed", `"closed":"1"`, 1},
			{`{"triageReasons":["FINDING_TRIAGE_REASON_NO_TIME"]}`, "", `"ignored":"0"`, 0},
			{fmt.Sprintf(`{"ids":[%d,%d]}`, l.findings["gone"], l.findings["merged"]), "", `"closed":"0"`, 0},
		} {
			body := `{"filter":` + c.filter + `}`
			if got := askIssues(t, s, s.Tenant, s.Token, "issues", body).labels(); got != c.issues {
				t.Errorf("%s: issues %q, want %q", c.filter, got, c.issues)
			}
			if counts := s.Do(t, s.Token, http.MethodPost, issuesPath(s.Tenant, "issue_counts"), body); !strings.Contains(counts.Body, c.counts) {
				t.Errorf("%s: counts %s, want %s", c.filter, counts.Body, c.counts)
			}
			if total := askIssues(t, s, s.Tenant, s.Token, "issue_filters", body).Total; total != fmt.Sprint(c.n) {
				t.Errorf("%s: filter values of %s findings, want %d", c.filter, total, c.n)
			}
			if groups := askIssues(t, s, s.Tenant, s.Token, "issues/search", body).Groups; len(groups) != min(c.n, 1) {
				t.Errorf("%s: groups %v", c.filter, groups)
			}
			update := `{"filter":` + c.filter + `,"params":{"note":"seen"}}`
			for what, got := range map[string]updated{
				"preview": bulk(t, s, s.Token, http.MethodPost, bulkPath(s.Tenant, "preview"), update),
				"update":  bulk(t, s, s.Token, http.MethodPatch, bulkPath(s.Tenant), update),
			} {
				if got.IssueCount != c.n {
					t.Errorf("%s: %s of %d findings, want %d", c.filter, what, got.IssueCount, c.n)
				}
			}
		}
		for _, label := range []string{"gone", "merged"} {
			failure(t, s, http.StatusNotFound, http.MethodGet, issuesPath(s.Tenant, fmt.Sprintf("issues/v2/%d", l.findings[label])), "")
		}
	})
}

// Groups continue after a cursor, in each order, also when numbers are equal.
func TestIssueGroupPages(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		l.seed(t, s, fact{label: "1", rule: "py.sqli", severity: "low"}, fact{label: "2", rule: "py.sqli", severity: "critical"}, fact{label: "3", rule: "js.xss", severity: "low"},
			fact{label: "4", rule: "py.style", severity: "high"}, fact{label: "5", rule: "aws.key", kind: "secrets", severity: "medium"})
		for order, want := range map[string]string{
			`"sortBy":"SORT_BY_ISSUE_COUNTS"`: "py.sqli aws.key js.xss py.style", `"sortDirection":"SORT_DIRECTION_ASC"`: "aws.key js.xss py.style py.sqli",
			`"sortBy":"SORT_BY_SEVERITY"`: "py.sqli py.style aws.key js.xss", `"sortBy":"SORT_BY_SEVERITY","sortDirection":"SORT_DIRECTION_ASC"`: "js.xss aws.key py.style py.sqli",
		} {
			var got []string
			cursor := ""
			for first := true; (first || cursor != "") && len(got) < 9; first = false {
				page := askIssues(t, s, s.Tenant, s.Token, "issues/search", fmt.Sprintf(`{"limit":1,%s,"cursor":%q}`, order, cursor))
				for _, group := range page.Groups {
					got = append(got, group.RulePath)
				}
				if cursor = page.Cursor; page.Total != "4" {
					t.Errorf("%s groups", page.Total)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: got %v, want %s", order, got, want)
			}
		}
	})
}

// Groups by project have the numbers and the worst severity of all refs, and only projects that the caller sees.
func TestIssueGroupsByProject(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil, "acme/none": nil})
		l.seed(t, s, fact{label: "1", severity: "low"}, fact{label: "2", ref: devRef, severity: "critical"}, fact{label: "3", project: "acme/api", severity: "high"})
		web := fmt.Sprintf(`{"issuesCount":"2","projectId":"%d","projectName":"acme/web","severity":"SEVERITY_CRITICAL"}`, l.projects["acme/web"])
		api := fmt.Sprintf(`{"issuesCount":"1","projectId":"%d","projectName":"acme/api","severity":"SEVERITY_HIGH"}`, l.projects["acme/api"])
		const ask = `{"groupBy":"GROUP_BY_PROJECT","limit":1,"cursor":%q}`
		first := s.Body(t, s.Token, http.MethodPost, issuesPath(s.Tenant, "issues/search"), fmt.Sprintf(ask, ""), http.StatusOK)
		if !strings.Contains(first, `"total":"2","fetched":"1","projectGroups":[`+web+`]`) || !strings.Contains(first, `"groups":[]`) {
			t.Errorf("first page: %s", first)
		}
		var page struct{ Cursor string }
		if err := json.Unmarshal([]byte(first), &page); err != nil || page.Cursor == "" {
			t.Fatalf("%v, cursor of %s", err, first)
		}
		second := s.Body(t, s.Token, http.MethodPost, issuesPath(s.Tenant, "issues/search"), fmt.Sprintf(ask, page.Cursor), http.StatusOK)
		if !strings.Contains(second, `"cursor":"","total":"2","fetched":"1","projectGroups":[`+api+`]`) {
			t.Errorf("second page: %s", second)
		}
		member := memberOf(t, s, l, "acme/api")
		if got := s.Body(t, member, http.MethodPost, issuesPath(s.Tenant, "issues/search"), fmt.Sprintf(ask, ""), http.StatusOK); !strings.Contains(got, `"projectGroups":[`+api+`]`) {
			t.Errorf("a member of a team with one project got %s", got)
		}
		other := s.AddTenant(t, "other")
		got, err := findingsv1.NewIssuesServiceClient(s.Conn).ListIssueGroups(s.Context(t, other.Token),
			&findingsv1.ListIssueGroupsRequest{DeploymentId: other.DeploymentID, GroupBy: findingsv1.GroupBy_GROUP_BY_PROJECT})
		if err != nil || got.GetTotal() != 0 || len(got.GetProjectGroups()) != 0 {
			t.Errorf("another deployment got %v %v", got, err)
		}
	})
}

// Numbers, lists and groups contain changes of findings at once, and cursors belong to their list.
func TestIssueListsAreFresh(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		l.seed(t, s, fact{label: "a"}, fact{label: "b"}, fact{label: "c"})
		open := func(want string) {
			t.Helper()
			if got := askIssues(t, s, s.Tenant, s.Token, "issues", `{"filter":{"tab":"ISSUE_TAB_OPEN"}}`).labels(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		open("a b c")
		triage := fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":"ignored","new_triage_reason":"no_time"}`, l.findings["b"])
		if answer := s.Do(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/triage", triage); answer.Status != http.StatusOK {
			t.Fatal(answer.Body)
		}
		open("a c")
		if got := askIssues(t, s, s.Tenant, s.Token, "issues", `{"filter":{"triageReasons":["FINDING_TRIAGE_REASON_NO_TIME"]}}`).labels(); got != "b" {
			t.Errorf("ignored: %s", got)
		}
		cursor := askIssues(t, s, s.Tenant, s.Token, "issues", `{"limit":1,"sortBy":"SORT_BY_RULE"}`).Cursor
		for _, body := range []string{`{"limit":1,"cursor":%q}`, `{"limit":1,"sortBy":"SORT_BY_RULE","sortDirection":"SORT_DIRECTION_ASC","cursor":%q}`,
			`{"limit":1,"sortBy":"SORT_BY_RULE","filter":{"tab":"ISSUE_TAB_OPEN"},"cursor":%q}`} {
			answer := s.Do(t, s.Token, http.MethodPost, issuesPath(s.Tenant, "issues"), fmt.Sprintf(body, cursor))
			if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, "INVALID_CURSOR") {
				t.Errorf("%s: %d %s", body, answer.Status, answer.Body)
			}
		}
		refused := failure(t, s, http.StatusBadRequest, http.MethodPost, issuesPath(s.Tenant, "issues"), `{"sortBy":"SORT_BY_ISSUE_COUNTS"}`)
		if !strings.Contains(refused, "sortBy") {
			t.Error(refused)
		}
	})
}

// TestUnknownTeams: a caller learns nothing about teams that the list of teams hides, from filter values and filters.
func TestUnknownTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		mia := memberOf(t, s, l, "acme/web")
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			above, err := tx.Team.Create().SetDeploymentID(s.DeploymentID).SetName("Above").SetSlug("above").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
			if err != nil {
				return err
			}
			if err := tx.Team.Update().Where(team.Name("Web")).SetParentID(above.ID).Exec(ctx); err != nil {
				return err
			}
			other, err := tx.Team.Create().SetDeploymentID(s.DeploymentID).SetName("Other").SetSlug("other").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
			if err != nil {
				return err
			}
			return tx.TeamProject.Create().SetDeploymentID(s.DeploymentID).SetTeamID(other.ID).SetProjectID(l.projects["acme/web"]).SetCreatedAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		for caller, want := range map[string]string{s.Token: `"teamNames":["Above","Other","Web"]`, mia: `"teamNames":["Web"]`} {
			got := s.Body(t, caller, http.MethodPost, issuesPath(s.Tenant, "issue_filters"), `{}`, http.StatusOK)
			if !strings.Contains(got, want) || caller == mia && strings.Contains(got, "Other") {
				t.Errorf("want %s in %s", want, got)
			}
		}
		for name, found := range map[string]bool{"Web": true, "Above": false, "Other": false, "None": false} {
			body := fmt.Sprintf(`{"filter":{"teamNames":[%q]},"limit":1}`, name)
			if got := s.Body(t, mia, http.MethodPost, issuesPath(s.Tenant, "issues"), body, http.StatusOK); strings.Contains(got, `"issue":`) != found {
				t.Errorf("the findings of %s: %s", name, got)
			}
			if got := s.Body(t, s.Token, http.MethodPost, issuesPath(s.Tenant, "issues"), body, http.StatusOK); strings.Contains(got, `"issue":`) != (name != "None") {
				t.Errorf("the findings of %s for an administrator: %s", name, got)
			}
		}
	})
}
