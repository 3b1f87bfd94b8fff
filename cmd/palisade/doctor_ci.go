package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The results of a check of a CI job. A warning does not change the exit status.
const (
	ciOK      = "ok"
	ciWarning = "warning"
	ciFailed  = "failed"
)

// ciCheck is one result of doctor --ci.
type ciCheck struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

const (
	scannerURLEnv   = "SEMGREP_URL"
	scannerTokenEnv = "SEMGREP_APP_TOKEN"

	// ciTimeout limits each request and each command of a check.
	ciTimeout = 30 * time.Second
	// maxRuleSet limits the rules that are read.
	maxRuleSet = 256 << 20
)

// ciDoctor checks from inside a CI job whether a scan of this job can fail it. It stores nothing on the server.
type ciDoctor struct {
	std     streams
	checks  []ciCheck
	base    *url.URL
	token   string
	roots   *x509.CertPool // what the scanner trusts; nil: the roots of the system
	version string         // of the scanner; "" if unknown
}

func (d *ciDoctor) add(name, status, detail, fix string) {
	d.checks = append(d.checks, ciCheck{name, status, detail, fix})
}

func (d *ciDoctor) ok(name, format string, args ...any) {
	d.add(name, ciOK, fmt.Sprintf(format, args...), "")
}
func (d *ciDoctor) warn(name, detail, fix string) { d.add(name, ciWarning, detail, fix) }

// fail returns false, for callers that stop the checks that depend on this one.
func (d *ciDoctor) fail(name, detail, fix string) bool {
	d.add(name, ciFailed, detail, fix)
	return false
}

// checkCI runs all checks. Checks that depend on a failed one are left out.
func checkCI(ctx context.Context, std streams) []ciCheck {
	d := &ciDoctor{std: std}
	d.checkScanner(ctx)
	if d.checkAddress() && d.checkServer(ctx) && d.checkToken(ctx) {
		enough := d.checkRules(ctx)
		d.checkScope(ctx, enough)
		if enough {
			d.checkUpload(ctx)
		}
	}
	d.checkErrors()
	d.checkGit(ctx)
	return d.checks
}

// ciAnswer is a response of the server, or of something before it.
type ciAnswer struct {
	status int
	header http.Header
	body   []byte
}

// call sends a request with the token.
func (d *ciDoctor) call(ctx context.Context, method, path string, body []byte) (ciAnswer, error) {
	request, err := http.NewRequestWithContext(ctx, method, d.base.JoinPath(path).String(), strings.NewReader(string(body)))
	if err != nil {
		return ciAnswer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+d.token)
	request.Header.Set("Content-Type", "application/json")
	return exchangeCI(d.client(), request)
}

// client trusts what the scanner trusts, and follows no redirects.
func (d *ciDoctor) client() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if d.roots != nil {
		transport.TLSClientConfig.RootCAs = d.roots
	}
	return &http.Client{
		Transport: transport, Timeout: ciTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func exchangeCI(client *http.Client, request *http.Request) (ciAnswer, error) {
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return ciAnswer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRuleSet))
	return ciAnswer{response.StatusCode, response.Header, body}, err
}

// errorText is the text of an error in the form of the scan protocol or of the API. ok is false for other contents,
// such as a page of a proxy.
func (a ciAnswer) errorText() (text string, ok bool) {
	var parsed struct{ Error string }
	if json.Unmarshal(a.body, &parsed) != nil || parsed.Error == "" {
		return "", false
	}
	return parsed.Error, true
}

// printCI prints the checks for people, with what to do for each problem.
func printCI(w io.Writer, checks []ciCheck) {
	width := 0
	for _, c := range checks {
		width = max(width, len(c.Name))
	}
	for _, c := range checks {
		mark := c.Status
		if mark == ciFailed {
			mark = "FAILED"
		}
		_, _ = fmt.Fprintf(w, "%-7s  %-*s  %s\n", mark, width, c.Name, printable(c.Detail))
		if c.Fix != "" {
			_, _ = fmt.Fprintf(w, "%*s  to do: %s\n", 7+2+width, "", printable(c.Fix))
		}
	}
}

// runCI checks the job, prints the result, and returns errNo if the gate does not hold.
func runCI(ctx context.Context, std streams, output string) error {
	checks := checkCI(ctx, std)
	holds := true
	for _, c := range checks {
		holds = holds && c.Status != ciFailed
	}
	if output == "json" {
		encoder := json.NewEncoder(std.out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(struct {
			Holds  bool      `json:"gate_holds"`
			Checks []ciCheck `json:"checks"`
		}{holds, checks}); err != nil {
			return err
		}
	} else {
		printCI(std.out, checks)
	}
	if !holds {
		return errNo
	}
	return nil
}
