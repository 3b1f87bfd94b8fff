package jobs

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/palisade/palisade/services/internal/store"
)

// waiting knows which queues have runnable jobs. One query answers it for all queues of the node, so an idle node costs
// as little with many queues as with one.
type waiting struct {
	store *store.Store
	query string
	names []any // of all queues

	mu    sync.Mutex
	asked time.Time
	// found has the queues that had jobs then, and were not polled since.
	found map[string]bool
}

func newWaiting(st *store.Store, available func(queue string) string, queues map[string]*turns) *waiting {
	w := &waiting{store: st}
	values := "(CAST(? AS text))"
	for name := range queues {
		w.names = append(w.names, name)
	}
	// As a scalar subquery it is evaluated for each queue; PostgreSQL may join for EXISTS.
	w.query = st.Placeholders("SELECT column1 FROM (VALUES " + strings.Join(slices.Repeat([]string{values}, len(w.names)), ", ") +
		") AS queues WHERE (SELECT 1 " + available("column1") + " LIMIT 1) = 1")
	return w
}

// has reports whether the queue must be polled. The answer is at most as old as given.
func (w *waiting) has(ctx context.Context, queue string, old time.Duration) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Sub(w.asked) >= old {
		w.asked, w.found = now, nil // also if it fails: the queues must not ask again one after the other
		found, err := w.ask(ctx)
		if err != nil {
			return false, fmt.Errorf("find queues with jobs: %w", err)
		}
		w.found = found
	}
	has := w.found[queue]
	delete(w.found, queue)
	return has, nil
}

func (w *waiting) ask(ctx context.Context) (found map[string]bool, err error) {
	reader, _ := w.store.DB()
	if !w.store.Postgres() {
		return w.read(ctx, reader)
	}
	tx, err := reader.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // nothing was changed
	if _, err := tx.ExecContext(ctx, byIndex); err != nil {
		return nil, err
	}
	return w.read(ctx, tx)
}

func (w *waiting) read(ctx context.Context, db querier) (found map[string]bool, err error) {
	rows, err := db.QueryContext(ctx, w.query, w.names...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	found = map[string]bool{}
	for rows.Next() {
		var queue string
		if err := rows.Scan(&queue); err != nil {
			return nil, err
		}
		found[queue] = true
	}
	return found, rows.Err()
}
