package ruleset

import (
	"context"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
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
