package notifications_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// A rule keeps its report until it is replaced without one. A disabled rule sends none.
func TestRuleWithReport(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		rule := func(more string) string {
			return `{"notificationRule":{"channel":"email","name":"Monthly","config":{"to":"ada@acme.test"}` + more + `}}`
		}
		s.seedNames(t)
		const schedule = `,"send_findings":false,"send_report":{"cadence":"REPORT_CADENCE_WEEKLY","weekday":5,"hour":7,"time_zone":"Europe/Berlin","filters":{"tags":["pci"]}}`
		body := s.Body(t, s.Token, http.MethodPost, s.actions(""), rule(schedule), http.StatusOK)
		for _, want := range []string{`"send_findings":false`, `"cadence":"REPORT_CADENCE_WEEKLY","weekday":5,"hour":7,"time_zone":"Europe/Berlin"`, `"tags":["pci"]`, `"next_report_at":"`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s is missing: %s", want, body)
			}
		}
		list := s.Body(t, s.Token, http.MethodPost, s.actions("/list"), `{}`, http.StatusOK)
		answer, err := notificationsv1.NewNotificationRulesServiceClient(s.Conn).ListNotificationRules(s.Context(t, s.Token),
			&notificationsv1.ListNotificationRulesRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, answer, list)
		off := s.Body(t, s.Token, http.MethodPut, s.actions("/1"), rule(schedule+`,"is_enabled":false`), http.StatusOK)
		if strings.Contains(off, "next_report_at") || !strings.Contains(off, "send_report") {
			t.Errorf("disabled: %s", off)
		}
		without := s.Body(t, s.Token, http.MethodPut, s.actions("/1"), rule(""), http.StatusOK)
		if strings.Contains(without, "report") || strings.Contains(without, "send_findings") {
			t.Errorf("replaced without a report: %s", without)
		}
		for more, field := range map[string]string{
			`{"cadence":"REPORT_CADENCE_DAILY","time_zone":"Mars"}`:          "send_report",
			`{"cadence":"REPORT_CADENCE_MONTHLY","weekday":1}`:               "send_report",
			`{"cadence":"REPORT_CADENCE_DAILY","filters":{"timePeriod":{}}}`: "send_report",
			`{"hour":1}`: "cadence", `{"cadence":"REPORT_CADENCE_DAILY","hour":24}`: "hour",
		} {
			refused := s.Do(t, s.Token, http.MethodPost, s.actions(""), rule(`,"send_report":`+more))
			if refused.Status != http.StatusBadRequest || !strings.Contains(refused.Body, field) {
				t.Errorf("%s: %d %s", more, refused.Status, refused.Body)
			}
		}
	})
}

// The test of a rule with a report sends the report of now, as text and as a table, without a filter's other findings.
func TestTestOfAReport(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		box := newMailbox(t)
		server := apitest.Start(t, func(c *config.Config) { on(c); c.SMTP, c.SMTPFrom = "smtp://"+box.address, "palisade@acme.test" })
		s := caller{server, server.AddUser(t, server.Tenant, "admin@acme.test", access.RoleAdmin)}
		s.Body(t, s.Token, http.MethodPost, s.actions(""), `{"notificationRule":{"channel":"email","name":"Daily of acme","config":{"to":"ada@acme.test"},
			"send_report":{"cadence":"REPORT_CADENCE_DAILY"}}}`, http.StatusOK)
		body := s.Body(t, s.Token, http.MethodPost, s.actions("/1/test"), `{}`, http.StatusOK)
		if !strings.Contains(body, `"success":true`) {
			t.Fatal(body)
		}
		mails := box.taken()
		if len(mails) != 1 || !slices.Equal(mails[0].to, []string{"ada@acme.test"}) {
			t.Fatalf("sent %v", mails)
		}
		for _, want := range []string{"Subject: Test: Daily of acme: 0 open findings (as before)", "multipart/alternative", "text/plain", "text/html", "Median time to fix"} {
			if !strings.Contains(mails[0].text, want) {
				t.Errorf("%q is missing in %s", want, mails[0].text)
			}
		}
	})
}

// A rule that sends no findings gets none, while other rules get them.
func TestRuleWithoutFindings(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		hook := newReceiver(t, nil)
		quiet := s.rule(t, "quiet", hook.URL, `,"send_findings":false,"send_scan_completion":false`)
		loud := s.rule(t, "loud", hook.URL, `,"send_scan_completion":false`)
		s.Upload(t, "acme/web", "refs/heads/main", report("sqli"))
		var list struct{ Deliveries []struct{ RuleID string } }
		apitest.Eventually(t, "a delivery", func() bool {
			if err := json.Unmarshal([]byte(s.Get(t, s.deliveries(""))), &list); err != nil {
				t.Fatal(err)
			}
			return len(list.Deliveries) > 0
		})
		for _, d := range list.Deliveries {
			if d.RuleID != fmt.Sprint(loud) {
				t.Errorf("a delivery of rule %s; quiet is %d, loud %d", d.RuleID, quiet, loud)
			}
		}
	})
}
