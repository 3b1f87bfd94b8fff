package egress

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// MaxRetryAfter is the longest delay that a receiver can ask for.
const MaxRetryAfter = 24 * time.Hour

// RetryAfter parses both forms of the header Retry-After (RFC 9110, 10.2.3). A longer delay counts as MaxRetryAfter, a
// time in the past as 0. ok is false for an absent or invalid value.
func RetryAfter(header http.Header, now time.Time) (delay time.Duration, ok bool) {
	text := header.Get("Retry-After")
	seconds, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err == nil && seconds <= uint64(MaxRetryAfter/time.Second):
		return time.Duration(seconds) * time.Second, true
	case err == nil || errors.Is(err, strconv.ErrRange):
		return MaxRetryAfter, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), MaxRetryAfter), true
}
