package reporting_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/findings/snapshots"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/reporting"
)

// reportRule creates a rule that sends a report, and returns its id.
func reportRule(t testing.TB, s *apitest.Server, of apitest.Tenant, fields string) int64 {
	t.Helper()
	body := s.Body(t, of.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/actions", of.DeploymentID),
		`{"notificationRule":{"channel":"EMAIL","name":"Monthly <b>report</b>","config":{"to":"ada@acme.test"},"send_findings":false,`+fields+`}}`, http.StatusOK)
	var answer struct {
		Rule struct{ ID int64 } `json:"notification_rule"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Rule.ID == 0 {
		t.Fatalf("%v: %s", err, body)
	}
	return answer.Rule.ID
}

// A report that is due is sent once, about the last period, with the numbers that the API returns for it at any later
// time; and to nobody else.
func TestReportIsSentOnce(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		// Without workers: they would send the report that is due, by the real time.
		s := apitest.Start(t, func(c *config.Config) { on(c); c.Roles = "api" })
		newAcme(t, s, s.Tenant)
		id := reportRule(t, s, s.Tenant, `"send_report":{"cadence":"REPORT_CADENCE_MONTHLY","hour":8,"time_zone":"Europe/Berlin","filters":{"findingSeverities":["FINDING_SEVERITY_HIGH"]}}`)
		rival := s.AddTenant(t, "rival")
		other := reportRule(t, s, rival, `"send_report":{"cadence":"REPORT_CADENCE_MONTHLY"}`)
		off := reportRule(t, s, s.Tenant, `"is_enabled":false,"send_report":{"cadence":"REPORT_CADENCE_DAILY"}`)
		rule := func(id int64) *ent.NotificationRule { return s.Store.Reader.NotificationRule.GetX(s.System(t), id) }
		if due := rule(id).NextReportAt; due == nil || *due < store.Now() || rule(off).NextReportAt != nil {
			t.Fatalf("due at %v, and the disabled rule at %v", due, rule(off).NextReportAt)
		}
		// The server was down: the reports of April and May were missed. Only May is sent.
		missed := store.Micros(time.Date(2026, 5, 1, 6, 0, 0, 0, time.UTC))
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.NotificationRule.Update().Where(notificationrule.ID(id)).SetNextReportAt(missed).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		queue, err := jobs.New(s.Store, slog.New(slog.DiscardHandler), jobs.Work{Register: func(workers *river.Workers) {
			river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[outbox.Deliver]) error { return nil }))
		}})
		if err != nil {
			t.Fatal(err)
		}
		mails := reporting.NewMails(s.Store, reporting.NewOverview(reporting.NewReports(s.Store, snapshots.NewSnapshots(s.Store, 1<<26))), "https://palisade.acme.test")
		now := time.Date(2026, 6, 3, 12, 0, 0, 0, time.UTC)
		for range 2 {
			if err := mails.Send(t.Context(), queue, now); err != nil {
				t.Fatal(err)
			}
		}
		sent := s.Store.Reader.Delivery.Query().Where(delivery.Kind("report")).AllX(s.System(t))
		if len(sent) != 1 || sent[0].RuleID != id || sent[0].DeploymentID != s.DeploymentID {
			t.Fatalf("sent %v, want one to rule %d, and none to %d", sent, id, other)
		}
		after := rule(id)
		if want := store.Micros(time.Date(2026, 7, 1, 6, 0, 0, 0, time.UTC)); *after.NextReportAt != want || after.LastReportAt == nil {
			t.Errorf("next at %s, want %s", store.Time(*after.NextReportAt), store.Time(want))
		}
		equalsTheAPI(t, s, sent[0].Payload)
	})
}

func equalsTheAPI(t *testing.T, s *apitest.Server, body []byte) {
	t.Helper()
	var sent struct {
		Report struct {
			Link, Title, Message, HTML string
			Report                     json.RawMessage
		} `json:"palisade_report"`
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	link, err := url.Parse(sent.Report.Link)
	if err != nil {
		t.Fatal(err)
	}
	query := link.Query()
	if query.Get("since") != "2026-04-30T22:00:00Z" || query.Get("until") != "2026-05-31T22:00:00Z" || link.Path != "/console/"+s.Slug+"/overview" {
		t.Errorf("the link is %s", link)
	}
	filters := strings.Replace(query.Get("filters"), "{", `{"timePeriod":{"since":"`+query.Get("since")+`","until":"`+query.Get("until")+`"},`, 1)
	request := `{"filters":` + filters + `,"compareWith":{"since":"2026-03-31T22:00:00Z","until":"` + query.Get("since") + `"}}`
	if now := s.Body(t, s.Token, http.MethodPost, path(s.Tenant, reports["overview"]), request, http.StatusOK); now != string(sent.Report.Report) {
		t.Errorf("the API returns\n%s, the mail had\n%s", now, sent.Report.Report)
	}
	var numbers struct {
		ThisPeriod struct{ Open struct{ Total int } }
	}
	if err := json.Unmarshal(sent.Report.Report, &numbers); err != nil || numbers.ThisPeriod.Open.Total != 1 {
		t.Errorf("%v: %s", err, sent.Report.Report)
	}
	for _, text := range []string{sent.Report.Message, sent.Report.HTML} {
		if !strings.Contains(text, "1 May 2026 to 31 May 2026") || !strings.Contains(text, "acme/web") {
			t.Errorf("without the period or the project: %s", text)
		}
	}
	if !strings.HasPrefix(sent.Report.Title, "Monthly <b>report</b>: 1 open findings") || strings.Contains(sent.Report.HTML, "<b>report") {
		t.Errorf("title %q of %s", sent.Report.Title, sent.Report.HTML)
	}
}
