package list

import (
	"context"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/internal/store"
)

// sessionPage reads a page of a listing session and stores the cursor of the next page. If no cursor leads to the page,
// the rows before it are counted along the driving index. It returns nil for a page after the end of the list.
func (l *Lister) sessionPage(
	ctx context.Context, list listKey, plan queryPlan, number, size int64,
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
		if start, err = l.skip(ctx, plan, start, number*size); err != nil {
			return nil, err
		}
		found = append(found, start)
	}
	if start.end { // a finished session stays finished, however far its client reads on
		return nil, nil
	}
	page, err := l.readPage(ctx, plan, start.boundary, int(size), known)
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
func (l *Lister) skip(ctx context.Context, plan queryPlan, from cursor, rows int64) (cursor, error) {
	if from.rows > 0 {
		plan = plan.and(After(from.relevantSince, from.id))
	}
	var last []struct {
		RelevantSince int64 `sql:"relevant_since"`
		ID            int64 `sql:"id"`
	}
	count := int(rows - from.rows)
	err := plan.newest(l.store.Reader, count).
		Offset(count-1).Limit(1).Select(finding.FieldRelevantSince, finding.FieldID).Scan(ctx, &last)
	if err != nil || len(last) == 0 {
		return cursor{boundary: boundary{end: true}}, err
	}
	at := boundary{relevantSince: last[0].RelevantSince, id: last[0].ID}
	return cursor{session: from.session, rows: rows, boundary: at}, nil
}
