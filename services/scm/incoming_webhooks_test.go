package scm_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/ent/webhookreceipt"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/testrun"
)

// TestClosedPullRequest: closing a pull request removes its findings only.
func TestClosedPullRequest(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		s.Upload(t, "acme/web", "refs/pull/17/head", sarifOf(t, 42))
		s.Upload(t, "acme/web", "refs/pull/170/merge", sarifOf(t, 42))
		s.Upload(t, "acme/web", pullRef, sarifOf(t, 42)) // line 90 is fixed there
		r.gitHub(t, "pull_request", event(t, "github_pull_request"), 200, `{"status":"accepted"}`)
		s.settle(t)
		wantList(t, "findings", s.stands(t, s.Tenant), mainRef+" open", mainRef+" open", pullRef+" removed", pullRef+" fixed",
			"refs/pull/17/head removed", "refs/pull/170/merge open")
		wantList(t, "events", s.events(t), "removed removed pull request closed", "removed removed pull request closed")
		entry := s.Store.Reader.AuditEntry.Query().Where(auditentry.ActorKind("host")).OnlyX(s.System(t))
		if entry.Method != "webhook/closed" || len(entry.Changes) != 1 || entry.Changes[0].Kind != "pull_request" || entry.Changes[0].ID != "acme/web#17" {
			t.Errorf("audit entry %+v", entry)
		}

		s.Upload(t, "acme/web", pullRef, sarifOf(t, 42)) // reopened
		if got := s.stands(t, s.Tenant)[2]; got != pullRef+" open" {
			t.Errorf("after a scan of the reopened request: %s", got)
		}
		r.gitHub(t, "pull_request", event(t, "github_pull_request", `"merged": false`, `"merged": true`), 200, `{"status":"accepted"}`)
		s.settle(t)
		if got := s.events(t); len(got) != 3 || got[2] != "removed removed pull request merged" {
			t.Errorf("events %q", got)
		}
	})
}

// TestClosedPullRequestEndsHeldCloses: nothing is open on its refs any more.
func TestClosedPullRequestEndsHeldCloses(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		var lines []int
		for n := range 12 {
			lines = append(lines, 100+10*n)
		}
		for _, ref := range []string{pullRef, mainRef} {
			s.Upload(t, "acme/web", ref, sarifOf(t, lines...))
			s.Upload(t, "acme/web", ref, sarifOf(t))
		}
		r.gitHub(t, "pull_request", event(t, "github_pull_request"), 200, `{"status":"accepted"}`)
		s.settle(t)
		for _, hold := range s.Store.Reader.HeldClose.Query().AllX(s.System(t)) {
			want := map[string]string{pullRef: "superseded host", mainRef: "pending "}[hold.Ref]
			if got := hold.State + " " + hold.ActorKind; got != want || hold.Active != (hold.Ref == mainRef) {
				t.Errorf("held closes on %s: %s, want %s", hold.Ref, got, want)
			}
		}
	})
}

// TestFormWebhook: GitHub sends the event as a form, which the signature covers, if its webhook was created so.
func TestFormWebhook(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		body := event(t, "github_pull_request")
		form := url.Values{"payload": {body}}.Encode()
		send := func(body string, status int, want string) {
			t.Helper()
			r.answer(t, body, status, want, "X-GitHub-Event", "pull_request", "Content-Type", "application/x-www-form-urlencoded",
				"X-Hub-Signature-256", digest(r.secret, body))
		}
		send(form, 200, `{"status":"accepted"}`)
		s.settle(t)
		wantList(t, "findings", s.stands(t, s.Tenant), mainRef+" open", mainRef+" open", pullRef+" removed", pullRef+" removed")
		r.gitHub(t, "pull_request", body, 200, `{"status":"duplicate"}`)
		for _, broken := range []string{"payload=%", "other=%7B%7D", "hello"} {
			send(broken, 400, "set the content type of the webhook to application/json")
		}
		send("payload=", 400, "body")
		r.answer(t, form, 404, "there is no webhook", "X-GitHub-Event", "pull_request", "X-Hub-Signature-256", digest(r.secret, body))
	})
}

// TestReplayedWebhook sends the same event twice, the second time with another delivery id, which the host does not
// sign.
func TestReplayedWebhook(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		body := event(t, "github_pull_request")
		r.gitHub(t, "pull_request", body, 200, `{"status":"accepted"}`)
		s.settle(t)
		s.Upload(t, "acme/web", pullRef, sarifOf(t, 42, 90))
		before := s.stands(t, s.Tenant)
		r.gitHub(t, "pull_request", body, 200, `{"status":"duplicate"}`)
		r.answer(t, body, 200, `{"status":"duplicate"}`, "X-GitHub-Event", "pull_request", "X-GitHub-Delivery", "another", "X-Hub-Signature-256", digest(r.secret, body))
		old := regexp.MustCompile(`"20\d\d-\d\d-\d\dT`).ReplaceAllString(body, `"2025-01-02T`)
		r.gitHub(t, "pull_request", old, 200, `{"status":"ignored"}`)
		s.settle(t)
		wantList(t, "findings", s.stands(t, s.Tenant), before...)
		if n := s.Store.Reader.WebhookEvent.Query().CountX(s.System(t)); n != 1 {
			t.Errorf("%d events are stored", n)
		}
	})
}

// TestRefusedWebhooks must all get the same answer: it does not reveal which keys exist.
func TestRefusedWebhooks(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		body := event(t, "github_pull_request")
		const refused = "there is no webhook with this key and signature"
		unknown := r
		unknown.path = "/api/scm/webhooks/" + strings.Repeat("x", 43)
		unknown.gitHub(t, "pull_request", body, 404, refused)
		r.answer(t, body, 404, refused, "X-GitHub-Event", "pull_request")
		r.answer(t, body, 404, refused, "X-GitHub-Event", "pull_request", "X-Hub-Signature-256", digest("another secret", body))
		r.answer(t, body+" ", 404, refused, "X-GitHub-Event", "pull_request", "X-Hub-Signature-256", digest(r.secret, body))
		r.answer(t, body, 404, refused, "X-GitHub-Event", "pull_request", "X-Gitlab-Token", r.secret)
		query := r
		query.path += "?github_signature=" + digest(r.secret, body) + "&github_event=pull_request"
		query.answer(t, body, 404, refused)
		r.answer(t, strings.Repeat("x", 5<<20+1), 413, "at most 5242880 bytes", "X-GitHub-Event", "pull_request")
		r.answer(t, body, 400, "X-GitHub-Event must have at most 255 characters", "X-GitHub-Event", strings.Repeat("x", 256))
		r.answer(t, `{"action":`, 400, "the body is not a webhook of this host", "X-GitHub-Event", "pull_request",
			"X-Hub-Signature-256", digest(r.secret, `{"action":`))
		s.settle(t)
		wantList(t, "findings", s.stands(t, s.Tenant), mainRef+" open", mainRef+" open", pullRef+" open", pullRef+" open")
		if n := s.Store.Reader.WebhookEvent.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d events are stored", n)
		}
		r.gitHub(t, "ping", `{"zen":"Design for failure.","hook_id":9001}`, 200, `{"status":"ignored"}`)
		r.gitHub(t, "pull_request", event(t, "github_pull_request", `"closed",`, `"labeled",`), 200, `{"status":"ignored"}`)
	})
}

// TestTooManyWebhooks: the limit is per key, whether the key exists or not.
func TestTooManyWebhooks(t *testing.T) {
	testrun.Deep(t) // needs a fast machine
	s := apitest.Start(t, nil)
	var callers sync.WaitGroup
	var calls atomic.Int64
	var other atomic.Pointer[apitest.Answer] // any answer except "no such webhook"
	for range 16 {                           // on a busy machine one client may not exceed the limit
		callers.Go(func() {
			for other.Load() == nil && calls.Add(1) <= 5000 {
				if answer := s.Do(t, "", http.MethodPost, "/api/scm/webhooks/busy", "{}"); answer.Status != http.StatusNotFound {
					other.Store(&answer)
				}
			}
		})
	}
	callers.Wait()
	if answer := other.Load(); answer == nil || answer.Status != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "1" {
		t.Errorf("%+v", answer)
	}
	if answer := s.Do(t, "", http.MethodPost, "/api/scm/webhooks/quiet", "{}"); answer.Status != http.StatusNotFound {
		t.Errorf("another key: %d %s", answer.Status, answer.Body)
	}
}

// TestWebhookOverGRPC sends the same event in gRPC messages.
func TestWebhookOverGRPC(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		body := event(t, "github_pull_request")
		send := func(messages ...*scmv1.ReceiveWebhookRequest) (*scmv1.ReceiveWebhookResponse, error) {
			stream, err := scmv1.NewIncomingWebhooksServiceClient(s.Conn).ReceiveWebhook(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, message := range messages {
				_ = stream.Send(message) // the final answer has the error
			}
			return stream.CloseAndRecv()
		}
		first := &scmv1.ReceiveWebhookRequest{
			WebhookKey: strings.TrimPrefix(r.path, "/api/scm/webhooks/"), Chunk: []byte(body[:100]),
			Call: &scmv1.WebhookCall{GithubEvent: "pull_request", GithubSignature: digest(r.secret, body)},
		}
		answer, err := send(first, &scmv1.ReceiveWebhookRequest{Chunk: []byte(body[100:])})
		if err != nil || answer.GetStatus() != "accepted" {
			t.Errorf("%v, %v", answer, err)
		}
		if _, err := send(first, first); status.Code(err) != codes.InvalidArgument {
			t.Errorf("two first messages: %v", err)
		}
		if _, err := send(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("no message: %v", err)
		}
	})
}

// TestRotatedWebhookSecret: the previous secret is accepted for a day.
func TestRotatedWebhookSecret(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, old := s.hooked(t)
		row := s.Store.Reader.ScmConfig.Query().OnlyX(s.System(t))
		s.do(t, http.MethodPost, s.subscriptions(row.ID, "/rotate_secret"), "{}", 200)
		fresh := s.receiverOf(t, h.Hooks()[0])
		if fresh.secret == old.secret || fresh.path != old.path {
			t.Fatal("the host was not told another secret")
		}
		close17 := event(t, "github_pull_request")
		fresh.gitHub(t, "pull_request", close17, 200, `{"status":"accepted"}`)
		old.gitHub(t, "pull_request", close17+" ", 200, `{"status":"accepted"}`)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.ScmConfig.Update().Where(scmconfig.ID(row.ID)).SetWebhookRotatedAt(store.Micros(time.Now().Add(-25 * time.Hour))).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		old.gitHub(t, "pull_request", close17+"  ", 404, "there is no webhook")
		fresh.gitHub(t, "pull_request", close17+"   ", 200, `{"status":"accepted"}`)
	})
}

// TestWebhookOfAnotherTenant names a project with the same name in another deployment, and one outside of the
// connection's namespace.
func TestWebhookOfAnotherTenant(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		other := s.AddTenant(t, "globex")
		for _, name := range []string{"acme/web", "globex/web"} {
			path := "/api/v1/deployments/globex/reports?project=" + name + "&ref=" + pullRef
			if answer := s.Do(t, other.Token, http.MethodPost, path, string(sarifOf(t, 42))); answer.Status != 200 {
				t.Fatal(answer.Body)
			}
		}
		s.Upload(t, "globex/web", pullRef, sarifOf(t, 42))
		s.Upload(t, "acme-labs/web", pullRef, sarifOf(t, 42))
		r.gitHub(t, "pull_request", event(t, "github_pull_request", `"full_name": "acme/web"`, `"full_name": "globex/web"`), 200, `{"status":"ignored"}`)
		r.gitHub(t, "pull_request", event(t, "github_pull_request", `"full_name": "acme/web"`, `"full_name": "acme-labs/web"`), 200, `{"status":"ignored"}`)
		r.gitHub(t, "pull_request", event(t, "github_pull_request", `"full_name": "acme/web"`, `"full_name": "acme/unknown"`), 200, `{"status":"accepted"}`)
		r.gitHub(t, "pull_request", event(t, "github_pull_request", `"full_name": "acme/web"`, `"full_name": "Acme/Web"`), 200, `{"status":"accepted"}`)
		s.settle(t)
		wantList(t, "the other deployment", s.stands(t, other), pullRef+" open", pullRef+" open")
		wantList(t, "this deployment", s.stands(t, s.Tenant), mainRef+" open", mainRef+" open", pullRef+" removed", pullRef+" removed",
			pullRef+" open", pullRef+" open")
	})
}

// TestGitLabWebhooks verifies GitLab's token and its signatures.
func TestGitLabWebhooks(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, _ := s.gitLab(t, `,"subscribe":true`)
		r := s.receiverOf(t, h.Hooks()[0])
		const ref = "refs/merge-requests/17/head"
		s.Upload(t, "acme/platform/api", ref, sarifOf(t, 42))
		body := event(t, "gitlab_merge_request")
		const refused = "there is no webhook with this key and signature"
		r.answer(t, body, 404, refused, "X-Gitlab-Event", "Merge Request Hook", "X-Gitlab-Token", r.secret+"x")
		r.answer(t, body, 404, refused, "X-Gitlab-Event", "Merge Request Hook", "X-Hub-Signature-256", digest(r.secret, body))
		signed := func(at time.Time, id string) []string {
			signer, err := standardwebhooks.NewWebhookRaw([]byte(r.secret))
			if err != nil {
				t.Fatal(err)
			}
			text, err := signer.Sign(id, at, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			return []string{"X-Gitlab-Event", "Merge Request Hook", "webhook-id", id, "webhook-timestamp", strconv.FormatInt(at.Unix(), 10), "webhook-signature", text}
		}
		r.answer(t, body, 404, refused, signed(time.Now().Add(-6*time.Minute), "msg_1")...)
		wantList(t, "before", s.stands(t, s.Tenant), ref+" open")
		r.answer(t, body, 200, `{"status":"accepted"}`, signed(time.Now(), "msg_1")...)
		r.answer(t, body, 200, `{"status":"duplicate"}`, signed(time.Now().Add(time.Second), "msg_1")...) // a redelivery, as GitLab sends it
		r.answer(t, body, 200, `{"status":"accepted"}`, signed(time.Now(), "msg_2")...)                   // the ids are signed, so these are two events
		r.answer(t, body, 200, `{"status":"accepted"}`, "X-Gitlab-Event", "Merge Request Hook", "X-Gitlab-Token", r.secret, "X-Gitlab-Event-UUID", "7d3f1f6e")
		r.answer(t, body, 200, `{"status":"duplicate"}`, "X-Gitlab-Event", "Merge Request Hook", "X-Gitlab-Token", r.secret, "X-Gitlab-Event-UUID", "0a1b2c3d")
		s.settle(t)
		wantList(t, "after", s.stands(t, s.Tenant), ref+" removed")
	})
}

// TestOldReceiptsAreForgotten runs the periodic job, which also runs at the start of a server.
func TestOldReceiptsAreForgotten(t *testing.T) {
	s := apitest.Start(t, nil)
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		now := time.Now()
		for delivery, at := range map[string]time.Time{"old": now.Add(-31 * 24 * time.Hour), "young": now.Add(-29 * 24 * time.Hour)} {
			err := tx.WebhookReceipt.Create().SetDeploymentID(s.DeploymentID).SetWebhookKey("k").SetDeliveryID(delivery).SetReceivedAt(store.Micros(at)).Exec(ctx)
			if err != nil {
				return err
			}
			err = tx.WebhookEvent.Create().SetDeploymentID(s.DeploymentID).SetWebhookKey("k").SetDeliveryID(delivery).SetSubject("s").
				SetHappenedAt(store.Micros(at)).SetReceivedAt(store.Micros(at)).Exec(ctx)
			if err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "UPDATE river_job SET state = 'available', scheduled_at = '2026-01-01 00:00:00', finalized_at = NULL, unique_key = NULL WHERE kind = 'scm_expiry'")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the old receipt is deleted", func() bool {
		return s.Store.Reader.WebhookReceipt.Query().Where(webhookreceipt.DeliveryID("old")).CountX(s.System(t)) == 0
	})
	receipts, events := s.Store.Reader.WebhookReceipt.Query().CountX(s.System(t)), s.Store.Reader.WebhookEvent.Query().CountX(s.System(t))
	if receipts != 1 || events != 1 {
		t.Errorf("%d receipts and %d events are left", receipts, events)
	}
}
