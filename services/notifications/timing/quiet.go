// Package timing computes when the rules of notifications send: not in their quiet hours, and digests on a schedule.
package timing

import (
	"errors"
	"fmt"
	"time"

	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

// clock is the form of times of the day.
const clock = "15:04"

// CheckQuiet finds what the rules of the proto cannot. The error is about a field, and for its author.
func CheckQuiet(q *notificationsv1.QuietHours) error {
	if err := checkZone(q.GetTimeZone()); err != nil {
		return err
	}
	if q.GetFrom() == q.GetUntil() {
		return fmt.Errorf("until must be another time than from, %s: quiet hours end", q.GetFrom())
	}
	return nil
}

// span is a quiet time: at its begin, and no more at its end.
type span struct{ begin, end time.Time }

// Quiet reports whether a time is in quiet hours, and when they end. Hours that follow each other without a break, such
// as a night and a weekend, count as one. Without hours no time is quiet.
func Quiet(q *notificationsv1.QuietHours, at time.Time) (until time.Time, quiet bool) {
	if q == nil {
		return at, false
	}
	until = at
	for range maxSpans {
		next := endOf(q, until)
		if !next.After(until) {
			break
		}
		until, quiet = next, true
	}
	return until, quiet
}

// maxSpans is how many spans may follow each other: a night, a weekend and a night, and some more where clocks change.
const maxSpans = 8

// endOf is the end of a span that has a time, or the time itself.
func endOf(q *notificationsv1.QuietHours, at time.Time) time.Time {
	for _, s := range spansAround(q, at) {
		if !at.Before(s.begin) && at.Before(s.end) {
			return s.end
		}
	}
	return at
}

// spansAround are the spans that may have a time: nights of its day and of the day before, and its weekend.
func spansAround(q *notificationsv1.QuietHours, at time.Time) []span {
	loc := zone(q.GetTimeZone())
	year, month, day := at.In(loc).Date()
	from, until := minutes(q.GetFrom()), minutes(q.GetUntil())
	if until <= from {
		until += 24 * 60
	}
	moment := func(day, minute int) time.Time { return time.Date(year, month, day, 0, minute, 0, 0, loc) }
	spans := []span{{moment(day-1, from), moment(day-1, until)}, {moment(day, from), moment(day, until)}}
	if weekday := at.In(loc).Weekday(); q.GetWeekends() && (weekday == time.Saturday || weekday == time.Sunday) {
		saturday := day - int(weekday+1)%7
		spans = append(spans, span{moment(saturday, 0), moment(saturday+2, 0)})
	}
	return spans
}

// minutes is the minute of the day of a checked time.
func minutes(text string) int {
	t, _ := time.Parse(clock, text)
	return t.Hour()*60 + t.Minute()
}

// checkZone refuses what is not the name of a time zone. "Local" would be the server's, which is not the author's.
func checkZone(name string) error {
	_, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return errors.New("time_zone must be the name of a time zone such as Europe/Berlin, got " + apierr.Quote(name))
	}
	return nil
}

// zone is a checked time zone.
func zone(name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil { // a later system without this zone
		return time.UTC
	}
	return loc
}
