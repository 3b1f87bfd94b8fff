package store

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// onPgx runs a query on the underlying pgx connection. database/sql would copy each value and start a goroutine
// that watches the context. ok is false when the connection is wrapped, or when it was dead before the query was
// sent: the caller then runs the query through database/sql.
func onPgx(ctx context.Context, db *sql.DB, query func(*pgx.Conn) error) (ok bool, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return true, err
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	err = conn.Raw(func(connection any) error {
		var direct *stdlib.Conn
		if direct, ok = connection.(*stdlib.Conn); !ok {
			return nil
		}
		err := query(direct.Conn())
		if err != nil && pgconn.SafeToRetry(err) {
			ok = false
			return driver.ErrBadConn // removes it from the pool
		}
		return err
	})
	if !ok {
		return false, nil
	}
	return true, err
}

func (r *receiver) receivePgx(ctx context.Context, conn *pgx.Conn, query string, args []any) error {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	return r.receive(rows)
}
