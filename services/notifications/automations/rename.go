package automations

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/automation"
	v1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// AddRuleName adds the new name of a rule to the conditions that have its former name. That one stays, because rules of
// other tools may have it. Without this, an automation about the rule would silently stop.
func AddRuleName(ctx context.Context, st *store.Store, tx *ent.Tx, former, name string) error {
	query := tx.Automation.Query().Order(ent.Asc(automation.FieldID))
	if st.Postgres() {
		query.ForUpdate()
	}
	rows, err := query.All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := addRuleName(ctx, row, former, name); err != nil {
			return fmt.Errorf("automation %d: %w", row.ID, err)
		}
	}
	return nil
}

func addRuleName(ctx context.Context, row *ent.Automation, former, name string) error {
	before, err := convert(row)
	if err != nil {
		return err
	}
	content, changed := &v1.Automation{}, false
	if err := proto.Unmarshal(row.Content, content); err != nil {
		return err
	}
	for _, condition := range content.GetFilters().GetConditions() {
		at := slices.Index(condition.GetValues(), former)
		if condition.GetType() == v1.ConditionType_CONDITION_TYPE_RULE_ID && at >= 0 && !slices.Contains(condition.GetValues(), name) {
			condition.Values, changed = slices.Insert(condition.GetValues(), at+1, name), true
		}
	}
	if !changed {
		return nil
	}
	raw, err := proto.Marshal(content)
	if err != nil {
		return err
	}
	if row, err = row.Update().SetContent(raw).Save(ctx); err != nil {
		return err
	}
	after, err := convert(row)
	audit.Change(ctx, auditKind, row.ID, before, after)
	return err
}
