package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// loopback permits the addresses of test servers.
const loopback = "127.0.0.1"

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// serveOn listens on another loopback address, which is another host for the guard.
func serveOn(t *testing.T, address string, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(handler)
	_ = s.Listener.Close()
	s.Listener = listener
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, client *http.Client, url string) (*http.Response, string, error) {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, string(body), err
}

func TestPrivateAddressIsRefusedAndLogged(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") })
	var log bytes.Buffer
	g, err := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, host := range []string{"localhost", "127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "::"} {
		log.Reset()
		conn, err := g.dial(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			_ = conn.Close()
			t.Fatalf("%s: connected", host)
		}
		if !errors.Is(err, ErrRefused) || Describe(err) != textUnreachable {
			t.Errorf("%s: got %v", host, err)
		}
		if !strings.Contains(log.String(), "outbound connection refused") || !strings.Contains(log.String(), port) {
			t.Errorf("%s: the log does not name it: %q", host, &log)
		}
	}
	for _, url := range []string{server.URL, "https://" + server.Listener.Addr().String(), "https://localhost:" + port} {
		if _, _, err := get(t, g.Client(Limits{}), url); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: got %v", url, err)
		}
	}
	for _, network := range []string{"udp", "unix", "ip4:icmp"} {
		if _, err := g.dial(t.Context(), network, "127.0.0.1:1"); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: got %v", network, err)
		}
	}
	for _, address := range []string{"127.0.0.1", "127.0.0.1:http", "127.0.0.1:0", "127.0.0.1:99999"} {
		if _, err := g.dial(t.Context(), "tcp", address); err == nil {
			t.Errorf("%s was accepted", address)
		}
	}
}

func TestAllowedByNameAndByAddress(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.UserAgent()) })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for allow, url := range map[string]string{
		"127.0.0.1":               server.URL,
		"127.0.0.0/8:" + port:     server.URL,
		"localhost":               "http://localhost:" + port,
		"LocalHost.:" + port:      "http://localhost:" + port,
		"localhost," + loopback:   "http://LOCALHOST:" + port,
		"127.0.0.1:" + port + ",": server.URL,
	} {
		_, body, err := get(t, newGuard(t, allow).Client(Limits{}), url)
		if err != nil || body != "Palisade/test" {
			t.Errorf("%s: got %q, %v", allow, body, err)
		}
	}
	if _, _, err := get(t, newGuard(t, "127.0.0.1:1,localhost:1").Client(Limits{}), server.URL); !errors.Is(err, ErrRefused) {
		t.Errorf("another port was let out: %v", err)
	}
}

func TestProxyOfEnvironmentIsNotUsed(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	if newGuard(t, "").transport.Proxy != nil {
		t.Error("a proxy would connect behind the check")
	}
}

func TestRedirectsAreNotFollowedUnasked(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/next", http.StatusFound) })
	response, _, err := get(t, newGuard(t, loopback).Client(Limits{}), server.URL)
	if err != nil || response.StatusCode != http.StatusFound {
		t.Errorf("got %v, %v", response, err)
	}
	if _, _, err := get(t, newGuard(t, loopback).Client(Limits{MaxRedirects: 3}), server.URL); !errors.Is(err, ErrTooManyRedirects) || Describe(err) != textTooManyHops {
		t.Errorf("a loop: got %v", err)
	}
}

func TestRedirectTargetIsChecked(t *testing.T) {
	inner := serveOn(t, "127.0.0.2:0", func(http.ResponseWriter, *http.Request) { t.Error("the inner server was reached") })
	_, port, _ := net.SplitHostPort(inner.Listener.Addr().String())
	for _, target := range []string{
		inner.URL, "https://127.0.0.2:" + port, "https://localhost:" + port, "https://[::ffff:7f00:2]:" + port,
		"https://169.254.169.254/latest/meta-data/", "http://public.example.com/", "ftp://127.0.0.2/", "https://user:pw@public.example.com/",
	} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", target)
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		_, _, err := get(t, newGuard(t, loopback).Client(Limits{MaxRedirects: 5}), server.URL)
		if !errors.Is(err, ErrRefused) || Describe(err) != textUnreachable {
			t.Errorf("%s: got %v, which reads %q", target, err, Describe(err))
		}
	}
}

func TestRedirectFromTLSToPlainIsRefused(t *testing.T) {
	plain := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the plain server was reached") })
	server := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer server.Close()
	g := newGuard(t, loopback)
	g.transport.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	_, _, err := get(t, g.Client(Limits{MaxRedirects: 5}), server.URL)
	if err == nil || Describe(err) != textBadRedirects {
		t.Errorf("got %v, which reads %q", err, Describe(err))
	}
}

func TestCredentialsStayWithTheirHost(t *testing.T) {
	var seen []http.Header
	note := func(w http.ResponseWriter, r *http.Request) { seen = append(seen, r.Header.Clone()) }
	other := serveOn(t, "127.0.0.2:0", note)
	first := serve(t, func(w http.ResponseWriter, r *http.Request) {
		note(w, r)
		if target := r.URL.Query().Get("to"); target != "" {
			http.Redirect(w, r, target, http.StatusTemporaryRedirect)
		}
	})
	client := newGuard(t, "127.0.0.1,127.0.0.2").Client(Limits{MaxRedirects: 5})
	send := func(method, target string, body io.Reader) (http.Header, error) {
		seen = nil
		request, _ := http.NewRequest(method, first.URL+"/?to="+target, body)
		for _, name := range []string{"Authorization", "Private-Token", "X-Api-Key", "Cookie", "Accept"} {
			request.Header.Set(name, secret)
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return seen[len(seen)-1], err
	}
	same, err := send(http.MethodGet, first.URL+"/next", nil)
	if err != nil || same.Get("Private-Token") != secret || same.Get("Authorization") != secret || same.Get("Referer") != "" {
		t.Errorf("the same origin: %v, %v", same, err)
	}
	away, err := send(http.MethodGet, other.URL+"/next", nil)
	if err != nil || len(seen) != 2 || away.Get("Accept") != secret {
		t.Fatalf("another host: %v, %v", away, err)
	}
	for _, name := range []string{"Authorization", "Private-Token", "X-Api-Key", "Cookie", "Referer"} {
		if away.Get(name) != "" {
			t.Errorf("%s went along to another host", name)
		}
	}
	if _, err := send(http.MethodPost, first.URL+"/next", strings.NewReader("body")); err != nil {
		t.Errorf("a body to the same origin: %v", err)
	}
	if _, err := send(http.MethodPost, other.URL+"/next", strings.NewReader("body")); err == nil || len(seen) != 1 || Describe(err) != textBadRedirects {
		t.Errorf("a body went along to another host: %v", err)
	}
}

func TestBodyCap(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		body := bytes.Repeat([]byte("x"), n)
		switch r.URL.Path {
		case "/declared":
			w.Header().Set("Content-Length", strconv.Itoa(n))
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(body)
			_ = z.Close()
			return
		case "/chunked":
			w.(http.Flusher).Flush()
		}
		_, _ = w.Write(body)
	})
	client := newGuard(t, loopback).Client(Limits{MaxResponse: 1000})
	for path, fits := range map[string]bool{
		"/declared?n=1000": true, "/declared?n=1001": false, "/chunked?n=1000": true, "/chunked?n=1001": false,
		"/chunked?n=0": true, "/gzip?n=1000": true, "/gzip?n=1000000": false,
	} {
		response, body, err := get(t, client, server.URL+path)
		var tooLarge *TooLargeError
		if fits != (err == nil) || fits && len(body) == 1000 != !strings.HasSuffix(path, "=0") {
			t.Errorf("%s: %d bytes, %v", path, len(body), err)
		}
		if !fits && (!errors.As(err, &tooLarge) || tooLarge.Limit != 1000 || len(body) > 1000 || Describe(err) != textTooLarge || response.StatusCode != 200) {
			t.Errorf("%s: %d bytes, %v", path, len(body), err)
		}
	}
	response, err := client.Head(server.URL + "/declared?n=5000")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Errorf("HEAD has no body to be too large: %v", err)
	}
}

func TestHeaderCap(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", 2*maxHeaderBytes))
	})
	if _, _, err := get(t, newGuard(t, loopback).Client(Limits{}), server.URL); err == nil {
		t.Error("a header beyond the cap was read")
	}
}

func TestTimeouts(t *testing.T) {
	release := make(chan struct{})
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.(http.Flusher).Flush()
		}
		<-release
	})
	defer close(release)
	client := newGuard(t, loopback).Client(Limits{Timeout: 50 * time.Millisecond})
	for _, path := range []string{"/header", "/body"} {
		response, _, err := get(t, client, server.URL+path)
		if !errors.Is(err, context.DeadlineExceeded) || response == nil && Describe(err) != textUnreachable {
			t.Errorf("%s: got %v, which reads %q", path, err, Describe(err))
		}
	}
	if newGuard(t, "").Client(Limits{}).Transport.(*guarded).timeout != defaultTimeout {
		t.Error("no limit must mean the default")
	}
}

func TestNoCookiesAreKept(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		_, _ = io.WriteString(w, r.Header.Get("Cookie"))
	})
	client := newGuard(t, loopback).Client(Limits{})
	for range 2 {
		if _, body, err := get(t, client, server.URL); err != nil || body != "" {
			t.Errorf("got %q, %v", body, err)
		}
	}
	client.CloseIdleConnections()
}
