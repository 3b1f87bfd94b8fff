package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func unzip(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestUpload(t *testing.T) {
	server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, reportsPath: "upload.json"})
	const file = "testdata/gosec-pocketbase.sarif"
	got := palisade(t, "", server.env(), "upload", file, "--project", "acme/web", "--ref", "main",
		"--commit", "3f2a9c1", "--category", "a&b", "--product", "sast", "--format", "sarif", "--checkout-root", "/builds/acme/web", "--path-prefix", "services/web",
		"--repo-url", "https://git.acme.test/acme/web", "--commit-time", "2026-11-20T21:57:51+01:00")
	if got.status != exitOK || got.err != "" {
		t.Fatalf("status %d: %s", got.status, got.err)
	}
	wantParts(t, got.out, file, "acme/web refs/heads/main (scan 12)",
		"created 300, updated 0, unchanged 0, reopened 0, fixed 0, removed 0, skipped 9",
		"gosec dev (sast): 309 results, 300 accepted, 9 skipped", "warning: rule G104 has no help text",
		"run 0 result 17", "suppressed in source", `evil\x1b[2J\u202ename.go`, "7 more")
	if strings.ContainsAny(got.out, "\x1b\u202e") {
		t.Errorf("control characters of the report reach the terminal: %q", got.out)
	}

	req := server.requests[1]
	if want := "category=a%26b&checkout_root=%2Fbuilds%2Facme%2Fweb&commit=3f2a9c1&commit_time=2026-11-20T21%3A57%3A51%2B01%3A00&format=sarif&path_prefix=services%2Fweb&product=sast&project=acme%2Fweb&ref=main&" +
		"repo_url=https%3A%2F%2Fgit.acme.test%2Facme%2Fweb"; req.URL.RawQuery != want {
		t.Errorf("query: got %s, want %s", req.URL.RawQuery, want)
	}
	for name, want := range map[string]string{"Authorization": "Bearer " + testToken, "Content-Encoding": "gzip", "Expect": "100-continue"} {
		if req.Header.Get(name) != want {
			t.Errorf("%s: got %q, want %q", name, req.Header.Get(name), want)
		}
	}
	original, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(unzip(t, server.bodies[1]), original) {
		t.Error("the report did not arrive as it is on disk")
	}
}

func TestUploadSources(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(`{"runs":[]}`))
	_ = z.Close()
	dir := t.TempDir()
	save := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		file, stdin string
		asIs        bool
	}{
		"standard input":            {"-", `{"runs":[]}`, false},
		"standard input, gzip":      {"-", zipped.String(), true},
		"gzip file":                 {save("r.sarif.gz", zipped.String()), "", true},
		"gzip under another name":   {save("r.sarif", zipped.String()), "", true},
		"plain under a .gz name":    {save("plain.gz", `{"runs":[]}`), "", false},
		"empty standard input":      {"-", "", false},
		"one byte, less than magic": {"-", "{", false},
	} {
		t.Run(name, func(t *testing.T) {
			server := serveRecorded(t, map[string]string{reportsPath: "upload.json"})
			got := palisade(t, c.stdin, server.env(), "upload", c.file, "--project", "p", "--ref", "r", "--deployment", "default")
			if got.status != exitOK {
				t.Fatalf("status %d: %s", got.status, got.err)
			}
			body := server.bodies[0]
			if c.asIs && !bytes.Equal(body, zipped.Bytes()) {
				t.Error("a gzip report was changed on the way")
			}
			if plain := string(unzip(t, body)); !c.asIs && c.file == "-" && plain != c.stdin {
				t.Errorf("got %q, want %q", plain, c.stdin)
			}
		})
	}
}

func TestUploadJSON(t *testing.T) {
	server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, reportsPath: "upload.json"})
	got := palisade(t, "{}", server.env(), "upload", "-", "--project", "p", "--ref", "r", "-o", "json")
	recorded, err := os.ReadFile("testdata/upload.json")
	if err != nil {
		t.Fatal(err)
	}
	if got.status != exitOK || strings.TrimSpace(got.out) != strings.TrimSpace(string(recorded)) {
		t.Errorf("status %d: got %s", got.status, got.out)
	}
}

func TestUploadFailures(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.sarif")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const good = "testdata/upload.json"
	for name, c := range map[string]struct {
		files   []string
		answer  string
		out     []string
		err     []string
		uploads int
	}{
		"missing file":     {[]string{"none.sarif"}, "upload.json", nil, []string{"none.sarif: no such file"}, 0},
		"empty file":       {[]string{empty}, "upload.json", nil, []string{"is empty"}, 0},
		"directory":        {[]string{"testdata"}, "upload.json", nil, []string{"is a directory"}, 0},
		"bad token":        {[]string{good}, "401 error-401.json", nil, []string{"Not authorized", "401", "req-2", "PALISADE_TOKEN"}, 1},
		"too large":        {[]string{good}, `413 {"error":"too large","code":"BODY_TOO_LARGE"}`, nil, []string{"too large", "max-upload"}, 1},
		"rejected run":     {[]string{good}, "upload-rejected.json", []string{"REJECTED: 25001 rules", "category ui"}, []string{"1 of its runs were rejected"}, 1},
		"no JSON":          {[]string{good}, "200 <html>", nil, []string{"Palisade server"}, 1},
		"a page, no error": {[]string{good}, "502 <html>bad gateway</html>", nil, []string{"bad gateway", "--server", "try again"}, 1},
		"goes on":          {[]string{"none.sarif", good}, "upload.json", []string{"created 300"}, []string{"none.sarif", "1 of 2 files failed"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := serveRecorded(t, map[string]string{reportsPath: c.answer})
			args := append([]string{"upload", "--project", "p", "--ref", "r", "--deployment", "default"}, c.files...)
			got := palisade(t, "", server.env(), args...)
			if got.status != exitError {
				t.Errorf("status %d", got.status)
			}
			wantParts(t, got.out, c.out...)
			wantParts(t, got.err, c.err...)
			if len(server.requests) != c.uploads {
				t.Errorf("%d requests, want %d", len(server.requests), c.uploads)
			}
		})
	}
}

func TestConnectionRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	_ = listener.Close()
	got := palisade(t, "{}", []string{"PALISADE_TOKEN=" + testToken}, "upload", "-", "--project", "p", "--ref", "r", "--server", url)
	if got.status != exitError {
		t.Errorf("status %d", got.status)
	}
	wantParts(t, got.err, "nothing listens at "+url, "palisade serve", "PALISADE_URL")
}

func TestUploadWaitsForTheServer(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/readyz" && r.Header.Get("Authorization") != "":
			t.Error("the token was sent to /readyz")
		case r.URL.Path == "/readyz" && asked.Add(1) < 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path != "/readyz":
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = w.Write([]byte(`{"scan_id":1}`))
		}
	}))
	defer server.Close()
	env := []string{"PALISADE_TOKEN=" + testToken, "PALISADE_URL=" + server.URL + "/"}
	got := palisade(t, "{}", env, "upload", "-", "--project", "p", "--ref", "r", "--deployment", "default", "--wait", "1m")
	if got.status != exitOK || asked.Load() != 3 {
		t.Errorf("status %d after %d questions: %s", got.status, asked.Load(), got.err)
	}
	got = palisade(t, "{}", []string{"PALISADE_TOKEN=x", "PALISADE_URL=http://127.0.0.1:1"},
		"upload", "-", "--project", "p", "--ref", "r", "--wait", "50ms")
	wantParts(t, got.err, "was not ready after 50ms")
}

func TestDeploymentOfTheToken(t *testing.T) {
	for answer, want := range map[string]string{
		`{"deployments":[]}`:                          "no deployment",
		`{"deployments":[{"slug":"a"},{"slug":"b"}]}`: "--deployment: a, b",
		`404 {"error":"not found"}`:                   "of another deployment",
		`404 {"error":"x","code":"SCOPE_MISSING"}`:    "name it with --deployment",
	} {
		server := serveRecorded(t, map[string]string{deploymentsPath: answer})
		got := palisade(t, "", server.env(), "findings")
		if got.status != exitError {
			t.Errorf("%s: status %d", answer, got.status)
		}
		wantParts(t, got.err, want)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("https://elsewhere.test/login?token=1", http.StatusFound))
	defer server.Close()
	got := palisade(t, "", []string{"PALISADE_TOKEN=" + testToken, "PALISADE_URL=" + server.URL}, "findings")
	wantParts(t, got.err, "redirect to https://elsewhere.test")
}

// TestRefusedUploadIsNotSent: a refused report must not be sent over the network first, or a 401 would cost a gigabyte.
func TestRefusedUploadIsNotSent(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"Not authorized"}`))
	}))
	server.Listener = countingListener{server.Listener, &sent}
	server.Start()
	defer server.Close()
	noise := make([]byte, 8<<20)
	for i := range noise { // incompressible
		noise[i] = byte(i * i >> 7 * 31)
	}
	env := []string{"PALISADE_TOKEN=" + testToken, "PALISADE_URL=" + server.URL}
	got := palisade(t, string(noise), env, "upload", "-", "--project", "p", "--ref", "r", "--deployment", "default")
	wantParts(t, got.err, "Not authorized", "HTTP 401")
	if sent.Load() > 64<<10 {
		t.Errorf("%d bytes were sent to be refused", sent.Load())
	}
}

type countingListener struct {
	net.Listener
	read *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return countingConn{conn, l.read}, err
}

type countingConn struct {
	net.Conn
	read *atomic.Int64
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// TestUploadGate: only with --gate does the command fail because a policy blocks.
func TestUploadGate(t *testing.T) {
	const blocked = `{"scan_id":12,"project":"acme/web","ref":"refs/pull/7/merge","runs":[],"blocked":true,"block_reason":"policy No new: 2 findings","url":"https://palisade.test/console/acme/pull-requests?number=7"}`
	for _, test := range []struct {
		answer string
		flags  []string
		want   int
	}{
		{blocked, nil, exitOK},
		{blocked, []string{"--gate"}, exitNo},
		{blocked, []string{"--gate", "-o", "json"}, exitNo},
		{`{"scan_id":12,"runs":[]}`, []string{"--gate"}, exitOK},
	} {
		server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, reportsPath: test.answer})
		args := append([]string{"upload", "testdata/gosec-pocketbase.sarif", "--project", "acme/web", "--ref", "refs/pull/7/merge"}, test.flags...)
		got := palisade(t, "", server.env(), args...)
		if got.status != test.want || strings.Contains(test.answer, "blocked") != strings.Contains(got.out, "policy No new: 2 findings") {
			t.Errorf("%v: status %d, want %d: %s %s", test.flags, got.status, test.want, got.out, got.err)
		}
		if strings.Contains(test.answer, "console") != strings.Contains(got.out, "https://palisade.test/console/acme/pull-requests?number=7") {
			t.Errorf("%v: the page of the pull request: %s", test.flags, got.out)
		}
	}
}
