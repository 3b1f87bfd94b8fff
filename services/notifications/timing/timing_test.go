package timing

import (
	"strings"
	"testing"
	"time"

	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

// 2026-05-01 is a Friday. Clocks in Berlin go ahead on 29 March and back on 25 October, both Sundays.
func TestQuiet(t *testing.T) {
	night := &notificationsv1.QuietHours{From: "20:00", Until: "07:30"}
	lunch := &notificationsv1.QuietHours{From: "12:00", Until: "13:00"}
	weekends := &notificationsv1.QuietHours{From: "20:00", Until: "07:30", Weekends: true}
	berlin := &notificationsv1.QuietHours{From: "20:00", Until: "07:30", TimeZone: "Europe/Berlin"}
	skipped := &notificationsv1.QuietHours{From: "02:15", Until: "02:45", TimeZone: "Europe/Berlin"}
	all := &notificationsv1.QuietHours{From: "00:00", Until: "23:59", Weekends: true}
	for name, c := range map[string]struct {
		hours     *notificationsv1.QuietHours
		at, until string // until is empty if it is not quiet
	}{
		"before the night":               {night, "2026-05-01T19:59:59Z", ""},
		"the night begins":               {night, "2026-05-01T20:00:00Z", "2026-05-02T07:30:00Z"},
		"after midnight":                 {night, "2026-05-02T03:00:00Z", "2026-05-02T07:30:00Z"},
		"the night ends":                 {night, "2026-05-02T07:30:00Z", ""},
		"before noon":                    {lunch, "2026-05-01T11:59:59Z", ""},
		"noon":                           {lunch, "2026-05-01T12:30:00Z", "2026-05-01T13:00:00Z"},
		"Friday to Monday":               {weekends, "2026-05-01T21:00:00Z", "2026-05-04T07:30:00Z"},
		"Saturday at noon":               {weekends, "2026-05-02T12:00:00Z", "2026-05-04T07:30:00Z"},
		"Sunday at midnight":             {weekends, "2026-05-03T00:00:00Z", "2026-05-04T07:30:00Z"},
		"Monday":                         {weekends, "2026-05-04T08:00:00Z", ""},
		"Saturday without weekends":      {night, "2026-05-02T12:00:00Z", ""},
		"evening in Berlin":              {berlin, "2026-05-01T18:00:00Z", "2026-05-02T05:30:00Z"},
		"before the evening in Berlin":   {berlin, "2026-05-01T17:59:00Z", ""},
		"the night when clocks go ahead": {berlin, "2026-03-28T19:30:00Z", "2026-03-29T05:30:00Z"},
		"the night when clocks go back":  {berlin, "2026-10-24T19:30:00Z", "2026-10-25T06:30:00Z"},
		"a time that does not exist":     {skipped, "2026-03-29T01:20:00Z", "2026-03-29T01:45:00Z"},
		"an unknown zone is UTC":         {&notificationsv1.QuietHours{From: "20:00", Until: "07:30", TimeZone: "Mars/Olympus"}, "2026-05-01T20:00:00Z", "2026-05-02T07:30:00Z"},
		"all but a minute":               {all, "2026-05-01T00:00:00Z", "2026-05-01T23:59:00Z"},
		"all of the weekend":             {all, "2026-05-02T00:00:00Z", "2026-05-04T23:59:00Z"},
		"none":                           {nil, "2026-05-01T20:00:00Z", ""},
	} {
		t.Run(name, func(t *testing.T) {
			until, quiet := Quiet(c.hours, at(t, c.at))
			if quiet != (c.until != "") || quiet && !until.Equal(at(t, c.until)) {
				t.Errorf("quiet %v until %s, want %s", quiet, until.UTC().Format(time.RFC3339), c.until)
			}
		})
	}
}

func TestNextDigest(t *testing.T) {
	const daily = notificationsv1.DigestCadence_DIGEST_CADENCE_DAILY
	for name, c := range map[string]struct {
		schedule    *notificationsv1.DigestSchedule
		after, next string
	}{
		"hourly":               {&notificationsv1.DigestSchedule{Cadence: hourly}, "2026-05-04T07:59:59Z", "2026-05-04T08:00:00Z"},
		"hourly, on the hour":  {&notificationsv1.DigestSchedule{Cadence: hourly}, "2026-05-04T08:00:00Z", "2026-05-04T09:00:00Z"},
		"hourly in India":      {&notificationsv1.DigestSchedule{Cadence: hourly, TimeZone: "Asia/Kolkata"}, "2026-05-04T08:00:00Z", "2026-05-04T08:30:00Z"},
		"daily":                {&notificationsv1.DigestSchedule{Cadence: daily, Hour: 8}, "2026-05-04T08:00:00Z", "2026-05-05T08:00:00Z"},
		"weekly, Monday":       {&notificationsv1.DigestSchedule{Cadence: weekly, Hour: 6}, "2026-05-05T00:00:00Z", "2026-05-11T06:00:00Z"},
		"weekly, Sunday":       {&notificationsv1.DigestSchedule{Cadence: weekly, Weekday: 7}, "2026-05-05T00:00:00Z", "2026-05-10T00:00:00Z"},
		"the clock goes ahead": {&notificationsv1.DigestSchedule{Cadence: daily, Hour: 2, TimeZone: "Europe/Berlin"}, "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
	} {
		if err := CheckDigest(c.schedule); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if next := NextDigest(c.schedule, at(t, c.after)); !next.Equal(at(t, c.next)) {
			t.Errorf("%s: next is %s, want %s", name, next.UTC(), c.next)
		}
	}
}

func TestChecksRefuse(t *testing.T) {
	const daily = notificationsv1.DigestCadence_DIGEST_CADENCE_DAILY
	for want, err := range map[string]error{
		"weekday is for":              CheckDigest(&notificationsv1.DigestSchedule{Cadence: daily, Weekday: 2}),
		"hour is for":                 CheckDigest(&notificationsv1.DigestSchedule{Cadence: hourly, Hour: 2}),
		"time_zone must be":           CheckDigest(&notificationsv1.DigestSchedule{Cadence: daily, TimeZone: "Local"}),
		`got "Mars/Olympus"`:          CheckQuiet(&notificationsv1.QuietHours{From: "20:00", Until: "07:00", TimeZone: "Mars/Olympus"}),
		"until must be another time":  CheckQuiet(&notificationsv1.QuietHours{From: "20:00", Until: "20:00"}),
		`such as Europe/Berlin, got `: CheckQuiet(&notificationsv1.QuietHours{From: "20:00", Until: "07:00", TimeZone: "../etc/passwd"}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}
