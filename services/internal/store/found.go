package store

import (
	"context"
	"fmt"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
)

// FoundByIDs makes an ent query look up rows by their primary keys in a subquery, and apply its other conditions and
// the policies to those rows. Without it a database may use an index of the other conditions. Without statistics, or
// with outdated ones from when the deployment was small, it does so and reads a million rows to find one. A subquery
// with a limit is never merged into the outer query. Pass it to Modify:
//
//	query := tx.Finding.Query().Where(...)
//	query.Modify(store.FoundByIDs(ids))
func FoundByIDs(ids []int64) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		table := entsql.Dialect(s.Dialect()).Table(s.TableName())
		s.From(FencedSubquery(s.Dialect(), table, InIDs(table.C("id"), ids)).As(s.TableName()))
	}
}

// FencedSubquery selects the rows of a table in a subquery that neither database merges into the outer query.
func FencedSubquery(dialectName string, table *entsql.SelectTable, where *entsql.Predicate) *entsql.Selector {
	rows := entsql.Dialect(dialectName).Select().From(table).Where(where).Offset(0)
	if dialectName != dialect.Postgres {
		rows.Limit(-1) // SQLite has no OFFSET without LIMIT
	}
	return rows
}

// OfDeployment checks the deployment of rows that a statement finds by primary key. The unary plus keeps both
// databases from using an index on the deployment. When the context has the deployment, use tenant.ByKey.
func OfDeployment[P ~func(*entsql.Selector)](deploymentID int64) P {
	return func(s *entsql.Selector) {
		s.Where(entsql.P(func(b *entsql.Builder) { b.WriteString("+" + s.C("deployment_id") + " = ").Arg(deploymentID) }))
	}
}

// customPlans makes PostgreSQL plan each execution of a statement for its parameters.
const customPlans = "plan_cache_mode=force_custom_plan"

// PlannerSettings returns a statement that sets PostgreSQL planner settings, each written name=value, until the end
// of the transaction. It also turns jit off: a disabled plan node has such a high estimated cost that PostgreSQL
// would compile the plan, which takes 300 ms each time. Sessions turn jit off themselves, but not behind a pooler.
func PlannerSettings(settings ...string) string {
	statement := "SELECT set_config('jit', 'off', true)"
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		statement += ", set_config('" + name + "', '" + value + "', true)"
	}
	return statement
}

// PlanByIndexes makes PostgreSQL use indexes, first the ones that return rows in the requested order, for the rest of
// the transaction, and plan each statement for its parameters. Without statistics, all indexes with the same leading
// columns have the same cost, and PostgreSQL may choose a useless one, unless sorting is ruled out. It would scan a
// table to find a thousand ids in 4,000 pages. PlanByIndexes does nothing on SQLite.
func (s *Store) PlanByIndexes(ctx context.Context, tx *ent.Tx) error {
	if !s.Postgres() {
		return nil
	}
	if _, err := tx.ExecContext(ctx, PlannerSettings("enable_seqscan=off", "enable_sort=off", "enable_incremental_sort=off", customPlans)); err != nil {
		return fmt.Errorf("set planner options: %w", err)
	}
	return nil
}
