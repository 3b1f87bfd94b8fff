package findings

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/palisade/palisade/services/internal/store"
)

// shared is the places of all nodes on one PostgreSQL: a walk whose pages different nodes serve is one walk.
type shared struct{ db *sql.DB }

// placeColumns are a place as one text, so that a query can take the first of two.
const placeColumns = "SELECT concat_ws(' ', walk, rows, relevant_since, finding_id, ended) FROM page_boundaries WHERE deployment_id = $1 AND list = $2 AND served_at > $4 AND rows "

const placeQuery = "SELECT COALESCE((" + placeColumns + "= $3), (" + placeColumns + `BETWEEN 1 AND $3
	AND walk = (SELECT walk FROM page_boundaries WHERE deployment_id = $1 AND list = $2 AND rows = 0) ORDER BY rows DESC LIMIT 1), '')`

func (s shared) from(ctx context.Context, of listKey, rows int64) (place, error) {
	return s.servedAfter(ctx, of, rows, store.Now()-placesKept.Microseconds())
}

func (s shared) servedAfter(ctx context.Context, of listKey, rows, after int64) (p place, err error) {
	var text string
	if err = s.db.QueryRowContext(ctx, placeQuery, of.deploymentID, of.digest[:], rows, after).Scan(&text); err != nil || text == "" {
		return place{}, err
	}
	_, err = fmt.Sscan(text, &p.walk, &p.rows, &p.relevantSince, &p.id, &p.end)
	return p, err
}

// forgetPlaces takes the rows in the order in which they are written: two of them would wait for each other else.
const forgetPlaces = `DELETE FROM page_boundaries WHERE id IN (SELECT id FROM page_boundaries AS p
	WHERE deployment_id = $1 AND list = $2 AND rows > 0 AND (ended OR EXISTS (SELECT 1 FROM page_boundaries AS later
		WHERE later.deployment_id = $1 AND later.list = $2 AND later.walk = p.walk AND later.rows > p.rows))
	ORDER BY rows FOR UPDATE)`

func (s shared) begin(ctx context.Context, of listKey, found ...place) error {
	last := found[len(found)-1]
	// One that is about to be forgotten is served anew.
	known, err := s.servedAfter(ctx, of, last.rows, store.Now()-placesKept.Microseconds()/2)
	if err != nil || known.rows == last.rows && known.boundary == last.boundary {
		return err
	}
	if _, err := s.db.ExecContext(ctx, forgetPlaces, of.deploymentID, of.digest[:]); err != nil {
		return err
	}
	return s.add(ctx, of, append([]place{{walk: last.walk}}, found...)...)
}

func (s shared) add(ctx context.Context, of listKey, found ...place) error {
	args := []any{of.deploymentID, of.digest[:], store.Now()}
	var rows strings.Builder
	for i, p := range found {
		if i > 0 {
			rows.WriteString(", ")
		}
		n := len(args)
		fmt.Fprintf(&rows, "($1, $2, $3, $%d, $%d, $%d, $%d, $%d)", n+1, n+2, n+3, n+4, n+5)
		args = append(args, p.walk, p.rows, p.relevantSince, p.id, p.end)
	}
	_, err := s.db.ExecContext(ctx, "INSERT INTO page_boundaries AS p (deployment_id, list, served_at, walk, rows, relevant_since, finding_id, ended) VALUES "+rows.String()+`
		ON CONFLICT (deployment_id, list, rows) DO UPDATE SET served_at = excluded.served_at, walk = excluded.walk, relevant_since = excluded.relevant_since,
		finding_id = excluded.finding_id, ended = excluded.ended`, args...)
	return err
}
