package server

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/pgtest"
)

// testConfig is a configuration with free ports and an empty store.
func testConfig(t *testing.T) config.Config {
	t.Helper()
	c := config.Default()
	c.Data = t.TempDir()
	c.HTTP, c.GRPC, c.Metrics = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.ShutdownGrace = time.Minute
	return c
}

// output collects what a server writes to stderr.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

var tokenForm = regexp.MustCompile(`sgp_[A-Za-z0-9]+`)

// token is the first API token that was printed, empty when none was.
func (o *output) token() string { return tokenForm.FindString(o.String()) }

// startServer starts a server that the end of the test stops.
func startServer(t *testing.T, cfg config.Config, list domainList) (*Server, *output) {
	t.Helper()
	out := &output{}
	s, err := start(t.Context(), cfg, out, list)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if err := s.Wait(); err != nil && !t.Failed() && !strings.Contains(err.Error(), "cut off") {
			t.Error(err)
		}
	})
	return s, out
}

// get returns status and body of a GET.
func get(t *testing.T, client *http.Client, url, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestServerFromEmptyStore(t *testing.T) {
	for _, database := range []string{"sqlite", "postgres"} {
		t.Run(database, func(t *testing.T) {
			cfg := testConfig(t)
			if database == "postgres" {
				cfg.Database = pgtest.NewDatabase(t)
			}
			s, out := startServer(t, cfg, domains)
			base := "http://" + s.Addresses().HTTP
			for _, path := range []string{"/healthz", "/readyz", "/api/v1/ping", "/.well-known/jwks.json"} {
				if code, body := get(t, http.DefaultClient, base+path, ""); code != http.StatusOK {
					t.Errorf("%s: %d %s", path, code, body)
				}
			}
			token := out.token()
			if code, body := get(t, http.DefaultClient, base+"/api/v1/deployments", token); code != http.StatusOK || !strings.Contains(body, `"default"`) {
				t.Errorf("with the printed token: %d %s", code, body)
			}
			if !strings.Contains(out.String(), "curl -H 'Authorization: Bearer "+token+"' "+base+"/api/v1/deployments") {
				t.Errorf("no call to paste in:\n%s", out)
			}
			if code, _ := get(t, http.DefaultClient, base+"/api/v1/deployments", ""); code != http.StatusUnauthorized {
				t.Errorf("without a token: %d", code)
			}
			checkMetrics(t, s)
			checkGRPC(t, s, token)
			s.Stop()
			if err := s.Wait(); err != nil {
				t.Error(err)
			}
			if strings.Count(out.String(), token) != 2 {
				t.Errorf("the token is in the log:\n%s", out)
			}
			if database == "sqlite" {
				checkSecondStart(t, cfg, token)
			}
		})
	}
}

func checkMetrics(t *testing.T, s *Server) {
	t.Helper()
	_, metrics := get(t, http.DefaultClient, "http://"+s.Addresses().Metrics+"/metrics", "")
	for _, want := range []string{
		"palisade_build_info{", "go_sql_open_connections{", "palisade_requests_in_flight{",
		`grpc_server_handled_total{grpc_code="OK",grpc_method="ListDeploymentsV1"`,
		`palisade_request_duration_seconds_count{code="Unauthenticated",method="/palisade.deployments.v1.DeploymentsService/ListDeploymentsV1",transport="http"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	if strings.Contains(metrics, "palisade_db_transactions_waiting 0") != (s.config.Database != "") {
		t.Error("waiting transactions are for PostgreSQL, and for it alone")
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/cmdline", "/api/v1/ping"} {
		if code, _ := get(t, http.DefaultClient, "http://"+s.Addresses().Metrics+path, ""); code != http.StatusNotFound {
			t.Errorf("%s on the metrics port: %d", path, code)
		}
	}
}

func checkGRPC(t *testing.T, s *Server, token string) {
	t.Helper()
	conn := dial(t, s.Addresses().GRPC)
	for _, service := range []string{"", deploymentsv1.DeploymentsService_ServiceDesc.ServiceName} {
		answer, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		if err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", service, answer, err)
		}
	}
	for credential, want := range map[string]codes.Code{"": codes.Unauthenticated, token: codes.OK} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+credential)
		if _, err := deploymentsv1.NewDeploymentsServiceClient(conn).ListDeployments(ctx, &deploymentsv1.ListDeploymentsRequest{}); status.Code(err) != want {
			t.Errorf("list deployments: %v, want %v", err, want)
		}
		// Reflection tells no more than /openapi.json: anybody may read it.
		stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
		if _, err := stream.Recv(); err != nil {
			t.Errorf("reflection: %v", err)
		}
	}
}

// checkSecondStart starts the server again: nothing is created or printed again, and the first token still works.
func checkSecondStart(t *testing.T, cfg config.Config, token string) {
	t.Helper()
	again, out := startServer(t, cfg, domains)
	if out.token() != "" {
		t.Error("the second start prints a token")
	}
	if code, body := get(t, http.DefaultClient, "http://"+again.Addresses().HTTP+"/api/v1/deployments", token); code != http.StatusOK {
		t.Errorf("the first token after a restart: %d %s", code, body)
	}
}

// Lines wait for one another while the server serves; none is lost when it stops.
func TestStoppedServerHasWrittenItsLog(t *testing.T) {
	const callers, calls = 4, 50
	s, out := startServer(t, testConfig(t), domains)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range calls {
				if code, body := get(t, http.DefaultClient, "http://"+s.Addresses().HTTP+"/api/v1/deployments", out.token()); code != http.StatusOK {
					t.Errorf("%d %s", code, body)
				}
			}
		})
	}
	group.Wait()
	s.Stop()
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	log := out.String()
	if got := strings.Count(log, " msg=call "); got != callers*calls {
		t.Errorf("%d calls are in the log, want %d", got, callers*calls)
	}
	if at := strings.Index(log, " msg=stopped "); at < strings.LastIndex(log, " msg=call ") {
		t.Errorf("the last line is not that of the end:\n%s", log)
	}
}

func TestBootstrapTokenIsNotPrinted(t *testing.T) {
	cfg := testConfig(t)
	cfg.BootstrapToken = "sgp_" + strings.Repeat("a1B2c3D4e5", 4)
	s, out := startServer(t, cfg, domains)
	if strings.Contains(out.String(), cfg.BootstrapToken) {
		t.Errorf("it is printed:\n%s", out)
	}
	if code, body := get(t, http.DefaultClient, "http://"+s.Addresses().HTTP+"/api/v1/deployments", cfg.BootstrapToken); code != http.StatusOK {
		t.Errorf("it does not work: %d %s", code, body)
	}
}

func TestProfilesOnlyWhenConfigured(t *testing.T) {
	cfg := testConfig(t)
	cfg.Pprof = true
	s, _ := startServer(t, cfg, domains)
	base := "http://" + s.Addresses().Metrics + "/debug/pprof/"
	for path, want := range map[string]int{"": 200, "heap": 200, "symbol": 200, "cmdline": 404} {
		if code, _ := get(t, http.DefaultClient, base+path, ""); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
}

func TestPortTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	cfg := testConfig(t)
	cfg.GRPC = taken.Addr().String()
	_, err = Start(t.Context(), cfg, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "grpc: the address "+cfg.GRPC+" is in use") {
		t.Errorf("got %v", err)
	}
	if _, err := MigrationStatuses(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "there is no database") {
		t.Errorf("the store was touched: %v", err)
	}
}

// unruled is a service whose proto has no access rule.
func unruled(context.Context, deps) ([]Domain, error) {
	desc := grpc.ServiceDesc{
		ServiceName: "palisade.test.v1.Unruled", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Leak", Handler: func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
			return nil, nil
		}}},
	}
	return []Domain{{RegisterGRPC: func(s grpc.ServiceRegistrar) { s.RegisterService(&desc, struct{}{}) }}}, nil
}

func TestNoStartWithoutRule(t *testing.T) {
	cfg := testConfig(t)
	_, err := start(t.Context(), cfg, io.Discard, unruled)
	if err == nil || !strings.Contains(err.Error(), "palisade.test.v1.Unruled/Leak") {
		t.Fatalf("got %v, want an error that names the RPC", err)
	}
	startServer(t, cfg, domains) // the failed start left nothing open
}

func TestInvalidConfigDoesNotStart(t *testing.T) {
	cfg := testConfig(t)
	cfg.HTTP = "0.0.0.0:0" // plain text for other machines
	if _, err := Start(t.Context(), cfg, io.Discard); err == nil || !strings.Contains(err.Error(), "tls-cert") {
		t.Errorf("got %v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	out := &output{}
	go func() { ended <- Run(ctx, testConfig(t), out) }()
	waitFor(t, func() bool { return strings.Contains(out.String(), "palisade is serving") })
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("it does not end")
	}
}

// waitFor asks until the answer is yes, for at most two minutes: the machine may be busy.
func waitFor(t *testing.T, yes func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	patience := time.After(2 * time.Minute)
	for !yes() {
		select {
		case <-ticker.C:
		case <-patience:
			t.Fatal("waited two minutes in vain")
		}
	}
}
