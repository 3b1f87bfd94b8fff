package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// rawBatch is the number of rows per INSERT of the baseline; larger batches are not faster.
const rawBatch = 100

// table is a set of rows from a table.
type table struct {
	name    string
	columns []string
	rows    [][]any
}

func (t *table) column(name string) int { return slices.Index(t.columns, name) }

// rowsOf reads the rows that a scan wrote.
func rowsOf(ctx context.Context, from *database, scanID int64) (findings, events *table, err error) {
	findings, events = &table{name: "findings"}, &table{name: "finding_events"}
	if err := findings.read(ctx, from, fmt.Sprintf("SELECT * FROM findings WHERE first_seen_scan_id = %d ORDER BY id", scanID)); err != nil {
		return nil, nil, fmt.Errorf("read findings of scan %d: %w", scanID, err)
	}
	if err := events.read(ctx, from, fmt.Sprintf("SELECT * FROM finding_events WHERE scan_id = %d ORDER BY id", scanID)); err != nil {
		return nil, nil, fmt.Errorf("read events of scan %d: %w", scanID, err)
	}
	return findings, events, nil
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

// moved rewrites the rows of a scan for another project, with unused ids.
func moved(findings, events *table, project, shift int64) error {
	id, owner := findings.column("id"), findings.column("project_id")
	for _, values := range findings.rows {
		was, ok := values[id].(int64)
		if !ok {
			return fmt.Errorf("findings.id: got %T, want a number", values[id])
		}
		values[id], values[owner] = was+shift, project
	}
	own := events.column("id") // the database numbers them
	events.columns = slices.Delete(events.columns, own, own+1)
	of := events.column("finding_id")
	for i, values := range events.rows {
		values = slices.Delete(values, own, own+1)
		was, ok := values[of].(int64)
		if !ok {
			return fmt.Errorf("finding_events.finding_id: got %T, want a number", values[of])
		}
		values[of], events.rows[i] = was+shift, values
	}
	return nil
}

// insertRaw inserts the rows of a scan again, for another project, into the same tables, as fast as SQL allows:
// prepared multi-row statements, one transaction. It returns the duration, including the commit.
func (b *bench) insertRaw(ctx context.Context, scanID, project int64) (time.Duration, error) {
	findings, events, err := rowsOf(ctx, b.db, scanID)
	if err != nil {
		return 0, err
	}
	var shift int64
	if err := b.db.QueryRowContext(ctx, "SELECT (SELECT MAX(id) FROM findings) - MIN(id) + 1 FROM findings WHERE first_seen_scan_id = "+b.db.parameter(1), scanID).Scan(&shift); err != nil {
		return 0, err
	}
	if err := moved(findings, events, project, shift); err != nil {
		return 0, err
	}
	if err := b.db.checkpoint(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	for _, t := range []*table{findings, events} {
		if err := b.db.insertTable(ctx, tx, t); err != nil {
			return 0, errors.Join(fmt.Errorf("insert into %s: %w", t.name, err), tx.Rollback())
		}
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	took := time.Since(began)
	b.stored += len(findings.rows)
	if b.db.postgres() {
		_, err = b.db.ExecContext(ctx, "SELECT setval(pg_get_serial_sequence('findings', 'id'), (SELECT MAX(id) FROM findings))")
	}
	return took, err
}

func (d *database) insertTable(ctx context.Context, tx *sql.Tx, t *table) error {
	for rows := t.rows; len(rows) > 0; {
		size := min(rawBatch, len(rows))
		statement, err := tx.PrepareContext(ctx, d.insertStatement(t, size))
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

func (d *database) insertStatement(t *table, rows int) string {
	groups := make([]string, rows)
	for i := range groups {
		groups[i] = d.placeholders(1+i*len(t.columns), len(t.columns))
	}
	return fmt.Sprintf(`INSERT INTO %s ("%s") VALUES %s`, t.name, strings.Join(t.columns, `", "`), strings.Join(groups, ", "))
}
