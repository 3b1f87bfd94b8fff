package store

import (
	"context"
	"database/sql"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"
)

// savepoint is the transaction of one Write inside a group (see group). ent commits it and rolls it back like any
// other. A Write that has the transaction for itself uses no SQL savepoint: that saves two statements, and a copy
// of each page that a large import changes.
type savepoint struct {
	tx    *sql.Tx
	alone bool
	ended bool
	// kept: the Write was committed, and the group's transaction must store it.
	kept bool
	// lost is the error that ended the whole transaction: SQLite rolls back by itself when the disk is full or fails.
	lost error
}

var _ entsql.ExecQuerier = (*savepoint)(nil)

// begin starts the savepoint and returns it as an ent transaction.
func (p *savepoint) begin(ctx context.Context) (*entsql.Tx, error) {
	if err := ctx.Err(); err != nil {
		p.ended = true
		return nil, err
	}
	if err := p.control("SAVEPOINT part"); err != nil {
		p.ended = true
		return nil, err
	}
	return &entsql.Tx{Conn: entsql.Conn{ExecQuerier: p}, Tx: p}, nil
}

// Commit releases the savepoint. The group stores it with its own commit.
func (p *savepoint) Commit() error {
	if p.ended {
		return sql.ErrTxDone
	}
	p.ended = true
	if err := p.control("RELEASE part"); err != nil {
		return err
	}
	p.kept = true
	return nil
}

// Rollback undoes the Write.
func (p *savepoint) Rollback() error {
	if p.ended {
		return sql.ErrTxDone
	}
	p.ended = true
	return p.control("ROLLBACK TO part; RELEASE part")
}

func (p *savepoint) control(statement string) error {
	if p.alone {
		return nil // the group commits or rolls back
	}
	if _, err := p.tx.ExecContext(context.Background(), statement); err != nil {
		p.lost = fmt.Errorf("the shared transaction is lost: %w", err)
	}
	return p.lost
}

func (p *savepoint) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if p.ended {
		return nil, sql.ErrTxDone
	}
	return p.tx.ExecContext(ctx, query, args...)
}

func (p *savepoint) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if p.ended {
		return nil, sql.ErrTxDone
	}
	return p.tx.QueryContext(ctx, query, args...)
}
