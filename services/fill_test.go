package services_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"entgo.io/ent/schema/field"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// filling stores the same number of rows in every table of a tenant. It derives them from the schema alone, so that a
// new table is filled automatically. Row i of each table has the id base+i and refers to row i of all others. Every
// second row refers to row 1 instead in the first of its references, so that row 1 has many of everything.
type filling struct {
	server *apitest.Server
	tenant apitest.Tenant
	rows   int64
	base   int64
	admin  string // a JSON Web Token of an administrator
}

// unfilled are the tables that only the server fills.
var unfilled = []string{"deployments", "settings", "signing_keys", "audit_heads"}

// words are the values of columns with few possible values, by table and column or by column. Nothing is due, so the
// server's background work ignores these rows.
var words = map[string]string{
	"automations.trigger": "TRIGGER_SOURCE_SCAN", "automation_runs.cause": "scan", "policy_runs.cause": "scan",
	"actor_kind": "user", "ecosystem": "npm", "product": "sast", "scm_type": "SCM_TYPE_GITHUB", "severity": "high", "transitivity": "direct",
	"agentic_issues.detection_state": "detected", "agentic_issues.triage_state": "open", "agentic_issues.triage_reason": "",
	"ai_analyses.status": "done", "ai_analyses.verdict": "true_positive", "ai_feedbacks.rating": "RATING_GOOD", "ai_fixes.status": "opened",
	"exception_requests.state": "requested", "exception_requests.source": "api", "exception_requests.reason": "no_time",
	"triage_change_findings.triage_state": "untriaged", "triage_changes.kind": "triage", "triage_changes.state": "fixing", "triage_changes.reason": "",
	"detection_policies.product": "none", "ruleboard_rules.mode": "block", "ai_memories.stage": "live", "audit_entries.code": "OK", "deliveries.kind": "findings", "deliveries.state": "delivered",
	"finding_events.kind": "triaged", "finding_events.from_status": "open", "finding_events.to_status": "ignored",
	"findings.ref": "refs/heads/main", "freshnesses.ref": "refs/heads/main", "findings.state": "unresolved", "findings.status": "open",
	"findings.tool": "test", "findings.triage_state": "untriaged", "identity_changes.kind": "split", "memberships.role": "ORG_ROLE_MEMBER",
	"notification_rules.channel": "CHANNEL_WEBHOOK", "notifications.severity": "SEVERITY_INFO",
	"onboarding_tasks.state": "TASK_STATE_DONE", "package_manager_configs.registry_type": "REGISTRY_TYPE_UNSPECIFIED",
	"projects.default_branch": "refs/heads/main", "projects.visibility": "private", "rule_aliases.tool": "test", "rule_documents.mode": "monitor",
	"rule_documents.origin":     "import",
	"rule_versions.document":    `{"id":"r","languages":["python"],"message":"m","severity":"ERROR","pattern":"f()"}`,
	"rule_documents.visibility": "org_private", "rules.category": "security", "rules.confidence": "high",
	"rules.tool": "test", "saved_views.scope": "deployment", "scan_coverages.ref": "refs/heads/main", "scans.ref": "refs/heads/main", "scans.results_state": "stored",
	"scans.status": "SCAN_STATUS_COMPLETED", "support_cases.status": "open", "survey_responses.data": "{}", "scm_apps.state": "complete", "scm_configs.type": "SCM_TYPE_GITHUB",
	"team_members.role": "TEAM_ROLE_MEMBER", "ticketing_instances.kind": "jira", "ticketing_instances.base_url": "https://tickets.acme.test",
	"ticketing_instances.close_at": "", "ticketing_instances.closed_state": "", "tokens.role": "ORG_ROLE_MEMBER", "workflow_attempts.status": "succeeded",
	"workflow_runs.status": "completed", "workflow_runs.trigger_source": "manual", "workflow_runs.event_source": "api",
	"workflow_tasks.status": "succeeded",
}

// filledNullable are the nullable columns that are filled too.
var filledNullable = []string{
	"agentic_issues.project_id", "ai_memories.project_id", "ai_memories.rule_id", "deliveries.finished_at", "finding_events.scan_id",
	"findings.file_path", "install_checks.advisory", "projects.latest_scan_at", "scans.completed_at", "scans.pull_request", "scans.unique_id", "workflow_runs.finished_at", "workflow_runs.project_id",
	"workflow_tasks.finished_at", "workflow_tasks.started_at", "scm_configs.scm_app_id", "workflow_attempts.finished_at",
}

// newFilling fills a new tenant.
func newFilling(t *testing.T, s *apitest.Server, slug string, number, rows int64) *filling {
	t.Helper()
	f := &filling{server: s, tenant: s.AddTenant(t, slug), rows: rows, base: number * 1_000_000}
	f.admin = s.AddUser(t, f.tenant, "chief@"+slug+".test", "ORG_ROLE_ADMIN")
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		for _, table := range migrate.Tables {
			if slices.Contains(unfilled, table.Name) {
				continue
			}
			if err := s.Store.Exec(ctx, tx, f.insert(table)); err != nil {
				return fmt.Errorf("%s: %w", table.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f.beginTrail(t)
	return f
}

// beginTrail records the entries as older than the trail. Otherwise they would count as foreign and be hidden.
func (f *filling) beginTrail(t *testing.T) {
	t.Helper()
	_, writer := f.server.Store.DB()
	_, err := writer.ExecContext(t.Context(), fmt.Sprintf("DELETE FROM audit_heads WHERE deployment_id = %d", f.tenant.DeploymentID))
	if err == nil {
		_, err = services.BeginAudit(t.Context(), f.server.Config)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// insert is the statement that fills a table.
func (f *filling) insert(table *migrate.Table) string {
	columns, values := make([]string, len(table.Columns)), make([]string, len(table.Columns))
	rows := f.rows
	switch table.Name {
	case "automations", "workflows", "ruleboards":
		rows = min(rows, 100) // the limit of a deployment is 200
	case "ticketing_instances", "cloud_posture_credentials":
		rows = min(rows, 10) // the limit is 20
	case "chat_installations", "managed_scan_settings":
		rows = 1 // the only one
	case "detection_policies":
		rows = 1 // of a product that does not exist: without rulesets no rule runs
	}
	if table.Name == "path_ignores" {
		rows = min(rows, 4) // one for each product
	}
	parent := false // whether some reference refers to row 1
	for i, c := range table.Columns {
		columns[i] = `"` + c.Name + `"`
		values[i] = f.value(table, c, &parent)
	}
	return fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO %s (%s) SELECT %s FROM n",
		rows, table.Name, strings.Join(columns, ", "), strings.Join(values, ", "))
}

// value is the expression of a column of row i.
func (f *filling) value(of *migrate.Table, c *migrate.Column, parent *bool) string {
	table := of.Name
	word, known := words[table+"."+c.Name]
	if !known {
		word, known = words[c.Name]
	}
	number := fmt.Sprintf("%d + i", f.base)
	switch {
	case table == "teams" && c.Name == "parent_id":
		return fmt.Sprintf("NULLIF(%d, %s)", f.base+1, number)
	case table == "path_ignores" && c.Name == "product":
		return "CASE i WHEN 1 THEN 'sast' WHEN 2 THEN 'sca' WHEN 3 THEN 'secrets' ELSE 'ai_sast' END"
	case table == "findings" && c.Name == "issue_type":
		return "CASE i % 2 WHEN 0 THEN 'secrets' ELSE 'sast' END"
	case c.Nullable && !slices.Contains(filledNullable, table+"."+c.Name):
		return "NULL"
	case c.Name == "deployment_id":
		return fmt.Sprint(f.tenant.DeploymentID)
	case c.Name == "id":
		return number
	case table == "audit_entries" && c.Name == "sequence":
		return "0" // as in entries from before the hash chain
	case known && c.Type == field.TypeString:
		return "'" + word + "'"
	case c.Type == field.TypeString:
		return fmt.Sprintf("'%s' || CAST(%s AS TEXT)", strings.ReplaceAll(c.Name, "_", "-"), number)
	case c.Type == field.TypeBool:
		return "FALSE"
	case c.Type == field.TypeJSON:
		return "'null'" // valid for any type
	case c.Type == field.TypeBytes:
		return f.bytes(c.Name, word, number)
	case c.Name == "quarantined_version":
		return "0"
	case c.Name == "version" || c.Name == "proven_version" || c.Name == "position" || c.Name == "number":
		return "i"
	case c.Type == field.TypeFloat64 || c.Type == field.TypeInt32:
		return "1"
	case c.Type == field.TypeInt64 && strings.HasSuffix(c.Name, "_id"):
		if *parent || isKey(of, c) {
			return number
		}
		*parent = true
		return fmt.Sprintf("%d + CASE WHEN i %% 2 = 0 THEN 1 ELSE i END", f.base)
	case c.Name == "expires_at" || c.Name == "not_before":
		return fmt.Sprint(store.Now() + 1e12)
	}
	return fmt.Sprintf("%d - i", store.Now()) // times, and numbers without dependencies
}

// isKey reports that a column has no duplicate values in a deployment.
func isKey(table *migrate.Table, c *migrate.Column) bool {
	return slices.ContainsFunc(table.Indexes, func(index migrate.Index) bool {
		return index.Unique && len(index.Columns) <= 2 && slices.Contains(index.Columns, c.Name)
	})
}

// bytes is a word or an empty message; hashes are unique.
func (f *filling) bytes(name, word, number string) string {
	text := "'" + word + "'"
	if strings.Contains(name, "hash") || name == "digest" {
		text = fmt.Sprintf("'%s' || CAST(%s AS TEXT)", f.tenant.Slug, number)
	}
	if f.server.Store.Postgres() {
		return "convert_to(" + text + ", 'UTF8')"
	}
	return "CAST(" + text + " AS BLOB)"
}

// ids are the ids of all rows of any table, as a JSON list.
func (f *filling) ids() string {
	list := make([]string, f.rows)
	for i := range list {
		list[i] = fmt.Sprint(f.base + int64(i) + 1)
	}
	return "[" + strings.Join(list, ",") + "]"
}
