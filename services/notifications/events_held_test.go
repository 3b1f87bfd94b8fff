package notifications_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/notifications/payload"
)

// Rules that ask for it get one message about the closes that a scan held, in addition to the scan.
func TestHeldClosesAreAnnounced(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		asked, others := newReceiver(t, nil), newReceiver(t, nil)
		s.rule(t, "asked", asked.URL, `,"send_scan_completion":false,"send_held_closes":true`)
		s.rule(t, "others", others.URL, `,"policy_slugs":["rule-board-block"]`)
		var names []string
		for i := range 12 {
			names = append(names, fmt.Sprintf("f%d", i))
		}
		s.Upload(t, "acme/web", "main", report(names...))
		s.Upload(t, "acme/web", "main", report())
		s.Upload(t, "acme/web", "main", report()) // confirms; no message
		body := ""
		for _, m := range asked.waitFor(2) { // the findings, and the held closes
			if len(m.findings) == 0 {
				body = string(m.body)
			}
		}
		for _, part := range []string{`{"palisade_held_closes":{"deployment_id":1,"id":1,"project_id":1,"project":"acme/web","ref":"refs/heads/main","tool":"`,
			`"scan_id":2,"findings":12,"open":12,"title":"12 closes are held in acme/web (main)"`} {
			if !strings.Contains(body, part) {
				t.Errorf("no %s in %s", part, body)
			}
		}
		title, text := payload.Describe([]byte(body))
		if title != "12 closes are held in acme/web (main)" || !strings.Contains(text, "palisade closes confirm 1\n") {
			t.Errorf("as text: %s\n%s", title, text)
		}
		others.waitFor(3) // the scans
		if list := s.ledger(t, "?kind=DELIVERY_KIND_HELD_CLOSES"); len(list) == 0 {
			t.Errorf("ledger: %v", list)
		}
		rules := s.Body(t, s.Token, "POST", s.actions("/list"), "{}", 200)
		if strings.Count(rules, `"send_held_closes":true`) != 1 || strings.Count(rules, "send_held_closes") != 1 {
			t.Errorf("rules %s", rules)
		}
	})
}
