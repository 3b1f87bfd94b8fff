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

// Query is an ent query with selected columns, such as ent.FindingSelect.
type Query interface {
	Scan(ctx context.Context, into any) error
}

// Row is the current row of a query. Values that are scanned into a sql.Scanner are valid only until Scan returns.
type Row interface {
	Scan(into ...any) error
}

// rowsKey is the context key of the receiver.
type rowsKey struct{}

// receiver receives the rows of one query.
type receiver struct {
	each func(Row) error
	used bool
}

// EachRow runs an ent query on the Reader and calls each for every row, which scans the row. It is for lists for
// which building ent's entities costs more than the query. Predicates and policies apply as usual.
func EachRow(ctx context.Context, query Query, each func(Row) error) error {
	r := &receiver{each: each}
	var none []int64
	if err := query.Scan(context.WithValue(ctx, rowsKey{}, r), &none); err != nil {
		return err
	}
	if !r.used {
		return errors.New("EachRow: the query is not a query of the Reader")
	}
	return nil
}

// readerDriver passes rows to the receiver in the context.
type readerDriver struct{ *entsql.Driver }

// ReaderDriver returns a driver that EachRow can use.
func ReaderDriver(d *entsql.Driver) dialect.Driver { return readerDriver{d} }

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

// receive passes each row to the callback.
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

// noRows is the empty result that ent gets.
type noRows struct{}

func (noRows) Close() error                            { return nil }
func (noRows) ColumnTypes() ([]*sql.ColumnType, error) { return nil, nil }
func (noRows) Columns() ([]string, error)              { return []string{"none"}, nil }
func (noRows) Err() error                              { return nil }
func (noRows) Next() bool                              { return false }
func (noRows) NextResultSet() bool                     { return false }
func (noRows) Scan(...any) error                       { return sql.ErrNoRows }
