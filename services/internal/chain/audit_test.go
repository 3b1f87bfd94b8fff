package chain_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

func TestAudit(t *testing.T) {
	f := newFixture(t)
	reader := f.token(access.RoleReadOnly, access.ScopeWebAPI)
	foreign := func(ctx context.Context, conn grpc.ClientConnInterface) error { return badUpdate(ctx, conn, "globex") }
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
		{"the wrong deployment", reader, foreign, nil, "NotFound"},
		{"reading", f.admin, read, nil, ""},
		{"nobody", "sgp_nobody", goodUpdate, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, conn := range f.conns {
				f.handlers.update = c.handler
				_ = c.call(as(t.Context(), c.token), conn) // the entry shows the result
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
		t.Errorf("the other deployment has entries about foreign callers: %v", entries)
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

// tagging is a handler that makes a change in the usual way and then returns fail.
func (f *fixture) tagging(fail error) func(context.Context, *projectsv1.UpdateProjectRequest) error {
	return func(ctx context.Context, _ *projectsv1.UpdateProjectRequest) error {
		if err := f.tag(ctx, nil); err != nil {
			return err
		}
		return fail
	}
}

// tag creates a tag in a transaction that ends with fail.
func (f *fixture) tag(ctx context.Context, fail error) error {
	return f.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Tag.Create().SetName(rand.Text()).SetCreatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		audit.Change(ctx, "tag", row.ID, nil, &projectsv1.Project{Name: "made"})
		return fail
	})
}

func (f *fixture) tags() int {
	f.t.Helper()
	n, err := f.store.Reader.Tag.Query().Count(tenant.System(context.Background()))
	must(f.t, err)
	return n
}

// TestAuditOfChanges: each transaction that changes something gets an entry. One more is written only for a result that
// these do not show.
func TestAuditOfChanges(t *testing.T) {
	f := newFixture(t)
	broken := errors.New("x")
	for _, c := range []struct {
		name    string
		handler func(context.Context, *projectsv1.UpdateProjectRequest) error
		want    []string // codes; "+" marks those with a change
		tags    int
	}{
		{"a change", f.tagging(nil), []string{"OK+"}, 1},
		{"no change", func(context.Context, *projectsv1.UpdateProjectRequest) error { return nil }, []string{"OK"}, 0},
		{"two transactions", func(ctx context.Context, _ *projectsv1.UpdateProjectRequest) error {
			return errors.Join(f.tag(ctx, nil), f.tag(ctx, nil))
		}, []string{"OK+", "OK+"}, 2},
		{"a transaction that fails", func(ctx context.Context, _ *projectsv1.UpdateProjectRequest) error { return f.tag(ctx, broken) }, []string{"Internal"}, 0},
		{"one that fails and is tried again", func(ctx context.Context, _ *projectsv1.UpdateProjectRequest) error {
			_ = f.tag(ctx, broken)
			return f.tag(ctx, nil)
		}, []string{"OK+"}, 1},
		{"a failure after the change", f.tagging(broken), []string{"OK+", "Internal"}, 1},
		{"a panic after the change", func(ctx context.Context, _ *projectsv1.UpdateProjectRequest) error {
			must(t, f.tag(ctx, nil))
			panic("x")
		}, []string{"OK+", "Internal"}, 1},
		{"a change in the name of the server", func(ctx context.Context, _ *projectsv1.UpdateProjectRequest) error {
			return f.store.Write(tenant.System(ctx), func(ctx context.Context, _ *ent.Tx) error {
				audit.Change(ctx, "user", 1, nil, nil)
				return nil
			})
		}, []string{"OK+"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, conn := range f.conns {
				f.handlers.update = c.handler
				before := f.tags()
				_ = goodUpdate(as(t.Context(), f.admin), conn) // the entries show the result
				var got []string
				for _, e := range f.audit(f.acme) {
					code := e.Code
					if len(e.Changes) > 0 {
						code += "+"
					}
					got = append(got, code)
					if e.ActorName == "" || e.UserID == 0 || e.RequestID == "" || !strings.Contains(e.Request, "web") {
						t.Errorf("got %+v", e)
					}
				}
				if !slices.Equal(got, c.want) || f.tags()-before != c.tags {
					t.Errorf("got %v and %d tags, want %v and %d", got, f.tags()-before, c.want, c.tags)
				}
			}
		})
	}
}

// Calls with a rule that requires no entries still get them when they change something.
func TestAuditOfUnexpectedChanges(t *testing.T) {
	f := newFixture(t)
	f.handlers.get = func(ctx context.Context, _ *projectsv1.GetProjectRequest) error { return f.tag(ctx, nil) }
	f.handlers.list = func(ctx context.Context) error { return f.tag(tenant.NewContext(ctx, f.globex), nil) }
	for _, conn := range f.conns {
		must(t, getProject(as(t.Context(), f.admin), conn, "acme"))
		if entries := f.audit(f.acme); len(entries) != 1 || len(entries[0].Changes) != 1 {
			t.Errorf("got %v", entries)
		}
		_, err := deploymentsv1.NewDeploymentsServiceClient(conn).ListDeployments(as(t.Context(), f.admin), &deploymentsv1.ListDeploymentsRequest{})
		must(t, err)
		if here, there := f.audit(f.acme), f.audit(f.globex); len(here) != 0 || len(there) != 1 {
			t.Errorf("got %v in the caller's deployment and %v in the deployment of the change", here, there)
		}
	}
}

// A change is rolled back when its entry fails. When only the entry after the call fails, the response stays a success,
// and the loss is logged and counted.
func TestAuditFailure(t *testing.T) {
	f := newFixture(t)
	for _, pool := range f.store.Pools() {
		if _, err := pool.ExecContext(t.Context(), "DROP TABLE audit_entries"); err == nil {
			break
		}
	}
	f.logs.take(t)
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, _ string) {
		f.handlers.update = f.tagging(nil)
		wantCode(t, goodUpdate(as(t.Context(), f.admin), conn), codes.Internal)
		if n := f.tags(); n != 0 {
			t.Errorf("%d changes without an entry", n)
		}
		f.handlers.update = nil
		wantCode(t, goodUpdate(as(t.Context(), f.admin), conn), codes.OK)
		if _, raw := f.logs.take(t); strings.Count(raw, "an audit entry was lost") != 2 {
			t.Errorf("the log says %s, want two losses", raw)
		}
	})
	if got := testutil.ToFloat64(f.metrics.AuditFailures.WithLabelValues("write")); got != 4 {
		t.Errorf("palisade_audit_failures_total is %v, want 4", got)
	}
}

func TestAuditOfDenialsIsThrottled(t *testing.T) {
	f := newFixture(t)
	reader := f.token(access.RoleReadOnly, access.ScopeWebAPI)
	begun := time.Now()
	for range 50 {
		wantCode(t, goodUpdate(as(t.Context(), reader), f.conns["http"]), codes.PermissionDenied)
	}
	most := 5 + int(math.Ceil(5*time.Since(begun).Seconds())) // a burst of five, then five a second
	if n := len(f.audit(f.acme)); n < 5 || n > most {
		t.Errorf("%d of 50 denials recorded, want at most %d", n, most)
	}
}
