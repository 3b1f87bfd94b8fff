package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// ReadRow reads one row by a key, for queries of every request. It returns sql.ErrNoRows when there is none.
// Placeholders are $1, $2, … on both databases. On SQLite, ctx only limits the wait for a connection: the query
// takes microseconds, less than database/sql and the driver need to make it interruptible.
func (s *Store) ReadRow(ctx context.Context, query string, args []any, into ...any) error {
	if s.Postgres() {
		ok, err := onPgx(ctx, s.readerDB, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, query, args...).Scan(into...) })
		if ok {
			return err
		}
		return s.readerDB.QueryRowContext(ctx, query, args...).Scan(into...)
	}
	conn, err := s.readerDB.Conn(ctx)
	if err != nil {
		return err
	}
	err = conn.QueryRowContext(context.WithoutCancel(ctx), query, args...).Scan(into...)
	return errors.Join(err, conn.Close())
}
