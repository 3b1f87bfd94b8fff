package store

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/palisade/palisade/services/internal/apierr"
)

// advanceInterval is the minimum time between two replacements of all connections while the database is read-only.
const advanceInterval = time.Second

// generation numbers the connections of a pool, so that all connections from before a failover can be discarded.
// After a failover the old primary may still run as a standby. Its connections would read stale data and refuse
// writes. New connections reach the current primary.
type generation struct {
	current  atomic.Int64
	advanced atomic.Int64 // when the generation last advanced, in microseconds since 1970
}

// generationKey is the key of the generation in a connection's custom data.
const generationKey = "palisade generation"

// watch closes a connection whose server refuses a write because it is read-only, and discards all others of its
// generation.
func (g *generation) watch(config *pgx.ConnConfig) {
	next := config.OnPgError
	config.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		keep := next == nil || next(conn, err) // pgx's handler closes connections after fatal errors
		if err.Code != apierr.StateReadOnly {
			return keep
		}
		if number, known := conn.CustomData()[generationKey].(int64); known {
			g.advance(number)
		}
		return false
	}
}

// advance discards all connections of this generation and older ones.
func (g *generation) advance(number int64) {
	last, now := g.advanced.Load(), Now()
	if now-last < advanceInterval.Microseconds() || !g.advanced.CompareAndSwap(last, now) {
		return
	}
	g.current.CompareAndSwap(number, number+1)
}

// ReplaceConnections discards all existing PostgreSQL connections. Connections in use finish their work first.
func (s *Store) ReplaceConnections() {
	if s.generation != nil {
		s.generation.current.Add(1)
	}
}

// options give each connection its generation, and reject connections of older generations when the pool reuses
// them.
func (g *generation) options() []stdlib.OptionOpenDB {
	return []stdlib.OptionOpenDB{
		stdlib.OptionAfterConnect(func(_ context.Context, conn *pgx.Conn) error {
			conn.PgConn().CustomData()[generationKey] = g.current.Load()
			return nil
		}),
		stdlib.OptionResetSession(func(_ context.Context, conn *pgx.Conn) error {
			if number, known := conn.PgConn().CustomData()[generationKey].(int64); known && number < g.current.Load() {
				return driver.ErrBadConn
			}
			return nil
		}),
	}
}
