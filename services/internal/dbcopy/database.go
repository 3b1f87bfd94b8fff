package dbcopy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// applicationName distinguishes the sessions of a copy from the sessions of servers.
const applicationName = store.SessionName + "-copy"

// ErrInUse means that another process uses a database that must be idle.
var ErrInUse = errors.New("is in use")

// database is the source or the target of a copy.
type database struct {
	db       *sql.DB
	postgres bool
	location string
	// snapshot is the exported snapshot that all sessions of a PostgreSQL source read; otherwise empty.
	snapshot string
	// release releases the locks that block writers.
	release func() error
}

func (d *database) close() error {
	var err error
	if d.release != nil {
		err = d.release()
	}
	return errors.Join(err, d.db.Close())
}

// session returns a connection for reading. end closes it.
func (d *database) session(ctx context.Context) (_ *sql.Conn, end func(), err error) {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	end = func() { _ = conn.Close() } // nothing was written
	if d.snapshot == "" {
		return conn, end, nil
	}
	end = func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // nothing was written
		_ = conn.Close()
	}
	if err := begin(ctx, conn, "SET TRANSACTION SNAPSHOT '"+d.snapshot+"'"); err != nil {
		end()
		return nil, nil, err
	}
	return conn, end, nil
}

// begin starts a read-only transaction on one PostgreSQL snapshot, without timeouts.
func begin(ctx context.Context, conn *sql.Conn, first string) error {
	for _, statement := range []string{
		"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", first,
		"SET LOCAL statement_timeout = 0", "SET LOCAL idle_in_transaction_session_timeout = 0",
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func openPostgres(ctx context.Context, e Endpoint, connections int) (*database, error) {
	config, err := pgx.ParseConfig(e.Postgres)
	if err != nil {
		return nil, errors.New("not a PostgreSQL URL") // pgx's error may contain the URL with its password
	}
	config.RuntimeParams["application_name"] = applicationName
	db := sql.OpenDB(stdlib.GetConnector(*config))
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	d := &database{db: db, postgres: true, location: e.String()}
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", d.location, err), db.Close())
	}
	if err := d.refuseServers(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return d, nil
}

// refuseServers returns an error when servers are connected to a PostgreSQL database.
func (d *database) refuseServers(ctx context.Context) error {
	var servers int
	var from sql.NullString
	err := d.db.QueryRowContext(ctx, `SELECT COUNT(*), string_agg(DISTINCT COALESCE(host(client_addr), 'a local socket'), ', ')
		FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, $1) AND application_name <> $2`,
		store.SessionName, applicationName).Scan(&servers, &from)
	if err != nil {
		return fmt.Errorf("look for servers on %s: %w", d.location, err)
	}
	if servers > 0 {
		return fmt.Errorf("%s %w: %d connections of Palisade, from %s; stop every server on it, then run this again", d.location, ErrInUse, servers, from.String)
	}
	return nil
}

// openPostgresSource also blocks writers: their rows would be missing in the copy.
func openPostgresSource(ctx context.Context, e Endpoint, connections int) (*database, error) {
	d, err := openPostgres(ctx, e, connections+1)
	if err != nil {
		return nil, err
	}
	if err := d.lockSource(ctx); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *database) lockSource(ctx context.Context) error {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	d.release = func() error {
		_, err := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, conn.Close())
	}
	if err := begin(ctx, conn, "SET LOCAL lock_timeout = '5s'"); err != nil {
		return err
	}
	var names []string
	for _, t := range allTables() {
		names = append(names, t.name)
	}
	// This must come before the first query. The snapshot is taken by the first query, and must not be older than the
	// lock.
	if _, err := conn.ExecContext(ctx, "LOCK TABLE "+quoteAll(names)+" IN SHARE MODE"); err != nil {
		if strings.Contains(err.Error(), "55P03") || strings.Contains(err.Error(), "40P01") { // lock timeout, or deadlock
			return fmt.Errorf("%s %w: another program is writing to it; stop every such program, then run this again", d.location, ErrInUse)
		}
		return fmt.Errorf("lock the tables of %s: %w", d.location, err)
	}
	return conn.QueryRowContext(ctx, "SELECT pg_export_snapshot()").Scan(&d.snapshot)
}

// sqliteDSN has the server's settings that matter here.
func sqliteDSN(path, more string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=rw&_synchronous=NORMAL&_cache_size=-65536&_busy_timeout=5000&" + more
}

// openSQLiteSource checks that no other process has the file open, and then blocks writers. It writes nothing.
func openSQLiteSource(ctx context.Context, e Endpoint, connections int) (*database, error) {
	if err := RefuseOpen(ctx, e.SQLite); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite3", sqliteDSN(e.SQLite, ""))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections + 1)
	db.SetMaxIdleConns(connections + 1)
	d := &database{db: db, location: e.String()}
	holder, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", e.SQLite, err), d.close())
	}
	d.release = func() error {
		_, err := holder.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, holder.Close())
	}
	if _, err := holder.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		_ = holder.Close() // there is no transaction to end
		d.release = nil
		return nil, errors.Join(fmt.Errorf("%s %w: %w; stop the program that writes to it, then run this again", e.SQLite, ErrInUse, err), d.close())
	}
	return d, nil
}

// RefuseOpen returns an error that wraps ErrInUse when any process, including this one, has the SQLite file open.
// Otherwise it moves the write-ahead log into the file and removes the log.
func RefuseOpen(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=rw&_busy_timeout=0&_locking_mode=EXCLUSIVE")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	// In this mode SQLite needs an exclusive lock, and any process that has the file open in WAL mode holds a shared
	// one.
	_, err = db.ExecContext(ctx, "BEGIN EXCLUSIVE; ROLLBACK")
	if apierr.IsBusy(err) {
		return fmt.Errorf("%s %w: a server or another command has it open; stop it, then run this again", path, ErrInUse)
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	return nil
}

// openTarget opens the target. It creates the schema in an empty database.
func openTarget(ctx context.Context, e Endpoint, connections int) (*database, error) {
	options, err := e.storeOptions()
	if err != nil {
		return nil, err
	}
	if e.Postgres != "" {
		d, err := openPostgres(ctx, e, connections)
		if err != nil {
			return nil, err
		}
		if err := migrateTarget(ctx, options); err != nil {
			return nil, errors.Join(err, d.close())
		}
		return d, nil
	}
	if err := migrateTarget(ctx, options); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite3", sqliteDSN(stagedFile(e), "_journal_mode=WAL&_locking_mode=EXCLUSIVE&_txlock=immediate&_stmt_cache_size=256"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &database{db: db, location: e.String()}, nil
}

func migrateTarget(ctx context.Context, options store.Options) error {
	st, err := store.Open(ctx, options)
	if err != nil {
		return fmt.Errorf("open the target: %w", err)
	}
	defer func() { _ = st.Close() }() // everything was committed
	list, err := st.Migrations(ctx)
	if err != nil {
		return err
	}
	pending := 0
	for _, m := range list {
		if m.AppliedAt.IsZero() {
			pending++
		}
	}
	switch pending {
	case 0:
		return nil
	case len(list):
		_, err := st.Migrate(ctx)
		return err
	}
	return fmt.Errorf("the target %s: %w", st.Location(), store.ErrPending)
}
