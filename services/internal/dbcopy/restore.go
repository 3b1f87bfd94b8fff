package dbcopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/palisade/palisade/services/internal/newname"
	"github.com/palisade/palisade/services/internal/store"
)

// Stage copies a backup into a new directory inside dataDir and validates it: it must be a Palisade database
// without corruption, and its schema must be known to this program. The directory contains palisade.db. The caller
// removes the directory in the end.
func Stage(ctx context.Context, from, dataDir string) (dir string, err error) {
	if _, err := os.Stat(from + "-wal"); err == nil {
		return "", fmt.Errorf("%s has a write-ahead log (%s-wal): it is a live database, not a backup; make one with palisade backup --to FILE", from, from)
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(dataDir, ".palisade-restore-*"); err != nil {
		return "", err
	}
	if err := stage(ctx, from, filepath.Join(dir, store.SQLiteFile)); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

func stage(ctx context.Context, from, staged string) error {
	if err := copyFile(ctx, from, staged); err != nil {
		return err
	}
	if _, err := checkCopy(ctx, from, staged, "use another backup"); err != nil {
		return err
	}
	return checkKnown(ctx, from, staged)
}

// checkKnown rejects a backup of a later Palisade version.
func checkKnown(ctx context.Context, from, staged string) error {
	d, err := openSQLiteSource(ctx, Endpoint{SQLite: staged}, 1)
	if err != nil {
		return err
	}
	d.location = from
	_, err = missingMigrations(ctx, d)
	return errors.Join(err, d.close())
}

func copyFile(ctx context.Context, from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // read only
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, contextReader{ctx, source})
	return errors.Join(err, target.Close())
}

// contextReader stops a long copy when its context ends.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// Replaceable returns an error when the database at path is in use, or exists and force is not set.
func Replaceable(ctx context.Context, path string, force bool) error {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := RefuseOpen(ctx, path); err != nil && (errors.Is(err, ErrInUse) || !force) {
		return err // with force, a damaged file is replaced too: it may be the reason for the restore
	}
	if !force {
		return fmt.Errorf("%s exists: restore into another directory with --data, or replace it with --force, which keeps the old file under another name", path)
	}
	return nil
}

// Install moves a staged database to path. An existing database is kept under another name, which is returned. So
// is a stale write-ahead log, which SQLite would apply to the new database.
func Install(ctx context.Context, dir, path string, now time.Time) (kept string, err error) {
	staged := filepath.Join(dir, store.SQLiteFile)
	if err := RefuseOpen(ctx, staged); err != nil { // this also empties the log
		return "", err
	}
	if err := syncFile(staged); err != nil {
		return "", err
	}
	name := path + ".before-restore-" + now.UTC().Format("20060102T150405Z")
	if _, err := os.Lstat(path); err == nil {
		if err := newname.Give(path, name); err != nil {
			return "", err
		}
		kept = name
	}
	if err := keepLog(path, name); err != nil {
		return kept, err
	}
	if err := os.Rename(staged, path); err != nil {
		return kept, errors.Join(err, giveBack(kept, path))
	}
	return kept, errors.Join(syncFile(filepath.Dir(path)), os.RemoveAll(dir))
}

// giveBack gives the old database its name again if it has lost it, as on volumes without hard links.
func giveBack(kept, path string) error {
	if _, err := os.Lstat(path); kept == "" || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(kept, path)
}

// keepLog renames the write-ahead log of the old database. A killed server leaves one.
func keepLog(path, kept string) error {
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+suffix, kept+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
