package policies

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/detectionexception"
	"github.com/palisade/palisade/ent/detectionpolicy"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// replace changes the stored policy to the wanted one.
func (d *detection) replace(ctx context.Context, tx *ent.Tx, wanted *detection, now int64) error {
	if err := d.replaceChosen(ctx, tx, wanted, now); err != nil {
		return err
	}
	if err := d.replaceModes(ctx, tx, wanted, now); err != nil {
		return err
	}
	return d.replaceExceptions(ctx, tx, wanted)
}

// replaceChosen stores which rules run. A policy that runs all rules is not stored.
func (d *detection) replaceChosen(ctx context.Context, tx *ent.Tx, wanted *detection, now int64) error {
	before := &policiesv1.DetectionPolicyDiffContent{Rulesets: d.bundle.GetRulesets(), Rules: d.storedRules}
	after := &policiesv1.DetectionPolicyDiffContent{Rulesets: wanted.bundle.GetRulesets(), Rules: wanted.bundle.GetRules()}
	if sameContent(before, after) {
		return nil
	}
	audit.Change(ctx, kindDetection, d.product, before, after)
	product := ruleProducts[d.product]
	if len(after.GetRules()) == 0 && slices.Equal(after.GetRulesets(), []string{ruleset.AllRules}) {
		_, err := tx.DetectionPolicy.Delete().Where(detectionpolicy.Product(product)).Exec(ctx)
		return err
	}
	return tx.DetectionPolicy.Create().SetProduct(product).SetRulesets(listOf(after.GetRulesets())).SetRules(listOf(after.GetRules())).SetUpdatedAt(now).
		OnConflictColumns(detectionpolicy.FieldDeploymentID, detectionpolicy.FieldProduct).
		Update(func(u *ent.DetectionPolicyUpsert) { u.UpdateRulesets().UpdateRules().UpdateUpdatedAt() }).Exec(ctx)
}

// listOf is never nil, because the columns are not null.
func listOf(names []string) []string { return append([]string{}, names...) }

// replaceModes turns rules off and on. A rule that is on again gets the mode of new rules of its origin.
func (d *detection) replaceModes(ctx context.Context, tx *ent.Tx, wanted *detection, now int64) error {
	off := map[string]bool{}
	for _, name := range wanted.bundle.GetDisabled() {
		off[name] = true
	}
	changed := map[string][]*ent.RuleDocument{} // by mode
	for name, row := range d.rules {
		if off[name] == (row.Mode == ruleset.ModeOff) {
			continue
		}
		mode := ruleset.ModeOff
		if !off[name] {
			mode = ruleset.FirstMode(row.Origin)
		}
		changed[mode] = append(changed[mode], row)
	}
	for _, mode := range []string{ruleset.ModeOff, ruleset.ModeComment, ruleset.ModeMonitor} {
		if err := ruleset.SetMode(ctx, tx, changed[mode], mode, now); err != nil {
			return err
		}
	}
	return nil
}

// replaceExceptions stores new exceptions, changes the types of known ones and deletes the others. An exception
// for a rule that does not exist any more is deleted, too: it would apply again once the rule is back.
func (d *detection) replaceExceptions(ctx context.Context, tx *ent.Tx, wanted *detection) error {
	var gone []int64
	for _, row := range d.leftOver {
		gone = append(gone, row.ID)
		audit.Change(ctx, kindException, row.ID, &policiesv1.DetectionPolicyException{ExceptionType: row.ExceptionType, Rule: row.Rule, RuleType: row.RuleType}, nil)
	}
	retyped := map[string][]int64{}
	for _, key := range sortedExceptions(d.exceptions) {
		old, now := d.exceptions[key], wanted.exceptions[key]
		switch now.kind {
		case old.kind:
			continue
		case "":
			gone = append(gone, old.id)
		default:
			retyped[now.kind] = append(retyped[now.kind], old.id)
		}
		audit.Change(ctx, kindException, old.id, d.message(key), wanted.message(key))
	}
	for _, kind := range []string{ruleset.Include, ruleset.Exclude} {
		if len(retyped[kind]) == 0 {
			continue
		}
		if err := tx.DetectionException.Update().Where(store.OneOf(detectionexception.FieldID, retyped[kind])).SetExceptionType(kind).Exec(ctx); err != nil {
			return err
		}
	}
	if len(gone) > 0 {
		if _, err := tx.DetectionException.Delete().Where(store.OneOf(detectionexception.FieldID, gone)).Exec(ctx); err != nil {
			return err
		}
	}
	return d.addExceptions(ctx, tx, wanted)
}

func (d *detection) addExceptions(ctx context.Context, tx *ent.Tx, wanted *detection) error {
	keys := slices.DeleteFunc(sortedExceptions(wanted.exceptions), func(key exceptionKey) bool { return d.exceptions[key].kind != "" })
	creates := make([]*ent.DetectionExceptionCreate, len(keys))
	for i, key := range keys {
		of := wanted.exceptions[key]
		creates[i] = tx.DetectionException.Create().SetProduct(ruleProducts[d.product]).SetTagID(of.tagID).SetRuleType(key.ruleType).
			SetRule(key.rule).SetExceptionType(of.kind)
		if of.projectID != 0 {
			creates[i].SetProjectID(of.projectID)
		}
	}
	for part := range slices.Chunk(creates, store.RowsAtOnce) {
		rows, err := tx.DetectionException.CreateBulk(part...).Save(ctx)
		if err != nil {
			return err
		}
		for i, row := range rows {
			audit.Change(ctx, kindException, row.ID, nil, wanted.message(keys[i]))
		}
		keys = keys[len(rows):]
	}
	return nil
}

// message is an exception for the audit trail; nil if there is none.
func (d *detection) message(key exceptionKey) proto.Message {
	of, exists := d.exceptions[key]
	if !exists {
		return nil
	}
	out := &policiesv1.DetectionPolicyException{ExceptionType: of.kind, Rule: key.rule, RuleType: key.ruleType}
	if key.scope == scopeProject {
		out.Project = key.target
	} else {
		out.ProjectTagName = key.target
	}
	return out
}
