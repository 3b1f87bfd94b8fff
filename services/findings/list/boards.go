package list

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/ruleboard"
	"github.com/palisade/palisade/ent/ruleboardproject"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// projectBoards are the rule boards that a project is assigned to, as policies, by product. nil: only default boards.
type projectBoards map[string]*findingsv1.PolicyReference

// boardsOf returns the boards of projects, with one query. A changed assignment changes the catalog revision.
func boardsOf(ctx context.Context, db *ent.Client, projectIDs []int64) (map[int64]projectBoards, error) {
	var rows []struct {
		ProjectID int64  `sql:"project_id"`
		Product   string `sql:"product"`
		BoardID   int64  `sql:"board_id"`
		Slug      string `sql:"slug"`
		Name      string `sql:"name"`
	}
	err := db.RuleboardProject.Query().Where(store.OneOf(ruleboardproject.FieldProjectID, projectIDs)).Modify(func(link *entsql.Selector) {
		board := entsql.Table(ruleboard.Table)
		link.Join(board).On(link.C(ruleboardproject.FieldRuleboardID), board.C(ruleboard.FieldID)).
			Select(link.C(ruleboardproject.FieldProjectID), link.C(ruleboardproject.FieldProduct), entsql.As(board.C(ruleboard.FieldID), "board_id"),
				board.C(ruleboard.FieldSlug), board.C(ruleboard.FieldName))
	}).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	of := map[int64]projectBoards{}
	for _, row := range rows {
		if of[row.ProjectID] == nil {
			of[row.ProjectID] = projectBoards{}
		}
		of[row.ProjectID][row.Product] = &findingsv1.PolicyReference{Id: ruleset.BoardPolicyID(row.BoardID), Name: row.Name, Slug: row.Slug}
	}
	return of, nil
}
