package notifications_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
)

// quietNow are quiet hours that began an hour ago and end in two.
func quietNow() (hours string, end time.Time) {
	now := time.Now().UTC()
	end = now.Add(2 * time.Hour).Truncate(time.Minute)
	return fmt.Sprintf(`"quiet_hours":{"from":%q,"until":%q}`, now.Add(-time.Hour).Format("15:04"), end.Format("15:04")), end
}

// In quiet hours messages wait for the end, and are not given up earlier for it. A test is sent. A rule that is no
// longer quiet sends at once.
func TestQuietHours(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		hook := newReceiver(t, nil)
		hours, end := quietNow()
		id := s.rule(t, "hook", hook.URL, `,"send_scan_completion":false,`+hours)
		s.Upload(t, "acme/web", "main", report("a"))
		var waiting struct {
			Delivery struct{ State, NextAttemptAt, GiveUpAt, CreatedAt string }
		}
		apitest.Eventually(t, "the message waits for the end", func() bool {
			list := s.ledger(t, "")
			if len(list) == 0 {
				return false
			}
			decode(t, s.Body(t, s.Token, http.MethodGet, s.deliveries("/"+list[0].ID), "", 200), &waiting)
			return parseTime(t, waiting.Delivery.NextAttemptAt).Equal(end)
		})
		given, created := parseTime(t, waiting.Delivery.GiveUpAt), parseTime(t, waiting.Delivery.CreatedAt)
		if waiting.Delivery.State != "DELIVERY_STATE_PENDING" || given.Sub(created) < 24*time.Hour+100*time.Minute || len(hook.seen()) != 0 {
			t.Errorf("%+v, %d sent", waiting, len(hook.seen()))
		}
		if got := s.Body(t, s.Token, http.MethodPost, s.actions(fmt.Sprintf("/%d/test", id)), "", 200); !strings.Contains(got, `"success":true`) || len(hook.taken()) != 1 {
			t.Errorf("the test: %s", got)
		}
		again := s.Body(t, s.Token, http.MethodPut, s.actions(fmt.Sprintf("/%d", id)), fmt.Sprintf(`{"notificationRule":{"name":"renamed","channel":"webhook","config":{"url":%q},%s}}`, hook.URL, hours), 200)
		if !strings.Contains(again, `"quiet_hours":{"from":"`) || s.ledger(t, "")[0].State != "DELIVERY_STATE_PENDING" {
			t.Errorf("still quiet: %s", again)
		}
		s.Body(t, s.Token, http.MethodPut, s.actions(fmt.Sprintf("/%d", id)), fmt.Sprintf(`{"notificationRule":{"name":"loud","channel":"webhook","config":{"url":%q}}}`, hook.URL), 200)
		hook.waitFor(2)
	})
}

func parseTime(t testing.TB, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestTimesAreRefused(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		for fields, want := range map[string]string{
			`"quiet_hours":{"from":"20:00","until":"20:00"}`:                                                     "quiet_hours: until must be another time",
			`"quiet_hours":{"from":"8pm","until":"20:00"}`:                                                       "notificationRule.quiet_hours.from",
			`"quiet_hours":{"from":"20:00","until":"07:00","time_zone":"Mars/Olympus"}`:                          "quiet_hours: time_zone must be the name of a time zone",
			`"digest":{"cadence":"DIGEST_CADENCE_DAILY","hour":8}`:                                               "digest is for channels that people read, such as e-mail and chats, not for CHANNEL_WEBHOOK",
			`"channel":"email","config":{"to":"a@b.test"},"digest":{}`:                                           "notificationRule.digest.cadence",
			`"channel":"email","config":{"to":"a@b.test"},"digest":{"cadence":"DIGEST_CADENCE_HOURLY","hour":8}`: "digest: hour is for",
			`"channel":"chat_webhook","config":{"url":"https://chat.acme.test/x","format":"irc"}`:                "config.format must be one of custom, discord, google-chat, mattermost, teams",
			`"channel":"chat_webhook","config":{"url":"https://discord.com/api/***","format":"discord"}`:         "config.url must be the whole URL",
		} {
			if !strings.Contains(fields, `"channel"`) {
				fields = `"channel":"webhook","config":{"url":"https://hooks.acme.test/x"},` + fields
			}
			if got := s.Body(t, s.Token, http.MethodPost, s.actions(""), `{"notificationRule":{"name":"x",`+fields+`}}`, 400); !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want %q", fields, got, want)
			}
		}
	})
}
