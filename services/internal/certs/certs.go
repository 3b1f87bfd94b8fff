// Package certs serves a TLS certificate from two files and reloads it when the files change, so that a renewed
// certificate needs no restart.
package certs

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// checkEvery is the shortest time between two checks of the files by handshakes.
const checkEvery = time.Second

// Reloader holds the certificate that is served. It is safe for concurrent use.
type Reloader struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu      sync.Mutex
	pair    *tls.Certificate
	seen    fingerprint // of the files when they were last read, valid or not
	checked time.Time
}

// fingerprint identifies one version of the files.
type fingerprint struct {
	certTime, keyTime time.Time
	certSize, keySize int64
}

// Load reads the certificate and key. It fails if the files cannot be read, do not match, or hold a certificate that
// is not valid now. log gets a line for each change of the files; nil is slog.Default.
func Load(certFile, keyFile string, log *slog.Logger) (*Reloader, error) {
	return load(certFile, keyFile, log, time.Now)
}

func load(certFile, keyFile string, log *slog.Logger, now func() time.Time) (*Reloader, error) {
	if log == nil {
		log = slog.Default()
	}
	r := &Reloader{certFile: certFile, keyFile: keyFile, log: log, now: now}
	seen, err := r.look()
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	pair, err := r.read()
	if err != nil {
		return nil, err
	}
	r.pair, r.seen, r.checked = pair, seen, now()
	return r, nil
}

// Config returns a server configuration: TLS 1.2 or newer, HTTP/2 and HTTP/1.1.
func (r *Reloader) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: r.GetCertificate,
	}
}

// GetCertificate is for tls.Config. It checks the files at most once a second. It serves a valid new pair; otherwise it
// keeps the old one and logs the reason once.
func (r *Reloader) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); now.Sub(r.checked) >= checkEvery {
		r.checked = now
		r.reload()
	}
	return r.pair, nil
}

// reload reads the files when they changed since the last read. It takes the fingerprint first, so that a change during
// the read is noticed the next time.
func (r *Reloader) reload() {
	seen, err := r.look()
	if err != nil {
		// While the files are being replaced, one may be missing for a moment. The zero value means "log once".
		if r.seen != (fingerprint{}) {
			r.log.Warn("TLS files cannot be read, keeping the certificate in use", slog.Any("error", err))
		}
		r.seen = fingerprint{}
		return
	}
	if seen == r.seen {
		return
	}
	r.seen = seen
	pair, err := r.read()
	if err != nil {
		r.log.Error("new TLS files are not valid, keeping the certificate in use", slog.Any("error", err))
		return
	}
	r.pair = pair
	r.log.Info("TLS certificate reloaded", slog.Time("not_after", pair.Leaf.NotAfter))
}

func (r *Reloader) look() (fingerprint, error) {
	cert, err := os.Stat(r.certFile)
	if err != nil {
		return fingerprint{}, err
	}
	key, err := os.Stat(r.keyFile)
	if err != nil {
		return fingerprint{}, err
	}
	return fingerprint{cert.ModTime(), key.ModTime(), cert.Size(), key.Size()}, nil
}

// read loads the pair and checks what tls.LoadX509KeyPair does not: that the certificate is valid now.
func (r *Reloader) read() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(r.certFile, r.keyFile)
	if err != nil {
		return nil, fmt.Errorf("TLS: certificate %s with key %s: %w", r.certFile, r.keyFile, err)
	}
	now := r.now()
	if now.After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("TLS: certificate %s expired at %s", r.certFile, pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	if now.Before(pair.Leaf.NotBefore) {
		return nil, fmt.Errorf("TLS: certificate %s is not valid before %s", r.certFile, pair.Leaf.NotBefore.Format(time.RFC3339))
	}
	return &pair, nil
}
