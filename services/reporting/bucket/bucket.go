// Package bucket divides the period of a report into days, weeks or months.
package bucket

import (
	"fmt"
	"time"
)

// Size is the length of the buckets of a report.
type Size int

// Sizes. Days begin at midnight UTC, weeks on Mondays, months on their first day.
const (
	Day Size = iota + 1
	Week
	Month
)

// Limits of a report.
const (
	// DefaultLength is the default length of a report.
	DefaultLength = 30 * 24 * time.Hour
	// Max is the maximum number of buckets.
	Max = 400
)

// String returns the word for error texts.
func (s Size) String() string {
	switch s {
	case Day:
		return "day"
	case Week:
		return "week"
	case Month:
		return "month"
	}
	return fmt.Sprintf("size %d", int(s))
}

// Period is the time from Since (inclusive) to Until (exclusive).
type Period struct{ Since, Until time.Time }

// Of returns the period of a request. Without bounds it is the last 30 days before now. Without until it ends now, and
// without since it is the 30 days before until. The zero time is an absent bound. Times are cut to microseconds, as in
// the store. The error describes invalid bounds.
func Of(since, until, now time.Time) (Period, error) {
	if until.IsZero() {
		until = now
	}
	if since.IsZero() {
		since = until.Add(-DefaultLength)
	}
	p := Period{since.UTC().Truncate(time.Microsecond), until.UTC().Truncate(time.Microsecond)}
	if !p.Since.Before(p.Until) {
		return Period{}, fmt.Errorf("since must be before until, got %s and %s", show(p.Since), show(p.Until))
	}
	return p, nil
}

// Length is the length of the period; the maximum is 292 years.
func (p Period) Length() time.Duration { return p.Until.Sub(p.Since) }

// Contains reports whether t is in the period.
func (p Period) Contains(t time.Time) bool { return !t.Before(p.Since) && t.Before(p.Until) }

// Previous is the period of the same length that ends where p begins.
func (p Period) Previous() Period { return Period{p.Since.Add(-p.Length()), p.Since} }

// Size is the default bucket size: days up to 45 days, weeks up to 26 weeks, else months.
func (p Period) Size() Size {
	const day = 24 * time.Hour
	switch length := p.Length(); {
	case length <= 45*day:
		return Day
	case length <= 26*7*day:
		return Week
	}
	return Month
}

// Make divides the time from since to until into contiguous buckets. They begin at UTC days, weeks or months, except
// the first, which begins at since; the last ends at until. So the numbers of all buckets add up to the period's. It is
// an error if since is not before until, or if there are more than [Max] buckets.
func Make(since, until time.Time, size Size) ([]Period, error) {
	since, until = since.UTC(), until.UTC()
	if !since.Before(until) {
		return nil, fmt.Errorf("since must be before until, got %s and %s", show(since), show(until))
	}
	var periods []Period
	for since.Before(until) {
		if len(periods) == Max {
			return nil, fmt.Errorf("a report has at most %d buckets: choose a shorter period or larger buckets than a %s", Max, size)
		}
		end := Next(since, size)
		if end.After(until) {
			end = until
		}
		periods = append(periods, Period{since, end})
		since = end
	}
	return periods, nil
}

// Next is the start of the first bucket after t.
func Next(t time.Time, size Size) time.Time {
	year, month, day := t.UTC().Date()
	switch size {
	case Month:
		month, day = month+1, 1
	case Week:
		day += 7 - (int(t.UTC().Weekday())+6)%7
	default:
		day++
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// Index returns which of the contiguous periods contains t; -1 if none does.
func Index(periods []Period, t time.Time) int {
	low, high := 0, len(periods)
	for low < high {
		if middle := (low + high) / 2; t.Before(periods[middle].Until) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if low == len(periods) || !periods[low].Contains(t) {
		return -1
	}
	return low
}

func show(t time.Time) string { return t.UTC().Format(time.RFC3339) }
