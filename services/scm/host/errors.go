package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/palisade/palisade/services/internal/egress"
)

// Kind is the kind of a host error.
type Kind string

// Kinds of errors.
const (
	// Unauthorized: the host rejects the credential (401).
	Unauthorized Kind = "unauthorized"
	// Forbidden: the credential lacks permission (403).
	Forbidden Kind = "forbidden"
	// NotFound: it does not exist, or the credential may not see it (404).
	NotFound Kind = "not found"
	// RateLimited: too many requests; Error.Reset is the end of the limit.
	RateLimited Kind = "rate limited"
	// Refused: the host rejects the request (other 4xx).
	Refused Kind = "refused"
	// Failed: the host has an internal error (5xx).
	Failed Kind = "failed"
	// TimedOut: no response in time.
	TimedOut Kind = "timed out"
	// Malformed: the response is not from this kind of host.
	Malformed Kind = "malformed"
	// Unreachable: no connection.
	Unreachable Kind = "unreachable"
	// Outside: the pull request does not change the line.
	Outside Kind = "outside"
	// Unsupported: this kind of host or namespace does not support it.
	Unsupported Kind = "unsupported"
)

// Error is a failed request.
type Error struct {
	Kind Kind
	// Text says what is wrong and what to do, for the person who set up the connection.
	Text string
	// Reset is the end of a rate limit; zero for other kinds, and if the host does not say.
	Reset time.Time
	cause error
}

// Error returns the public text. The cause is for logs only: it may name addresses.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the client's error.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether err is a host's error of a kind.
func Is(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

// Refusal is the error for an answer with an error status. detail is the server's own text, if useful.
func Refusal(status int, header http.Header, detail string, cause error) *Error {
	if status == http.StatusTooManyRequests {
		return rateLimited(retryAfter(header), cause)
	}
	return refusal(status, detail, cause)
}

// Connection is the error for a request without a valid answer: a timeout, no connection, or an answer in another
// format.
func Connection(err error) *Error { return connection(err) }

// errOtherOrigin: the host redirected to another origin.
var errOtherOrigin = errors.New("the host led to another address")

// connection explains an error without a valid response: a timeout, no connection, or no JSON. A timeout reads like a
// refused connection, because a caller who chooses the URL must not learn which ports of a network are open.
func connection(err error) *Error {
	var network net.Error
	var tooLarge *egress.TooLargeError
	switch {
	case errors.Is(err, errOtherOrigin):
		return malformed("the host redirects to another address: set baseUrl to the address where it really is", err)
	case errors.As(err, &tooLarge), errors.Is(err, egress.ErrUpgrade):
		return malformed(egress.Describe(err)+": check baseUrl", err)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return &Error{Kind: TimedOut, Text: egress.Describe(err) + unreachableAdvice, cause: err}
	case network != nil, errors.Is(err, context.Canceled):
		return &Error{Kind: Unreachable, Text: egress.Describe(err) + unreachableAdvice, cause: err}
	}
	return malformed("the host's answer is not from this type of host: check type and baseUrl", err)
}

const unreachableAdvice = ": check baseUrl, or try again later"

func malformed(text string, cause error) *Error {
	return &Error{Kind: Malformed, Text: text, cause: cause}
}

// refusal explains an error status. detail is the host's own text, if useful.
func refusal(status int, detail string, cause error) *Error {
	if detail != "" {
		detail = " (it says: " + clip(detail) + ")"
	}
	e := &Error{cause: cause}
	switch {
	case status == http.StatusUnauthorized:
		e.Kind, e.Text = Unauthorized, "the host does not accept the access token: it is wrong, expired or revoked; set a new accessToken"
	case status == http.StatusForbidden:
		e.Kind, e.Text = Forbidden, "the access token may not do this: give it the permission at the host"+detail
	case status == http.StatusNotFound:
		e.Kind, e.Text = NotFound, "the host knows no such thing, or does not show it to this access token: check the namespace and the token's permissions"
	case status == http.StatusRequestTimeout:
		e.Kind, e.Text = TimedOut, "the host gave up waiting for the request: try again later"
	case status >= 500:
		e.Kind, e.Text = Failed, fmt.Sprintf("the host answered with an error of its own, status %d: try again later", status)
	case status >= 400:
		e.Kind, e.Text = Refused, fmt.Sprintf("the host refused the request, status %d%s", status, detail)
	default:
		e.Kind, e.Text = Malformed, fmt.Sprintf("the host answered with the unexpected status %d: check type and baseUrl", status)
	}
	return e
}

// rateLimited explains a rate limit. reset may be zero.
func rateLimited(reset time.Time, cause error) *Error {
	text := "the host's rate limit is used up: try again later"
	if !reset.IsZero() {
		text = "the host's rate limit is used up: try again after " + reset.UTC().Format(time.RFC3339)
	}
	return &Error{Kind: RateLimited, Text: text, Reset: reset, cause: cause}
}

// maxDetail is the maximum length of a host's own text, in runes.
const maxDetail = 200

func clip(text string) string {
	text = printable(text)
	runes := []rune(text)
	if len(runes) <= maxDetail {
		return text
	}
	return string(runes[:maxDetail]) + "…"
}

// printable removes control characters: names do not contain them, and PostgreSQL does not store them. All text from
// hosts passes through it.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}
