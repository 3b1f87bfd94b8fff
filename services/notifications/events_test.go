package notifications_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// A scan sends its new findings, then itself.
func TestScanIsDelivered(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		to := newReceiver(t, nil)
		s.rule(t, "everything", to.URL, "")
		s.Upload(t, "acme/web", "main", report("a", "b"))
		got := to.waitFor(2)
		if !slices.Equal(got[0].findings, []string{"app/a.go", "app/b.go"}) || got[1].scan == 0 {
			t.Errorf("got %+v", got)
		}
		for _, part := range []string{`"check_id":"go.sqli","path":"app/a.go","line":1,"column":2,`, `"severity":2,"index":0,`,
			`"message":"Query built from a <&> \u00fc"`, `"ref":"refs/heads/main","repo_name":"acme/web"`, `"semgrep.policy":{"id":1,"name":"Monitor","slug":"rule-board-audit"}`} {
			if !strings.Contains(got[0].body, part) {
				t.Errorf("no %s in %s", part, got[0].body)
			}
		}
		for _, part := range []string{fmt.Sprintf(`{"semgrep_scan":{"deployment_id":%d,"enabled_products":["sast"],"exit_code":0,"hashed_id":"`, s.DeploymentID),
			`"stats":{"created":2}`, `"tenant_name":"acme"}}`} {
			if !strings.Contains(got[1].body, part) {
				t.Errorf("no %s in %s", part, got[1].body)
			}
		}
		// The ledger holds the signed bytes.
		var listed []delivered
		apitest.Eventually(t, "both are delivered", func() bool {
			listed = s.ledger(t, "?state=DELIVERY_STATE_DELIVERED")
			return len(listed) == 2
		})
		var one struct {
			Payload  string
			Delivery delivered
			Attempts []struct{ Status int }
		}
		decode(t, s.Body(t, s.Token, http.MethodGet, s.deliveries("/"+listed[1].ID), "", 200), &one)
		if one.Payload != got[0].body || one.Delivery.EventID != got[0].id || len(one.Attempts) != 1 || one.Attempts[0].Status != 200 {
			t.Errorf("ledger %+v, received %+v", one, got[0])
		}
	})
}

// A finding is announced once: not again when it moves, on another ref, when it is reopened, or after triage.
func TestFindingIsAnnouncedOnce(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		to := newReceiver(t, nil)
		s.Upload(t, "acme/web", "main", report("old")) // no rule exists yet
		s.rule(t, "findings", to.URL, `,"send_scan_completion":true`)
		s.Upload(t, "acme/web", "main", report("old", "a"))
		s.Upload(t, "acme/web", "refs/pull/7/merge", report("a", "b"))
		s.Upload(t, "acme/web", "main", report("x", "a", "old", "b"))
		s.Upload(t, "acme/web", "main", report())
		s.Upload(t, "acme/web", "main", report("a", "b"))
		s.Upload(t, "acme/api", "main", report("a")) // another project
		var announced []string
		for _, m := range to.waitFor(6 + 4) {
			announced = append(announced, m.findings...)
		}
		slices.Sort(announced)
		if want := []string{"app/a.go", "app/a.go", "app/b.go", "app/x.go"}; !slices.Equal(announced, want) {
			t.Errorf("announced %v, want %v", announced, want)
		}
		if n := s.Store.Reader.NotificationEvent.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d events are left", n)
		}
	})
}

// Suppressed findings, secrets and dependencies are not announced; scans always are.
func TestWhatIsNotAnnounced(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		to := newReceiver(t, nil)
		s.rule(t, "everything", to.URL, "")
		muted := strings.Replace(string(report("a")), `"ruleId"`, `"suppressions":[{"kind":"inSource"}],"ruleId"`, 1)
		s.Upload(t, "acme/web", "main", []byte(muted))
		s.Upload(t, "acme/web", "main", report("b"), "product", "secrets")
		s.Upload(t, "acme/web", "main", report("c"), "product", "sca")
		s.Upload(t, "acme/web", "main", report())
		for _, m := range to.waitFor(4) {
			if m.scan == 0 {
				t.Errorf("announced: %s", m.body)
			}
		}
	})
}

// Findings are sent in messages of at most a hundred, in order, and the scan after all of them, even after failures.
func TestManyFindingsBeforeTheirScan(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		failed := map[string]bool{}
		to := newReceiver(t, nil)
		to.answer = func(m message) int {
			to.mu.Lock()
			defer to.mu.Unlock()
			if m.scan == 0 && !failed[m.id] {
				failed[m.id] = true
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		}
		s.rule(t, "everything", to.URL, "")
		var names []string
		for i := range 1250 {
			names = append(names, fmt.Sprintf("f%04d", i))
		}
		s.Upload(t, "acme/web", "main", report(names...))
		got := to.waitFor(14)
		if got[13].scan == 0 {
			t.Errorf("the last message is %s", got[13].id)
		}
		slices.SortFunc(got[:13], func(a, b message) int { return int(a.numeric[0] - b.numeric[0]) })
		var all []string
		for _, m := range got[:13] {
			if len(m.findings) > 100 || m.scan != 0 {
				t.Errorf("message of %d findings, scan %d", len(m.findings), m.scan)
			}
			all = append(all, m.findings...)
		}
		if len(all) != 1250 || !slices.IsSorted(all) {
			t.Errorf("%d findings, sorted %v", len(all), slices.IsSorted(all))
		}
	})
}

func TestPolicyFilter(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		monitored, blocked := newReceiver(t, nil), newReceiver(t, nil)
		s.rule(t, "monitored", monitored.URL, `,"policy_slugs":["rule-board-audit"],"send_scan_completion":false`)
		s.rule(t, "blocked", blocked.URL, `,"policy_slugs":["rule-board-block"]`)
		s.rule(t, "disabled", blocked.URL, `,"is_enabled":false`)
		s.Upload(t, "acme/web", "main", report("a"))
		if got := monitored.waitFor(1); len(got[0].findings) != 1 {
			t.Errorf("got %+v", got)
		}
		if got := blocked.waitFor(1); got[0].scan == 0 { // scans are not filtered
			t.Errorf("got %+v", got)
		}
		if n := s.Store.Reader.Delivery.Query().CountX(s.System(t)); n != 2 {
			t.Errorf("%d deliveries, want 2", n)
		}
	})
}

// Without an enabled rule nothing is written.
func TestNoRulesNoEvents(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.rule(t, "disabled", "https://hooks.acme.test/", `,"is_enabled":false`)
		other := s.AddTenant(t, "globex")
		theirs := caller{s.Server, ""}
		theirs.Server.Tenant, other = other, s.Tenant
		theirs.rule(t, "theirs", "https://hooks.globex.test/", "")
		s.Server.Tenant = other
		s.Upload(t, "acme/web", "main", report("a"))
		if n := s.Store.Reader.NotificationEvent.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d events", n)
		}
	})
}
