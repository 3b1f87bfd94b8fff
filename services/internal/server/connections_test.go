package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/server"
)

// abandonedAtOnce is how many calls a connection may abandon at once with the default settings, and mostStreams how
// many an attack of these tests begins.
const abandonedAtOnce, mostStreams = 1000, 60_000

// rawHTTP2 is a connection that sends the frames of its choice.
type rawHTTP2 struct {
	out    *bufio.Writer
	framer *http2.Framer
	next   uint32
	resets atomic.Int64  // that the server sent
	closed chan struct{} // by the server
}

// dialHTTP2 connects without TLS if roots is nil.
func dialHTTP2(t *testing.T, address string, roots *x509.CertPool) *rawHTTP2 {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if roots != nil {
		secure := tls.Client(conn, &tls.Config{
			RootCAs: roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
		})
		if err := secure.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		conn = secure
	}
	c := &rawHTTP2{out: bufio.NewWriter(conn), next: 1, closed: make(chan struct{})}
	c.framer = http2.NewFramer(c.out, bufio.NewReader(conn))
	_, _ = c.out.WriteString(http2.ClientPreface) // errors of a bufio.Writer stay
	_ = c.framer.WriteSettings()
	_ = c.out.Flush() // fails if the server has closed the connection, which the reader notices
	go func() {
		defer close(c.closed)
		for {
			frame, err := c.framer.ReadFrame()
			if err != nil {
				return
			}
			if _, ok := frame.(*http2.RSTStreamFrame); ok {
				c.resets.Add(1)
			}
		}
	}()
	return c
}

// header encodes header fields without the dynamic table, so that a block can be sent repeatedly.
func header(fields ...string) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: true})
	}
	return block.Bytes()
}

// call is the header of a gRPC call.
func call(path string, more ...string) []byte {
	return header(append([]string{
		":method", "POST", ":scheme", "http", ":path", path, ":authority", "localhost",
		"content-type", "application/grpc", "te", "trailers",
	}, more...)...)
}

// begin begins a stream whose body is still to come.
func (c *rawHTTP2) begin(block []byte) uint32 {
	id := c.next
	c.next += 2
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true})
	return id
}

// reset begins and resets streams until the server closes the connection. It fails if it does not.
func (c *rawHTTP2) reset(t *testing.T, block []byte) {
	t.Helper()
	for range mostStreams {
		if c.framer.WriteRSTStream(c.begin(block), http2.ErrCodeCancel) != nil {
			break
		}
	}
	_ = c.out.Flush()
	apitest.Receive(t, "the server closes the connection", c.closed)
	if begun := int(c.next / 2); begun <= abandonedAtOnce {
		t.Errorf("closed after %d streams", begun)
	}
}

// expire begins as many streams as a connection may have, waits until the server has ended them at their timeout, and
// begins again.
func (c *rawHTTP2) expire(t *testing.T, block []byte) {
	t.Helper()
	for ended := int64(0); ended < mostStreams; {
		for range 200 {
			c.begin(block)
			ended++
		}
		if c.out.Flush() != nil {
			break
		}
		closed := false
		apitest.Eventually(t, "the calls end", func() bool {
			select {
			case <-c.closed:
				closed = true
			default:
			}
			return closed || c.resets.Load() >= ended
		})
		if closed {
			break
		}
	}
	apitest.Receive(t, "the server closes the connection", c.closed)
}

func startTLS(t *testing.T) (*server.Server, *x509.CertPool) {
	t.Helper()
	cfg := apitest.TLSConfig(t)
	roots := apitest.WriteCertificate(t, cfg, 1, time.Now().Add(time.Hour))
	s, _ := apitest.StartConfigured(t, cfg)
	return s, roots
}

// requireClosed waits until the metrics have a connection that was closed for a reason.
func requireClosed(t *testing.T, s *server.Server, port, reason string) {
	t.Helper()
	want := `palisade_connections_closed_total{port="` + port + `",reason="` + reason + `"} 1`
	apitest.Eventually(t, want, func() bool {
		_, metrics := apitest.Get(t, http.DefaultClient, "http://"+s.Addresses().Metrics+"/metrics", "")
		return strings.Contains(metrics, want+"\n")
	})
}

// TestAbandonedCalls: a connection that abandons too many calls is closed, whichever way it does that.
func TestAbandonedCalls(t *testing.T) {
	check := healthv1.Health_Check_FullMethodName
	for name, attack := range map[string]func(*testing.T, *rawHTTP2){
		"reset": func(t *testing.T, c *rawHTTP2) { c.reset(t, call(check)) },
		// The server must not keep anything of a call until its timeout.
		"long timeout":   func(t *testing.T, c *rawHTTP2) { c.reset(t, call(check, "grpc-timeout", "99999999H")) },
		"stream":         func(t *testing.T, c *rawHTTP2) { c.reset(t, call(healthv1.Health_Watch_FullMethodName)) },
		"unknown method": func(t *testing.T, c *rawHTTP2) { c.reset(t, call("/palisade.none.v1.None/None")) },
		"malformed":      func(t *testing.T, c *rawHTTP2) { c.reset(t, call("none")) },
		"short timeout":  func(t *testing.T, c *rawHTTP2) { c.expire(t, call(check, "grpc-timeout", "1m")) },
		"no time":        func(t *testing.T, c *rawHTTP2) { c.expire(t, call(check, "grpc-timeout", "0n")) },
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := apitest.StartConfigured(t, apitest.EmptyConfig(t))
			attack(t, dialHTTP2(t, s.Addresses().GRPC, nil))
			requireClosed(t, s, "grpc", "abandoned_calls")
			misc := platformv1.NewMiscellaneousServiceClient(dial(t, s.Addresses().GRPC))
			if _, err := misc.Ping(t.Context(), &platformv1.PingRequest{}); err != nil {
				t.Errorf("another connection: %v", err)
			}
		})
	}
	t.Run("gRPC over TLS", func(t *testing.T) {
		s, roots := startTLS(t)
		dialHTTP2(t, s.Addresses().GRPC, roots).reset(t, call(check))
		requireClosed(t, s, "grpc", "abandoned_calls")
	})
	t.Run("HTTP over TLS", func(t *testing.T) {
		s, roots := startTLS(t)
		// It needs no credential and reads its body first.
		dialHTTP2(t, s.Addresses().HTTP, roots).reset(t, header(":method", "POST", ":scheme", "https",
			":path", "/api/scm/webhooks/none", ":authority", "localhost", "content-type", "application/json"))
		requireClosed(t, s, "http", "abandoned_calls")
	})
	t.Run("node without API", func(t *testing.T) {
		cfg := apitest.EmptyConfig(t)
		cfg.Roles = config.RoleWorker
		s, _ := apitest.StartConfigured(t, cfg)
		dialHTTP2(t, s.Addresses().GRPC, nil).reset(t, call(check))
		requireClosed(t, s, "grpc", "abandoned_calls")
	})
}

// TestBusyClients: a client keeps its connection through any number of calls that are answered or refused, and a
// moderate number that it cancels.
func TestBusyClients(t *testing.T) {
	const answered, cancelled, atOnce = 10_000, abandonedAtOnce / 2, 50
	var connections atomic.Int64
	dialer := func(ctx context.Context, _, address string) (net.Conn, error) {
		connections.Add(1)
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	run := func(t *testing.T, do func(n int) error) {
		t.Helper()
		connections.Store(0)
		var group errgroup.Group
		group.SetLimit(atOnce)
		for n := range answered {
			group.Go(func() error { return do(n) })
		}
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		if n := connections.Load(); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
	}
	t.Run("gRPC", func(t *testing.T) {
		s, _ := apitest.StartConfigured(t, apitest.EmptyConfig(t))
		conn, err := grpc.NewClient(s.Addresses().GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return dialer(ctx, "tcp", address)
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		client := healthv1.NewHealthClient(conn)
		run(t, func(n int) error {
			if n%(answered/cancelled) == 0 {
				ctx, cancel := context.WithCancel(t.Context())
				_, err := client.Watch(ctx, &healthv1.HealthCheckRequest{})
				cancel()
				return err
			}
			_, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{})
			if status.Code(err) == codes.ResourceExhausted { // the rate limit of health checks
				return nil
			}
			return err
		})
	})
	t.Run("HTTP/2", func(t *testing.T) {
		s, roots := startTLS(t)
		transport := &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true, DialContext: dialer, MaxConnsPerHost: 1,
		}
		defer transport.CloseIdleConnections()
		run(t, func(n int) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.Addresses().HTTP+"/api/v1/ping", nil)
			if err != nil {
				return err
			}
			early := n%(answered/cancelled) == 0
			if early {
				time.AfterFunc(time.Millisecond, cancel)
			}
			response, err := transport.RoundTrip(request)
			if err != nil {
				if early {
					return nil
				}
				return err
			}
			_, _ = io.Copy(io.Discard, response.Body)
			return response.Body.Close()
		})
	})
}

// TestConnectionsOfAnAddress: each port has its own limit, and a connection that ends makes room.
func TestConnectionsOfAnAddress(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	cfg.MaxConnections = 3
	s, _ := apitest.StartConfigured(t, cfg)
	var open []*rawHTTP2
	for range cfg.MaxConnections {
		open = append(open, dialHTTP2(t, s.Addresses().GRPC, nil))
	}
	conn, err := net.Dial("tcp", s.Addresses().GRPC)
	if err == nil { // else it is closed already
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	if err == nil {
		t.Error("one more connection is served")
	}
	requireClosed(t, s, "grpc", "too_many")
	open[0].reset(t, call(healthv1.Health_Check_FullMethodName))
	misc := platformv1.NewMiscellaneousServiceClient(dial(t, s.Addresses().GRPC))
	if _, err := misc.Ping(t.Context(), &platformv1.PingRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Error(err)
	}
	code, body := apitest.Get(t, http.DefaultClient, "http://"+s.Addresses().HTTP+"/healthz", "")
	if code != http.StatusOK {
		t.Errorf("the other port: %d %s", code, body)
	}
}
