package chain_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent/tenant"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/chain"
)

// The order is a design decision; see New.
func TestOrder(t *testing.T) {
	f := newFixture(t)
	var names []string
	for _, link := range f.links {
		names = append(names, link.Name)
		if link.Unary == nil || link.Stream == nil {
			t.Errorf("%s does not have both forms", link.Name)
		}
	}
	want := []string{"request id", "access log", "recovery", "error mapping", "refusals", "authentication", "request", "traffic",
		"tenant", "access rule", "rate limit", "reads", "audit", "protovalidate", "room for deletes"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q\nwant %q", names, want)
	}
}

// Each call has several errors. The outermost link that finds one decides the response.
func TestPrecedence(t *testing.T) {
	f := newFixture(t)
	reader, agent := f.token(access.RoleReadOnly, access.ScopeWebAPI), f.token(access.RoleAdmin, access.ScopeAgent)
	bad := int64(7) // page_size starts at 100
	for _, c := range []struct {
		name, token, slug string
		call              func(context.Context, grpc.ClientConnInterface, string) error
		want              codes.Code
	}{
		{"no credential comes first", "", "nowhere", badUpdate, codes.Unauthenticated},
		{"a bad credential comes first", "sgp_nothing", "nowhere", badUpdate, codes.Unauthenticated},
		{"a deployment that does not exist", reader, "nowhere", badUpdate, codes.NotFound},
		{"another deployment looks the same", reader, "globex", badUpdate, codes.NotFound},
		{"no deployment", reader, "", badUpdate, codes.NotFound},
		{"a token without the Web API permission", agent, "acme", badUpdate, codes.NotFound},
		{"the role comes before the request", reader, "acme", badUpdate, codes.PermissionDenied},
		{"then the request", f.admin, "acme", badUpdate, codes.InvalidArgument},
		{"a reader may read", reader, "acme", getProject, codes.OK},
		{"an out-of-range page size", reader, "acme", func(ctx context.Context, conn grpc.ClientConnInterface, slug string) error {
			_, err := findingsv1.NewFindingsServiceClient(conn).ListFindings(ctx, &findingsv1.ListFindingsRequest{DeploymentSlug: slug, PageSize: &bad})
			return err
		}, codes.InvalidArgument},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, conn := range f.conns {
				ctx := t.Context()
				if c.token != "" {
					ctx = as(ctx, c.token)
				}
				err := c.call(ctx, conn, c.slug)
				wantCode(t, err, c.want)
				if c.want != codes.OK {
					if _, ok := detail[*errdetails.ErrorInfo](err); !ok || requestIDOf(err) == "" {
						t.Errorf("an error without reason or request id: %v", status.Convert(err).Details())
					}
				}
			}
		})
	}
}

func badUpdate(ctx context.Context, conn grpc.ClientConnInterface, slug string) error {
	_, err := projectsv1.NewProjectsServiceClient(conn).UpdateProject(ctx, &projectsv1.UpdateProjectRequest{
		DeploymentSlug: slug, ProjectName: "web", Tags: []string{strings.Repeat("x", 200)},
	})
	return err
}

func goodUpdate(ctx context.Context, conn grpc.ClientConnInterface) error {
	_, err := projectsv1.NewProjectsServiceClient(conn).UpdateProject(ctx, &projectsv1.UpdateProjectRequest{
		DeploymentSlug: "acme", ProjectName: "web", Tags: []string{"red"},
	})
	return err
}

func getProject(ctx context.Context, conn grpc.ClientConnInterface, slug string) error {
	_, err := projectsv1.NewProjectsServiceClient(conn).GetProject(ctx, &projectsv1.GetProjectRequest{DeploymentSlug: slug, ProjectName: "web"})
	return err
}

func ping(ctx context.Context, conn grpc.ClientConnInterface, opts ...grpc.CallOption) error {
	_, err := platformv1.NewMiscellaneousServiceClient(conn).Ping(ctx, &platformv1.PingRequest{}, opts...)
	return err
}

func TestAuthorizationHeaders(t *testing.T) {
	f := newFixture(t)
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, _ string) {
		wantCode(t, getProject(as(as(t.Context(), f.admin), f.admin), conn, "acme"), codes.Unauthenticated)
		// A stale credential cannot fail a public RPC.
		wantCode(t, ping(as(t.Context(), "sgp_stale"), conn), codes.OK)
	})
}

func TestRequestID(t *testing.T) {
	f := newFixture(t)
	conn := f.conns["grpc"]
	for sent, kept := range map[string]bool{
		"build-7.step_1": true, strings.Repeat("a", 128): true,
		"": false, "a b": false, "a\"b": false, "a/b": false, "ä": false, strings.Repeat("a", 129): false,
	} {
		var header metadata.MD
		ctx := t.Context()
		if !isASCII(sent) { // grpc-go refuses it in the client
			continue
		}
		if sent != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, chain.RequestIDHeader, sent)
		}
		err := getProject(metadata.AppendToOutgoingContext(ctx), conn, "acme")
		id := requestIDOf(err)
		if id == "" || (id == sent) != kept {
			t.Errorf("sent %q, got %q in the error, want it kept: %v", sent, id, kept)
		}
		must(t, ping(ctx, conn, grpc.Header(&header)))
		if got := header.Get(chain.RequestIDHeader); len(got) != 1 || (got[0] == sent) != kept {
			t.Errorf("sent %q, got %q in the header, want it kept: %v", sent, got, kept)
		}
	}
	// With two ids, neither is used.
	err := getProject(metadata.AppendToOutgoingContext(t.Context(), chain.RequestIDHeader, "a", chain.RequestIDHeader, "b"), conn, "acme")
	if id := requestIDOf(err); id == "a" || id == "b" || id == "" {
		t.Errorf("got %q, want a new id", id)
	}
}

func isASCII(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r > '~' }) < 0 }

func TestContextOfHandlers(t *testing.T) {
	f := newFixture(t)
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, _ string) {
		f.handlers.get = func(ctx context.Context, _ *projectsv1.GetProjectRequest) error {
			id, _ := tenant.FromContext(ctx)
			grant, _ := access.GrantFromContext(ctx)
			principal, _ := access.FromContext(ctx)
			if id != f.acme || grant.DeploymentID != f.acme || principal.Kind != access.KindToken || tenant.IsSystem(ctx) {
				t.Errorf("got tenant %d, grant %+v, principal %+v", id, grant, principal)
			}
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > time.Minute {
				t.Errorf("deadline %v %v, want at most the request timeout", deadline, ok)
			}
			return nil
		}
		must(t, getProject(as(t.Context(), f.admin), conn, "acme"))
		f.handlers.list = func(ctx context.Context) error {
			if _, ok := tenant.FromContext(ctx); ok || tenant.IsSystem(ctx) {
				t.Error("an RPC that acts in no deployment has one in its context")
			}
			if _, ok := access.GrantFromContext(ctx); ok {
				t.Error("an RPC that acts in no deployment has a grant")
			}
			_, err := f.store.Reader.Project.Query().All(ctx)
			if err == nil {
				t.Error("it can read a tenant's table")
			}
			return nil
		}
		_, err := deploymentsv1.NewDeploymentsServiceClient(conn).ListDeployments(as(t.Context(), f.admin), &deploymentsv1.ListDeploymentsRequest{})
		must(t, err)
	})
}

func TestErrorsAndPanics(t *testing.T) {
	f := newFixture(t)
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, transport string) {
		panics := testutil.ToFloat64(f.metrics.Panics)
		ctx := as(t.Context(), f.admin)
		f.handlers.get = func(context.Context, *projectsv1.GetProjectRequest) error {
			return errors.New("pq: column secrets.value does not exist")
		}
		f.logs.take(t)
		err := getProject(ctx, conn, "acme")
		wantCode(t, err, codes.Internal)
		if text := status.Convert(err).Message(); text != "internal error" {
			t.Errorf("the cause leaves: %q", text)
		}
		records, raw := f.logs.take(t)
		if len(records) != 1 || strings.Count(raw, "secrets.value") != 1 || records[0]["level"] != "ERROR" {
			t.Errorf("want the cause once, at ERROR, got %s", raw)
		}
		if records[0]["request_id"] != requestIDOf(err) {
			t.Errorf("request id %v in the log, %q in the answer", records[0]["request_id"], requestIDOf(err))
		}

		f.handlers.get = func(context.Context, *projectsv1.GetProjectRequest) error { panic("boom") }
		err = getProject(ctx, conn, "acme")
		wantCode(t, err, codes.Internal)
		if strings.Contains(status.Convert(err).Message(), "boom") || requestIDOf(err) == "" {
			t.Errorf("got %v", err)
		}
		records, raw = f.logs.take(t)
		if len(records) != 1 || records[0]["error"] != "panic: boom" || !strings.Contains(records[0]["stack"].(string), "TestErrorsAndPanics") {
			t.Errorf("want the panic and its stack in one record, got %s", raw)
		}
		if got := testutil.ToFloat64(f.metrics.Panics) - panics; got != 1 {
			t.Errorf("panics_total grew by %v", got)
		}

		f.handlers.get = func(context.Context, *projectsv1.GetProjectRequest) error {
			return apierr.NotFound("project %q not found", "x")
		}
		wantCode(t, getProject(ctx, conn, "acme"), codes.NotFound)
		records, raw = f.logs.take(t)
		if len(records) != 1 || records[0]["level"] != "INFO" || records[0]["reason"] != "NOT_FOUND" || strings.Contains(raw, "project") && strings.Contains(raw, "not found") {
			t.Errorf("want one record without the caller's words, got %s", raw)
		}
		if f.handlers.get = nil; transport == "http" && records[0]["transport"] != "http" {
			t.Errorf("transport %v", records[0]["transport"])
		}
	})
}

func TestAccessLog(t *testing.T) {
	f := newFixture(t)
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, transport string) {
		f.logs.take(t)
		must(t, goodUpdate(as(t.Context(), f.admin), conn))
		records, raw := f.logs.take(t)
		if len(records) != 1 {
			t.Fatalf("want one record, got %s", raw)
		}
		for key, want := range map[string]any{
			"msg": "call", "level": "INFO", "method": projectsv1.ProjectsService_UpdateProject_FullMethodName, "code": "OK",
			"transport": transport, "deployment": "acme", "principal": "token:1",
		} {
			if records[0][key] != want {
				t.Errorf("%s is %v, want %v", key, records[0][key], want)
			}
		}
		if strings.Contains(raw, f.admin) || strings.Contains(raw, "red") {
			t.Errorf("the log has a credential or the request: %s", raw)
		}
		must(t, ping(t.Context(), conn))
		if _, raw := f.logs.take(t); raw != "" {
			t.Errorf("a probe is logged: %s", raw)
		}
	})
	if n, err := testutil.GatherAndCount(f.metrics.Gatherer(), "palisade_request_duration_seconds"); err != nil || n == 0 {
		t.Errorf("no latencies: %d, %v", n, err)
	}
	for _, transport := range []string{"grpc", "http"} {
		if n := testutil.ToFloat64(f.metrics.InFlight.WithLabelValues(transport)); n != 0 {
			t.Errorf("%v calls in flight over %s", n, transport)
		}
	}
}

func TestRequestDeadline(t *testing.T) {
	f := newFixture(t, func(d *chain.Deps) { d.RequestTimeout = 20 * time.Millisecond })
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, _ string) {
		f.handlers.get = func(ctx context.Context, _ *projectsv1.GetProjectRequest) error {
			<-ctx.Done()
			return errors.New("transaction has already been rolled back")
		}
		wantCode(t, getProject(as(t.Context(), f.admin), conn, "acme"), codes.DeadlineExceeded)
	})
}

func TestRateLimit(t *testing.T) {
	f := newFixture(t, func(d *chain.Deps) { d.RateLimit = 0.001 }) // one call, then one per quarter of an hour
	other := f.token(access.RoleMember, access.ScopeWebAPI)
	must(t, getProject(as(t.Context(), f.admin), f.conns["grpc"], "acme"))
	// Both transports share the bucket of the credential.
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, _ string) {
		err := getProject(as(t.Context(), f.admin), conn, "acme")
		wantCode(t, err, codes.ResourceExhausted)
		if info, ok := detail[*errdetails.RetryInfo](err); !ok || info.GetRetryDelay().AsDuration() < time.Minute {
			t.Errorf("want a delay of minutes, got %v", info)
		}
	})
	must(t, getProject(as(t.Context(), other), f.conns["http"], "acme"))
	if got := testutil.ToFloat64(f.metrics.RateLimited); got != 2 {
		t.Errorf("palisade_rate_limited_total is %v, want 2", got)
	}
}

func TestWatchEndsWhenDraining(t *testing.T) {
	draining, drain := context.WithCancel(t.Context())
	f := newFixture(t, func(d *chain.Deps) { d.Draining = draining })
	stream, err := healthv1.NewHealthClient(f.conns["grpc"]).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	must(t, err)
	first, err := stream.Recv()
	if err != nil || first.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("got %v, %v", first, err)
	}
	f.health.Shutdown()
	second, err := stream.Recv()
	if err != nil || second.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Fatalf("got %v, %v", second, err)
	}
	drain()
	_, err = stream.Recv()
	wantCode(t, err, codes.Unavailable)
}

// A stream that waits for its caller also ends: reflection clients keep theirs open.
func TestReceivingEndsWhenDraining(t *testing.T) {
	draining, drain := context.WithCancel(t.Context())
	f := newFixture(t, func(d *chain.Deps) { d.Draining = draining })
	ctx := as(t.Context(), f.admin)
	stream, err := reflectionv1.NewServerReflectionClient(f.conns["grpc"]).ServerReflectionInfo(ctx)
	must(t, err)
	must(t, stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}))
	_, err = stream.Recv()
	must(t, err)
	drain()
	_, err = stream.Recv()
	wantCode(t, err, codes.Unavailable)
}
