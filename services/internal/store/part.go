package store

import (
	"context"
	"database/sql"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"
)

// part is what one Write has of a transaction that several share (see group). To ent it is a transaction that is
// committed and rolled back like any: a savepoint, unless the Write has the transaction for itself. That saves two
// statements, and SQLite a copy of each page that a large import changes.
type part struct {
	tx    *sql.Tx
	alone bool
	ended bool
	// kept says that what was written is to be stored with the transaction.
	kept bool
	// lost is why the whole transaction is gone: SQLite rolls it back by itself when the disk is full or broken.
	lost error
}

var _ entsql.ExecQuerier = (*part)(nil)

// begin returns it as ent's transaction.
func (p *part) begin(ctx context.Context) (*entsql.Tx, error) {
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

// Commit leaves it to the group to store what was written.
func (p *part) Commit() error {
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

// Rollback undoes what was written in this part.
func (p *part) Rollback() error {
	if p.ended {
		return sql.ErrTxDone
	}
	p.ended = true
	return p.control("ROLLBACK TO part; RELEASE part")
}

func (p *part) control(statement string) error {
	if p.alone {
		return nil // the group commits or rolls back the whole transaction
	}
	if _, err := p.tx.ExecContext(context.Background(), statement); err != nil {
		p.lost = fmt.Errorf("the transaction that several calls share is lost: %w", err)
	}
	return p.lost
}

// ExecContext runs a statement of the part.
func (p *part) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if p.ended {
		return nil, sql.ErrTxDone
	}
	return p.tx.ExecContext(ctx, query, args...)
}

// QueryContext runs a query of the part.
func (p *part) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if p.ended {
		return nil, sql.ErrTxDone
	}
	return p.tx.QueryContext(ctx, query, args...)
}
