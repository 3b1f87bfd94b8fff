// Package egresstest provides hostile receivers, for tests of outbound calls. They speak raw TCP, or TLS on request,
// and keep their sockets open as long as the caller does.
package egresstest

import (
	"crypto/tls"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Mode is a kind of hostile behaviour.
type Mode string

// The modes. A caller without limits would wait forever in all of them except HalfClosed and Reset.
const (
	// Upgrade answers 101 and leaves the socket open.
	Upgrade Mode = "upgrade"
	// BareUpgrade is Upgrade without the headers that a 101 needs.
	BareUpgrade Mode = "bare upgrade"
	// SlowHeader sends the header byte by byte.
	SlowHeader Mode = "slow header"
	// SlowBody sends a body byte by byte, after a good header.
	SlowBody Mode = "slow body"
	// EndlessBody sends a body as fast as it is read.
	EndlessBody Mode = "endless body"
	// HalfClosed closes its side of the connection and keeps the other open.
	HalfClosed Mode = "half-closed socket"
	// Silent reads everything and sends nothing. With an https:// URL, the handshake stalls.
	Silent Mode = "silent"
	// Unread reads nothing and sends nothing.
	Unread Mode = "reads nothing"
	// Redirects answers each request with a redirect to itself, after redirectDelay.
	Redirects Mode = "redirect loop"
	// Reset resets the connection in the middle of the body.
	Reset Mode = "reset"
	// Endless1xx sends informational responses as fast as they are read; Slow1xx sends them slowly.
	Endless1xx Mode = "endless 1xx"
	Slow1xx    Mode = "slow 1xx"
)

// Modes lists all modes.
var Modes = []Mode{
	Upgrade, BareUpgrade, SlowHeader, SlowBody, EndlessBody, HalfClosed, Silent, Unread, Redirects, Reset, Endless1xx, Slow1xx,
}

const (
	// byteInterval is the time between two bytes. A real attack would use a second; the budgets in tests are shorter,
	// too.
	byteInterval = 50 * time.Millisecond
	// redirectDelay is how long a redirect takes.
	redirectDelay = 200 * time.Millisecond
	// listenTime is how long the receiver waits for the first byte of the client. In some protocols the server sends
	// first.
	listenTime = 200 * time.Millisecond
	// closeTimeout is how long a busy machine may take to close a connection.
	closeTimeout = 30 * time.Second
)

// Options configure a receiver.
type Options struct {
	// TLS makes it speak TLS. Silent, Unread and HalfClosed end before that.
	TLS *tls.Config
	// Greeting replaces the header of an HTTP response, for other protocols.
	Greeting string
}

// Receiver listens on a loopback address until the test ends.
type Receiver struct {
	// Address is host:port; URL adds a scheme.
	Address, URL string

	mode    Mode
	options Options
	ending  chan struct{} // closed at the end of the test

	mu    sync.Mutex
	conns []*conn
}

// conn is an accepted connection.
type conn struct {
	net.Conn
	raw         net.Conn
	first       chan struct{} // closed with the first byte
	closed      chan struct{} // closed when the caller has closed the connection
	checkClosed chan struct{} // closed when the test asks for it
	once        sync.Once
}

// Start listens. With TLS, the URL is https://.
func Start(t testing.TB, mode Mode, o Options) *Receiver {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Receiver{Address: listener.Addr().String(), mode: mode, options: o, ending: make(chan struct{})}
	r.URL = "http://" + r.Address
	if o.TLS != nil {
		r.URL = "https://" + r.Address
	}
	t.Cleanup(func() {
		close(r.ending)
		_ = listener.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, c := range r.conns {
			_ = c.raw.Close()
		}
	})
	go func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			c := &conn{Conn: raw, raw: raw, first: make(chan struct{}), closed: make(chan struct{}), checkClosed: make(chan struct{})}
			if o.TLS != nil && mode != Silent && mode != Unread && mode != HalfClosed {
				c.Conn = tls.Server(raw, o.TLS)
			}
			r.mu.Lock()
			r.conns = append(r.conns, c)
			r.mu.Unlock()
			go r.read(c)
			go r.answer(c)
		}
	}()
	return r
}

func (r *Receiver) accepted() []*conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.conns)
}

// RequireClosed fails the test unless the caller made at least one connection and closes all of them soon.
func (r *Receiver) RequireClosed(t testing.TB) {
	t.Helper()
	late := time.After(closeTimeout)
	conns := r.accepted()
	for len(conns) == 0 { // the caller may have closed a connection that is not accepted yet
		select {
		case <-time.After(time.Millisecond):
			conns = r.accepted()
		case <-late:
			t.Fatal("the receiver was not called")
		}
	}
	for _, c := range conns {
		c.once.Do(func() { close(c.checkClosed) })
		select {
		case <-c.closed:
		case <-late:
			t.Fatal("the connection to the receiver is still open")
		}
	}
}

// read consumes what the caller sends and notices when the caller closes the connection.
func (r *Receiver) read(c *conn) {
	defer close(c.closed)
	if r.mode == Unread {
		select {
		case <-c.checkClosed:
		case <-r.ending:
		}
	}
	buffer := make([]byte, 64<<10)
	for first := true; ; first = false {
		n, err := c.Read(buffer)
		if n > 0 && first {
			close(c.first)
		}
		if err != nil {
			return
		}
	}
}

// answer behaves as the mode says. An error means that the caller has gone.
func (r *Receiver) answer(c *conn) {
	if r.mode == HalfClosed {
		_ = c.raw.(*net.TCPConn).CloseWrite()
		return
	}
	select {
	case <-c.first:
	case <-c.closed:
		return
	case <-time.After(listenTime):
	}
	header := r.options.Greeting
	if header == "" {
		header = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
	}
	switch r.mode {
	case Upgrade:
		say(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	case BareUpgrade:
		say(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
	case SlowHeader:
		r.drip(c, header[:8]+strings.Repeat("2", 1<<10))
	case SlowBody:
		if say(c, header) {
			r.drip(c, strings.Repeat("250-slow\r\n", 1<<10))
		}
	case EndlessBody:
		for more := say(c, header); more; more = say(c, strings.Repeat("250-endless\r\n", 1<<10)) {
		}
	case Redirects:
		time.Sleep(redirectDelay)
		if say(c, "HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\nConnection: close\r\n\r\n") {
			_ = c.Close()
		}
	case Reset:
		if say(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"half\":") {
			time.Sleep(byteInterval)
			_ = c.raw.(*net.TCPConn).SetLinger(0)
			_ = c.raw.Close()
		}
	case Endless1xx:
		for say(c, strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100)) {
		}
	case Slow1xx:
		for say(c, "HTTP/1.1 103 Early Hints\r\n\r\n") {
			time.Sleep(byteInterval)
		}
	}
}

// drip sends a text byte by byte.
func (r *Receiver) drip(c *conn, text string) {
	for i := range text {
		select {
		case <-r.ending:
			return
		case <-c.closed:
			return
		case <-time.After(byteInterval):
		}
		if !say(c, text[i:i+1]) {
			return
		}
	}
}

func say(c *conn, text string) bool {
	_, err := io.WriteString(c, text)
	return err == nil
}

// Calls is the number of accepted connections.
func (r *Receiver) Calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns)
}
