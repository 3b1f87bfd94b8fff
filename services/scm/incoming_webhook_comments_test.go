package scm_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/scmapp"
	"github.com/palisade/palisade/ent/scmconfig"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// command is GitHub's event of a comment with another text and id.
func command(t testing.TB, id int, text string, changes ...string) string {
	t.Helper()
	return event(t, "github_comment", append([]string{"/fp the input is a constant", text, "5102", fmt.Sprint(id)}, changes...)...)
}

// TestTriageByComment triages the findings of a line on all refs, and replies.
func TestTriageByComment(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r := s.hooked(t)
		const name = "pull_request_review_comment"
		r.gitHub(t, name, command(t, 1, "/fp the input is a constant"), 200, `{"status":"accepted"}`)
		s.settle(t)
		const ignored = " ignored false_positive: the input is a constant"
		wantList(t, "findings", s.stands(t, s.Tenant), mainRef+ignored, mainRef+" open", pullRef+ignored, pullRef+" open")
		wantList(t, "events", s.events(t), "triage_spread ignored false_positive octavia", "triaged ignored false_positive octavia")
		replies := h.Replies(thread)
		if len(replies) != 1 || !strings.Contains(replies[0].Body, "was ignored as false positive at the request of octavia") {
			t.Fatalf("replies %+v", replies)
		}
		entry := s.Store.Reader.AuditEntry.Query().Where(auditentry.ActorKind("host")).OnlyX(s.System(t))
		if !strings.HasPrefix(entry.ActorName, "octavia at 127.0.0.1") || len(entry.Changes) != 1 || entry.Changes[0].Kind != "review_comment" {
			t.Errorf("audit entry %+v", entry)
		}
		// The same comment from another webhook of the host: the body differs.
		r.gitHub(t, name, command(t, 1, "/fp the input is a constant")+" ", 200, `{"status":"accepted"}`)
		r.gitHub(t, name, command(t, 2, "/open"), 200, `{"status":"accepted"}`)
		s.settle(t)
		const open = " open: the input is a constant"
		wantList(t, "reopened", s.stands(t, s.Tenant), mainRef+open, mainRef+" open", pullRef+open, pullRef+" open")
		r.gitHub(t, name, command(t, 3, "/ar"), 200, `{"status":"accepted"}`)
		s.settle(t)
		replies = h.Replies(thread)
		if len(replies) != 3 || !strings.Contains(replies[1].Body, "was reopened") || !strings.Contains(replies[2].Body, "say why behind the command: `/ar <comment>`") {
			t.Errorf("replies %+v", replies)
		}
		wantList(t, "after a command without a reason", s.stands(t, s.Tenant), mainRef+open, mainRef+" open", pullRef+open, pullRef+" open")
	})
}

// TestWhichFinding: the marker in our comment selects the finding; without one, the line does.
func TestWhichFinding(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r := s.hooked(t)
		ids := s.Store.Reader.Finding.Query().Where(finding.Ref(pullRef)).Order(ent.Asc(finding.FieldID)).IDsX(s.System(t))
		s.Upload(t, "acme/other", pullRef, sarifOf(t, 42))
		foreign := s.Store.Reader.Finding.Query().Order(ent.Desc(finding.FieldID)).FirstIDX(s.System(t))
		const name = "pull_request_review_comment"
		send := func(id int, first hosttest.Comment) string {
			t.Helper()
			first.ID = thread
			h.Comments = []hosttest.Comment{first}
			r.gitHub(t, name, command(t, id, "/other generated", `"line": 42`, `"line": null`, `"original_line": 42`, `"original_line": null`), 200, `{"status":"accepted"}`)
			s.settle(t)
			replies := h.Replies(thread)
			if len(replies) != 1 {
				t.Fatalf("replies %+v", replies)
			}
			return replies[0].Body
		}
		// The marker takes precedence over the line.
		if got := send(1, hosttest.Comment{Author: "palisade-bot", Body: fmt.Sprintf("<!-- palisade:finding=%d -->", ids[1]), Path: "app/login.go", Line: 42}); got != fmt.Sprintf("Finding %d was ignored at the request of octavia.", ids[1]) {
			t.Error(got)
		}
		// A marker of another project is ignored; the finding extends to the next line.
		if got := send(2, hosttest.Comment{Author: "palisade-bot", Body: fmt.Sprintf("palisade:finding=%d", foreign), Path: "app/login.go", Line: 43}); got != fmt.Sprintf("Finding %d was ignored at the request of octavia.", ids[0]) {
			t.Error(got)
		}
		for id, first := range map[int]hosttest.Comment{3: {Path: "app/login.go", Line: 44}, 4: {Path: "app/other.go", Line: 42}, 5: {Body: "general"}} {
			first.Author = "palisade-bot"
			if got := send(id, first); !strings.HasPrefix(got, "Nothing was changed: no open finding belongs to this line") {
				t.Error(got)
			}
		}
		const ignored = " ignored no_triage_reason: generated"
		wantList(t, "findings", s.stands(t, s.Tenant), mainRef+ignored, mainRef+ignored, pullRef+ignored, pullRef+ignored, pullRef+" open")
	})
}

// TestWhoMayTriage: users without permission are ignored.
func TestWhoMayTriage(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r := s.hooked(t)
		const name = "pull_request_review_comment"
		h.Writers = []string{"octavia", "palisade-bot"}
		h.Comments[0].Body = "palisade:finding=1"
		r.gitHub(t, name, command(t, 1, "/fp x", `"octavia"`, `"mallory"`), 200, `{"status":"accepted"}`)
		r.gitHub(t, name, command(t, 2, "/fp x", `"octavia"`, `"palisade-bot"`), 200, `{"status":"accepted"}`)
		r.gitHub(t, name, command(t, 3, "/fp x", `"type": "User"`, `"type": "Bot"`), 200, `{"status":"ignored"}`)
		r.gitHub(t, name, command(t, 4, "looks good, no /fp here"), 200, `{"status":"ignored"}`)
		s.toggle(t, s.Tenant, false)
		late := command(t, 5, "/fp x")
		r.gitHub(t, name, late, 200, `{"status":"ignored"}`)
		s.settle(t)
		wantList(t, "findings", s.stands(t, s.Tenant), mainRef+" open", mainRef+" open", pullRef+" open", pullRef+" open")
		if replies := h.Replies(thread); len(replies) != 0 {
			t.Errorf("replies %+v", replies)
		}
		s.toggle(t, s.Tenant, true)
		r.gitHub(t, name, late, 200, `{"status":"duplicate"}`)
	})
}

// TestCommentsOfDevelopersMayNotIgnore: with the triage permission NONE, comments reopen and do not ignore.
func TestCommentsOfDevelopersMayNotIgnore(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r := s.hooked(t)
		stored, err := proto.Marshal(&deploymentsv1.DeploymentProductConfig{Sast: &deploymentsv1.SastProductConfig{
			Enabled: true, TriagePermission: deploymentsv1.TriagePermission_TRIAGE_PERMISSION_NONE,
		}})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Deployment.UpdateOneID(s.DeploymentID).SetProducts(stored).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		const name = "pull_request_review_comment"
		r.gitHub(t, name, command(t, 1, "/fp the input is a constant"), 200, `{"status":"accepted"}`)
		s.settle(t)
		wantList(t, "findings", s.stands(t, s.Tenant), mainRef+" open", mainRef+" open", pullRef+" open", pullRef+" open")
		r.gitHub(t, name, command(t, 2, "/open"), 200, `{"status":"accepted"}`)
		s.settle(t)
		replies := h.Replies(thread)
		if len(replies) != 2 || !strings.Contains(replies[0].Body, "Nothing was changed: developers may not ignore sast findings") ||
			!strings.Contains(replies[1].Body, "was reopened") {
			t.Errorf("replies %+v", replies)
		}
	})
}

// TestCommentsRequestExceptions: with the triage permission REQUEST, comments request exceptions, and the reply
// mentions the approvers. A comment that reopens the finding rejects the request.
func TestCommentsRequestExceptions(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r := s.hooked(t)
		stored, err := proto.Marshal(&deploymentsv1.DeploymentProductConfig{
			Sast:         &deploymentsv1.SastProductConfig{Enabled: true, TriagePermission: deploymentsv1.TriagePermission_TRIAGE_PERMISSION_REQUEST},
			ApproversTag: "@acme/appsec",
		})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Deployment.UpdateOneID(s.DeploymentID).SetProducts(stored).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		const name = "pull_request_review_comment"
		comment := func(n int, text string) *ent.ExceptionRequest {
			r.gitHub(t, name, command(t, n, text), 200, `{"status":"accepted"}`)
			s.settle(t)
			return s.Store.Reader.ExceptionRequest.Query().OnlyX(s.System(t))
		}
		request := comment(1, "/ignore the input is a constant")
		if request.Source != "scm_comment" || request.Reason != "no_triage_reason" || request.Note != "the input is a constant" ||
			request.RequesterKind != "host" || request.RequesterLogin != "octavia" || request.State != "requested" {
			t.Errorf("request %+v", request)
		}
		if again := comment(2, "/fp once more"); again.State != "requested" || again.Reason != request.Reason || again.Note != request.Note {
			t.Errorf("requested again %+v", again)
		}
		if answered := comment(3, "/open"); answered.State != "rejected" || answered.ReviewerKind != "host" || answered.ReviewerLogin != "octavia" ||
			answered.ReviewID == nil || answered.ReviewedAt == nil {
			t.Errorf("answered request %+v", answered)
		}
		replies := h.Replies(thread)
		if len(replies) != 3 || !strings.Contains(replies[0].Body, "needs approval: an exception was requested for octavia. An administrator approves or rejects it. @acme/appsec") ||
			!strings.Contains(replies[1].Body, "is ignored already, or an exception is requested already.") || !strings.Contains(replies[2].Body, "was reopened") {
			t.Errorf("replies %+v", replies)
		}
		wantList(t, "findings", s.stands(t, s.Tenant), mainRef+" open", mainRef+" open", pullRef+" open", pullRef+" open")
	})
}

// TestFailedReply: if the host fails at the first reply, it is sent again, without triaging again.
func TestFailedReply(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r := s.hooked(t)
		target, err := url.Parse(h.URL)
		if err != nil {
			t.Fatal(err)
		}
		proxy, failures := httputil.NewSingleHostReverseProxy(target), atomic.Int32{}
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && failures.Add(1) == 1 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			proxy.ServeHTTP(w, r)
		}))
		t.Cleanup(front.Close)
		if err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.ScmConfig.Update().SetBaseURL(front.URL).Exec(ctx)
		}); err != nil {
			t.Fatal(err)
		}
		r.gitHub(t, "pull_request_review_comment", command(t, 1, "/ar behind the VPN"), 200, `{"status":"accepted"}`)
		s.settle(t)
		if replies := h.Replies(thread); len(replies) != 1 || failures.Load() != 2 {
			t.Errorf("%d attempts, replies %+v", failures.Load(), replies)
		}
		wantList(t, "events", s.events(t), "triage_spread ignored acceptable_risk octavia", "triaged ignored acceptable_risk octavia")
	})
}

// TestGitLabComment triages by a note of a discussion.
func TestGitLabComment(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, _ := s.gitLab(t, `,"subscribe":true`)
		h.Writers = []string{"mona"}
		h.Comments = []hosttest.Comment{{ID: 1, Author: "octavia", Body: "SQL from input", Path: "app/login.go", Line: 42}}
		r := s.receiverOf(t, h.Hooks()[0])
		s.toggle(t, s.Tenant, true)
		const ref = "refs/merge-requests/17/merge"
		s.Upload(t, "acme/platform/api", ref, sarifOf(t, 42))
		r.answer(t, event(t, "gitlab_note"), 200, `{"status":"accepted"}`, "X-Gitlab-Event", "Note Hook", "X-Gitlab-Token", r.secret)
		s.settle(t)
		wantList(t, "findings", s.stands(t, s.Tenant), ref+" ignored false_positive: the input is a constant")
		if n := h.Count("POST /api/v4/projects/acme%2Fplatform%2Fapi/merge_requests/17/discussions/" + hosttest.Discussion + "/notes"); n != 1 {
			t.Errorf("%d replies in %q", n, h.Requests())
		}
	})
}

// TestApplicationWebhooks are signed with the application's secret; its installation sends the replies.
func TestApplicationWebhooks(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, _ := s.hooked(t)
		h.AppKey, h.Scopes = &key.PublicKey, nil
		id, _ := s.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "globex", "", "")
		s.installApp(t, h, key, id)
		r := s.appReceiver(t)
		const installed = `{"deploymentId":"%d","namespace":"ACME","installed":%t}`
		jwt := s.AddUser(t, s.Tenant, "chief@acme.test", "ORG_ROLE_ADMIN")
		check := func(want bool) {
			t.Helper()
			answer := s.Do(t, jwt, http.MethodGet, s.apps("/public_gha?namespace=ACME"), "")
			if answer.Status != 200 || answer.Body != fmt.Sprintf(installed, s.DeploymentID, want) {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
		}
		for _, step := range []struct {
			action  string
			id      int
			updated int
			want    bool
		}{
			{"created", 8801, 1777890030, true},
			{"suspend", 8801, 1777890040, false},
			{"unsuspend", 8801, 1777890050, true},
			{"suspend", 8801, 1777890045, true}, // out of order
			{"deleted", 8801, 1777890050, false},
			{"unsuspend", 8801, 1777890050, false}, // out of order
			{"created", 8801, 1777890060, true},
			{"deleted", 8800, 1777890070, true}, // another installation
		} {
			body := event(t, "github_installation", `"created",`, `"`+step.action+`",`, `"id": 8801`, fmt.Sprintf(`"id": %d`, step.id),
				`"updated_at": 1777890030`, fmt.Sprintf(`"updated_at": %d`, step.updated))
			r.gitHub(t, "installation", body+strings.Repeat(" ", r.count(t)), 200, `{"status":"accepted"}`)
			s.settle(t)
			check(step.want)
		}
		if row := s.row(t, id); !row.Installed || row.Suspended {
			t.Errorf("configuration %+v", row)
		}
		r.gitHub(t, "pull_request_review_comment", command(t, 1, "/fp x", `"organization"`, `"installation": {"id": 8801}, "organization"`), 200, `{"status":"accepted"}`)
		s.settle(t)
		wantList(t, "findings", s.stands(t, s.Tenant), mainRef+" ignored false_positive: x", mainRef+" open", pullRef+" ignored false_positive: x", pullRef+" open")
		if len(h.Replies(thread)) != 1 || h.Count("POST /api/v3/app/installations/8801/access_tokens") == 0 {
			t.Errorf("replies %+v, requests %q", h.Replies(thread), h.Requests())
		}
		s.appOfOthers(t, r)
	})
}

// appOfOthers: the events of an application change only the configurations that use it.
func (c configCaller) appOfOthers(t *testing.T, r receiver) {
	t.Helper()
	plain := c.Store.Reader.ScmConfig.Query().Where(scmconfig.Namespace("acme")).OnlyX(c.System(t))
	if plain.Installed || plain.Suspended {
		t.Errorf("a configuration without an application: %+v", plain)
	}
	if err := c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error { // as earlier versions stored it
		return tx.ScmConfig.UpdateOneID(plain.ID).SetInstalled(true).SetSuspended(true).Exec(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	if body := c.Get(t, c.path("")); !strings.Contains(body, `"installed":false,"suspended":false`) || strings.Contains(body, `"suspended":true`) {
		t.Error(body)
	}
	if err := c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error {
		other, err := tx.ScmApp.Create().SetDeploymentID(c.DeploymentID).SetRequestID("req-2").SetState("complete").SetScmType(plain.Type).
			SetBaseURL(plain.BaseURL).SetNamespace("acme").SetCreatedBy(1).SetCreatedAt(1).SetExpiresAt(1).Save(ctx)
		if err != nil {
			return err
		}
		return tx.ScmConfig.UpdateOneID(plain.ID).SetScmAppID(other.ID).SetSuspended(false).Exec(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	for i, action := range []string{"suspend", "deleted"} {
		r.gitHub(t, "installation", event(t, "github_installation", `"created",`, `"`+action+`",`, `"updated_at": 1777890030`,
			fmt.Sprintf(`"updated_at": %d`, 1777890080+i)), 200, `{"status":"accepted"}`)
		c.settle(t)
		if row := c.row(t, plain.ID); !row.Installed || row.Suspended {
			t.Errorf("%s of another application: %+v", action, row)
		}
	}
}

// count is the number of events: a body that was sent before is not stored again.
func (r receiver) count(t testing.TB) int {
	t.Helper()
	return r.Store.Reader.WebhookEvent.Query().CountX(r.System(t))
}

// appReceiver gives the only application a webhook, as completing its request does.
func (c configCaller) appReceiver(t testing.TB) receiver {
	t.Helper()
	const plain = "application-webhook-secret-0123456789"
	keyring, err := secret.Open(c.Config.KeyPath(), false)
	if err != nil {
		t.Fatal(err)
	}
	app := c.Store.Reader.ScmApp.Query().OnlyX(c.System(t))
	sealed, err := keyring.Seal([]byte(plain), fmt.Appendf(nil, "scm_apps/%d/%d/webhook_secret", app.DeploymentID, app.ID))
	if err != nil {
		t.Fatal(err)
	}
	err = c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.ScmApp.Update().Where(scmapp.ID(app.ID)).SetWebhookKey(app.RequestID).SetWebhookSecret(sealed).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return receiver{c, "/api/scm/webhooks/" + app.RequestID, plain}
}
