package dbcopy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// sqliteRows is the number of rows of one INSERT. More rows gain little, and SQLite allows 32,766 parameters.
const sqliteRows = 64

// write inserts rows and records the table's position in the same transaction.
func (d *database) write(ctx context.Context, conn *sql.Conn, t *table, rows [][]any, at position) error {
	if d.postgres {
		return conn.Raw(func(driverConn any) error {
			own, ok := driverConn.(*stdlib.Conn)
			if !ok {
				return fmt.Errorf("the driver is %T, not pgx", driverConn)
			}
			return writePostgres(ctx, own.Conn(), t, rows, at)
		})
	}
	return writeSQLite(ctx, conn, t, rows, at)
}

func writePostgres(ctx context.Context, conn *pgx.Conn, t *table, rows [][]any, at position) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		var err error
		if t.needsInsert() {
			err = insertPostgres(ctx, tx, t, rows)
		} else {
			_, err = tx.CopyFrom(ctx, pgx.Identifier{t.name}, t.columnNames(), pgx.CopyFromRows(rows))
		}
		if err != nil {
			return refusedRow(t, rows, err)
		}
		_, err = tx.Exec(ctx, journalSet, t.name, at.key, at.rows, at.bytes, at.checksum)
		return err
	})
}

// insertPostgres inserts rows with columns that COPY cannot convert.
func insertPostgres(ctx context.Context, tx pgx.Tx, t *table, rows [][]any) error {
	values := make([]string, len(t.columns))
	for i, c := range t.columns {
		values[i] = "$" + strconv.Itoa(i+1)
		if c.pgWrite != "" {
			values[i] = fmt.Sprintf(c.pgWrite, values[i])
		}
	}
	statement := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", quote(t.name), quoteAll(t.columnNames()), strings.Join(values, ", "))
	var batch pgx.Batch
	for _, row := range rows {
		batch.Queue(statement, row...)
	}
	results := tx.SendBatch(ctx, &batch)
	for _, row := range rows {
		if _, err := results.Exec(); err != nil {
			_ = results.Close() // it returns the same error
			return &RowError{Table: t.name, Key: fmt.Sprint(row[t.keyIndex()]), Err: err}
		}
	}
	return results.Close()
}

// copyLine finds the number of the row that a COPY has rejected.
var copyLine = regexp.MustCompile(`line (\d+)(?:, column (\w+))?`)

func refusedRow(t *table, rows [][]any, err error) error {
	var refused *pgconn.PgError
	var known *RowError
	switch {
	case errors.As(err, &known):
		return err
	case !errors.As(err, &refused):
		return fmt.Errorf("write %s: %w", t.name, err)
	}
	found := copyLine.FindStringSubmatch(refused.Where)
	if found == nil {
		return fmt.Errorf("write %s: %w", t.name, err)
	}
	line, _ := strconv.Atoi(found[1])
	if line < 1 || line > len(rows) {
		return fmt.Errorf("write %s: %w", t.name, err)
	}
	return &RowError{Table: t.name, Key: fmt.Sprint(rows[line-1][t.keyIndex()]), Column: found[2], Err: err}
}

func writeSQLite(ctx context.Context, conn *sql.Conn, t *table, rows [][]any, at position) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	for len(rows) > 0 {
		n := 1
		if len(rows) >= sqliteRows {
			n = sqliteRows
		}
		if err := insertSQLite(ctx, tx, t, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	if _, err := tx.ExecContext(ctx, journalSet, t.name, at.key, at.rows, at.bytes, at.checksum); err != nil {
		return err
	}
	return tx.Commit()
}

// insertSQLite uses one of two statements per table, which the driver keeps prepared.
func insertSQLite(ctx context.Context, tx *sql.Tx, t *table, rows [][]any) error {
	one := "(?" + strings.Repeat(",?", len(t.columns)-1) + ")"
	statement := fmt.Sprintf("INSERT INTO %s (%s) VALUES %s%s", quote(t.name), quoteAll(t.columnNames()), one, strings.Repeat(","+one, len(rows)-1))
	args := make([]any, 0, len(rows)*len(t.columns))
	for _, row := range rows {
		for i, value := range row {
			stored, err := sqliteValue(&t.columns[i], value)
			if err != nil {
				return &RowError{Table: t.name, Key: fmt.Sprint(row[t.keyIndex()]), Column: t.columns[i].name, Err: err}
			}
			args = append(args, stored)
		}
	}
	if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
		return fmt.Errorf("write %s, rows %v to %v: %w", t.name, rows[0][t.keyIndex()], rows[len(rows)-1][t.keyIndex()], err)
	}
	return nil
}

// sqliteValue converts a value to what ent and River store in SQLite.
func sqliteValue(c *column, value any) (any, error) {
	switch v := value.(type) {
	case time.Time:
		return v.Format(sqliteTime), nil
	case string:
		if c.kind == kindRawJSON {
			return []byte(v), nil
		}
		if c.kind != kindJSON {
			return v, nil
		}
		compact, err := compactJSON(v)
		if err != nil {
			return nil, err
		}
		if c.text {
			return compact, nil
		}
		return []byte(compact), nil
	}
	return value, nil
}
