package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/palisade/palisade/services/internal/apierr"
)

// errRolledBack means that SQLite has rolled a transaction back after an error. A later statement would commit on its
// own.
var errRolledBack = apierr.Unavailable(errors.New("SQLite has rolled the transaction back after an earlier error"), "the database rolled the change back: try again")

// writerConnector opens the writer's connection. Inside a transaction, the end of a context stops the work between
// statements and never within one. SQLite rolls back the whole transaction when a statement is interrupted, and
// other Writes may share it (see group).
type writerConnector struct {
	sqliteConnector
	checkpoints *checkpoints
}

func (c writerConnector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.sqliteConnector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn, ok := opened.(*sqlite3.SQLiteConn)
	if !ok {
		return nil, fmt.Errorf("a connection to SQLite is a %T", opened)
	}
	if _, err := conn.ExecContext(ctx, logSizeLimit, nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &writerConn{SQLiteConn: conn, checkpoints: c.checkpoints}, nil
}

// writerConn is a connection of writerConnector. Like every driver.Conn it is used by one goroutine at a time.
type writerConn struct {
	*sqlite3.SQLiteConn
	checkpoints   *checkpoints
	inTransaction bool
	deferred      bool // whether commits leave checkpoints to the background
}

const (
	// logSizeLimit truncates the log to 64 MiB when it restarts. Otherwise the log of a large import would keep its
	// gigabytes on the disk.
	logSizeLimit = "PRAGMA journal_size_limit=67108864"
	// autoCheckpointOff and autoCheckpointOn set whether a commit runs a checkpoint when the log has 1,000 pages
	// (SQLite's default).
	autoCheckpointOff = "PRAGMA wal_autocheckpoint=0"
	autoCheckpointOn  = "PRAGMA wal_autocheckpoint=1000"
)

// setDeferred sets whether commits leave checkpoints to the background.
func (c *writerConn) setDeferred(deferred bool) {
	if deferred == c.deferred {
		return
	}
	statement := autoCheckpointOn
	if deferred {
		statement = autoCheckpointOff
	}
	if _, err := c.SQLiteConn.ExecContext(context.Background(), statement, nil); err == nil {
		c.deferred = deferred
	}
}

// statementContext returns the context for one statement.
func (c *writerConn) statementContext(ctx context.Context) (context.Context, error) {
	if !c.inTransaction {
		return ctx, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.AutoCommit() {
		return nil, errRolledBack
	}
	return context.WithoutCancel(ctx), nil
}

func (c *writerConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.SQLiteConn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	c.inTransaction = true
	return writerTx{tx, c, time.Now()}, nil
}

func (c *writerConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	ctx, err := c.statementContext(ctx)
	if err != nil {
		return nil, err
	}
	return c.SQLiteConn.ExecContext(ctx, query, args)
}

func (c *writerConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	ctx, err := c.statementContext(ctx)
	if err != nil {
		return nil, err
	}
	return c.SQLiteConn.QueryContext(ctx, query, args)
}

func (c *writerConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	prepared, err := c.SQLiteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	stmt, ok := prepared.(*sqlite3.SQLiteStmt)
	if !ok {
		return nil, fmt.Errorf("a statement of SQLite is a %T", prepared)
	}
	return &writerStmt{stmt, c}, nil
}

// writerStmt is a prepared statement of a writerConn.
type writerStmt struct {
	*sqlite3.SQLiteStmt
	conn *writerConn
}

func (s *writerStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	ctx, err := s.conn.statementContext(ctx)
	if err != nil {
		return nil, err
	}
	return s.SQLiteStmt.ExecContext(ctx, args)
}

func (s *writerStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	ctx, err := s.conn.statementContext(ctx)
	if err != nil {
		return nil, err
	}
	return s.SQLiteStmt.QueryContext(ctx, args)
}

// writerTx is a transaction of a writerConn.
type writerTx struct {
	driver.Tx
	conn  *writerConn
	began time.Time
}

func (t writerTx) Commit() error {
	if t.conn.AutoCommit() {
		t.conn.inTransaction = false
		return errRolledBack
	}
	t.conn.inTransaction = false
	if time.Since(t.began) >= longTransaction {
		t.conn.checkpoints.deferOne()
		defer t.conn.checkpoints.runDeferred()
	}
	t.conn.setDeferred(t.conn.checkpoints.isDeferred())
	return t.Tx.Commit()
}

func (t writerTx) Rollback() error {
	t.conn.inTransaction = false
	return t.Tx.Rollback()
}
