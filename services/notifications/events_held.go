package notifications

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/heldclose"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/payload"
)

// heldDeliveries builds a message about each group of closes that the scan held, for the rules that include them.
func heldDeliveries(ctx context.Context, tx *ent.Tx, rules []*ent.NotificationRule, about *scanContext) ([]*ent.DeliveryCreate, error) {
	wanted := slices.DeleteFunc(slices.Clone(rules), func(rule *ent.NotificationRule) bool { return !rule.SendHeldCloses })
	if len(wanted) == 0 {
		return nil, nil
	}
	rows, err := tx.HeldClose.Query().Where(heldclose.DeploymentID(about.scan.DeploymentID), heldclose.ScanID(about.scan.ID)).
		Order(ent.Asc(heldclose.FieldID)).
		Select(heldclose.FieldID, heldclose.FieldTool, heldclose.FieldToolVersion, heldclose.FieldAnalysisCategory, heldclose.FieldFindings,
			heldclose.FieldOpen, heldclose.FieldRejectedBefore).All(ctx)
	if err != nil {
		return nil, err
	}
	var made []*ent.DeliveryCreate
	for _, row := range rows {
		body := payload.Held(payload.HeldCloses{
			ID: row.ID, DeploymentID: about.scan.DeploymentID, ProjectID: about.project.ID, ScanID: about.scan.ID,
			Project: about.project.Name, Ref: about.scan.Ref, Tool: row.Tool, Version: row.ToolVersion, Category: row.AnalysisCategory,
			Count: int64(row.Findings), Open: int64(row.Open), NeedsPerson: row.RejectedBefore, SentAt: store.Time(store.Now()), TenantName: about.tenant,
		})
		for _, rule := range wanted {
			made = append(made, newDelivery(tx, rule, about.scan, kindHeld, body))
		}
	}
	return made, nil
}
