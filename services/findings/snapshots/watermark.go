package snapshots

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/services/internal/store"
)

// watermark is the id up to which all events have been seen and no more can be committed.
//
// On SQLite transactions commit in order, so that is the highest id. On PostgreSQL an open transaction may hold lower
// ids than committed ones. So each reading of the highest id is stored with a transaction number assigned after it.
// When all transactions below that number have ended, the events up to the id are complete. A transaction gets its
// number when it writes events or earlier: it writes findings first.
type watermark struct {
	id       int64
	readings []reading
}

// reading is one reading of the database.
type reading struct {
	highest int64 // highest event id
	// All transactions below ended have ended. Transactions that may hold events below highest have numbers below next.
	// Both are 0 on SQLite.
	ended, next int64
}

// maxReadings limits the stored readings while a transaction stays open; the oldest are kept.
const maxReadings = 64

// observe adds a new reading and returns the watermark that is valid after the events after the current watermark have
// been read. It must be called before reading them.
func (w watermark) observe(r reading) watermark {
	next := watermark{id: w.id}
	for _, earlier := range append(w.readings[:len(w.readings):len(w.readings)], r) {
		switch n := len(next.readings); {
		case r.ended >= earlier.next:
			next.id = max(next.id, earlier.highest)
		case n > 0 && next.readings[n-1].highest == earlier.highest, n == maxReadings:
			// The previous reading is sufficient.
		default:
			next.readings = append(next.readings, earlier)
		}
	}
	return next
}

// readHighest reads the highest event.
func readHighest(ctx context.Context, st *store.Store) (r reading, err error) {
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
