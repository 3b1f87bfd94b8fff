package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// pair creates a self-signed certificate with this serial number, valid for an hour around now plus shift.
func pair(t *testing.T, serial int64, shift time.Duration) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(shift - time.Hour), NotAfter: time.Now().Add(shift + time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// files are the two files of a test, with a clock and a log.
type files struct {
	t         *testing.T
	cert, key string
	clock     time.Time
	writes    int
	log       strings.Builder
}

func newFiles(t *testing.T) *files {
	dir := t.TempDir()
	return &files{t: t, cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key"), clock: time.Now()}
}

// write replaces a file and gives it a new modification time, however fast the test is.
func (f *files) write(path string, content []byte) {
	f.t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.writes++
	at := f.clock.Add(time.Duration(f.writes) * time.Millisecond)
	if err := os.Chtimes(path, at, at); err != nil {
		f.t.Fatal(err)
	}
}

func (f *files) load() (*Reloader, error) {
	return load(f.cert, f.key, slog.New(slog.NewTextHandler(&f.log, nil)), func() time.Time { return f.clock })
}

// serial advances the clock and returns the serial number that a handshake gets.
func (f *files) serial(r *Reloader) int64 {
	f.t.Helper()
	f.clock = f.clock.Add(checkEvery)
	served, err := r.GetCertificate(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return served.Leaf.SerialNumber.Int64()
}

func TestReload(t *testing.T) {
	f := newFiles(t)
	cert, key := pair(t, 1, 0)
	f.write(f.cert, cert)
	f.write(f.key, key)
	r, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	cert, key = pair(t, 2, 0)
	f.write(f.cert, cert) // the key is still the old one
	if got := f.serial(r); got != 1 {
		t.Errorf("half replaced: %d", got)
	}
	f.serial(r)
	f.write(f.key, key)
	if served, _ := r.GetCertificate(nil); served.Leaf.SerialNumber.Int64() != 1 {
		t.Error("looked at the files again within a second")
	}
	if got := f.serial(r); got != 2 {
		t.Errorf("replaced: %d", got)
	}
	if err := os.Remove(f.cert); err != nil {
		t.Fatal(err)
	}
	f.serial(r)
	if got := f.serial(r); got != 2 {
		t.Errorf("removed: %d", got)
	}
	old, oldKey := pair(t, 3, -3*time.Hour)
	f.write(f.cert, old)
	f.write(f.key, oldKey)
	f.serial(r)
	if got := f.serial(r); got != 2 {
		t.Errorf("expired: %d", got)
	}
	for text, want := range map[string]int{"are not valid,": 2, "cannot be read": 1, "reloaded": 1, "expired at": 1, "PRIVATE": 0} {
		if got := strings.Count(f.log.String(), text); got != want {
			t.Errorf("%q is in the log %d times, want %d:\n%s", text, got, want, f.log.String())
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	good, goodKey := pair(t, 1, 0)
	_, otherKey := pair(t, 2, 0)
	expired, expiredKey := pair(t, 3, -3*time.Hour)
	future, futureKey := pair(t, 4, 3*time.Hour)
	for name, test := range map[string]struct {
		cert, key []byte
		want      string
	}{
		"no certificate": {nil, goodKey, "no such file"},
		"no key":         {good, nil, "no such file"},
		"not PEM":        {[]byte("x"), goodKey, "tls.crt"},
		"other key":      {good, otherKey, "does not match"},
		"expired":        {expired, expiredKey, "expired at"},
		"not yet valid":  {future, futureKey, "is not valid before"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFiles(t)
			if test.cert != nil {
				f.write(f.cert, test.cert)
			}
			if test.key != nil {
				f.write(f.key, test.key)
			}
			if _, err := f.load(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestHandshakes serves real connections while the files change.
func TestHandshakes(t *testing.T) {
	f := newFiles(t)
	cert, key := pair(t, 1, 0)
	f.write(f.cert, cert)
	f.write(f.key, key)
	r, err := Load(f.cert, f.key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", r.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = conn.(*tls.Conn).Handshake(); _ = conn.Close() }()
		}
	}()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
			if err != nil {
				t.Error(err)
				return
			}
			if got := conn.ConnectionState().NegotiatedProtocol; got != "h2" {
				t.Errorf("negotiated %q", got)
			}
			_ = conn.Close()
		})
	}
	wait.Wait()
	if _, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
}
