package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// rawBatch is how many rows one INSERT of the comparison has; more are not faster.
const rawBatch = 100

// rawStore is a copy of the server's findings and events, with the same rows, indexes and settings, into which the rows
// of an upload are inserted as fast as SQL allows.
type rawStore struct {
	db     *database
	schema string // "raw." on PostgreSQL
}

// copyTables makes the copy: of the whole file on SQLite, of the two tables on PostgreSQL.
func copyTables(ctx context.Context, from *database, dir string) (*rawStore, error) {
	if !from.postgres() {
		file := filepath.Join(dir, "raw.db")
		if err := from.copySQLite(ctx, file); err != nil {
			return nil, fmt.Errorf("copy the database: %w", err)
		}
		db, err := sql.Open("sqlite3", sqliteDSN(file))
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		return &rawStore{db: &database{DB: db, drop: func() error { return nil }}}, nil
	}
	_, err := from.ExecContext(ctx, `CREATE SCHEMA raw;
		CREATE TABLE raw.findings (LIKE findings INCLUDING ALL); INSERT INTO raw.findings SELECT * FROM findings;
		CREATE TABLE raw.finding_events (LIKE finding_events INCLUDING ALL); INSERT INTO raw.finding_events SELECT * FROM finding_events;
		ANALYZE raw.findings, raw.finding_events`)
	if err != nil {
		return nil, fmt.Errorf("copy the tables: %w", err)
	}
	db, err := sql.Open("pgx", from.url)
	if err != nil {
		return nil, err
	}
	return &rawStore{db: &database{DB: db, url: from.url, drop: func() error { return nil }}, schema: "raw."}, nil
}

func (r *rawStore) close() error { return r.db.close() }

// table is rows as they came out of a table.
type table struct {
	name    string
	columns []string
	rows    [][]any
}

// rowsOf reads what a scan wrote.
func rowsOf(ctx context.Context, from *database, scanID int64) ([]table, error) {
	tables := []table{{name: "findings"}, {name: "finding_events"}}
	for i, column := range []string{"first_seen_scan_id", "scan_id"} {
		query := fmt.Sprintf("SELECT * FROM %s WHERE %s = %d ORDER BY id", tables[i].name, column, scanID)
		if err := tables[i].read(ctx, from, query); err != nil {
			return nil, fmt.Errorf("read %s of scan %d: %w", tables[i].name, scanID, err)
		}
	}
	return tables, nil
}

func (t *table) read(ctx context.Context, from *database, query string) error {
	rows, err := from.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	if t.columns, err = rows.Columns(); err != nil {
		return err
	}
	for rows.Next() {
		values, into := make([]any, len(t.columns)), make([]any, len(t.columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		t.rows = append(t.rows, values)
	}
	return rows.Err()
}

// insert writes the tables in one transaction and returns how long that took, the commit included.
func (r *rawStore) insert(ctx context.Context, tables []table) (took time.Duration, err error) {
	began := time.Now()
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	for _, t := range tables {
		if err := r.insertTable(ctx, tx, t); err != nil {
			return 0, errors.Join(fmt.Errorf("insert into the copy of %s: %w", t.name, err), tx.Rollback())
		}
	}
	err = tx.Commit()
	return time.Since(began), err
}

func (r *rawStore) insertTable(ctx context.Context, tx *sql.Tx, t table) error {
	for rows := t.rows; len(rows) > 0; {
		size := min(rawBatch, len(rows))
		statement, err := tx.PrepareContext(ctx, r.insertStatement(t, size))
		if err != nil {
			return err
		}
		arguments := make([]any, 0, size*len(t.columns))
		for len(rows) >= size {
			arguments = arguments[:0]
			for _, values := range rows[:size] {
				arguments = append(arguments, values...)
			}
			if _, err := statement.ExecContext(ctx, arguments...); err != nil {
				return errors.Join(err, statement.Close())
			}
			rows = rows[size:]
		}
		if err := statement.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (r *rawStore) insertStatement(t table, rows int) string {
	groups := make([]string, rows)
	for i := range groups {
		groups[i] = r.db.placeholders(1+i*len(t.columns), len(t.columns))
	}
	return fmt.Sprintf("INSERT INTO %s%s (%s) VALUES %s", r.schema, t.name, quoted(t.columns), strings.Join(groups, ", "))
}

func quoted(columns []string) string { return `"` + strings.Join(columns, `", "`) + `"` }
