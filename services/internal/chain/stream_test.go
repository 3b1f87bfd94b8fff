package chain_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/access"
)

// upload sends messages and returns the result of the upload.
func upload(ctx context.Context, conn grpc.ClientConnInterface, messages ...*scansv1.UploadReportRequest) error {
	stream, err := scansv1.NewReportUploadsServiceClient(conn).UploadReport(ctx)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if err := stream.Send(m); err != nil {
			break // the response has the reason
		}
	}
	_, err = stream.CloseAndRecv()
	return err
}

func first(slug string) *scansv1.UploadReportRequest {
	return &scansv1.UploadReportRequest{
		DeploymentSlug: slug, Target: &scansv1.UploadReportTarget{Project: "acme/web", Ref: "main"}, Chunk: []byte("one"),
	}
}

func chunk(data string) *scansv1.UploadReportRequest {
	return &scansv1.UploadReportRequest{Chunk: []byte(data)}
}

func TestUploadStream(t *testing.T) {
	f := newFixture(t)
	agent, user := f.token(access.RoleMember, access.ScopeAgent), f.userToken(access.RoleMember)
	reader := f.token(access.RoleReadOnly, access.ScopeWebAPI)
	large := chunk(string(bytes.Repeat([]byte("x"), 1<<20+1)))
	wrong := first("acme")
	wrong.Target.Project = ""
	for _, c := range []struct {
		name, token string
		messages    []*scansv1.UploadReportRequest
		tenant      int64
		want        codes.Code
		audit       string
	}{
		{"a token", agent, []*scansv1.UploadReportRequest{first("acme"), chunk("two"), chunk("three")}, f.acme, codes.OK, "OK"},
		{"a user of several deployments", user, []*scansv1.UploadReportRequest{first("globex"), chunk("two")}, f.globex, codes.OK, ""},
		{"the same deployment again", agent, []*scansv1.UploadReportRequest{first("acme"), first("acme")}, f.acme, codes.OK, "OK"},
		{"another deployment later", user, []*scansv1.UploadReportRequest{first("acme"), first("globex")}, 0, codes.InvalidArgument, "InvalidArgument"},
		{"a foreign deployment", agent, []*scansv1.UploadReportRequest{first("globex")}, 0, codes.NotFound, "NotFound"},
		{"no deployment", agent, []*scansv1.UploadReportRequest{chunk("one")}, 0, codes.NotFound, "NotFound"},
		{"no message", agent, nil, 0, codes.InvalidArgument, ""},
		{"no credential", "sgp_none", []*scansv1.UploadReportRequest{first("acme")}, 0, codes.Unauthenticated, ""},
		{"the wrong role comes before the request", reader, []*scansv1.UploadReportRequest{wrong}, 0, codes.PermissionDenied, "PermissionDenied"},
		{"a bad first message", agent, []*scansv1.UploadReportRequest{wrong}, 0, codes.InvalidArgument, "InvalidArgument"},
		{"a bad later message", agent, []*scansv1.UploadReportRequest{first("acme"), large}, 0, codes.InvalidArgument, "InvalidArgument"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, conn := range f.conns {
				var seen int64
				var data strings.Builder
				f.handlers.upload = func(ctx context.Context, got []*scansv1.UploadReportRequest) error {
					seen, _ = tenant.FromContext(ctx)
					for _, m := range got {
						data.Write(m.GetChunk())
					}
					return nil
				}
				err := upload(as(t.Context(), c.token), conn, c.messages...)
				wantCode(t, err, c.want)
				if seen != c.tenant {
					t.Errorf("the handler ran in deployment %d, want %d", seen, c.tenant)
				}
				if c.want == codes.OK {
					var want strings.Builder
					for _, m := range c.messages {
						want.Write(m.GetChunk())
					}
					if data.String() != want.String() {
						t.Errorf("the handler got %q, want %q", data.String(), want.String())
					}
				} else if requestIDOf(err) == "" {
					t.Errorf("an error without request id: %v", err)
				}
				f.checkUploadAudit(t, c.audit)
			}
		})
	}
}

func (f *fixture) checkUploadAudit(t *testing.T, want string) {
	t.Helper()
	entries := f.audit(f.acme)
	if want == "" {
		if len(entries) != 0 {
			t.Errorf("got %v, want no audit entry", entries)
		}
		return
	}
	if len(entries) != 1 || entries[0].Code != want {
		t.Fatalf("got %v, want one audit entry with code %s", entries, want)
	}
	if strings.Contains(entries[0].Request, "chunk") {
		t.Errorf("the audit has the bytes of the report: %s", entries[0].Request)
	}
}

func TestStreamPanicAndError(t *testing.T) {
	f := newFixture(t)
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, _ string) {
		f.logs.take(t)
		f.handlers.upload = func(context.Context, []*scansv1.UploadReportRequest) error { panic("boom") }
		wantCode(t, upload(as(t.Context(), f.admin), conn, first("acme")), codes.Internal)
		records, raw := f.logs.take(t)
		if len(records) != 1 || !strings.Contains(raw, "TestStreamPanicAndError") {
			t.Errorf("want one record with the stack, got %s", raw)
		}
		f.handlers.upload = func(context.Context, []*scansv1.UploadReportRequest) error { return errors.New("disk full") }
		err := upload(as(t.Context(), f.admin), conn, first("acme"))
		wantCode(t, err, codes.Internal)
		if strings.Contains(status.Convert(err).Message(), "disk full") {
			t.Errorf("the cause leaves: %v", err)
		}
	})
}

// In process the peer is the gateway, and only the gateway may name the caller's address.
func TestRemoteIsNotTrustedOverGRPC(t *testing.T) {
	f := newFixture(t)
	must(t, goodUpdate(metadata.AppendToOutgoingContext(as(t.Context(), f.admin), "x-forwarded-for", "192.0.2.7"), f.conns["http"]))
	must(t, goodUpdate(metadata.AppendToOutgoingContext(as(t.Context(), f.admin), "x-forwarded-for", "192.0.2.7"), f.conns["grpc"]))
	entries := f.audit(f.acme)
	if entries[0].Remote != "192.0.2.7" || entries[1].Remote == "192.0.2.7" {
		t.Errorf("got %q over HTTP, %q over gRPC", entries[0].Remote, entries[1].Remote)
	}
}

// TestStreamOfGoneCaller: an answer that nobody waits for is no error of the server.
func TestStreamOfGoneCaller(t *testing.T) {
	f := newFixture(t)
	token := f.token(access.RoleMember, access.ScopeAgent)
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, _ string) {
		ctx, leave := context.WithCancel(as(t.Context(), token))
		defer leave()
		f.handlers.upload = func(ctx context.Context, _ []*scansv1.UploadReportRequest) error {
			leave()
			<-ctx.Done()
			return nil
		}
		f.logs.take(t)
		wantCode(t, upload(ctx, conn, first("acme")), codes.Canceled)
		for end := time.Now().Add(10 * time.Second); f.logs.empty() && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if _, raw := f.logs.take(t); !strings.Contains(raw, `"code":"Canceled"`) || strings.Contains(raw, `"level":"ERROR"`) {
			t.Errorf("the log is %s", raw)
		}
	})
}
