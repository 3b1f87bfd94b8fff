package server_test

import (
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
)

// jobStates counts the jobs in the queue of a database by state.
func jobStates(t *testing.T, st *store.Store) map[string]int {
	t.Helper()
	reader, _ := st.DB()
	rows, err := reader.QueryContext(t.Context(), "SELECT state, COUNT(*) FROM river_job GROUP BY state")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	states := map[string]int{}
	for rows.Next() {
		var state string
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			t.Fatal(err)
		}
		states[state] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return states
}

// post sends a body, requires success, and returns the response.
func post(t *testing.T, url, token, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %d %s %v", url, response.StatusCode, answer, err)
	}
	return string(answer)
}

// A node with the role api adds jobs and runs none. A node with the role worker runs them and serves nothing else.
func TestRolesDivideTheWork(t *testing.T) {
	database, key := pgtest.NewDatabase(t), filepath.Join(t.TempDir(), "palisade.key")
	node := func(role string) (*server.Server, string) {
		cfg := apitest.EmptyConfig(t)
		cfg.Database, cfg.KeyFile, cfg.Roles, cfg.EgressAllow = database, key, role, "127.0.0.1"
		s, out := apitest.StartConfigured(t, cfg)
		return s, out.Token()
	}
	api, token := node("api")
	base := "http://" + api.Addresses().HTTP
	post(t, base+"/api/agent/deployments/1/actions", token, `{"notificationRule":{"name":"all","channel":"webhook","is_enabled":true,`+
		`"config":{"url":"http://127.0.0.1:9/","secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}}`)
	post(t, base+"/api/v1/deployments/default/reports?"+url.Values{"project": {"acme/web"}, "ref": {"main"}}.Encode(), token,
		`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec"}},"results":[]}]}`)
	st, err := server.OpenStore(t.Context(), api.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	if states := jobStates(t, st); states["available"] == 0 || len(states) != 1 {
		t.Errorf("without a worker the queue holds %v, want jobs that wait", states)
	}

	worker, _ := node("worker")
	deadline := time.Now().Add(2 * time.Minute)
	for jobStates(t, st)["completed"] == 0 {
		if time.Now().After(deadline) {
			t.Fatalf("the worker does nothing: %v", jobStates(t, st))
		}
		<-time.After(20 * time.Millisecond)
	}
	checkWorkerPorts(t, worker)
}

// checkWorkerPorts requires that a node without the role api answers probes and refuses everything else.
func checkWorkerPorts(t *testing.T, worker *server.Server) {
	t.Helper()
	for _, address := range []string{worker.Addresses().HTTP, worker.Addresses().Metrics} {
		for _, path := range []string{"/healthz", "/readyz"} {
			if code, body := apitest.Get(t, http.DefaultClient, "http://"+address+path, ""); code != http.StatusOK {
				t.Errorf("%s: %d %s", path, code, body)
			}
		}
	}
	const want = `this node serves no API, its roles are \"worker\": send requests to a node with the role api`
	for _, path := range []string{"/", "/api/v1/ping", "/api/v1/deployments", "/openapi.json"} {
		if code, body := apitest.Get(t, http.DefaultClient, "http://"+worker.Addresses().HTTP+path, ""); code != http.StatusServiceUnavailable || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	conn := dial(t, worker.Addresses().GRPC)
	if answer, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("gRPC health: %v, %v", answer, err)
	}
	_, err := platformv1.NewMiscellaneousServiceClient(conn).Ping(t.Context(), &platformv1.PingRequest{})
	if status.Code(err) != codes.Unavailable || !strings.Contains(status.Convert(err).Message(), "send requests to a node with the role api") {
		t.Errorf("gRPC: %v", err)
	}
}
