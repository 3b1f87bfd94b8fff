package steps

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflowfinding"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/step"
)

// verdictParameters are the parameters of findings.verdict.
type verdictParameters struct {
	FindingID id `json:"findingId"`
	// Verdict is true_positive or false_positive.
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
	// ContentHash is the value from findings.query. If the finding has changed since, its triage stays unchanged.
	ContentHash id `json:"contentHash"`
}

func (p verdictParameters) problem(open map[string]bool) string {
	switch {
	case p.FindingID <= 0 && !open["findingId"]:
		return "findingId is missing: the id of a finding"
	case p.Verdict != verdict.TruePositive && p.Verdict != verdict.FalsePositive && !open["verdict"]:
		return fmt.Sprintf("verdict must be %s or %s, got %.40q", verdict.TruePositive, verdict.FalsePositive, p.Verdict)
	}
	return ""
}

// checkStatus stores a verdict on a finding with package verdict. It never overrides a person's decision.
func storeVerdict(st *store.Store) step.Kind {
	return step.Kind{
		Name: "findings.verdict", Doc: "Stores a verdict about a finding; applied says whether it changed the finding's triage.",
		Check: checked[verdictParameters](),
		Run: func(ctx context.Context, call step.Call) (step.Result, error) {
			p, err := decodeParameters[verdictParameters](call)
			if err != nil {
				return step.Result{}, err
			}
			applied := false
			ctx = tenant.NewContext(ctx, call.DeploymentID)
			err = st.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
				if call.ProjectID != nil {
					own, err := tx.Finding.Query().Where(finding.DeploymentID(call.DeploymentID), finding.ID(int64(p.FindingID)), finding.ProjectID(*call.ProjectID)).Exist(ctx)
					if err != nil {
						return err
					}
					if !own {
						return noFinding(p.FindingID)
					}
				}
				applied, err = verdict.Apply(ctx, st, tx, verdict.Verdict{
					FindingID: int64(p.FindingID), Value: p.Verdict, Reason: p.Reason, ActorKind: verdict.ActorWorkflow, ActorID: call.RunID,
					ContentHash: int64(p.ContentHash),
				})
				if err != nil {
					return err
				}
				return report(ctx, tx, call, p)
			})
			if ent.IsNotFound(err) {
				return step.Result{}, noFinding(p.FindingID)
			}
			if err != nil {
				return step.Result{}, storeError("the verdict could not be stored", err)
			}
			return output(map[string]any{"findingId": int64(p.FindingID), "verdict": p.Verdict, "applied": applied})
		},
	}
}

// report adds the verdict to the run's results. If a run judges a finding again, the last verdict counts.
func report(ctx context.Context, tx *ent.Tx, call step.Call, p verdictParameters) error {
	row, err := tx.Finding.Query().Where(finding.DeploymentID(call.DeploymentID), finding.ID(int64(p.FindingID))).
		Select(finding.FieldSeverity, finding.FieldContent).Only(ctx)
	if err != nil {
		return err
	}
	content, err := blob.Decode(row.Content)
	if err != nil {
		return fmt.Errorf("content of finding %d: %w", row.ID, err)
	}
	at, key := content.GetLocation(), fmt.Sprintf("finding %d", row.ID)
	_, err = tx.WorkflowFinding.Delete().Where(workflowfinding.DeploymentID(call.DeploymentID), workflowfinding.RunID(call.RunID), workflowfinding.Key(key)).Exec(ctx)
	if err != nil {
		return err
	}
	return tx.WorkflowFinding.Create().SetDeploymentID(call.DeploymentID).SetRunID(call.RunID).
		SetKey(key).SetFile(at.GetFilePath()).SetStartLine(int64(at.GetLine())).SetEndLine(int64(at.GetEndLine())).
		SetSeverity(row.Severity).SetVulnerable(p.Verdict == verdict.TruePositive).SetReasoning(verdict.Text(p.Reason, verdict.MaxReason)).
		Exec(ctx)
}

func noFinding(number id) error {
	return step.Permanent("the run's project or deployment has no finding %d", int64(number))
}
