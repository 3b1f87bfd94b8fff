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

// shared is the places of all nodes on one PostgreSQL: a walk whose pages different nodes serve is one walk.
type shared struct{ db *sql.DB }

// placeColumns are a place as one text, so that a query can take the first of two.
const placeColumns = "SELECT concat_ws(' ', walk, rows, relevant_since, finding_id, " +
	"CASE WHEN ended THEN 1 ELSE 0 END) FROM page_boundaries WHERE "

const placesBefore = placeColumns + "deployment_id = $1 AND list = $2 AND served_at > $4 AND rows "

const placeQuery = "SELECT COALESCE((" + placesBefore + "= $3), (" + placesBefore + `<= $3
	AND walk = (SELECT MAX(walk) FROM page_boundaries WHERE deployment_id = $1 AND list = $2 AND served_at > $4)
	ORDER BY rows DESC LIMIT 1), '')`

func (s shared) from(ctx context.Context, of listKey, rows int64) (p place, err error) {
	var text string
	since := store.Now() - placesExpire.Microseconds()
	err = s.db.QueryRowContext(ctx, placeQuery, of.deploymentID, of.digest[:], rows, since).Scan(&text)
	if err != nil {
		return place{}, err
	}
	return parsePlace(text)
}

// parsePlace reads what placeColumns select; nothing is the zero value.
func parsePlace(text string) (p place, err error) {
	if text == "" {
		return place{}, nil
	}
	parts := strings.Split(text, " ")
	if len(parts) != 5 {
		return place{}, fmt.Errorf("a place of %d parts, want 5", len(parts))
	}
	for i, into := range []*int64{&p.walk, &p.rows, &p.relevantSince, &p.id} {
		if *into, err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return place{}, err
		}
	}
	p.end = parts[4] == "1"
	return p, nil
}

// passedPlaces are the places of a list, of a deployment, that are to be forgotten when another walk begins. Each row
// is looked at once.
const passedPlaces = `(SELECT id, rows FROM (
		SELECT id, rows, ended, MAX(rows) OVER (PARTITION BY walk) AS last_rows, DENSE_RANK() OVER (ORDER BY walk DESC) AS age
		FROM page_boundaries WHERE deployment_id = %s AND list = %s) AS p
	WHERE ended OR rows < last_rows OR age > %d) AS passed`

// knownQuery asks for a place, unless another is to be forgotten.
var knownQuery = placeColumns + "deployment_id = ? AND list = ? AND rows = ? AND served_at > ? " +
	"AND NOT EXISTS (SELECT 1 FROM " + fmt.Sprintf(passedPlaces, "?", "?", walksKept) + " WHERE rows <> ?)"

// query leaves out a place that is about to be forgotten: it is remembered anew.
func (shared) query(of listKey, rows int64) []once {
	since := store.Now() - (placesExpire - PlacesKept).Microseconds()
	return []once{{knownQuery, []any{
		of.deploymentID, of.digest[:], rows, since, of.deploymentID, of.digest[:], rows,
	}}}
}

// forgetPlaces takes the rows in the order in which they are written: two of them would wait for each other else.
var forgetPlaces = "DELETE FROM page_boundaries WHERE id IN (SELECT id FROM page_boundaries " +
	"WHERE id IN (SELECT id FROM " + fmt.Sprintf(passedPlaces, "$1", "$2", walksKept) + ") ORDER BY rows FOR UPDATE)"

func (s shared) begin(ctx context.Context, of listKey, known string, found ...place) error {
	last := found[len(found)-1]
	if before, err := parsePlace(known); err != nil || before.rows == last.rows && before.boundary == last.boundary {
		return err
	}
	if _, err := s.db.ExecContext(ctx, forgetPlaces, of.deploymentID, of.digest[:]); err != nil {
		return err
	}
	return s.add(ctx, of, found...)
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
	_, err := s.db.ExecContext(ctx, `INSERT INTO page_boundaries AS p
		(deployment_id, list, served_at, walk, rows, relevant_since, finding_id, ended) VALUES `+rows.String()+`
		ON CONFLICT (deployment_id, list, rows) DO UPDATE SET served_at = excluded.served_at, walk = excluded.walk,
		relevant_since = excluded.relevant_since, finding_id = excluded.finding_id, ended = excluded.ended`, args...)
	return err
}

// ForgetPlaces deletes the places of all deployments that have expired. Only PostgreSQL has any: the process forgets
// its own. The errors are the database's.
func ForgetPlaces(ctx context.Context, st *store.Store) error {
	return st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.PageBoundary.Delete().Where(pageboundary.ServedAtLT(store.Now() - placesExpire.Microseconds())).Exec(ctx)
		return err
	})
}
