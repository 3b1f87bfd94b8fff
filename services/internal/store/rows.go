package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5"
)

// Query is a query of ent that is ready to be scanned, for example ent.FindingSelect.
type Query interface {
	Scan(ctx context.Context, into any) error
}

// Row is the current row of a query. What is scanned into a sql.Scanner is valid until Scan returns.
type Row interface {
	Scan(into ...any) error
}

// rowsKey is the context key of the receiver of rows.
type rowsKey struct{}

// receiver takes the rows of one query.
type receiver struct {
	each func(Row) error
	used bool
}

// EachRow runs a query on the Reader and calls each for every row, which scans it: for lists whose rows would cost more
// in ent's hands than in the database. The query is ent's otherwise, with its predicates and policies.
func EachRow(ctx context.Context, query Query, each func(Row) error) error {
	r := &receiver{each: each}
	var none []int64
	if err := query.Scan(context.WithValue(ctx, rowsKey{}, r), &none); err != nil {
		return err
	}
	if !r.used {
		return errors.New("EachRow: the query is not one of the Reader")
	}
	return nil
}

// readerDriver hands rows to a receiver in the context.
type readerDriver struct{ *entsql.Driver }

// ReaderDriver is the driver of Reader over a pool: what EachRow needs.
func ReaderDriver(d *entsql.Driver) dialect.Driver { return readerDriver{d} }

// Query runs a query.
func (d readerDriver) Query(ctx context.Context, query string, args, into any) error {
	r, ok := ctx.Value(rowsKey{}).(*receiver)
	if !ok {
		return d.Driver.Query(ctx, query, args, into)
	}
	list, ok := args.([]any)
	if !ok {
		return fmt.Errorf("the arguments of a query are %T", args)
	}
	if into, ok := into.(*entsql.Rows); ok {
		into.ColumnScanner = noRows{}
	}
	if d.Dialect() == dialect.Postgres {
		ok, err := onPgx(ctx, d.DB(), func(conn *pgx.Conn) error { return r.receivePgx(ctx, conn, query, list) })
		if ok {
			return err
		}
	}
	rows, err := d.DB().QueryContext(ctx, query, list...)
	if err != nil {
		return err
	}
	return errors.Join(r.receive(rows), rows.Close())
}

// receive takes the rows of a driver.
func (r *receiver) receive(rows interface {
	Row
	Next() bool
	Err() error
}) error {
	r.used = true
	for rows.Next() {
		if err := r.each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// noRows is what is left for ent.
type noRows struct{}

func (noRows) Close() error                            { return nil }
func (noRows) ColumnTypes() ([]*sql.ColumnType, error) { return nil, nil }
func (noRows) Columns() ([]string, error)              { return []string{"none"}, nil }
func (noRows) Err() error                              { return nil }
func (noRows) Next() bool                              { return false }
func (noRows) NextResultSet() bool                     { return false }
func (noRows) Scan(...any) error                       { return sql.ErrNoRows }
