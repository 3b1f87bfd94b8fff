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

// errRolledBack says that SQLite has ended a transaction by itself. A statement after that would be stored alone.
var errRolledBack = apierr.Unavailable(errors.New("SQLite has rolled the transaction back after an earlier error"), "the database took back the change: try again")

// writerConnector opens the connection that writes. Inside a transaction, a context that ends stops it between
// statements and not within one: a statement that SQLite is told to interrupt takes the whole transaction with it, and
// so the work of others that share it (see group).
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
	leaves        bool // checkpoints to others
}

const (
	// logSizeLimit lets the log end at 64 MiB when it begins anew: a large import would leave its gigabytes on the disk.
	logSizeLimit = "PRAGMA journal_size_limit=67108864"
	// leaveCheckpoints and makeCheckpoints say whether a commit that finds 1,000 pages in the log moves them (as SQLite
	// does).
	leaveCheckpoints = "PRAGMA wal_autocheckpoint=0"
	makeCheckpoints  = "PRAGMA wal_autocheckpoint=1000"
)

// leave says whether the commits from now on leave the checkpoint to others.
func (c *writerConn) leave(leaves bool) {
	if leaves == c.leaves {
		return
	}
	statement := makeCheckpoints
	if leaves {
		statement = leaveCheckpoints
	}
	if _, err := c.SQLiteConn.ExecContext(context.Background(), statement, nil); err == nil {
		c.leaves = leaves
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
		t.conn.checkpoints.expect()
		defer t.conn.checkpoints.moveAside()
	}
	t.conn.leave(t.conn.checkpoints.expected())
	return t.Tx.Commit()
}

func (t writerTx) Rollback() error {
	t.conn.inTransaction = false
	return t.Tx.Rollback()
}
