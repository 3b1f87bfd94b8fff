package pgtest

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestNewDatabaseIsEmptyAndPrivate(t *testing.T) {
	one, two := NewDatabase(t), NewDatabase(t)
	if one == two {
		t.Fatalf("both databases are %s", one)
	}
	a, b := connect(t, one), connect(t, two)
	defer func() { _ = a.Close(context.Background()); _ = b.Close(context.Background()) }()
	if _, err := a.Exec(t.Context(), "CREATE TABLE finding (id bigint)"); err != nil {
		t.Fatal(err)
	}
	var tables int
	const count = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
	if err := b.QueryRow(t.Context(), count).Scan(&tables); err != nil || tables != 0 {
		t.Fatalf("tables in the other database: %d, %v", tables, err)
	}
}

func TestNewDatabaseIsDroppedThoughConnected(t *testing.T) {
	var url string
	t.Run("user", func(t *testing.T) {
		url = NewDatabase(t)
		connect(t, url) // left open on purpose: the drop must not wait for it
	})
	_, err := pgx.Connect(t.Context(), url)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "3D000" { // invalid_catalog_name
		t.Fatalf("connecting to the dropped database: got %v, want error 3D000", err)
	}
}

func TestNewDatabaseInParallel(t *testing.T) {
	urls := make([]string, 8)
	var wait sync.WaitGroup
	for i := range urls {
		wait.Go(func() { urls[i] = NewDatabase(t) })
	}
	wait.Wait()
	seen := map[string]bool{}
	for _, url := range urls {
		if url == "" || seen[url] {
			t.Fatalf("missing or repeated database in %v", urls)
		}
		seen[url] = true
	}
}

func TestIdentifier(t *testing.T) {
	got := identifier(`TestÜber/"quoted"/` + strings.Repeat("x", 100))
	if len(got) != 40 || strings.Trim(got, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		t.Fatalf("got %q", got)
	}
}

// TestClusterEndsWithItsInput: the cluster stops with the program that started it.
func TestClusterEndsWithItsInput(t *testing.T) {
	script, err := findScript()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script, "sh", "-c", `echo "$`+Env+`"; exec cat`)
	cmd.Env = append(os.Environ(), Env+"=") // a separate cluster, even when the suite has one
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 200)
	n, err := stdout.Read(line)
	if err != nil {
		t.Fatalf("no URL from %s: %v", script, err)
	}
	url := strings.TrimSpace(string(line[:n]))
	_ = connect(t, url)
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, stdout); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("with-postgres: %v", err)
	}
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Fatal("the server still answers after its input ended")
	}
}

func TestScriptReturnsTheStatusOfItsCommand(t *testing.T) {
	script, err := findScript()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script, "sh", "-c", "exit 7")
	cmd.Env = append(os.Environ(), Env+"=")
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Fatalf("got %v, want exit status 7", err)
	}
}
