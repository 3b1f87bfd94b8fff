package workflows_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"entgo.io/ent/dialect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows"
)

// Issues of ten deployments, 4,000 each, with three labels each. Rare values are rare.
const issuesForPlansSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 39999)
INSERT INTO agentic_issues (id, deployment_id, project_id, identity, class, title, description, reasoning, file_path, severity, detection_state,
	triage_state, triage_reason, created_at, last_detected_at, triaged_at)
SELECT 1000 + i, CAST(? AS BIGINT) + i % 10, i % 600, 'identity-' || i, 'x', 'Issue ' || i, '', '', 'app/f' || (i % 997) || '.py',
	CASE WHEN i % 40 < 10 THEN 5 ELSE 2 END, CASE WHEN i % 70 < 10 THEN 'not_detected' ELSE 'detected' END,
	CASE WHEN i % 90 < 10 THEN 'ignored' ELSE 'open' END, CASE WHEN i % 90 < 10 THEN 'no_time' ELSE '' END,
	1000000 + i, 2000000 + i, CASE WHEN i % 90 < 10 THEN 3000000 + i END FROM n`

const labelsForPlansSQL = `INSERT INTO agentic_issue_labels (deployment_id, issue_id, kind, value)
SELECT deployment_id, id, 'workflow', 'workflow-' || (id % 400) FROM agentic_issues
UNION ALL SELECT deployment_id, id, 'action', 'action-' || (id % 900) FROM agentic_issues
UNION ALL SELECT deployment_id, id, 'identity', 'svc-' || (id % 900) FROM agentic_issues
UNION ALL SELECT deployment_id, id, 'ref', 'refs/heads/r' || (id % 400) FROM agentic_issues
UNION ALL SELECT deployment_id, id, 'trigger_source', CASE WHEN id % 400 < 10 THEN 'automation' ELSE 'manual' END FROM agentic_issues
UNION ALL SELECT deployment_id, id, 'file_path', file_path FROM agentic_issues`

const resultsForPlansSQL = `INSERT INTO workflow_findings (deployment_id, run_id, key, issue_id, file, start_line, end_line, severity, vulnerable, reasoning)
SELECT deployment_id, id / 100, identity, id, '', 0, 0, 'low', TRUE, '' FROM agentic_issues`

func seedForIssuePlans(t *testing.T, s *apitest.Server) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		if err := s.Store.Exec(ctx, tx, issuesForPlansSQL, s.DeploymentID); err != nil {
			return err
		}
		if err := s.Store.Exec(ctx, tx, labelsForPlansSQL); err != nil {
			return err
		}
		return s.Store.Exec(ctx, tx, resultsForPlansSQL)
	})
	if err != nil {
		t.Fatal(err)
	}
	s.RefreshStatistics(t)
}

// wholeIssueTable matches plans that read a table without an index. SQLite also says SCAN for reading a whole index.
var wholeIssueTable = map[string]*regexp.Regexp{
	dialect.SQLite:   regexp.MustCompile(`SCAN (agentic_issues|labels|results|agentic_issue_labels|workflow_findings)\b`),
	dialect.Postgres: regexp.MustCompile(`Seq Scan on (agentic_issues|agentic_issue_labels|workflow_findings)\b`),
}

// Each filter and each order uses an index: no plan reads a whole table.
func TestIssuePlansUseIndexes(t *testing.T) {
	t.Parallel()
	at := func(micros int64) *timestamppb.Timestamp { return timestamppb.New(store.Time(micros)) }
	filters := []struct {
		name, index string // the expected index, if only one is good
		filter      *workflowsv1.IssueFilters
	}{
		{"nothing", "agentic_issues_list_last_detected", nil},
		{"ids", "", &workflowsv1.IssueFilters{Ids: []int64{1000, 1010}}},
		{"titleQuery", "", &workflowsv1.IssueFilters{TitleQuery: "issue 77"}},
		{"descriptionQuery", "", &workflowsv1.IssueFilters{DescriptionQuery: "x"}},
		{"reasoningQuery", "", &workflowsv1.IssueFilters{ReasoningQuery: "x"}},
		{"detectionStates", "", &workflowsv1.IssueFilters{DetectionStates: []workflowsv1.DetectionState{workflowsv1.DetectionState_DETECTION_STATE_VERIFIED_ABSENT}}},
		{"severities", "", &workflowsv1.IssueFilters{Severities: []workflowsv1.Severity{workflowsv1.Severity_SEVERITY_CRITICAL}}},
		{"triageStates", "", &workflowsv1.IssueFilters{TriageStates: []workflowsv1.TriageState{workflowsv1.TriageState_TRIAGE_STATE_FIXED}}},
		{"triageReasons", "", &workflowsv1.IssueFilters{TriageReasons: []workflowsv1.TriageReason{workflowsv1.TriageReason_TRIAGE_REASON_NO_TIME}}},
		{"actions", "agentic_issue_labels_filter", &workflowsv1.IssueFilters{Actions: []string{"action-10", "action-20"}}},
		{"workflowIds", "agentic_issue_labels_filter", &workflowsv1.IssueFilters{WorkflowIds: []string{"workflow-200"}}},
		{"identities", "agentic_issue_labels_filter", &workflowsv1.IssueFilters{Identities: []string{"svc-10"}}},
		{"triggerSources", "agentic_issue_labels_filter", &workflowsv1.IssueFilters{TriggerSources: []string{"automation"}}},
		{"projectIds", "agentic_issues_of_project", &workflowsv1.IssueFilters{ProjectIds: []int64{10, 20}}},
		{"refIds", "agentic_issue_labels_filter", &workflowsv1.IssueFilters{RefIds: []string{"r10"}}},
		{"filePathQuery", "agentic_issue_labels_filter", &workflowsv1.IssueFilters{FilePathQuery: "f99"}},
		{"createdAt", "agentic_issues_list_created", &workflowsv1.IssueFilters{CreatedAt: &workflowsv1.TimeRange{StartAt: at(1_039_900)}}},
		{"lastDetectedAt", "agentic_issues_list_last_detected", &workflowsv1.IssueFilters{LastDetectedAt: &workflowsv1.TimeRange{EndAt: at(2_000_100)}}},
		{"triagedAt", "agentic_issues_list_triaged", &workflowsv1.IssueFilters{TriagedAt: &workflowsv1.TimeRange{StartAt: at(3_039_900)}}},
		{"workflowJobIds", "workflow_findings_of_run", &workflowsv1.IssueFilters{WorkflowJobIds: []int64{12, 13}}},
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seedForIssuePlans(t, s)
		st, seen := runFixture{s}.logged(t)
		ctx := tenant.NewContext(t.Context(), s.DeploymentID)
		group := workflows.NewAgenticIssues(st)
		for _, f := range filters {
			if _, err := group.SearchIssues(ctx, &workflowsv1.SearchIssuesRequest{Filters: f.filter}); err != nil {
				t.Fatalf("%s: %v", f.name, err)
			}
			requireIssueIndexes(t, st, f.name, f.index, seen.Take())
		}
		for field, index := range map[workflowsv1.IssueSortField]string{
			workflowsv1.IssueSortField_ISSUE_SORT_FIELD_SEVERITY:         "agentic_issues_list_severity",
			workflowsv1.IssueSortField_ISSUE_SORT_FIELD_CREATED_AT:       "agentic_issues_list_created",
			workflowsv1.IssueSortField_ISSUE_SORT_FIELD_LAST_DETECTED_AT: "agentic_issues_list_last_detected",
			workflowsv1.IssueSortField_ISSUE_SORT_FIELD_FILE_PATH:        "agentic_issues_list_file_path",
		} {
			first, err := group.SearchIssues(ctx, &workflowsv1.SearchIssuesRequest{SortField: field})
			if err != nil {
				t.Fatal(err)
			}
			seen.Take()
			if _, err := group.SearchIssues(ctx, &workflowsv1.SearchIssuesRequest{SortField: field, Cursor: first.GetCursor()}); err != nil {
				t.Fatal(err)
			}
			requireIssueIndexes(t, st, "a page by "+field.String(), index, seen.Take())
		}
	})
}

func requireIssueIndexes(t *testing.T, st *store.Store, name, index string, queries []apitest.Statement) {
	t.Helper()
	reader, _ := st.DB()
	plans, asked := "", 0
	for _, query := range queries {
		if !strings.Contains(query.Text, "agentic_issue") {
			continue
		}
		asked++
		plan := apitest.Explain(t, st, reader, query)
		if plans += plan; wholeIssueTable[st.Dialect()].MatchString(plan) {
			t.Errorf("%s: a whole table is read:\n%s\n%s", name, query.Text, plan)
		}
	}
	if asked < 2 {
		t.Errorf("%s: %d queries, want the count and the page", name, asked)
	}
	if index != "" && !regexp.MustCompile(`\b`+index+`\b`).MatchString(plans) {
		t.Errorf("%s: %s is not used:\n%s", name, index, plans)
	}
}
