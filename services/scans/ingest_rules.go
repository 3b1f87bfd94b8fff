package scans

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/rule"
)

type ruleKey struct{ tool, name string }

type storedRule struct {
	id      int64
	content []byte
}

// storeRules makes sure that the rules of a batch are stored with their present text.
func (in *ingest) storeRules(ctx context.Context, batch []*incoming) error {
	wanted := map[ruleKey]*incoming{}
	for _, i := range batch {
		key := ruleKey{i.group.tool, i.ruleName}
		if _, known := in.rules[key]; !known && wanted[key] == nil {
			wanted[key] = i
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	if err := in.readRules(ctx, wanted); err != nil {
		return err
	}
	missing := make([]ruleKey, 0, len(wanted))
	for key, i := range wanted {
		content, err := i.ruleContent()
		if err != nil {
			return err
		}
		known, ok := in.rules[key]
		switch {
		case !ok:
			missing = append(missing, key)
		case !bytes.Equal(known.content, content) && !i.rule.stub && i.rule.name == i.ruleName: // a former name has a former text
			err := in.tx.Rule.UpdateOneID(known.id).SetContent(content).SetCategory(i.rule.text.GetCategory()).SetConfidence(i.rule.text.GetConfidence()).Exec(ctx)
			if err != nil {
				return err
			}
		}
	}
	return in.createRules(ctx, wanted, missing)
}

// createRules adds rules in one order, so that two uploads that bring the same ones cannot wait for each other in a ring.
func (in *ingest) createRules(ctx context.Context, wanted map[ruleKey]*incoming, missing []ruleKey) error {
	if len(missing) == 0 {
		return nil
	}
	slices.SortFunc(missing, func(a, b ruleKey) int { return strings.Compare(a.tool+"\x00"+a.name, b.tool+"\x00"+b.name) })
	rows := make([]*ent.RuleCreate, len(missing))
	for n, key := range missing {
		i := wanted[key]
		content, err := i.ruleContent()
		if err != nil {
			return err
		}
		rows[n] = in.tx.Rule.Create().SetDeploymentID(in.deploymentID).SetTool(key.tool).SetName(key.name).
			SetCategory(i.rule.text.GetCategory()).SetConfidence(i.rule.text.GetConfidence()).SetContent(content)
	}
	err := in.tx.Rule.CreateBulk(rows...).OnConflictColumns(rule.FieldDeploymentID, rule.FieldTool, rule.FieldName).Ignore().Exec(ctx)
	if err != nil {
		return err
	}
	if err := in.readRules(ctx, wanted); err != nil {
		return err
	}
	for _, key := range missing {
		in.freshRules[in.rules[key].id] = true
	}
	return nil
}

func (in *ingest) readRules(ctx context.Context, wanted map[ruleKey]*incoming) error {
	var tools, names []string
	for key := range wanted {
		tools, names = append(tools, key.tool), append(names, key.name)
	}
	rows, err := in.tx.Rule.Query().Where(rule.ToolIn(slices.Compact(slices.Sorted(slices.Values(tools)))...), rule.NameIn(names...)).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		in.rules[ruleKey{row.Tool, row.Name}] = storedRule{row.ID, row.Content}
	}
	return nil
}

func (i *incoming) ruleContent() ([]byte, error) {
	text := i.rule.text
	if text.GetName() != i.ruleName {
		text = proto.CloneOf(text)
		text.Name = i.ruleName
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(text)
}

// ruleNamesOf reads the names of stored rules by id.
func ruleNamesOf(ctx context.Context, tx *ent.Tx, ids []int64) (map[int64]string, error) {
	rows, err := tx.Rule.Query().Where(rule.IDIn(ids...)).Select(rule.FieldID, rule.FieldName).All(ctx)
	if err != nil {
		return nil, err
	}
	names := make(map[int64]string, len(rows))
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	return names, nil
}
