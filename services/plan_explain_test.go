package services_test

import (
	"database/sql"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/services/internal/apitest"
)

var (
	tableNames = func() (names []string) {
		for _, table := range migrate.Tables {
			names = append(names, table.Name)
		}
		return names
	}()
	// named finds the tables of a statement and their aliases.
	named = regexp.MustCompile("(?i)(?:FROM|JOIN|UPDATE|INTO) [`\"]?(" + strings.Join(tableNames, "|") + ")\\b[`\"]?(?:(?: AS)? [`\"]?(\\w+)[`\"]?)?")
	// sqliteScan and postgresScan find full scans in a plan.
	sqliteScan = regexp.MustCompile(`(?m)^SCAN (\w+)(.*)$`)
	// A scan along an index counts on SQLite only. PostgreSQL reads the primary key for a page of a deployment that has
	// a tenth of a table, as the test's has, and all of a partial index of due rows.
	postgresScan = regexp.MustCompile(`Seq Scan on (\w+)`)
	// sqliteSort finds full sorts, not sorts within equal prefixes.
	sqliteSort = regexp.MustCompile(`USE TEMP B-TREE FOR ORDER BY`)
)

// planner explains statements on a database with the server's schema.
type planner struct {
	explain func(t *testing.T, statement apitest.Statement) string
	with    string
	// sorts reports that a sort means that no index has the order. With statistics, both databases also sort rows that
	// they expect to be few.
	sorts bool
}

// planners are the server's database, whose statistics are refreshed, and for SQLite one without statistics: the plans
// of a server whose tables have just been filled.
func planners(t *testing.T, s *apitest.Server) []planner {
	t.Helper()
	known := planner{with: "statistics", explain: func(t *testing.T, statement apitest.Statement) string { return explain(t, s, statement) }}
	if s.Store.Postgres() {
		return []planner{known}
	}
	empty := emptyCopy(t, s)
	return []planner{known, {with: "no statistics", sorts: true, explain: func(t *testing.T, statement apitest.Statement) string {
		return apitest.Explain(t, s.Store, empty, statement)
	}}}
}

// emptyCopy is a database in memory with the schema of a server's SQLite file.
func emptyCopy(t *testing.T, s *apitest.Server) *sql.DB {
	t.Helper()
	reader, _ := s.Store.DB()
	var schema string
	err := reader.QueryRowContext(t.Context(), `SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema
		WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY type <> 'table')`).Scan(&schema)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1) // each connection has a database of its own
	if _, err := db.ExecContext(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	return db
}

// requireGoodPlan refuses a plan with a full scan, and a statement that does not name the deployment.
func requireGoodPlan(t *testing.T, s *apitest.Server, by []planner, what string, statement apitest.Statement) {
	t.Helper()
	if isFrame.MatchString(statement.Text) || strings.HasPrefix(statement.Text, "INSERT") && !strings.Contains(statement.Text, "SELECT") {
		return
	}
	tables := map[string]string{} // by alias
	for _, found := range named.FindAllStringSubmatch(statement.Text, -1) {
		tables[found[1]], tables[found[2]] = found[1], found[1]
	}
	if len(tables) == 0 {
		return
	}
	for _, p := range by {
		requireNoScan(t, s, p, tables, what, statement)
	}
	_, condition, _ := strings.Cut(statement.Text, " WHERE ")
	if !strings.Contains(condition, "deployment_id") && !readAgain.MatchString(statement.Text) && !withoutTenantTables(tables) && !bounded(what, "everybody's") {
		t.Errorf("%s: no deployment is named:\n%s", what, statement.Text)
	}
}

// requireNoScan refuses a plan with a full scan or a full sort. tables are the tables of the statement by alias.
func requireNoScan(t *testing.T, s *apitest.Server, by planner, tables map[string]string, what string, statement apitest.Statement) {
	t.Helper()
	plan, scans := by.explain(t, statement), sqliteScan
	if s.Store.Postgres() {
		scans = postgresScan
	}
	for _, scan := range scans.FindAllStringSubmatch(plan, -1) {
		if strings.Contains(plan, "CO-ROUTINE "+scan[1]+"\n") {
			continue // an earlier result
		}
		table := tables[scan[1]]
		if !s.Store.Postgres() && !by.sorts && slices.Contains(byHand, table) {
			continue // to SQLite, each of the two deployments has half of the rows
		}
		if table != "" && !mayScan(what, table) {
			t.Errorf("%s: with %s, all of %s is read:\n%s\n%s", what, by.with, table, statement.Text, plan)
		}
	}
	if by.sorts && sqliteSort.MatchString(plan) {
		for table := range maps.Values(tables) {
			if !slices.Contains(byHand, table) && !bounded(what, table) {
				t.Errorf("%s: with %s, %s is sorted:\n%s\n%s", what, by.with, table, statement.Text, plan)
				break
			}
		}
	}
}

// readAgain is how ent reads a row that it has just changed, in the same transaction. The change named the deployment.
// Queries qualify each column with its table.
var readAgain = regexp.MustCompile("FROM [`\"]\\w+[`\"] WHERE [`\"]id[`\"] = (?:\\?|\\$1)$")

// byHand are the tables that people or an import of rules fill: sorting a tenant's rows is cheap. All other
// tables grow with every scan, event or run.
var byHand = []string{
	"ai_memories", "automations", "deployments", "detection_exceptions", "detection_policies", "identity_changes", "invitations", "memberships", "notification_rules", "notification_webhooks", "package_manager_configs", "path_ignores",
	"remediation_policies", "report_formats", "review_comment_contents", "rule_alias", "rule_documents", "rule_versions",
	"ruleboard_projects", "ruleboard_rules", "ruleboards", "saved_views", "scm_apps", "scm_configs", "signing_keys",
	"tags", "team_members", "teams", "tokens", "triage_changes", "users", "workflow_versions", "workflows",
}

// Reasons of calls that use columns in memory.
const (
	firstReading = "the first call for a deployment reads all that it has, once, and keeps it"
	highestID    = "the highest id of all, from the primary key"
	ofRequest    = "the findings that the request names"
)

// accepted are permitted sorts and reads of more than one deployment, with the reason.
var accepted = []struct{ rpc, table, why string }{
	{"FindingIdentityService/ExplainMatch", "findings", "the findings of one identity, one a ref"},
	{"IssuesService/GetIssue", "ai_feedbacks", "the feedback on the analyses of one finding"},
	{"IssuesService/GetIssue", "users", "the people in the history of one finding, at most 200"},
	{"IssuesService/GetIssueCounts", "findings", firstReading},
	{"IssuesService/GetIssueCounts", "everybody's", highestID},
	{"IssuesService/GetIssueFilters", "findings", firstReading},
	{"IssuesService/GetIssueFilters", "everybody's", highestID},
	{"IssuesService/ListIssueGroups", "findings", firstReading},
	{"IssuesService/ListIssueGroups", "everybody's", highestID},
	{"IssuesService/ListIssues", "ai_feedbacks", "the feedback on the analyses of a page"},
	{"IssuesService/ListIssues", "findings", firstReading},
	{"IssuesService/ListIssues", "everybody's", highestID},
	{"MalwareFirewallService/ListAdvisories", "advisories", "the rows of one page, chosen by id before"},
	{"MalwareFirewallReportsService/", "install_checks", "what is sorted are groups; what they count is a range of an index"},
	{"NotificationsService/MarkNotificationsAsSeen", "notifications", "the rows of one request"},
	{"PoliciesV2Service/BackTestRemediationPolicies", "findings", "the codes of a thousand findings at once, by key"},
	{"PoliciesV2Service/BackTestRemediationPolicies", "everybody's", "the bounds of windows of ids, from the primary key"},
	{"RepositoriesService/SearchRepos", "findings", "the summary of a page counts the findings of its projects, which may be all"},
	{"RepositoryChangesService/Bulk", "projects", "the repositories that the request names"},
	{"ReportsService/", "findings", firstReading}, // OverviewReportsService too
	{"ReportsService/", "everybody's", highestID},
	{"TeamsService/ListDeploymentTeams", "team_projects", "the teams of one project"},
	{"TokenRequestsService/PickUpToken", "everybody's", "the key in the request identifies the deployment"},
	{"TriageChangesService/PreviewBulkUpdate", "findings", ofRequest},
	{"TriageChangesService/PreviewBulkUpdate", "projects", ofRequest},
	{"TriageChangesService/PreviewBulkUpdate", "exception_requests", ofRequest},
	{"TriageChangesService/UndoTriageChange", "triage_change_findings", "the decisions about one finding"},
	{"TriageChangesService/UndoTriageChange", "findings", "the decisions about one finding; the findings are found by key"},
	{"WorkflowTasksService/ClaimWorkflowTask", "workflow_attempts", "tasks that wait for a worker: at most 200 of a run"},
}

func bounded(what, table string) bool {
	return slices.ContainsFunc(accepted, func(a struct{ rpc, table, why string }) bool {
		return a.table == table && strings.Contains(what, a.rpc)
	})
}

// explain returns the plan of a statement. For a statement that asks whether a row exists, PostgreSQL prefers a full
// scan when it expects many matches. explain then disables sequential scans, to see the plan for no matches.
func explain(t *testing.T, s *apitest.Server, statement apitest.Statement) string {
	t.Helper()
	reader, _ := s.Store.DB()
	if !s.Store.Postgres() || !firstFound.MatchString(statement.Text) {
		return apitest.Explain(t, s.Store, reader, statement)
	}
	tx, err := reader.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "SET LOCAL enable_seqscan = off"); err != nil {
		t.Fatal(err)
	}
	return apitest.Explain(t, s.Store, tx, statement)
}

// firstFound matches statements that ask whether a row exists, or a second one.
var firstFound = regexp.MustCompile(`LIMIT [12]$|EXISTS \(SELECT 1 FROM teams`)

// mayScan reports that a plan may scan a whole table, because it has few rows.
func mayScan(what, table string) bool {
	return slices.Contains([]string{"audit_heads", "automations", "deployments", "detection_policies", "path_ignores", "ruleboards", "signing_keys", "workflows"}, table) || bounded(what, table)
}

// withoutTenantTables reports that none of the tables belongs to a tenant. Look-ups of credentials count too, because
// their result names the tenant.
func withoutTenantTables(tables map[string]string) bool {
	for table := range maps.Values(tables) {
		if !slices.Contains([]string{"console_links", "deployments", "sessions", "settings", "signing_keys", "users"}, table) {
			return false
		}
	}
	return true
}
