package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/mailserver"
)

var (
	slugPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
)

// problemList collects the problems of an [Error].
type problemList []string

func (p *problemList) add(key, format string, args ...any) {
	*p = append(*p, key+": "+fmt.Sprintf(format, args...))
}

// Validate checks everything that needs neither files nor the network. It returns all problems at once as a [*Error].
// No text contains a secret.
func (c Config) Validate() error {
	var p problemList
	c.validateAddresses(&p)
	c.validateRoles(&p)
	c.validateStore(&p)
	c.validateIdentity(&p)
	c.validateOutgoing(&p)
	c.validateSupport(&p)
	c.validateAuditAnchor(&p)
	c.validateAI(&p)
	c.validateEditor(&p)
	c.validateManagedScans(&p)
	c.validateLimits(&p)
	return configError(p)
}

// ValidateStore checks what commands need that use the store without listening: token, migrate, jwt.
func (c Config) ValidateStore() error {
	var p problemList
	c.validateStore(&p)
	return configError(p)
}

func (c Config) validateAddresses(p *problemList) {
	addresses := []struct{ key, value string }{{"http", c.HTTP}, {"grpc", c.GRPC}, {"metrics", c.Metrics}}
	for i, a := range addresses {
		host, _, err := splitAddress(a.value)
		if err != nil {
			p.add(a.key, "%v", err)
			continue
		}
		for _, other := range addresses[:i] {
			if sameListener(a.value, other.value) {
				p.add(a.key, "%s is taken by %s (%s); each needs a port of its own", a.value, other.key, other.value)
			}
		}
		if a.key != "metrics" && c.TLSCert == "" && !c.BehindProxy && !isLoopback(host) {
			p.add(a.key, "%s is reachable from other machines, and tokens would cross the network in plain text. "+
				"Set tls-cert and tls-key; or behind-tls-proxy when a proxy in front terminates TLS; or listen on 127.0.0.1", a.value)
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		p.add("tls-cert, tls-key", "only one of the two is set; set both, or none for plain HTTP")
	}
	if c.PublicURL != "" {
		if problem := checkURL(c.PublicURL, true); problem != "" {
			p.add("public-url", "got %q, %s", redactURL(c.PublicURL), problem)
		}
	}
}

func (c Config) validateStore(p *problemList) {
	if c.Data == "" {
		p.add("data", "is empty, want a directory such as ./data")
	}
	validateDatabase(p, "database", c.Database, "or nothing for SQLite")
	validateDatabase(p, "reports-database", c.ReportsDatabase, "or nothing for reports from database itself")
	if c.ReportsDatabase != "" && c.Database == "" {
		p.add("reports-database", "is set, but database is not: a SQLite file has no replicas. Remove it, or set database to the PostgreSQL that it replicates")
	}
	if !slugPattern.MatchString(c.Deployment) {
		p.add("deployment", "got %q, want 1 to 63 lower-case letters, digits, - or _, starting with a letter or digit", c.Deployment)
	}
	if c.BootstrapToken != "" {
		if err := access.CheckTokenValue(c.BootstrapToken); err != nil {
			p.add("bootstrap-token", "%v", err)
		}
	}
	if !slices.Contains([]string{"text", "json"}, c.LogFormat) {
		p.add("log-format", "got %q, want text or json", c.LogFormat)
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel) {
		p.add("log-level", "got %q, want debug, info, warn or error", c.LogLevel)
	}
	if c.DBMaxOpen < 0 {
		p.add("db-max-open", "got %d, want 0 (automatic) or more", c.DBMaxOpen)
	}
}

// validateDatabase checks the URL of a PostgreSQL database. An empty URL is valid.
func validateDatabase(p *problemList, key, text, instead string) {
	if text == "" {
		return
	}
	// The error of url.Parse quotes the URL, and with it the password.
	u, err := url.Parse(text)
	switch {
	case err != nil:
		p.add(key, "is not a URL; want postgres://user:password@host:5432/name, with special characters of the password percent-encoded")
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		p.add(key, "got a URL of scheme %q, want postgres://user:password@host:5432/name, %s", u.Scheme, instead)
	case strings.Trim(u.Path, "/") == "" && u.Query().Get("dbname") == "":
		p.add(key, "%s names no database; want postgres://user:password@host:5432/name", redactURL(text))
	}
}

func (c Config) validateIdentity(p *problemList) {
	if (c.OIDCIssuer == "") != (c.OIDCAudience == "") {
		p.add("oidc-issuer, oidc-audience", "only one of the two is set; without the audience, tokens that the issuer issued for other services would be accepted")
	}
	if c.OIDCIssuer != "" {
		if problem := checkURL(c.OIDCIssuer, false); problem != "" {
			p.add("oidc-issuer", "got %q, %s", redactURL(c.OIDCIssuer), problem)
		}
	}
	c.validateSignIn(p)
	c.validateConsole(p)
}

func (c Config) validateOutgoing(p *problemList) {
	if _, err := egress.New(egress.Config{Allow: c.EgressAllow}); err != nil {
		p.add("egress-allow", "%v", err)
	}
	c.validateSlack(p)
	if problem := checkURL(c.EntraURL, false); problem != "" {
		p.add("entra-url", "got %q, %s", redactURL(c.EntraURL), problem)
	}
	if (c.SMTP == "") != (c.SMTPFrom == "") {
		p.add("smtp, smtp-from", "only one of the two is set; e-mail needs a server and a sender address")
	}
	if c.SMTP != "" {
		if err := mailserver.CheckSMTP(c.SMTP); err != nil {
			p.add("smtp", "%v", err)
		}
	}
	if c.SMTPFrom != "" {
		if err := mailserver.CheckFrom(c.SMTPFrom); err != nil {
			p.add("smtp-from", "%v", err)
		}
	}
}

func (c Config) validateSlack(p *problemList) {
	if set := []bool{c.SlackClientID != "", c.SlackClientSecret != "", c.SlackSigningSecret != ""}; slices.Contains(set, true) && slices.Contains(set, false) {
		p.add("slack-client-id, slack-client-secret, slack-signing-secret", "only some of the three are set; a Slack app needs all of them")
	}
	if problem := checkURL(c.SlackURL, false); problem != "" {
		p.add("slack-url", "got %q, %s", redactURL(c.SlackURL), problem)
	}
}

func (c Config) validateLimits(p *problemList) {
	if c.RateLimit < 0 {
		p.add("rate-limit", "got %v, want 0 (no limit) or more requests per second", c.RateLimit)
	}
	c.validateFairness(p)
	for _, d := range []struct {
		key   string
		value time.Duration
		least time.Duration
	}{
		{"request-timeout", c.RequestTimeout, time.Millisecond},
		{"upload-timeout", c.UploadTimeout, time.Millisecond},
		{"complete-wait", c.CompleteWait, 0},
		{"idle-timeout", c.IdleTimeout, time.Millisecond},
		{"shutdown-grace", c.ShutdownGrace, 0},
		{"detached-ref-age", c.DetachedRefAge, 0},
		{"stale-ref-age", c.StaleRefAge, 0},
		{"undo-retention", c.UndoRetention, 0},
	} {
		if d.value < d.least {
			p.add(d.key, "got %v, want %v or more", d.value, d.least)
		}
	}
	for _, s := range []struct {
		key               string
		value, least, max ByteSize
	}{
		{"max-body", c.MaxBody, 1 << 10, 1<<31 - 1}, // gRPC counts message bytes in an int32
		{"max-upload", c.MaxUpload, 1 << 10, 1 << 50},
		{"max-header", c.MaxHeader, 4 << 10, 16 << 20},
	} {
		if s.value < s.least || s.value > s.max {
			p.add(s.key, "got %v, want %v to %v", s.value, s.least, s.max)
		}
	}
	if least := max(4*c.MaxBody, minReceiveMemory); c.ReceiveMemory != 0 && c.ReceiveMemory < least {
		p.add("receive-memory", "got %v, want %v or more: four times max-body, at least %v", c.ReceiveMemory, least, minReceiveMemory)
	}
	if c.MaxStreams < 1 || c.MaxStreams > 1_000_000 {
		p.add("max-streams", "got %d, want 1 to 1000000", c.MaxStreams)
	}
	if c.MaxConnections < 0 {
		p.add("max-connections", "got %d, want 0 (automatic) or more", c.MaxConnections)
	}
}

// splitAddress reads host:port with a numeric port; port 0 means any free port.
func splitAddress(address string) (host string, port int, err error) {
	host, portText, err := net.SplitHostPort(address)
	if err == nil {
		port, err = strconv.Atoi(portText)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("got %q, want host:port such as 127.0.0.1:8080", address)
	}
	return host, port, nil
}

// IsReachable reports whether other machines can connect to a listener at this address.
func IsReachable(address string) bool {
	host, _, err := splitAddress(address)
	return err != nil || !isLoopback(host)
}

// isLoopback reports whether only this machine can connect to the host. Names other than localhost may resolve to
// anything and count as reachable.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func isUnspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

func sameListener(a, b string) bool {
	hostA, portA, errA := splitAddress(a)
	hostB, portB, errB := splitAddress(b)
	if errA != nil || errB != nil || portA != portB || portA == 0 {
		return false
	}
	return hostA == hostB || isUnspecified(hostA) || isUnspecified(hostB)
}

// checkURL returns the problem with an absolute http(s) URL, or "". plainAllowed permits plain http to other machines.
// Links may use it; fetching the keys that verify tokens may not.
func checkURL(text string, plainAllowed bool) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "want a URL such as https://palisade.example.com"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "want a URL without user, query and fragment"
	case u.Scheme == "http" && !plainAllowed && !isLoopback(u.Hostname()):
		return "want https, or http on this machine only"
	}
	return ""
}

func (c Config) validateEditor(p *problemList) {
	if c.EditorEngine == "" {
		return
	}
	if !filepath.IsAbs(c.EditorEngine) {
		p.add("editor-engine", "got %q, want an absolute path, such as /usr/local/bin/semgrep", c.EditorEngine)
	}
	if c.EditorTimeout < time.Second || c.EditorTimeout >= c.RequestTimeout {
		p.add("editor-timeout", "got %s, want at least 1s and less than request-timeout (%s)", c.EditorTimeout, c.RequestTimeout)
	}
}

func (c Config) validateManagedScans(p *problemList) {
	if c.ManagedScanEvery < time.Hour {
		p.add("managed-scan-every", "got %s, want at least 1h", c.ManagedScanEvery)
	}
	if c.ManagedScanTimeout < time.Minute {
		p.add("managed-scan-timeout", "got %s, want at least 1m", c.ManagedScanTimeout)
	}
}
