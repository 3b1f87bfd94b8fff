package scm_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// thread is the id of the first review comment in the recorded GitHub events.
const thread = 5101

// pullRef and mainRef are the refs of the seeded findings.
const (
	pullRef = "refs/pull/17/merge"
	mainRef = "refs/heads/main"
)

// sarifOf writes a report with one result in each given line of app/login.go.
func sarifOf(t testing.TB, lines ...int) []byte {
	t.Helper()
	results := []any{}
	for _, line := range lines {
		results = append(results, map[string]any{
			"ruleId": fmt.Sprintf("go.sqli.%d", line), "message": map[string]any{"text": "SQL from input"},
			"locations": []any{map[string]any{"physicalLocation": map[string]any{
				"artifactLocation": map[string]any{"uri": "app/login.go"},
				"region":           map[string]any{"startLine": line, "endLine": line + 1, "snippet": map[string]any{"text": fmt.Sprintf("db.Query(q%d)", line)}},
			}}},
		})
	}
	raw, err := json.Marshal(map[string]any{"version": "2.1.0", "runs": []any{map[string]any{
		"tool": map[string]any{"driver": map[string]any{"name": "test"}}, "results": results,
		"invocations": []any{map[string]any{"executionSuccessful": true}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// event reads a recorded webhook with the current time; changes are alternating old and new texts.
func event(t testing.TB, name string, changes ...string) string {
	t.Helper()
	return eventAt(t, time.Now(), name, changes...)
}

// eventAt is event with a given time.
func eventAt(t testing.TB, at time.Time, name string, changes ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("webhook", "testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.ReplaceAll(raw, []byte("@AT@"), []byte(at.UTC().Format(time.RFC3339)))
	for i := 0; i+1 < len(changes); i += 2 {
		if !bytes.Contains(raw, []byte(changes[i])) {
			t.Fatalf("%s has no %s", name, changes[i])
		}
		raw = bytes.ReplaceAll(raw, []byte(changes[i]), []byte(changes[i+1]))
	}
	return string(raw)
}

func digest(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// receiver is a webhook's URL and signing secret.
type receiver struct {
	configCaller
	path, secret string
}

// receiverOf reads the webhook that a host was given.
func (c configCaller) receiverOf(t testing.TB, hook hosttest.Hook) receiver {
	t.Helper()
	path, ok := strings.CutPrefix(hook.URL, c.Config.PublicURL)
	if !ok || !strings.HasPrefix(path, "/api/scm/webhooks/") || len(hook.Secret) < 32 {
		t.Fatalf("the host was told %+v", hook)
	}
	return receiver{c, path, hook.Secret}
}

// hooked connects GitHub with a webhook, and uploads findings in lines 42 and 90 of pull request 17 and the main
// branch.
func (c configCaller) hooked(t testing.TB) (*hosttest.GitHub, receiver) {
	t.Helper()
	h, _ := c.gitHub(t, `,"subscribe":true`)
	h.Writers = []string{"octavia"}
	h.Comments = []hosttest.Comment{{ID: thread, Author: "palisade-bot", Body: "SQL from input", Path: "app/login.go", Line: 42}}
	for _, ref := range []string{mainRef, pullRef} {
		c.Upload(t, "acme/web", ref, sarifOf(t, 42, 90))
	}
	c.toggle(t, c.Tenant, true)
	return h, c.receiverOf(t, h.Hooks()[0])
}

// toggle sets the switch of contract operation 14.
func (c configCaller) toggle(t testing.TB, of apitest.Tenant, on bool) {
	t.Helper()
	err := c.Store.Write(tenant.NewContext(t.Context(), of.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Deployment.UpdateOneID(of.DeploymentID).SetTriageViaComment(on).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// gitHub sends an event like GitHub, and requires an answer.
func (r receiver) gitHub(t testing.TB, name, body string, status int, want string) {
	t.Helper()
	r.answer(t, body, status, want, "X-GitHub-Event", name, "X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958",
		"X-Hub-Signature-256", digest(r.secret, body))
}

func (r receiver) answer(t testing.TB, body string, status int, want string, header ...string) {
	t.Helper()
	answer := r.Send(t, "", http.MethodPost, r.path, strings.NewReader(body), header...)
	if answer.Status != status || !strings.Contains(answer.Body, want) {
		t.Fatalf("%d %s, want %d %s", answer.Status, answer.Body, status, want)
	}
}

// settle waits until all events and their jobs are processed.
func (c configCaller) settle(t testing.TB) {
	t.Helper()
	reader, _ := c.Store.DB()
	apitest.Eventually(t, "the jobs of webhooks", func() bool {
		var n int
		err := reader.QueryRowContext(t.Context(), "SELECT (SELECT COUNT(*) FROM webhook_events WHERE due_at IS NOT NULL) + "+
			"(SELECT COUNT(*) FROM river_job WHERE kind = 'scm_reply' AND finalized_at IS NULL)").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
}

// stands lists the findings of a deployment as "ref line status reason", by id.
func (c configCaller) stands(t testing.TB, of apitest.Tenant) (list []string) {
	t.Helper()
	for _, f := range c.Store.Reader.Finding.Query().Where(finding.DeploymentID(of.DeploymentID)).Order(ent.Asc(finding.FieldID)).AllX(c.System(t)) {
		text := f.Ref + " " + f.Status
		if f.TriageReason != nil {
			text += " " + *f.TriageReason
		}
		if f.TriageComment != nil {
			text += ": " + *f.TriageComment
		}
		list = append(list, text)
	}
	return list
}

// events lists the events made by hosts as "kind to reason actor".
func (c configCaller) events(t testing.TB) (list []string) {
	t.Helper()
	for _, e := range c.Store.Reader.FindingEvent.Query().Where(findingevent.ActorKind("host")).Order(ent.Asc(findingevent.FieldID)).AllX(c.System(t)) {
		list = append(list, strings.TrimSpace(e.Kind+" "+e.ToStatus+" "+e.Reason+" "+e.ActorName))
	}
	return list
}

func wantList(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
