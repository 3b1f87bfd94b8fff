package triage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// arg is a parameter of a statement.
type arg struct{ value any }

// text joins SQL texts, parameters and parts that ent builds into one statement.
func text(dialectName string, parts ...any) (string, []any) {
	b := entsql.Builder{}
	b.SetDialect(dialectName)
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			b.WriteString(part)
		case arg:
			b.Arg(part.value)
		case entsql.Querier:
			b.Join(part)
		}
	}
	return b.Query()
}

// exec runs a statement and returns the number of rows that it wrote. It bypasses the policies of the schema, so the
// statement must name the deployment.
func exec(ctx context.Context, st *store.Store, tx *ent.Tx, parts ...any) (int64, error) {
	query, args := text(st.Dialect(), parts...)
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// querier is a client or a transaction of ent.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each runs a query and calls scan for each row. It bypasses the policies like exec.
func each(ctx context.Context, st *store.Store, db querier, scan func(*sql.Rows) error, parts ...any) error {
	query, args := text(st.Dialect(), parts...)
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	for err == nil && rows.Next() {
		err = scan(rows)
	}
	return errors.Join(err, rows.Err(), rows.Close())
}

// count runs a query for one number.
func count(ctx context.Context, st *store.Store, db querier, parts ...any) (n int64, err error) {
	err = each(ctx, st, db, func(rows *sql.Rows) error { return rows.Scan(&n) }, parts...)
	return n, err
}

// selected selects columns of the findings that the conditions and the caller's teams select.
func selected(ctx context.Context, st *store.Store, where []predicate.Finding, columns ...any) (*entsql.Selector, error) {
	deploymentID, ok := tenant.FromContext(ctx)
	if !ok {
		return nil, errors.New("findings without a deployment")
	}
	rows := entsql.Dialect(st.Dialect()).Select().From(entsql.Dialect(st.Dialect()).Table(finding.Table))
	rows.AppendSelectExpr(entsql.ExprFunc(func(b *entsql.Builder) {
		for _, column := range columns {
			switch column := column.(type) {
			case string:
				b.WriteString(column)
			case arg:
				b.Arg(column.value)
			}
		}
	}))
	store.OfDeployment[predicate.Finding](deploymentID)(rows)
	for _, condition := range where {
		condition(rows)
	}
	if visible := tenant.InVisibleProjects(ctx, rows, rows.C(finding.FieldProjectID)); visible != nil {
		rows.Where(visible)
	}
	return rows, rows.Err()
}

// sameIdentity is the table twin in a FROM clause: the findings with the identities that a query returns (project_id,
// fingerprint and issue_type), and the condition that follows it. Removed findings share decisions, too, because they
// may be reopened. The planner cannot change the order of the look-ups. It may reverse a join. PostgreSQL then searches
// the identities for each finding of the project, which takes a minute for fifty in a project of 30,000.
func sameIdentity(st *store.Store, deploymentID int64, identities ...any) []any {
	if !st.Postgres() {
		return append(append([]any{"("}, identities...),
			") AS chosen CROSS JOIN findings AS twin INDEXED BY findings_by_identity WHERE twin.project_id = chosen.project_id"+
				" AND twin.fingerprint = chosen.fingerprint AND twin.issue_type = chosen.issue_type AND twin.deployment_id = ", arg{deploymentID})
	}
	// PostgreSQL has no INDEXED BY. Only this form makes it use the index that has the refs of an identity in order
	// (see store.PlanByIndexes).
	return append(append([]any{"("}, identities...),
		" OFFSET 0) AS chosen, LATERAL (SELECT * FROM findings WHERE findings.deployment_id = ", arg{deploymentID},
		" AND findings.project_id = chosen.project_id AND findings.fingerprint = chosen.fingerprint"+
			" ORDER BY findings.ref, findings.analysis_category OFFSET 0) AS twin WHERE twin.issue_type = chosen.issue_type")
}

// identityColumns are what sameIdentity needs of a finding.
const identityColumns = "project_id, fingerprint, issue_type"

// StatusSQL is lifecycle.Status in SQL. A test compares the two.
func StatusSQL(state, triageState string) string {
	return "CASE WHEN " + state + " IN ('" + lifecycle.Fixed + "', '" + lifecycle.Removed + "') THEN " + state +
		" WHEN " + triageState + " IN ('" + lifecycle.Ignored + "', '" + lifecycle.Reviewing + "', '" + lifecycle.Fixing + "', '" +
		lifecycle.ProvisionallyIgnored + "') THEN " + triageState +
		" WHEN " + triageState + " <> '" + lifecycle.Reopened + "' AND " + state + " = '" + lifecycle.Muted + "' THEN '" + lifecycle.Ignored +
		"' ELSE '" + lifecycle.Open + "' END"
}

// LockProjects serializes decisions and imports of the projects that have some findings. It locks them in the order of
// their ids, which prevents deadlocks, and returns the condition that a finding is in one of them: a concurrent
// transaction may change findings before the lock, so callers choose findings afterwards. SQLite needs no lock, because
// its write transactions do not overlap.
func LockProjects(ctx context.Context, st *store.Store, tx *ent.Tx, where ...predicate.Finding) (locked predicate.Finding, err error) {
	if !st.Postgres() {
		return func(*entsql.Selector) {}, nil
	}
	owners, err := selected(ctx, st, where, "DISTINCT project_id")
	if err != nil {
		return nil, err
	}
	// PostgreSQL evaluates an array once; a subquery after IN may run again for each project.
	ids, err := tx.Project.Query().Where(func(s *entsql.Selector) {
		s.Where(entsql.P(func(b *entsql.Builder) { b.WriteString(s.C("id") + " = ANY(ARRAY(").Join(owners).WriteString("))") }))
	}).Order(ent.Asc("id")).ForUpdate().IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock projects: %w", err)
	}
	return func(s *entsql.Selector) { s.Where(store.InIDs(s.C(finding.FieldProjectID), ids)) }, nil
}
