package egress

import (
	"crypto/tls"
	"errors"
	"fmt"
)

// ErrRefused is (by errors.Is) every error of a call that the guard did not let out.
var ErrRefused = errors.New("egress: refused")

// ErrTooManyRedirects is (by errors.Is) the error of a call whose host redirected more often than Limits.MaxRedirects.
var ErrTooManyRedirects = errors.New("egress: too many redirects")

// ErrUpgrade is (by errors.Is) the error of a call whose host answered 101: it wants to go on in another protocol, on a
// connection that nobody would close.
var ErrUpgrade = errors.New("egress: the host wants to switch to another protocol (HTTP 101)")

// RefusedError is a call that the guard did not let out. Its text is for the operator: it holds addresses of the inner
// network. What the tenant may read is [Describe].
type RefusedError struct {
	Host    string // as the caller named it
	Address string // address and port that it led to; empty when it was not resolved
	Reason  string // what the address is
}

// Error names host, address and reason.
func (e *RefusedError) Error() string {
	if e.Address == "" {
		return fmt.Sprintf("egress: %s refused: %s", e.Host, e.Reason)
	}
	return fmt.Sprintf("egress: %s (%s) refused: %s", e.Host, e.Address, e.Reason)
}

// Is makes it an ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// TooLargeError is the error of reading a body beyond Limits.MaxResponse.
type TooLargeError struct{ Limit int64 } // in bytes, after decompression

// Error names the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("egress: the answer is larger than %d bytes", e.Limit)
}

// bodyError is a failure after the host had answered with a status.
type bodyError struct{ error }

func (e bodyError) Unwrap() error { return e.error }

// What Describe answers.
const (
	textUnreachable  = "the host could not be reached"
	textCertificate  = "the host's TLS certificate is not valid for it"
	textTooLarge     = "the host's answer was too large"
	textBroken       = "the host's answer broke off"
	textTooManyHops  = "the host redirected too often"
	textUpgrade      = "the host answered HTTP 101 Switching Protocols, which no call accepts"
	textBadRedirects = "the host redirected to where the call must not follow"
)

// Describe says why a call failed, in short words for the tenant who chose the host. A refused address, a name without
// address, a closed and a filtered port, a port that speaks another protocol and one that says nothing all read the
// same, so that nobody maps a network through us. More is said only of a host that has already shown itself: by an HTTP
// answer, or by the certificate of a TLS server. nil gives "".
func Describe(err error) string {
	var certificate *tls.CertificateVerificationError
	var tooLarge *TooLargeError
	var body bodyError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &tooLarge):
		return textTooLarge
	case errors.Is(err, ErrTooManyRedirects):
		return textTooManyHops
	case errors.Is(err, ErrUpgrade):
		return textUpgrade
	case errors.Is(err, errRedirect):
		return textBadRedirects
	case errors.Is(err, ErrRefused):
		return textUnreachable
	case errors.As(err, &certificate):
		return textCertificate
	case errors.As(err, &body):
		return textBroken
	}
	return textUnreachable
}
