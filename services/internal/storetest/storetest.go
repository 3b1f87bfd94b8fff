// Package storetest gives tests empty, migrated databases. Each is a copy of a template. The migrations run once
// per test program on SQLite, and once per server on PostgreSQL (see pgtest).
package storetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/testrun"
)

// Tests do not need durability, and waiting for the disk makes commits several times slower.
func init() { store.WithoutSync() }

// Each runs a test on an empty, migrated database of each requested kind.
func Each(t *testing.T, test func(t *testing.T, o store.Options)) {
	t.Helper()
	for _, database := range []struct {
		name string
		make func(testing.TB) store.Options
	}{
		{testrun.SQLite, func(t testing.TB) store.Options { return store.Options{DataDir: SQLite(t)} }},
		{testrun.Postgres, func(t testing.TB) store.Options { return store.Options{Database: Postgres(t)} }},
	} {
		if testrun.On(database.name) {
			t.Run(database.name, func(t *testing.T) {
				t.Parallel()
				test(t, database.make(t))
			})
		}
	}
}

// Open opens a database and closes it when the test ends.
func Open(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// SQLite returns a data directory with an empty, migrated database.
func SQLite(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	Fill(t, dir)
	return dir
}

// Fill copies an empty, migrated database into a data directory.
func Fill(t testing.TB, dir string) {
	t.Helper()
	testrun.SkipRepeated(t)
	file, err := migratedFile()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, store.SQLiteFile), file, 0o600); err != nil {
		t.Fatal(err)
	}
}

var migratedFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "palisade-migrated-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := migrated(store.Options{DataDir: dir}); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, store.SQLiteFile))
})

// Postgres returns the URL of an empty, migrated database, which is dropped when the test ends.
func Postgres(t testing.TB) (url string) {
	t.Helper()
	name, err := template()
	if err != nil {
		t.Fatal(err)
	}
	return pgtest.NewCopy(t, name, func(url string) error { return migrated(store.Options{Database: url}) })
}

// template is a database name derived from the migrations of this program: Palisade's own, River's, and the index
// on River's table.
var template = sync.OnceValues(func() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(migrate.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(migrate.Files, path)
		_, _ = fmt.Fprintln(sum, path, len(content)) // a hash never fails
		_, _ = sum.Write(content)
		return err
	})
	_, _ = fmt.Fprintln(sum, store.TurnsSchema())
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			_, _ = fmt.Fprintln(sum, module.Path, module.Version)
		}
	}
	return fmt.Sprintf("palisade_template_%x", sum.Sum(nil)[:8]), err
})

func migrated(o store.Options) error {
	st, err := store.Open(context.Background(), o)
	if err != nil {
		return err
	}
	_, err = st.Migrate(context.Background())
	if closing := st.Close(); err == nil {
		err = closing
	}
	return err
}
