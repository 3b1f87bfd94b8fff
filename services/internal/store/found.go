package store

import (
	"context"
	"fmt"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
)

// FoundByIDs makes an ent query look up rows by their primary keys and look at all its other conditions, policies
// included, on what was found. A database could find them by those as well, and does so where it has no statistics, or
// has those of a time at which the deployment was small: it takes a million rows for one then. A subquery with a limit
// stays one. It is for Modify:
//
//	query := tx.Finding.Query().Where(...)
//	query.Modify(store.FoundByIDs(ids))
func FoundByIDs(ids []int64) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		table := entsql.Dialect(s.Dialect()).Table(s.TableName())
		s.From(Apart(s.Dialect(), table, InIDs(table.C("id"), ids)).As(s.TableName()))
	}
}

// Apart selects the rows of a table under a condition in a subquery that neither database puts into the query around
// it.
func Apart(dialectName string, table *entsql.SelectTable, where *entsql.Predicate) *entsql.Selector {
	rows := entsql.Dialect(dialectName).Select().From(table).Where(where).Offset(0)
	if dialectName != dialect.Postgres {
		rows.Limit(-1) // SQLite knows no OFFSET alone
	}
	return rows
}

// OfDeployment checks the deployment of rows that a statement names by their keys, and keeps both databases from
// finding them by an index of it, as FoundByIDs does for queries. Where the context names the deployment, tenant.ByKey
// does the same.
func OfDeployment[P ~func(*entsql.Selector)](deploymentID int64) P {
	return func(s *entsql.Selector) {
		s.Where(entsql.P(func(b *entsql.Builder) { b.WriteString("+" + s.C("deployment_id") + " = ").Arg(deploymentID) }))
	}
}

// customPlans makes PostgreSQL plan a statement for the values that it is given, each time.
const customPlans = "plan_cache_mode=force_custom_plan"

// PlannerSettings is a statement that changes settings of PostgreSQL's planner, each written name=value, until the end
// of the transaction. It turns jit off as well: a plan with something that is ruled out costs so much on paper that
// PostgreSQL would compile it, for 300 ms each time. Sessions turn that off themselves, but not behind a pooler.
func PlannerSettings(settings ...string) string {
	statement := "SELECT set_config('jit', 'off', true)"
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		statement += ", set_config('" + name + "', '" + value + "', true)"
	}
	return statement
}

// PlanByIndexes lets PostgreSQL take the indexes that give rows in the order in which the statements that follow in the
// transaction want them, and plan them for the values that they are given. Where it knows nothing of a table, all
// indexes that begin with the same columns look alike to it, the one by all names of a finding too, until a sort is out
// of the question. On SQLite it does nothing.
func (s *Store) PlanByIndexes(ctx context.Context, tx *ent.Tx) error {
	if !s.Postgres() {
		return nil
	}
	if _, err := tx.ExecContext(ctx, PlannerSettings("enable_sort=off", "enable_incremental_sort=off", customPlans)); err != nil {
		return fmt.Errorf("choose plans by index: %w", err)
	}
	return nil
}
