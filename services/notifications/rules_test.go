package notifications_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

const aRule = `{"deploymentId":1,"notificationRule":{"channel":"CHANNEL_WEBHOOK","name":"Security team","is_enabled":true,
	"config":{"url":"https://hooks.acme.test/palisade","secret":"acme-hook-secret-1"},"policy_slugs":["rule-board-block","rule-board-audit","rule-board-block"],
	"use_network_broker":true,"config_error":"not mine to set","id":99,"unknown":1}}`

func TestRuleGolden(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		client := notificationsv1.NewNotificationRulesServiceClient(s.Conn)
		ctx := s.Context(t, s.Token)

		apitest.Golden(t, "rule_create", s.Body(t, s.Token, http.MethodPost, s.actions(""), aRule, 200))
		mail := s.Body(t, s.Token, http.MethodPost, s.actions(""), `{"notificationRule":{"channel":"Email","name":"Security team","config":{"to":"security@acme.test"},"send_scan_completion":true}}`, 200)
		apitest.Golden(t, "rule_create_email", mail) // no mail server: config_error
		slack := s.Body(t, s.jwt, http.MethodPost, s.actions(""), `{"notificationRule":{"channel":"slack_webhook","name":"Chat","is_enabled":false,"config":{"url":"https://hooks.slack.com/services/T0/B0/x"}}}`, 200)
		apitest.Golden(t, "rule_create_slack", slack)

		list := s.Body(t, s.Token, http.MethodPost, s.actions("/list"), "{}", 200)
		apitest.Golden(t, "rule_list", list)
		response, err := client.ListNotificationRules(ctx, &notificationsv1.ListNotificationRulesRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, list)
		apitest.Golden(t, "rule_list_filter", s.Body(t, s.Token, http.MethodPost, s.actions("/list"), `{"filters":{"channel":"CHANNEL_EMAIL"},"options":{"optionalLimit":0,"cursor":null}}`, 200))
		first := s.Body(t, s.Token, http.MethodPost, s.actions("/list"), `{"options":{"optionalLimit":2}}`, 200)
		var paged struct{ Cursor struct{ Token string } }
		decode(t, first, &paged)
		apitest.Golden(t, "rule_list_rest", s.Body(t, s.Token, http.MethodPost, s.actions("/list"), fmt.Sprintf(`{"options":{"optionalLimit":2,"cursor":{"token":%q}}}`, paged.Cursor.Token), 200))
		s.Body(t, s.Token, http.MethodPost, s.actions("/list"), fmt.Sprintf(`{"options":{"cursor":{"token":%q}},"filters":{"channel":"CHANNEL_EMAIL"}}`, paged.Cursor.Token), 400)

		apitest.Golden(t, "rule_replace", s.Body(t, s.Token, http.MethodPut, s.actions("/3"), `{"notificationRule":{"channel":"CHANNEL_SLACK_WEBHOOK","name":"Chat room","is_enabled":true,"policy_slugs":[]}}`, 200))
		apitest.Golden(t, "rule_delete", s.Body(t, s.Token, http.MethodDelete, s.actions("/2"), "", 200))
		apitest.Golden(t, "rule_not_found", s.Body(t, s.Token, http.MethodDelete, s.actions("/2"), "", 404))

		made, err := client.CreateNotificationRule(ctx, &notificationsv1.CreateNotificationRuleRequest{DeploymentId: s.DeploymentID, NotificationRule: &notificationsv1.NotificationRuleInput{
			Channel: "CHANNEL_S3", Name: "Archive", Config: map[string]string{"bucket": "acme-findings", "region": "eu-central-1", "access_key_id": "AKACME", "secret_access_key": "not-a-real-key"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if got := made.GetNotificationRule(); got.GetConfig()["secret_access_key"] != "" || got.GetConfig()["bucket"] != "acme-findings" || got.GetConfigError() != "" || got.GetSendScanCompletion() {
			t.Errorf("got %v", got)
		}
		if _, err := client.DeleteNotificationRule(ctx, &notificationsv1.DeleteNotificationRuleRequest{DeploymentId: s.DeploymentID, NotificationRuleId: made.GetNotificationRule().GetId()}); err != nil {
			t.Fatal(err)
		}
		_, err = client.TestNotificationRule(ctx, &notificationsv1.TestNotificationRuleRequest{DeploymentId: s.DeploymentID, NotificationRuleId: made.GetNotificationRule().GetId()})
		if status.Code(err) != codes.NotFound {
			t.Errorf("test of a deleted rule: %v", err)
		}
	})
}

func TestRuleBadInput(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		rule := func(fields string) string { return `{"notificationRule":{` + fields + `}}` }
		const to = `"config":{"to":"a@acme.test"}`
		for name, c := range map[string]struct{ body, want string }{
			"no rule":          {`{}`, "notificationRule"},
			"no name":          {rule(`"channel":"email",` + to), "notificationRule.name"},
			"empty name":       {rule(`"channel":"email","name":"",` + to), "notificationRule.name"},
			"long name":        {rule(`"channel":"email","name":"` + strings.Repeat("ü", 256) + `",` + to), "255"},
			"no channel":       {rule(`"name":"x",` + to), "notificationRule.channel"},
			"unknown channel":  {rule(`"channel":"pager","name":"x"`), `CHANNEL_EMAIL, CHANNEL_S3, CHANNEL_SLACK_APP, CHANNEL_SLACK_WEBHOOK, CHANNEL_WEBHOOK, got \"pager\"`},
			"unknown key":      {rule(`"channel":"email","name":"x","config":{"to":"a@acme.test","cc":"b@acme.test"}`), `the key \"cc\", which CHANNEL_EMAIL does not know; its keys are to`},
			"unknown empty":    {rule(`"channel":"email","name":"x","config":{"to":"a@acme.test","cc":""}`), `the key \"cc\"`},
			"no address":       {rule(`"channel":"email","name":"x","config":{"to":"nobody"}`), "config.to must be e-mail addresses"},
			"no config":        {rule(`"channel":"webhook","name":"x"`), "config.webhook_id or config.url is required"},
			"plain http":       {rule(`"channel":"webhook","name":"x","config":{"url":"http://hooks.acme.test/"}`), "must be an https:// URL"},
			"no URL":           {rule(`"channel":"slack_webhook","name":"x","config":{"url":"hooks"}`), "config.url must be an https:// URL"},
			"private":          {rule(`"channel":"webhook","name":"x","config":{"url":"https://10.0.0.1/"}`), "config.url"},
			"short secret":     {rule(`"channel":"webhook","name":"x","config":{"url":"https://hooks.acme.test/","secret":"fourteen-chars"}`), "15 to 255 characters, got 14"},
			"unknown webhook":  {rule(`"channel":"webhook","name":"x","config":{"webhook_id":"77"}`), "config.webhook_id must be the id of a notification webhook of the deployment, got 77"},
			"bad webhook":      {rule(`"channel":"webhook","name":"x","config":{"webhook_id":"-1"}`), "config.webhook_id must be the id"},
			"config a list":    {rule(`"channel":"email","name":"x","config":[]`), "config"},
			"unknown slug":     {rule(`"channel":"email","name":"x","policy_slugs":["rule-board-block","none-such"],` + to), "policy_slugs[1] must be one of rule-board-audit, rule-board-block, rule-board-pr-comments, got"},
			"empty slug":       {rule(`"channel":"email","name":"x","policy_slugs":[""],` + to), "policy_slugs"},
			"rule not object":  {`{"notificationRule":7}`, "notificationRule"},
			"value not string": {rule(`"channel":"email","name":"x","config":{"to":{}}`), "config"},
		} {
			t.Run(name, func(t *testing.T) {
				if got := s.Body(t, s.Token, http.MethodPost, s.actions(""), c.body, 400); !strings.Contains(got, c.want) {
					t.Errorf("%s does not say %s", got, c.want)
				}
			})
		}
		for body, want := range map[string]string{
			`{"filters":{"channel":"PAGER"}}`:         "CHANNEL_WEBHOOK",
			`{"options":{"optionalLimit":1001}}`:      "1000",
			`{"options":{"optionalLimit":-1}}`:        "optionalLimit",
			`{"options":{"cursor":{"token":"AAAA"}}}`: "options.cursor.token",
		} {
			if got := s.Body(t, s.Token, http.MethodPost, s.actions("/list"), body, 400); !strings.Contains(got, want) {
				t.Errorf("%s: %s does not say %s", body, got, want)
			}
		}
		if n := s.Store.Reader.NotificationRule.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d rules were stored", n)
		}
		for _, id := range []string{"0", "77", "9223372036854775807"} {
			s.Body(t, s.Token, http.MethodPost, s.actions("/"+id+"/test"), "{}", 404)
			s.Body(t, s.Token, http.MethodPut, s.actions("/"+id), aRule, 404)
		}
		s.Body(t, s.Token, http.MethodDelete, s.actions("/abc"), "", 404)
	})
}

// TestRuleKeepsStoredSlugs: a rule that an earlier version stored with an unknown slug can be replaced as it was read.
func TestRuleKeepsStoredSlugs(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		id := s.rule(t, "old", "https://hooks.acme.test/", "")
		if err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.NotificationRule.UpdateOneID(id).SetPolicySlugs([]string{"none-such", "rule-board-block"}).Exec(ctx)
		}); err != nil {
			t.Fatal(err)
		}
		client := notificationsv1.NewNotificationRulesServiceClient(s.Conn)
		replace := func(slugs string, want int) string {
			t.Helper()
			body := `{"notificationRule":{"channel":"webhook","name":"old","config":{"url":"https://hooks.acme.test/"},"policy_slugs":[` + slugs + `]}}`
			return s.Body(t, s.Token, http.MethodPut, s.actions(fmt.Sprintf("/%d", id)), body, want)
		}
		if got := replace(`"none-such","other"`, 400); !strings.Contains(got, "policy_slugs[1] must be one of") {
			t.Error(got)
		}
		list, err := client.ListNotificationRules(s.Context(t, s.Token), &notificationsv1.ListNotificationRulesRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		read := list.GetNotificationRules()[0]
		kept, err := client.ReplaceNotificationRule(s.Context(t, s.Token), &notificationsv1.ReplaceNotificationRuleRequest{
			DeploymentId: s.DeploymentID, NotificationRuleId: id, NotificationRule: &notificationsv1.NotificationRuleInput{
				Channel: read.GetChannel(), Name: read.GetName(), Config: read.GetConfig(), PolicySlugs: read.GetPolicySlugs(),
			},
		})
		if err != nil || !slices.Equal(kept.GetNotificationRule().GetPolicySlugs(), []string{"none-such", "rule-board-block"}) {
			t.Errorf("%v, %v", kept, err)
		}
		replace(`"rule-board-block"`, 200)
		replace(`"none-such"`, 400) // gone
	})
}

// Credentials are never returned, stay if a replacement omits them, and are removed if it says so.
func TestRuleSecrets(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		to := newReceiver(t, nil)
		id := s.rule(t, "hook", to.URL, "")
		path := s.actions(fmt.Sprintf("/%d", id))
		replace := func(config string) string {
			return fmt.Sprintf(`{"notificationRule":{"name":"hook","channel":"webhook","is_enabled":true,"config":{"url":%q%s}}}`, to.URL, config)
		}
		test := func() string { return s.Body(t, s.Token, http.MethodPost, path+"/test", "{}", 200) }

		apitest.Golden(t, "rule_test_ok", test()) // the receiver verifies the signature
		s.Body(t, s.Token, http.MethodPut, path, replace(""), 200)
		test()
		if got := to.taken(); len(got) != 2 || len(got[0].findings) != 1 || got[0].id == got[1].id {
			t.Errorf("samples %+v", got)
		}
		row := s.Store.Reader.NotificationRule.Query().OnlyX(s.System(t))
		if strings.Contains(fmt.Sprint(row.Config, string(row.Secrets)), hookSecret) || len(row.Secrets) == 0 {
			t.Error("the secret is not sealed")
		}
		s.Body(t, s.Token, http.MethodPut, path, replace(`,"secret":""`), 200)
		if row = s.Store.Reader.NotificationRule.Query().OnlyX(s.System(t)); len(row.Secrets) != 0 {
			t.Error("the secret was not removed")
		}
		// Another channel has other credentials.
		s.Body(t, s.Token, http.MethodPut, path, replace(`,"secret":"acme-hook-secret-2"`), 200)
		s.Body(t, s.Token, http.MethodPut, path, `{"notificationRule":{"name":"hook","channel":"slack_webhook"}}`, 400)
		s.Body(t, s.Token, http.MethodPut, path, `{"notificationRule":{"name":"hook","channel":"email","config":{"to":"a@acme.test"}}}`, 200)
		if row = s.Store.Reader.NotificationRule.Query().OnlyX(s.System(t)); len(row.Secrets) != 0 {
			t.Error("the secret of another channel was kept")
		}
		for _, entry := range s.Store.Reader.AuditEntry.Query().AllX(s.System(t)) {
			if text := fmt.Sprint(entry.Request, entry.Changes); strings.Contains(text, "acme-hook-secret") {
				t.Errorf("the audit trail holds a secret: %s", text)
			}
		}
	})
}

// A failed delivery is a normal answer, and reveals nothing about the network.
func TestRuleTestFails(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		broken := newReceiver(t, func(message) int { return http.StatusTeapot })
		id := s.rule(t, "broken", broken.URL, "")
		apitest.Golden(t, "rule_test_refused", s.Body(t, s.Token, http.MethodPost, s.actions(fmt.Sprintf("/%d/test", id)), "{}", 200))
		broken.Close()
		apitest.Golden(t, "rule_test_unreachable", s.Body(t, s.Token, http.MethodPost, s.actions(fmt.Sprintf("/%d/test", id)), "{}", 200))
		mail := s.Body(t, s.Token, http.MethodPost, s.actions(""), `{"notificationRule":{"channel":"email","name":"m","config":{"to":"a@acme.test"}}}`, 200)
		if !strings.Contains(mail, `"config_error":"`) {
			t.Fatal(mail)
		}
		apitest.Golden(t, "rule_test_no_mail", s.Body(t, s.Token, http.MethodPost, s.actions(fmt.Sprintf("/%d/test", id+1)), "{}", 200))
	})
}

// The path sets the deployment; a body cannot address another one.
func TestRulesOfOthers(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		other := s.AddTenant(t, "globex")
		mine := s.rule(t, "mine", "https://hooks.acme.test/", "")
		theirs := fmt.Sprintf("/api/agent/deployments/%d/actions", other.DeploymentID)
		body := strings.Replace(aRule, `"deploymentId":1`, fmt.Sprintf(`"deploymentId":%d`, s.DeploymentID), 1)
		s.Body(t, other.Token, http.MethodPost, theirs, body, 200)
		s.Body(t, other.Token, http.MethodPost, s.actions(""), strings.Replace(body, fmt.Sprint(s.DeploymentID), fmt.Sprint(other.DeploymentID), 1), 404)
		if got := s.Body(t, s.Token, http.MethodPost, s.actions("/list"), "{}", 200); strings.Contains(got, "Security team") {
			t.Errorf("a rule came from another deployment: %s", got)
		}
		list := s.Body(t, other.Token, http.MethodPost, theirs+"/list", fmt.Sprintf(`{"deploymentId":"%d"}`, s.DeploymentID), 200)
		if strings.Contains(list, `"mine"`) || !strings.Contains(list, "Security team") {
			t.Errorf("they see %s", list)
		}
		absent := s.Body(t, other.Token, http.MethodDelete, theirs+"/77", "", 404)
		for _, request := range [][2]string{{http.MethodDelete, ""}, {http.MethodPut, ""}, {http.MethodPost, "/test"}} {
			got := s.Body(t, other.Token, request[0], fmt.Sprintf("%s/%d%s", theirs, mine, request[1]), body, 404)
			if want := strings.ReplaceAll(absent, "77", fmt.Sprint(mine)); got != want {
				t.Errorf("%s: %s, want %s", request[0], got, want)
			}
		}
		// A webhook of another deployment is treated as missing.
		hook := s.Body(t, s.jwt, http.MethodPost, s.webhooks(""), `{"name":"ours","url":"https://hooks.acme.test/"}`, 200)
		var made struct{ Webhook struct{ ID string } }
		decode(t, hook, &made)
		got := s.Body(t, other.Token, http.MethodPost, theirs, fmt.Sprintf(`{"notificationRule":{"channel":"webhook","name":"x","config":{"webhook_id":%q}}}`, made.Webhook.ID), 400)
		if !strings.Contains(got, "must be the id of a notification webhook of the deployment") {
			t.Error(got)
		}
		member := s.AddUser(t, s.Tenant, "member@acme.test", access.RoleMember)
		s.Body(t, member, http.MethodPost, s.actions(""), aRule, 403)
		s.Body(t, member, http.MethodPost, s.actions("/list"), "{}", 200)
		s.Body(t, member, http.MethodGet, s.deliveries(""), "", 403)
	})
}

// TestRuleIsEnabledByDefault: a rule that does not say whether it sends does send.
func TestRuleIsEnabledByDefault(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		rule := func(more string) string {
			return `{"notificationRule":{"channel":"webhook","name":"hook","config":{"url":"https://hooks.acme.test/x"}` + more + `}}`
		}
		path, method := s.actions(""), http.MethodPost
		for range 2 { // create, then replace
			for _, step := range []struct {
				more string
				want bool
			}{{"", true}, {`,"is_enabled":false`, false}, {`,"is_enabled":null`, true}, {`,"is_enabled":true`, true}} {
				if body := s.Body(t, s.Token, method, path, rule(step.more), 200); !strings.Contains(body, fmt.Sprintf(`"is_enabled":%t`, step.want)) {
					t.Errorf("%s%s: %s", method, step.more, body)
				}
			}
			path, method = s.actions("/1"), http.MethodPut
		}
		client, off := notificationsv1.NewNotificationRulesServiceClient(s.Conn), false
		for want, given := range map[bool]*bool{true: nil, false: &off} {
			answer, err := client.CreateNotificationRule(s.Context(t, s.Token), &notificationsv1.CreateNotificationRuleRequest{
				DeploymentId: s.DeploymentID, NotificationRule: &notificationsv1.NotificationRuleInput{
					Channel: "webhook", Name: "grpc", Config: map[string]string{"url": "https://hooks.acme.test/x"}, IsEnabled: given,
				},
			})
			if err != nil || answer.GetNotificationRule().GetIsEnabled() != want {
				t.Errorf("%v, %v, want %t", answer, err, want)
			}
		}
	})
}
