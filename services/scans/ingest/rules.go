package ingest

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/rule"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/store"
)

type ruleKey struct{ tool, name string }

// byToolAndName is the order of rules in every transaction that writes them. It prevents deadlocks between two uploads
// that write the same rules.
func byToolAndName(a, b ruleKey) int {
	return cmp.Or(cmp.Compare(a.tool, b.tool), cmp.Compare(a.name, b.name))
}

// storeRules stores the rules of the report with their current text, and sets their ids. It returns the ids of the
// rules that it created.
func (s *session) storeRules(ctx context.Context, all []*ruleUse) (fresh map[int64]bool, err error) {
	first := map[ruleKey]*ruleUse{} // its text is stored
	for _, use := range all {
		if first[use.key()] == nil {
			first[use.key()] = use
		}
	}
	keys := slices.SortedFunc(maps.Keys(first), byToolAndName)
	ids := make(map[ruleKey]int64, len(keys))
	fresh = map[int64]bool{}
	for part := range slices.Chunk(keys, batchSize) {
		s.work.Yield(ctx)
		made, err := s.storeRulePart(ctx, part, first, ids)
		if err != nil {
			return nil, err
		}
		for _, key := range made {
			fresh[ids[key]] = true
		}
	}
	for _, use := range all {
		use.id = ids[use.key()]
	}
	return fresh, nil
}

// storeRulePart updates the rules that exist, and returns the missing ones.
func (s *session) storeRulePart(ctx context.Context, keys []ruleKey, uses map[ruleKey]*ruleUse, ids map[ruleKey]int64) (missing []ruleKey, err error) {
	rows, err := findRules(ctx, s.tx.Client(), keys)
	if err != nil {
		return nil, err
	}
	stored := make(map[ruleKey]*ent.Rule, len(rows))
	for _, row := range rows {
		stored[ruleKey{row.Tool, row.Name}] = row
	}
	var fresh []*ent.RuleCreate
	for _, key := range keys {
		use, row := uses[key], stored[key]
		content, err := use.content()
		if err != nil {
			return nil, err
		}
		switch {
		case row == nil:
			missing = append(missing, key)
			fresh = append(fresh, s.tx.Rule.Create().SetDeploymentID(s.deploymentID).SetTool(key.tool).SetName(key.name).
				SetCategory(use.rule.Text.GetCategory()).SetConfidence(use.rule.Text.GetConfidence()).SetContent(content).
				SetNillableSecretType(secretType(use.rule.Text)).SetNillableOrigin(nilIfEmpty(&use.rule.Origin)))
			continue
		case use.changes(row, content):
			update := s.tx.Rule.UpdateOneID(row.ID).SetContent(content).SetCategory(use.rule.Text.GetCategory()).SetConfidence(use.rule.Text.GetConfidence())
			if kind := secretType(use.rule.Text); kind != nil {
				update.SetSecretType(*kind)
			} else {
				update.ClearSecretType()
			}
			if use.rule.Origin != "" {
				update.SetOrigin(use.rule.Origin)
			} else {
				update.ClearOrigin()
			}
			err := update.Exec(ctx)
			if err != nil {
				return nil, err
			}
		}
		ids[key] = row.ID
	}
	return missing, s.createRules(ctx, missing, fresh, ids)
}

// createRules inserts rules, and reads their ids: another transaction may have inserted them concurrently.
func (s *session) createRules(ctx context.Context, missing []ruleKey, fresh []*ent.RuleCreate, ids map[ruleKey]int64) error {
	if len(missing) == 0 {
		return nil
	}
	for part := range slices.Chunk(fresh, store.RowsAtOnce) {
		err := s.tx.Rule.CreateBulk(part...).OnConflictColumns(rule.FieldDeploymentID, rule.FieldTool, rule.FieldName).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
	}
	rows, err := findRules(ctx, s.tx.Client(), missing, rule.FieldID, rule.FieldTool, rule.FieldName)
	if err != nil {
		return err
	}
	for _, row := range rows {
		ids[ruleKey{row.Tool, row.Name}] = row.ID
	}
	return nil
}

// findRules reads stored rules. The answer may have rules of other tools with the same names. Without fields, it reads
// all columns.
func findRules(ctx context.Context, db *ent.Client, keys []ruleKey, fields ...string) ([]*ent.Rule, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var tools, names []string
	for _, key := range keys {
		tools, names = append(tools, key.tool), append(names, key.name)
	}
	query := db.Rule.Query().Where(store.OneOf(rule.FieldTool, slices.Compact(slices.Sorted(slices.Values(tools)))), store.OneOf(rule.FieldName, names))
	if len(fields) > 0 {
		return query.Select(fields...).All(ctx)
	}
	return query.All(ctx)
}

// secretType is the column of the kind of secret.
func secretType(text *findingsv1.FindingRule) *string {
	kind := text.GetSecretType()
	return nilIfEmpty(&kind)
}

// changes reports whether the report describes the rule in another way than its row. A text under a former name, and
// a rule without a text, change nothing.
func (u *ruleUse) changes(row *ent.Rule, content []byte) bool {
	if u.rule.Stub || u.rule.Name != u.name {
		return false
	}
	return !bytes.Equal(row.Content, content) || derefOrNil(row.Origin) != derefOrNil(nilIfEmpty(&u.rule.Origin))
}

func (u *ruleUse) key() ruleKey { return ruleKey{u.of.Tool, u.name} }

// content is the stored form of the rule's text, under its current name.
func (u *ruleUse) content() ([]byte, error) {
	text := u.rule.Text
	if text.GetName() != u.name {
		text = proto.CloneOf(text)
		text.Name = u.name
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(text)
}

// ruleNamesOf reads the names of stored rules by id.
func ruleNamesOf(ctx context.Context, tx *ent.Tx, ids []int64) (map[int64]string, error) {
	rows, err := tx.Rule.Query().Where(store.OneOf(rule.FieldID, ids)).Select(rule.FieldID, rule.FieldName).All(ctx)
	if err != nil {
		return nil, err
	}
	names := make(map[int64]string, len(rows))
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	return names, nil
}
