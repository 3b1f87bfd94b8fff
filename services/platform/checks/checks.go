// Package checks judges the health of an installation, for `palisade doctor` and for the API.
package checks

import (
	"crypto/x509"
	"fmt"
	"time"
)

// Check is one result.
type Check struct {
	Name   string
	OK     bool
	Detail string // what was found
	Fix    string // how to fix it; empty when OK
}

const (
	// Timeout limits each request of a check to another machine.
	Timeout = 10 * time.Second
	// maxClockSkew is the difference to the database's clock above which tokens and history would be wrong.
	maxClockSkew = 30 * time.Second
	// certWarning is how long before its expiry a certificate is reported.
	certWarning = 14 * 24 * time.Hour
)

// Failed is a check that found a problem.
func Failed(name, detail, fix string) Check { return Check{Name: name, Detail: detail, Fix: fix} }

// Passed is a check that found none.
func Passed(name, detail string) Check { return Check{Name: name, OK: true, Detail: detail} }

// Clock compares this machine's clock with the database's.
func Clock(theirs time.Time) Check {
	const name = "clock"
	skew := time.Since(theirs).Round(time.Second)
	if skew.Abs() > maxClockSkew {
		return Failed(name, fmt.Sprintf("this machine and the database differ by %s", skew), "set both clocks by NTP: tokens would expire at the wrong time")
	}
	return Passed(name, fmt.Sprintf("within %s of the database's", maxClockSkew))
}

// Certificate judges the time in which a certificate is valid.
func Certificate(leaf *x509.Certificate, now time.Time) Check {
	const name = "TLS certificate"
	until := leaf.NotAfter.UTC().Format(time.DateOnly)
	switch {
	case now.Before(leaf.NotBefore):
		return Failed(name, "not valid before "+leaf.NotBefore.UTC().Format(time.RFC3339), "check the clock, or wait")
	case now.After(leaf.NotAfter):
		return Failed(name, "expired on "+until, "renew it; the server reads the new files by itself")
	case leaf.NotAfter.Sub(now) < certWarning:
		return Failed(name, "expires on "+until, "renew it soon; the server reads the new files by itself")
	}
	return Passed(name, "valid until "+until)
}
