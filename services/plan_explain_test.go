package services_test

import (
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
	// named matches the tables of a statement and their aliases.
	named = regexp.MustCompile("(?i)(?:FROM|JOIN|UPDATE|INTO) [`\"]?(" + strings.Join(tableNames, "|") + ")\\b[`\"]?(?:(?: AS)? [`\"]?(\\w+)[`\"]?)?")
	// sqliteScan and postgresScan match full table scans in a plan.
	sqliteScan = regexp.MustCompile(`(?m)^SCAN (\w+)(.*)$`)
	// Full index scans count on SQLite only: PostgreSQL uses the primary key for a page of a deployment with a tenth of
	// the table, as in these tests, and reads a partial index of due rows completely.
	postgresScan = regexp.MustCompile(`Seq Scan on (\w+)`)
	// sqliteSort matches sorts of all rows in SQLite, not of rows with equal prefixes.
	sqliteSort = regexp.MustCompile(`USE TEMP B-TREE FOR ORDER BY`)
)

// requireGoodPlan rejects a plan with a full table scan, and a statement that does not name the deployment.
func requireGoodPlan(t *testing.T, s *apitest.Server, what string, statement apitest.Statement) {
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
	plan := explain(t, s, statement)
	scans := sqliteScan
	if s.Store.Postgres() {
		scans = postgresScan
	}
	for _, scan := range scans.FindAllStringSubmatch(plan, -1) {
		if strings.Contains(plan, "CO-ROUTINE "+scan[1]+"\n") {
			continue // already reported
		}
		if table := tables[scan[1]]; table != "" && !mayScanTable(what, table) {
			t.Errorf("%s: all of %s is read:\n%s\n%s", what, table, statement.Text, plan)
		}
	}
	if !s.Store.Postgres() && sqliteSort.MatchString(plan) { // PostgreSQL sorts only few rows
		for table := range maps.Values(tables) {
			if !slices.Contains(smallTables, table) && !bounded(what, table) {
				t.Errorf("%s: %s is sorted:\n%s\n%s", what, table, statement.Text, plan)
				break
			}
		}
	}
	_, condition, _ := strings.Cut(statement.Text, " WHERE ")
	if !strings.Contains(condition, "deployment_id") && !readAgain.MatchString(statement.Text) && !ofServer(tables) && !bounded(what, "everybody's") {
		t.Errorf("%s: no deployment is named:\n%s", what, statement.Text)
	}
}

// readAgain matches ent's read of a row that it has just changed, in the same transaction; the change named the
// deployment. Queries qualify columns by table.
var readAgain = regexp.MustCompile("FROM [`\"]\\w+[`\"] WHERE [`\"]id[`\"] = (?:\\?|\\$1)$")

// smallTables are the tables with rows created one at a time by people or by an import of rules: sorting a tenant's
// rows is cheap. All others grow with each scan, event or run.
var smallTables = []string{
	"ai_memories", "deployments", "identity_changes", "invitations", "memberships", "notification_rules", "notification_webhooks", "package_manager_configs",
	"remediation_policies", "review_comment_contents", "rule_alias", "rule_documents", "rule_versions", "scm_apps", "scm_configs", "signing_keys",
	"tags", "team_members", "teams", "tokens", "users", "workflow_versions", "workflows",
}

// accepted are permitted sorts and reads across deployments, with the reason.
var accepted = []struct{ rpc, table, why string }{
	{"FindingIdentityService/ExplainMatch", "findings", "the findings of one identity, one a ref"},
	{"MalwareFirewallService/CheckPackageInstalls", "advisories", "those of the packages that are asked about"},
	{"MalwareFirewallService/CheckPackageInstalls", "advisory_packages", "those of the packages that are asked about"},
	{"MalwareFirewallService/ListAdvisories", "advisories", "the rows of one page, chosen by id before"},
	{"MalwareFirewallReportsService/", "install_checks", "what is sorted are groups; what they count is a range of an index"},
	{"NotificationsService/MarkNotificationsAsSeen", "notifications", "those of one request"},
	{"ReportsService/", "findings", "the first report of a deployment reads all that it has, once, and keeps it"},
	{"ReportsService/", "everybody's", "the highest id of all, from the primary key"},
	{"TokenRequestsService/PickUpToken", "everybody's", "the key that it brings says whose the request is"},
	{"WorkflowTasksService/ClaimWorkflowTask", "workflow_attempts", "those that wait for a worker: at most 200 of a run"},
}

func bounded(what, table string) bool {
	return slices.ContainsFunc(accepted, func(a struct{ rpc, table, why string }) bool {
		return a.table == table && strings.Contains(what, a.rpc)
	})
}

// explain returns the plan of a statement. For statements that ask whether there is a row, or a second one, PostgreSQL
// prefers a table scan if it expects many rows. For these it disables table scans, to see the plan for the case of no
// rows.
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

// firstFound matches statements that ask whether there is a row, or a second one.
var firstFound = regexp.MustCompile(`LIMIT [12]$|EXISTS \(SELECT 1 FROM teams`)

// mayScanTable reports whether a plan may scan a table, because it has few rows.
func mayScanTable(what, table string) bool {
	return slices.Contains([]string{"audit_heads", "deployments", "signing_keys", "workflows"}, table) || bounded(what, table)
}

// ofServer reports whether no table belongs to a tenant. Tables that credentials are looked up in do not count either:
// the lookup finds the tenant.
func ofServer(tables map[string]string) bool {
	for table := range maps.Values(tables) {
		if !slices.Contains([]string{"deployments", "settings", "signing_keys", "users"}, table) {
			return false
		}
	}
	return true
}
