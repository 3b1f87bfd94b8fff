package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/palisade/palisade/services/internal/testrun"
)

// Env is the variable with the URL of the test server. Its user must be allowed to create databases.
const Env = "PALISADE_TEST_POSTGRES"

// timeout limits one CREATE or DROP DATABASE on a busy machine.
const timeout = 3 * time.Minute

var server = sync.OnceValues(func() (string, error) {
	if given := os.Getenv(Env); given != "" {
		return given, nil
	}
	return startCluster()
})

// NewDatabase creates an empty database and returns its URL. The database is dropped when the test ends, even with
// open connections. The test fails at once when no server is available and none can be started.
func NewDatabase(t testing.TB) (databaseURL string) {
	t.Helper()
	testrun.SkipRepeated(t)
	serverURL, err := server()
	if err != nil {
		t.Fatalf("no PostgreSQL for this test: %v", err)
	}
	// template0 has no connections that could block the copy; template1 may have some
	return create(t, serverURL, "template0")
}

// NewCopy is NewDatabase with a copy of a template that fill creates. The template is shared by all programs that
// use the server. The first one that needs it fills it.
func NewCopy(t testing.TB, of string, fill func(databaseURL string) error) (databaseURL string) {
	t.Helper()
	testrun.SkipRepeated(t)
	serverURL, err := server()
	if err != nil {
		t.Fatalf("no PostgreSQL for this test: %v", err)
	}
	if err := keep(serverURL, of, fill); err != nil {
		t.Fatalf("create the database %s: %v", of, err)
	}
	return create(t, serverURL, of)
}

func create(t testing.TB, serverURL, template string) (databaseURL string) {
	t.Helper()
	// The name identifies the test when a killed program has left the database.
	name := "palisade_" + identifier(t.Name()) + "_" + strings.ToLower(rand.Text()[:10])
	databaseURL, err := at(serverURL, name)
	if err != nil {
		t.Fatal(err)
	}
	err = administer(serverURL, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE "+pgx.Identifier{template}.Sanitize()+" STRATEGY file_copy")
	if err != nil {
		t.Fatalf("create database %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := administer(serverURL, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
			t.Errorf("drop database %s: %v", name, err)
		}
	})
	return databaseURL
}

// at returns the URL of another database of the same server.
func at(serverURL, name string) (string, error) {
	u, err := url.Parse(serverURL)
	if err != nil {
		return "", fmt.Errorf("%s is not a URL", Env) // the error may contain a password
	}
	u.Path = "/" + name
	return u.String(), nil
}

// keep creates and fills a database if it is missing. A lock serializes programs that need the same one.
func keep(serverURL, name string, fill func(databaseURL string) error) error {
	kept.Lock()
	defer kept.Unlock()
	if kept.names[name] {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, serverURL)
	if err != nil {
		return fmt.Errorf("connect to the server of %s: %w", Env, err)
	}
	defer func() { _ = conn.Close(context.Background()) }() // this also releases the lock
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtext($1))", name); err != nil {
		return err
	}
	var there bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there); err != nil {
		return err
	}
	if !there {
		unfinished := name + "_unfinished"
		quoted := pgx.Identifier{unfinished}.Sanitize()
		// A program may have been killed while it filled the database.
		if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+quoted+" WITH (FORCE)"); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "CREATE DATABASE "+quoted+" TEMPLATE template0"); err != nil {
			return err
		}
		databaseURL, err := at(serverURL, unfinished)
		if err != nil {
			return err
		}
		if err := fill(databaseURL); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "ALTER DATABASE "+quoted+" RENAME TO "+pgx.Identifier{name}.Sanitize()); err != nil {
			return err
		}
	}
	kept.names[name] = true
	return nil
}

// kept has the databases that are known to exist.
var kept = struct {
	sync.Mutex
	names map[string]bool
}{names: map[string]bool{}}

// administer runs one statement on a separate connection. CREATE DATABASE cannot run inside a transaction, and a
// pooled idle connection would be missing for the tests.
func administer(serverURL, statement string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, serverURL)
	if err != nil {
		return fmt.Errorf("connect to the server of %s: %w", Env, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

// identifier keeps the characters that are valid in a database name, up to PostgreSQL's limit of 63 bytes.
func identifier(testName string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		default:
			return '_'
		}
	}, testName)
	return name[:min(len(name), 40)]
}
