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

// readPage reads one page in the order of lists, which begins behind start, and what else is asked for its place.
func (l *Lister) readPage(ctx context.Context, of chosen, start boundary, size int, place []once) (*pageRows, error) {
	for known := l.imports.of(of.filter.DeploymentID); ; known = nil {
		page := &pageRows{issueType: of.filter.IssueType, size: size}
		var pending []int64
		for _, part := range around(known, start) {
			var err error
			if pending, err = l.readPart(ctx, page, of.and(part...), place); err != nil {
				return nil, err
			}
			if len(page.rows) == size {
				break
			}
		}
		l.imports.learn(of.filter.DeploymentID, pending)
		if !slices.ContainsFunc(known, func(since int64) bool { return !slices.Contains(pending, since) }) {
			return page, nil
		} // one was committed in the meantime: its findings belong into the page
	}
}

// readPart appends those rows to a page for which there is room in its size, and returns which large imports were not
// committed when it did.
func (l *Lister) readPart(ctx context.Context, page *pageRows, of chosen, place []once) (pending []int64, err error) {
	var r row
	var revision number
	var imports, known text
	ask, into := []once{{revisionQuery, []any{of.filter.DeploymentID}}}, append(r.places(), &revision)
	if l.store.Postgres() {
		ask, into = append(ask, once{pendingQuery, []any{of.filter.DeploymentID}}), append(into, &imports)
	}
	if len(place) > 0 {
		ask, into = append(ask, place...), append(into, &known)
	}
	before := len(page.rows)
	room := page.size - before
	err = store.EachRow(ctx, pageQuery(of.newest(l.store.Reader, room), room, ask), func(rows store.Row) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		return page.add(&r)
	})
	if err != nil {
		return nil, err
	}
	if len(page.rows) == before && len(ask) > 1 {
		query, args := entsql.Dialect(l.store.Dialect()).Select().AppendSelectExpr(expressions(ask)...).Query()
		if err := l.store.ReadRow(ctx, query, args, into[len(into)-len(ask):]...); err != nil {
			return nil, err
		}
	}
	page.revision, page.place = int64(revision), string(known)
	return parsePending(string(imports))
}

// pageQuery reads the columns of rows, and beside them what is asked for once: all of it at the same moment. It names
// one column before it replaces them: ent would quote the names of all, each time.
func pageQuery(of *ent.FindingQuery, size int, ask []once) *ent.FindingSelect {
	return of.Limit(size).Select(finding.FieldID).Modify(func(sel *entsql.Selector) {
		sel.SelectExpr(append([]entsql.Querier{entsql.Raw(rowColumns)}, expressions(ask)...)...)
	})
}

// revisionQuery reads the catalog's revision of a deployment.
const revisionQuery = "SELECT catalog_revision FROM deployments WHERE id = ?"

// once is a subquery of one value, which databases run once, however many rows it stands beside.
type once struct {
	query string // with ? as placeholders
	args  []any
}

func expressions(ask []once) []entsql.Querier {
	list := make([]entsql.Querier, len(ask))
	for i, o := range ask {
		list[i] = entsql.ExprFunc(o.write)
	}
	return list
}

func (o once) write(b *entsql.Builder) {
	b.WriteByte('(')
	rest := o.query
	for _, arg := range o.args {
		before, after, _ := strings.Cut(rest, "?")
		b.WriteString(before).Arg(arg)
		rest = after
	}
	b.WriteString(rest).WriteByte(')')
}
