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

// completed is the status of a run whose end step succeeded.
const completed = "completed"

// RunEnded says of the issues that a run looked for and did not find that they are not detected any more. run is its
// row with the final status. Only a run that completed without a failed task says so, and only if it stored results
// with [Upsert]; of the issues of its project, of those that a run of the same workflow detected before this one began,
// on the same branch if it names one, in the files that it covered. Call it once, whatever the status is.
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
		ids, err := tx.AgenticIssue.Query().Where(agenticissue.DetectionState(state), lookedFor(run, covered.Path == everything), forUpdate).
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

// lookedFor chooses the issues that the run would have found if they were there still, and did not.
func lookedFor(run *ent.WorkflowRun, whole bool) predicate.AgenticIssue {
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

// each makes the database look once for each issue, by the index that fits. PostgreSQL would make a join of it, and
// where it has no statistics one that reads all rows of the run or the deployment for each issue; an OFFSET keeps it
// from that.
func each(rows *entsql.Selector) *entsql.Selector {
	if rows.Dialect() == dialect.Postgres {
		rows.Offset(0)
	}
	return rows
}

// of selects the rows of a table that belong to the run and whose column has a value of the issue.
func of(s *entsql.Selector, table, column, value string, run *ent.WorkflowRun) *entsql.Selector {
	t := entsql.Dialect(s.Dialect()).Table(table).As("of_run")
	return each(entsql.Dialect(s.Dialect()).Select(t.C(column)).From(t).Where(entsql.And(
		entsql.EQ(t.C(workflowfinding.FieldDeploymentID), run.DeploymentID), entsql.EQ(t.C(workflowfinding.FieldRunID), run.ID),
		entsql.ColumnsEQ(t.C(column), value),
	)))
}

// hasLabel is the condition that the issue has a label; an empty value stands for any.
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
	return entsql.Exists(each(entsql.Dialect(s.Dialect()).Select(t.C(agenticissuelabel.FieldIssueID)).From(t).Where(where)))
}
