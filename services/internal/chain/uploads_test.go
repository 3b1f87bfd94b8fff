package chain_test

import (
	"context"
	"errors"
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
	"github.com/palisade/palisade/services/internal/apitest"
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
	group   sync.WaitGroup    // of the callers that wait for answers
}

func newUploadTest(t *testing.T, limits chain.UploadLimits) *uploadTest {
	f := newFixture(t, func(d *chain.Deps) { d.Uploads = limits })
	u := &uploadTest{fixture: f, tokens: map[string]string{}, begun: make(chan struct{}, 100), running: make(chan string, 100), end: make(chan struct{})}
	t.Cleanup(u.group.Wait) // at the end of the test, the context of the callers ends
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
		if err != nil {
			return err
		}
		userID = row.ID
		return tx.Membership.Create().SetDeploymentID(deploymentID).SetUserID(userID).SetRole(string(access.RoleMember)).SetCreatedAt(1).Exec(ctx)
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

// succeed waits for the answer of an upload in the background.
func (u *uploadTest) succeed(stream scansv1.ReportUploadsService_UploadReportClient) {
	u.group.Go(func() {
		if _, err := stream.CloseAndRecv(); err != nil && u.t.Context().Err() == nil {
			u.t.Error(err)
		}
	})
}

// arrives waits until one more upload has reached its handler.
func (u *uploadTest) arrives() { apitest.Receive(u.t, "an upload arrives", u.begun) }

// runs waits until one more upload is being processed, and returns its deployment.
func (u *uploadTest) runs() (slug string) {
	return apitest.Receive(u.t, "an upload is being processed", u.running)
}

// finish ends n uploads that are being processed.
func (u *uploadTest) finish(n int) {
	u.t.Helper()
	for range n {
		select {
		case u.end <- struct{}{}:
		case <-time.After(2 * time.Minute):
			u.t.Fatal("no upload is being processed")
		}
	}
}

// Uploads of a deployment are processed one after the other. An upload that is still arriving does not block
// others, and deployments do not block each other.
func TestUploadsTakeTurns(t *testing.T) {
	for _, transport := range []string{"grpc", "http"} {
		t.Run(transport, func(t *testing.T) {
			u := newUploadTest(t, chain.UploadLimits{AtOnce: 2, PerDeployment: 1, Queue: 8})
			conn := u.conns[transport]
			slow := u.begin(conn, "acme")
			u.arrives()
			for range 3 {
				u.succeed(u.begin(conn, "acme"))
			}
			if got := u.runs(); got != "acme" {
				t.Fatalf("%s first", got)
			}
			u.succeed(u.begin(conn, "globex"))
			if got := u.runs(); got != "globex" {
				t.Fatalf("%s runs beside the one of acme that may", got)
			}
			u.finish(4)
			u.group.Wait()
			u.succeed(slow)
			u.finish(1)
			u.group.Wait()
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
			u.succeed(u.begin(conn, "acme"))
			u.runs()
			second := u.begin(conn, "acme")
			u.arrives()
			u.arrives()
			_, err := u.begin(conn, "acme").CloseAndRecv()
			wantCode(t, err, codes.ResourceExhausted)
			info, _ := detail[*errdetails.RetryInfo](err)
			if info.GetRetryDelay().AsDuration() != 10*time.Second || !strings.Contains(err.Error(), "2 uploads of this deployment") {
				t.Errorf("%v %v", err, info)
			}
			u.succeed(u.begin(conn, "globex"))
			u.runs()
			u.finish(2)
			u.group.Wait()
			u.succeed(second)
			u.finish(1)
			u.group.Wait()
		})
	}
}

// A caller that disconnects while waiting gives its turn to the next one.
func TestUploadWaitsNoLongerThanItsCaller(t *testing.T) {
	u := newUploadTest(t, chain.UploadLimits{AtOnce: 1, PerDeployment: 1, Queue: 8})
	conn := u.conns["grpc"]
	u.succeed(u.begin(conn, "acme"))
	u.runs()
	ctx, cancel := context.WithCancel(as(t.Context(), u.tokens["acme"]))
	waiting, err := scansv1.NewReportUploadsServiceClient(conn).UploadReport(ctx)
	must(t, err)
	must(t, waiting.Send(first("acme")))
	must(t, waiting.CloseSend())
	cancel()
	wantCode(t, waiting.RecvMsg(new(scansv1.UploadReportResponse)), codes.Canceled)
	u.finish(1)
	u.succeed(u.begin(conn, "acme"))
	if got := u.runs(); got != "acme" {
		t.Error(got)
	}
	u.finish(1)
	u.group.Wait()
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
			// On a busy machine this upload may itself be too slow. Without a free slot, none would ever succeed.
			apitest.Eventually(t, "the slot is free", func() bool {
				stream, err := client.UploadReport(as(t.Context(), f.admin))
				must(t, err)
				_ = stream.Send(first("acme")) // receiving returns its error, too
				_, err = stream.CloseAndRecv()
				if err != nil {
					wantCode(t, err, codes.DeadlineExceeded)
				}
				return err == nil
			})
		})
	}
}
