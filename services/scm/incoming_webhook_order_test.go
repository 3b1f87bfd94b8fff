package scm_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/webhookevent"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// commandAt is command for a comment with a given time.
func commandAt(t testing.TB, at time.Time, id int, text string) string {
	t.Helper()
	return eventAt(t, at, "github_comment", "/fp the input is a constant", text, "5102", fmt.Sprint(id))
}

const commentEvent = "pull_request_review_comment"

// TestLateClosedEvent: a request was closed, reopened and scanned before the host sends the close event.
func TestLateClosedEvent(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		now := time.Now()
		r.gitHub(t, "pull_request", eventAt(t, now.Add(-10*time.Minute), "github_pull_request"), 200, `{"status":"accepted"}`)
		s.settle(t)
		wantList(t, "the scan wins", s.stands(t, s.Tenant), mainRef+" open", mainRef+" open", pullRef+" open", pullRef+" open")
		r.gitHub(t, "pull_request", eventAt(t, time.Now().Add(2*time.Minute), "github_pull_request"), 200, `{"status":"accepted"}`)
		s.settle(t)
		wantList(t, "the end wins", s.stands(t, s.Tenant), mainRef+" open", mainRef+" open", pullRef+" removed", pullRef+" removed")
	})
}

// TestEventsOfTheFuture: if a host's clock is wrong by more than a few minutes, events get the time of arrival.
func TestEventsOfTheFuture(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, r := s.hooked(t)
		before := store.Now()
		r.gitHub(t, "pull_request", eventAt(t, time.Now().Add(time.Hour), "github_pull_request"), 200, `{"status":"accepted"}`)
		r.gitHub(t, "pull_request", eventAt(t, time.Now().Add(4*time.Minute), "github_pull_request"), 200, `{"status":"accepted"}`)
		s.settle(t)
		rows := s.Store.Reader.WebhookEvent.Query().Order(ent.Asc(webhookevent.FieldID)).AllX(s.System(t))
		if at := rows[0].HappenedAt; at < before || at > store.Now() || at != rows[0].ReceivedAt {
			t.Errorf("an event of the next hour happened at %s", store.Time(at))
		}
		if at := store.Time(rows[1].HappenedAt); time.Until(at) < 3*time.Minute {
			t.Errorf("an event of four minutes ahead happened at %s", at)
		}
	})
}

// TestLateCommands arrive after newer ones and after a person's decision: the newest decision stays.
func TestLateCommands(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r := s.hooked(t)
		now := time.Now()
		send := func(at time.Time, id int, text, reply string) {
			t.Helper()
			r.gitHub(t, commentEvent, commandAt(t, at, id, text), 200, `{"status":"accepted"}`)
			s.settle(t)
			replies := h.Replies(thread)
			if len(replies) != id || !strings.Contains(replies[id-1].Body, reply) {
				t.Fatalf("replies %+v, want %q", replies, reply)
			}
		}
		send(now.Add(-2*time.Minute), 1, "/ar behind the VPN", "was ignored as acceptable risk at the request of octavia")
		const accepted = " ignored acceptable_risk: behind the VPN"
		want := []string{mainRef + accepted, mainRef + " open", pullRef + accepted, pullRef + " open"}
		send(now.Add(-3*time.Minute), 2, "/open", "Nothing was changed: finding")
		if got := h.Replies(thread)[1].Body; !strings.Contains(got, "has been decided about after this comment was written") {
			t.Errorf("reply %q", got)
		}
		wantList(t, "after an older command", s.stands(t, s.Tenant), want...)
		// Written after the first command, but before it was processed.
		send(now.Add(-time.Minute), 3, "/open", "was reopened at the request of octavia")
		const open = " open: behind the VPN"
		wantList(t, "after a younger command", s.stands(t, s.Tenant), mainRef+open, mainRef+" open", pullRef+open, pullRef+" open")

		id := s.Store.Reader.Finding.Query().Where(finding.Ref(pullRef)).Order(ent.Asc(finding.FieldID)).FirstIDX(s.System(t))
		body := fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":"reviewing"}`, id)
		s.do(t, http.MethodPost, "/api/v1/deployments/acme/triage", body, 200)
		send(now.Add(-30*time.Second), 4, "/fp constant", "Nothing was changed: finding")
		const reviewing = " reviewing: behind the VPN"
		wantList(t, "after a person's decision", s.stands(t, s.Tenant), mainRef+reviewing, mainRef+" open", pullRef+reviewing, pullRef+" open")
		send(time.Now(), 5, "/fp constant", "was ignored as false positive at the request of octavia")
	})
}

// TestEventsInOrder: two commands wait because the host is down. The older one arrived last, and is processed first.
func TestEventsInOrder(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r := s.hooked(t)
		now := time.Now()
		h.Answer(hosttest.Status(http.StatusBadGateway, "<html>"))
		r.gitHub(t, commentEvent, commandAt(t, now.Add(-time.Minute), 1, "/ar behind the VPN"), 200, `{"status":"accepted"}`)
		r.eventually(t, "a first try", func(row *ent.WebhookEvent) bool { return row.Attempts > 0 })
		r.gitHub(t, commentEvent, commandAt(t, now.Add(-2*time.Minute), 2, "/open"), 200, `{"status":"accepted"}`)
		h.Answer(nil)
		s.settle(t)
		replies := h.Replies(thread)
		if len(replies) != 2 {
			t.Fatalf("replies %+v", replies)
		}
		wantList(t, "events", s.events(t), "triage_spread open  octavia", "triaged open  octavia",
			"triage_spread ignored acceptable_risk octavia", "triaged ignored acceptable_risk octavia")
	})
}

// TestGivenUp: an event fails permanently; a redelivery by the host is processed again.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r := s.hooked(t)
		body := command(t, 1, "/ar behind the VPN")
		h.Answer(hosttest.Status(http.StatusUnauthorized, `{"message":"Bad credentials"}`))
		r.gitHub(t, commentEvent, body, 200, `{"status":"accepted"}`)
		r.eventually(t, "the end", func(row *ent.WebhookEvent) bool { return row.Failed && row.DueAt == nil && row.Event == nil })
		h.Answer(nil)
		r.gitHub(t, commentEvent, body, 200, `{"status":"accepted"}`)
		s.settle(t)
		r.gitHub(t, commentEvent, body, 200, `{"status":"duplicate"}`)
		if replies := h.Replies(thread); len(replies) != 1 {
			t.Errorf("replies %+v", replies)
		}
	})
}
