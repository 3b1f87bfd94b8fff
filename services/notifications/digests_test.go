package notifications_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/notifications"
	"github.com/palisade/palisade/services/notifications/outbox"
)

// digester writes the digests that are due at a time.
type digester struct {
	*notifications.Digests
	queue *jobs.Jobs
}

func newDigester(t testing.TB, s caller) digester {
	t.Helper()
	queue, err := jobs.New(s.Store, slog.New(slog.DiscardHandler), jobs.Work{Register: func(workers *river.Workers) {
		river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[outbox.Deliver]) error { return nil }))
	}})
	if err != nil {
		t.Fatal(err)
	}
	return digester{notifications.NewDigests(s.Store, "https://palisade.acme.test"), queue}
}

func (d digester) at(t testing.TB, now time.Time) {
	t.Helper()
	if err := d.Send(t.Context(), d.queue, now); err != nil {
		t.Fatal(err)
	}
}

// parts counts the scans that wait for digests.
func (c caller) parts(t testing.TB) int { return c.Store.Reader.DigestPart.Query().CountX(c.System(t)) }

const weekly = `"digest":{"cadence":"DIGEST_CADENCE_WEEKLY","weekday":1,"hour":6}`

// setMail replaces the rule of eachMail; more is additional JSON.
func (c caller) setMail(t testing.TB, rule int64, more string) string {
	t.Helper()
	return c.Body(t, c.Token, http.MethodPut, c.actions(fmt.Sprintf("/%d", rule)), `{"notificationRule":{"name":"people","channel":"email","config":{"to":"ada@acme.test"}`+more+`}}`, 200)
}

func nextWeek() time.Time { return time.Now().Add(8 * 24 * time.Hour) }

// A digest has the new findings of all scans since the last one, without the ones gone by now. It is sent once,
// also if two nodes write it, and not at all if nothing is new.
func TestDigest(t *testing.T) {
	eachMail(t, "ada@acme.test", func(t *testing.T, s caller, m *mailbox, rule int64) {
		if got := s.setMail(t, rule, ","+weekly); !strings.Contains(got, `"digest":{"cadence":"DIGEST_CADENCE_WEEKLY"`) || !strings.Contains(got, `"next_digest_at":"`) {
			t.Errorf("the rule is %s", got)
		}
		s.Upload(t, "acme/web", "main", mixed(3, 2, 1))
		s.Upload(t, "acme/web", "main", mixed(3, 1, 0)) // the last ones are fixed
		s.Upload(t, "acme/api", "main", mixed(1, 0, 0))
		apitest.Eventually(t, "both projects wait", func() bool { return s.parts(t) == 2 })
		if list := s.ledger(t, ""); len(list) != 0 {
			t.Fatalf("sent at once: %+v", list)
		}
		one, two := newDigester(t, s), newDigester(t, s)
		one.at(t, time.Now()) // not due
		if s.parts(t) != 2 {
			t.Fatal("sent before its time")
		}
		ended := make(chan error)
		go func() { ended <- two.Send(t.Context(), two.queue, nextWeek()) }()
		if err := errors.Join(one.Send(t.Context(), one.queue, nextWeek()), <-ended); err != nil {
			t.Fatal(err)
		}
		s.waitState(t, "DELIVERED", 1)
		subject, text := m.taken()[0].read(t)
		if subject != "5 new findings in 2 projects: 4 high, 1 low" {
			t.Errorf("subject %q of %s", subject, text)
		}
		for _, part := range []string{
			"\n-- \nYou get this because of notification rule 1, \"people\", of the deployment acme. Its administrators can change or delete the rule: http",
			"5 since the last digest: 4 high, 1 low\nList: https://palisade.acme.test/console/acme/triage?more=",
			"\n\nacme/web: 3 high, 1 low\nacme/api: 1 high\n\n", "high: go.high at app/f00000.go:7 in acme/web (main), finding ", "\n    Result 0\n    https://palisade.acme.test/console/acme/findings/",
			"high: go.high at app/f00000.go:7 in acme/api (main), finding ", "\nNew since the last digest, and already fixed, ignored or removed: 2\n",
		} {
			if !strings.Contains(text, part) {
				t.Errorf("no %q in %s", part, text)
			}
		}
		if strings.Contains(text, "critical") || s.parts(t) != 0 {
			t.Errorf("%d parts are left of %s", s.parts(t), text)
		}
		s.Upload(t, "acme/api", "main", mixed(2, 0, 0))
		apitest.Eventually(t, "a scan waits", func() bool { return s.parts(t) == 1 })
		s.Upload(t, "acme/api", "main", mixed(1, 0, 0)) // what was new is fixed
		one.at(t, nextWeek().Add(7*24*time.Hour))
		one.at(t, nextWeek().Add(14*24*time.Hour))
		if list := s.ledger(t, ""); len(list) != 1 || s.parts(t) != 0 {
			t.Errorf("nothing is new: %+v, %d parts", list, s.parts(t))
		}
	})
}

// A rule that loses its digest sends what waits at once. What waits for a rule that is disabled or deleted is dropped.
func TestDigestEnds(t *testing.T) {
	eachMail(t, "ada@acme.test", func(t *testing.T, s caller, m *mailbox, rule int64) {
		s.setMail(t, rule, ","+weekly)
		s.Upload(t, "acme/web", "main", mixed(1, 0, 0))
		apitest.Eventually(t, "a scan waits", func() bool { return s.parts(t) == 1 })
		s.setMail(t, rule, `,"policy_slugs":["rule-board-audit"],`+weekly) // it still has a digest
		if s.parts(t) != 1 {
			t.Error("the part is gone")
		}
		if got := s.setMail(t, rule, ""); strings.Contains(got, "digest") {
			t.Errorf("the rule is %s", got)
		}
		s.waitState(t, "DELIVERED", 1)
		if subject, _ := m.taken()[0].read(t); subject != "1 new finding in acme/web: 1 high" || s.parts(t) != 0 {
			t.Errorf("subject %q, %d parts", subject, s.parts(t))
		}
		s.setMail(t, rule, ","+weekly)
		s.Upload(t, "acme/web", "main", mixed(2, 0, 0))
		apitest.Eventually(t, "a scan waits", func() bool { return s.parts(t) == 1 })
		if got := s.setMail(t, rule, `,"is_enabled":false,`+weekly); s.parts(t) != 0 || strings.Contains(got, "next_digest_at") {
			t.Errorf("%d parts of %s", s.parts(t), got)
		}
		s.setMail(t, rule, ","+weekly)
		s.Upload(t, "acme/web", "main", mixed(3, 0, 0))
		apitest.Eventually(t, "a scan waits", func() bool { return s.parts(t) == 1 })
		s.Body(t, s.Token, http.MethodDelete, s.actions(fmt.Sprintf("/%d", rule)), "", 200)
		if s.parts(t) != 0 {
			t.Error("the rule is gone, and its part is not")
		}
	})
}

// A digest of a huge scan counts all findings and names the worst.
func TestDigestOfManyFindings(t *testing.T) {
	eachMail(t, "ada@acme.test", func(t *testing.T, s caller, m *mailbox, rule int64) {
		s.setMail(t, rule, ","+weekly+`,"quiet_hours":{"from":"03:00","until":"03:01"}`)
		s.Upload(t, "acme/web", "main", mixed(1100, 300, 60))
		apitest.Eventually(t, "a scan waits", func() bool { return s.parts(t) == 1 })
		newDigester(t, s).at(t, nextWeek())
		s.waitState(t, "DELIVERED", 1)
		subject, text := m.taken()[0].read(t)
		if subject != "1460 new findings in acme/web: 60 critical, 1100 high, 300 low" || len(named(text)) != 50 || !strings.Contains(text, "\nand 1410 more\n") || strings.Contains(text, "already fixed") {
			t.Errorf("%q: %s", subject, text)
		}
		response, err := notificationsv1.NewNotificationRulesServiceClient(s.Conn).ListNotificationRules(s.Context(t, s.Token), &notificationsv1.ListNotificationRulesRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		got := response.GetNotificationRules()[0]
		if got.GetDigest().GetWeekday() != 1 || got.GetNextDigestAt() == nil || got.GetQuietHours().GetUntil() != "03:01" {
			t.Errorf("over gRPC: %v", got)
		}
	})
}

// A digest reads what waits in parts. Projects that are gone are counted, and at most fifty are named.
func TestDigestOfManyScans(t *testing.T) {
	eachMail(t, "ada@acme.test", func(t *testing.T, s caller, m *mailbox, rule int64) {
		s.setMail(t, rule, ","+weekly)
		scans := testrun.Size(300, 10_000)
		err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			var projects []*ent.ProjectCreate
			for i := range 60 {
				projects = append(projects, tx.Project.Create().SetName(fmt.Sprintf("acme/p%02d", i)).SetNameKey(fmt.Sprintf("acme/p%02d", i)).SetCreatedAt(store.Now()))
			}
			made, err := tx.Project.CreateBulk(projects...).Save(ctx)
			if err != nil {
				return err
			}
			var parts []*ent.DigestPartCreate
			for i := range scans {
				project, tally := made[i%60].ID, `{"counts":{"high":2},"first":{},"since":1}`
				if i == 0 {
					project, tally = 999, `{"counts":{"critical":5},"first":{},"since":1}` // it was deleted
				}
				parts = append(parts, tx.DigestPart.Create().SetRuleID(rule).SetProjectID(project).SetScanID(int64(i+1)).SetTally([]byte(tally)).SetCreatedAt(store.Now()))
			}
			for some := range slices.Chunk(parts, store.RowsAtOnce) {
				if err := tx.DigestPart.CreateBulk(some...).Exec(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		newDigester(t, s).at(t, nextWeek())
		s.waitState(t, "DELIVERED", 1)
		subject, text := m.taken()[0].read(t)
		if want := fmt.Sprintf("%d new findings in 60 projects: %d high", 2*(scans-1), 2*(scans-1)); subject != want {
			t.Errorf("subject %q, want %q", subject, want)
		}
		if strings.Count(text, "\nacme/p") != 50 || !strings.Contains(text, "\nand 10 more projects with ") || !strings.Contains(text, "already fixed, ignored or removed: at least 5\n") || s.parts(t) != 0 {
			t.Errorf("%d parts are left of %s", s.parts(t), text)
		}
	})
}

// What is not about new findings does not wait for a digest. It leads to its scan.
func TestHeldClosesDoNotWait(t *testing.T) {
	eachMail(t, "ada@acme.test", func(t *testing.T, s caller, m *mailbox, rule int64) {
		s.setMail(t, rule, `,"send_held_closes":true,`+weekly)
		var names []string
		for i := range 12 {
			names = append(names, fmt.Sprintf("f%d", i))
		}
		s.Upload(t, "acme/web", "main", report(names...))
		s.Upload(t, "acme/web", "main", report())
		s.waitState(t, "DELIVERED", 1)
		subject, text := m.taken()[0].read(t)
		if subject != "12 closes are held in acme/web (main)" || !strings.Contains(text, "/console/acme/scans/2\n\n-- \nYou get this because of notification rule 1") || s.parts(t) != 1 {
			t.Errorf("%q: %s", subject, text)
		}
	})
}
