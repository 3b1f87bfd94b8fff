package channel

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/palisade/palisade/services/internal/egress"
)

// Error is a failed attempt. Its text is public: it is stored and shown to the tenant. Details for the operator are in
// the wrapped error.
type Error struct {
	// Public is one short sentence without a full stop.
	Public string
	// Permanent: do not retry.
	Permanent bool
	// RetryAfter is the delay that the receiver asked for; 0 if absent.
	RetryAfter time.Duration
	// Accepted lists the recipients for which the mail server accepted the message in this attempt, although others
	// failed.
	Accepted []string
	// Refused maps permanently refused recipients to the mail server's reply.
	Refused map[string]string

	cause error
}

// Failed is the error of an attempt that ended before it reached a receiver. public is for the tenant, cause for the
// log.
func Failed(public string, cause error) *Error { return &Error{Public: public, cause: cause} }

// Error returns the public text.
func (e *Error) Error() string { return e.Public }

// Unwrap returns the cause. Its text is for logs only.
func (e *Error) Unwrap() error { return e.cause }

// Cause is the text of a sender's error for the operator. It leaves out the URL of a request, which can be a secret.
func Cause(err error) string {
	var known *Error
	for errors.As(err, &known) {
		if err = known.Unwrap(); err == nil {
			return "" // the public text says all
		}
	}
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	return err.Error()
}

// connectError is the error of a request without a response.
func connectError(err error) *Error { return &Error{Public: egress.Describe(err), cause: err} }

// statusError returns the error for an HTTP status, nil for success. Only 410 is permanent: after any other status the
// receiver may be repaired, and gets the missed messages then.
func statusError(who string, status int, header http.Header) *Error {
	if status >= 200 && status < 300 {
		return nil
	}
	e := &Error{Public: fmt.Sprintf("%s answered HTTP %d", who, status)}
	e.RetryAfter, _ = egress.RetryAfter(header, time.Now())
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
