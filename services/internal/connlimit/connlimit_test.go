package connlimit_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/peer"

	"github.com/palisade/palisade/services/internal/connlimit"
)

// burst is how many calls a connection may abandon at once in these tests, and burstOfAddress an address.
const burst, burstOfAddress = 400, 4000

// port is a limited port with a clock that stands still.
type port struct {
	*connlimit.Limit
	address  string
	accepted chan net.Conn

	mu     sync.Mutex
	clock  time.Time
	closed []string // reasons
}

func open(t *testing.T, connections int) *port {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &port{address: inner.Addr().String(), accepted: make(chan net.Conn), clock: time.Unix(1e9, 0)}
	p.Limit = connlimit.New(connlimit.Config{
		Port: "test", Connections: connections, Calls: 1, UnackedTimeout: time.Minute, Log: slog.New(slog.DiscardHandler),
		Closed: func(reason string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.closed = append(p.closed, reason)
		},
	})
	p.SetClock(func() time.Time {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.clock
	})
	listener := p.Listener(inner)
	go func() {
		defer close(p.accepted)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			p.accepted <- c
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		for c := range p.accepted {
			_ = c.Close()
		}
	})
	return p
}

func (p *port) wait(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock = p.clock.Add(d)
}

func (p *port) reasons() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.closed)
}

func (p *port) dial(t *testing.T, from string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(t.Context(), "tcp", p.address)
	if err != nil {
		t.Skipf("this machine cannot connect from %s: %v", from, err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// connect returns both ends of a connection that the port admits.
func (p *port) connect(t *testing.T, from string) (client, server net.Conn) {
	t.Helper()
	client = p.dial(t, from)
	server = <-p.accepted
	if server.RemoteAddr().String() != client.LocalAddr().String() {
		t.Fatalf("another connection was admitted: from %s, want %s", server.RemoteAddr(), client.LocalAddr())
	}
	t.Cleanup(func() { _ = server.Close() })
	return client, server
}

// requireClosed fails unless the port closes the connection.
func requireClosed(t *testing.T, client net.Conn) {
	t.Helper()
	if n, err := client.Read(make([]byte, 1)); err == nil {
		t.Fatalf("read %d bytes", n)
	}
}

// abandon begins and abandons calls on a connection.
func abandon(server net.Conn, calls int) {
	ctx, cancel := context.WithCancel(peer.NewContext(context.Background(), &peer.Peer{Addr: server.RemoteAddr()}))
	call := connlimit.Begin(ctx)
	cancel()
	for range calls {
		call.End()
	}
}

func TestConnectionsOfAnAddress(t *testing.T) {
	t.Parallel()
	const here, there = "127.0.0.1", "127.0.0.2"
	p := open(t, 2)
	_, first := p.connect(t, here)
	p.connect(t, here)
	requireClosed(t, p.dial(t, here))
	p.connect(t, there)
	_ = first.Close()
	_ = first.Close() // counts once
	p.connect(t, here)
	requireClosed(t, p.dial(t, here))
	if got := p.reasons(); !slices.Equal(got, []string{connlimit.TooMany, connlimit.TooMany}) {
		t.Errorf("closed: %q", got)
	}
}

func TestUnlimitedConnections(t *testing.T) {
	t.Parallel()
	p := open(t, 0)
	for range 20 {
		p.connect(t, "127.0.0.1")
	}
}

func TestAbandonedCallsOfAConnection(t *testing.T) {
	t.Parallel()
	p := open(t, 2)
	client, server := p.connect(t, "127.0.0.1")
	other, quiet := p.connect(t, "127.0.0.1")
	abandon(server, burst)
	p.wait(time.Second)
	abandon(server, burst/4) // of the last second
	if got := p.reasons(); len(got) > 0 {
		t.Fatalf("closed within the limit: %q", got)
	}
	abandon(server, 10)
	requireClosed(t, client)
	p.connect(t, "127.0.0.1") // its place is free
	abandon(quiet, 1)
	go func() { _, _ = quiet.Write([]byte("x")) }()
	if _, err := other.Read(make([]byte, 1)); err != nil {
		t.Errorf("another connection of the address: %v", err)
	}
	if got := p.reasons(); !slices.Equal(got, []string{connlimit.Abandoned}) {
		t.Errorf("closed: %q, want it once", got)
	}
}

func TestAbandonedCallsOfAnAddress(t *testing.T) {
	t.Parallel()
	const here, there = "127.0.0.1", "127.0.0.2"
	p := open(t, 0)
	for range burstOfAddress / burst {
		_, server := p.connect(t, here)
		abandon(server, burst)
	}
	client, server := p.connect(t, here)
	if got := p.reasons(); len(got) > 0 {
		t.Fatalf("closed within the limit: %q", got)
	}
	abandon(server, 2*burstOfAddress) // the calls that had begun
	requireClosed(t, client)
	requireClosed(t, p.dial(t, here))
	p.connect(t, there)
	p.wait(connlimit.LongestBlock + time.Millisecond)
	_, server = p.connect(t, here)
	abandon(server, 1)
	if got := p.reasons(); !slices.Equal(got, []string{connlimit.Abandoned, connlimit.Abandoned}) {
		t.Errorf("closed: %q", got)
	}
}

// TestTimeouts: a call that ends at a timeout of ordinary length is not abandoned. A shorter timeout replaces a reset.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	p := open(t, 0)
	client, server := p.connect(t, "127.0.0.1")
	ended := func(timeout time.Duration) connlimit.Call {
		ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: server.RemoteAddr()})
		ctx, cancel := context.WithTimeout(ctx, timeout)
		t.Cleanup(cancel)
		call := connlimit.Begin(ctx)
		<-ctx.Done()
		return call
	}
	ordinary, hasty := ended(200*time.Millisecond), ended(time.Millisecond)
	for range 10 * burst {
		ordinary.End()
	}
	if got := p.reasons(); len(got) > 0 {
		t.Fatalf("closed: %q", got)
	}
	for range burst + 1 {
		hasty.End()
	}
	requireClosed(t, client)
}

// TestAnsweredCalls: calls that are answered do not count, however many they are.
func TestAnsweredCalls(t *testing.T) {
	t.Parallel()
	p := open(t, 0)
	_, server := p.connect(t, "127.0.0.1")
	ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: server.RemoteAddr()})
	for range 100 * burst {
		connlimit.Begin(ctx).End()
	}
	connlimit.Abandon(t.Context()) // of a call in process, which has no connection
	if got := p.reasons(); len(got) > 0 {
		t.Errorf("closed: %q", got)
	}
}

// TestHTTP: requests count in HTTP/2 only.
func TestHTTP(t *testing.T) {
	t.Parallel()
	p := open(t, 0)
	client, server := p.connect(t, "127.0.0.1")
	handler := connlimit.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	ctx, cancel := context.WithCancel(connlimit.ConnContext(t.Context(), server))
	cancel()
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	for range 2 * burst {
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}
	if got := p.reasons(); len(got) > 0 {
		t.Fatalf("HTTP/1 closed: %q", got)
	}
	request.ProtoMajor = 2
	for range burst + 1 {
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}
	requireClosed(t, client)
}
