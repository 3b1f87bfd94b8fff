package notifications_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

const (
	slackSigning = "8f742231b10e8888abcd99yyyzzz85a5"
	slackSecret  = "slack-client-secret-1"
	botToken     = "xoxb-test-bot-token"
)

// posted is a message that the fake got.
type posted struct {
	Method, Channel, Thread, User, Text, Blocks, Token string
}

// fakeSlack speaks the Web API of Slack (docs.slack.dev/reference/methods).
type fakeSlack struct {
	*httptest.Server

	mu       sync.Mutex
	messages []posted
	revoked  []string
	users    map[string]string // JSON of users by id
	refusal  map[string]string // error by method
	limited  int               // answers with 429 before the next message is taken
	team     string            // id of the workspace
	scope    string            // that the workspace grants
	extra    string            // more members of the answer of oauth.v2.access
}

func newSlack(t testing.TB) *fakeSlack {
	t.Helper()
	f := &fakeSlack{
		team: "T0ACME", users: map[string]string{}, refusal: map[string]string{},
		scope: "channels:read,chat:write,chat:write.public,groups:read,users:read,users:read.email",
	}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeSlack) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	_ = r.ParseForm()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "" {
		token = r.Form.Get("token")
	}
	answer := func(format string, args ...any) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = fmt.Fprintf(w, format, args...)
	}
	switch refusal := f.refusal[method]; {
	case refusal != "":
		answer(`{"ok":false,"error":%q}`, refusal)
		return
	case method == "oauth.v2.access":
		f.grant(r, answer)
		return
	case token != botToken || slices.Contains(f.revoked, token):
		answer(`{"ok":false,"error":"invalid_auth"}`)
		return
	}
	switch method {
	case "auth.test":
		answer(`{"ok":true,"url":"https://acme.slack.test/","team":"Acme","team_id":%q,"user":"palisade","user_id":"U0BOT","bot_id":"B0BOT"}`, f.team)
	case "auth.revoke":
		f.revoked = append(f.revoked, r.Form.Get("token"))
		answer(`{"ok":true,"revoked":true}`)
	case "conversations.list":
		if r.Form.Get("cursor") == "" {
			answer(`{"ok":true,"channels":[{"id":"C0SECURITY","name":"security","is_channel":true,"is_member":true}],"response_metadata":{"next_cursor":"page-2"}}`)
			return
		}
		answer(`{"ok":true,"channels":[{"id":"C0PRIVATE1","name":"incidents","is_private":true}],"response_metadata":{"next_cursor":""}}`)
	case "users.info":
		if user := f.users[r.Form.Get("user")]; user != "" {
			answer(`{"ok":true,"user":%s}`, user)
			return
		}
		answer(`{"ok":false,"error":"user_not_found"}`)
	case "chat.postMessage", "chat.postEphemeral":
		if f.limited > 0 {
			f.limited--
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		f.messages = append(f.messages, posted{
			method, r.Form.Get("channel"), r.Form.Get("thread_ts"), r.Form.Get("user"), r.Form.Get("text"), r.Form.Get("blocks"), token,
		})
		answer(`{"ok":true,"channel":%q,"ts":"1770000000.%06d"}`, r.Form.Get("channel"), len(f.messages))
	default:
		answer(`{"ok":false,"error":"unknown_method"}`)
	}
}

func (f *fakeSlack) grant(r *http.Request, answer func(format string, args ...any)) {
	switch {
	case r.Form.Get("client_id") != "111.222" || r.Form.Get("client_secret") != slackSecret:
		answer(`{"ok":false,"error":"bad_client_secret"}`)
	case r.Form.Get("code") != "code-1":
		answer(`{"ok":false,"error":"invalid_code"}`)
	default:
		answer(`{"ok":true,"access_token":%q,"token_type":"bot","scope":%q,"bot_user_id":"U0BOT","app_id":"A0PALISADE",
			"team":{"id":%q,"name":"Acme"},"enterprise":null,"authed_user":{"id":"U0ADMIN"}%s}`, botToken, f.scope, f.team, f.extra)
	}
}

func (f *fakeSlack) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeSlack) got() []posted {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.messages)
}

// waitFor waits for a number of messages.
func (f *fakeSlack) waitFor(t testing.TB, n int) []posted {
	t.Helper()
	apitest.Eventually(t, fmt.Sprintf("Slack has %d messages", n), func() bool { return len(f.got()) >= n })
	return f.got()
}

// eachSlack runs a test on both databases, on a server with an app at a fake Slack.
func eachSlack(t *testing.T, test func(t *testing.T, s caller, slack *fakeSlack)) {
	t.Helper()
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		slack := newSlack(t)
		server := apitest.Start(t, func(c *config.Config) {
			on(c)
			c.EgressAllow, c.SlackURL = "127.0.0.1", slack.URL
			c.SlackClientID, c.SlackClientSecret, c.SlackSigningSecret = "111.222", slackSecret, slackSigning
		})
		test(t, caller{server, server.AddUser(t, server.Tenant, "admin@acme.test", access.RoleAdmin)}, slack)
	})
}

func (c caller) chat(more string) string {
	return fmt.Sprintf("/api/agent/deployments/%d/chat-app%s", c.DeploymentID, more)
}

// state begins an installation, and returns its state.
func (c caller) state(t testing.TB, as string) string {
	t.Helper()
	var link struct {
		URL string `json:"redirect_url"`
	}
	decode(t, c.Body(t, as, http.MethodGet, c.chat("/install"), "", 200), &link)
	u, err := url.Parse(link.URL)
	if err != nil || u.Path != "/oauth/v2/authorize" || u.Query().Get("client_id") != "111.222" || !strings.HasSuffix(u.Query().Get("redirect_uri"), "/console/chat-app") {
		t.Fatalf("link %q: %v", link.URL, err)
	}
	return u.Query().Get("state")
}

func (c caller) install(t testing.TB) string {
	t.Helper()
	return c.Body(t, c.jwt, http.MethodPost, c.chat("/oauth/callback"), fmt.Sprintf(`{"state":%q,"code":"code-1"}`, c.state(t, c.jwt)), 200)
}

// chatRule creates a rule that posts to a channel.
func (c caller) chatRule(t testing.TB, more string) {
	t.Helper()
	c.Body(t, c.Token, http.MethodPost, c.actions(""),
		`{"notificationRule":{"name":"chat","channel":"SLACK_APP","config":{"channel_id":"C0SECURITY","channel_name":"security"}`+more+`}}`, 200)
}

// press sends a choice as Slack does, signed at a time.
func (c caller) press(t testing.TB, at time.Time, value, user, trigger string, want int) {
	t.Helper()
	payload, err := json.Marshal(map[string]any{
		"type": "block_actions", "api_app_id": "A0PALISADE", "team": map[string]string{"id": "T0ACME"}, "user": map[string]string{"id": user},
		"channel": map[string]string{"id": "C0SECURITY"}, "container": map[string]string{"type": "message", "message_ts": "1770000000.000001"},
		"trigger_id": trigger,
		"actions": []any{map[string]any{
			"type": "overflow", "action_id": "palisade-triage", "block_id": "b", "selected_option": map[string]any{"value": value},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.signed(t, at, slackSigning, url.Values{"payload": {string(payload)}}.Encode(), want)
}

func (c caller) signed(t testing.TB, at time.Time, secret, body string, want int) {
	t.Helper()
	stamp := fmt.Sprint(at.Unix())
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	c.Body(t, "", http.MethodPost, "/api/chat-app/interactions", body, want, "Content-Type", "application/x-www-form-urlencoded",
		"X-Slack-Request-Timestamp", stamp, "X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
}

// person makes a person of the workspace.
func (f *fakeSlack) person(id, email, more string) {
	f.set(func() {
		f.users[id] = fmt.Sprintf(`{"id":%q,"team_id":"T0ACME","is_email_confirmed":true,"profile":{"email":%q}%s}`, id, email, more)
	})
}
