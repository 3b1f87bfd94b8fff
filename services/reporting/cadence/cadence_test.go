package cadence

import (
	"strings"
	"testing"
	"time"

	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestNextAndPeriod(t *testing.T) {
	const (
		daily, weekly, monthly = reportingv1.ReportCadence_REPORT_CADENCE_DAILY, reportingv1.ReportCadence_REPORT_CADENCE_WEEKLY, reportingv1.ReportCadence_REPORT_CADENCE_MONTHLY
	)
	for name, c := range map[string]struct {
		schedule                  *reportingv1.ReportSchedule
		after, next, since, until string
	}{
		"daily, later today":   {&reportingv1.ReportSchedule{Cadence: daily, Hour: 8}, "2026-05-04T07:59:59Z", "2026-05-04T08:00:00Z", "2026-05-03T00:00:00Z", "2026-05-04T00:00:00Z"},
		"daily, tomorrow":      {&reportingv1.ReportSchedule{Cadence: daily, Hour: 8}, "2026-05-04T08:00:00Z", "2026-05-05T08:00:00Z", "2026-05-04T00:00:00Z", "2026-05-05T00:00:00Z"},
		"weekly, Monday":       {&reportingv1.ReportSchedule{Cadence: weekly, Hour: 6}, "2026-05-05T00:00:00Z", "2026-05-11T06:00:00Z", "2026-05-04T00:00:00Z", "2026-05-11T00:00:00Z"},
		"weekly, Sunday":       {&reportingv1.ReportSchedule{Cadence: weekly, Weekday: 7}, "2026-05-05T00:00:00Z", "2026-05-10T00:00:00Z", "2026-05-03T00:00:00Z", "2026-05-10T00:00:00Z"},
		"monthly":              {&reportingv1.ReportSchedule{Cadence: monthly, Hour: 7}, "2026-12-01T07:00:00Z", "2027-01-01T07:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		"monthly in a zone":    {&reportingv1.ReportSchedule{Cadence: monthly, Hour: 0, TimeZone: "Asia/Tokyo"}, "2026-05-04T00:00:00Z", "2026-05-31T15:00:00Z", "2026-04-30T15:00:00Z", "2026-05-31T15:00:00Z"},
		"the clock goes ahead": {&reportingv1.ReportSchedule{Cadence: daily, Hour: 2, TimeZone: "Europe/Berlin"}, "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z", "2026-03-27T23:00:00Z", "2026-03-28T23:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Check(c.schedule); err != nil {
				t.Fatal(err)
			}
			next := Next(c.schedule, at(t, c.after))
			if !next.Equal(at(t, c.next)) {
				t.Errorf("next is %s, want %s", next.UTC(), c.next)
			}
			since, until := Period(c.schedule, next)
			if !since.Equal(at(t, c.since)) || !until.Equal(at(t, c.until)) {
				t.Errorf("the period is %s to %s, want %s to %s", since.UTC(), until.UTC(), c.since, c.until)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	daily := reportingv1.ReportCadence_REPORT_CADENCE_DAILY
	for want, s := range map[string]*reportingv1.ReportSchedule{
		"time_zone": {Cadence: daily, TimeZone: "Mars/Olympus"},
		`"Local"`:   {Cadence: daily, TimeZone: "Local"},
		"../":       {Cadence: daily, TimeZone: "../etc/passwd"},
		"weekday":   {Cadence: daily, Weekday: 2},
		"filters":   {Cadence: daily, Filters: &reportingv1.ReportFilters{TimePeriod: &reportingv1.TimePeriod{}}},
	} {
		if err := Check(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q in it", s, err, want)
		}
	}
}
