package store

import (
	"context"
	"fmt"
	"time"
)

// statisticsLock is the key of the advisory lock for refreshing planner statistics. Migrations have another key,
// because every node acquires it when it starts.
const statisticsLock = 7_210_463_915

// lockRetryInterval is the time between two attempts to acquire an advisory lock.
const lockRetryInterval = 100 * time.Millisecond

// withLock runs fn on PostgreSQL while it holds the advisory lock with this number. It blocks until the lock is
// free.
//
// It polls, and opens a new transaction for each attempt. A transaction that waited for the lock would hold a
// snapshot, and the lock's holder may run a statement with CONCURRENTLY, which waits for every older snapshot: a
// deadlock.
func (s *Store) withLock(ctx context.Context, number int64, doing string, fn func() error) error {
	for {
		acquired, err := s.tryWithLock(ctx, number, fn)
		if err != nil && !acquired {
			return fmt.Errorf("acquire the lock for %s: %w", doing, err)
		}
		if acquired {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for other nodes that are %s: %w", doing, ctx.Err())
		case <-time.After(lockRetryInterval):
		}
	}
}

// tryWithLock runs fn if the lock is free. It returns whether it acquired the lock, and so called fn.
func (s *Store) tryWithLock(ctx context.Context, number int64, fn func() error) (acquired bool, err error) {
	// The lock belongs to a transaction that stays open until fn has returned. A session lock would not work behind a
	// pooler that changes the server connection after each statement (PgBouncer, transaction mode): the lock would stay
	// with a connection that the pooler gives to others. The connection comes from longQueryDB, so that requests keep
	// theirs.
	conn, err := s.longQueryDB.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()                      // returns it to the pool
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil) // fn ends when ctx does, and may have to clean up afterwards
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written; the lock is released in any case
	if err := tx.QueryRowContext(ctx, "SELECT pg_try_advisory_xact_lock($1)", number).Scan(&acquired); err != nil || !acquired {
		return false, err
	}
	// The connection is idle while fn runs. This statement also closes the portal of the previous one, and with it the
	// portal's snapshot, for which fn would wait (see withLock).
	if _, err := tx.ExecContext(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
		return false, err
	}
	return true, fn()
}
