package egress_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/egress/egresstest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// budget is the timeout of one call in these tests.
const budget = 3 * time.Second

// unsentBody is more than the buffers of a connection on this machine hold.
const unsentBody = 64 << 20

func newGuard(t *testing.T, roots *x509.CertPool) *egress.Guard {
	t.Helper()
	g, err := egress.New(egress.Config{Allow: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	egress.TrustForTest(g, roots)
	return g
}

// certificate is a certificate for 127.0.0.1 with the pool that trusts it.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return &tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{"http/1.1"}}, s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
}

// wanted reports whether err fits the mode. A timeout is possible everywhere unless another error must come first.
func wanted(mode egresstest.Mode, sending bool, err error) bool {
	var tooLarge *egress.TooLargeError
	text := egress.Describe(err)
	switch mode {
	case egresstest.Upgrade, egresstest.BareUpgrade:
		return errors.Is(err, egress.ErrUpgrade) && strings.Contains(text, "101")
	case egresstest.EndlessBody:
		return errors.As(err, &tooLarge)
	case egresstest.SlowBody:
		return errors.Is(err, context.DeadlineExceeded) && strings.Contains(text, "broke off")
	case egresstest.Reset: // a reset may overtake the response while much is being sent
		return err != nil && (sending || strings.Contains(text, "broke off"))
	case egresstest.Redirects: // the connection of a response ends before everything is sent
		return errors.Is(err, context.DeadlineExceeded) || err != nil && sending
	case egresstest.HalfClosed, egresstest.Endless1xx:
		return err != nil && !errors.Is(err, context.DeadlineExceeded)
	}
	return errors.Is(err, context.DeadlineExceeded)
}

func TestHostileReceivers(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	secure, roots := certificate(t)
	egresstest.Shorten(t, budget)
	for _, mode := range egresstest.Modes {
		for scheme, config := range map[string]*tls.Config{"http": nil, "https": secure} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				t.Run(string(mode)+" "+scheme+" "+method, func(t *testing.T) {
					t.Parallel()
					r := egresstest.Start(t, mode, egresstest.Options{TLS: config})
					client := newGuard(t, roots).Client(egress.Limits{Timeout: time.Hour, MaxRedirects: 1000})
					err := egresstest.Within(t, budget, func() error { return exchange(t.Context(), client, method, r.URL) })
					if stalled := mode == egresstest.Silent || mode == egresstest.Unread; !wanted(mode, method == http.MethodPost, err) && !(stalled && config != nil && err != nil) {
						t.Errorf("got %v, which reads %q", err, egress.Describe(err))
					}
					r.RequireClosed(t)
				})
			}
		}
	}
}

// exchange makes a call and reads its whole response.
func exchange(ctx context.Context, client *http.Client, method, url string) error {
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(strings.Repeat("x", unsentBody))
	}
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

// Libraries that only take a transport follow redirects themselves, each with its own round trip.
func TestTransportAloneIsBounded(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	const short = 300 * time.Millisecond
	for _, mode := range []egresstest.Mode{egresstest.Silent, egresstest.SlowBody, egresstest.Redirects} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := egresstest.Start(t, mode, egresstest.Options{})
			client := &http.Client{Transport: newGuard(t, nil).Client(egress.Limits{Timeout: short}).Transport}
			err := egresstest.Within(t, short, func() error { return exchange(t.Context(), client, http.MethodGet, r.URL) })
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			r.RequireClosed(t)
		})
	}
}

// A response that is never closed does not keep its connection beyond the timeout of the call.
func TestForgottenBodyIsClosed(t *testing.T) {
	r := egresstest.Start(t, egresstest.SlowBody, egresstest.Options{})
	response, err := newGuard(t, nil).Client(egress.Limits{Timeout: 100 * time.Millisecond}).Get(r.URL) //nolint:bodyclose // it is the point
	if err != nil {
		t.Fatal(err)
	}
	r.RequireClosed(t)
	runtime.KeepAlive(response)
}

// Over HTTP/2 calls share a connection: a call that times out must end its own stream and not block the next one.
func TestHostileOverHTTP2(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	ended := make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/good" {
			_, _ = io.WriteString(w, r.Proto)
			return
		}
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
		}
		for r.URL.Path == "/hints" && r.Context().Err() == nil {
			w.WriteHeader(http.StatusEarlyHints)
		}
		<-r.Context().Done()
		ended <- r.URL.Path
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	guard := newGuard(t, server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs)
	client := guard.Client(egress.Limits{Timeout: 300 * time.Millisecond})
	for path, method := range map[string]string{"/silent": http.MethodGet, "/unread": http.MethodPost, "/body": http.MethodGet, "/hints": http.MethodGet} {
		err := egresstest.Within(t, budget, func() error { return exchange(t.Context(), client, method, server.URL+path) })
		if path != "/hints" && !errors.Is(err, context.DeadlineExceeded) || err == nil {
			t.Errorf("%s: got %v", path, err)
		}
		if got := <-ended; got != path {
			t.Errorf("%s ended, want %s", got, path)
		}
	}
	response, err := guard.Client(egress.Limits{}).Get(server.URL + "/good")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); string(text) != "HTTP/2.0" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestConversationsAreBounded(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	t.Run("time", func(t *testing.T) {
		r := egresstest.Start(t, egresstest.Silent, egresstest.Options{})
		conn, err := newGuard(t, nil).Connect(t.Context(), "tcp", r.Address, 200*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Hour)) // as libraries do before each command
		if err := egresstest.Within(t, budget, func() error { _, err := conn.Read(make([]byte, 1)); return err }); err == nil {
			t.Error("nothing was sent, but something was read")
		}
		r.RequireClosed(t)
	})
	t.Run("stop", func(t *testing.T) {
		r := egresstest.Start(t, egresstest.Unread, egresstest.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		conn, err := newGuard(t, nil).Connect(ctx, "tcp", r.Address, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(50*time.Millisecond, cancel)
		if err := egresstest.Within(t, budget, func() error { _, err := conn.Write(make([]byte, unsentBody)); return err }); err == nil {
			t.Error("nothing was read, but all was written")
		}
		r.RequireClosed(t)
	})
	t.Run("size", func(t *testing.T) {
		r := egresstest.Start(t, egresstest.EndlessBody, egresstest.Options{Greeting: "220 ready\r\n"})
		conn, err := newGuard(t, nil).Connect(t.Context(), "tcp", r.Address, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		var tooLarge *egress.TooLargeError
		if err := egresstest.Within(t, budget, func() error { _, err := io.Copy(io.Discard, conn); return err }); !errors.As(err, &tooLarge) {
			t.Errorf("got %v", err)
		}
		r.RequireClosed(t)
	})
	t.Run("close", func(t *testing.T) {
		r := egresstest.Start(t, egresstest.Silent, egresstest.Options{})
		conn, err := newGuard(t, nil).Connect(t.Context(), "tcp", r.Address, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		r.RequireClosed(t)
	})
}

// Datagrams need no consent of their target, so only listed hosts get them.
func TestDatagrams(t *testing.T) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	guard, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := guard.Connect(t.Context(), "udp", "8.8.8.8:53", 0); !errors.Is(err, egress.ErrRefused) {
		t.Errorf("got %v, %v", conn, err)
	}
	if guard, err = guard.Allowing(socket.LocalAddr().String()); err != nil {
		t.Fatal(err)
	}
	conn, err := guard.Connect(t.Context(), "udp", socket.LocalAddr().String(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Error(err)
	}
	got := make([]byte, 10)
	if n, _, err := socket.ReadFrom(got); string(got[:n]) != "hello" || err != nil {
		t.Errorf("got %q, %v", got[:n], err)
	}
}
