package gateway

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// ServerConfig is what NewHTTPServer needs.
type ServerConfig struct {
	// Address is the address to listen on, for Server.ListenAndServe; not used by Serve.
	Address string
	// TLS turns on TLS with HTTP/2; nil serves plain HTTP/1.1. See package certs.
	TLS *tls.Config
	// MaxHeaderBytes bounds the request line and header, in bytes; 0 is 128 KiB: a findings list may name
	// hundreds of projects in its query.
	MaxHeaderBytes int
	// MaxStreams bounds the concurrent requests of one HTTP/2 connection; 0 is 250.
	MaxStreams int
	// IdleTimeout is how long a connection may wait for its next request; 0 is 2 minutes.
	IdleTimeout time.Duration
	// Logger gets the server's own complaints (TLS handshakes, broken connections), at level debug.
	Logger *slog.Logger
}

// headerTimeout is how long a client may take to send the header.
const headerTimeout = 10 * time.Second

// NewHTTPServer returns a server with limits on everything that a client could draw out. Read and write limits
// are not set here: the gateway sets them for each request, since an upload has others than the rest.
func NewHTTPServer(config ServerConfig, handler http.Handler) *http.Server {
	log := config.Logger
	if log == nil {
		log = slog.Default()
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(config.TLS != nil)
	server := &http.Server{
		Addr:              config.Address,
		Handler:           handler,
		TLSConfig:         config.TLS,
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: orDefault(config.MaxStreams, 250)},
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       orDefault(config.IdleTimeout, 2*time.Minute),
		MaxHeaderBytes:    orDefault(config.MaxHeaderBytes, 128<<10),
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	unused := &unusedConns{conns: map[net.Conn]bool{}}
	server.ConnState = unused.note
	server.RegisterOnShutdown(unused.hurry)
	return server
}

// unusedTimeout is what a connection without a request gets to send one when the server stops.
const unusedTimeout = 500 * time.Millisecond

// unusedConns are the connections that have not sent a request yet. Clients open some in reserve. Server.Shutdown waits
// 5 seconds for each, as if it were a running request.
type unusedConns struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func (u *unusedConns) note(conn net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state == http.StateNew {
		u.conns[conn] = true
	} else {
		delete(u.conns, conn)
	}
}

// hurry bounds the wait for the header of a first request; the server takes the bound away when the header is there.
func (u *unusedConns) hurry() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for conn := range u.conns {
		_ = conn.SetReadDeadline(time.Now().Add(unusedTimeout))
	}
}
