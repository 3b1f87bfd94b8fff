package console_test

import (
	"compress/gzip"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

const wantPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// wantSecure requires the headers of every page and file.
func (a answer) wantSecure(t *testing.T, path string) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": wantPolicy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY",
	} {
		if got := a.Header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %s is %q", path, name, got)
		}
	}
}

// The console's files have stable names, so browsers ask each time and get 304 while they are the same.
func TestFiles(t *testing.T) {
	s := apitest.Start(t, nil)
	b := newBrowser(t, s)
	for path, contentType := range map[string]string{
		"/console/":                       "text/html; charset=utf-8",
		"/console/index.html":             "text/html; charset=utf-8",
		"/console/assets/index.js":        "text/javascript; charset=utf-8",
		"/console/assets/index.css":       "text/css; charset=utf-8",
		"/console/icon.svg":               "image/svg+xml",
		"/console/acme/triage":            "text/html; charset=utf-8", // screens
		"/console/acme/findings/12":       "text/html; charset=utf-8",
		"/console/acme/projects/web.site": "text/html; charset=utf-8",
	} {
		got := b.get(path)
		if got.Status != http.StatusOK || got.Header.Get("Content-Type") != contentType || got.Header.Get("Cache-Control") != "no-cache" || got.Body == "" {
			t.Errorf("%s: %d %v", path, got.Status, got.Header)
		}
		got.wantSecure(t, path)
		known := b.get(path, "If-None-Match", got.Header.Get("ETag"))
		if known.Status != http.StatusNotModified || known.Body != "" || known.Header.Get("ETag") != got.Header.Get("ETag") {
			t.Errorf("%s, known: %d %v", path, known.Status, known.Header)
		}
		known.wantSecure(t, path)
		if changed := b.get(path, "If-None-Match", `W/"other"`); changed.Status != http.StatusOK || changed.Body != got.Body {
			t.Errorf("%s, changed: %d", path, changed.Status)
		}
		head := b.do(http.MethodHead, path, nil)
		if head.Status != http.StatusOK || head.Body != "" || head.Header.Get("ETag") != got.Header.Get("ETag") {
			t.Errorf("HEAD %s: %d %v", path, head.Status, head.Header)
		}
	}
	for _, path := range []string{"/console/assets/gone.js", "/console/assets/", "/console/favicon.ico", "/console/index.js"} {
		if got := b.get(path); got.Status != http.StatusNotFound || !strings.Contains(got.Body, `"code":"ROUTE_NOT_FOUND"`) {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
	if got := b.do(http.MethodPost, "/console/", nil); got.Status != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %v", got.Status, got.Header)
	}
}

func TestFilesAreCompressed(t *testing.T) {
	s := apitest.Start(t, nil)
	b := newBrowser(t, s)
	plain := b.get("/console/assets/index.js", "Accept-Encoding", "identity")
	packed := b.get("/console/assets/index.js", "Accept-Encoding", "gzip")
	if packed.Header.Get("Content-Encoding") != "gzip" || len(packed.Body) > len(plain.Body)/2 {
		t.Fatalf("%d of %d bytes, %v", len(packed.Body), len(plain.Body), packed.Header)
	}
	reader, err := gzip.NewReader(strings.NewReader(packed.Body))
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(reader); err != nil || string(content) != plain.Body {
		t.Errorf("the compressed file differs, %v", err)
	}
}

// Nothing in a page is inline, and nothing comes from elsewhere.
func TestPagesLoadFilesOnly(t *testing.T) {
	s := apitest.Start(t, nil)
	b := newBrowser(t, s)
	for _, path := range []string{"/console/", "/auth/link?code=x", "/auth/login", "/auth/callback"} {
		got := b.get(path)
		got.wantSecure(t, path)
		for _, bad := range []string{"<style", " style=", " onclick=", "<script>", "//", "javascript:"} {
			if strings.Contains(got.Body, bad) {
				t.Errorf("%s has %s:\n%s", path, bad, got.Body)
			}
		}
	}
	if got := b.get("/auth/page.css"); got.Status != http.StatusOK || got.Header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("the style is %d %v", got.Status, got.Header)
	}
}

// / is the console for browsers, and not found for API clients.
func TestRoot(t *testing.T) {
	s := apitest.Start(t, nil)
	b := newBrowser(t, s)
	if got := b.get("/", "Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"); got.Status != http.StatusFound || got.location() != "/console/" || got.Header.Get("Vary") == "" {
		t.Errorf("a browser: %d %v", got.Status, got.Header)
	}
	for _, accept := range []string{"", "*/*", "application/json"} {
		if got := b.get("/", "Accept", accept); got.Status != http.StatusNotFound || !strings.Contains(got.Body, `"code":"ROUTE_NOT_FOUND"`) {
			t.Errorf("%q: %d %s", accept, got.Status, got.Body)
		}
	}
	if got := b.get("/console"); got.Status != http.StatusFound || got.location() != "/console/" {
		t.Errorf("without a slash: %d %v", got.Status, got.Header)
	}
}

// A public URL with a path completes all addresses, because a proxy removes the path.
func TestBelowAPath(t *testing.T) {
	s := apitest.Start(t, func(c *config.Config) { c.PublicURL = "https://acme.test/tools/palisade/" })
	b := newBrowser(t, s)
	page := b.get("/console/acme/triage").Body
	for _, want := range []string{`content="/tools/palisade"`, `src="/tools/palisade/console/assets/index.js"`, `href="/tools/palisade/console/assets/index.css"`} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is not in %s", want, page)
		}
	}
	if got := b.get("/", "Accept", "text/html").location(); got != "/tools/palisade/console/" {
		t.Errorf("/ leads to %s", got)
	}
	if got := b.get("/auth/login").Body; !strings.Contains(got, `href="/tools/palisade/console/sign-in"`) || !strings.Contains(got, `href="/tools/palisade/auth/page.css"`) {
		t.Errorf("the page is %s", got)
	}
}

// Under TLS browsers are told to stay there.
func TestStrictTransport(t *testing.T) {
	cfg := apitest.TLSConfig(t)
	pool := apitest.WriteCertificate(t, cfg, 1, time.Now().Add(time.Hour))
	s, _ := apitest.StartConfigured(t, cfg)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	response, err := client.Get("https://" + s.Addresses().HTTP + "/console/") //nolint:noctx // a test on this machine
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.Header.Get("Strict-Transport-Security") == "" || response.Header.Get("Content-Security-Policy") != wantPolicy {
		t.Errorf("%v", response.Header)
	}
}
