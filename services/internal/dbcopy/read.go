package dbcopy

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"hash"
)

const (
	// firstRows is the size of the first batch: small, because the size of the rows is unknown. Later batches have
	// about batchBytes.
	firstRows  = 100
	batchBytes = 4 << 20
)

// position is how far the rows of a table have been read or copied.
type position struct {
	key         string // key of the last row
	rows, bytes int64
	checksum    string // SHA-256 of all rows so far, in hexadecimal
}

// tableReader reads the rows of a table in key order, in batches, and computes their checksum.
type tableReader struct {
	conn      *sql.Conn
	postgres  bool
	table     *table
	normalize *normalizer
	maxRows   int // maximum rows of a batch
	// requeue reads running jobs as available ones.
	requeue bool

	sum    hash.Hash
	at     position
	last   any // key of the last row
	buffer []byte
}

func newReader(conn *sql.Conn, postgres bool, t *table, n *normalizer, maxRows int) *tableReader {
	return &tableReader{conn: conn, postgres: postgres, table: t, normalize: n, maxRows: maxRows, sum: sha256.New()}
}

// next reads up to limit rows. It returns none at the end.
func (r *tableReader) next(ctx context.Context, limit int64) (_ [][]any, err error) {
	query, args := r.query(min(limit, r.batchRows()))
	rows, err := r.conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", r.table.name, err)
	}
	defer func() { _ = rows.Close() }()
	var out [][]any
	before := r.at.bytes
	// Rows that are much larger than the previous ones end a batch early.
	for r.at.bytes-before < 2*batchBytes && rows.Next() {
		row := make([]any, len(r.table.columns))
		targets := make([]any, len(row))
		for i := range row {
			targets[i] = &row[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, fmt.Errorf("read %s: %w", r.table.name, err)
		}
		if err := r.take(row); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", r.table.name, err)
	}
	r.at.checksum = hex.EncodeToString(r.sum.Sum(nil))
	return out, nil
}

// batchRows aims at batchBytes, based on the average row so far.
func (r *tableReader) batchRows() int64 {
	maxRows := int64(r.maxRows)
	if r.at.rows == 0 {
		return min(firstRows, maxRows)
	}
	return max(1, min(batchBytes*r.at.rows/max(1, r.at.bytes), maxRows))
}

func (r *tableReader) query(limit int64) (string, []any) {
	key, compare := quote(r.table.key), ""
	order := key
	if r.postgres && r.table.keyIsText() {
		order += ` COLLATE "C"` // SQLite's order
	}
	var args []any
	if r.last != nil {
		compare, args = " WHERE "+order+" > $1", append(args, r.last)
	}
	return fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s LIMIT %d", r.table.selectList(r.postgres), quote(r.table.name), compare, order, limit), args
}

// take normalizes a row in place and adds it to the checksum.
func (r *tableReader) take(row []any) error {
	t := r.table
	raw := row[t.keyIndex()]
	for i := range row {
		value, err := r.normalize.value(&t.columns[i], row[i])
		if err != nil {
			return &RowError{Table: t.name, Key: fmt.Sprint(raw), Column: t.columns[i].name, Err: err}
		}
		row[i] = value
		if r.requeue && t.name == "river_job" && t.columns[i].name == "state" && value == "running" {
			row[i] = "available"
		}
	}
	encoded, err := appendRow(r.buffer[:0], t.columns, row)
	if err != nil {
		return &RowError{Table: t.name, Key: fmt.Sprint(raw), Err: err}
	}
	r.buffer = encoded
	r.sum.Write(encoded)
	r.at.rows++
	r.at.bytes += int64(len(encoded))
	r.last = row[t.keyIndex()]
	r.at.key = fmt.Sprint(r.last)
	return nil
}

// RowError names the row that cannot be copied.
type RowError struct {
	Table, Key string
	Column     string // empty when unknown
	Err        error
}

func (e *RowError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("table %s, row %s: %v", e.Table, e.Key, e.Err)
	}
	return fmt.Sprintf("table %s, row %s: column %s %v", e.Table, e.Key, e.Column, e.Err)
}

// Unwrap returns the cause.
func (e *RowError) Unwrap() error { return e.Err }
