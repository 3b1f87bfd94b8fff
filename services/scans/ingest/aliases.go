package ingest

import (
	"context"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/rulealias"
)

// aliasOfReport is the source of an alias that a tool declared; what users declare goes before it.
const aliasOfReport = "report"

// ruleNames are the present names of rules.
type ruleNames struct {
	db *ent.Client
	// declared is what a report says about former names, by tool, which is not stored yet.
	declared map[string]map[string]string
	byTool   map[string]map[string]string // by tool and former name
}

func newRuleNames(db *ent.Client, declared map[string]map[string]string) *ruleNames {
	return &ruleNames{db: db, declared: declared, byTool: map[string]map[string]string{}}
}

// of reads the names of a tool, once.
func (n *ruleNames) of(ctx context.Context, tool string) (map[string]string, error) {
	if names, known := n.byTool[tool]; known {
		return names, nil
	}
	stored, err := aliasesOf(ctx, n.db, tool)
	if err != nil {
		return nil, err
	}
	stored.declare(n.declared[tool])
	names := make(map[string]string, len(stored))
	for name, a := range stored {
		names[name] = a.canonical
	}
	n.byTool[tool] = names
	return names, nil
}

// covers reports whether all that others read of the names is so here, too.
func (n *ruleNames) covers(ctx context.Context, others *ruleNames) (bool, error) {
	for _, tool := range slices.Sorted(maps.Keys(others.byTool)) {
		names, err := n.of(ctx, tool)
		if err != nil || !maps.Equal(names, others.byTool[tool]) {
			return false, err
		}
	}
	return true, nil
}

// present gives the rule of a result the name that it has now.
func (p *Reading) present(ctx context.Context, i *Result) error {
	names, err := p.names.of(ctx, i.Group.Tool)
	if err != nil {
		return err
	}
	i.ruleName = i.Rule.Name
	if name, renamed := names[i.Rule.Name]; renamed {
		i.ruleName = name
	}
	return nil
}

// presentRules gives the rules of a coverage the names that they have now.
func (p *Reading) presentRules(ctx context.Context, tool string, c *Coverage) error {
	names, err := p.names.of(ctx, tool)
	if err != nil {
		return err
	}
	for _, list := range [][]string{c.Rules, c.FailedRules} {
		for n, name := range list {
			if now, renamed := names[name]; renamed {
				list[n] = now
			}
		}
	}
	return nil
}

// settleNames stores the aliases that the report declares. Should rules have other names now than those under which the
// report was read, it is read again: nobody changes what this transaction has written and read of them.
func (s *session) settleNames(ctx context.Context, read *Reading) error {
	for _, tool := range slices.Sorted(maps.Keys(read.FormerNames)) {
		if err := s.declare(ctx, tool, read.FormerNames[tool]); err != nil {
			return err
		}
	}
	names := newRuleNames(s.tx.Client(), nil)
	s.names = names
	same, err := names.covers(ctx, read.names)
	if err != nil || same {
		return err
	}
	return read.read(ctx, s.tx.Client(), names)
}

// declare stores what a tool says about former names of its rules.
func (s *session) declare(ctx context.Context, tool string, declared map[string]string) error {
	stored, err := aliasesOf(ctx, s.tx.Client(), tool)
	if err != nil {
		return err
	}
	now := maps.Clone(stored)
	now.declare(declared)
	renamed := map[string][]string{} // by the new canonical name
	var fresh []*ent.RuleAliasCreate
	for _, name := range slices.Sorted(maps.Keys(now)) {
		a := now[name]
		switch before, known := stored[name]; {
		case !known:
			fresh = append(fresh, s.tx.RuleAlias.Create().SetDeploymentID(s.deploymentID).SetTool(tool).SetName(name).
				SetCanonical(a.canonical).SetSource(a.source).SetCreatedAt(s.now))
		case before.canonical != a.canonical:
			renamed[a.canonical] = append(renamed[a.canonical], name)
		}
	}
	for _, canonical := range slices.Sorted(maps.Keys(renamed)) {
		for part := range slices.Chunk(renamed[canonical], batchSize) {
			if err := s.tx.RuleAlias.Update().Where(rulealias.Tool(tool), rulealias.NameIn(part...)).SetCanonical(canonical).Exec(ctx); err != nil {
				return err
			}
		}
	}
	for part := range slices.Chunk(fresh, batchSize) {
		err := s.tx.RuleAlias.CreateBulk(part...).OnConflictColumns(rulealias.FieldDeploymentID, rulealias.FieldTool, rulealias.FieldName).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// aliases are those of one tool by former name.
type aliases map[string]alias

type alias struct{ canonical, source string }

func aliasesOf(ctx context.Context, db *ent.Client, tool string) (aliases, error) {
	rows, err := db.RuleAlias.Query().Where(rulealias.Tool(tool)).
		Select(rulealias.FieldName, rulealias.FieldCanonical, rulealias.FieldSource).All(ctx)
	if err != nil {
		return nil, err
	}
	list := make(aliases, len(rows))
	for _, row := range rows {
		list[row.Name] = alias{row.Canonical, row.Source}
	}
	return list, nil
}

// declare adds what a tool says about former names of its rules, unless it contradicts what a user said. It keeps the
// aliases flat: none leads to another, so that whoever reads one reads once.
func (a aliases) declare(declared map[string]string) {
	if len(declared) == 0 {
		return
	}
	for _, former := range slices.Sorted(maps.Keys(declared)) {
		now := a.end(declared[former]) // a user, or another version of the tool, may have given it another name
		old, known := a[former]
		if now == former || known && (old.source != aliasOfReport || a.end(former) == now) {
			continue
		}
		a[former] = alias{now, aliasOfReport}
	}
	for name := range a {
		a.end(name) // what led to a name that is a former one now
	}
}

// end is where the way from a name ends. It makes the way short for all that lie on it.
func (a aliases) end(name string) string {
	last := name
	for range len(a) + 1 {
		next, known := a[last]
		if !known {
			for name != last {
				on := a[name]
				a[name] = alias{last, on.source}
				name = on.canonical
			}
			return last
		}
		last = next.canonical
	}
	return name // a ring has no end
}
