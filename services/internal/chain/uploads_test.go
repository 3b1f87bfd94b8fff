package chain_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/chain"
	"github.com/palisade/palisade/services/internal/pace"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/testrun"
)

// uploadTest is a server with uploads that wait inside their handler until the test ends them.
type uploadTest struct {
	*fixture
	tokens  map[string]string // by deployment
	begun   chan struct{}     // receives each upload that reaches its handler
	running chan string       // receives the slug of each upload that is being processed
	end     chan struct{}     // ends one upload
}

func newUploadTest(t *testing.T, limits chain.UploadLimits) *uploadTest {
	f := newFixture(t, func(d *chain.Deps) { d.Uploads = limits })
	u := &uploadTest{fixture: f, tokens: map[string]string{}, begun: make(chan struct{}, 100), running: make(chan string, 100), end: make(chan struct{})}
	u.tokens["acme"] = f.token(access.RoleMember, access.ScopeWebAPI)
	_, u.tokens["globex"] = u.member(f.globex)
	f.handlers.begun = func() { u.begun <- struct{}{} }
	f.handlers.upload = func(ctx context.Context, got []*scansv1.UploadReportRequest) error {
		u.running <- got[0].GetDeploymentSlug()
		select {
		case <-u.end:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return u
}

// member creates a user of a deployment and a token of theirs.
func (u *uploadTest) member(deploymentID int64) (userID int64, token string) {
	u.t.Helper()
	must(u.t, u.store.Write(tenant.System(u.t.Context()), func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.User.Create().SetEmail("bob@example.com").SetName("Bob").SetCreatedAt(store.Now()).Save(ctx)
		userID = row.ID
		return err
	}))
	_, token, err := u.fixture.tokens.Create(u.t.Context(), access.TokenSpec{
		DeploymentID: deploymentID, UserID: userID, Name: "test", Scopes: []access.Scope{access.ScopeWebAPI}, Role: access.RoleMember,
	})
	must(u.t, err)
	return userID, token
}

// begin opens an upload and sends its first message.
func (u *uploadTest) begin(conn grpc.ClientConnInterface, slug string) scansv1.ReportUploadsService_UploadReportClient {
	u.t.Helper()
	stream, err := scansv1.NewReportUploadsServiceClient(conn).UploadReport(as(u.t.Context(), u.tokens[slug]))
	must(u.t, err)
	// Receiving returns an error of sending, too.
	_ = stream.Send(first(slug))
	return stream
}

// Uploads of a deployment are processed one after the other. An upload that is still arriving does not block
// others, and deployments do not block each other.
func TestUploadsTakeTurns(t *testing.T) {
	for _, transport := range []string{"grpc", "http"} {
		t.Run(transport, func(t *testing.T) {
			u := newUploadTest(t, chain.UploadLimits{AtOnce: 2, PerDeployment: 1, Queue: 8})
			conn := u.conns[transport]
			slow := u.begin(conn, "acme")
			<-u.begun
			var group sync.WaitGroup
			errs := make(chan error, 10)
			whole := func(slug string) {
				stream := u.begin(conn, slug)
				group.Go(func() {
					_, err := stream.CloseAndRecv()
					errs <- err
				})
			}
			for range 3 {
				whole("acme")
			}
			if got := <-u.running; got != "acme" {
				t.Fatalf("%s first", got)
			}
			whole("globex")
			if got := <-u.running; got != "globex" {
				t.Fatalf("%s runs beside the one of acme that may", got)
			}
			for range 3 {
				u.end <- struct{}{} // one of the two running uploads
			}
			u.end <- struct{}{}
			group.Wait()
			close(errs)
			for err := range errs {
				must(t, err)
			}
			group.Go(func() { _, err := slow.CloseAndRecv(); must(t, err) })
			u.end <- struct{}{}
			group.Wait()
			if left := len(u.running); left != 3 {
				t.Errorf("%d more uploads ran, want 3", left)
			}
		})
	}
}

// When the queue of a deployment is full, its next upload is refused at once with a retry delay. Other deployments are
// not affected.
func TestUploadQueueIsBounded(t *testing.T) {
	for _, transport := range []string{"grpc", "http"} {
		t.Run(transport, func(t *testing.T) {
			u := newUploadTest(t, chain.UploadLimits{AtOnce: 2, PerDeployment: 1, Queue: 1})
			conn := u.conns[transport]
			running := u.begin(conn, "acme")
			var group sync.WaitGroup
			group.Go(func() { _, err := running.CloseAndRecv(); must(t, err) })
			<-u.running
			second := u.begin(conn, "acme")
			<-u.begun
			<-u.begun
			_, err := u.begin(conn, "acme").CloseAndRecv()
			wantCode(t, err, codes.ResourceExhausted)
			info, _ := detail[*errdetails.RetryInfo](err)
			if info.GetRetryDelay().AsDuration() != 10*time.Second || !strings.Contains(err.Error(), "2 uploads of this deployment") {
				t.Errorf("%v %v", err, info)
			}
			other := u.begin(conn, "globex")
			group.Go(func() { _, err := other.CloseAndRecv(); must(t, err) })
			<-u.running
			u.end <- struct{}{}
			u.end <- struct{}{}
			group.Wait()
			group.Go(func() { _, err := second.CloseAndRecv(); must(t, err) })
			u.end <- struct{}{}
			group.Wait()
		})
	}
}

// A caller that disconnects while waiting gives its turn to the next one.
func TestUploadWaitsNoLongerThanItsCaller(t *testing.T) {
	u := newUploadTest(t, chain.UploadLimits{AtOnce: 1, PerDeployment: 1, Queue: 8})
	conn := u.conns["grpc"]
	var group sync.WaitGroup
	running := u.begin(conn, "acme")
	group.Go(func() { _, err := running.CloseAndRecv(); must(t, err) })
	<-u.running
	ctx, cancel := context.WithCancel(as(t.Context(), u.tokens["acme"]))
	waiting, err := scansv1.NewReportUploadsServiceClient(conn).UploadReport(ctx)
	must(t, err)
	must(t, waiting.Send(first("acme")))
	must(t, waiting.CloseSend())
	cancel()
	wantCode(t, waiting.RecvMsg(new(scansv1.UploadReportResponse)), codes.Canceled)
	u.end <- struct{}{}
	last := u.begin(conn, "acme")
	group.Go(func() { _, err := last.CloseAndRecv(); must(t, err) })
	if got := fmt.Sprint(<-u.running); got != "acme" {
		t.Error(got)
	}
	u.end <- struct{}{}
	group.Wait()
}

// A slow upload over gRPC is ended and its slot is free. The same holds at the upload timeout for one that sends
// nothing, even if its connection stays open.
func TestSlowUploadsAreEnded(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	mebi := make([]byte, 1<<20)
	for name, test := range map[string]struct {
		change func(*chain.Deps)
		text   string
	}{
		"rate":    {func(d *chain.Deps) { d.Uploads.Pace = pace.Rule{Rate: 10 << 20, Window: 50 * time.Millisecond} }, "upload-min-rate"},
		"timeout": {func(d *chain.Deps) { d.UploadTimeout = 200 * time.Millisecond }, "longer than allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(d *chain.Deps) {
				d.Uploads = chain.UploadLimits{AtOnce: 1, PerDeployment: 1}
				test.change(d)
			})
			client := scansv1.NewReportUploadsServiceClient(f.conns["grpc"])
			for _, sends := range []int{0, 1, 4} {
				stream, err := client.UploadReport(as(t.Context(), f.admin))
				must(t, err)
				for i := range sends {
					message := &scansv1.UploadReportRequest{Chunk: mebi}
					if i == 0 {
						message = first("acme")
					}
					// io.EOF says that the server has ended the stream already. RecvMsg returns its status.
					if err := stream.Send(message); !errors.Is(err, io.EOF) {
						must(t, err)
					}
				}
				err = stream.RecvMsg(new(scansv1.UploadReportResponse))
				wantCode(t, err, codes.DeadlineExceeded)
				if !strings.Contains(err.Error(), test.text) {
					t.Errorf("%d messages: %v", sends, err)
				}
			}
			stream, err := client.UploadReport(as(t.Context(), f.admin))
			must(t, err)
			must(t, stream.Send(first("acme")))
			_, err = stream.CloseAndRecv()
			must(t, err)
		})
	}
}
