package chain_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/chain"
	"github.com/palisade/palisade/services/internal/intake"
	"github.com/palisade/palisade/services/internal/unread"
)

// A request is decoded after authentication, and its errors are reported to authorized callers only.
func TestRequestIsReadLate(t *testing.T) {
	f := newFixture(t)
	reader := f.token(access.RoleReadOnly, access.ScopeWebAPI)
	for _, c := range []struct {
		name, token, slug string
		wrong             error
		read              bool
		want              codes.Code
	}{
		{"no credential", "", "acme", nil, false, codes.Unauthenticated},
		{"a bad credential", "sgp_nothing", "acme", nil, false, codes.Unauthenticated},
		{"a good one", f.admin, "acme", nil, true, codes.OK},
		{"another deployment", f.admin, "globex", apierr.MalformedJSON("no"), true, codes.NotFound},
		{"the role", reader, "acme", apierr.MalformedJSON("no"), true, codes.PermissionDenied},
		{"the request", f.admin, "acme", apierr.MalformedJSON("no"), true, codes.InvalidArgument},
		{"it may have named the deployment", f.admin, "", apierr.MalformedJSON("no"), true, codes.InvalidArgument},
		{"nobody waits for the answer", f.admin, "globex", context.Canceled, true, codes.Canceled},
		{"our own failure", f.admin, "globex", errors.New("no memory"), true, codes.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got *projectsv1.UpdateProjectRequest
			f.handlers.update = func(_ context.Context, r *projectsv1.UpdateProjectRequest) error {
				got = r
				return nil
			}
			read := false
			ctx := unread.NewContext(t.Context(), func(_ context.Context, into proto.Message, _ *intake.Share) error {
				if read = true; c.wrong == nil {
					into.(*projectsv1.UpdateProjectRequest).Tags = []string{"red"}
				}
				return c.wrong
			})
			if c.token != "" {
				ctx = as(ctx, c.token)
			}
			_, err := projectsv1.NewProjectsServiceClient(f.conns["http"]).UpdateProject(ctx,
				&projectsv1.UpdateProjectRequest{DeploymentSlug: c.slug, ProjectName: "web"})
			wantCode(t, err, c.want)
			if read != c.read {
				t.Errorf("the request was read: %v, want %v", read, c.read)
			}
			if (got != nil) != (err == nil) || got != nil && (got.GetDeploymentSlug() != c.slug || len(got.GetTags()) != 1) {
				t.Errorf("the handler got %v", got)
			}
		})
	}
}

// Invalid messages over gRPC are refused, but only for authenticated callers. They count as the caller's errors.
func TestBrokenMessages(t *testing.T) {
	f := newFixture(t, func(d *chain.Deps) { d.RateLimit = 0.001 })
	broken := wrapperspb.Bytes([]byte("\xff")) // the first field is a string, and must be UTF-8
	for token, want := range map[string]codes.Code{"": codes.Unauthenticated, f.admin: codes.InvalidArgument} {
		f.logs.take(t)
		ctx := t.Context()
		if token != "" {
			ctx = as(ctx, token)
		}
		err := f.conns["grpc"].Invoke(ctx, projectsv1.ProjectsService_GetProject_FullMethodName, broken, &projectsv1.GetProjectResponse{})
		wantCode(t, err, want)
		apitest.Eventually(t, "a record of the call", func() bool { return !f.logs.empty() })
		if records, raw := f.logs.take(t); len(records) != 1 || records[0]["level"] != "INFO" {
			t.Errorf("want one record at INFO, got %s", raw)
		}
	}
	wantCode(t, getProject(as(t.Context(), f.admin), f.conns["grpc"], "acme"), codes.ResourceExhausted)
}

// A handler's error about a damaged database reaches Corrupt.
func TestCorruptDatabase(t *testing.T) {
	var corruption []error
	f := newFixture(t, func(d *chain.Deps) { d.Corrupt = func(err error) { corruption = append(corruption, err) } })
	for _, err := range []error{sqlite3.Error{Code: sqlite3.ErrBusy}, fmt.Errorf("read: %w", sqlite3.Error{Code: sqlite3.ErrCorrupt})} {
		f.handlers.update = func(context.Context, *projectsv1.UpdateProjectRequest) error { return err }
		_, got := projectsv1.NewProjectsServiceClient(f.conns["grpc"]).UpdateProject(as(t.Context(), f.admin),
			&projectsv1.UpdateProjectRequest{DeploymentSlug: "acme", ProjectName: "web"})
		if got == nil {
			t.Error("no error")
		}
	}
	if len(corruption) != 1 {
		t.Errorf("Corrupt got %v, want one error", corruption)
	}
}

// Refusals count like other calls. Errors on our side and refusals by a rate limit do not.
func TestRefusalsAreCounted(t *testing.T) {
	for name, call := range map[string]struct {
		ctx  func(f *fixture, ctx context.Context) context.Context
		slug string
		want codes.Code
	}{
		"no credential":        {func(_ *fixture, ctx context.Context) context.Context { return ctx }, "acme", codes.Unauthenticated},
		"a bad credential":     {func(_ *fixture, ctx context.Context) context.Context { return as(ctx, "sgp_nothing") }, "acme", codes.Unauthenticated},
		"another's deployment": {func(f *fixture, ctx context.Context) context.Context { return as(ctx, f.admin) }, "globex", codes.NotFound},
		"role": {func(f *fixture, ctx context.Context) context.Context {
			return as(ctx, f.token(access.RoleReadOnly, access.ScopeWebAPI))
		}, "acme", codes.PermissionDenied},
	} {
		for _, transport := range []string{"grpc", "http"} {
			t.Run(name+" over "+transport, func(t *testing.T) {
				f := newFixture(t, func(d *chain.Deps) { d.RateLimit = 0.001 })
				ctx := call.ctx(f, t.Context())
				wantCode(t, badUpdate(ctx, f.conns[transport], call.slug), call.want)
				wantCode(t, badUpdate(ctx, f.conns[transport], call.slug), codes.ResourceExhausted)
				if got := testutil.ToFloat64(f.metrics.RateLimited); got != 1 {
					t.Errorf("palisade_rate_limited_total is %v, want 1", got)
				}
				_, err := healthv1.NewHealthClient(f.conns[transport]).Check(t.Context(), &healthv1.HealthCheckRequest{})
				must(t, err)
				must(t, getProject(as(t.Context(), f.token(access.RoleMember, access.ScopeWebAPI)), f.conns[transport], "acme"))
			})
		}
	}
}

// A call over gRPC is ended if its message never arrives, whoever makes it.
func TestSilentCallersAreEnded(t *testing.T) {
	f := newFixture(t, func(d *chain.Deps) { d.RequestTimeout = 100 * time.Millisecond })
	unary := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true} // lets the client delay its message
	for method, ctx := range map[string]context.Context{
		healthv1.Health_Check_FullMethodName:                    t.Context(),
		projectsv1.ProjectsService_UpdateProject_FullMethodName: as(t.Context(), f.admin),
	} {
		stream, err := f.conns["grpc"].NewStream(ctx, unary, method)
		must(t, err)
		wantCode(t, stream.RecvMsg(&projectsv1.UpdateProjectResponse{}), codes.DeadlineExceeded)
	}
}
