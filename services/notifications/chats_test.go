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

	"github.com/palisade/palisade/services/internal/apitest"
)

// chatHook is an incoming webhook of any chat.
type chatHook struct {
	*httptest.Server

	mu     sync.Mutex
	bodies []string
}

func newChatHook(t testing.TB, status int) *chatHook {
	c := &chatHook{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil {
			c.bodies = append(c.bodies, string(body))
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *chatHook) taken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.bodies...)
}

// Each chat gets one message about a scan, in its own form. The URL is a secret; the template is not.
func TestChatsGetScans(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		const mine = `{"msg":"{{title}}","where":"{{link}}","kind":"{{kind}}"}`
		hooks := map[string]*chatHook{}
		for format, status := range map[string]int{"teams": 202, "google-chat": 200, "discord": 204, "mattermost": 200, "custom": 200} {
			hooks[format] = newChatHook(t, status)
			more := ""
			if format == "custom" {
				more = fmt.Sprintf(`,"template":%q`, mine)
			}
			answer := s.Body(t, s.Token, http.MethodPost, s.actions(""), fmt.Sprintf(`{"notificationRule":{"name":%q,"channel":"chat_webhook","config":{"url":%q,"format":%q%s}}}`,
				format, hooks[format].URL+"/hook", format, more), 200)
			var made struct {
				Rule struct {
					ID          int64
					Channel     string
					Config      map[string]string
					ConfigError string `json:"config_error"`
				} `json:"notification_rule"`
			}
			decode(t, answer, &made)
			if r := made.Rule; r.Channel != "CHANNEL_CHAT_WEBHOOK" || r.ConfigError != "" || r.Config["url"] != "" || r.Config["format"] != format || (r.Config["template"] == mine) != (format == "custom") {
				t.Errorf("got %s", answer)
			}
			if got := s.Body(t, s.Token, http.MethodPost, s.actions(fmt.Sprintf("/%d/test", made.Rule.ID)), "", 200); !strings.Contains(got, `"success":true`) {
				t.Errorf("%s: %s", format, got)
			}
		}
		s.Upload(t, "acme/web", "main", mixed(240, 0, 1))
		s.waitState(t, "DELIVERED", len(hooks))
		for format, hook := range hooks {
			got := hook.taken()
			if len(got) != 2 || !json.Valid([]byte(got[1])) || !strings.Contains(got[1], "241 new findings in acme/web") || !strings.Contains(got[1], "/console/acme/triage?") {
				t.Errorf("%s got %q", format, got)
			}
		}
	})
}

// A template that is wrong is refused with its place, and a webhook that is gone ends the delivery.
func TestChatFailures(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		wrong := `{"notificationRule":{"name":"x","channel":"chat_webhook","config":{"url":"https://chat.acme.test/x","format":"custom","template":"{\n{{range .Text}}{{end}}}"}}}`
		if got := s.Body(t, s.Token, http.MethodPost, s.actions(""), wrong, 400); !strings.Contains(got, "config.template is not usable: it must be JSON") {
			t.Errorf("got %s", got)
		}
		gone := newChatHook(t, http.StatusNotFound)
		s.Body(t, s.Token, http.MethodPost, s.actions(""), fmt.Sprintf(`{"notificationRule":{"name":"gone","channel":"CHANNEL_CHAT_WEBHOOK","config":{"url":%q,"format":"discord"}}}`, gone.URL), 200)
		s.Upload(t, "acme/web", "main", report("a"))
		apitest.Eventually(t, "the message is given up", func() bool {
			list := s.ledger(t, "")
			return len(list) == 1 && list[0].State == "DELIVERY_STATE_ABANDONED" && strings.Contains(list[0].LastError, "Discord answered HTTP 404 Not Found: the incoming webhook no longer exists")
		})
		if got := s.Body(t, s.jwt, http.MethodGet, s.inApp(""), "", 200); !strings.Contains(got, `Messages of the notification rule \"gone\" were given up`) {
			t.Errorf("in the app: %s", got)
		}
	})
}
