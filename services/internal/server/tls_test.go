package server_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/internal/apitest"
)

func TestTLSOnBothPortsWithReload(t *testing.T) {
	cfg := apitest.TLSConfig(t)
	pool := apitest.WriteCertificate(t, cfg, 1, time.Now().Add(time.Hour))
	s, out := apitest.StartConfigured(t, cfg)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	if code, body := apitest.Get(t, client, "https://"+s.Addresses().HTTP+"/api/v1/ping", ""); code != http.StatusOK {
		t.Errorf("https: %d %s", code, body)
	}
	if !strings.Contains(out.String(), "https://"+s.Addresses().HTTP+"/api/v1/deployments") {
		t.Errorf("the printed call is not https:\n%s", out)
	}
	conn, err := grpc.NewClient(s.Addresses().GRPC, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := platformv1.NewMiscellaneousServiceClient(conn).Ping(t.Context(), &platformv1.PingRequest{}); err != nil {
		t.Errorf("grpc over TLS: %v", err)
	}
	apitest.WriteCertificate(t, cfg, 2, time.Now().Add(time.Hour))
	for _, address := range []string{s.Addresses().HTTP, s.Addresses().GRPC} {
		apitest.Eventually(t, "the server says so", func() bool { return servedSerial(t, address) == 2 })
	}
	// Certificate and key do not match: the server keeps the valid pair.
	if err := os.WriteFile(cfg.TLSKey, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the server says so", func() bool {
		return servedSerial(t, s.Addresses().GRPC) == 2 && strings.Contains(out.String(), "keeping the certificate in use")
	})
}

// servedSerial is the serial number of the certificate that a port serves.
func servedSerial(t *testing.T, address string) int64 {
	t.Helper()
	//nolint:gosec // the test looks at the certificate, it sends nothing
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestBadCertificateDoesNotStart(t *testing.T) {
	cfg := apitest.TLSConfig(t)
	apitest.WriteCertificate(t, cfg, 1, time.Now().Add(-time.Minute))
	if _, err := services.Start(t.Context(), cfg, io.Discard); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired one: %v", err)
	}
	apitest.WritePEM(t, cfg.TLSCert, "CERTIFICATE", []byte("x"))
	if _, err := services.Start(t.Context(), cfg, io.Discard); err == nil || !strings.Contains(err.Error(), cfg.TLSCert) {
		t.Errorf("a broken one: %v", err)
	}
}
