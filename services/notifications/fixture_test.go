package notifications_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/notifications/channel"
)

const hookSecret = "acme-hook-secret-1"

// caller sends requests as the first administrator: with an API token or, for operations of users only, with a user's
// JWT.
type caller struct {
	*apitest.Server
	jwt string
}

// each runs a test on both databases. Loopback receivers may be called.
func each(t *testing.T, test func(t *testing.T, s caller)) {
	t.Helper()
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		server := apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow = "127.0.0.1" })
		test(t, caller{server, server.AddUser(t, server.Tenant, "admin@acme.test", access.RoleAdmin)})
	})
}

func (c caller) actions(more string) string {
	return fmt.Sprintf("/api/agent/deployments/%d/actions%s", c.DeploymentID, more)
}

func (c caller) webhooks(more string) string {
	return fmt.Sprintf("/api/notification_webhooks/deployments/%d/webhooks%s", c.DeploymentID, more)
}

func (c caller) deliveries(more string) string {
	return fmt.Sprintf("/api/notifications/v1/deployments/%d/deliveries%s", c.DeploymentID, more)
}

func (c caller) inApp(more string) string {
	return fmt.Sprintf("/api/notifications/in-app/deployments/%d%s", c.DeploymentID, more)
}

// rule creates an enabled rule that posts to url; more is additional JSON.
func (c caller) rule(t testing.TB, name, url, more string) (id int64) {
	t.Helper()
	body := fmt.Sprintf(`{"notificationRule":{"name":%q,"channel":"webhook","is_enabled":true,"config":{"url":%q,"secret":%q}%s}}`, name, url, hookSecret, more)
	var made struct {
		Rule struct {
			ID int64 `json:"id"`
		} `json:"notification_rule"`
	}
	decode(t, c.Body(t, c.Token, http.MethodPost, c.actions(""), body, 200), &made)
	return made.Rule.ID
}

func decode(t testing.TB, body string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
}

// delivered is an entry of the ledger.
type delivered struct {
	ID, RuleID, ReplayOf     string
	EventID, Kind, State     string
	Attempts, LastStatus     int
	LastError, NextAttemptAt string
}

func (c caller) ledger(t testing.TB, query string) []delivered {
	t.Helper()
	var list struct{ Deliveries []delivered }
	decode(t, c.Body(t, c.Token, http.MethodGet, c.deliveries(query), "", 200), &list)
	return list.Deliveries
}

// report is a SARIF report with one result per name, in a file and with a snippet of that name.
func report(names ...string) []byte {
	var results []string
	for i, name := range names {
		results = append(results, fmt.Sprintf(`{"ruleId":"go.sqli","level":"error","message":{"text":"Query built from %s <&> ü"},"locations":[{"physicalLocation":{
			"artifactLocation":{"uri":"app/%s.go"},"region":{"startLine":%d,"startColumn":2,"snippet":{"text":"db.Query(%s)"}}}}]}`, name, name, i+1, name))
	}
	return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec","version":"2.21"}},"results":[` + strings.Join(results, ",") + `]}]}`)
}

// message is a received message.
type message struct {
	id, body string
	findings []string // paths
	scan     int64
	numeric  []int64
}

// receiver receives webhooks, verifies them, and answers as configured.
type receiver struct {
	*httptest.Server
	t      testing.TB
	answer func(m message) int // nil: 200

	mu  sync.Mutex
	all []message // in order of arrival, including refused ones
	ok  []message // answered with 2xx
}

func newReceiver(t testing.TB, answer func(m message) int) *receiver {
	t.Helper()
	r := &receiver{t: t, answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // interrupted
	}
	if got, want := q.Header.Get(channel.SignatureHeader), channel.Signature(hookSecret, body); got != want {
		r.t.Errorf("signature %q, want %q", got, want)
	}
	m, err := parse(q.Header.Get("webhook-id"), body)
	if err != nil {
		r.t.Errorf("%v in %s", err, body)
	}
	status := http.StatusOK
	if r.answer != nil {
		status = r.answer(m)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, m)
	if status == http.StatusOK {
		r.ok = append(r.ok, m)
	}
	w.WriteHeader(status)
}

func parse(id string, body []byte) (message, error) {
	m := message{id: id, body: string(body)}
	if body[0] == '{' {
		var one struct {
			Scan struct {
				ID int64 `json:"id"`
			} `json:"semgrep_scan"`
		}
		err := json.Unmarshal(body, &one)
		m.scan = one.Scan.ID
		return m, err
	}
	var list []struct {
		Finding struct {
			Path string `json:"path"`
			ID   int64  `json:"numeric_id"`
		} `json:"semgrep_finding"`
	}
	err := json.Unmarshal(body, &list)
	for _, item := range list {
		m.findings, m.numeric = append(m.findings, item.Finding.Path), append(m.numeric, item.Finding.ID)
	}
	return m, err
}

// taken returns the messages answered with 200.
func (r *receiver) taken() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]message(nil), r.ok...)
}

// seen returns all messages, including refused ones.
func (r *receiver) seen() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]message(nil), r.all...)
}

// waitFor waits for a number of accepted messages.
func (r *receiver) waitFor(n int) []message {
	r.t.Helper()
	apitest.Eventually(r.t, fmt.Sprintf("%d messages were taken", n), func() bool { return len(r.taken()) >= n })
	return r.taken()
}
