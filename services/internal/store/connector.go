package store

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/mattn/go-sqlite3"
)

// connectorKey is the context key of WithConnector.
type connectorKey struct{}

// WithConnector sets a wrapper around the driver of every pool that Open opens with the returned context. Tests use
// it to count and explain the statements of a real server, like net/http/httptrace for HTTP connections.
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
