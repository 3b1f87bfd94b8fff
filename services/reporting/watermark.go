package reporting

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/services/internal/store"
)

// watermark is how far the events are known: all with ids up to it have been seen, and none can come any more.
//
// On SQLite transactions commit one after another, so that is the highest id. On PostgreSQL a transaction that is still
// open may hold lower ids than those which others have committed. So each reading of the highest id is kept with a
// transaction number that was given away after it; once all transactions below that have ended, the events up to that
// id are all there are. A transaction has its number when it writes events: findings come first.
type watermark struct {
	id       int64
	readings []reading
}

// reading is what the database said at one moment.
type reading struct {
	highest int64 // id of an event
	// All transactions below ended have done so, and those that may have lower events than highest are below next. Both
	// are 0 on SQLite.
	ended, next int64
}

// maxReadings bounds what is kept while a transaction stays open for long; those that are kept do.
const maxReadings = 64

// take takes a new reading in, before the events behind the watermark are read, and returns the watermark that holds
// once they have been.
func (w watermark) take(r reading) watermark {
	next := watermark{id: w.id}
	for _, earlier := range append(w.readings[:len(w.readings):len(w.readings)], r) {
		switch n := len(next.readings); {
		case r.ended >= earlier.next:
			next.id = max(next.id, earlier.highest)
		case n > 0 && next.readings[n-1].highest == earlier.highest, n == maxReadings:
			// The one before says the same sooner.
		default:
			next.readings = append(next.readings, earlier)
		}
	}
	return next
}

// read asks the database for its highest event.
func read(ctx context.Context, st *store.Store) (r reading, err error) {
	reader, _ := st.DB()
	if st.Postgres() {
		err = reader.QueryRowContext(ctx, `SELECT COALESCE((SELECT MAX(id) FROM finding_events), 0),
			CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)`).Scan(&r.highest, &r.ended)
		if err == nil {
			r.next, err = st.NewTransaction(ctx)
		}
	} else {
		err = reader.QueryRowContext(ctx, "SELECT COALESCE(MAX(id), 0) FROM finding_events").Scan(&r.highest)
	}
	if err != nil {
		return reading{}, fmt.Errorf("read the highest event: %w", err)
	}
	return r, nil
}
