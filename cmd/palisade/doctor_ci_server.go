package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// checkAddress reads the address that the scanner uses, or the one of palisade upload.
func (d *ciDoctor) checkAddress() bool {
	const name = "address"
	from, value := d.firstSet(scannerURLEnv, "SEMGREP_APP_URL", urlEnv)
	const set = "set " + scannerURLEnv + " to the URL of your Palisade server"
	switch {
	case value == "":
		return d.fail(name, "neither "+scannerURLEnv+" nor "+urlEnv+" is set: a scanner would call its vendor", set)
	case from == urlEnv && d.std.getenv(scannerTokenEnv) != "":
		return d.fail(name, scannerURLEnv+" is not set: the scanner would send "+scannerTokenEnv+" to its vendor", set)
	}
	base, err := url.Parse(strings.TrimRight(value, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil || base.RawQuery != "" {
		return d.fail(name, fmt.Sprintf("%s is %q, which is no URL such as https://palisade.acme.test", from, value), "correct "+from)
	}
	d.base = base
	if base.Scheme == "http" && !loopback(base.Hostname()) {
		d.warn(name, from+" is plain HTTP: the token and the verdict of the gate cross the network unprotected", "use https://")
	} else {
		d.ok(name, "%s, from %s", base, from)
	}
	if other := strings.TrimRight(d.std.getenv(urlEnv), "/"); other != "" && other != strings.TrimRight(value, "/") {
		d.warn(name, fmt.Sprintf("%s is another server: %s", urlEnv, other), "palisade commands and the scanner should use the same one")
	}
	return true
}

func (d *ciDoctor) firstSet(names ...string) (name, value string) {
	for _, name := range names {
		if value := strings.TrimSpace(d.std.getenv(name)); value != "" {
			return name, value
		}
	}
	return "", ""
}

// checkServer calls the server without the token, and checks its certificate, its answer and its clock.
func (d *ciDoctor) checkServer(ctx context.Context) bool {
	client := d.client()
	var seen *tls.ConnectionState
	// The certificate is checked below, for each program that will check it. This request has no token.
	client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection:   func(state tls.ConnectionState) error { seen = &state; return nil },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.base.JoinPath("api/check-version").String(), nil)
	if err != nil {
		return d.fail("server", err.Error(), "")
	}
	answer, err := exchangeCI(client, request)
	if err != nil {
		return d.unreachable(err)
	}
	if seen != nil && !d.checkTLS(*seen) {
		return false
	}
	if problem, fix := d.notPalisade(answer); problem != "" {
		return d.fail("server", problem, fix)
	}
	d.ok("server", "a Palisade server answers")
	d.checkClock(answer.header.Get("Date"))
	return true
}

func (d *ciDoctor) unreachable(err error) bool {
	text, _, _ := strings.Cut((&client{base: d.base}).unreachable(err).Error(), "\n")
	fix := "check the address, and whether this runner may reach it"
	name, proxy := d.firstSet("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
	if strings.Contains(text, "HTTP response to HTTPS client") {
		fix = "the port speaks plain HTTP: serve TLS there (--tls-cert, --tls-key), or use the port that does"
	} else if proxy != "" {
		fix += "; " + name + " is set: add " + d.base.Hostname() + " to NO_PROXY if the proxy cannot reach it"
	}
	return d.fail("server", text, fix)
}

var (
	pageTitle = regexp.MustCompile(`(?is)<title[^>]*>\s*(.{1,200}?)\s*</title>`)
	signIn    = regexp.MustCompile(`(?i)log-?in|sign-?in|sso|saml|oauth|auth`)
)

// notPalisade says what is wrong with an answer to a check of the scanner's version, and what to do. "" is a right one.
func (d *ciDoctor) notPalisade(a ciAnswer) (problem, fix string) {
	const exempt = "let requests with the scanner's token pass to /api/, /c/, /p/, /r/ and /s/ without a sign-in"
	if a.status >= 300 && a.status < 400 {
		target, err := d.base.Parse(a.header.Get("Location"))
		if err != nil {
			return fmt.Sprintf("the answer is a redirect (HTTP %d) to nowhere", a.status), exempt
		}
		where := target.Scheme + "://" + target.Host + target.Path
		switch {
		case signIn.MatchString(target.Host + target.Path):
			return "a proxy redirects to its sign-in page: " + where, exempt
		case target.Scheme != d.base.Scheme && target.Hostname() == d.base.Hostname():
			return "the server redirects to " + target.Scheme + ": a redirected POST loses its body", "set " + scannerURLEnv + " to " + target.Scheme + "://" + target.Host + d.base.Path
		}
		return "the server redirects to " + where + ": a redirected POST loses its body", "set " + scannerURLEnv + " to the URL that it redirects to, or mend the proxy"
	}
	var version struct {
		Versions struct{ Latest string }
		Code     string
	}
	switch err := json.Unmarshal(a.body, &version); {
	case err == nil && a.status == http.StatusOK && version.Versions.Latest != "":
		return "", ""
	case version.Code == "ROUTE_NOT_FOUND":
		return "a Palisade server answers, but not at this path: " + d.base.Path, "set " + scannerURLEnv + " to the server's public URL, without /api"
	case strings.Contains(string(a.body), "HTTP request to an HTTPS server"):
		return "the port speaks TLS", "use https:// in " + scannerURLEnv
	case a.status >= 500:
		return fmt.Sprintf("the server cannot answer now: HTTP %d", a.status), "look at the server's /readyz and log, and at the proxy before it"
	}
	what := "no JSON"
	if title := pageTitle.FindSubmatch(a.body); title != nil {
		what = fmt.Sprintf("a page with the title %q", html.UnescapeString(string(title[1])))
	}
	return fmt.Sprintf("something else answers: HTTP %d with %s", a.status, what), "check the address and its path; behind a proxy, " + exempt
}

// checkTLS verifies the server's certificate as the scanner and as palisade do: they trust different files.
func (d *ciDoctor) checkTLS(state tls.ConnectionState) bool {
	const name = "TLS"
	bundle, file := d.firstSet("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
	roots, err := rootsIn(file)
	if err != nil {
		return d.fail(name, fmt.Sprintf("%s: %v", bundle, err), "set "+bundle+" to a PEM file with the root certificate")
	}
	if err := verify(state, d.base.Hostname(), roots); err != nil {
		return d.fail(name, "the scanner refuses the certificate: "+err.Error(), remedyTLS(err))
	}
	d.roots = roots
	own := d.std.getenv("SSL_CERT_FILE")
	ownRoots, err := rootsIn(own)
	if err == nil {
		err = verify(state, d.base.Hostname(), ownRoots)
	}
	switch {
	case err != nil:
		d.warn(name, "the scanner accepts the certificate, palisade commands refuse it: "+err.Error(), "set SSL_CERT_FILE, too")
	case own != "" && file == "":
		d.warn(name, "SSL_CERT_FILE is set, REQUESTS_CA_BUNDLE is not: the scanner's requests use the second", "set REQUESTS_CA_BUNDLE, too")
	default:
		d.ok(name, "the certificate is valid until %s", state.PeerCertificates[0].NotAfter.UTC().Format(time.DateOnly))
	}
	return true
}

// rootsIn reads root certificates; nil without a file: the roots of the system.
func rootsIn(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	content, err := os.ReadFile(file) //nolint:gosec // the job names it
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return pool, nil
}

func verify(state tls.ConnectionState, host string, roots *x509.CertPool) error {
	options := x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: x509.NewCertPool()}
	for _, certificate := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(certificate)
	}
	_, err := state.PeerCertificates[0].Verify(options)
	return err
}

func remedyTLS(err error) string {
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &hostname):
		return "use a host name that the certificate names"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew the certificate, and check the clock of this runner"
	}
	return "copy the root certificate of the server into the job, and set to its file: REQUESTS_CA_BUNDLE (semgrep), " +
		"SSL_CERT_FILE (palisade, the engine of semgrep), GIT_SSL_CAINFO (git), CURL_CA_BUNDLE (curl)"
}

// maxCISkew is the difference of clocks above which times in scans mislead.
const maxCISkew = time.Minute

func (d *ciDoctor) checkClock(date string) {
	const name = "clock"
	server, err := http.ParseTime(date)
	if err != nil {
		d.warn(name, "the answer has no date to compare with", "a proxy removed the header Date")
		return
	}
	skew := d.std.now().Sub(server)
	if skew.Abs() > maxCISkew {
		d.warn(name, fmt.Sprintf("this runner differs from the server by %v", skew.Round(time.Second)), "synchronise both with NTP: tokens, certificates and the order of scans depend on time")
		return
	}
	d.ok(name, "the same as the server's, within %v", max(skew.Abs().Round(time.Second), time.Second))
}
