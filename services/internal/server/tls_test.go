package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/config"
)

// writeCertificate writes a new self-signed pair for 127.0.0.1 and returns its serial number.
func writeCertificate(t *testing.T, cfg config.Config, serial int64, until time.Time) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "palisade test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, cfg.TLSCert, "CERTIFICATE", der)
	writePEM(t, cfg.TLSKey, "PRIVATE KEY", private)
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return pool
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func tlsTestConfig(t *testing.T) config.Config {
	cfg := testConfig(t)
	cfg.TLSCert, cfg.TLSKey = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	return cfg
}

func TestTLSOnBothPortsWithReload(t *testing.T) {
	cfg := tlsTestConfig(t)
	pool := writeCertificate(t, cfg, 1, time.Now().Add(time.Hour))
	s, out := startServer(t, cfg, domains)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	if code, body := get(t, client, "https://"+s.Addresses().HTTP+"/api/v1/ping", ""); code != http.StatusOK {
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
	writeCertificate(t, cfg, 2, time.Now().Add(time.Hour))
	for _, address := range []string{s.Addresses().HTTP, s.Addresses().GRPC} {
		waitFor(t, func() bool { return servedSerial(t, address) == 2 })
	}
	// Files that do not belong together: the good pair stays.
	if err := os.WriteFile(cfg.TLSKey, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
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
	cfg := tlsTestConfig(t)
	writeCertificate(t, cfg, 1, time.Now().Add(-time.Minute))
	if _, err := Start(t.Context(), cfg, io.Discard); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired one: %v", err)
	}
	writePEM(t, cfg.TLSCert, "CERTIFICATE", []byte("x"))
	if _, err := Start(t.Context(), cfg, io.Discard); err == nil || !strings.Contains(err.Error(), cfg.TLSCert) {
		t.Errorf("a broken one: %v", err)
	}
}
