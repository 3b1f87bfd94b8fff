package ruleset

import (
	"context"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/rulealias"
	"github.com/palisade/palisade/ent/ruledocument"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// Tool is the tool of the findings of these rules.
const Tool = "semgrep"

// firstBoard is added to the id of a stored rule board for the id of its policy. The three modes and
// the default boards have lower ids.
const firstBoard = 100

// BoardPolicyID is the id of a stored rule board as a policy.
func BoardPolicyID(boardID int64) int64 { return firstBoard + boardID }

// BoardOfPolicy is the stored rule board of a policy.
func BoardOfPolicy(policyID int64) (boardID int64) { return policyID - firstBoard }

// FirstMode is the mode of new rules of an origin.
func FirstMode(origin string) string {
	if origin == OriginStarter {
		return StarterRules.Mode
	}
	return ModeMonitor
}

// PolicyModes returns the policy modes of all rules for scans of a project, such as rule-board-block, by name and by
// former names. A rule that does not run there is monitored.
func PolicyModes(ctx context.Context, reader *ent.Client, projectName string) (map[string]string, error) {
	rows, err := reader.RuleDocument.Query().
		Select(ruledocument.FieldName, ruledocument.FieldProduct, ruledocument.FieldOrigin, ruledocument.FieldMode).All(ctx)
	if err != nil || len(rows) == 0 {
		return map[string]string{}, err
	}
	limits, err := scopeOf(ctx, reader, projectName)
	if err != nil {
		return nil, err
	}
	modes := make(map[string]string, len(rows))
	for _, row := range rows {
		mode := limits.modeOf(&rendered{name: row.Name, product: row.Product, origin: row.Origin, mode: row.Mode})
		modes[row.Name] = policies[mode].slug
	}
	aliases, err := reader.RuleAlias.Query().Where(rulealias.Tool(Tool)).All(ctx)
	for _, alias := range aliases {
		if mode := modes[alias.Canonical]; mode != "" && modes[alias.Name] == "" {
			modes[alias.Name] = mode
		}
	}
	return modes, err
}

// SetMode changes the mode of rules with another mode, and of the given rows. now is from BeginChange.
func SetMode(ctx context.Context, tx *ent.Tx, rows []*ent.RuleDocument, mode string, now int64) error {
	var changed []int64
	for _, row := range rows {
		if row.Mode == mode {
			continue
		}
		before := Convert(row)
		row.Mode, row.UpdatedAt = mode, now
		audit.Change(ctx, AuditKind, row.ID, before, Convert(row))
		changed = append(changed, row.ID)
	}
	if len(changed) == 0 {
		return nil
	}
	in := func(s *sql.Selector) { s.Where(store.InIDs(ruledocument.FieldID, changed)) }
	return tx.RuleDocument.Update().Where(in).SetMode(mode).SetUpdatedAt(now).Exec(ctx)
}
