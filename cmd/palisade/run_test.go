package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const testToken = "sgp_0123456789abcdef0123456789abcdef01234567"

// outcome is the result of a command line.
type outcome struct {
	status   int
	out, err string
}

// palisade runs a command line like main, with only the given environment.
func palisade(t *testing.T, stdin string, environ []string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	status := run(t.Context(), args, streams{
		in: strings.NewReader(stdin), out: &out, err: &errs, environ: environ,
		now: func() time.Time { return time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC) },
	})
	if strings.Contains(out.String()+errs.String(), testToken) {
		t.Errorf("the token was printed:\n%s%s", out.String(), errs.String())
	}
	return outcome{status, out.String(), errs.String()}
}

// wantParts fails unless text contains every part.
func wantParts(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("missing %q in:\n%s", part, text)
		}
	}
}

// recorded is a server with canned responses that records its requests.
type recorded struct {
	*httptest.Server
	requests []*http.Request
	bodies   [][]byte
}

// answers maps "METHOD /path" to a file of testdata, or to text that starts with {; a number before it is the status.
func serveRecorded(t *testing.T, answers map[string]string) *recorded {
	t.Helper()
	r := &recorded{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Errorf("read body: %v", err)
		}
		r.requests, r.bodies = append(r.requests, req), append(r.bodies, body)
		answer, known := answers[req.Method+" "+req.URL.Path]
		if !known {
			t.Errorf("unexpected %s %s", req.Method, req.URL)
			http.NotFound(w, req)
			return
		}
		status := http.StatusOK
		if code, rest, found := strings.Cut(answer, " "); found && len(code) == 3 {
			status, answer = int(code[0]-'0')*100+int(code[1]-'0')*10+int(code[2]-'0'), rest
		}
		text := []byte(answer)
		if strings.HasSuffix(answer, ".json") {
			if text, err = os.ReadFile(filepath.Join("testdata", answer)); err != nil {
				t.Error(err)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(text)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorded) env() []string {
	return []string{"PALISADE_URL=" + r.URL, "PALISADE_TOKEN=" + testToken}
}

const (
	oneDeployment   = `{"deployments":[{"id":1,"slug":"default","name":"Default","findings":{"url":"x"}}]}`
	deploymentsPath = "GET /api/v1/deployments"
	reportsPath     = "POST /api/v1/deployments/default/reports"
	findingsPath    = "GET /api/v1/deployments/default/findings"
)

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"serv"}, []string{`unknown command "serv"`, "palisade --help"}},
		{[]string{"token", "make"}, []string{`unknown command "make"`, "palisade token --help"}},
		{[]string{"serve", "now"}, []string{"takes no arguments"}},
		{[]string{"serve", "--htpp", "x"}, []string{"unknown flag: --htpp", "palisade serve --help"}},
		{[]string{"serve", "--max-streams", "x"}, []string{"--max-streams", "whole number"}},
		{[]string{"upload", "x.sarif"}, []string{`"project"`, `"ref"`, "palisade upload --help"}},
		{[]string{"upload"}, []string{"at least one report file"}},
		{[]string{"upload", "-", "-", "--project", "p", "--ref", "r"}, []string{"only once"}},
		{[]string{"upload", "x", "--project", "p", "--ref", "r", "-o", "xml"}, []string{`--output: got "xml", want table, json`}},
		{[]string{"findings", "-o", "xml"}, []string{"table, json, csv"}},
		{[]string{"findings", "--all", "--page", "2"}, []string{"all", "page"}},
		{[]string{"findings", "--since", "yesterday"}, []string{"--since", `"yesterday"`, "7d"}},
		{[]string{"findings"}, []string{"PALISADE_TOKEN", "palisade token create"}},
		{[]string{"findings", "--token", "a b"}, []string{"blanks"}},
		{[]string{"findings", "--token", "a", "--server", "localhost:8080"}, []string{"--server", "http://127.0.0.1:8080"}},
		{[]string{"findings", "--token", "a", "--server", "http://u:p@h"}, []string{"without user"}},
		{[]string{"token", "create"}, []string{`"name"`, `"scopes"`}},
		{[]string{"token", "create", "--name", "x"}, []string{`"scopes"`, "palisade token create --help"}},
		{[]string{"token", "create", "--name", "x", "--scopes", "agent", "--expires-in", "soon"}, []string{"--expires-in", "90d"}},
		{[]string{"token", "revoke"}, []string{"a token id"}},
		{[]string{"token", "revoke", "-3"}, []string{"palisade token revoke --help"}},
		{[]string{"token", "revoke", "x"}, []string{`"x"`, "palisade token list"}},
		{[]string{"jwt"}, []string{"--email"}},
		{[]string{"jwt", "--email", "a@b", "--ttl", "0s"}, []string{"--ttl"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			got := palisade(t, "", nil, c.args...)
			if got.status != exitError || got.out != "" {
				t.Errorf("status %d, output %q", got.status, got.out)
			}
			wantParts(t, got.err, c.want...)
		})
	}
}

func TestConfigurationStopsServerCommands(t *testing.T) {
	for _, args := range [][]string{{"serve"}, {"migrate", "up"}, {"migrate", "status"}, {"token", "list"}, {"jwt", "rotate"}} {
		got := palisade(t, "", []string{"PALISADE_TLS_CRT=x"}, args...)
		if got.status != exitError {
			t.Errorf("%v: status %d", args, got.status)
		}
		wantParts(t, got.err, "PALISADE_TLS_CRT", "PALISADE_TLS_CERT")
	}
	got := palisade(t, "", nil, "serve", "--http", "0.0.0.0:8080")
	wantParts(t, got.err, "0.0.0.0:8080", "tls-cert", "behind-tls-proxy")
	got = palisade(t, "", []string{"PALISADE_LOG_LEVEL=loud"}, "doctor", "--data", t.TempDir())
	if got.status != exitError {
		t.Errorf("doctor: status %d", got.status)
	}
	wantParts(t, got.out, "FAILED", "configuration", "log-level", "to do:")
}

func TestVersion(t *testing.T) {
	got := palisade(t, "", nil, "version")
	if got.status != exitOK {
		t.Errorf("status %d: %s", got.status, got.err)
	}
	wantParts(t, got.out, "palisade ", "go1.")
}

// TestHelpTeaches: every command has an example, and its help names the environment variable of each setting.
func TestHelpTeaches(t *testing.T) {
	for _, args := range []string{"serve", "migrate up", "migrate status", "token create", "token list", "token revoke", "jwt", "console-link",
		"jwt rotate", "upload", "findings", "doctor", "version", "listen", "audit verify", "audit list", "audit export",
		"user list", "user link", "user unlink", "user tokens", "user role", "user remove", "token hand-over"} {
		got := palisade(t, "", nil, append(strings.Fields(args), "--help")...)
		if got.status != exitOK {
			t.Errorf("%s: status %d", args, got.status)
		}
		wantParts(t, got.out, "Examples:", "palisade "+strings.Fields(args)[0])
	}
	wantParts(t, palisade(t, "", nil, "serve", "--help").out, "PALISADE_HTTP", "PALISADE_KEY_FILE", "127.0.0.1:9091")
	wantParts(t, palisade(t, "", nil).out, "On the server:", "Through the API:")
}

func TestConfigurationPageIsCurrent(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, configPage()) {
		t.Error("docs/configuration.md is stale; run: make generate")
	}
	if got := palisade(t, "", nil, "config-table"); got.out != string(page) {
		t.Error("config-table prints something else than docs/configuration.md")
	}
}
