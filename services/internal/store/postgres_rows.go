package store

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
)

// receiveDirectly runs a statement on pgx's own connection: database/sql would copy the page, and watch the context in a goroutine of
// its own. ok is false where the connection is wrapped, or was found dead before it was used: nothing has been received.
func (p *packer) receiveDirectly(ctx context.Context, db *sql.DB, statement string, args []any) (ok bool, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return true, err
	}
	defer func() { _ = conn.Close() }() // back to the pool
	err = conn.Raw(func(connection any) error {
		var direct *stdlib.Conn
		if direct, ok = connection.(*stdlib.Conn); !ok {
			return nil
		}
		err := p.receivePgx(ctx, direct, statement, args)
		if err != nil && pgconn.SafeToRetry(err) {
			ok = false
			return driver.ErrBadConn // out of the pool with it
		}
		return err
	})
	if !ok {
		return false, nil
	}
	return true, err
}

func (p *packer) receivePgx(ctx context.Context, conn *stdlib.Conn, statement string, args []any) error {
	rows, err := conn.Conn().Query(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	return receive[pgtype.DriverBytes](p, rows)
}
