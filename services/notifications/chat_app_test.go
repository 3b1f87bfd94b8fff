package notifications_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/finding"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

func TestChatAppInstallation(t *testing.T) {
	eachSlack(t, func(t *testing.T, s caller, slack *fakeSlack) {
		if body := s.Body(t, s.jwt, http.MethodGet, s.chat("/installations"), "", 404); !strings.Contains(body, "not installed") {
			t.Error(body)
		}
		want := fmt.Sprintf(`{"deployment_id":%d,"app_id":"A0PALISADE","enterprise_id":"","enterprise_name":"","enterprise_url":"https://acme.slack.test/","team_id":"T0ACME","team_name":"Acme"}`, s.DeploymentID)
		if got := s.install(t); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		want = fmt.Sprintf(`{"deployment_id":%d,"client_id":"111.222","app_id":"A0PALISADE","enterprise_name":"","enterprise_url":"https://acme.slack.test/","team_name":"Acme","update_available":false,"archived":false}`, s.DeploymentID)
		got := s.Body(t, s.jwt, http.MethodGet, s.chat("/installations"), "", 200)
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		response, err := notificationsv1.NewChatAppServiceClient(s.Conn).GetChatAppInstallation(s.Context(t, s.jwt), &notificationsv1.GetChatAppInstallationRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, got)

		if got := s.Body(t, s.jwt, http.MethodGet, s.chat("/available_channels"), "", 200); got != `{"channels":[{"id":"C0SECURITY","name":"security","private":false,"member":true}],"cursor":"page-2"}` {
			t.Error(got)
		}
		if got := s.Body(t, s.jwt, http.MethodGet, s.chat("/available_channels?cursor=page-2"), "", 200); got != `{"channels":[{"id":"C0PRIVATE1","name":"incidents","private":true,"member":false}],"cursor":""}` {
			t.Error(got)
		}
		slack.set(func() { slack.scope = "chat:write" })
		s.install(t)
		if got := s.Body(t, s.jwt, http.MethodGet, s.chat("/installations"), "", 200); !strings.Contains(got, `"update_available":true`) {
			t.Error(got)
		}

		want = fmt.Sprintf(`{"deployment_id":%d,"client_id":"111.222","app_id":"A0PALISADE","team_name":"Acme"}`, s.DeploymentID)
		if got := s.Body(t, s.jwt, http.MethodDelete, s.chat("/installations"), "", 200); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if len(slack.revoked) != 1 || slack.revoked[0] != botToken {
			t.Errorf("revoked %q", slack.revoked)
		}
		s.Body(t, s.jwt, http.MethodDelete, s.chat("/installations"), "", 404)
	})
}

func TestChatAppInstallationRefused(t *testing.T) {
	eachSlack(t, func(t *testing.T, s caller, slack *fakeSlack) {
		callback := func(as, state, code string, want int) string {
			t.Helper()
			return s.Body(t, as, http.MethodPost, s.chat("/oauth/callback"), fmt.Sprintf(`{"state":%q,"code":%q}`, state, code), want)
		}
		second := s.AddUser(t, s.Tenant, "second@acme.test", access.RoleAdmin)
		member := s.AddUser(t, s.Tenant, "member@acme.test", access.RoleMember)
		other := s.AddTenant(t, "other")
		otherAdmin := s.AddUser(t, other, "boss@other.test", access.RoleAdmin)
		state := s.state(t, s.jwt)
		for name, c := range map[string]struct {
			as, state, code string
			status          int
			says            string
		}{
			"no state":              {s.jwt, "", "code-1", 400, "state"},
			"forged state":          {s.jwt, state + "x", "code-1", 400, "state is not of an installation that you began"},
			"state of another":      {second, state, "code-1", 400, "state is not of an installation that you began"},
			"no code":               {s.jwt, state, "", 400, "code"},
			"unknown code":          {s.jwt, state, "code-2", 400, "Slack does not know the code"},
			"a member":              {member, state, "code-1", 403, ""},
			"another tenant":        {otherAdmin, state, "code-1", 404, ""},
			"an API token":          {s.Token, state, "code-1", 403, ""},
			"without a credential":  {"", state, "code-1", 401, ""},
			"rotating tokens":       {s.jwt, "rotating", "code-1", 400, "token rotation is on"},
			"an organization":       {s.jwt, "org", "code-1", 400, "install it in one workspace"},
			"Slack does not answer": {s.jwt, "down", "code-1", 503, "Slack"},
		} {
			use := c.state
			slack.set(func() {
				slack.extra, slack.refusal["oauth.v2.access"] = "", ""
				switch c.state {
				case "rotating":
					slack.extra, use = `,"expires_in":43200,"refresh_token":"xoxe-1"`, state
				case "org":
					slack.extra, use = `,"is_enterprise_install":true`, state
				case "down":
					use = state
				}
			})
			if c.state == "down" {
				continue // last, below
			}
			if body := callback(c.as, use, c.code, c.status); !strings.Contains(body, c.says) || strings.Contains(body, slackSecret) {
				t.Errorf("%s: %s", name, body)
			}
		}
		if s.Store.Reader.ChatInstallation.Query().CountX(s.System(t)) != 0 {
			t.Error("installed")
		}
		slack.Close()
		if body := callback(s.jwt, state, "code-1", 503); strings.Contains(body, "127.0.0.1") {
			t.Error(body)
		}
	})
}

func TestChatAppWithoutApp(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		for _, path := range []string{"/install", "/installations"} {
			if body := s.Try(t, s.jwt, http.MethodGet, s.chat(path), "").Body; !strings.Contains(body, "slack-client-id") {
				t.Errorf("%s: %s", path, body)
			}
		}
		made := s.Body(t, s.Token, http.MethodPost, s.actions(""), `{"notificationRule":{"name":"chat","channel":"CHANNEL_SLACK_APP","config":{"channel_id":"C0SECURITY"}}}`, 200)
		if !strings.Contains(made, `"config_error":"this server has no Slack app`) {
			t.Error(made)
		}
		s.signed(t, time.Now(), "", "payload=x", 404)
		if body := s.Body(t, s.Token, http.MethodPost, s.actions(""), `{"notificationRule":{"name":"chat","channel":"CHANNEL_SLACK_APP","config":{"channel_id":"#security"}}}`, 400); !strings.Contains(body, "config.channel_id must be the id of a channel") {
			t.Error(body)
		}
	})
}

func TestChatAppMessages(t *testing.T) {
	eachSlack(t, func(t *testing.T, s caller, slack *fakeSlack) {
		s.install(t)
		s.chatRule(t, `,"policy_slugs":["rule-board-audit"]`)
		slack.set(func() { slack.limited = 1 })
		s.Upload(t, "acme/web", "main", report("one", "two"))
		sent := slack.waitFor(t, 1)[0]
		id := s.Store.Reader.Finding.Query().FirstIDX(s.System(t))
		for what, has := range map[string]bool{
			"channel":        sent.Channel == "C0SECURITY",
			"token":          sent.Token == botToken,
			"text":           strings.Contains(sent.Text, "2 new findings in acme/web"),
			"escaped":        strings.Contains(sent.Blocks, `Query built from one &lt;&amp;&gt; ü`) || strings.Contains(sent.Blocks, `\u0026lt;\u0026amp;\u0026gt;`),
			"menu":           strings.Contains(sent.Blocks, fmt.Sprintf(`"value":"%d:%d:fp"`, s.DeploymentID, id)),
			"link":           strings.Contains(sent.Blocks, "/console/acme/triage?"),
			"a menu for all": strings.Count(sent.Blocks, `"palisade-triage"`) == 2,
		} {
			if !has {
				t.Errorf("%s: %+v", what, sent)
			}
		}
		mappings := s.Body(t, s.jwt, http.MethodGet, s.chat("/channel_mappings"), "", 200)
		if !strings.Contains(mappings, `"channel_id":"C0SECURITY","channel_name":"security"`) {
			t.Error(mappings)
		}
		mappings = s.Body(t, s.jwt, http.MethodGet, s.chat("/channels"), "", 200)
		if !strings.Contains(mappings, `"team_id":"T0ACME","team_name":"Acme","channel_id":"C0SECURITY","channel_name":"security","sast_enabled":true,"sca_enabled":false,"products":["sast","ai_sast"],"projects":[],"policies":["rule-board-audit"]`) {
			t.Error(mappings)
		}
	})
}

func TestChatAppIsRemovedAtSlack(t *testing.T) {
	eachSlack(t, func(t *testing.T, s caller, slack *fakeSlack) {
		s.install(t)
		s.chatRule(t, "")
		slack.set(func() { slack.refusal["chat.postMessage"] = "token_revoked" })
		s.Upload(t, "acme/web", "main", report("one"))
		apitest.Eventually(t, "the installation is archived", func() bool {
			return strings.Contains(s.Body(t, s.jwt, http.MethodGet, s.chat("/installations"), "", 200), `"archived":true`)
		})
		if rules := s.Body(t, s.Token, http.MethodPost, s.actions("/list"), "{}", 200); !strings.Contains(rules, `"config_error":"the chat app was removed from the workspace`) {
			t.Error(rules)
		}
		slack.set(func() { slack.refusal["chat.postMessage"] = "" })
		s.install(t)
		if rules := s.Body(t, s.Token, http.MethodPost, s.actions("/list"), "{}", 200); !strings.Contains(rules, `"config_error":""`) {
			t.Error(rules)
		}
		slack.waitFor(t, 1) // what waited
	})
}

func TestChatAppTriage(t *testing.T) {
	eachSlack(t, func(t *testing.T, s caller, slack *fakeSlack) {
		s.install(t)
		s.chatRule(t, "")
		s.Upload(t, "acme/web", "main", report("one", "two"))
		slack.waitFor(t, 1)
		ids := s.Store.Reader.Finding.Query().Order(finding.ByID()).IDsX(s.System(t))
		s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleMember)
		s.AddUser(t, s.Tenant, "reader@acme.test", access.RoleReadOnly)
		slack.person("U0ADA", "Ada@acme.test", "")
		slack.person("U0READER", "reader@acme.test", "")
		slack.person("U0NOBODY", "nobody@acme.test", "")
		slack.person("U0GONE", "ada@acme.test", `,"deleted":true`)
		slack.person("U0STRANGER", "ada@acme.test", `,"is_stranger":true`)
		slack.set(func() {
			slack.users["U0UNCONFIRMED"] = `{"id":"U0UNCONFIRMED","team_id":"T0ACME","is_email_confirmed":false,"profile":{"email":"ada@acme.test"}}`
			slack.users["U0OTHER"] = `{"id":"U0OTHER","team_id":"T0OTHER","is_email_confirmed":true,"profile":{"email":"ada@acme.test"}}`
		})
		value := func(id int64, word string) string { return fmt.Sprintf("%d:%d:%s", s.DeploymentID, id, word) }
		state := func(id int64) string {
			row := s.Store.Reader.Finding.GetX(s.System(t), id)
			if row.TriageReason != nil {
				return row.TriageState + " " + *row.TriageReason
			}
			return row.TriageState
		}
		seen := 1
		next := func() posted {
			t.Helper()
			seen++
			return slack.waitFor(t, seen)[seen-1]
		}

		s.press(t, time.Now(), value(ids[0], "fp"), "U0ADA", "1", 200)
		told := next()
		if told.Method != "chat.postMessage" || told.Thread != "1770000000.000001" || !strings.Contains(told.Text, "ignored as a false positive now: <@U0ADA>") {
			t.Errorf("%+v", told)
		}
		if state(ids[0]) != "ignored false_positive" {
			t.Error(state(ids[0]))
		}
		entry := s.Store.Reader.AuditEntry.Query().Where(auditentry.Method("chat-app/triage")).OnlyX(s.System(t))
		if entry.ActorKind != "user" || entry.ActorName != "ada@acme.test" {
			t.Errorf("audit: %+v", entry)
		}

		for user, says := range map[string]string{
			"U0READER": "may not triage", "U0NOBODY": "may not triage", "U0GONE": "no member of the workspace", "U0STRANGER": "no member of the workspace",
			"U0OTHER": "no member of the workspace", "U0UNCONFIRMED": "no confirmed e-mail address",
		} {
			s.press(t, time.Now(), value(ids[0], "open"), user, user, 200)
			if told := next(); told.Method != "chat.postEphemeral" || told.User != user || !strings.Contains(told.Text, says) {
				t.Errorf("%s: %+v", user, told)
			}
		}
		if state(ids[0]) != "ignored false_positive" {
			t.Error(state(ids[0]))
		}

		// A repeated request has no effect: Slack, or somebody who recorded it, sends it again after a later decision.
		at := time.Now()
		s.press(t, at, value(ids[0], "open"), "U0ADA", "2", 200)
		next()
		s.press(t, time.Now(), value(ids[0], "ar"), "U0ADA", "3", 200)
		next()
		s.press(t, at, value(ids[0], "open"), "U0ADA", "2", 200)
		s.press(t, time.Now(), value(ids[1], "reviewing"), "U0ADA", "4", 200)
		next()
		if state(ids[0]) != "ignored acceptable_risk" || state(ids[1]) != "reviewing" {
			t.Error(state(ids[0]), state(ids[1]))
		}
		s.press(t, time.Now(), value(ids[1], "reviewing"), "U0ADA", "5", 200)
		if told := next(); told.Method != "chat.postEphemeral" || !strings.Contains(told.Text, "is under review already") {
			t.Errorf("%+v", told)
		}
		s.press(t, time.Now(), value(987654321, "fp"), "U0ADA", "6", 200)
		if told := next(); !strings.Contains(told.Text, "there is no finding 987654321 that you may triage") {
			t.Errorf("%+v", told)
		}
	})
}

func TestForgedInteractions(t *testing.T) {
	eachSlack(t, func(t *testing.T, s caller, slack *fakeSlack) {
		s.install(t)
		s.Upload(t, "acme/web", "main", report("one"))
		id := s.Store.Reader.Finding.Query().FirstIDX(s.System(t))
		other := s.AddTenant(t, "other")
		slack.person("U0ADMIN", "admin@acme.test", "")
		fp := fmt.Sprintf("%d:%d:fp", s.DeploymentID, id)
		s.press(t, time.Now().Add(-6*time.Minute), fp, "U0ADMIN", "old", 404)
		s.press(t, time.Now().Add(6*time.Minute), fp, "U0ADMIN", "future", 404)
		s.signed(t, time.Now(), "another-secret", "payload={}", 404)
		s.Body(t, "", http.MethodPost, "/api/chat-app/interactions", "payload={}", 404)
		s.signed(t, time.Now(), slackSigning, "no form", 400)
		s.signed(t, time.Now(), slackSigning, "payload=[]", 400)
		s.signed(t, time.Now(), slackSigning, `payload={"type":"view_submission"}`, 200)
		for i, value := range []string{"", "x", "1:2", fmt.Sprintf("%d:%d:drop", s.DeploymentID, id), fmt.Sprintf("%d:%d:fp", other.DeploymentID, id)} {
			s.press(t, time.Now(), value, "U0ADMIN", fmt.Sprint("odd", i), 200)
		}
		s.press(t, time.Now(), fp, "U0ADMIN", "good", 200)
		slack.waitFor(t, 1)
		if got := s.Store.Reader.FindingEvent.Query().CountX(s.System(t)); got != 2 { // created, triaged
			t.Errorf("%d events", got)
		}
	})
}
