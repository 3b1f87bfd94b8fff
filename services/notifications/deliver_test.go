package notifications_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/delivery"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/testrun"
)

// change sets columns of all deliveries, to simulate the passing of time.
func (c caller) change(t testing.TB, set func(*ent.DeliveryUpdate)) {
	t.Helper()
	err := c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error {
		update := tx.Delivery.Update()
		set(update)
		return update.Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (c caller) waitState(t testing.TB, state string, n int) []delivered {
	t.Helper()
	var listed []delivered
	apitest.Eventually(t, fmt.Sprintf("%d deliveries are %s", n, state), func() bool {
		listed = c.ledger(t, "?state=DELIVERY_STATE_"+state)
		return len(listed) == n
	})
	return listed
}

// eventIDForm is the format of message ids: random, so that ids of different servers differ.
var eventIDForm = regexp.MustCompile(`msg_[0-9a-f]{32}`)

func withoutIDs(body string) string { return eventIDForm.ReplaceAllString(body, "msg_1") }

func TestLedgerGolden(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		client := notificationsv1.NewDeliveriesServiceClient(s.Conn)
		ctx := s.Context(t, s.Token)
		refuse := atomic.Bool{}
		refuse.Store(true)
		to := newReceiver(t, func(message) int {
			if refuse.CompareAndSwap(true, false) {
				return http.StatusBadGateway
			}
			return http.StatusOK
		})
		s.rule(t, "everything", to.URL, "")
		s.Upload(t, "acme/web", "main", report("a"))
		s.waitState(t, "DELIVERED", 2)
		if got := to.seen(); len(got) != 3 || got[0].id != got[1].id || got[0].body != got[1].body {
			t.Errorf("attempts differ: %+v", got)
		}
		list := s.Body(t, s.Token, http.MethodGet, s.deliveries("?ruleId=1"), "", 200)
		apitest.Golden(t, "ledger_list", withoutIDs(list))
		response, err := client.ListDeliveries(ctx, &notificationsv1.ListDeliveriesRequest{DeploymentId: s.DeploymentID, RuleId: 1})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, list)
		first, err := client.GetDelivery(ctx, &notificationsv1.GetDeliveryRequest{DeploymentId: s.DeploymentID, DeliveryId: 1})
		if err != nil {
			t.Fatal(err)
		}
		if a := first.GetAttempts(); len(a) != 2 || a[0].GetStatus() != 502 || !strings.Contains(a[0].GetError(), "HTTP 502") || a[1].GetStatus() != 200 || a[1].GetError() != "" {
			t.Errorf("attempts %v", a)
		}
	})
}

func TestReplayAndPages(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		to := newReceiver(t, nil)
		s.rule(t, "everything", to.URL, "")
		s.Upload(t, "acme/web", "main", report("a"))
		s.waitState(t, "DELIVERED", 2)

		// A replay has the same id and body.
		apitest.Golden(t, "ledger_replay", withoutIDs(s.Body(t, s.Token, http.MethodPost, s.deliveries("/1/replay"), "{}", 200)))
		got := to.waitFor(3)
		if got[2].id != got[0].id || got[2].body != got[0].body {
			t.Errorf("replay %+v of %+v", got[2], got[0])
		}
		s.waitState(t, "DELIVERED", 3)
		var page struct {
			Deliveries []delivered
			Cursor     string
		}
		seen := ""
		for more := true; more; more = page.Cursor != "" {
			decode(t, s.Body(t, s.Token, http.MethodGet, s.deliveries("?limit=1&cursor="+page.Cursor), "", 200), &page)
			seen += page.Deliveries[0].ID
		}
		if seen != "321" {
			t.Errorf("pages %s", seen)
		}
		apitest.Golden(t, "ledger_not_found", s.Body(t, s.Token, http.MethodGet, s.deliveries("/77"), "", 404))
		s.Body(t, s.Token, http.MethodPost, s.deliveries("/77/replay"), "{}", 404)
		s.Body(t, s.Token, http.MethodGet, s.deliveries("?state=LOST"), "", 400)
		s.Body(t, s.Token, http.MethodGet, s.deliveries("?limit=501"), "", 400)
		s.Body(t, s.Token, http.MethodGet, s.deliveries("?cursor=AAAA"), "", 400)

		other := s.AddTenant(t, "globex")
		theirs := fmt.Sprintf("/api/notifications/v1/deployments/%d/deliveries", other.DeploymentID)
		s.Body(t, other.Token, http.MethodGet, theirs+"/1", "", 404)
		s.Body(t, other.Token, http.MethodPost, theirs+"/1/replay", fmt.Sprintf(`{"deploymentId":"%d"}`, s.DeploymentID), 404)
		if got := s.Body(t, other.Token, http.MethodGet, theirs, "", 200); got != `{"deliveries":[],"cursor":""}` {
			t.Errorf("they see %s", got)
		}
	})
}

// 410 ends a delivery at once; Retry-After is respected.
func TestReceiverSaysHowToGoOn(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		gone := newReceiver(t, func(message) int { return http.StatusGone })
		s.rule(t, "gone", gone.URL, `,"send_scan_completion":false`)
		busy := newReceiver(t, nil)
		busy.Server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3000")
			w.WriteHeader(http.StatusTooManyRequests)
		})
		s.rule(t, "busy", busy.URL, `,"send_scan_completion":false`)
		s.Upload(t, "acme/web", "main", report("a"))
		abandoned := s.waitState(t, "ABANDONED", 1)
		if d := abandoned[0]; d.LastStatus != 410 || d.Attempts != 1 || !strings.Contains(d.LastError, "410") {
			t.Errorf("abandoned %+v", d)
		}
		var put delivered
		apitest.Eventually(t, "the other one was put off", func() bool {
			put = s.ledger(t, "?state=DELIVERY_STATE_PENDING")[0]
			return put.Attempts == 1
		})
		if next, err := time.Parse(time.RFC3339, put.NextAttemptAt); err != nil || time.Until(next) < 40*time.Minute || time.Until(next) > time.Hour {
			t.Errorf("it is tried again at %s, %v", put.NextAttemptAt, err)
		}
		s.Body(t, s.Token, http.MethodPost, s.deliveries("/"+put.ID+"/replay"), "{}", 400) // it is pending

		// Administrators are notified once.
		apitest.Golden(t, "in_app_abandoned", s.Body(t, s.Token, http.MethodGet, s.inApp(""), "", 200))
		if len(gone.seen()) != 1 {
			t.Errorf("the receiver that is gone was asked %d times", len(gone.seen()))
		}
	})
}

// Deleting or disabling a rule cancels its pending deliveries; a new config retries them at once.
func TestRuleChangesWhatIsPending(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		down := newReceiver(t, func(message) int { return http.StatusServiceUnavailable })
		repaired, disabled, deleted := s.rule(t, "repaired", down.URL, ""), s.rule(t, "disabled", down.URL, ""), s.rule(t, "deleted", down.URL, "")
		s.Upload(t, "acme/web", "main", report("a"))
		s.waitState(t, "PENDING", 6)
		s.Body(t, s.Token, http.MethodDelete, s.actions(fmt.Sprintf("/%d", deleted)), "", 200)
		replace := func(id int64, url, enabled string) {
			s.Body(t, s.Token, http.MethodPut, s.actions(fmt.Sprintf("/%d", id)),
				fmt.Sprintf(`{"notificationRule":{"name":"x","channel":"webhook","is_enabled":%s,"config":{"url":%q}}}`, enabled, url), 200)
		}
		replace(disabled, down.URL, "false")
		for _, d := range s.waitState(t, "CANCELED", 4) {
			got := s.Body(t, s.Token, http.MethodPost, s.deliveries("/"+d.ID+"/replay"), "{}", 400)
			if !strings.Contains(got, "was deleted or is disabled") {
				t.Error(got)
			}
		}
		s.change(t, func(u *ent.DeliveryUpdate) { // would wait for long
			u.Where(delivery.RuleID(repaired), delivery.LockedUntil(0)).SetNextAttemptAt(store.Now() + time.Hour.Microseconds())
		})
		up := newReceiver(t, nil)
		replace(repaired, up.URL, "true")
		up.waitFor(2)
	})
}

// A message that was retried for 24 hours gets one last attempt and is abandoned.
func TestGivenUpAfterADay(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		down := newReceiver(t, func(message) int { return http.StatusServiceUnavailable })
		s.rule(t, "down", down.URL, `,"send_scan_completion":false`)
		s.Upload(t, "acme/web", "main", report("a"))
		apitest.Eventually(t, "it was tried", func() bool { return len(down.seen()) > 0 })
		s.change(t, func(u *ent.DeliveryUpdate) { u.SetGiveUpAt(store.Now()).SetNextAttemptAt(store.Now()) })
		if d := s.waitState(t, "ABANDONED", 1)[0]; d.LastStatus != 503 || !strings.Contains(d.LastError, "given up after 24h") {
			t.Errorf("abandoned %+v", d)
		}
		// The job writes an audit entry.
		entry := s.Store.Reader.AuditEntry.Query().Where(auditentry.ActorKind("job")).OnlyX(s.System(t))
		if entry.DeploymentID != s.DeploymentID || entry.ActorName != "deliver_notifications" || len(entry.Changes) != 1 ||
			entry.Changes[0].Kind != "delivery" || !strings.Contains(string(entry.Changes[0].After), "DELIVERY_STATE_ABANDONED") {
			t.Errorf("audit %+v", entry)
		}
	})
}

// The circuit of a failing receiver opens; messages wait without using attempts, and arrive when it recovers.
func TestCircuit(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	each(t, func(t *testing.T, s caller) {
		down := atomic.Bool{}
		down.Store(true)
		to := newReceiver(t, func(message) int {
			if down.Load() {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		})
		healthy := newReceiver(t, nil)
		s.rule(t, "down", to.URL, "")
		s.rule(t, "healthy", healthy.URL, "")
		for i := range 30 {
			s.Upload(t, fmt.Sprintf("acme/p%d", i), "main", report("a"))
		}
		healthy.waitFor(60)
		apitest.Eventually(t, "administrators are told", func() bool {
			return strings.Contains(s.Body(t, s.Token, http.MethodGet, s.inApp(""), "", 200), `The receiver of the notification rule \"down\" keeps failing`)
		})
		untried := s.Store.Reader.Delivery.Query().Where(delivery.State("pending"), delivery.Attempts(0)).CountX(s.System(t))
		if untried < 20 {
			t.Errorf("%d messages were not tried, want most of 60: it was asked %d times", untried, len(to.seen()))
		}
		down.Store(false)
		s.change(t, func(u *ent.DeliveryUpdate) {
			u.Where(delivery.State("pending"), delivery.LockedUntil(0)).SetNextAttemptAt(store.Now())
		})
		to.waitFor(60)

		member := s.AddUser(t, s.Tenant, "member@acme.test", access.RoleMember)
		apitest.Golden(t, "in_app_none", s.Body(t, member, http.MethodGet, s.inApp(""), "", 200))
	})
}
