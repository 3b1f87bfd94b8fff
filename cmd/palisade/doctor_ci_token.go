package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

const newToken4CI = "on the server: palisade token create --name ci --scopes agent"

// checkToken checks the form of the token, and asks the server about it.
func (d *ciDoctor) checkToken(ctx context.Context) bool {
	const name = "token"
	from, value := d.firstSet(scannerTokenEnv, tokenEnv)
	switch {
	case value == "" && d.std.getenv("GITHUB_EVENT_NAME") == "pull_request":
		return d.fail(name, scannerTokenEnv+" is not set. Pull requests from forks get no secrets", "create the secret; see docs/scanners.md for forks")
	case value == "":
		return d.fail(name, scannerTokenEnv+" is not set. GitLab gives protected variables to protected branches only", "create the secret or variable; "+newToken4CI)
	case strings.HasPrefix(value, "$"):
		return d.fail(name, fmt.Sprintf("%s is the name of a variable that was not expanded: %q", from, value), "this job does not see the variable: is it protected, or of another environment?")
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) || strings.ContainsAny(value, `"'`):
		return d.fail(name, from+" contains blanks, quotes or characters that no token has", "store the token as it was printed")
	}
	d.token = value
	if from == tokenEnv && d.std.getenv(scannerURLEnv) != "" {
		d.warn(name, scannerTokenEnv+" is not set: this checks "+tokenEnv+", which only palisade commands use", "set "+scannerTokenEnv)
	}
	answer, err := d.call(ctx, http.MethodGet, "api/agent/deployments/current", nil)
	if err != nil {
		return d.unreachable(err)
	}
	var current struct{ Deployment struct{ Name string } }
	text, isError := answer.errorText()
	switch {
	case answer.status == http.StatusUnauthorized:
		return d.fail(name, d.unknownToken(from), "on the server, palisade token list shows the ends and the expiry of its tokens; "+newToken4CI)
	case isError:
		return d.fail("scope", text, newToken4CI)
	case json.Unmarshal(answer.body, &current) != nil || current.Deployment.Name == "":
		return d.fail(name, fmt.Sprintf("the server does not answer as expected: HTTP %d", answer.status), "")
	}
	d.ok(name, "%s…%s is valid, for the deployment %q", value[:min(4, len(value))], hint(value), current.Deployment.Name)
	return true
}

// unknownToken says why the server refuses a token, as far as the token itself shows it.
func (d *ciDoctor) unknownToken(from string) string {
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(d.token, &claims); err == nil && claims.ExpiresAt != nil && claims.ExpiresAt.Before(d.std.now()) {
		return from + " is a JSON Web Token that expired at " + claims.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("the server refuses %s, which ends in %s: it is mistyped, expired or revoked, or a token of another server", from, hint(d.token))
}

// hint is the end of a token, which lists of tokens show.
func hint(token string) string {
	if len(token) < 16 {
		return "…"
	}
	return token[len(token)-4:]
}

// checkScope checks whether the token may do more than a pipeline needs. enough is false if checkRules failed.
func (d *ciDoctor) checkScope(ctx context.Context, enough bool) {
	answer, err := d.call(ctx, http.MethodGet, "api/v1/deployments", nil)
	switch {
	case err != nil || answer.status >= http.StatusInternalServerError || answer.status == http.StatusTooManyRequests:
		return // the next request reports it
	case answer.status == http.StatusOK:
		d.warn("scope", "the token may use the whole API: everyone who changes this job can read all findings with it", newToken4CI)
	case enough:
		d.ok("scope", "the token may fetch rules and send results, and nothing else")
	}
}

// ruleSet is what a scanner would run.
type ruleSet struct {
	Info struct {
		Products []string `json:"enabled_products"`
	}
	Config struct {
		Rules struct {
			Rules []struct {
				Metadata map[string]json.RawMessage
			}
		}
	}
}

// checkRules fetches the rules as a dry run, which stores no scan.
func (d *ciDoctor) checkRules(ctx context.Context) bool {
	const name = "rules"
	set, ok := d.fetchRules(ctx, d.version)
	if !ok {
		return false
	}
	rules := set.Config.Rules.Rules
	switch {
	case len(set.Info.Products) == 0:
		return d.fail(name, "the deployment has no product enabled: scanners end without a scan", "an administrator enables code, supply chain or secrets in the deployment's settings")
	case len(rules) == 0:
		return d.fail(name, "there are no rules for this scanner: it ends without a scan", "palisade rules list shows the rules and their modes; palisade rules import adds some")
	}
	blocking := 0
	for _, rule := range rules {
		actions, given := rule.Metadata["dev.semgrep.actions"]
		if !given || strings.Contains(string(actions), `"block"`) {
			blocking++
		}
	}
	if blocking == 0 {
		d.warn(name, fmt.Sprintf("%d rules for %s, none of which blocks: only a remediation policy can fail this job", len(rules), strings.Join(set.Info.Products, ", ")),
			"palisade rules mode block RULE, or a policy: docs/policies.md")
	} else {
		d.ok(name, "%d rules for %s; %d block", len(rules), strings.Join(set.Info.Products, ", "), blocking)
	}
	if d.version != "" {
		if all, ok := d.fetchRules(ctx, ""); ok && len(all.Config.Rules.Rules) > len(rules) {
			d.warn(name, fmt.Sprintf("semgrep %s is too old for %d of %d rules", d.version, len(all.Config.Rules.Rules)-len(rules), len(all.Config.Rules.Rules)), "use a newer semgrep")
		}
	}
	return true
}

func (d *ciDoctor) fetchRules(ctx context.Context, version string) (set ruleSet, ok bool) {
	body, err := json.Marshal(map[string]any{
		"project_metadata": map[string]any{"scan_environment": "palisade-doctor", "is_full_scan": true},
		"scan_metadata":    map[string]any{"cli_version": version, "unique_id": uuid.NewString(), "dry_run": true},
	})
	if err != nil {
		return set, d.fail("rules", err.Error(), "")
	}
	answer, err := d.call(ctx, http.MethodPost, "api/cli/scans", body)
	if err != nil {
		return set, d.unreachable(err)
	}
	if text, isError := answer.errorText(); isError {
		fix := ""
		if answer.status == http.StatusNotFound || answer.status == http.StatusForbidden {
			fix = newToken4CI
		}
		return set, d.fail("rules", fmt.Sprintf("HTTP %d: %s", answer.status, text), fix)
	}
	if err := json.Unmarshal(answer.body, &set); err != nil {
		return set, d.fail("rules", fmt.Sprintf("HTTP %d with unreadable rules: %v", answer.status, err), "a proxy may have cut or changed the answer")
	}
	return set, true
}

// enoughUpload is the size of results up to which an upload must pass. Results have about 2 KiB a finding.
const enoughUpload = 64 << 20

// checkUpload announces results without sending them: of a size that must pass, and of an impossible size, so that the
// server names its limit.
func (d *ciDoctor) checkUpload(ctx context.Context) {
	const (
		name    = "upload size"
		refused = http.StatusRequestEntityTooLarge
		effect  = ": scanners send refused results four times, and then fail"
	)
	answer, _ := d.announce(ctx, enoughUpload)
	text, own := answer.errorText()
	switch {
	case answer.status == refused && own:
		d.warn(name, text, "raise the server's --max-upload"+effect)
		return
	case answer.status == refused:
		d.warn(name, "a proxy before the server refuses results of "+humanize.IBytes(enoughUpload), "raise its limit of bodies (nginx: client_max_body_size)"+effect)
		return
	}
	answer, _ = d.announce(ctx, 1<<50)
	if text, own := answer.errorText(); own && answer.status == refused {
		d.ok(name, "the limit of the server: %s", text)
		return
	}
	d.ok(name, "%s may pass", humanize.IBytes(enoughUpload))
}

// announce asks for permission to send results of a size. An error means that they would have been read, or that there
// is no connection.
func (d *ciDoctor) announce(ctx context.Context, size int64) (ciAnswer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.base.JoinPath("api/agent/scans/0/results").String(), unsent{})
	if err != nil {
		return ciAnswer{}, err
	}
	request.ContentLength = size
	request.Header.Set("Expect", "100-continue")
	request.Header.Set("Authorization", "Bearer "+d.token)
	request.Header.Set("Content-Type", "application/json")
	client := d.client()
	client.Transport.(*http.Transport).ExpectContinueTimeout = ciTimeout
	return exchangeCI(client, request)
}

// unsent is a body that ends the request as soon as the server wants it.
type unsent struct{}

// Read implements io.Reader.
func (unsent) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
