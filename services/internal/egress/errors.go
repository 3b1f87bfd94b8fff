package egress

import (
	"crypto/tls"
	"errors"
	"fmt"
)

// ErrRefused matches (errors.Is) every error of a call that the guard refused.
var ErrRefused = errors.New("egress: refused")

// ErrTooManyRedirects matches (errors.Is) the error of a call with more redirects than
// Limits.MaxRedirects.
var ErrTooManyRedirects = errors.New("egress: too many redirects")

// ErrUpgrade matches (errors.Is) the error of a call whose host answered 101. Switching protocols would leave a
// connection that nothing closes.
var ErrUpgrade = errors.New("egress: the host wants to switch to another protocol (HTTP 101)")

// RefusedError is a call that the guard refused. Its text is for the operator, because it contains internal addresses.
// [Describe] returns the text for tenants.
type RefusedError struct {
	Host    string // in the caller's form
	Address string // resolved address and port; empty when unresolved
	Reason  string // why the address is refused
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

// Error contains the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("egress: the answer is larger than %d bytes", e.Limit)
}

// bodyError is a failure after the host answered with a status.
type bodyError struct{ error }

func (e bodyError) Unwrap() error { return e.error }

// The results of Describe.
const (
	textUnreachable  = "the host could not be reached"
	textCertificate  = "the host's TLS certificate is not valid for it"
	textTooLarge     = "the host's answer was too large"
	textBroken       = "the host's answer broke off"
	textTooManyHops  = "the host redirected too often"
	textUpgrade      = "the host answered HTTP 101 Switching Protocols, which no call accepts"
	textBadRedirects = "the host redirected to where the call must not follow"
)

// Describe returns why a call failed, in short words for the tenant who chose the host. A refused address, a name
// without an address, a closed port, a filtered port, a port of another protocol and a silent port have the same text,
// so that tenants cannot scan a network through this server. More detail is given only for a host that has identified
// itself, by an HTTP response or by the certificate of a TLS server. nil gives "".
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
