package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5"
)

// Query is a query of ent that is ready to be scanned, for example ent.FindingSelect.
type Query interface {
	Scan(ctx context.Context, into any) error
}

// Packing says what Packed packs: columns of the query by their names there.
type Packing struct {
	// Values are numbers and texts, or null.
	Values []string
	// Content is a column of bytes that are never null.
	Content string
	// Once are subqueries of one value each, read beside the rows at the same moment.
	Once []Once
}

// Once is a subquery with its placeholders, ?, and their values.
type Once struct {
	Query string
	Args  []any
}

// packedKey is the context key of the packer of a query.
type packedKey struct{}

// packer lets a query be packed, and takes what comes of it.
type packer struct {
	Packing
	rows []byte
	once []sql.NullString
	used bool
}

// Packed runs a query on the Reader and appends all its rows to into as one value, which the database makes: most of what
// a short list costs is to fetch its rows and columns one by one. The query is ent's otherwise, with its predicates and
// policies. The rows, which are in its order, are read with NextPacked. Once has what p.Once asks for, also when there are no
// rows; it passes the policies by.
func Packed(ctx context.Context, query Query, p Packing, into []byte) (rows []byte, once []sql.NullString, err error) {
	pack := &packer{Packing: p, rows: into, once: make([]sql.NullString, len(p.Once))}
	var none []int64
	if err := query.Scan(context.WithValue(ctx, packedKey{}, pack), &none); err != nil {
		return into, nil, err
	}
	if !pack.used {
		return into, nil, errors.New("Packed: the query is not one of the Reader")
	}
	return pack.rows, pack.once, nil
}

var errPacked = errors.New("packed rows: not what the database was asked for")

// NextPacked reads one row into values, which has a place for each of Packing.Values and one for the content, and returns
// the rest. A value is a part of rows, and nil is null.
func NextPacked(rows []byte, values [][]byte) (rest []byte, err error) {
	for i := range values {
		colon := bytes.IndexByte(rows, ':')
		if colon < 0 {
			return nil, errPacked
		}
		size := 0
		for _, digit := range rows[:colon] {
			if size = size*10 + int(digit-'0'); digit < '0' || digit > '9' || size > len(rows) {
				return nil, errPacked
			}
		}
		null := colon == 0
		if rows = rows[colon+1:]; size > len(rows) {
			return nil, errPacked
		}
		if values[i] = nil; !null {
			values[i] = rows[:size:size]
		}
		rows = rows[size:]
	}
	return rows, nil
}

// statement wraps a query: each value becomes its length, a colon and its bytes. Null has no length: concat leaves it out.
// What is read once comes behind it, so that its placeholders do. It is made for each page, hence one builder.
func (p *packer) statement(dialectName, query string, args int) string {
	postgres := dialectName == dialect.Postgres
	var b strings.Builder
	b.Grow(len(query) + 2048)
	b.WriteString("WITH packed AS (SELECT ")
	if postgres {
		b.WriteString("string_agg(convert_to(concat(")
	} else {
		b.WriteString("CAST(group_concat(concat(")
	}
	for _, column := range p.Values {
		value := func() {
			b.WriteString(column)
			if postgres {
				b.WriteString("::text")
			}
		}
		b.WriteString("octet_length(")
		value()
		b.WriteString("), ':', ")
		value()
		b.WriteString(", ")
	}
	b.WriteString("octet_length(" + p.Content + "), ':'")
	if postgres {
		b.WriteString("), 'UTF8') || " + p.Content + ", ''::bytea)")
	} else {
		b.WriteString(", " + p.Content + "), '') AS BLOB)")
	}
	b.WriteString(" AS packed_rows FROM (" + query + ") AS page) SELECT packed_rows")
	for _, once := range p.Once {
		b.WriteString(", (")
		rest := once.Query
		for postgres {
			before, after, found := strings.Cut(rest, "?")
			if !found {
				break
			}
			args++
			b.WriteString(before)
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(args))
			rest = after
		}
		b.WriteString(rest)
		b.WriteByte(')')
	}
	b.WriteString(" FROM packed")
	return b.String()
}

// readerDriver packs the rows of a query that is to be.
type readerDriver struct{ *entsql.Driver }

// ReaderDriver is the driver of Reader over a pool: what Packed needs.
func ReaderDriver(d *entsql.Driver) dialect.Driver { return readerDriver{d} }

// Query runs a query.
func (d readerDriver) Query(ctx context.Context, query string, args, into any) error {
	p, ok := ctx.Value(packedKey{}).(*packer)
	if !ok {
		return d.Driver.Query(ctx, query, args, into)
	}
	list, ok := args.([]any)
	if !ok {
		return fmt.Errorf("the arguments of a query are %T", args)
	}
	statement := p.statement(d.Dialect(), query, len(list))
	for _, once := range p.Once {
		list = append(list, once.Args...)
	}
	if into, ok := into.(*entsql.Rows); ok {
		into.ColumnScanner = noRows{}
	}
	if d.Dialect() == dialect.Postgres {
		ok, err := onPgx(ctx, d.DB(), func(conn *pgx.Conn) error { return p.receivePgx(ctx, conn, statement, list) })
		if ok {
			return err
		}
	}
	var rows entsql.Rows
	if err := d.Driver.Query(ctx, statement, list, &rows); err != nil {
		return err
	}
	return errors.Join(receive[sql.RawBytes](p, rows), rows.Close())
}

// receive takes the one row of a packed query; T is a value in memory of the driver, until the next row.
func receive[T ~[]byte](p *packer, rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
}) error {
	p.used = true
	var packed T
	into := append(make([]any, 0, 1+len(p.once)), &packed)
	for i := range p.once {
		into = append(into, &p.once[i])
	}
	for rows.Next() { // once
		if err := rows.Scan(into...); err != nil {
			return err
		}
		p.rows = append(p.rows, packed...)
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
