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
	"github.com/palisade/palisade/services/internal/newname"
)

// SQLiteFile is the name of the database file in the data directory.
const SQLiteFile = "palisade.db"

// synchronous is the PRAGMA that decides whether a commit waits for the disk.
var synchronous = "FULL"

// WithoutSync makes commits of this process not wait for the disk. Use it in tests only: a power cut can corrupt
// the database.
func WithoutSync() { synchronous = "OFF" }

// openSQLite opens a file with one writer connection and a pool of readers. A transaction takes the write lock when
// it begins (_txlock=immediate), so that it cannot fail later for lack of it. Readers never wait for the writer
// (WAL). A commit is durable when it returns (synchronous FULL).
func openSQLite(ctx context.Context, o Options) (*Store, error) {
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("create the data directory: %w", err)
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
		dialect: dialect.SQLite, readerDB: reader, writerDB: writer, longQueryDB: writer, group: newGroup(writer),
		checkpoints: checkpoints, location: path,
	}, nil
}

// Page cache sizes, in KiB (SQLite writes them as negative numbers). Readers get missing pages from the operating
// system's cache at little cost, and there are two readers for each CPU.
const (
	writerCache = "_cache_size=-65536"
	readerCache = "_cache_size=-24576"
)

// sqliteDSN gives every connection the same settings. The busy timeout is one minute, because a command waits
// long while a server imports on a slow disk. The statement cache avoids preparing short queries, which costs
// more than running them.
func sqliteDSN(path, more string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_journal_mode=WAL&_busy_timeout=60000&_foreign_keys=1&_stmt_cache_size=64&" + more
}

// createSQLite creates an empty database with pages of 16 KiB. Bulk inserts are faster and the file is smaller than
// with the default. The page size must be set before the first write.
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
	return errors.Join(err, db.Close(), newname.MakePrivate(path))
}

// ReleaseMemory frees the page caches of idle connections. They fill again from the operating system's cache. It
// does nothing on PostgreSQL.
func (s *Store) ReleaseMemory(ctx context.Context) error {
	if s.Postgres() {
		return nil
	}
	var errs []error
	for _, pool := range []*sql.DB{s.readerDB, s.writerDB} {
		// Hold all idle connections at once, because a pool would hand out the same one each time.
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
