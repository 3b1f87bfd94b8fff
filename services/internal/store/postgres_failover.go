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

// shedInterval is how often all connections are replaced, at most, while a database takes no changes.
const shedInterval = time.Second

// generation tells connections that were made before a database was found to take no changes from those made after.
// After a failover the old primary may be there as a standby, and connections to it would go on reading what is out of
// date and refusing what is to be written: all of them are replaced by new ones, which reach whichever server is the
// primary now.
type generation struct {
	current atomic.Int64
	shed    atomic.Int64 // when the last one ended, in microseconds
}

// generationKey is where a connection keeps its number.
const generationKey = "palisade generation"

// watch closes each connection whose server refuses a change because it is read only, and ends the generation of all
// others.
func (g *generation) watch(config *pgx.ConnConfig) {
	next := config.OnPgError
	config.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		keep := next == nil || next(conn, err) // it ends connections after fatal errors
		if err.Code != apierr.StateReadOnly {
			return keep
		}
		if number, known := conn.CustomData()[generationKey].(int64); known {
			g.end(number)
		}
		return false
	}
}

// end lets no connection be used again that is as old as the one with this number.
func (g *generation) end(number int64) {
	last, now := g.shed.Load(), Now()
	if now-last < shedInterval.Microseconds() || !g.shed.CompareAndSwap(last, now) {
		return
	}
	g.current.CompareAndSwap(number, number+1)
}

// ReplaceConnections lets no connection to PostgreSQL be used again that was made before; those in use end what they do
// first.
func (s *Store) ReplaceConnections() {
	if s.generation != nil {
		s.generation.current.Add(1)
	}
}

// options let the pool give each connection its number, and replace those that are too old before they are used again.
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
