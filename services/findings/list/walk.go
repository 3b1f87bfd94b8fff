package list

import (
	"context"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/internal/store"
)

// walk reads a page of a list, which belongs to a walk, and remembers where it ended. Its beginning is known when the
// page before was served lately; else it is counted along the index that serves the list. Nil: there is no such page.
func (l *Lister) walk(ctx context.Context, list listKey, of chosen, number, size int64) (*pageRows, error) {
	var start place
	var err error
	if number > 0 {
		if start, err = l.places.from(ctx, list, number*size); err != nil {
			return nil, err
		}
	}
	var found []place
	var known []once
	begins := start.walk == 0
	if begins {
		start.walk = store.Now()
		known = l.places.query(list, (number+1)*size)
	}
	if start.rows < number*size && !start.end {
		if start, err = l.skip(ctx, of, start, number*size); err != nil {
			return nil, err
		}
		found = append(found, start)
	}
	if start.end { // a walk that has ended stays so, however far its caller goes on
		return nil, nil
	}
	page, err := l.readPage(ctx, of, start.boundary, int(size), known)
	if err != nil {
		return nil, err
	}
	found = append(found, place{walk: start.walk, rows: start.rows + size, boundary: page.end()})
	if begins {
		err = l.places.begin(ctx, list, page.place, found...)
	} else {
		err = l.places.add(ctx, list, found...)
	}
	if err != nil { // of a database that may only be read, say: the next page is counted
		l.log.WarnContext(ctx, "the end of a page was not remembered", "error", err)
	}
	return page, nil
}

// skip counts from a place to the one behind so many rows. Its boundary says if there are fewer.
func (l *Lister) skip(ctx context.Context, of chosen, from place, rows int64) (place, error) {
	if from.rows > 0 {
		of = of.and(Behind(from.relevantSince, from.id))
	}
	var last []struct {
		RelevantSince int64 `sql:"relevant_since"`
		ID            int64 `sql:"id"`
	}
	count := int(rows - from.rows)
	err := of.newest(l.store.Reader, count).
		Offset(count-1).Limit(1).Select(finding.FieldRelevantSince, finding.FieldID).Scan(ctx, &last)
	if err != nil || len(last) == 0 {
		return place{boundary: boundary{end: true}}, err
	}
	at := boundary{relevantSince: last[0].RelevantSince, id: last[0].ID}
	return place{walk: from.walk, rows: rows, boundary: at}, nil
}
