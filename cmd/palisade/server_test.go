package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// freeAddress returns an address that was free a moment ago. It avoids 127.0.0.1, where the system may give the port to
// tests of other packages. Where no other address of 127.0.0.0/8 is local (outside of Linux), it uses 127.0.0.1.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// startServer runs `palisade serve` on a store in dir until the test ends, and returns the environment for clients. The
// given flags override its own.
func startServer(t *testing.T, dir string, flags ...string) []string {
	t.Helper()
	address := freeAddress(t)
	ctx, cancel := context.WithCancel(context.Background())
	var messages bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		args := append([]string{"serve", "--data", dir, "--http", address, "--grpc", "127.0.0.1:0", "--metrics", "127.0.0.1:0"}, flags...)
		ended <- run(ctx, args,
			streams{in: strings.NewReader(""), out: &messages, err: &messages, now: time.Now,
				environ: []string{"PALISADE_BOOTSTRAP_TOKEN=" + testToken, "PALISADE_SHUTDOWN_GRACE=1m"}})
	}()
	t.Cleanup(func() {
		cancel()
		if status := <-ended; status != exitOK || strings.Contains(messages.String(), testToken) {
			t.Errorf("serve ended with status %d:\n%s", status, strings.ReplaceAll(messages.String(), testToken, "THE TOKEN"))
		}
	})
	return []string{"PALISADE_URL=http://" + address, "PALISADE_TOKEN=" + testToken}
}

// startReadyServer is startServer for commands that do not wait for readiness themselves.
func startReadyServer(t *testing.T, dir string) []string {
	t.Helper()
	environ := startServer(t, dir)
	client, err := (&clientFlags{}).newClient(streams{environ: environ, err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.waitReady(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	return environ
}

// TestFromServeToFindings is the quickstart: serve, upload a real report, list the findings, and manage tokens next to
// the server.
func TestFromServeToFindings(t *testing.T) {
	dir := t.TempDir()
	client := startServer(t, dir)
	must := func(environ []string, args ...string) outcome {
		t.Helper()
		got := palisade(t, "", environ, args...)
		if got.status != exitOK {
			t.Fatalf("%v: status %d: %s", args, got.status, got.err)
		}
		return got
	}
	upload := []string{"upload", "testdata/gosec-pocketbase.sarif", "--project", "pocketbase/pocketbase", "--ref", "main"}
	wantParts(t, must(client, append(upload, "--wait", "1m")...).out, "pocketbase/pocketbase refs/heads/main", "309 results")
	wantParts(t, must(client, upload...).out, "created 0, updated 0, unchanged 309")

	var answer struct{ Findings []json.RawMessage }
	if err := json.Unmarshal([]byte(must(client, "findings", "--all", "--page-size", "100", "-o", "json").out), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Findings) != 309 {
		t.Errorf("%d findings, want 309", len(answer.Findings))
	}
	wantParts(t, must(client, "findings", "--severities", "high", "--rules", "G115", "--ref", "main").out, "SEVERITY", "G115", "tools/auth/apple.go:156")
	wantParts(t, must(client, "findings", "--repos", "no/such").err, "No findings match.")

	store := []string{"PALISADE_DATA=" + dir}
	made := must(store, "token", "create", "--name", "ci", "--scopes", "web-api", "--expires-in", "90d")
	value := strings.TrimSpace(made.out)
	if strings.Contains(made.err, value) || value == "" {
		t.Errorf("the value belongs on standard output alone: %q", made.err)
	}
	second := []string{client[0], "PALISADE_TOKEN=" + value}
	must(second, "findings")
	wantParts(t, must(store, "token", "list").out, "ci", value[len(value)-4:], "until ")
	must(store, "token", "revoke", "2")
	refused := palisade(t, "", second, "findings")
	if refused.status != exitError {
		t.Errorf("a revoked token still works: %s", refused.out)
	}
	wantParts(t, refused.err, "HTTP 401", "palisade token list")

	wantParts(t, must(store, "migrate", "up").out, "up to date")
	wantParts(t, must(store, "jwt", "rotate").out, "are signed with key")
	wantParts(t, must(store, "console-link", "--public-url", "https://palisade.acme.test").out, "https://palisade.acme.test/auth/link?code=")
	if got := palisade(t, "", store, "console-link", "--email", "nobody@example.com"); got.status != exitError {
		t.Errorf("a link for nobody: %d %s", got.status, got.err)
	}
	if got := palisade(t, "", store, "jwt", "--email", "nobody@example.com"); got.status != exitError {
		t.Errorf("a token for nobody: %s", got.out)
	}
}

// Commands on the store find its only deployment, whatever its slug is.
func TestOnlyDeployment(t *testing.T) {
	dir := t.TempDir()
	client := startServer(t, dir, "--deployment", "acme")
	upload := palisade(t, "", client, "upload", "testdata/gosec-pocketbase.sarif", "--project", "p", "--ref", "main", "--wait", "1m")
	wantParts(t, upload.out, "309 results")
	store := []string{"PALISADE_DATA=" + dir}
	for _, args := range [][]string{
		{"token", "create", "--name", "ci", "--scopes", "agent"}, {"token", "list"}, {"token", "revoke", "2"}, {"user", "list"}, {"audit", "list"},
	} {
		if got := palisade(t, "", store, args...); got.status != exitOK {
			t.Errorf("%v: %s", args, got.err)
		}
	}
	for _, slug := range []string{"default", "acm"} {
		got := palisade(t, "", store, "token", "create", "--name", "ci", "--scopes", "agent", "--deployment", slug)
		if got.status != exitError || got.out != "" {
			t.Errorf("status %d, output %q", got.status, got.out)
		}
		wantParts(t, got.err, `deployment "`+slug+`" not found; there is acme`)
		if env := palisade(t, "", append(store, "PALISADE_DEPLOYMENT="+slug), "token", "list"); env.err != got.err {
			t.Errorf("the variable: %q, the flag: %q", env.err, got.err)
		}
	}
}

func TestMigrate(t *testing.T) {
	store := []string{"PALISADE_DATA=" + t.TempDir()}
	first := palisade(t, "", store, "migrate", "up")
	again := palisade(t, "", store, "migrate", "up")
	status := palisade(t, "", store, "migrate", "status")
	if first.status+again.status+status.status != exitOK {
		t.Fatalf("%s%s%s", first.err, again.err, status.err)
	}
	wantParts(t, first.out, "VERSION", "APPLIED")
	wantParts(t, again.out, "up to date")
	if strings.Contains(status.out, "pending\n") || len(strings.Fields(status.out)) < len(strings.Fields(first.out)) {
		t.Errorf("status after up:\n%s", status.out)
	}
	empty := palisade(t, "", []string{"PALISADE_DATA=" + t.TempDir()}, "token", "list")
	wantParts(t, empty.err, "palisade serve")
}
