package channel

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/palisade/palisade/services/internal/egress"
)

// maxRetryAfter bounds how long a receiver can put us off.
const maxRetryAfter = 24 * time.Hour

// Error is a failed attempt. Its text is public: it may be stored, and shown to the tenant. What the operator may know
// beyond that is what it wraps.
type Error struct {
	// Public is one short sentence without a full stop.
	Public string
	// Permanent: another attempt cannot do better.
	Permanent bool
	// RetryAfter is how long the receiver asks to wait; 0 when it does not say.
	RetryAfter time.Duration
	// Accepted are the recipients of an e-mail for which the mail server took the message in this attempt, although it
	// failed for others.
	Accepted []string
	// Refused are the recipients that the mail server refused for good, with what it answered.
	Refused map[string]string

	cause error
}

// Error is the public text.
func (e *Error) Error() string { return e.Public }

// Unwrap is the cause; its text is for logs only.
func (e *Error) Unwrap() error { return e.cause }

// unreached is the failure of a call that brought no answer.
func unreached(err error) *Error { return &Error{Public: egress.Describe(err), cause: err} }

// answered is what an HTTP status means, nil for success. 410 alone is final: a receiver that answers anything else may
// be repaired, and then gets what it missed.
func answered(who string, status int, header http.Header) *Error {
	if status >= 200 && status < 300 {
		return nil
	}
	e := &Error{Public: fmt.Sprintf("%s answered HTTP %d", who, status), RetryAfter: retryAfter(header, time.Now())}
	if text := http.StatusText(status); text != "" {
		e.Public += " " + text
	}
	switch {
	case status == http.StatusGone:
		e.Permanent = true
		e.Public += ": it wants no more messages"
	case status >= 300 && status < 400:
		e.Public += ": redirects are not followed, so configure the final URL"
	}
	return e
}

// retryAfter reads the header in both its forms (RFC 9110, 10.2.3); what is wrong or in the past counts as absent.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return min(max(time.Duration(seconds)*time.Second, 0), maxRetryAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}
