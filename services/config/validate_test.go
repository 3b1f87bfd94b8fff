package config

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestValidateAccepts(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"defaults":           func(*Config) {},
		"any free port":      func(c *Config) { c.HTTP, c.GRPC, c.Metrics = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0" },
		"IPv6 loopback":      func(c *Config) { c.HTTP, c.GRPC = "[::1]:8080", "localhost:9090" },
		"TLS everywhere":     func(c *Config) { c.HTTP, c.GRPC, c.TLSCert, c.TLSKey = ":8443", "0.0.0.0:9443", "c", "k" },
		"proxy":              func(c *Config) { c.HTTP, c.GRPC, c.BehindProxy = "0.0.0.0:8080", "[::]:9090", true },
		"metrics on all":     func(c *Config) { c.Metrics = "0.0.0.0:9091" },
		"PostgreSQL":         func(c *Config) { c.Database = "postgres://u:p%40@h:5432/d?sslmode=require" },
		"PostgreSQL, socket": func(c *Config) { c.Database = "postgresql:///d?host=/run/postgresql" },
		"bootstrap token":    func(c *Config) { c.BootstrapToken = "sgp_" + strings.Repeat("0123456789abcdef", 3) },
		"OIDC":               func(c *Config) { c.OIDCIssuer, c.OIDCAudience = "https://id.example.com/realm", "palisade" },
		"OIDC by domain": func(c *Config) {
			c.OIDCIssuer, c.OIDCAudience, c.OIDCMembership, c.OIDCDomains = "https://id.example.com", "palisade", "domain", "acme.example, acme.test"
		},
		"OIDC by claim": func(c *Config) {
			c.OIDCIssuer, c.OIDCAudience, c.OIDCMembership, c.OIDCClaim = "https://id.example.com", "palisade", "claim", "groups"
			c.OIDCClaimMap = "security=admin;developers=member:web-team"
		},
		"OIDC for all": func(c *Config) {
			c.OIDCIssuer, c.OIDCAudience, c.OIDCMembership = "https://id.example.com", "palisade", "any"
		},
		"OIDC for the console": func(c *Config) {
			oidcBy(c, "invited")
			c.OIDCClientID, c.OIDCClientSecret, c.OIDCScopes = "console", "s", "openid groups"
			c.SessionIdle, c.SessionLifetime = 5*time.Minute, 720*time.Hour
		},
		"OIDC on loopback": func(c *Config) { c.OIDCIssuer, c.OIDCAudience = "http://127.0.0.1:5556", "palisade" },
		"public URL":       func(c *Config) { c.PublicURL = "https://palisade.example.com/sec/" },
		"egress":           func(c *Config) { c.EgressAllow = "git.internal, hooks.internal:8443,10.1.0.0/16, [fd00::1]:443" },
		"mail":             func(c *Config) { c.SMTP, c.SMTPFrom = "smtp://u:p%40@mail.internal", "palisade@example.com" },
		"mail over TLS":    func(c *Config) { c.SMTP, c.SMTPFrom = "smtps://[::1]:1465", "Palisade <palisade@example.com>" },
		"no rate limit":    func(c *Config) { c.RateLimit = 0 },
		"model":            func(c *Config) { c.AIURL, c.AIModel, c.AIKey = "https://api.openai.com/v1", "small", "k" },
		"anchors, file":    func(c *Config) { c.AuditAnchor = "file:///var/log/palisade/anchors.ndjson" },
		"anchors, syslog":  func(c *Config) { c.AuditAnchor = "syslog://logs.internal:6514" },
		"anchors, UDP":     func(c *Config) { c.AuditAnchor = "syslog+udp://logs.internal" },
		"support cases": func(c *Config) {
			c.SMTP, c.SMTPFrom, c.SupportEmail = "smtp://mail.internal", "palisade@acme.test", "help@acme.test, Ann <ann@acme.test>"
			c.SupportWebhook, c.SupportWebhookSecret = "https://hooks.acme.test/cases", "0123456789abcde"
		},
		"patterns": func(c *Config) {
			c.AIURL, c.AIModel, c.EgressAllow, c.PatternFixDaily = "http://127.0.0.1:11434/v1", "small", "127.0.0.1:11434", 100
		},
		"anchors, webhook": func(c *Config) { c.AuditAnchor = "https://anchors.example.com/palisade" },
		"local model": func(c *Config) {
			c.AIURL, c.AIModel, c.EgressAllow, c.AIInputPrice, c.AIOutputPrice, c.AIMonthlyRuns = "http://127.0.0.1:11434/v1", "small", "127.0.0.1:11434", 0.15, 0.6, 0
		},
		"fraction of request": func(c *Config) { c.RateLimit = 0.5 },
	} {
		t.Run(name, func(t *testing.T) {
			c := Default()
			change(&c)
			if err := c.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestValidateRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"plain HTTP for all":          {func(c *Config) { c.HTTP = "0.0.0.0:8080" }, []string{"http: 0.0.0.0:8080", "tls-cert", "behind-tls-proxy", "127.0.0.1"}},
		"plain gRPC for all":          {func(c *Config) { c.GRPC = ":9090" }, []string{"grpc: :9090", "behind-tls-proxy"}},
		"plain HTTP on a name":        {func(c *Config) { c.HTTP = "server.internal:80" }, []string{"http: server.internal:80"}},
		"no port":                     {func(c *Config) { c.HTTP = "127.0.0.1" }, []string{`http: got "127.0.0.1"`, "127.0.0.1:8080"}},
		"port too high":               {func(c *Config) { c.Metrics = "127.0.0.1:70000" }, []string{"metrics"}},
		"named port":                  {func(c *Config) { c.GRPC = "127.0.0.1:grpc" }, []string{"grpc"}},
		"empty address":               {func(c *Config) { c.HTTP = "" }, []string{"http"}},
		"one port twice":              {func(c *Config) { c.GRPC = c.HTTP }, []string{"grpc: 127.0.0.1:8080 is taken by http"}},
		"one port twice, all":         {func(c *Config) { c.Metrics = "0.0.0.0:9090" }, []string{"metrics: 0.0.0.0:9090 is taken by grpc"}},
		"certificate alone":           {func(c *Config) { c.TLSCert = "c" }, []string{"tls-cert, tls-key", "set both"}},
		"key alone":                   {func(c *Config) { c.TLSKey = "k" }, []string{"tls-cert, tls-key"}},
		"cases without a mail server": {func(c *Config) { c.SupportEmail = "help@acme.test" }, []string{"support-email", "smtp"}},
		"cases to nobody":             {func(c *Config) { c.SMTP, c.SMTPFrom, c.SupportEmail = "smtp://mail.internal", "p@acme.test", "help" }, []string{"support-email: got"}},
		"cases in the clear":          {func(c *Config) { c.SupportWebhook = "http://hooks.acme.test" }, []string{"support-webhook", "https://"}},
		"a short secret of cases": {func(c *Config) { c.SupportWebhook, c.SupportWebhookSecret = "https://hooks.acme.test", "hunter22" },
			[]string{"support-webhook-secret: has 8 characters"}},
		"a secret of no webhook": {func(c *Config) { c.SupportWebhookSecret = "0123456789abcde" }, []string{"support-webhook-secret", "without support-webhook"}},
		"patterns below 0":       {func(c *Config) { c.PatternFixDaily = -1 }, []string{"pattern-fix-daily: got -1"}},
		"patterns, no model":     {func(c *Config) { c.PatternFixDaily = 5 }, []string{"pattern-fix-daily", "ai-url"}},
		"anchors in no file":     {func(c *Config) { c.AuditAnchor = "file://anchors" }, []string{"audit-anchor: got", "absolute path"}},
		"anchors with a path":    {func(c *Config) { c.AuditAnchor = "syslog://logs/x" }, []string{"audit-anchor", "host"}},
		"anchors in the clear":   {func(c *Config) { c.AuditAnchor = "http://anchors.example.com" }, []string{"audit-anchor", "https://"}},
		"anchors inside":         {func(c *Config) { c.AuditAnchor = "https://10.0.0.1/" }, []string{"audit-anchor"}},
		"anchors by mail":        {func(c *Config) { c.AuditAnchor = "mailto:a@b.test" }, []string{"audit-anchor", `"mailto"`, "file:///"}},
		"anchors all the time":   {func(c *Config) { c.AuditAnchorEvery = 1 }, []string{"audit-anchor-every", "10s"}},
		"issuer alone":           {func(c *Config) { c.OIDCIssuer = "https://i" }, []string{"oidc-issuer, oidc-audience"}},
		"audience alone":         {func(c *Config) { c.OIDCAudience = "a" }, []string{"oidc-issuer, oidc-audience"}},
		"issuer over HTTP":       {func(c *Config) { c.OIDCIssuer, c.OIDCAudience = "http://i.example.com", "a" }, []string{"oidc-issuer", "https"}},
		"secret alone":           {func(c *Config) { c.OIDCClientSecret = "s" }, []string{"oidc-client-secret, oidc-client-id"}},
		"client, no issuer":      {func(c *Config) { c.OIDCClientID = "console" }, []string{"oidc-client-id, oidc-issuer"}},
		"sign-in over HTTP":      {func(c *Config) { c.EntraURL = "http://login.example.com" }, []string{"entra-url", "https"}},
		"half a chat app":        {func(c *Config) { c.SlackClientID = "1.2" }, []string{"slack-client-id, slack-client-secret, slack-signing-secret", "all of them"}},
		"chat in the clear":      {func(c *Config) { c.SlackURL = "http://slack.example.com" }, []string{"slack-url", "https"}},
		"sign-in nowhere":        {func(c *Config) { c.EntraURL = "" }, []string{"entra-url", "want a URL"}},
		"client, no URL": {func(c *Config) {
			oidcBy(c, "invited")
			c.OIDCClientID, c.HTTP, c.BehindProxy = "console", "0.0.0.0:8080", true
		}, []string{"oidc-client-id, public-url"}},
		"scopes without openid": {func(c *Config) { c.OIDCScopes = "email openids" }, []string{"oidc-scopes", "openid"}},
		"sessions of a moment":  {func(c *Config) { c.SessionIdle = time.Minute }, []string{"session-idle: got 1m0s", "5m0s"}},
		"idle beyond the end":   {func(c *Config) { c.SessionIdle = 25 * time.Hour }, []string{"session-idle", "session-lifetime (24h0m0s)"}},
		"sessions of a year":    {func(c *Config) { c.SessionLifetime = 8760 * time.Hour }, []string{"session-lifetime", "720h"}},
		"unknown membership":    {func(c *Config) { oidcBy(c, "all") }, []string{`oidc-membership: got "all"`, "invited, domain, claim or any"}},
		"empty membership":      {func(c *Config) { oidcBy(c, "") }, []string{`oidc-membership: got ""`}},
		"any, but no issuer":    {func(c *Config) { c.OIDCMembership = "any" }, []string{"oidc-membership, oidc-issuer", "set oidc-issuer"}},
		"domain without any":    {func(c *Config) { oidcBy(c, "domain") }, []string{"oidc-domains: is empty"}},
		"domain that is none":   {func(c *Config) { oidcBy(c, "domain"); c.OIDCDomains = "@acme.example" }, []string{"oidc-domains: got", "without @"}},
		"domains not read":      {func(c *Config) { c.OIDCDomains = "acme.example" }, []string{"oidc-domains: is set", "set oidc-membership to domain"}},
		"claim without both":    {func(c *Config) { oidcBy(c, "claim") }, []string{"oidc-claim: is empty", "oidc-claim-map: is empty"}},
		"claim without map":     {func(c *Config) { oidcBy(c, "claim"); c.OIDCClaim = "groups" }, []string{"oidc-claim-map: is empty"}},
		"map without claim":     {func(c *Config) { oidcBy(c, "claim"); c.OIDCClaimMap = "a=admin" }, []string{"oidc-claim: is empty"}},
		"map of no role":        {func(c *Config) { oidcBy(c, "claim"); c.OIDCClaim, c.OIDCClaimMap = "g", "a=king" }, []string{"oidc-claim-map", "role must be one of"}},
		"claim not read":        {func(c *Config) { oidcBy(c, "any"); c.OIDCClaim = "g" }, []string{"oidc-claim: is set", "oidc-membership is any"}},
		"map not read":          {func(c *Config) { c.OIDCClaimMap = "a=admin" }, []string{"oidc-claim-map: is set", "oidc-membership is invited"}},
		"model without URL":     {func(c *Config) { c.AIModel = "small" }, []string{"ai-url, ai-model", "only ai-model", "set ai-url"}},
		"URL without model":     {func(c *Config) { c.AIURL = "https://m.example.com/v1" }, []string{"ai-url, ai-model", "set ai-model"}},
		"key of no model":       {func(c *Config) { c.AIKey = "hunter22" }, []string{"ai-url, ai-key", "only ai-key"}},
		"model URL of no host":  {func(c *Config) { c.AIURL, c.AIModel = "m.example.com/v1", "small" }, []string{"ai-url: got", "want a URL"}},
		"password in its URL":   {func(c *Config) { c.AIURL, c.AIModel = "https://u:hunter22@m.example.com", "small" }, []string{"ai-url", "without user"}},
		"local, not allowed":    {func(c *Config) { c.AIURL, c.AIModel = "http://127.0.0.1:11434/v1", "small" }, []string{"ai-url", "egress-allow"}},
		"plain HTTP to it":      {func(c *Config) { c.AIURL, c.AIModel = "http://m.example.com/v1", "small" }, []string{"ai-url", "egress-allow"}},
		"no time for it":        {func(c *Config) { c.AITimeout = 0 }, []string{"ai-timeout", "1s"}},
		"price below 0":         {func(c *Config) { c.AIInputPrice = -1 }, []string{"ai-input-price: got -1"}},
		"price of no number":    {func(c *Config) { c.AIOutputPrice = math.NaN() }, []string{"ai-output-price: got NaN"}},
		"runs below 0":          {func(c *Config) { c.AIMonthlyRuns = -1 }, []string{"ai-monthly-runs: got -1"}},
		"no data":               {func(c *Config) { c.Data = "" }, []string{"data: is empty"}},
		"MySQL":                 {func(c *Config) { c.Database = "mysql://u:hunter22@h/d" }, []string{"database", `"mysql"`}},
		"no database name":      {func(c *Config) { c.Database = "postgres://u:hunter22@h" }, []string{"names no database"}},
		"keyword DSN":           {func(c *Config) { c.Database = "host=h password=hunter22" }, []string{"database", "postgres://"}},
		"password with slash":   {func(c *Config) { c.Database = "postgres://u:hunter22/#@h/d" }, []string{"database"}},
		"password with %":       {func(c *Config) { c.Database = "postgres://u:hunter22%@h/d" }, []string{"percent-encoded"}},
		"slug":                  {func(c *Config) { c.Deployment = "My Company" }, []string{`deployment: got "My Company"`}},
		"short token":           {func(c *Config) { c.BootstrapToken = "hunter22" }, []string{"bootstrap-token", "20", "got 8"}},
		"repetitive token":      {func(c *Config) { c.BootstrapToken = "sgp_" + strings.Repeat("test", 10) }, []string{"bootstrap-token", "too easy to guess", "openssl rand"}},
		"token with blank":      {func(c *Config) { c.BootstrapToken = "hunter22 hunter22 hunter22" }, []string{"bootstrap-token"}},
		"log format":            {func(c *Config) { c.LogFormat = "xml" }, []string{`log-format: got "xml", want text or json`}},
		"log level":             {func(c *Config) { c.LogLevel = "loud" }, []string{"log-level"}},
		"rate":                  {func(c *Config) { c.RateLimit = -1 }, []string{"rate-limit: got -1"}},
		"request timeout":       {func(c *Config) { c.RequestTimeout = 0 }, []string{"request-timeout: got 0s"}},
		"grace":                 {func(c *Config) { c.ShutdownGrace = -1 }, []string{"shutdown-grace"}},
		"body too large":        {func(c *Config) { c.MaxBody = 1 << 31 }, []string{"max-body: got 2GiB"}},
		"header too small":      {func(c *Config) { c.MaxHeader = 100 }, []string{"max-header: got 100, want 4KiB to 16MiB"}},
		"streams":               {func(c *Config) { c.MaxStreams = 0 }, []string{"max-streams"}},
		"connections":           {func(c *Config) { c.MaxConnections = -1 }, []string{"max-connections"}},
		"connections of one":    {func(c *Config) { c.DBMaxOpen = -2 }, []string{"db-max-open: got -2"}},
		"public URL":            {func(c *Config) { c.PublicURL = "palisade.example.com" }, []string{"public-url"}},
		"public URL with user":  {func(c *Config) { c.PublicURL = "https://u:hunter22@x" }, []string{"public-url", "without user"}},
		"egress URL":            {func(c *Config) { c.EgressAllow = "ok.internal,https://git.internal/" }, []string{`egress-allow: "https://git.internal/"`, "without scheme"}},
		"egress range":          {func(c *Config) { c.EgressAllow = "10.1.2.3/8" }, []string{"egress-allow", "10.0.0.0/8"}},
		"mail without sender":   {func(c *Config) { c.SMTP = "smtp://mail.internal" }, []string{"smtp, smtp-from", "only one"}},
		"sender without mail":   {func(c *Config) { c.SMTPFrom = "palisade@example.com" }, []string{"smtp, smtp-from"}},
		"mail scheme":           {func(c *Config) { c.SMTP, c.SMTPFrom = "https://u:hunter22@mail.internal", "p@example.com" }, []string{`smtp: got a URL of scheme "https"`, "smtps://"}},
		"mail password":         {func(c *Config) { c.SMTP, c.SMTPFrom = "smtp://u:hunter22%@mail.internal", "p@example.com" }, []string{"smtp:", "percent-encoded"}},
		"mail path":             {func(c *Config) { c.SMTP, c.SMTPFrom = "smtp://u:hunter22@mail.internal/x", "p@example.com" }, []string{"smtp:", "host"}},
		"mail port":             {func(c *Config) { c.SMTP, c.SMTPFrom = "smtp://u:hunter22@mail.internal:70000", "p@example.com" }, []string{`smtp: got port "70000"`}},
		"mail user alone":       {func(c *Config) { c.SMTP, c.SMTPFrom = "smtp://hunter22@mail.internal", "p@example.com" }, []string{"smtp:", "password"}},
		"sender":                {func(c *Config) { c.SMTP, c.SMTPFrom = "smtp://mail.internal", "palisade" }, []string{`smtp-from: got "palisade"`}},
		"several":               {func(c *Config) { c.LogLevel, c.MaxStreams = "x", -1 }, []string{"2 problems", "log-level", "max-streams"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := Default()
			c.change(&config)
			err := config.Validate()
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not contain %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "hunter22") {
				t.Errorf("the text shows a secret: %q", err)
			}
		})
	}
}

func TestValidateStoreLeavesListeningAlone(t *testing.T) {
	c := Default()
	c.HTTP = "0.0.0.0:8080" // valid for serve only with a flag that `token list` does not have
	if err := c.ValidateStore(); err != nil {
		t.Error(err)
	}
	c.Data = ""
	if c.ValidateStore() == nil {
		t.Error("an empty data directory was accepted")
	}
}

func TestDerivedValues(t *testing.T) {
	c := Default()
	for _, got := range [][2]string{
		{c.SQLitePath(), "data/palisade.db"},
		{c.KeyPath(), "data/palisade.key"},
		{c.DeploymentLabel(), "default"},
		{c.BaseURL(), "http://127.0.0.1:8080"},
		{Config{KeyFile: "/k"}.KeyPath(), "/k"},
		{Config{Deployment: "acme", DeploymentName: "Acme"}.DeploymentLabel(), "Acme"},
		{Config{PublicURL: "https://p.example.com/"}.BaseURL(), "https://p.example.com"},
		{Config{HTTP: ":8443", TLSCert: "c"}.BaseURL(), "https://127.0.0.1:8443"},
		{Config{HTTP: "[::]:80"}.BaseURL(), "http://127.0.0.1:80"},
	} {
		if got[0] != got[1] {
			t.Errorf("got %q, want %q", got[0], got[1])
		}
	}
}

// oidcBy sets an issuer and its admission policy.
func oidcBy(c *Config, membership string) {
	c.OIDCIssuer, c.OIDCAudience, c.OIDCMembership = "https://id.example.com", "palisade", membership
}

// A database may have several hosts, in the form of docs/scale.md.
func TestDatabaseOfSeveralServers(t *testing.T) {
	for _, database := range []string{
		"postgres://palisade:secret@10.0.0.20,10.0.0.21/palisade?target_session_attrs=read-write",
		"postgres://palisade:secret@/palisade?host=10.0.0.20,10.0.0.21&port=5432,5433&target_session_attrs=read-write",
	} {
		c := Default()
		c.Database = database
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", database, err)
		}
		parsed, err := pgx.ParseConfig(database)
		if err != nil || len(parsed.Fallbacks) == 0 || parsed.ValidateConnect == nil {
			t.Errorf("%s: %v, %d other servers", database, err, len(parsed.Fallbacks))
		}
		if text := c.String(); strings.Contains(text, "secret@") {
			t.Errorf("the password is shown: %s", text)
		}
	}
}
