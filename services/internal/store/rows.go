package store

import (
	"context"
	"database/sql"
	"errors"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// Query is a query of ent that is ready to be scanned, for example ent.FindingSelect.
type Query interface {
	Scan(ctx context.Context, into any) error
}

// rowsKey is the context key of the receiver of rows.
type rowsKey struct{}

// receiver takes the rows of one query.
type receiver struct {
	each func(rows *sql.Rows) error
	used bool
}

// EachRow runs a query on the Reader and calls each for every row, which scans it: for lists whose rows would cost more in
// ent's hands than in the database. The query is ent's otherwise, with its predicates and policies.
func EachRow(ctx context.Context, query Query, each func(rows *sql.Rows) error) error {
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
	var rows entsql.Rows
	if err := d.Driver.Query(ctx, query, args, &rows); err != nil {
		return err
	}
	err := r.receive(rows)
	if into, ok := into.(*entsql.Rows); ok {
		into.ColumnScanner = noRows{}
	}
	return err
}

func (r *receiver) receive(rows entsql.Rows) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	r.used = true
	found, ok := rows.ColumnScanner.(*sql.Rows)
	if !ok {
		return errors.New("EachRow: rows that are not those of database/sql")
	}
	for found.Next() {
		if err := r.each(found); err != nil {
			return err
		}
	}
	return found.Err()
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
