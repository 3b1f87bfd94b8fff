package apitest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/server"
)

// EmptyConfig returns the default configuration with free ports and an empty store.
func EmptyConfig(t testing.TB) config.Config {
	t.Helper()
	c := config.Default()
	c.Data = t.TempDir()
	c.HTTP, c.GRPC, c.Metrics = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.ShutdownGrace = time.Minute
	return c
}

// Output collects a server's stderr.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns the output so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

var tokenForm = regexp.MustCompile(`sgp_[A-Za-z0-9]+`)

// Token returns the first API token in the output, or "".
func (o *Output) Token() string { return tokenForm.FindString(o.String()) }

// StartConfigured starts a server as an operator does, and stops it when the test ends. Without domains it uses the
// domains of Main.
func StartConfigured(t testing.TB, cfg config.Config, of ...server.Domain) (*server.Server, *Output) {
	t.Helper()
	if of == nil {
		of = domains
	}
	out := &Output{}
	s, err := server.Start(context.WithoutCancel(t.Context()), cfg, out, of)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if err := s.Wait(); err != nil && !t.Failed() && !strings.Contains(err.Error(), "cut off") {
			t.Error(err)
		}
	})
	return s, out
}

// Get returns the status and body of a GET, with a credential unless token is "".
func Get(t testing.TB, client *http.Client, url, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// OnDatabase runs statements on a separate connection.
func OnDatabase(t testing.TB, database string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
