package chain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullstorydev/grpchan"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/chain"
	"github.com/palisade/palisade/services/internal/inprocess"
	"github.com/palisade/palisade/services/internal/intake"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/telemetry"
	"github.com/palisade/palisade/services/internal/traffic"
	"github.com/palisade/palisade/services/internal/unread"
)

// fixture is a server with the whole chain, over a socket and in process, on a store with two deployments.
type fixture struct {
	t       testing.TB
	store   *store.Store
	trail   *audit.Trail
	tokens  *access.Tokens
	issuer  *access.Issuer
	metrics *telemetry.Metrics
	health  *health.Server
	logs    *logBuffer
	links   []chain.Link

	// The transports: "grpc" and "http" (the in-process connection of the gateway).
	conns map[string]grpc.ClientConnInterface

	acme, globex int64 // deployments
	admin        string
	handlers     *handlers
}

// handlers are the services under test. A nil function returns an empty message.
type handlers struct {
	platformv1.UnimplementedMiscellaneousServiceServer
	projectsv1.UnimplementedProjectsServiceServer
	deploymentsv1.UnimplementedDeploymentsServiceServer
	findingsv1.UnimplementedFindingsServiceServer
	scansv1.UnimplementedReportUploadsServiceServer

	update func(context.Context, *projectsv1.UpdateProjectRequest) error
	get    func(context.Context, *projectsv1.GetProjectRequest) error
	list   func(context.Context) error
	upload func(context.Context, []*scansv1.UploadReportRequest) error
	begun  func() // called when an upload reaches its handler
}

func (h *handlers) Ping(context.Context, *platformv1.PingRequest) (*platformv1.PingResponse, error) {
	return &platformv1.PingResponse{}, nil
}

func (h *handlers) UpdateProject(ctx context.Context, r *projectsv1.UpdateProjectRequest) (*projectsv1.UpdateProjectResponse, error) {
	if h.update != nil {
		return &projectsv1.UpdateProjectResponse{}, h.update(ctx, r)
	}
	return &projectsv1.UpdateProjectResponse{}, nil
}

func (h *handlers) GetProject(ctx context.Context, r *projectsv1.GetProjectRequest) (*projectsv1.GetProjectResponse, error) {
	if h.get != nil {
		return &projectsv1.GetProjectResponse{}, h.get(ctx, r)
	}
	return &projectsv1.GetProjectResponse{}, nil
}

func (h *handlers) ListDeployments(ctx context.Context, _ *deploymentsv1.ListDeploymentsRequest) (*deploymentsv1.ListDeploymentsResponse, error) {
	if h.list != nil {
		return &deploymentsv1.ListDeploymentsResponse{}, h.list(ctx)
	}
	return &deploymentsv1.ListDeploymentsResponse{}, nil
}

func (h *handlers) ListFindings(context.Context, *findingsv1.ListFindingsRequest) (*findingsv1.ListFindingsResponse, error) {
	return &findingsv1.ListFindingsResponse{}, nil
}

func (h *handlers) UploadReport(stream grpc.ClientStreamingServer[scansv1.UploadReportRequest, scansv1.UploadReportResponse]) error {
	var got []*scansv1.UploadReportRequest
	if h.begun != nil {
		h.begun()
	}
	for {
		message, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		got = append(got, message)
	}
	if h.upload != nil {
		if err := h.upload(stream.Context(), got); err != nil {
			return err
		}
	}
	return stream.SendAndClose(&scansv1.UploadReportResponse{})
}

// newFixture starts the server. change may alter the settings of the chain.
func newFixture(t testing.TB, change ...func(*chain.Deps)) *fixture {
	t.Helper()
	ctx := t.Context()
	f := &fixture{t: t, logs: &logBuffer{}, handlers: &handlers{}, health: health.NewServer()}
	log, err := telemetry.NewLogger(f.logs, "json", "debug")
	must(t, err)
	f.openStore(ctx, log)

	all := grpchan.HandlerMap{}
	platformv1.RegisterMiscellaneousServiceServer(all, f.handlers)
	projectsv1.RegisterProjectsServiceServer(all, f.handlers)
	deploymentsv1.RegisterDeploymentsServiceServer(all, f.handlers)
	findingsv1.RegisterFindingsServiceServer(all, f.handlers)
	scansv1.RegisterReportUploadsServiceServer(all, f.handlers)
	healthv1.RegisterHealthServer(all, f.health)
	reflection.Register(all)

	rules, err := access.LoadRules(all.GetServiceInfo())
	must(t, err)
	validator, err := chain.NewValidator(rules.Methods())
	must(t, err)
	f.metrics = telemetry.NewMetrics(log, "v1", "", "")
	authenticator := access.NewAuthenticator(f.store, f.issuer, nil, nil, log)
	t.Cleanup(func() { _ = authenticator.Close(context.Background()) })
	d := chain.Deps{
		Log: log, Metrics: f.metrics, Rules: rules, Authenticator: authenticator, Store: f.store, Trail: f.trail, Validator: validator,
		RequestTimeout: time.Minute, UploadTimeout: time.Minute, Calls: new(traffic.Calls),
		Intake: intake.New(128<<20, 2), MaxMessage: 16 << 20,
	}
	for _, fn := range change {
		fn(&d)
	}
	f.links = chain.New(d)
	f.serve(all, log)
	return f
}

func (f *fixture) openStore(ctx context.Context, log *slog.Logger) {
	t := f.t
	st := storetest.Open(t, store.Options{DataDir: storetest.SQLite(t)})
	keyring, err := secret.Open(filepath.Join(t.TempDir(), "key"), true)
	must(t, err)
	f.trail, err = audit.Open(ctx, st, keyring, log)
	must(t, err)
	f.store, f.tokens, f.issuer = st, access.NewTokens(st), access.NewIssuer(st, keyring, "http://issuer.test")
	must(t, f.issuer.EnsureKey(ctx))
	first, err := access.Bootstrap(ctx, st, access.BootstrapOptions{Slug: "acme"})
	must(t, err)
	f.acme, f.admin = first.Deployment.ID, first.TokenValue
	must(t, st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		d, err := tx.Deployment.Create().SetSlug("globex").SetName("Globex").SetCreatedAt(store.Now()).Save(ctx)
		f.globex = d.ID
		return err
	}))
}

func (f *fixture) serve(all grpchan.HandlerMap, log *slog.Logger) {
	t := f.t
	server := grpc.NewServer(chain.ServerOptions(nil, f.links)...)
	all.ForEach(func(desc *grpc.ServiceDesc, service any) { server.RegisterService(unread.Service(desc), service) })
	listener := bufconn.Listen(1 << 20)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:///test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	unary, stream := chain.Interceptors(f.links)
	inProcess := inprocess.New(inprocess.Config{Unary: unary, Stream: stream, Logger: log})
	all.ForEach(inProcess.RegisterService)
	f.conns = map[string]grpc.ClientConnInterface{"grpc": conn, "http": inProcess}
}

// each runs a test over both transports.
func (f *fixture) each(run func(t *testing.T, conn grpc.ClientConnInterface, transport string)) {
	for transport, conn := range f.conns {
		f.t.(*testing.T).Run(transport, func(t *testing.T) { run(t, conn, transport) })
	}
}

// token creates an API token of acme.
func (f *fixture) token(role access.Role, scopes ...access.Scope) string {
	f.t.Helper()
	_, value, err := f.tokens.Create(f.t.Context(), access.TokenSpec{DeploymentID: f.acme, Name: "test", Scopes: scopes, Role: role})
	must(f.t, err)
	return value
}

// userToken creates a user in both deployments and returns their JSON Web Token.
func (f *fixture) userToken(role access.Role) string {
	f.t.Helper()
	ctx := tenant.System(f.t.Context())
	must(f.t, f.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		u, err := tx.User.Create().SetEmail("ada@example.com").SetName("Ada").SetCreatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		for _, id := range []int64{f.acme, f.globex} {
			if err := tx.Membership.Create().SetDeploymentID(id).SetUserID(u.ID).SetRole(string(role)).SetCreatedAt(store.Now()).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	}))
	value, err := f.issuer.Mint(ctx, "ada@example.com", time.Hour)
	must(f.t, err)
	return value
}

// audit returns the audit entries of a deployment, oldest first, and deletes them.
func (f *fixture) audit(deploymentID int64) []*ent.AuditEntry {
	f.t.Helper()
	ctx := tenant.NewContext(context.Background(), deploymentID)
	rows, err := f.store.Reader.AuditEntry.Query().Order(ent.Asc("id")).All(ctx)
	must(f.t, err)
	must(f.t, f.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.AuditEntry.Delete().Exec(ctx)
		return err
	}))
	return rows
}

func as(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
}

// detail finds an error detail of type D.
func detail[D any](err error) (D, bool) {
	for _, d := range status.Convert(err).Details() {
		if found, ok := d.(D); ok {
			return found, true
		}
	}
	var none D
	return none, false
}

func requestIDOf(err error) string {
	info, _ := detail[*errdetails.RequestInfo](err)
	return info.GetRequestId()
}

// logBuffer collects log records.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Len() == 0
}

// take returns the records since the last take, including messages other than "call".
func (b *logBuffer) take(t *testing.T) (records []map[string]any, raw string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	raw = b.text.String()
	b.text.Reset()
	for line := range strings.Lines(raw) {
		var record map[string]any
		must(t, json.Unmarshal([]byte(line), &record))
		records = append(records, record)
	}
	return records, raw
}
