package triage

import (
	"context"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// siblings returns the chosen findings and the findings of the same identities on other refs of their projects: all of
// them, and the ones that a list may show. Removed findings share decisions, too, because they may be reopened.
func siblings(ctx context.Context, tx *ent.Tx, deploymentID int64, issueType string, chosen []int64) (all, shown []int64, err error) {
	query := tx.Finding.Query().Where(finding.IssueType(issueType))
	query.Modify(siblingsByID(deploymentID, chosen))
	var rows []struct {
		ID     int64  `sql:"id"`
		Status string `sql:"status"`
	}
	if err := query.Select(finding.FieldID, finding.FieldStatus).Scan(ctx, &rows); err != nil {
		return nil, nil, err
	}
	all, shown = make([]int64, 0, len(rows)), make([]int64, 0, len(rows))
	for _, row := range rows {
		all = append(all, row.ID)
		if row.Status != lifecycle.Removed {
			shown = append(shown, row.ID)
		}
	}
	return all, shown, nil
}

// siblingsByID reads the findings of the same identities in three steps: the chosen findings by id, their identities,
// and each identity in the index by identity. The planner cannot change this order. It may reverse a join. PostgreSQL
// then searches the chosen findings for each finding of the project, which takes a minute for fifty in a project of
// 30,000.
func siblingsByID(deploymentID int64, chosen []int64) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		table := entsql.Dialect(s.Dialect()).Table(finding.Table)
		byID := store.FencedSubquery(s.Dialect(), table, store.InIDs(table.C(finding.FieldID), chosen)).As("found")
		identities := entsql.Dialect(s.Dialect()).Select(byID.C(finding.FieldProjectID), byID.C(finding.FieldFingerprint)).Distinct().
			From(byID).Where(entsql.EQ(byID.C(finding.FieldDeploymentID), deploymentID)).As("chosen")
		if s.Dialect() == dialect.Postgres {
			s.From(eachInOrder(deploymentID, identities.Offset(0)).As(finding.Table))
			return
		}
		s.From(store.FencedSubquery(s.Dialect(), table, entsql.P(func(b *entsql.Builder) {
			b.WriteString(table.C(finding.FieldID) + " IN (SELECT twin.id FROM (").Join(identities)
			b.WriteString(") AS chosen CROSS JOIN findings AS twin INDEXED BY findings_by_identity WHERE twin.project_id = chosen.project_id" +
				" AND twin.fingerprint = chosen.fingerprint AND twin.deployment_id = ").Arg(deploymentID).WriteByte(')')
		})).As(finding.Table))
	}
}

// eachInOrder reads the findings of identities on PostgreSQL, which has no INDEXED BY. Only this form makes it use the
// index that has the refs of an identity in order (see store.PlanByIndexes).
func eachInOrder(deploymentID int64, identities *entsql.Selector) *entsql.Selector {
	table := entsql.Dialect(dialect.Postgres).Table(finding.Table)
	each := entsql.Dialect(dialect.Postgres).Select().From(table).Where(entsql.And(
		entsql.EQ(table.C(finding.FieldDeploymentID), deploymentID),
		entsql.ExprP(table.C(finding.FieldProjectID)+" = "+identities.C(finding.FieldProjectID)),
		entsql.ExprP(table.C(finding.FieldFingerprint)+" = "+identities.C(finding.FieldFingerprint)),
	)).OrderBy(table.C(finding.FieldRef), table.C(finding.FieldAnalysisCategory)).Offset(0)
	siblings := entsql.Dialect(dialect.Postgres).SelectExpr(entsql.Raw("twin.*")).From(identities)
	return siblings.AppendFromExpr(entsql.ExprFunc(func(b *entsql.Builder) { b.WriteString("LATERAL (").Join(each).WriteString(") AS twin") }))
}
