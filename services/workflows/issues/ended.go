package issues

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/agenticissue"
	"github.com/palisade/palisade/ent/agenticissuecoverage"
	"github.com/palisade/palisade/ent/agenticissuelabel"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflowfinding"
	"github.com/palisade/palisade/ent/workflowtask"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
)

// completed is the status of a run that reached its end step successfully.
const completed = "completed"

// RunEnded marks issues that a run looked for and did not find as not detected. run is its row with the final status.
// The run must have completed without a failed task and have stored results with [Upsert]. The affected issues are in
// its project, were detected by an earlier run of the same workflow, on the same branch if the run names one, in files
// that the run covered. Call it once, for any status.
func RunEnded(ctx context.Context, tx *ent.Tx, run *ent.WorkflowRun) error {
	ctx = tenant.NewContext(ctx, run.DeploymentID)
	if run.Status == completed {
		if err := missing(ctx, tx, run); err != nil {
			return fmt.Errorf("tell what run %d did not detect: %w", run.ID, err)
		}
	}
	_, err := tx.AgenticIssueCoverage.Delete().Where(coveredBy(run)...).Exec(ctx)
	return err
}

func coveredBy(run *ent.WorkflowRun) []predicate.AgenticIssueCoverage {
	return []predicate.AgenticIssueCoverage{agenticissuecoverage.DeploymentID(run.DeploymentID), agenticissuecoverage.RunID(run.ID)}
}

func missing(ctx context.Context, tx *ent.Tx, run *ent.WorkflowRun) error {
	covered, err := tx.AgenticIssueCoverage.Query().Where(coveredBy(run)...).Order(ent.Asc(agenticissuecoverage.FieldPath)).First(ctx)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	partial, err := tx.WorkflowTask.Query().Where(workflowtask.DeploymentID(run.DeploymentID), workflowtask.RunID(run.ID),
		workflowtask.StatusIn("failed", "error")).Exist(ctx)
	if err != nil || partial {
		return err
	}
	if err := lock(ctx, tx, run.DeploymentID, run.ProjectID); err != nil {
		return err
	}
	for _, state := range []string{Detected, statePresent} {
		ids, err := tx.AgenticIssue.Query().Where(agenticissue.DetectionState(state), missedIssues(run, covered.Path == wholeProject), forUpdate).
			Order(ent.Asc(agenticissue.FieldID)).IDs(ctx)
		if err != nil {
			return err
		}
		if err := notDetected(ctx, tx, run, state, ids); err != nil {
			return err
		}
	}
	return nil
}

func notDetected(ctx context.Context, tx *ent.Tx, run *ent.WorkflowRun, before string, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	activity := Activity(&ent.AgenticIssue{DetectionState: before}, &ent.AgenticIssue{DetectionState: NotDetected})
	if err := Record(ctx, tx, run.DeploymentID, byRun(activity, run.ID, "not detected", run.Workflow), store.Now(), ids...); err != nil {
		return err
	}
	return tx.AgenticIssue.Update().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(agenticissue.FieldID), ids)) }).
		SetDetectionState(NotDetected).Exec(ctx)
}

// missedIssues selects the issues that the run would have found if they still existed.
func missedIssues(run *ent.WorkflowRun, whole bool) predicate.AgenticIssue {
	began := run.SubmittedAt
	if run.StartedAt != nil {
		began = *run.StartedAt
	}
	return func(s *entsql.Selector) {
		ofProject := entsql.IsNull(s.C(agenticissue.FieldProjectID))
		if run.ProjectID != nil {
			ofProject = entsql.EQ(s.C(agenticissue.FieldProjectID), *run.ProjectID)
		}
		s.Where(entsql.And(
			entsql.EQ(s.C(agenticissue.FieldDeploymentID), run.DeploymentID), ofProject,
			entsql.LT(s.C(agenticissue.FieldLastDetectedAt), began),
			hasLabel(s, run.DeploymentID, LabelWorkflow, run.Workflow),
			entsql.NotExists(of(s, workflowfinding.Table, workflowfinding.FieldIssueID, s.C(agenticissue.FieldID), run)),
		))
		if run.GitRef != "" && !isCommit(run.GitRef) {
			s.Where(entsql.Or(entsql.Not(hasLabel(s, run.DeploymentID, LabelRef, "")), hasLabel(s, run.DeploymentID, LabelRef, gitref.Full(run.GitRef))))
		}
		if !whole {
			s.Where(entsql.Exists(of(s, agenticissuecoverage.Table, agenticissuecoverage.FieldPath, s.C(agenticissue.FieldFilePath), run)))
		}
	}
}

// perIssue makes the database run one index lookup per issue. PostgreSQL would plan a join instead and, without
// statistics, read all rows of the run or the deployment for each issue. The OFFSET prevents that plan.
func perIssue(rows *entsql.Selector) *entsql.Selector {
	if rows.Dialect() == dialect.Postgres {
		rows.Offset(0)
	}
	return rows
}

// of selects the rows of a table that belong to the run and have the issue's value in a column.
func of(s *entsql.Selector, table, column, value string, run *ent.WorkflowRun) *entsql.Selector {
	t := entsql.Dialect(s.Dialect()).Table(table).As("of_run")
	return perIssue(entsql.Dialect(s.Dialect()).Select(t.C(column)).From(t).Where(entsql.And(
		entsql.EQ(t.C(workflowfinding.FieldDeploymentID), run.DeploymentID), entsql.EQ(t.C(workflowfinding.FieldRunID), run.ID),
		entsql.ColumnsEQ(t.C(column), value),
	)))
}

// hasLabel is the condition that the issue has a label. An empty value matches any.
func hasLabel(s *entsql.Selector, deploymentID int64, kind, value string) *entsql.Predicate {
	t := entsql.Dialect(s.Dialect()).Table(agenticissuelabel.Table).As("labels")
	where := entsql.And(
		entsql.EQ(t.C(agenticissuelabel.FieldDeploymentID), deploymentID),
		entsql.ColumnsEQ(t.C(agenticissuelabel.FieldIssueID), s.C(agenticissue.FieldID)),
		entsql.EQ(t.C(agenticissuelabel.FieldKind), kind),
	)
	if value != "" {
		where = entsql.And(where, entsql.EQ(t.C(agenticissuelabel.FieldValue), value))
	}
	return entsql.Exists(perIssue(entsql.Dialect(s.Dialect()).Select(t.C(agenticissuelabel.FieldIssueID)).From(t).Where(where)))
}
