// Package apitest runs the real server for tests: over gRPC and HTTP, on SQLite and PostgreSQL, with the shipped
// migrations.
package apitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// domains are the domains of this test program's servers; see Main.
var domains []server.Domain

// Main runs the tests of a package. Servers that they start have these domains, and only these are linked.
func Main(m *testing.M, of ...server.Domain) {
	domains = of
	os.Exit(m.Run())
}

// bootstrapToken is the administrator's token of the first deployment.
const bootstrapToken = "sgp_test4Kq2vXw7RbZ4mLd8sYh3nPc6JfGa5TeUo1WiQx"

// Server is a running server with its first deployment, "acme".
type Server struct {
	Tenant
	// URL is the base URL of the HTTP API, without a trailing slash.
	URL string
	// Conn is a connection to the gRPC API.
	Conn *grpc.ClientConn
	// Store is a second handle on the server's database, for data that no RPC can create.
	Store *store.Store
	// Config is the configuration of the server.
	Config config.Config
	// Addresses are the server's addresses.
	Addresses server.Addresses

	running *server.Server
}

// Stop stops the server before the test ends.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.running.Stop()
	if err := s.running.Wait(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// Tenant is a deployment with a token of its administrator.
type Tenant struct {
	Slug         string
	DeploymentID int64
	Token        string
}

// Each runs a test on both databases, each with its own server.
func Each(t *testing.T, test func(t *testing.T, s *Server)) {
	t.Helper()
	EachDatabase(t, func(t *testing.T, on func(*config.Config)) { test(t, Start(t, on)) })
}

// EachDatabase runs a test on both databases, for servers with their own configuration. on makes a configuration
// use the database.
func EachDatabase(t *testing.T, test func(t *testing.T, on func(*config.Config))) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		test(t, func(c *config.Config) {
			if c.Database = o.Database; o.DataDir != "" {
				c.Data = o.DataDir
			}
		})
	})
}

// Start runs a server until the test ends. adjust may change its configuration. The default database is SQLite.
func Start(t testing.TB, adjust func(*config.Config)) *Server {
	t.Helper()
	return startIn(t.Context(), t, adjust)
}

func startIn(ctx context.Context, t testing.TB, adjust func(*config.Config)) *Server {
	t.Helper()
	if domains == nil {
		t.Fatal("this test package has no TestMain that calls apitest.Main")
	}
	cfg := config.Default()
	cfg.HTTP, cfg.GRPC, cfg.Metrics = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	cfg.Data, cfg.Deployment, cfg.DeploymentName = t.TempDir(), "acme", "Acme Corp"
	cfg.BootstrapToken, cfg.PublicURL = bootstrapToken, "https://palisade.acme.test"
	cfg.LogLevel, cfg.RateLimit, cfg.DiskReserve = "error", 0, 0
	// generous for busy machines; tests normally need less than a tenth
	cfg.ShutdownGrace, cfg.RequestTimeout = time.Minute, 10*time.Minute
	if adjust != nil {
		adjust(&cfg)
	}
	if _, err := os.Stat(cfg.SQLitePath()); cfg.Database == "" && os.IsNotExist(err) {
		storetest.Fill(t, cfg.Data)
	}
	running, err := server.Start(context.WithoutCancel(ctx), cfg, testWriter{t}, domains)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	s := &Server{Config: cfg, Addresses: running.Addresses(), URL: "http://" + running.Addresses().HTTP, running: running}
	t.Cleanup(func() { s.Stop(t) })
	if s.Conn, err = grpc.NewClient(running.Addresses().GRPC, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Conn.Close() })
	if s.Store, err = store.Open(t.Context(), store.Options{DataDir: cfg.Data, Database: cfg.Database, MaxOpen: 4}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Store.Close() })
	s.beginTrails(t)
	first := s.Store.Reader.Deployment.Query().Where(deployment.Slug(cfg.Deployment)).OnlyX(tenant.System(ctx))
	s.Tenant = Tenant{Slug: first.Slug, DeploymentID: first.ID, Token: cfg.BootstrapToken}
	return s
}

// beginTrails creates the audit trail of deployments that are created through Store, as the server does for its
// own.
func (s *Server) beginTrails(t testing.TB) {
	t.Helper()
	keyring, err := secret.Open(s.Config.KeyPath(), false)
	if err == nil {
		_, err = audit.Open(t.Context(), s.Store, keyring, slog.New(slog.DiscardHandler))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// AddTenant creates another deployment with an administrator's token.
func (s *Server) AddTenant(t testing.TB, slug string) Tenant {
	t.Helper()
	ctx := tenant.System(t.Context())
	var id int64
	err := s.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		d, err := tx.Deployment.Create().SetSlug(slug).SetName(slug).SetCreatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		id = d.ID
		admin, err := tx.User.Create().SetEmail("admin@" + slug + ".test").SetName("Admin of " + slug).SetCreatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		return tx.Membership.Create().SetDeploymentID(d.ID).SetUserID(admin.ID).SetRole(string(access.RoleAdmin)).SetCreatedAt(store.Now()).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	out := Tenant{Slug: slug, DeploymentID: id}
	out.Token = s.AddToken(t, out, access.TokenSpec{})
	return out
}

// AddToken creates a token. Empty fields of spec default to an administrator with all scopes.
func (s *Server) AddToken(t testing.TB, of Tenant, spec access.TokenSpec) string {
	t.Helper()
	spec.DeploymentID = of.DeploymentID
	if spec.Name == "" {
		spec.Name = "test"
	}
	if spec.Scopes == nil {
		spec.Scopes = []access.Scope{access.ScopeWebAPI, access.ScopeAgent}
	}
	if spec.Role == "" {
		spec.Role = access.RoleAdmin
	}
	_, value, err := access.NewTokens(s.Store).Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// AddUser creates a user with a role in a deployment and returns their JSON Web Token. An empty role creates no
// membership.
func (s *Server) AddUser(t testing.TB, of Tenant, email string, role access.Role) string {
	t.Helper()
	err := s.Store.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
		user, err := tx.User.Create().SetEmail(email).SetName(email).SetCreatedAt(store.Now()).Save(ctx)
		if err != nil || role == "" {
			return err
		}
		return tx.Membership.Create().SetDeploymentID(of.DeploymentID).SetUserID(user.ID).SetRole(string(role)).SetCreatedAt(store.Now()).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := secret.Open(s.Config.KeyPath(), false)
	if err != nil {
		t.Fatal(err)
	}
	// Not with the command, which would write an audit entry.
	url := s.Store.Reader.Setting.Query().Where(setting.Name("issuer_url")).OnlyX(s.System(t)).Value
	value, err := access.NewIssuer(s.Store, keyring, string(url)).Mint(t.Context(), email, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// RefreshStatistics refreshes the planner statistics, after the server has finished its own refresh. On PostgreSQL it
// stops autovacuum before, which would change them again at any time.
func (s *Server) RefreshStatistics(t testing.TB) {
	t.Helper()
	if s.Store.Postgres() {
		_, db := s.Store.DB()
		storetest.StopAutovacuum(t, db)
	}
	Eventually(t, "planner statistics are refreshed", func() bool {
		err := s.Store.RefreshStatistics(t.Context())
		if err != nil && !errors.Is(err, store.ErrBusy) {
			t.Fatal(err)
		}
		return err == nil && !s.refreshes(t)
	})
}

// refreshes reports that the server is refreshing statistics. PostgreSQL has a lock for it. On SQLite both would share
// the work: the statistics are complete only when the server has finished its part.
func (s *Server) refreshes(t testing.TB) (running bool) {
	t.Helper()
	if s.Store.Postgres() {
		return false
	}
	reader, _ := s.Store.DB()
	err := reader.QueryRowContext(t.Context(),
		"SELECT EXISTS (SELECT 1 FROM river_job WHERE state = 'running' AND kind IN ('grown_tables', 'refresh_statistics'))").Scan(&running)
	if err != nil {
		t.Fatal(err)
	}
	return running
}

// System returns a context that acts for the server itself, to create test data.
func (s *Server) System(t testing.TB) context.Context { return tenant.System(t.Context()) }

// Context returns a context with a credential for gRPC calls.
func (s *Server) Context(t testing.TB, token string) context.Context {
	if token == "" {
		return t.Context()
	}
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
}

// Answer is an HTTP response.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Do sends a request with a credential. body may be "".
func (s *Server) Do(t testing.TB, token, method, path, body string, header ...string) Answer {
	t.Helper()
	return s.Send(t, token, method, path, strings.NewReader(body), header...)
}

// Send is Do with a body of any size. header alternates names and values.
func (s *Server) Send(t testing.TB, token, method, path string, body io.Reader, header ...string) Answer {
	t.Helper()
	answer, err := s.Exchange(t.Context(), token, method, path, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	requireRoute(t, method, path, answer)
	return answer
}

// Try is Do for other goroutines than the test's, which must not end the test: what waits for the goroutine would wait
// forever. It reports an error and returns an empty answer.
func (s *Server) Try(t testing.TB, token, method, path, body string, header ...string) Answer {
	t.Helper()
	answer, err := s.Exchange(t.Context(), token, method, path, strings.NewReader(body), header...)
	if err != nil {
		t.Error(err)
	}
	requireRoute(t, method, path, answer)
	return answer
}

// Exchange is Send that returns errors, for requests whose connection the server may reset.
func (s *Server) Exchange(ctx context.Context, token, method, path string, body io.Reader, header ...string) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.URL+path, body)
	if err != nil {
		return Answer{}, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Status: response.StatusCode, Header: response.Header, Body: string(raw)}, nil
}

// requireRoute reports a request that no domain serves.
func requireRoute(t testing.TB, method, path string, answer Answer) {
	t.Helper()
	if answer.Status == http.StatusNotFound && !strings.HasSuffix(path, "/") && strings.Contains(answer.Body, `"code":"ROUTE_NOT_FOUND"`) {
		t.Errorf("%s %s: no domain of TestMain serves it", method, path)
	}
}

// requestID matches the request id in the body of an error.
var requestID = regexp.MustCompile(`"requestId":"[^"]+"`)

// Body is Do with a required status. It returns the body. In an error body the request id is replaced by R.
func (s *Server) Body(t testing.TB, token, method, path, body string, want int, header ...string) string {
	t.Helper()
	answer := s.Do(t, token, method, path, body, header...)
	if answer.Status != want {
		t.Fatalf("%s %s %.300s: %d %s, want %d", method, path, body, answer.Status, answer.Body, want)
	}
	if want < http.StatusBadRequest {
		return answer.Body
	}
	return requestID.ReplaceAllString(answer.Body, `"requestId":"R"`)
}

// Get sends a GET as the first administrator and requires 200.
func (s *Server) Get(t testing.TB, path string) string {
	t.Helper()
	return s.Body(t, s.Token, http.MethodGet, path, "", http.StatusOK)
}

// Upload sends a report as the first administrator and requires 200.
func (s *Server) Upload(t testing.TB, project, ref string, report []byte, query ...string) string {
	t.Helper()
	values := url.Values{"project": {project}, "ref": {ref}}
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	path := fmt.Sprintf("/api/v1/deployments/%s/reports?%s", s.Slug, values.Encode())
	answer := s.Send(t, s.Token, http.MethodPost, path, bytes.NewReader(report))
	if answer.Status != http.StatusOK {
		t.Fatalf("POST %s: %d %s", path, answer.Status, answer.Body)
	}
	return answer.Body
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// ExpireToken makes the token of this name expire a minute ago.
func (s *Server) ExpireToken(t testing.TB, name string) {
	t.Helper()
	err := s.Store.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Token.Update().Where(token.Name(name)).SetExpiresAt(store.Micros(time.Now().Add(-time.Minute))).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}
