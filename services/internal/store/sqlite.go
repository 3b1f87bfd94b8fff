package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"

	"entgo.io/ent/dialect"
	_ "github.com/mattn/go-sqlite3" // driver "sqlite3"

	"github.com/palisade/palisade/services/internal/cmalloc"
)

// SQLiteFile is the name of the database in the data directory.
const SQLiteFile = "palisade.db"

// synchronous says what a commit waits for.
var synchronous = "FULL"

// WithoutSync lets commits of this process not wait for the disk. It is for tests: a power cut would damage the
// database.
func WithoutSync() { synchronous = "OFF" }

// openSQLite opens one file with a pool of one writer and a pool of readers: a transaction takes the write lock when it
// begins (_txlock=immediate), so that none fails half-way, and readers never wait for it (WAL). A commit is on the disk
// when it returns (synchronous FULL): no power cut takes back what a caller was told.
func openSQLite(ctx context.Context, o Options) (*Store, error) {
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	path := filepath.Join(o.DataDir, SQLiteFile)
	if err := createSQLite(ctx, path); err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	checkpoints := newCheckpoints(path)
	writer := openPool(ctx, writerConnector{
		sqliteConnector{sqliteDSN(path, writerCache+"&_txlock=immediate&_synchronous="+synchronous)}, checkpoints,
	})
	checkpoints.writer = writer
	writer.SetMaxOpenConns(1)
	reader := openPool(ctx, sqliteConnector{sqliteDSN(path, readerCache+"&_synchronous=NORMAL&_query_only=1")})
	readers := o.MaxOpen
	if readers == 0 {
		readers = max(4, 2*runtime.NumCPU())
	}
	reader.SetMaxOpenConns(readers)
	reader.SetMaxIdleConns(readers)
	if err := errors.Join(writer.PingContext(ctx), reader.PingContext(ctx)); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), writer.Close(), reader.Close())
	}
	return &Store{
		dialect: dialect.SQLite, readerDB: reader, writerDB: writer, patientDB: writer, group: newGroup(writer),
		checkpoints: checkpoints, location: path,
	}, nil
}

// Page caches in KiB, as SQLite wants them. A reader gets what it lacks from the operating system at little cost, and
// there are two for each processor.
const (
	writerCache = "_cache_size=-65536"
	readerCache = "_cache_size=-24576"
)

// sqliteDSN gives every connection the same settings: a minute of patience with other processes (a
// command beside a server that imports, on a slow disk, waits longer than one thinks), and its latest statements kept
// prepared, which otherwise costs a short query more than its execution.
func sqliteDSN(path, more string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_journal_mode=WAL&_busy_timeout=60000&_foreign_keys=1&_stmt_cache_size=64&" + more
}

// createSQLite makes an empty database with pages of 16 KiB: bulk inserts are faster and the file smaller than with the
// default, and the size can be chosen only before the first write.
func createSQLite(ctx context.Context, path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath())
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, "PRAGMA page_size=16384; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL")
	return errors.Join(err, db.Close(), os.Chmod(path, 0o600))
}

// ReleaseMemory frees the page caches of the connections that nobody uses now; they fill again from the operating
// system's as pages are needed. It does nothing on PostgreSQL.
func (s *Store) ReleaseMemory(ctx context.Context) error {
	if s.Postgres() {
		return nil
	}
	var errs []error
	for _, pool := range []*sql.DB{s.readerDB, s.writerDB} {
		// All at once: a pool hands out the same connection again and again.
		var idle []*sql.Conn
		for range pool.Stats().Idle {
			conn, err := pool.Conn(ctx)
			if err != nil {
				errs = append(errs, err)
				break
			}
			idle = append(idle, conn)
		}
		for _, conn := range idle {
			_, err := conn.ExecContext(ctx, "PRAGMA shrink_memory")
			errs = append(errs, err, conn.Close())
		}
	}
	cmalloc.Trim()
	return errors.Join(errs...)
}
