package findings_test

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"entgo.io/ent/dialect"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// byID matches queries by primary key.
var byID = regexp.MustCompile("WHERE \\(?[`\"]findings[`\"].[`\"]id[`\"] (IN|= ANY)")

// onFindings matches queries on findings, in the quotes of either database.
var onFindings = regexp.MustCompile("FROM [`\"]findings[`\"]")

// recorded opens the server's database a second time and records the queries that search findings.
func recorded(t *testing.T, s *apitest.Server) (*store.Store, *apitest.Queries) {
	t.Helper()
	return apitest.OpenRecorded(t, s, func(query string) bool {
		return onFindings.MatchString(query) && (!byID.MatchString(query) || strings.Contains(query, "ORDER BY"))
	})
}

// seedForPlans stores 20,000 findings for each of two tenants. The selectivity of values is realistic: rare values are
// rare. It refreshes the statistics, as the server does after large imports.
func seedForPlans(t *testing.T, s *apitest.Server) *fixture {
	t.Helper()
	projects := map[string]func(*ent.ProjectCreate){}
	for i := range 60 {
		projects[fmt.Sprintf("acme/p%02d", i)] = nil
	}
	ours, theirs := seedFixture(t, s, s.Tenant, projects), seedFixture(t, s, s.AddTenant(t, "rival"), projects)
	addTag(t, s, ours, "acme/p03", "team")
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		for _, l := range []*fixture{ours, theirs} {
			if err := s.Store.Exec(ctx, tx, plansSQL, l.DeploymentID, l.projects["acme/p00"], l.rules["aws.key"], []byte{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.RefreshStatistics(t)
	return ours
}

const plansSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19999)
INSERT INTO findings (deployment_id, project_id, rule_id, first_seen_scan_id, ref, tool, analysis_category, fingerprint, issue_type,
	severity, state, triage_state, status, triage_reason, policy_mode, autotriage_verdict, component_tag, exposure, transitivity, package,
	epss_probability, malicious, click_to_fix_state, validation_state, historical,
	created_at, relevant_since, state_updated_at, content_hash, content)
SELECT CAST(? AS BIGINT), CAST(? AS BIGINT) + i % 60, CAST(? AS BIGINT) + CASE WHEN i % 400 = 3 THEN 3 ELSE i % 3 END, i / 100, 'refs/heads/r' || (i % 40), 'test', '', 'print-' || (i / 40),
	CASE i % 3 WHEN 0 THEN 'sast' WHEN 1 THEN 'sca' ELSE 'secrets' END,
	CASE i % 20 WHEN 0 THEN 'critical' WHEN 1 THEN 'high' WHEN 2 THEN 'medium' ELSE 'low' END,
	CASE WHEN i % 90 = 3 THEN 'fixed' ELSE 'unresolved' END, CASE WHEN i % 90 = 6 THEN 'ignored' ELSE 'untriaged' END,
	CASE i % 90 WHEN 3 THEN 'fixed' WHEN 6 THEN 'ignored' ELSE 'open' END, CASE i % 90 WHEN 6 THEN 'duplicate' END,
	CASE i % 50 WHEN 0 THEN 'rule-board-block' END, CASE i % 50 WHEN 1 THEN 'true_positive' END, CASE i % 50 WHEN 2 THEN 'payments' END,
	CASE WHEN i % 3 = 1 THEN CASE i % 50 WHEN 3 THEN 'reachable' ELSE 'unknown' END END,
	CASE WHEN i % 3 = 1 THEN CASE i % 50 WHEN 4 THEN 'direct' ELSE 'unknown' END END,
	CASE WHEN i % 3 = 1 THEN 'package' || (i % 100) END, CASE WHEN i % 3 = 1 THEN CASE i % 50 WHEN 5 THEN 'high' ELSE 'none' END END,
	CASE WHEN i % 300 = 1 THEN TRUE END, CASE i % 50 WHEN 6 THEN 'open' END,
	CASE WHEN i % 3 = 2 THEN CASE i % 50 WHEN 7 THEN 'confirmed_valid' ELSE 'no_validator' END END, CASE WHEN i % 300 = 2 THEN TRUE END,
	1, 1000000 + i, 1, 1, ? FROM n`

// Every documented filter uses an index: no plan reads the whole table.
func TestPlansUseIndexes(t *testing.T) {
	t.Parallel()
	malicious, size := true, int64(100)
	lists := []struct {
		name, index string // the index, if only one is a good choice
		request     *findingsv1.ListFindingsRequest
	}{
		{"nothing", "findings_list", &findingsv1.ListFindingsRequest{}},
		{"issue_type", "findings_list", &findingsv1.ListFindingsRequest{IssueType: []string{"sca"}}},
		{"since", "findings_list", &findingsv1.ListFindingsRequest{Since: 1.019}},
		{"a deep page", "findings_list", &findingsv1.ListFindingsRequest{Page: 30, PageSize: &size}},
		{"several issue types", "findings_list", &findingsv1.ListFindingsRequest{IssueType: []string{"sast", "sca"}}},
		{"a deep page of several issue types", "findings_list", &findingsv1.ListFindingsRequest{
			IssueType: []string{"sast", "sca"}, Page: 30, PageSize: &size,
		}},
		{"dedup", "findings_list", &findingsv1.ListFindingsRequest{Dedup: true}},
		{"dedup with a filter", "", &findingsv1.ListFindingsRequest{Dedup: true, Status: []string{"open"}, Severities: []string{"critical"}}},
		{"repos", "findings_list_project", &findingsv1.ListFindingsRequest{Repos: []string{"ACME/p07", "acme/p08"}}},
		{"repository_ids", "findings_list_project", &findingsv1.ListFindingsRequest{RepositoryIds: []int64{7}}},
		{"status", "findings_list_status", &findingsv1.ListFindingsRequest{Status: []string{"fixed"}}},
		{"rare statuses", "", &findingsv1.ListFindingsRequest{Status: []string{"fixed", "ignored"}}},
		{"statuses and a severity", "", &findingsv1.ListFindingsRequest{
			Status: []string{"open", "fixed"}, Severities: []string{"critical"},
		}},
		{"ignored in code, too", "", &findingsv1.ListFindingsRequest{
			Status: []string{"ignored"}, TriageReasons: []string{"duplicate", "no_triage_reason"},
		}},
		{"refs", "findings_list_ref", &findingsv1.ListFindingsRequest{Ref: []string{"r7", "r8"}}},
		{"status and severity", "findings_list_status_severity", &findingsv1.ListFindingsRequest{Status: []string{"open"}, Severities: []string{"critical"}}},
		{"triage_reasons", "", &findingsv1.ListFindingsRequest{Status: []string{"ignored"}, TriageReasons: []string{"duplicate"}}},
		{"severities", "findings_list_severity", &findingsv1.ListFindingsRequest{Severities: []string{"critical"}}},
		{"several severities", "", &findingsv1.ListFindingsRequest{Severities: []string{"critical", "medium"}}},
		{"ref", "findings_list_ref", &findingsv1.ListFindingsRequest{Ref: []string{"r7"}}},
		{"_default", "findings_list", &findingsv1.ListFindingsRequest{Ref: []string{"_default"}}},
		{"policies", "findings_list_policy_mode", &findingsv1.ListFindingsRequest{Policies: []string{"rule-board-block"}}},
		{"policies, monitored", "findings_list", &findingsv1.ListFindingsRequest{Policies: []string{"rule-board-audit"}}},
		{"rules", "findings_list_rule_policy", &findingsv1.ListFindingsRequest{Rules: []string{"js.xss"}}},
		{"categories", "findings_list_rule_policy", &findingsv1.ListFindingsRequest{Categories: []string{"best-practice"}}},
		{"confidence", "findings_list_rule_policy", &findingsv1.ListFindingsRequest{Confidence: []string{"low"}}},
		{"autotriage_verdict", "findings_list_autotriage_verdict", &findingsv1.ListFindingsRequest{AutotriageVerdict: []string{"true_positive"}}},
		{"component_tags", "findings_list_component_tag", &findingsv1.ListFindingsRequest{ComponentTags: []string{"payments"}}},
		{"exposures", "findings_list_exposure", &findingsv1.ListFindingsRequest{IssueType: []string{"sca"}, Exposures: []string{"reachable"}}},
		{"transitivities", "findings_list_transitivity", &findingsv1.ListFindingsRequest{IssueType: []string{"sca"}, Transitivities: []string{"direct"}}},
		{"is_malicious", "findings_list_malicious", &findingsv1.ListFindingsRequest{IssueType: []string{"sca"}, IsMalicious: &malicious}},
		{"is_malicious, false", "findings_list", &findingsv1.ListFindingsRequest{IssueType: []string{"sca"}, IsMalicious: new(bool)}},
		{"click_to_fix_pr_state", "findings_list_click_to_fix_state", &findingsv1.ListFindingsRequest{ClickToFixPrState: []string{"open"}}},
	}
	secrets := []struct {
		name, index string
		request     *findingsv1.ListSecretsRequest
	}{
		{"nothing", "", &findingsv1.ListSecretsRequest{}},
		{"validationState", "findings_list_validation_state", &findingsv1.ListSecretsRequest{
			ValidationState: []findingsv1.ValidationState{findingsv1.ValidationState_VALIDATION_STATE_CONFIRMED_VALID},
		}},
		{"status", "", &findingsv1.ListSecretsRequest{Status: []findingsv1.FindingStatus{findingsv1.FindingStatus_FINDING_STATUS_OPEN}}},
		{"severity", "", &findingsv1.ListSecretsRequest{Severity: []findingsv1.Severity{findingsv1.Severity_SEVERITY_CRITICAL}}},
		{"repo", "findings_list_project", &findingsv1.ListSecretsRequest{Repo: []string{"acme/p07"}}},
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedForPlans(t, s)
		st, seen := recorded(t, s)
		ctx := tenant.NewContext(t.Context(), l.DeploymentID)
		findingsList, secretsList := findings.NewFindings(st, slog.New(slog.DiscardHandler)), findings.NewSecrets(st)
		for _, c := range lists {
			if _, err := findingsList.ListFindings(ctx, c.request); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			requireIndexes(t, st, "findings by "+c.name, c.index, seen.Take())
		}
		for _, c := range secrets {
			if _, err := secretsList.ListSecrets(ctx, c.request); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			requireIndexes(t, st, "secrets by "+c.name, c.index, seen.Take())
		}
	})
}

// Plans for callers limited to teams use indexes too, whether they see few projects or nearly all.
func TestPlansOfTeamsUseIndexes(t *testing.T) {
	t.Parallel()
	size := int64(100)
	lists := []struct {
		name    string
		request *findingsv1.ListFindingsRequest
	}{
		{"nothing", &findingsv1.ListFindingsRequest{}},
		{"a deep page", &findingsv1.ListFindingsRequest{Since: 1, Page: 3, PageSize: &size}},
		{"dedup", &findingsv1.ListFindingsRequest{Dedup: true}},
		{"repos", &findingsv1.ListFindingsRequest{Repos: []string{"acme/p07"}}},
		{"status and severities", &findingsv1.ListFindingsRequest{Status: []string{"open"}, Severities: []string{"critical", "high"}}},
		{"_default", &findingsv1.ListFindingsRequest{Ref: []string{"_default"}}},
		{"policies", &findingsv1.ListFindingsRequest{Policies: []string{"rule-board-block"}}},
		{"rules", &findingsv1.ListFindingsRequest{Rules: []string{"js.xss"}}},
		{"is_malicious, false", &findingsv1.ListFindingsRequest{IssueType: []string{"sca"}, IsMalicious: new(bool)}},
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedForPlans(t, s)
		seedTeams(t, s, l)
		st, seen := recorded(t, s)
		findingsList, secretsList := findings.NewFindings(st, slog.New(slog.DiscardHandler)), findings.NewSecrets(st)
		for who, teams := range map[string][]int64{"a small team": {1}, "a large team": {2}, "both teams": {1, 2}, "no team": nil} {
			ctx := tenant.WithTeams(tenant.NewContext(t.Context(), l.DeploymentID), teams)
			for _, c := range lists {
				if _, err := findingsList.ListFindings(ctx, c.request); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				if who == "no team" { // a caller without projects reads no list
					if asked := seen.Take(); len(asked) > 0 {
						t.Errorf("no team, findings by %s: %v", c.name, asked)
					}
					continue
				}
				index := ""
				if c.name == "nothing" || c.name == "_default" || c.name == "status and severities" {
					index = "findings_list_project"
				}
				requireTeamIndexes(t, st, who+", findings by "+c.name, index, seen.Take())
			}
			if _, err := secretsList.ListSecrets(ctx, &findingsv1.ListSecretsRequest{}); err != nil {
				t.Fatal(err)
			}
			requireTeamIndexes(t, st, who+", secrets", "", seen.Take())
		}
	})
}

// seedTeams adds one project of the tenant to team 1, all except one to team 2, and creates 200 other teams.
func seedTeams(t *testing.T, s *apitest.Server, l *fixture) {
	t.Helper()
	err := s.Store.Write(tenant.NewContext(t.Context(), l.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		var rows []*ent.TeamProjectCreate
		add := func(team, project int64) {
			rows = append(rows, tx.TeamProject.Create().SetDeploymentID(l.DeploymentID).SetTeamID(team).SetProjectID(project).SetCreatedAt(1))
		}
		for name, id := range l.projects {
			if name == "acme/p07" {
				add(1, id)
			}
			if name != "acme/p00" {
				add(2, id)
			}
			for team := range int64(200) {
				add(3+team, id)
			}
		}
		for part := range slices.Chunk(rows, 1000) {
			if err := tx.TeamProject.CreateBulk(part...).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.RefreshStatistics(t)
}

// requireTeamIndexes requires an index on findings and an index on the projects of teams, and that the statements limit
// the projects.
func requireTeamIndexes(t *testing.T, st *store.Store, name, index string, statements []apitest.Statement) {
	t.Helper()
	if len(statements) == 1 && strings.Contains(statements[0].Text, "AND FALSE)") { // no project matches, so nothing is read
		return
	}
	requireIndexes(t, st, name, index, statements)
	reader, _ := st.DB()
	for _, query := range statements {
		plan := apitest.Explain(t, st, reader, query)
		if !strings.Contains(plan, "team_projects_of_") {
			t.Errorf("%s: no index of team_projects is used:\n%s\n%s", name, query.Text, plan)
		}
	}
}

// wholeTable matches plans that read findings without an index, or a whole index. SQLite calls both SCAN.
var wholeTable = map[string]*regexp.Regexp{
	dialect.SQLite:   regexp.MustCompile(`SCAN (findings|twin|sibling|chosen)\b`),
	dialect.Postgres: regexp.MustCompile(`Seq Scan on findings`),
}

func requireIndexes(t *testing.T, st *store.Store, name, index string, statements []apitest.Statement) {
	t.Helper()
	if len(statements) == 0 {
		t.Errorf("%s: no query was seen", name)
	}
	reader, _ := st.DB()
	for _, query := range statements {
		plan := apitest.Explain(t, st, reader, query)
		if wholeTable[st.Dialect()].MatchString(plan) || !strings.Contains(plan, "findings_") {
			t.Errorf("%s: the whole table is read:\n%s\n%s", name, query.Text, plan)
		}
		if index != "" && !regexp.MustCompile(`\b`+index+`\b`).MatchString(plan) {
			t.Errorf("%s: %s is not used:\n%s\n%s", name, index, query.Text, plan)
		}
	}
}
