package jsonappend

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Range of google/protobuf/timestamp.proto, in seconds since 1970.
const (
	minSeconds = -62135596800 // 0001-01-01T00:00:00Z
	maxSeconds = 253402300799 // 9999-12-31T23:59:59Z
)

// Range of google/protobuf/duration.proto.
const (
	maxDuration = 315576000000 // seconds
	maxNanos    = 999999999
)

// Timestamp appends t as "2026-05-04T10:20:30.123456Z": UTC, always six fraction digits. Nanoseconds are truncated, not
// rounded, so that a time never moves forward. A time outside of the years 1 to 9999 is clamped to that range; nil is
// the Unix epoch, as everywhere in protobuf.
func Timestamp(b []byte, t *timestamppb.Timestamp) []byte {
	seconds, nanos := t.GetSeconds(), t.GetNanos()
	switch {
	case seconds < minSeconds:
		seconds, nanos = minSeconds, 0
	case seconds > maxSeconds:
		seconds, nanos = maxSeconds, maxNanos
	}
	utc := time.Unix(seconds, 0).UTC()
	year, month, day := utc.Date()
	hour, minute, second := utc.Clock()
	b = append(b, '"')
	b = appendDigits(b, year, 4)
	b = append(b, '-')
	b = appendDigits(b, int(month), 2)
	b = append(b, '-')
	b = appendDigits(b, day, 2)
	b = append(b, 'T')
	b = appendDigits(b, hour, 2)
	b = append(b, ':')
	b = appendDigits(b, minute, 2)
	b = append(b, ':')
	b = appendDigits(b, second, 2)
	b = append(b, '.')
	b = appendDigits(b, int(min(max(nanos, 0), maxNanos)/1000), 6)
	return append(b, 'Z', '"')
}

// appendDigits appends the last width (at most 9) decimal digits of v, which is not negative.
func appendDigits(b []byte, v, width int) []byte {
	var digits [9]byte
	for i := width - 1; i >= 0; i-- {
		digits[i] = byte('0' + v%10)
		v /= 10
	}
	return append(b, digits[:width]...)
}

// Duration appends d in seconds with 0, 3, 6 or 9 fraction digits, such as "1.500s", like protojson. A duration out of
// range is clamped. Nanoseconds with a sign that contradicts the seconds are dropped.
func Duration(b []byte, d *durationpb.Duration) []byte {
	seconds, nanos := d.GetSeconds(), min(max(d.GetNanos(), -maxNanos), maxNanos)
	switch {
	case seconds > maxDuration:
		seconds, nanos = maxDuration, 0
	case seconds < -maxDuration:
		seconds, nanos = -maxDuration, 0
	case seconds > 0 && nanos < 0, seconds < 0 && nanos > 0:
		nanos = 0
	}
	b = append(b, '"')
	if seconds < 0 || nanos < 0 {
		b = append(b, '-')
		seconds, nanos = -seconds, -nanos
	}
	b = strconv.AppendInt(b, seconds, 10)
	switch {
	case nanos == 0:
	case nanos%1e6 == 0:
		b = appendDigits(append(b, '.'), int(nanos/1e6), 3)
	case nanos%1e3 == 0:
		b = appendDigits(append(b, '.'), int(nanos/1e3), 6)
	default:
		b = appendDigits(append(b, '.'), int(nanos), 9)
	}
	return append(b, 's', '"')
}
