package dbcopy

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/palisade/palisade/services/internal/store"
)

// Endpoint is the source or target of a copy: a SQLite file or a PostgreSQL database.
type Endpoint struct {
	// SQLite is the path of a file, Postgres a postgres:// URL. One of them is empty.
	SQLite, Postgres string
}

// ParseEndpoint parses sqlite:PATH (a file or a data directory) or postgres://…
func ParseEndpoint(text string) (Endpoint, error) {
	if path, ok := strings.CutPrefix(text, "sqlite:"); ok && path != "" {
		info, err := os.Stat(path)
		// A missing path without an extension is a data directory to be created.
		if err == nil && info.IsDir() || errors.Is(err, fs.ErrNotExist) && filepath.Ext(path) == "" {
			path = filepath.Join(path, store.SQLiteFile)
		}
		return Endpoint{SQLite: path}, nil
	}
	if strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://") {
		if _, err := pgx.ParseConfig(text); err != nil {
			// pgx's error may contain the URL with its password.
			return Endpoint{}, errors.New("got an invalid PostgreSQL URL, want postgres://user@host:5432/name")
		}
		return Endpoint{Postgres: text}, nil
	}
	if scheme, _, found := strings.Cut(text, ":"); found {
		text = scheme + ":…" // the rest may contain a password
	}
	return Endpoint{}, fmt.Errorf("got %q, want sqlite:PATH (a file or a data directory) or postgres://user@host:5432/name", text)
}

// String returns the endpoint without credentials.
func (e Endpoint) String() string {
	if e.SQLite != "" {
		return "sqlite:" + e.SQLite
	}
	config, err := pgx.ParseConfig(e.Postgres)
	if err != nil {
		return "postgres"
	}
	return store.PostgresLocation(config)
}

// stagingDir is where a SQLite target is built. The file gets its name when it is complete, so that no server can
// start on a partial database.
func (e Endpoint) stagingDir() string {
	return filepath.Join(filepath.Dir(e.SQLite), ".palisade-copy")
}

// storeOptions opens a target like a server does, but with the copy's application name. Otherwise the connections
// of an interrupted run would look like a server for a moment.
func (e Endpoint) storeOptions() (store.Options, error) {
	if e.SQLite != "" {
		return store.Options{DataDir: e.stagingDir()}, nil
	}
	u, err := url.Parse(e.Postgres)
	if err != nil {
		return store.Options{}, errors.New("not a PostgreSQL URL") // the error may contain a password
	}
	query := u.Query()
	query.Set("application_name", applicationName)
	u.RawQuery = query.Encode()
	return store.Options{Database: u.String()}, nil
}

// check rejects pairs for which there is a better tool, and a SQLite target that exists or that a server would not
// find.
func check(from, to Endpoint) error {
	switch {
	case from.Postgres != "" && to.Postgres != "":
		return errors.New("both are PostgreSQL: use pg_dump and pg_restore (palisade backup prints the command lines)")
	case from.SQLite != "" && to.SQLite != "":
		return errors.New("both are SQLite: use palisade backup and palisade restore")
	}
	if from.SQLite != "" {
		_, err := os.Stat(from.SQLite)
		return err
	}
	if filepath.Base(to.SQLite) != store.SQLiteFile {
		return fmt.Errorf("the target is called %s, but the server looks for %s in its data directory: name that file, or the directory",
			filepath.Base(to.SQLite), store.SQLiteFile)
	}
	_, err := os.Lstat(to.SQLite)
	switch {
	case err == nil:
		return fmt.Errorf("%w: %s exists; choose another directory, or move the file away", ErrNotEmpty, to.SQLite)
	case errors.Is(err, fs.ErrNotExist):
		return refuseLog(to.SQLite)
	}
	return err
}
