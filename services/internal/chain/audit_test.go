package chain_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
)

func TestAudit(t *testing.T) {
	f := newFixture(t)
	reader := f.token(access.RoleReadOnly, access.ScopeWebAPI)
	stranger := func(ctx context.Context, conn grpc.ClientConnInterface) error { return badUpdate(ctx, conn, "globex") }
	read := func(ctx context.Context, conn grpc.ClientConnInterface) error { return getProject(ctx, conn, "acme") }
	for _, c := range []struct {
		name    string
		token   string
		call    func(context.Context, grpc.ClientConnInterface) error
		handler func(context.Context, *projectsv1.UpdateProjectRequest) error
		want    string // code of the one entry; empty for none
	}{
		{"a success", f.admin, goodUpdate, nil, "OK"},
		{"a failure", f.admin, goodUpdate, func(context.Context, *projectsv1.UpdateProjectRequest) error { return errors.New("x") }, "Internal"},
		{"a panic", f.admin, goodUpdate, func(context.Context, *projectsv1.UpdateProjectRequest) error { panic("x") }, "Internal"},
		{"a bad request", f.admin, func(ctx context.Context, conn grpc.ClientConnInterface) error { return badUpdate(ctx, conn, "acme") }, nil, "InvalidArgument"},
		{"the wrong role", reader, goodUpdate, nil, "PermissionDenied"},
		{"the wrong deployment", reader, stranger, nil, "NotFound"},
		{"reading", f.admin, read, nil, ""},
		{"nobody", "sgp_nobody", goodUpdate, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, conn := range f.conns {
				f.handlers.update = c.handler
				_ = c.call(as(t.Context(), c.token), conn) // how it ends is in the entry
				entries := f.audit(f.acme)
				if c.want == "" {
					if len(entries) != 0 {
						t.Errorf("got %v, want no entry", entries)
					}
					continue
				}
				if len(entries) != 1 || entries[0].Code != c.want {
					t.Fatalf("got %v, want one with code %s", entries, c.want)
				}
				e := entries[0]
				if e.ActorKind != "token" || e.ActorID == 0 || e.Method != projectsv1.ProjectsService_UpdateProject_FullMethodName || e.RequestID == "" || e.At == 0 {
					t.Errorf("got %+v", e)
				}
				if !strings.Contains(e.Request, "web") || len(e.Request) > 4<<10 {
					t.Errorf("request %q", e.Request)
				}
			}
		})
	}
	if entries := f.audit(f.globex); len(entries) != 0 {
		t.Errorf("the deployment of somebody else learns of strangers: %v", entries)
	}
}

func TestAuditRequest(t *testing.T) {
	f := newFixture(t)
	must(t, goodUpdate(as(t.Context(), f.admin), f.conns["grpc"]))
	var got map[string]any
	must(t, json.Unmarshal([]byte(f.audit(f.acme)[0].Request), &got))
	if got["deployment_slug"] != "acme" || got["project_name"] != "web" {
		t.Errorf("got %v", got)
	}
}

// A change that happened is not undone by an audit that fails: the answer is a success, the loss is logged and counted.
func TestAuditFailure(t *testing.T) {
	f := newFixture(t)
	for _, pool := range f.store.Pools() {
		if _, err := pool.ExecContext(t.Context(), "DROP TABLE audit_entries"); err == nil {
			break
		}
	}
	f.logs.take(t)
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, _ string) {
		wantCode(t, goodUpdate(as(t.Context(), f.admin), conn), codes.OK)
		if _, raw := f.logs.take(t); !strings.Contains(raw, "an audit entry was lost") {
			t.Errorf("the log says nothing: %s", raw)
		}
	})
	if got := testutil.ToFloat64(f.metrics.AuditFailures.WithLabelValues("write")); got != 2 {
		t.Errorf("palisade_audit_failures_total is %v, want 2", got)
	}
}

func TestAuditOfDenialsIsThrottled(t *testing.T) {
	f := newFixture(t)
	reader := f.token(access.RoleReadOnly, access.ScopeWebAPI)
	for range 50 {
		wantCode(t, goodUpdate(as(t.Context(), reader), f.conns["http"]), codes.PermissionDenied)
	}
	if n := len(f.audit(f.acme)); n < 5 || n > 25 {
		t.Errorf("%d of 50 denials recorded", n)
	}
}
