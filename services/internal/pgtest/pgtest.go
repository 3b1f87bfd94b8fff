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
)

// Env is the variable that names the test server: a postgres:// URL of a user who may create databases.
const Env = "PALISADE_TEST_POSTGRES"

// patience is how long one CREATE or DROP DATABASE may take on a busy machine.
const patience = 3 * time.Minute

var server = sync.OnceValues(func() (string, error) {
	if given := os.Getenv(Env); given != "" {
		return given, nil
	}
	return startCluster()
})

// NewDatabase creates an empty database and returns its URL. The database is dropped when the test ends, whoever is
// still connected to it. The test fails at once when there is no server and none can be started.
func NewDatabase(t testing.TB) string {
	t.Helper()
	serverURL, err := server()
	if err != nil {
		t.Fatalf("no PostgreSQL for this test: %v", err)
	}
	u, err := url.Parse(serverURL)
	if err != nil {
		t.Fatalf("%s is no URL", Env) // the text of err would show a password
	}
	// The name leads back to the test when a database is left behind by a killed program.
	name := "palisade_" + identifier(t.Name()) + "_" + strings.ToLower(rand.Text()[:10])
	// template0 has no connections that could block the copy; template1 may.
	if err := administer(serverURL, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE template0"); err != nil {
		t.Fatalf("create database %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := administer(serverURL, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
			t.Errorf("drop database %s: %v", name, err)
		}
	})
	u.Path = "/" + name
	return u.String()
}

// administer runs one statement on a connection of its own: CREATE DATABASE refuses to run inside a transaction, and
// an idle connection would be one fewer for the tests.
func administer(serverURL, statement string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, serverURL)
	if err != nil {
		return fmt.Errorf("connect to the server of %s: %w", Env, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

// identifier keeps what may stand in a database name, and little enough of it for PostgreSQL's 63 bytes.
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
