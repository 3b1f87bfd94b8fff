package connect

import (
	"errors"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/scm/host"
)

const (
	// limitWait is the backoff for a rate limit without a reset time.
	limitWait = 5 * time.Minute
	// limitMaxAge is the age at which a job stops waiting for rate limits.
	limitMaxAge = 24 * time.Hour
)

// Temporary reports whether an error may be temporary.
func Temporary(err error) bool {
	return ErrorText(err) == "" || host.Is(err, host.RateLimited) || host.Is(err, host.TimedOut) || host.Is(err, host.Unreachable) || host.Is(err, host.Failed)
}

// Retry converts a host's error for the queue: retry, retry at the host's time, or never.
func Retry(err error, begun time.Time) error {
	if err == nil {
		return nil
	}
	if wait, limited := LimitWait(err, begun); limited {
		return river.JobSnooze(wait)
	}
	if Temporary(err) {
		return err
	}
	return river.JobCancel(err)
}

// LimitWait is how long to wait after an error of a rate limit. ok is false for other errors, and if the work began too
// long ago.
func LimitWait(err error, begun time.Time) (wait time.Duration, ok bool) {
	var limit *host.Error
	if !errors.As(err, &limit) || limit.Kind != host.RateLimited || time.Since(begun) >= limitMaxAge {
		return 0, false
	}
	if limit.Reset.IsZero() {
		return limitWait, true
	}
	return min(max(time.Until(limit.Reset), time.Second), time.Hour), true
}
