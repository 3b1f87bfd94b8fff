package policies

import (
	"cmp"
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/ruleboard"
	"github.com/palisade/palisade/ent/ruleboardrule"
	"github.com/palisade/palisade/ent/ruledocument"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/document"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// board is a rule board: modes of the rules of a product for some projects.
type board struct {
	id         int64 // in the API
	rowID      int64 // 0: a default board, which is not stored
	slug, name string
	product    string // sast, secrets
}

// defaultBoards have the modes of the rules themselves.
var defaultBoards = []board{
	{id: 4, slug: "default", name: "Default", product: document.ProductSAST},
	{id: 5, slug: "default-secrets", name: "Default (secrets)", product: document.ProductSecrets},
}

func (b board) isDefault() bool { return b.rowID == 0 }

func boardOf(row *ent.Ruleboard) board {
	return board{id: ruleset.BoardPolicyID(row.ID), rowID: row.ID, slug: row.Slug, name: row.Name, product: row.Product}
}

// loadBoards returns all boards: the default ones, then the others by id.
func loadBoards(ctx context.Context, db *ent.Client) ([]board, error) {
	rows, err := db.Ruleboard.Query().Order(ent.Asc(ruleboard.FieldID)).All(ctx)
	boards := slices.Clone(defaultBoards)
	for _, row := range rows {
		boards = append(boards, boardOf(row))
	}
	return boards, err
}

// boardBySlug returns a board.
func boardBySlug(ctx context.Context, db *ent.Client, slug string) (board, error) {
	for _, b := range defaultBoards {
		if b.slug == slug {
			return b, nil
		}
	}
	row, err := db.Ruleboard.Query().Where(ruleboard.Slug(slug)).Only(ctx)
	if ent.IsNotFound(err) {
		return board{}, apierr.NotFound("rule board %s not found", apierr.Quote(slug))
	}
	if err != nil {
		return board{}, err
	}
	return boardOf(row), nil
}

// boardByID returns the board of a policy.
func boardByID(ctx context.Context, db *ent.Client, id int64) (board, error) {
	for _, b := range defaultBoards {
		if b.id == id {
			return b, nil
		}
	}
	row, err := db.Ruleboard.Query().Where(ruleboard.ID(ruleset.BoardOfPolicy(id))).Only(ctx)
	if ent.IsNotFound(err) {
		return board{}, apierr.NotFound("policy %d not found", id)
	}
	if err != nil {
		return board{}, err
	}
	return boardOf(row), nil
}

// boardItem is a rule or ruleset of a board.
type boardItem struct{ ruleType, rule string }

// boardModes are the modes that a board has that differ from the default board.
type boardModes map[boardItem]string

// modes reads the modes of a board.
func (b board) modes(ctx context.Context, db *ent.Client) (boardModes, error) {
	modes := boardModes{}
	if b.isDefault() {
		return modes, nil
	}
	rows, err := db.RuleboardRule.Query().Where(ruleboardrule.RuleboardID(b.rowID)).All(ctx)
	for _, row := range rows {
		modes[boardItem{row.RuleType, row.Rule}] = row.Mode
	}
	return modes, err
}

// of returns the mode of a rule.
func (m boardModes) of(row *ent.RuleDocument) string {
	return cmp.Or(m[boardItem{ruleset.TypeRule, row.Name}], m[boardItem{ruleset.TypeRuleset, row.Origin}],
		m[boardItem{ruleset.TypeRuleset, ruleset.AllRules}], row.Mode)
}

// sorted returns the items, rulesets first.
func (m boardModes) sorted() []boardItem {
	items := make([]boardItem, 0, len(m))
	for item := range m {
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b boardItem) int {
		return cmp.Or(-cmp.Compare(a.ruleType, b.ruleType), cmp.Compare(a.rule, b.rule))
	})
	return items
}

// rules returns the rules of the board's product, by name.
func (b board) rules(ctx context.Context, db *ent.Client) ([]*ent.RuleDocument, error) {
	return db.RuleDocument.Query().Where(ruledocument.Product(b.product)).Order(ent.Asc(ruledocument.FieldName)).All(ctx)
}

// replaceModes stores the modes of a board. The audit trail gets one change for each item.
func (b board) replaceModes(ctx context.Context, tx *ent.Tx, before, after boardModes, now int64) error {
	var creates []*ent.RuleboardRuleCreate
	for _, item := range after.sorted() {
		if before[item] != after[item] {
			noteMode(ctx, b, item, before, after)
			creates = append(creates, tx.RuleboardRule.Create().SetRuleboardID(b.rowID).SetProduct(b.product).SetRuleType(item.ruleType).
				SetRule(item.rule).SetMode(after[item]).SetUpdatedAt(now))
		}
	}
	for part := range slices.Chunk(creates, store.RowsAtOnce) {
		err := tx.RuleboardRule.CreateBulk(part...).
			OnConflictColumns(ruleboardrule.FieldDeploymentID, ruleboardrule.FieldRuleboardID, ruleboardrule.FieldRuleType, ruleboardrule.FieldRule).
			Update(func(u *ent.RuleboardRuleUpsert) { u.UpdateMode().UpdateUpdatedAt() }).Exec(ctx)
		if err != nil {
			return err
		}
	}
	for _, item := range before.sorted() {
		if after[item] != "" {
			continue
		}
		noteMode(ctx, b, item, before, after)
		_, err := tx.RuleboardRule.Delete().
			Where(ruleboardrule.RuleboardID(b.rowID), ruleboardrule.RuleType(item.ruleType), ruleboardrule.Rule(item.rule)).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}
