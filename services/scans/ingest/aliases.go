package ingest

import (
	"context"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/rulealias"
)

// aliasOfReport is the source of an alias that a tool declared. Aliases of users take precedence.
const aliasOfReport = "report"

// ruleNames has the current names of rules.
type ruleNames struct {
	db *ent.Client
	// declared has the aliases of a report that are not stored yet, by tool.
	declared map[string]map[string]string
	byTool   map[string]map[string]string // by tool and former name
}

func newRuleNames(db *ent.Client, declared map[string]map[string]string) *ruleNames {
	return &ruleNames{db: db, declared: declared, byTool: map[string]map[string]string{}}
}

// of returns the names of a tool. It reads them once.
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

// agreesWith reports whether everything that others has read is the same here.
func (n *ruleNames) agreesWith(ctx context.Context, others *ruleNames) (bool, error) {
	for _, tool := range slices.Sorted(maps.Keys(others.byTool)) {
		names, err := n.of(ctx, tool)
		if err != nil || !maps.Equal(names, others.byTool[tool]) {
			return false, err
		}
	}
	return true, nil
}

// present sets the current name of a result's rule.
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

// presentRules replaces former rule names in a coverage by current ones.
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

// refreshNames stores the aliases that the report declares. If rules now have other names than when the report was
// read, the report is read again. The names cannot change after that, because this transaction has written and read
// them.
func (s *session) refreshNames(ctx context.Context, read *Reading) error {
	for _, tool := range slices.Sorted(maps.Keys(read.FormerNames)) {
		if err := s.declare(ctx, tool, read.FormerNames[tool]); err != nil {
			return err
		}
	}
	names := newRuleNames(s.tx.Client(), nil)
	s.names = names
	same, err := names.agreesWith(ctx, read.names)
	if err != nil || same {
		return err
	}
	return read.read(ctx, s.tx.Client(), names)
}

// declare stores the former names that a tool declares for its rules.
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

// aliases has the aliases of one tool by former name.
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

// declare adds the former names that a tool declares, unless they contradict a user's alias. It keeps the aliases flat:
// no alias leads to another alias, so that one lookup suffices.
func (a aliases) declare(declared map[string]string) {
	if len(declared) == 0 {
		return
	}
	for _, former := range slices.Sorted(maps.Keys(declared)) {
		now := a.resolve(declared[former]) // a user or another version of the tool may have renamed it
		old, known := a[former]
		if now == former || known && (old.source != aliasOfReport || a.resolve(former) == now) {
			continue
		}
		a[former] = alias{now, aliasOfReport}
	}
	for name := range a {
		a.resolve(name) // flattens aliases that lead to a name which is a former name now
	}
}

// resolve follows the aliases from a name to the last one. It compresses the path: all names on it then lead to the
// last.
func (a aliases) resolve(name string) string {
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
	return name // a cycle has no end
}
