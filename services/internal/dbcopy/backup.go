package dbcopy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/palisade/palisade/services/internal/newname"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// backupPages is how many pages (16 KiB each) are copied between two checks of the context.
	backupPages = 512
	// busyPause is the delay before a retry when another process has locked the file.
	busyPause = 20 * time.Millisecond
)

// Contents describes a SQLite database.
type Contents struct {
	Size     int64 // bytes
	Findings int64
}

// Backup copies a SQLite database into a new file. The database may be written to during the copy. The copy is a
// snapshot from a moment after the call, with everything that was committed before. progress is called with the number
// of pages. The file is either complete, without damage and durable under its name, or absent. Errors name the file
// that they are about.
func Backup(ctx context.Context, from, to string, progress func(done, total int64)) (_ Contents, err error) {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s: the file exists, and a backup never replaces a file: choose another name", to)
		}
		return Contents{}, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(to), ".palisade-backup-*") // creates it with mode 0700
	if err != nil {
		return Contents{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	staged := filepath.Join(dir, store.SQLiteFile)
	if err := backUp(ctx, from, staged, progress); err != nil {
		return Contents{}, err
	}
	contents, err := checkCopy(ctx, from, staged, "restore the last backup without damage (palisade restore)")
	if err != nil {
		return Contents{}, err
	}
	if err := errors.Join(newname.MakePrivate(staged), syncFile(staged)); err != nil {
		return Contents{}, err
	}
	if err := newname.Give(staged, to); err != nil {
		return Contents{}, err
	}
	if err := syncFile(filepath.Dir(to)); err != nil {
		return Contents{}, errors.Join(err, os.Remove(to))
	}
	return contents, nil
}

// checkCopy checks a copy of a database: it must be a Palisade database, and SQLite must find no damage. Errors name
// the original, which the caller knows; advice is what to do if it is damaged.
func checkCopy(ctx context.Context, original, staged, advice string) (Contents, error) {
	contents, err := Inspect(ctx, staged)
	if err != nil && !isCorrupt(err) {
		return Contents{}, errors.New(strings.ReplaceAll(err.Error(), staged, original))
	}
	verdict, err := integrity(ctx, staged)
	if err != nil {
		return Contents{}, fmt.Errorf("check %s: %w", original, err)
	}
	if verdict != "ok" {
		return Contents{}, fmt.Errorf("%s is damaged: %s; %s", original, verdict, advice)
	}
	return contents, nil
}

// integrity is "ok", or the first damage that SQLite finds.
func integrity(ctx context.Context, path string) (verdict string, err error) {
	conn, closeConn, err := openConn(ctx, sqliteDSN(path, ""))
	if err == nil {
		err = conn.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict)
		err = errors.Join(err, closeConn())
	}
	if isCorrupt(err) {
		return "database disk image is malformed", nil
	}
	return verdict, err
}

// isCorrupt reports whether SQLite has found damage.
func isCorrupt(err error) bool {
	var found sqlite3.Error
	return errors.As(err, &found) && found.Code == sqlite3.ErrCorrupt
}

func backUp(ctx context.Context, from, to string, progress func(done, total int64)) (err error) {
	source, closeSource, err := openConn(ctx, "file:"+(&url.URL{Path: from}).EscapedPath()+"?mode=rw&_query_only=1&_busy_timeout=5000")
	if err != nil {
		return fmt.Errorf("open %s: %w", from, err)
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	// A read transaction gives all steps one snapshot. Without it, each commit of another process would restart the
	// backup.
	for _, statement := range []string{"BEGIN", "SELECT COUNT(*) FROM sqlite_master"} {
		if _, err := source.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("read %s: %w", from, err)
		}
	}
	target, closeTarget, err := openConn(ctx, "file:"+(&url.URL{Path: to}).EscapedPath()+"?_synchronous=OFF")
	if err != nil {
		return fmt.Errorf("create %s: %w", to, err)
	}
	defer func() { err = errors.Join(err, closeTarget()) }()
	err = target.Raw(func(targetConn any) error {
		return source.Raw(func(sourceConn any) error { return copyPages(ctx, sourceConn, targetConn, progress) })
	})
	if err != nil {
		return fmt.Errorf("back up %s: %w", from, err)
	}
	// The backup is then a single file that can be opened on a read-only file system.
	_, err = target.ExecContext(ctx, "PRAGMA journal_mode = DELETE")
	return err
}

func copyPages(ctx context.Context, sourceConn, targetConn any, progress func(done, total int64)) (err error) {
	source, sourceOK := sourceConn.(*sqlite3.SQLiteConn)
	target, targetOK := targetConn.(*sqlite3.SQLiteConn)
	if !sourceOK || !targetOK {
		return fmt.Errorf("the driver is %T, not SQLite's", sourceConn)
	}
	backup, err := target.Backup("main", source, "main")
	if err != nil {
		return fmt.Errorf("begin the backup: %w", err)
	}
	defer func() { err = errors.Join(err, backup.Finish()) }()
	for last := -1; ; {
		done, err := backup.Step(backupPages)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		total, remaining := backup.PageCount(), backup.Remaining()
		progress(int64(total-remaining), int64(total))
		if done {
			return nil
		}
		if remaining == last {
			time.Sleep(busyPause)
		}
		last = remaining
	}
}

// openConn opens one connection to a SQLite file.
func openConn(ctx context.Context, dsn string) (_ *sql.Conn, closeAll func() error, err error) {
	db, err := sql.Open("sqlite3", dsn)
	if err != nil {
		return nil, nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return conn, func() error { return errors.Join(conn.Close(), db.Close()) }, nil
}

// Inspect reads a file that no process writes to.
func Inspect(ctx context.Context, path string) (Contents, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Contents{}, err
	}
	conn, closeConn, err := openConn(ctx, "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=rw&_query_only=1")
	if err != nil {
		return Contents{}, fmt.Errorf("%s is not a Palisade database: %w", path, err)
	}
	defer func() { _ = closeConn() }() // nothing was written
	out := Contents{Size: info.Size()}
	if err := conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM findings").Scan(&out.Findings); err != nil {
		return Contents{}, fmt.Errorf("%s is not a Palisade database: %w", path, err)
	}
	return out, nil
}
