package notifications_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

func TestWebhookGolden(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		client := notificationsv1.NewNotificationWebhooksServiceClient(s.Conn)
		ctx := s.Context(t, s.jwt)
		apitest.Golden(t, "webhook_create", s.Body(t, s.jwt, http.MethodPost, s.webhooks(""),
			`{"deploymentId":"1","name":"SIEM","url":"https://siem.acme.test/in","useNetworkBroker":true,"webhookSecret":"acme-hook-secret-1"}`, 200))
		apitest.Golden(t, "webhook_create_unsigned", s.Body(t, s.jwt, http.MethodPost, s.webhooks(""), `{"name":"Chat","url":"https://chat.acme.test/in","webhookSecret":""}`, 200))
		list := s.Body(t, s.jwt, http.MethodGet, s.webhooks(""), "", 200)
		apitest.Golden(t, "webhook_list", list)
		response, err := client.ListNotificationWebhooks(ctx, &notificationsv1.ListNotificationWebhooksRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, list)
		apitest.Golden(t, "webhook_get", s.Body(t, s.jwt, http.MethodGet, s.webhooks("/1"), "", 200))
		apitest.Golden(t, "webhook_update", s.Body(t, s.jwt, http.MethodPut, s.webhooks("/1"), `{"name":"SIEM 2","url":"https://siem.acme.test/in2"}`, 200))
		apitest.Golden(t, "webhook_remove_secret", s.Body(t, s.jwt, http.MethodPut, s.webhooks("/1"), `{"name":"SIEM 2","url":"https://siem.acme.test/in2","removeSecret":true}`, 200))
		if body := s.Body(t, s.jwt, http.MethodDelete, s.webhooks("/1"), "", 204); body != "" {
			t.Errorf("body of 204: %q", body)
		}
		apitest.Golden(t, "webhook_not_found", s.Body(t, s.jwt, http.MethodGet, s.webhooks("/1"), "", 404))
		if _, err := client.DeleteNotificationWebhook(ctx, &notificationsv1.DeleteNotificationWebhookRequest{DeploymentId: s.DeploymentID, WebhookId: 2}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWebhookBadInput(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.Body(t, s.jwt, http.MethodPost, s.webhooks(""), `{"name":"taken","url":"https://hooks.acme.test/"}`, 200)
		s.Body(t, s.jwt, http.MethodPost, s.webhooks(""), `{"name":"mine","url":"https://hooks.acme.test/"}`, 200)
		for name, c := range map[string]struct {
			fields string
			status int
			want   string
		}{
			"no name":      {`"url":"https://hooks.acme.test/"`, 400, "name"},
			"long name":    {`"name":"` + strings.Repeat("ü", 256) + `","url":"https://hooks.acme.test/"`, 400, "255"},
			"taken":        {`"name":"taken","url":"https://hooks.acme.test/"`, 409, `a notification webhook with the name \"taken\" exists`},
			"no URL":       {`"name":"x"`, 400, "url"},
			"plain http":   {`"name":"x","url":"http://hooks.acme.test/"`, 400, "url must be an https:// URL"},
			"not a URL":    {`"name":"x","url":"hooks.acme.test"`, 400, "url must be an https:// URL"},
			"password":     {`"name":"x","url":"https://u:p@hooks.acme.test/"`, 400, "without user and password"},
			"metadata":     {`"name":"x","url":"https://169.254.169.254/latest"`, 400, "url"},
			"short secret": {`"name":"x","url":"https://hooks.acme.test/","webhookSecret":"fourteen-chars"`, 400, "webhookSecret"},
		} {
			for method, path := range map[string]string{http.MethodPost: "", http.MethodPut: "/2"} {
				if got := s.Body(t, s.jwt, method, s.webhooks(path), "{"+c.fields+"}", c.status); !strings.Contains(got, c.want) || strings.Contains(got, "fourteen") {
					t.Errorf("%s %s: %s does not say %s", method, name, got, c.want)
				}
			}
		}
		s.Body(t, s.jwt, http.MethodPut, s.webhooks("/2"), `{"name":"x","url":"https://hooks.acme.test/","removeSecret":true,"webhookSecret":"acme-hook-secret-1"}`, 400)
		s.Body(t, s.jwt, http.MethodPut, s.webhooks("/77"), `{"name":"x","url":"https://hooks.acme.test/"}`, 404)
		s.Body(t, s.jwt, http.MethodPost, s.webhooks("/77/test"), `{}`, 404)
		s.Body(t, s.Token, http.MethodGet, s.webhooks(""), "", 403) // user JWT only
		member := s.AddUser(t, s.Tenant, "member@acme.test", access.RoleMember)
		s.Body(t, member, http.MethodGet, s.webhooks(""), "", 403)
		if n := s.Store.Reader.NotificationWebhook.Query().CountX(s.System(t)); n != 2 {
			t.Errorf("%d webhooks are stored, want 2", n)
		}
	})
}

// A rule uses the webhook that it names, with the webhook's secret, and reports an error after its deletion.
func TestRuleNamesWebhook(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		to := newReceiver(t, nil)
		s.Body(t, s.jwt, http.MethodPost, s.webhooks(""), fmt.Sprintf(`{"name":"hook","url":%q,"webhookSecret":%q}`, to.URL, hookSecret), 200)
		apitest.Golden(t, "webhook_test_ok", s.Body(t, s.jwt, http.MethodPost, s.webhooks("/1/test"), "{}", 200))
		s.Body(t, s.Token, http.MethodPost, s.actions(""), `{"notificationRule":{"channel":"webhook","name":"hook","is_enabled":true,"config":{"webhook_id":"1"}}}`, 200)
		s.Upload(t, "acme/web", "main", report("a"))
		to.waitFor(3)

		other := s.AddTenant(t, "globex")
		admin := s.AddUser(t, other, "boss@globex.test", access.RoleAdmin)
		theirs := fmt.Sprintf("/api/notification_webhooks/deployments/%d/webhooks", other.DeploymentID)
		for _, request := range [][2]string{{http.MethodGet, ""}, {http.MethodDelete, ""}, {http.MethodPut, ""}, {http.MethodPost, "/test"}} {
			s.Body(t, admin, request[0], theirs+"/1"+request[1], `{"deploymentId":"1","name":"x","url":"https://hooks.acme.test/"}`, 404)
		}
		s.Body(t, admin, http.MethodGet, s.webhooks("/1"), "", 404)

		s.Body(t, s.jwt, http.MethodDelete, s.webhooks("/1"), "", 204)
		got := s.Body(t, s.Token, http.MethodPost, s.actions("/list"), "{}", 200)
		if !strings.Contains(got, `"config_error":"the notification webhook 1 that config.webhook_id names does not exist"`) {
			t.Error(got)
		}
		to.Close()
	})
}
