package list

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/internal/store"
)

// sessionPage reads a page of a listing session and stores the cursor of the next page. If no cursor leads to the page,
// the rows before it are counted along the driving index. It returns nil for a page after the end of the list.
func (l *Lister) sessionPage(
	ctx context.Context, list listKey, plans []queryPlan, number, size int64,
) (*pageRows, error) {
	var start cursor
	var err error
	if number > 0 {
		if start, err = l.cursors.lookup(ctx, list, number*size); err != nil {
			return nil, err
		}
	}
	var found []cursor
	var known []scalar
	begins := start.session == 0
	if begins {
		start.session = store.Now()
		known = l.cursors.query(list, (number+1)*size)
	}
	if start.rows < number*size && !start.end {
		if start, err = l.skip(ctx, plans, start, number*size); err != nil {
			return nil, err
		}
		found = append(found, start)
	}
	if start.end { // a finished session stays finished, however far its client reads on
		return nil, nil
	}
	page, err := l.readPage(ctx, plans, start.boundary, int(size), known)
	if err != nil {
		return nil, err
	}
	found = append(found, cursor{session: start.session, rows: start.rows + size, boundary: page.boundary()})
	if begins {
		err = l.cursors.begin(ctx, list, page.cursor, found...)
	} else {
		err = l.cursors.add(ctx, list, found...)
	}
	if err != nil { // for example a read-only database: the next page counts its rows
		l.log.WarnContext(ctx, "the cursor of the next page was not stored", "error", err)
	}
	return page, nil
}

// skip counts from a cursor to the cursor after the given number of rows. The result has end set if the list is
// shorter.
func (l *Lister) skip(ctx context.Context, plans []queryPlan, from cursor, rows int64) (cursor, error) {
	if len(plans) > 1 {
		return l.skipMerged(ctx, plans, from, rows)
	}
	count := int(rows - from.rows)
	last, err := l.keysAfter(ctx, plans[0], from, count, count-1)
	if err != nil || len(last) == 0 {
		return cursor{boundary: boundary{end: true}}, err
	}
	return cursor{session: from.session, rows: rows, boundary: last[0]}, nil
}

// skipMerged is skip for the merged rows of several plans. It reads their keys in parts.
func (l *Lister) skipMerged(ctx context.Context, plans []queryPlan, from cursor, rows int64) (cursor, error) {
	const part = 10_000
	for from.rows < rows {
		count := int(min(rows-from.rows, part))
		var keys []boundary
		for _, plan := range plans {
			some, err := l.keysAfter(ctx, plan, from, count, 0)
			if err != nil {
				return cursor{}, err
			}
			keys = append(keys, some...)
		}
		if len(keys) < count {
			return cursor{boundary: boundary{end: true}}, nil
		}
		slices.SortFunc(keys, newerFirst)
		from.boundary, from.rows = keys[count-1], from.rows+int64(count)
	}
	return from, nil
}

// keysAfter reads the keys of the count rows after a cursor, except the first ones.
func (l *Lister) keysAfter(ctx context.Context, plan queryPlan, from cursor, count, except int) ([]boundary, error) {
	if from.rows > 0 {
		plan = plan.and(After(from.relevantSince, from.id))
	}
	var rows []struct {
		RelevantSince int64 `sql:"relevant_since"`
		ID            int64 `sql:"id"`
	}
	err := plan.newest(l.store.Reader, count).Offset(except).Limit(count-except).
		Select(finding.FieldRelevantSince, finding.FieldID).Scan(ctx, &rows)
	keys := make([]boundary, len(rows))
	for i, row := range rows {
		keys[i] = boundary{relevantSince: row.RelevantSince, id: row.ID}
	}
	return keys, err
}
