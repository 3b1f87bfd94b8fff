package store

import (
	"context"
	"fmt"
	"time"
)

// upkeepLock is the number of the lock under which planner statistics are refreshed. It is not that of migrations,
// which every node asks for when it starts.
const upkeepLock = 7_210_463_915

// lookInterval is how often a node asks whether others still hold a lock.
const lookInterval = 100 * time.Millisecond

// alone runs fn on PostgreSQL while nobody else runs one under the same lock.
//
// The lock is asked for again and again, in a new transaction each time: whoever has it may do something to an index
// CONCURRENTLY, which waits for the end of each transaction that has a snapshot, and so for all that wait for a lock in
// their turn.
func (s *Store) alone(ctx context.Context, number int64, doing string, fn func() error) error {
	for {
		ours, err := s.aloneNow(ctx, number, fn)
		if err != nil && !ours {
			return fmt.Errorf("take the lock for %s: %w", doing, err)
		}
		if ours {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for other nodes that are %s: %w", doing, ctx.Err())
		case <-time.After(lookInterval):
		}
	}
}

// aloneNow does so if nobody has the lock, and tells whether fn was called.
func (s *Store) aloneNow(ctx context.Context, number int64, fn func() error) (ours bool, err error) {
	// The lock is that of a transaction, which stays open until fn has returned: behind a pooler that changes the server's
	// connection after each statement (PgBouncer, transaction mode), a lock of the session would stay with a connection
	// that others get next. It is none of the pool that serves calls.
	conn, err := s.patientDB.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()                      // back to the pool
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil) // fn ends when ctx does, and may have to clean up
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // it changed nothing, and the lock goes with it in any case
	if err := tx.QueryRowContext(ctx, "SELECT pg_try_advisory_xact_lock($1)", number).Scan(&ours); err != nil || !ours {
		return false, err
	}
	// The connection is idle while fn works. This statement also ends the portal of the one before, which has kept its
	// snapshot: fn itself would wait for that (see alone).
	if _, err := tx.ExecContext(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
		return false, err
	}
	return true, fn()
}
