package server_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/server"
)

// slowPing answers when the test permits it.
type slowPing struct {
	platformv1.UnimplementedMiscellaneousServiceServer
	began   chan struct{}
	release chan struct{}
}

func (p *slowPing) Ping(ctx context.Context, _ *platformv1.PingRequest) (*platformv1.PingResponse, error) {
	p.began <- struct{}{}
	select {
	case <-p.release:
		return &platformv1.PingResponse{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *slowPing) domain(*server.Deps) server.Parts {
	return server.Parts{Services: func(context.Context) ([]server.Service, error) {
		return []server.Service{server.Group[platformv1.MiscellaneousServiceServer](platformv1.RegisterMiscellaneousServiceServer, p,
			platformv1.RegisterMiscellaneousServiceHandlerClient, platformv1.NewMiscellaneousServiceClient)}, nil
	}}
}

// callBoth calls Ping over both ports and returns when both calls are in their handlers.
func (p *slowPing) callBoth(t *testing.T, s *server.Server) (results chan error) {
	t.Helper()
	results = make(chan error, 2)
	conn := dial(t, s.Addresses().GRPC)
	go func() {
		_, err := platformv1.NewMiscellaneousServiceClient(conn).Ping(context.Background(), &platformv1.PingRequest{})
		results <- err
	}()
	go func() {
		response, err := http.Get("http://" + s.Addresses().HTTP + "/api/v1/ping")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				err = status.Error(codes.Unknown, response.Status)
			}
		}
		results <- err
	}()
	for range 2 {
		select {
		case <-p.began:
		case err := <-results:
			t.Fatalf("a call ended before its handler began: %v", err)
		}
	}
	return results
}

func TestDrain(t *testing.T) {
	slow := &slowPing{began: make(chan struct{}), release: make(chan struct{})}
	s, _ := apitest.StartConfigured(t, apitest.EmptyConfig(t), slow.domain)
	watch, err := healthv1.NewHealthClient(dial(t, s.Addresses().GRPC)).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watch.Recv(); err != nil || first.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("got %v, %v", first, err)
	}
	results := slow.callBoth(t, s)
	s.Stop()
	s.Stop() // stopping twice is safe
	if second, err := watch.Recv(); err != nil || second.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("watchers of the health service get %v, %v", second, err)
	}
	metricsPort := "http://" + s.Addresses().Metrics
	if code, _ := apitest.Get(t, http.DefaultClient, metricsPort+"/readyz", ""); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz while draining: %d", code)
	}
	if code, _ := apitest.Get(t, http.DefaultClient, metricsPort+"/healthz", ""); code != http.StatusOK {
		t.Errorf("/healthz while draining: %d", code)
	}
	apitest.Eventually(t, "the server says so", func() bool { // the ports close to new requests
		conn, err := net.Dial("tcp", s.Addresses().HTTP)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	close(slow.release)
	for range 2 {
		if err := <-results; err != nil {
			t.Errorf("a running request was cut off: %v", err)
		}
	}
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
}

// TestStopWithUnusedConnections: idle connections that clients opened in advance do not delay a stop.
func TestStopWithUnusedConnections(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	cfg.ShutdownGrace = time.Minute
	s, _ := apitest.StartConfigured(t, cfg)
	for range 3 {
		conn, err := net.Dial("tcp", s.Addresses().HTTP)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	if code, body := apitest.Get(t, http.DefaultClient, "http://"+s.Addresses().HTTP+"/healthz", ""); code != http.StatusOK {
		t.Fatalf("%d %s", code, body) // connections opened before it have been accepted
	}
	s.Stop()
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
}

func TestDrainEndsWithTheGracePeriod(t *testing.T) {
	slow := &slowPing{began: make(chan struct{}), release: make(chan struct{})}
	cfg := apitest.EmptyConfig(t)
	cfg.ShutdownGrace = 50 * time.Millisecond
	s, _ := apitest.StartConfigured(t, cfg, slow.domain)
	results := slow.callBoth(t, s)
	s.Stop()
	if err := s.Wait(); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("got %v, want an error that says so", err)
	}
	for range 2 {
		if err := <-results; err == nil {
			t.Error("a request that outlived the grace period was answered")
		}
	}
}
