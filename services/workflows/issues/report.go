package issues

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflowfinding"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
)

// maxReported is the maximum number of results in a report.
const maxReported = 500

// Report summarizes a run's results so far. It contains all severities, including severities without results. Counts
// include results that are not vulnerable.
func Report(ctx context.Context, tx *ent.Tx, run *ent.WorkflowRun) (*workflowsv1.WorkflowReportSummary, error) {
	ctx = tenant.NewContext(ctx, run.DeploymentID)
	report := &workflowsv1.WorkflowReportSummary{Repository: run.RepoName, Commit: run.Commit, BySeverity: map[string]int64{}}
	for _, severity := range Severities {
		report.BySeverity[severity] = 0
	}
	var counts []struct {
		Severity   string
		Vulnerable bool
		Count      int64
	}
	ofRun := workflowfinding.And(workflowfinding.DeploymentID(run.DeploymentID), workflowfinding.RunID(run.ID))
	err := tx.WorkflowFinding.Query().Where(ofRun).GroupBy(workflowfinding.FieldSeverity, workflowfinding.FieldVulnerable).
		Aggregate(ent.Count()).Scan(ctx, &counts)
	if err != nil {
		return nil, fmt.Errorf("count what run %d found: %w", run.ID, err)
	}
	for _, c := range counts {
		report.TotalFindings += c.Count
		if c.Vulnerable {
			report.VulnerableFindings += c.Count
		}
		if _, known := report.BySeverity[c.Severity]; known {
			report.BySeverity[c.Severity] += c.Count
		}
	}
	rows, err := tx.WorkflowFinding.Query().Where(ofRun).Order(worstFirst).Limit(maxReported).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what run %d found: %w", run.ID, err)
	}
	for _, row := range rows {
		report.Findings = append(report.Findings, &workflowsv1.WorkflowFinding{
			File: row.File, StartLine: row.StartLine, EndLine: row.EndLine, Severity: row.Severity, Reasoning: row.Reasoning,
		})
	}
	return report, nil
}

// worstFirst sorts by vulnerability and severity, then by file and line.
func worstFirst(s *entsql.Selector) {
	s.OrderBy(entsql.Desc(s.C(workflowfinding.FieldVulnerable)))
	s.OrderExprFunc(func(b *entsql.Builder) {
		b.WriteString("CASE ").Ident(s.C(workflowfinding.FieldSeverity))
		for i, severity := range Severities {
			b.WriteString(fmt.Sprintf(" WHEN '%s' THEN %d", severity, len(Severities)-i))
		}
		b.WriteString(" ELSE 9 END")
	})
	s.OrderBy(s.C(workflowfinding.FieldFile), s.C(workflowfinding.FieldStartLine), s.C(workflowfinding.FieldID))
}
