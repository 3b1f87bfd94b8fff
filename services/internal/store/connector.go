package store

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/mattn/go-sqlite3"
)

// connectorKey is the context key of what WithConnector adds.
type connectorKey struct{}

// WithConnector lets wrap put itself between every pool that Open opens with the returned context and the driver of the
// database, as net/http/httptrace does for connections of HTTP: tests count and explain the statements of a real
// server.
func WithConnector(ctx context.Context, wrap func(driver.Connector) driver.Connector) context.Context {
	return context.WithValue(ctx, connectorKey{}, wrap)
}

// openPool opens a pool of connections of a driver.
func openPool(ctx context.Context, connector driver.Connector) *sql.DB {
	if wrap, ok := ctx.Value(connectorKey{}).(func(driver.Connector) driver.Connector); ok {
		connector = wrap(connector)
	}
	return sql.OpenDB(connector)
}

// sqliteConnector opens connections to one SQLite file.
type sqliteConnector struct{ dsn string }

func (c sqliteConnector) Connect(context.Context) (driver.Conn, error) { return c.Driver().Open(c.dsn) }

func (c sqliteConnector) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }
