package gateway

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// ServerConfig configures NewHTTPServer.
type ServerConfig struct {
	// Address is the address for Server.ListenAndServe. Serve ignores it.
	Address string
	// TLS enables TLS with HTTP/2. nil serves plain HTTP/1.1. See package certs.
	TLS *tls.Config
	// MaxHeaderBytes limits the request line and header, in bytes. 0 is 128 KiB, because a findings list may name
	// hundreds of projects in its query.
	MaxHeaderBytes int
	// MaxStreams limits the concurrent requests of one HTTP/2 connection. 0 is 250.
	MaxStreams int
	// IdleTimeout is how long a connection may wait for its next request. 0 is 2 minutes.
	IdleTimeout time.Duration
	// Logger gets the errors of net/http itself (TLS handshakes, broken connections), at level debug.
	Logger *slog.Logger
}

// headerTimeout is how long a client may take to send the header.
const headerTimeout = 10 * time.Second

// NewHTTPServer returns a server with limits on everything that a client can prolong. The gateway sets read and write
// deadlines for each request, since uploads have their own.
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
	server.RegisterOnShutdown(unused.expire)
	return server
}

// unusedTimeout is how long a connection without a request may still send one when the server stops.
const unusedTimeout = 500 * time.Millisecond

// unusedConns are the connections that have not sent a request yet. Clients open some in advance. Server.Shutdown would
// wait 5 seconds for each, as for a running request.
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

// expire sets a deadline for the header of the first request. net/http removes it when the header has arrived.
func (u *unusedConns) expire() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for conn := range u.conns {
		_ = conn.SetReadDeadline(time.Now().Add(unusedTimeout))
	}
}
