package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
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
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/server"
)

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
			cfg := apitest.EmptyConfig(t)
			if database == "postgres" {
				cfg.Database = pgtest.NewDatabase(t)
			}
			s, out := apitest.StartConfigured(t, cfg)
			base := "http://" + s.Addresses().HTTP
			for _, path := range []string{"/healthz", "/readyz", "/api/v1/ping", "/.well-known/jwks.json"} {
				if code, body := apitest.Get(t, http.DefaultClient, base+path, ""); code != http.StatusOK {
					t.Errorf("%s: %d %s", path, code, body)
				}
			}
			token := out.Token()
			if code, body := apitest.Get(t, http.DefaultClient, base+"/api/v1/deployments", token); code != http.StatusOK || !strings.Contains(body, `"default"`) {
				t.Errorf("with the printed token: %d %s", code, body)
			}
			if !strings.Contains(out.String(), "curl -H 'Authorization: Bearer "+token+"' "+base+"/api/v1/deployments") {
				t.Errorf("no call to paste in:\n%s", out)
			}
			if code, _ := apitest.Get(t, http.DefaultClient, base+"/api/v1/deployments", ""); code != http.StatusUnauthorized {
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

func checkMetrics(t *testing.T, s *server.Server) {
	t.Helper()
	_, metrics := apitest.Get(t, http.DefaultClient, "http://"+s.Addresses().Metrics+"/metrics", "")
	for _, want := range []string{
		"palisade_build_info{", "go_sql_open_connections{", "palisade_requests_in_flight{",
		`grpc_server_handled_total{grpc_code="OK",grpc_method="ListDeploymentsV1"`,
		`palisade_request_duration_seconds_count{code="Unauthenticated",method="/palisade.deployments.v1.DeploymentsService/ListDeploymentsV1",transport="http"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	if strings.Contains(metrics, "palisade_db_transactions_waiting 0") != (s.Config().Database != "") {
		t.Error("waiting transactions are for PostgreSQL, and for it alone")
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/cmdline", "/api/v1/ping"} {
		if code, _ := apitest.Get(t, http.DefaultClient, "http://"+s.Addresses().Metrics+path, ""); code != http.StatusNotFound {
			t.Errorf("%s on the metrics port: %d", path, code)
		}
	}
}

func checkGRPC(t *testing.T, s *server.Server, token string) {
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
		// Reflection reveals no more than the public /openapi.json.
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

// checkSecondStart starts the server again: nothing is created or printed, and the first token still works.
func checkSecondStart(t *testing.T, cfg config.Config, token string) {
	t.Helper()
	again, out := apitest.StartConfigured(t, cfg)
	if out.Token() != "" {
		t.Error("the second start prints a token")
	}
	if code, body := apitest.Get(t, http.DefaultClient, "http://"+again.Addresses().HTTP+"/api/v1/deployments", token); code != http.StatusOK {
		t.Errorf("the first token after a restart: %d %s", code, body)
	}
}

// Log lines are buffered while the server serves. None is lost when it stops.
func TestStoppedServerHasWrittenItsLog(t *testing.T) {
	const callers, calls = 4, 50
	s, out := apitest.StartConfigured(t, apitest.EmptyConfig(t))
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range calls {
				if code, body := apitest.Get(t, http.DefaultClient, "http://"+s.Addresses().HTTP+"/api/v1/deployments", out.Token()); code != http.StatusOK {
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
		t.Errorf("the last line does not report the stop:\n%s", log)
	}
}

func TestBootstrapTokenIsNotPrinted(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	cfg.BootstrapToken = "sgp_" + strings.Repeat("a1B2c3D4e5", 4)
	s, out := apitest.StartConfigured(t, cfg)
	if strings.Contains(out.String(), cfg.BootstrapToken) {
		t.Errorf("it is printed:\n%s", out)
	}
	if code, body := apitest.Get(t, http.DefaultClient, "http://"+s.Addresses().HTTP+"/api/v1/deployments", cfg.BootstrapToken); code != http.StatusOK {
		t.Errorf("it does not work: %d %s", code, body)
	}
}

func TestProfilesOnlyWhenConfigured(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	cfg.Pprof = true
	s, _ := apitest.StartConfigured(t, cfg)
	base := "http://" + s.Addresses().Metrics + "/debug/pprof/"
	for path, want := range map[string]int{"": 200, "heap": 200, "symbol": 200, "cmdline": 404} {
		if code, _ := apitest.Get(t, http.DefaultClient, base+path, ""); code != want {
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
	cfg := apitest.EmptyConfig(t)
	cfg.GRPC = taken.Addr().String()
	_, err = services.Start(t.Context(), cfg, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "grpc: the address "+cfg.GRPC+" is in use") {
		t.Errorf("got %v", err)
	}
	if _, err := services.MigrationStatuses(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "there is no database") {
		t.Errorf("the store was touched: %v", err)
	}
}

// unruled has a service without an access rule in its proto.
func unruled(*server.Deps) server.Parts {
	desc := grpc.ServiceDesc{
		ServiceName: "palisade.test.v1.Unruled", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Leak", Handler: func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
			return nil, nil
		}}},
	}
	return server.Parts{Services: func(context.Context) ([]server.Service, error) {
		return []server.Service{{RegisterGRPC: func(s grpc.ServiceRegistrar) { s.RegisterService(&desc, struct{}{}) }}}, nil
	}}
}

func TestNoStartWithoutRule(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	_, err := server.Start(t.Context(), cfg, io.Discard, []server.Domain{unruled})
	if err == nil || !strings.Contains(err.Error(), "palisade.test.v1.Unruled/Leak") {
		t.Fatalf("got %v, want an error that names the RPC", err)
	}
	apitest.StartConfigured(t, cfg) // the failed start left nothing open
}

func TestInvalidConfigDoesNotStart(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	cfg.HTTP = "0.0.0.0:0" // plain text for other machines
	if _, err := services.Start(t.Context(), cfg, io.Discard); err == nil || !strings.Contains(err.Error(), "tls-cert") {
		t.Errorf("got %v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	out := &apitest.Output{}
	go func() { ended <- services.Run(ctx, apitest.EmptyConfig(t), out) }()
	apitest.Eventually(t, "the server says so", func() bool { return strings.Contains(out.String(), "palisade is serving") })
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
