package list

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/pageboundary"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// postgresCursors stores cursors in PostgreSQL. All nodes share them, so different nodes may serve one session.
type postgresCursors struct{ db *sql.DB }

// cursorColumns select a cursor as one text, so that COALESCE can choose between two of them.
const cursorColumns = "SELECT concat_ws(' ', walk, rows, relevant_since, finding_id, " +
	"CASE WHEN ended THEN 1 ELSE 0 END) FROM page_boundaries WHERE "

const unexpiredCursor = cursorColumns + "deployment_id = $1 AND list = $2 AND served_at > $4 AND rows "

const cursorQuery = "SELECT COALESCE((" + unexpiredCursor + "= $3), (" + unexpiredCursor + `<= $3
	AND walk = (SELECT MAX(walk) FROM page_boundaries WHERE deployment_id = $1 AND list = $2 AND served_at > $4)
	ORDER BY rows DESC LIMIT 1), '')`

func (s postgresCursors) lookup(ctx context.Context, list listKey, rows int64) (p cursor, err error) {
	var text string
	since := store.Now() - cursorExpiry.Microseconds()
	err = s.db.QueryRowContext(ctx, cursorQuery, list.deploymentID, list.digest[:], rows, since).Scan(&text)
	if err != nil {
		return cursor{}, err
	}
	return parseCursor(text)
}

// parseCursor parses the text that cursorColumns select. An empty text is the zero value.
func parseCursor(text string) (p cursor, err error) {
	if text == "" {
		return cursor{}, nil
	}
	parts := strings.Split(text, " ")
	if len(parts) != 5 {
		return cursor{}, fmt.Errorf("a cursor has %d parts, want 5", len(parts))
	}
	for i, into := range []*int64{&p.session, &p.rows, &p.relevantSince, &p.id} {
		if *into, err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return cursor{}, err
		}
	}
	p.end = parts[4] == "1"
	return p, nil
}

// staleCursors selects the cursors of a list that are deleted when a new session begins. It reads each row once.
const staleCursors = `(SELECT id, rows FROM (
		SELECT id, rows, ended, MAX(rows) OVER (PARTITION BY walk) AS last_rows, DENSE_RANK() OVER (ORDER BY walk DESC) AS age
		FROM page_boundaries WHERE deployment_id = %s AND list = %s) AS p
	WHERE ended OR rows < last_rows OR age > %d) AS stale`

// knownQuery reads a cursor, unless the list has another cursor that is stale.
var knownQuery = cursorColumns + "deployment_id = ? AND list = ? AND rows = ? AND served_at > ? " +
	"AND NOT EXISTS (SELECT 1 FROM " + fmt.Sprintf(staleCursors, "?", "?", maxSessions) + " WHERE rows <> ?)"

// query ignores a cursor that expires soon, so that it is stored again.
func (postgresCursors) query(list listKey, rows int64) []scalar {
	since := store.Now() - (cursorExpiry - CursorTTL).Microseconds()
	return []scalar{{knownQuery, []any{
		list.deploymentID, list.digest[:], rows, since, list.deploymentID, list.digest[:], rows,
	}}}
}

// deleteStale locks the rows in ascending order, as add does. Otherwise two requests could deadlock.
var deleteStale = "DELETE FROM page_boundaries WHERE id IN (SELECT id FROM page_boundaries " +
	"WHERE id IN (SELECT id FROM " + fmt.Sprintf(staleCursors, "$1", "$2", maxSessions) + ") ORDER BY rows FOR UPDATE)"

func (s postgresCursors) begin(ctx context.Context, list listKey, known string, found ...cursor) error {
	last := found[len(found)-1]
	if before, err := parseCursor(known); err != nil || before.rows == last.rows && before.boundary == last.boundary {
		return err
	}
	if _, err := s.db.ExecContext(ctx, deleteStale, list.deploymentID, list.digest[:]); err != nil {
		return err
	}
	return s.add(ctx, list, found...)
}

func (s postgresCursors) add(ctx context.Context, list listKey, found ...cursor) error {
	args := []any{list.deploymentID, list.digest[:], store.Now()}
	var rows strings.Builder
	for i, p := range found {
		if i > 0 {
			rows.WriteString(", ")
		}
		n := len(args)
		fmt.Fprintf(&rows, "($1, $2, $3, $%d, $%d, $%d, $%d, $%d)", n+1, n+2, n+3, n+4, n+5)
		args = append(args, p.session, p.rows, p.relevantSince, p.id, p.end)
	}
	_, err := s.db.ExecContext(ctx, `INSERT INTO page_boundaries AS p
		(deployment_id, list, served_at, walk, rows, relevant_since, finding_id, ended) VALUES `+rows.String()+`
		ON CONFLICT (deployment_id, list, rows) DO UPDATE SET served_at = excluded.served_at, walk = excluded.walk,
		relevant_since = excluded.relevant_since, finding_id = excluded.finding_id, ended = excluded.ended`, args...)
	return err
}

// DeleteExpired deletes the expired cursors of all deployments from PostgreSQL. Cursors in memory expire by themselves.
func DeleteExpired(ctx context.Context, st *store.Store) error {
	return st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.PageBoundary.Delete().Where(pageboundary.ServedAtLT(store.Now() - cursorExpiry.Microseconds())).Exec(ctx)
		return err
	})
}
