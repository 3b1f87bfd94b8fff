package issues

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// rowsPerInsert keeps a statement below the databases' parameter limits.
const rowsPerInsert = 500

// Activity returns the difference between two states of an issue in the fields that people triage by; nil if there is
// none. before is nil for a new issue. Ids and the time are not set: the stored row has them.
func Activity(before, after *ent.AgenticIssue) *workflowsv1.IssueActivity {
	out := &workflowsv1.IssueActivity{NewValues: &workflowsv1.Issue{}, ChangedFields: &fieldmaskpb.FieldMask{}}
	old := &workflowsv1.Issue{}
	if before == nil {
		before = &ent.AgenticIssue{}
	} else {
		out.OldValues = old
	}
	note := func(field string, changed bool) bool {
		if changed {
			out.ChangedFields.Paths = append(out.ChangedFields.Paths, field)
		}
		return changed
	}
	if note("detection_state", before.DetectionState != after.DetectionState) {
		old.DetectionState, out.NewValues.DetectionState = DetectionState(before.DetectionState), DetectionState(after.DetectionState)
	}
	if note("severity", before.Severity != after.Severity) {
		old.Severity, out.NewValues.Severity = workflowsv1.Severity(before.Severity), workflowsv1.Severity(after.Severity)
	}
	if note("triage_state", before.TriageState != after.TriageState) {
		old.TriageState, out.NewValues.TriageState = TriageState(before.TriageState), TriageState(after.TriageState)
	}
	if note("triage_reason", before.TriageReason != after.TriageReason) {
		old.TriageReason, out.NewValues.TriageReason = TriageReason(before.TriageReason), TriageReason(after.TriageReason)
	}
	if note("triaged_at", value(before.TriagedAt) != value(after.TriagedAt)) {
		old.TriagedAt, out.NewValues.TriagedAt = store.Timestamp(before.TriagedAt), store.Timestamp(after.TriagedAt)
	}
	if len(out.ChangedFields.Paths) == 0 {
		return nil
	}
	return out
}

func value(micros *int64) int64 {
	if micros == nil {
		return 0
	}
	return *micros
}

// Record stores one activity for each of the issues.
func Record(ctx context.Context, tx *ent.Tx, deploymentID int64, activity *workflowsv1.IssueActivity, at int64, issueIDs ...int64) error {
	stored, err := proto.Marshal(activity)
	if err != nil {
		return fmt.Errorf("encode an activity: %w", err)
	}
	for part := range slices.Chunk(issueIDs, rowsPerInsert) {
		rows := make([]*ent.AgenticIssueEventCreate, len(part))
		for i, id := range part {
			rows[i] = tx.AgenticIssueEvent.Create().SetDeploymentID(deploymentID).SetIssueID(id).SetActivity(stored).SetAt(at)
		}
		if err := tx.AgenticIssueEvent.CreateBulk(rows...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ConvertActivity converts a row to the API's form.
func ConvertActivity(row *ent.AgenticIssueEvent) (*workflowsv1.IssueActivity, error) {
	out := &workflowsv1.IssueActivity{}
	if err := proto.Unmarshal(row.Activity, out); err != nil {
		return nil, fmt.Errorf("decode activity %d: %w", row.ID, err)
	}
	out.Id, out.DeploymentId, out.IssueId, out.CreatedAt = row.ID, row.DeploymentID, row.IssueID, timestamppb.New(store.Time(row.At))
	for _, values := range []*workflowsv1.Issue{out.GetOldValues(), out.GetNewValues()} {
		if values != nil {
			values.Id, values.DeploymentId = row.IssueID, row.DeploymentID
		}
	}
	return out, nil
}

// byRun marks an activity as made by a run.
func byRun(activity *workflowsv1.IssueActivity, runID int64, reason, workflow string) *workflowsv1.IssueActivity {
	activity.ActorType = workflowsv1.ActorType_ACTOR_TYPE_SEMGREP
	activity.ActorId = fmt.Sprint(runID)
	activity.Reason = fmt.Sprintf("%s by run %d of %s", reason, runID, workflow)
	return activity
}
