// Package cadence computes when a scheduled report is due, and which period it is about.
package cadence

import (
	"errors"
	"fmt"
	"time"

	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

// Check finds what the rules of the proto cannot. The error is about a field of the schedule, and for its author.
func Check(s *reportingv1.ReportSchedule) error {
	if _, err := location(s); err != nil {
		return fmt.Errorf("time_zone must be the name of a time zone such as Europe/Berlin, got %s", apierr.Quote(s.GetTimeZone()))
	}
	if s.GetWeekday() != 0 && s.GetCadence() != reportingv1.ReportCadence_REPORT_CADENCE_WEEKLY {
		return errors.New("weekday is for REPORT_CADENCE_WEEKLY only")
	}
	if s.GetFilters().GetTimePeriod() != nil || s.GetFilters().GetTimeBucketSize() != reportingv1.TimeBucketSize_TIME_BUCKET_SIZE_UNSPECIFIED {
		return errors.New("filters must have no timePeriod and no timeBucketSize: the cadence decides")
	}
	return nil
}

// location is the schedule's time zone. "Local" would be the server's, which is not the author's.
func location(s *reportingv1.ReportSchedule) (*time.Location, error) {
	if s.GetTimeZone() == "Local" {
		return nil, errors.New("not a time zone")
	}
	return time.LoadLocation(s.GetTimeZone())
}

// zone is the time zone of a checked schedule.
func zone(s *reportingv1.ReportSchedule) *time.Location {
	loc, err := location(s)
	if err != nil { // a later system without this zone
		return time.UTC
	}
	return loc
}

// Next is the first time after another at which the report is due.
func Next(s *reportingv1.ReportSchedule, after time.Time) time.Time {
	loc := zone(s)
	local := after.In(loc)
	for day := 0; ; day++ { // at most 32 days
		due := time.Date(local.Year(), local.Month(), local.Day()+day, int(s.GetHour()), 0, 0, 0, loc)
		if due.After(after) && onDay(s, due) {
			return due
		}
	}
}

func onDay(s *reportingv1.ReportSchedule, due time.Time) bool {
	switch s.GetCadence() {
	case reportingv1.ReportCadence_REPORT_CADENCE_WEEKLY:
		return due.Weekday() == time.Weekday(max(s.GetWeekday(), 1)%7)
	case reportingv1.ReportCadence_REPORT_CADENCE_MONTHLY:
		return due.Day() == 1
	}
	return true
}

// Period is the period that a report is about: the day, the seven days or the month that ended with the last midnight.
func Period(s *reportingv1.ReportSchedule, at time.Time) (since, until time.Time) {
	loc := zone(s)
	year, month, day := at.In(loc).Date()
	until = time.Date(year, month, day, 0, 0, 0, 0, loc)
	switch s.GetCadence() {
	case reportingv1.ReportCadence_REPORT_CADENCE_WEEKLY:
		return time.Date(year, month, day-7, 0, 0, 0, 0, loc), until
	case reportingv1.ReportCadence_REPORT_CADENCE_MONTHLY:
		until = time.Date(year, month, 1, 0, 0, 0, 0, loc)
		return time.Date(year, month-1, 1, 0, 0, 0, 0, loc), until
	}
	return time.Date(year, month, day-1, 0, 0, 0, 0, loc), until
}
