package workflows

import (
	"context"

	"github.com/palisade/palisade/ent"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/notifications/outbox"
)

// prepareAutomatic reads a workflow that an automation starts with the defaults of its inputs.
func (s *Runs) prepareAutomatic(ctx context.Context, workflow string) (outbox.Start, error) {
	version, err := s.current(ctx, workflow)
	if err != nil {
		return nil, err
	}
	entry, err := storedEntry(version)
	if err != nil {
		return nil, err
	}
	request := &workflowsv1.TriggerWorkflowJobRequest{WorkflowType: workflow}
	inputs, err := checkedInputs(entry, request)
	if err != nil {
		return nil, err
	}
	budget, err := s.engine.Budget(ctx, version.ID)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *ent.Tx, projectID, automationID int64) (int64, error) {
		if err := s.engine.Ready(ctx, tx, version.ID); err != nil {
			return 0, err
		}
		create := tx.WorkflowRun.Create().SetWorkflow(version.Name).SetVersionID(version.ID).SetInputs(inputs).SetBudgetCredits(budget).
			SetEventSource("automation").SetTriggerSource("automation").SetActorKind(outbox.ActorAutomation).SetActorID(automationID)
		if err := setProject(ctx, tx, create, &workflowsv1.TriggerWorkflowJobRequest{RepoId: projectID}, entry.GetTargetType()); err != nil {
			return 0, err
		}
		row, err := s.write(ctx, tx, create)
		if err != nil {
			return 0, err
		}
		return row.ID, nil
	}, nil
}
