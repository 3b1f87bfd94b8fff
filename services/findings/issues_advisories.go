package findings

import (
	"context"
	"database/sql"
	"regexp"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

var (
	cve  = regexp.MustCompile(`(?i)^CVE-[0-9]{4}-[0-9]{4,}$`)
	ghsa = regexp.MustCompile(`(?i)^GHSA(-[0-9a-z]{4}){3}$`)
)

// advisoriesOf returns the advisories of rules of supply-chain findings: the advisory of the newest finding of each.
// The name of a rule is often another identifier, such as GO-2021-0113, or none.
func advisoriesOf(ctx context.Context, db *ent.Client, rules []int64) (map[int64]string, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	var rows []struct {
		ID       int64          `sql:"id"`
		Advisory sql.NullString `sql:"advisory"`
	}
	err := db.Rule.Query().Where(store.WithIDs[predicate.Rule](rules)).Modify(func(s *entsql.Selector) {
		s.Select(s.C(rule.FieldID))
		s.AppendSelectExprAs(entsql.ExprFunc(func(b *entsql.Builder) {
			b.WriteString("(SELECT f.advisory FROM findings f WHERE f.deployment_id = ").Arg(deploymentID).
				WriteString(" AND f.rule_id = ").WriteString(s.C(rule.FieldID)).
				WriteString(" AND f.issue_type = 'sca' ORDER BY f.relevant_since DESC, f.id DESC LIMIT 1)")
		}), "advisory")
	}).Scan(ctx, &rows)
	advisories := make(map[int64]string, len(rows))
	for _, row := range rows {
		advisories[row.ID] = row.Advisory.String
	}
	return advisories, err
}
