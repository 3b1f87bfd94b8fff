package list

import (
	"context"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/internal/store"
)

// readPage reads the page after start. It merges the pages of the plans. Each plan has the index of its issue type.
func (l *Lister) readPage(
	ctx context.Context, plans []queryPlan, start boundary, size int, cursor []scalar,
) (*pageRows, error) {
	page, err := l.readPlan(ctx, plans[0], start, size, cursor)
	for _, plan := range plans[1:] {
		if err != nil {
			return nil, err
		}
		if len(page.rows) == size { // older findings cannot be on the page
			plan = plan.and(finding.RelevantSinceGTE(page.rows[size-1].since))
		}
		var other *pageRows
		if other, err = l.readPlan(ctx, plan, start, size, nil); err == nil {
			page.merge(other)
		}
	}
	return page, err
}

// readPlan reads a page of one plan. It runs the subqueries for the cursor store in the same statement.
func (l *Lister) readPlan(
	ctx context.Context, plan queryPlan, start boundary, size int, cursor []scalar,
) (*pageRows, error) {
	for known := l.imports.of(plan.filter.DeploymentID); ; known = nil {
		page := &pageRows{size: size}
		var pending []int64
		for _, part := range splitAround(known, start) {
			var err error
			if pending, err = l.readPart(ctx, page, plan.and(part...), cursor); err != nil {
				return nil, err
			}
			if len(page.rows) == size {
				break
			}
		}
		l.imports.update(plan.filter.DeploymentID, pending)
		if !slices.ContainsFunc(known, func(since int64) bool { return !slices.Contains(pending, since) }) {
			return page, nil
		} // an import was committed concurrently: read again, with its findings
	}
}

// readPart appends rows until the page is full. It returns the large imports that were not committed at that moment.
func (l *Lister) readPart(
	ctx context.Context, page *pageRows, plan queryPlan, cursor []scalar,
) (pending []int64, err error) {
	var r row
	var revision number
	var imports, known text
	subqueries, targets := []scalar{{revisionQuery, []any{plan.filter.DeploymentID}}}, append(r.targets(), &revision)
	if l.store.Postgres() {
		subqueries, targets = append(subqueries, scalar{pendingQuery, []any{plan.filter.DeploymentID}}), append(targets, &imports)
	}
	if len(cursor) > 0 {
		subqueries, targets = append(subqueries, cursor...), append(targets, &known)
	}
	before := len(page.rows)
	room := page.size - before
	err = store.EachRow(ctx, pageQuery(plan.newest(l.store.Reader, room), room, subqueries), func(rows store.Row) error {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		return page.add(plan.filter.IssueType, &r)
	})
	if err != nil {
		return nil, err
	}
	if len(page.rows) == before && len(subqueries) > 1 {
		query, args := entsql.Dialect(l.store.Dialect()).Select().AppendSelectExpr(expressions(subqueries)...).Query()
		if err := l.store.ReadRow(ctx, query, args, targets[len(targets)-len(subqueries):]...); err != nil {
			return nil, err
		}
	}
	page.revision, page.cursor = int64(revision), string(known)
	return parsePending(string(imports))
}

// pageQuery selects the columns of rows and the scalar subqueries, so that both come from the same snapshot. It selects
// one column and then replaces it, because ent would quote all column names for each query.
func pageQuery(query *ent.FindingQuery, size int, subqueries []scalar) *ent.FindingSelect {
	return query.Limit(size).Select(finding.FieldID).Modify(func(sel *entsql.Selector) {
		sel.SelectExpr(append([]entsql.Querier{entsql.Raw(rowColumns)}, expressions(subqueries)...)...)
	})
}

// revisionQuery reads the catalog's revision of a deployment.
const revisionQuery = "SELECT catalog_revision FROM deployments WHERE id = ?"

// scalar is a subquery with one value. Databases evaluate it once for all rows.
type scalar struct {
	query string // with ? as placeholders
	args  []any
}

func expressions(subqueries []scalar) []entsql.Querier {
	list := make([]entsql.Querier, len(subqueries))
	for i, q := range subqueries {
		list[i] = entsql.ExprFunc(q.write)
	}
	return list
}

func (q scalar) write(b *entsql.Builder) {
	b.WriteByte('(')
	rest := q.query
	for _, arg := range q.args {
		before, after, _ := strings.Cut(rest, "?")
		b.WriteString(before).Arg(arg)
		rest = after
	}
	b.WriteString(rest).WriteByte(')')
}
