package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
	_ "github.com/mattn/go-sqlite3"    // driver "sqlite3"
)

// database is a second connection to the server's database, for the baselines.
type database struct {
	*sql.DB
	dir  string // of the SQLite file
	url  string // of PostgreSQL; empty: SQLite
	drop func() error
}

func (d *database) postgres() bool { return d.url != "" }

// kind returns the name of the database.
func (d *database) kind() string {
	if d.postgres() {
		return "PostgreSQL (its own CPU is not counted)"
	}
	return "SQLite"
}

// makeDatabase returns the SQLite file in the data directory or, with a URL, a new database on that server. It is not
// opened yet: the server creates the file and the tables.
func makeDatabase(ctx context.Context, dir, server string) (*database, error) {
	d := &database{dir: dir, drop: func() error { return nil }}
	if server == "" {
		return d, nil
	}
	at, err := url.Parse(server)
	if err != nil {
		return nil, errors.New("--database: not a URL") // err contains the password
	}
	admin, err := sql.Open("pgx", server)
	if err != nil {
		return nil, errors.New("--database: not a PostgreSQL URL")
	}
	name := "palisade_bench_" + strings.ToLower(rand.Text()[:12])
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return nil, errors.Join(fmt.Errorf("--database: make database %s: %w", name, err), admin.Close())
	}
	at.Path = "/" + name
	d.url = at.String()
	d.drop = func() error {
		// Not ctx: the database must be dropped after an interrupt, too.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_, err := admin.ExecContext(ctx, "DROP DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
		return errors.Join(err, admin.Close())
	}
	return d, nil
}

// open connects after the server has created the tables.
func (d *database) open() (err error) {
	if d.postgres() {
		d.DB, err = sql.Open("pgx", d.url)
	} else {
		d.DB, err = sql.Open("sqlite3", sqliteDSN(filepath.Join(d.dir, sqliteFile), "FULL"))
	}
	if err == nil {
		// Keep all connections open: new ones would have no prepared statements.
		d.SetMaxOpenConns(connections)
		d.SetMaxIdleConns(connections)
	}
	return err
}

// connections is the size of the connection pool.
const connections = 8

// close disconnects, and drops a database that was created on a PostgreSQL server.
func (d *database) close() error {
	var err error
	if d.DB != nil {
		err = d.DB.Close()
	}
	return errors.Join(err, d.drop())
}

// sqliteFile is the name of the server's file in its data directory.
const sqliteFile = "palisade.db"

// sqliteDSN opens a file with the settings of the server's connections, except for a page cache of 64 MiB (the server's
// readers have 24 MiB). The server's writer is synchronous FULL: a commit waits for the disk.
func sqliteDSN(path, synchronous string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_journal_mode=WAL&_busy_timeout=5000&_foreign_keys=1&_cache_size=-65536&_stmt_cache_size=64&_txlock=immediate&_synchronous=" + synchronous
}

// parameter returns the placeholder of that number: "?" or "$3".
func (d *database) parameter(number int) string {
	if d.postgres() {
		return "$" + strconv.Itoa(number)
	}
	return "?"
}

// placeholders returns n placeholders, numbered from the given number on PostgreSQL: "(?, ?)" or "($3, $4)".
func (d *database) placeholders(from, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = d.parameter(from + i)
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// settle finishes the pending work of the fill (write-ahead log and planner statistics), so that it does not affect the
// first round. On PostgreSQL it analyzes the findings table and the given tables.
func (d *database) settle(ctx context.Context, tables ...string) error {
	statements := []string{"ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"}
	if d.postgres() {
		statements = []string{"VACUUM ANALYZE " + strings.Join(append(tables, "findings", "finding_events"), ", "), "CHECKPOINT"}
	}
	for _, statement := range statements {
		if _, err := d.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return d.keepSamples(ctx)
}

// keepSamples keeps the same SQLite statistics samples as the server.
func (d *database) keepSamples(ctx context.Context) error {
	if d.postgres() {
		return nil
	}
	var there bool
	err := d.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat4')").Scan(&there)
	if err == nil && there {
		_, err = d.ExecContext(ctx, "DELETE FROM sqlite_stat4 WHERE tbl <> 'findings'")
	}
	return err
}

// rebuildIndexes does what a nightly reindexdb does on PostgreSQL. There is no other load, so it does not use
// CONCURRENTLY, which could deadlock with an ANALYZE of the server.
func (d *database) rebuildIndexes(ctx context.Context) error {
	for _, table := range []string{"findings", "finding_events"} {
		if _, err := d.ExecContext(ctx, "REINDEX TABLE "+table); err != nil {
			return fmt.Errorf("rebuild the indexes of %s: %w", table, err)
		}
	}
	return nil
}

// bytes returns the disk usage of the database after settle. On PostgreSQL it is all tables with their indexes, without
// the system catalog.
func (d *database) bytes(ctx context.Context) (size int64, err error) {
	if d.postgres() {
		return size, d.QueryRowContext(ctx, `SELECT SUM(pg_total_relation_size(oid))::bigint FROM pg_class
			WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace`).Scan(&size)
	}
	files, err := filepath.Glob(filepath.Join(d.dir, sqliteFile+"*")) // with the write-ahead log
	for _, file := range files {
		info, statErr := os.Stat(file)
		if statErr != nil {
			return 0, statErr
		}
		size += info.Size()
	}
	return size, err
}

// autoCheckpoint is the number of pages at which SQLite checkpoints the log.
const autoCheckpoint = 1000

// moved waits until the write-ahead log is checkpointed: after a large import the server does it after the response.
// Writes of background work may stay in the log, up to the size of an automatic checkpoint.
func (d *database) moved(ctx context.Context) error {
	if d.postgres() {
		return nil
	}
	for {
		var busy bool
		var pages, there int64
		err := d.QueryRowContext(ctx, "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &pages, &there)
		if err != nil || pages-there < autoCheckpoint {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// checkpoint empties the write-ahead log before the next measurement.
func (d *database) checkpoint(ctx context.Context) error {
	statement := "PRAGMA wal_checkpoint(TRUNCATE)"
	if d.postgres() {
		statement = "CHECKPOINT"
	}
	_, err := d.ExecContext(ctx, statement)
	return err
}
