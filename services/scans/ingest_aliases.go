package scans

import (
	"context"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/rulealias"
)

// aliasOfReport is the source of an alias that a tool declared; what users declare goes before it.
const aliasOfReport = "report"

// ruleNames are the present names of rules, by tool and former name.
type ruleNames struct {
	byTool map[string]map[string]string
}

// present gives the rule of a result the name that it has now.
func (in *ingest) present(ctx context.Context, i *incoming) error {
	names, err := in.namesOf(ctx, i.group.tool)
	if err != nil {
		return err
	}
	i.ruleName = i.rule.name
	if name, renamed := names[i.rule.name]; renamed {
		i.ruleName = name
	}
	return nil
}

// presentRules gives the rules of a coverage the names that they have now.
func (in *ingest) presentRules(ctx context.Context, tool string, c *coverage) error {
	names, err := in.namesOf(ctx, tool)
	if err != nil {
		return err
	}
	for _, list := range [][]string{c.Rules, c.failedRules} {
		for n, name := range list {
			if now, renamed := names[name]; renamed {
				list[n] = now
			}
		}
	}
	return nil
}

// namesOf reads the aliases of a tool, once.
func (in *ingest) namesOf(ctx context.Context, tool string) (map[string]string, error) {
	if names, known := in.names.byTool[tool]; known {
		return names, nil
	}
	rows, err := in.tx.RuleAlias.Query().Where(rulealias.Tool(tool)).Select(rulealias.FieldName, rulealias.FieldCanonical).All(ctx)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string, len(rows))
	for _, row := range rows {
		names[row.Name] = row.Canonical
	}
	in.names.byTool[tool] = names
	return names, nil
}

// readNames stores the aliases that the report declares, before any of its results is looked at.
func (in *ingest) readNames(ctx context.Context) error {
	in.names = &ruleNames{byTool: map[string]map[string]string{}}
	for _, tool := range slices.Sorted(maps.Keys(in.formerNames)) {
		if err := in.declare(ctx, tool, in.formerNames[tool]); err != nil {
			return err
		}
		delete(in.names.byTool, tool) // to be read again
	}
	return nil
}

// declare stores what a tool says about former names of its rules, unless it contradicts what a user said.
func (in *ingest) declare(ctx context.Context, tool string, declared map[string]string) error {
	rows, err := in.tx.RuleAlias.Query().Where(rulealias.Tool(tool)).All(ctx)
	if err != nil {
		return err
	}
	stored, canonical := map[string]*ent.RuleAlias{}, map[string]bool{}
	for _, row := range rows {
		stored[row.Name] = row
		canonical[row.Canonical] = true
	}
	var fresh []*ent.RuleAliasCreate
	for _, former := range slices.Sorted(maps.Keys(declared)) {
		now := declared[former]
		if row := stored[now]; row != nil {
			now = row.Canonical // a present name that a user, or another version of the tool, gave another one
		}
		switch row := stored[former]; {
		case now == former, row != nil && (row.Source != aliasOfReport || row.Canonical == now):
		case row != nil:
			if err := row.Update().SetCanonical(now).Exec(ctx); err != nil {
				return err
			}
		default:
			if canonical[former] { // it had former names itself
				err := in.tx.RuleAlias.Update().Where(rulealias.Tool(tool), rulealias.Canonical(former)).SetCanonical(now).Exec(ctx)
				if err != nil {
					return err
				}
			}
			canonical[now] = true
			fresh = append(fresh, in.tx.RuleAlias.Create().SetDeploymentID(in.deploymentID).SetTool(tool).SetName(former).
				SetCanonical(now).SetSource(aliasOfReport).SetCreatedAt(in.now))
		}
	}
	for part := range slices.Chunk(fresh, batchSize) {
		err := in.tx.RuleAlias.CreateBulk(part...).OnConflictColumns(rulealias.FieldDeploymentID, rulealias.FieldTool, rulealias.FieldName).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}
