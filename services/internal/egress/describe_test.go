package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDescribeHidesPortStates compares the texts for tenants in all cases that must look alike.
func TestDescribeHidesPortStates(t *testing.T) {
	client := newGuard(t, loopback).Client(Limits{Timeout: 200 * time.Millisecond})
	failure := func(url string) error {
		_, _, err := get(t, client, url)
		return err
	}
	open := serve(t, func(http.ResponseWriter, *http.Request) {})
	closed := listen(t, nil)
	_ = closed.Close()
	banner := listen(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.6\r\n"); _ = c.Close() })
	hangUp := listen(t, func(c net.Conn) { _ = c.Close() })
	silent := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	defer old.Close()
	for name, err := range map[string]error{
		"refused address":     failure("https://127.0.0.2:" + port(open.Listener)),
		"refused closed port": failure("https://127.0.0.2:" + port(closed)),
		"refused metadata":    failure("https://169.254.169.254/"),
		"closed port":         failure("http://" + closed.Addr().String()),
		"filtered port":       &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded},
		"no route":            &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)},
		"no such name":        fmt.Errorf("get: %w", &net.DNSError{Err: "no such host", Name: "x.internal", IsNotFound: true}),
		"another protocol":    failure("http://" + banner.Addr().String()),
		"no TLS":              failure("https://" + open.Listener.Addr().String()),
		"TLS to a banner":     failure("https://" + banner.Addr().String()),
		"old TLS":             failure(old.URL),
		"hangs up":            failure("http://" + hangUp.Addr().String()),
		"says nothing":        failure("http://" + silent.Addr().String()),
		"says nothing, TLS":   failure("https://" + silent.Addr().String()),
		"cancelled":           context.Canceled,
	} {
		if err == nil || Describe(err) != "the host could not be reached" {
			t.Errorf("%s: %v reads %q", name, err, Describe(err))
		}
	}
}

// TestDescribeNamesIdentifiedHosts: a host that sent a certificate or a status is known to exist.
func TestDescribeNamesIdentifiedHosts(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	_, _, err := get(t, newGuard(t, loopback).Client(Limits{}), server.URL)
	if Describe(err) != textCertificate {
		t.Errorf("%v reads %q", err, Describe(err))
	}
	broken := listen(t, func(c net.Conn) {
		_, _ = io.ReadAtLeast(c, make([]byte, 100), 20)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		_ = c.Close()
	})
	response, _, err := get(t, newGuard(t, loopback).Client(Limits{}), "http://"+broken.Addr().String())
	if response == nil || Describe(err) != textBroken || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v reads %q", err, Describe(err))
	}
	if Describe(nil) != "" {
		t.Error("no error must read as nothing")
	}
}

func TestErrorTextsForTheOperator(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&RefusedError{Host: "a.test", Address: "10.0.0.1:443", Reason: "private"}, "a.test (10.0.0.1:443) refused: private"},
		{&RefusedError{Host: "a.test", Reason: "x"}, "a.test refused: x"},
		{&TooLargeError{Limit: 7}, "7 bytes"},
	} {
		if !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("got %q, want %q", c.err, c.want)
		}
	}
}

// listen runs serve on each connection until the test ends.
func listen(t *testing.T, serve func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go serve(c)
		}
	}()
	return l
}

func port(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
