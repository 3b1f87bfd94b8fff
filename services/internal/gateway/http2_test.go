package gateway_test

import (
	"cmp"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/gateway"
)

// startTLS serves the handler as in production and returns an HTTP/2 client for it.
func startTLS(t *testing.T, handler http.Handler) (*http.Client, string) {
	t.Helper()
	certificate, roots := selfSigned(t)
	server := gateway.NewHTTPServer(gateway.ServerConfig{
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}, handler)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}}
	t.Cleanup(client.CloseIdleConnections)
	return client, "https://" + listener.Addr().String()
}

// TestHTTP2 sends requests and uploads over one connection. One upload is refused while it is sent.
func TestHTTP2(t *testing.T) {
	s := &recorder{}
	s.answer = answerEmpty(s)
	s.upload = func(stream uploadStream) error {
		_, data, err := collect(stream)
		if err != nil || len(data) != 1<<20 {
			return apierr.Internal(err)
		}
		return stream.SendAndClose(&scansv1.UploadReportResponse{})
	}
	early := func(stream uploadStream) error {
		_, err := stream.Recv()
		return cmp.Or(err, apierr.PermissionDenied("no"))
	}
	client, url := startTLS(t, newHandler(t, s, nil))
	whole := s.upload
	for _, test := range []struct {
		method, path string
		upload       func(uploadStream) error
		size, status int
	}{
		{"GET", base + "/projects", nil, 0, 200},
		{"HEAD", base + "/projects", nil, 0, 200},
		{"POST", uploadPath, whole, 1 << 20, 200},
		{"POST", uploadPath, early, 3 << 20, 403},
		{"POST", uploadPath, whole, 5 << 20, 413},
		{"POST", base + "/triage", nil, 2 << 20, 413},
		{"POST", uploadPath, whole, 1 << 20, 200},
	} {
		s.upload = test.upload
		request, _ := http.NewRequestWithContext(t.Context(), test.method, url+test.path, strings.NewReader(strings.Repeat("x", test.size)))
		response, err := client.Do(request)
		if err != nil {
			t.Fatalf("%s %s: %v", test.method, test.path, err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.ProtoMajor != 2 || response.StatusCode != test.status {
			t.Errorf("%s %s: %s %d, want %d", test.method, test.path, response.Proto, response.StatusCode, test.status)
		}
	}
}
