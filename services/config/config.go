package config

import (
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/palisade/palisade/services/internal/pace"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/store"
)

// EnvPrefix starts the name of every environment variable that Palisade reads.
const EnvPrefix = "PALISADE_"

// Config holds every setting of the server. [Load] fills it from flags, environment, file and defaults, in this order
// of precedence. It is not changed afterwards.
//
// The tags are the only description of a key. name is the flag and the key in the file; its environment variable is
// PALISADE_<NAME>. default and doc appear in `palisade serve --help` and in docs/configuration.md. secret marks values
// that are not printed: "true" hides the whole value, "url" only the password in it.
type Config struct {
	HTTP    string `name:"http" default:"127.0.0.1:8080" doc:"address of the HTTP/JSON API"`
	GRPC    string `name:"grpc" default:"127.0.0.1:9090" doc:"address of the gRPC API"`
	Metrics string `name:"metrics" default:"127.0.0.1:9091" doc:"address of the Prometheus metrics (plain HTTP without authentication: keep it internal)"`
	Roles   string `name:"roles" default:"api,worker,scanner" doc:"roles of this node, separated by commas: api serves requests, worker runs background jobs, scanner fetches and searches the code of projects with managed scans; nodes that share a PostgreSQL database may have different roles, but each role needs at least one node"`

	Data            string `name:"data" default:"./data" doc:"directory of the SQLite database and of the generated key; created on first start"`
	Database        string `name:"database" secret:"url" doc:"postgres://user:password@host/name; empty means the SQLite file palisade.db in the data directory"`
	ReportsDatabase string `name:"reports-database" secret:"url" doc:"postgres:// URL of a read replica of database, which serves reports only: they are as stale as the replica; empty means database itself"`

	Deployment     string `name:"deployment" default:"default" doc:"slug of the deployment that the first start creates"`
	DeploymentName string `name:"deployment-name" doc:"display name of that deployment; empty means its slug"`
	BootstrapToken string `name:"bootstrap-token" secret:"true" doc:"value of the first API token, random, at least 20 characters; empty means that the first start generates one and prints it once. Prefer the environment variable: other users of the machine can read flags"`
	KeyFile        string `name:"key-file" doc:"file of the key that seals stored credentials; empty means palisade.key in the data directory, created on first start"`

	PublicURL    string `name:"public-url" doc:"public URL of the HTTP API, used in links; empty means the http address"`
	TLSCert      string `name:"tls-cert" doc:"PEM file of the certificate chain for both API ports; reloaded when it changes"`
	TLSKey       string `name:"tls-key" doc:"PEM file of the private key of tls-cert"`
	BehindProxy  bool   `name:"behind-tls-proxy" default:"false" doc:"a proxy in front of Palisade terminates TLS: allow plain HTTP and gRPC on addresses that other machines can reach"`
	OIDCIssuer   string `name:"oidc-issuer" doc:"URL of the OpenID Connect issuer whose user tokens are accepted, besides this server's own"`
	OIDCAudience string `name:"oidc-audience" doc:"audience (aud) that those tokens must carry"`

	OIDCMembership string `name:"oidc-membership" default:"invited" doc:"who becomes a member at the first sign-in through oidc-issuer: invited (people with an invitation to their verified e-mail address), domain, claim or any (every user of the issuer); an invitation admits its holder under all of them, and members stay members"`
	OIDCDomains    string `name:"oidc-domains" doc:"with oidc-membership domain: domains of verified e-mail addresses that are admitted, separated by commas; a domain does not include its subdomains"`
	OIDCClaim      string `name:"oidc-claim" doc:"with oidc-membership claim: name of the claim of the ID token that decides, such as groups"`
	OIDCClaimMap   string `name:"oidc-claim-map" doc:"with oidc-membership claim: what the values of oidc-claim grant, as value=role:team:team separated by semicolons, such as security=admin;developers=member:web-team"`

	OIDCClientID     string `name:"oidc-client-id" doc:"client id of the console at oidc-issuer; the client's redirect URI there is <public-url>/auth/callback; empty means that people do not sign in to the console with the issuer"`
	OIDCClientSecret string `name:"oidc-client-secret" secret:"true" doc:"secret of that client; empty for a public client. Prefer the environment variable: other users of the machine can read flags"`
	OIDCScopes       string `name:"oidc-scopes" default:"openid email profile" doc:"scopes that a sign-in to the console requests, separated by spaces; openid is required, and some issuers send oidc-claim only with a scope of its own, such as groups"`

	SessionIdle     time.Duration `name:"session-idle" default:"8h" doc:"time without a request after which a session of the console ends; at least 5m"`
	SessionLifetime time.Duration `name:"session-lifetime" default:"24h" doc:"time after the sign-in at which a session of the console ends in any case; at most 720h"`

	EgressAllow string `name:"egress-allow" doc:"private or loopback destinations that Palisade may call (a source-code host or a webhook receiver inside your network): hosts, host:port pairs and CIDR ranges, separated by commas"`
	EntraURL    string `name:"entra-url" default:"https://login.microsoftonline.com" doc:"URL of Microsoft Entra ID, where applications of Azure DevOps sign in; another one for a national cloud, such as https://login.microsoftonline.us"`
	SMTP        string `name:"smtp" secret:"url" doc:"URL of the mail server: smtp://user:password@host:587 (STARTTLS) or smtps://user:password@host:465; empty means that Palisade sends no e-mail"`
	SMTPFrom    string `name:"smtp-from" doc:"sender address of e-mail"`

	SupportEmail         string `name:"support-email" doc:"addresses that get each new support case by e-mail, separated by commas; needs smtp. See docs/support.md"`
	SupportWebhook       string `name:"support-webhook" secret:"true" doc:"https:// URL that each new support case is posted to; empty means none. Some receivers accept every message that is posted to their URL, so it is kept as a secret"`
	SupportWebhookSecret string `name:"support-webhook-secret" secret:"true" doc:"what these requests are signed with, at least 15 characters; empty means that they are not signed. Prefer the environment variable: other users of the machine can read flags"`
	SlackClientID        string `name:"slack-client-id" doc:"client id of your Slack app, which deployments install in their workspaces; empty means no Slack app (incoming webhooks work without one). See docs/chat.md"`
	SlackClientSecret    string `name:"slack-client-secret" secret:"true" doc:"client secret of that app. Prefer the environment variable: other users of the machine can read flags"`
	SlackSigningSecret   string `name:"slack-signing-secret" secret:"true" doc:"signing secret of that app, by which Palisade knows the requests of Slack. Prefer the environment variable"`
	SlackURL             string `name:"slack-url" default:"https://slack.com" doc:"where Slack is: https://slack-gov.com for GovSlack"`

	AuditAnchor      string        `name:"audit-anchor" secret:"url" doc:"where anchors of the audit trails are kept outside the database, to detect a trail that was rolled back: file:///path, syslog://host:514 (TCP), syslog+udp://host:514 or an https:// URL; empty means nowhere. See docs/audit.md"`
	AuditAnchorEvery time.Duration `name:"audit-anchor-every" default:"1h" doc:"time between two anchors"`

	AIURL         string        `name:"ai-url" doc:"base URL of an OpenAI-compatible API, such as https://api.openai.com/v1 or http://127.0.0.1:11434/v1 (a local model; add its address to egress-allow too); empty disables the language model"`
	AIKey         string        `name:"ai-key" secret:"true" doc:"API key for ai-url; empty when it needs none"`
	AIModel       string        `name:"ai-model" doc:"name of the language model"`
	AITimeout     time.Duration `name:"ai-timeout" default:"2m" doc:"timeout for one response of the model"`
	AIInputPrice  float64       `name:"ai-input-price" default:"0" doc:"US dollars per million input tokens, for costs and budgets"`
	AIOutputPrice float64       `name:"ai-output-price" default:"0" doc:"US dollars per million output tokens"`
	AIMonthlyRuns int           `name:"ai-monthly-runs" default:"10000" doc:"analyses of findings that one deployment may request per calendar month (UTC)"`

	PatternFixDaily int `name:"pattern-fix-daily" default:"0" doc:"patterns of rules that the language model may correct in 24 hours for callers without a credential (POST /api/ai/pattern_fix), all together; 0 means that nobody can ask for it. See docs/ai.md"`

	EditorEngine  string        `name:"editor-engine" doc:"absolute path of a scan engine with the command line of Semgrep, which runs rules that people try out, in a sandbox (packages bubblewrap and util-linux); empty means that rules are only validated"`
	EditorTimeout time.Duration `name:"editor-timeout" default:"30s" doc:"timeout of such a run; shorter than request-timeout"`

	ManagedScanEvery   time.Duration `name:"managed-scan-every" default:"24h" doc:"time between two managed full scans of a project, give or take a twentieth; at least 1h"`
	ManagedScanTimeout time.Duration `name:"managed-scan-timeout" default:"30m" doc:"timeout of a managed scan, with the time to fetch the code; at least 1m"`

	WorkflowRetention time.Duration `name:"workflow-retention" default:"720h" doc:"how long the artifacts (outputs and fetched code) of ended workflow runs are kept"`
	WorkflowMaxTasks  int           `name:"workflow-max-tasks" default:"100000" doc:"maximum number of tasks of a workflow run: a run that needs more, because of the lists in its steps, fails as soon as that is known; at most 1000000"`
	FeedRetention     time.Duration `name:"feed-retention" default:"720h" doc:"how long a resume token of the change feed is valid; older ones are refused with 410"`
	DetachedRefAge    time.Duration `name:"detached-ref-age" default:"720h" doc:"age of the last scan from which the findings of a checkout without a branch (refs/detached/…) are removed from the lists, with an event; 0 means never"`
	StaleRefAge       time.Duration `name:"stale-ref-age" default:"2160h" doc:"the same for every other ref but the primary and the default branch of a project; a later scan of the ref brings its findings back, with their triage"`
	UndoRetention     time.Duration `name:"undo-retention" default:"2160h" doc:"how long decisions about findings can be undone; the history of the findings stays"`
	ReportCache       ByteSize      `name:"report-cache" default:"256MiB" doc:"memory for the columns that reports, and lists and numbers of issues, are computed from; about 35 MB per million findings"`

	PoliciesMigrated bool `name:"policies-migrated" default:"false" doc:"new deployments begin with detection policies only: the deprecated operations on policies answer 410 to everybody, and those on rule boards to API tokens; see docs/policies.md"`

	LogFormat string `name:"log-format" default:"text" doc:"text or json"`
	LogLevel  string `name:"log-level" default:"info" doc:"debug, info, warn or error"`

	RateLimit            float64       `name:"rate-limit" default:"1000" doc:"requests per second and credential; 0 means no limit"`
	RateLimitDeployment  float64       `name:"rate-limit-deployment" default:"0" doc:"requests per second and deployment, over all its credentials; 0 means no limit"`
	RateLimitNodes       int           `name:"rate-limit-nodes" default:"1" doc:"nodes that serve the API behind one load balancer: each allows its part of rate-limit-deployment"`
	Uploads              int           `name:"uploads" default:"0" doc:"reports that this node processes concurrently; 0 means one per processor, at least two"`
	UploadsPerDeployment int           `name:"uploads-per-deployment" default:"0" doc:"how many of them one deployment may have; 0 means fewer than there are free slots, which is half of uploads for a deployment that is alone"`
	UploadQueue          int           `name:"upload-queue" default:"32" doc:"further uploads of one deployment that may be arriving or waiting on this node; more are refused with 429"`
	RequestTimeout       time.Duration `name:"request-timeout" default:"60s" doc:"timeout of a request"`
	UploadTimeout        time.Duration `name:"upload-timeout" default:"15m" doc:"timeout of a report upload"`
	CompleteWait         time.Duration `name:"complete-wait" default:"45s" doc:"how long the last request of a scan waits until the results of the scan are stored; scanners repeat it after 5 s; it has to be shorter than the read timeout of a proxy; 0 answers at once"`
	MaxBody              ByteSize      `name:"max-body" default:"16MiB" doc:"largest JSON body and largest gRPC message"`
	ReceiveMemory        ByteSize      `name:"receive-memory" default:"0" doc:"memory for all requests that are being received and decoded, on both ports; 0 means eight times max-body, at least 64MiB"`
	MaxUpload            ByteSize      `name:"max-upload" default:"1GiB" doc:"largest report, before and after decompression"`
	SpoolQuota           ByteSize      `name:"spool-quota" default:"0" doc:"disk space of all unfinished uploads on this node, decompressed; more are refused with 429; 0 means eight times max-upload"`
	SpoolQuotaDeployment ByteSize      `name:"spool-quota-deployment" default:"0" doc:"disk space of the unfinished uploads of one deployment; 0 means half of spool-quota, at least max-upload"`
	DiskReserve          ByteSize      `name:"disk-reserve" default:"256MiB" doc:"free disk space that uploads must leave: below it they are refused with 507; 0 means no reserve"`
	UploadMinRate        ByteSize      `name:"upload-min-rate" default:"16KiB" doc:"minimum average speed of an upload in bytes per second; slower uploads are ended with 408; 0 means no minimum"`
	UploadMinRateWindow  time.Duration `name:"upload-min-rate-window" default:"30s" doc:"waiting time for the sender after which upload-min-rate is checked each time"`
	MaxHeader            ByteSize      `name:"max-header" default:"64KiB" doc:"largest request header"`
	MaxStreams           int           `name:"max-streams" default:"250" doc:"concurrent requests on one HTTP/2 or gRPC connection"`
	MaxConnections       int           `name:"max-connections" default:"0" doc:"connections of one address (IPv6: of a /64) to each API port; more are closed at once; 0 means 1000, or 10000 with behind-tls-proxy, because all clients then have the address of the proxy"`
	IdleTimeout          time.Duration `name:"idle-timeout" default:"120s" doc:"time after which an idle connection is closed"`
	ShutdownGrace        time.Duration `name:"shutdown-grace" default:"20s" doc:"time for in-flight requests to end after SIGINT or SIGTERM"`
	DBMaxOpen            int           `name:"db-max-open" default:"0" doc:"open database connections; 0 chooses a number for the database and the machine"`

	Channelz bool `name:"channelz" default:"false" doc:"serve gRPC channelz on the grpc port"`
	Pprof    bool `name:"pprof" default:"false" doc:"serve /debug/pprof on the metrics port; profiles show memory contents"`
}

// Field describes one key of [Config] for help texts and documentation.
type Field struct {
	Name    string // flag, and key in the configuration file
	Env     string // environment variable
	Type    string // string, bool, int, number, duration or size
	Default string // in the form that the key is written; "" means empty
	Doc     string // one sentence for help texts
	Secret  bool   // the value, or its password, is never printed

	index int // position in Config
}

// Fields describes every key in the order of [Config].
func Fields() []Field {
	t := reflect.TypeFor[Config]()
	fields := make([]Field, t.NumField())
	for i := range fields {
		f := t.Field(i)
		name := f.Tag.Get("name")
		fields[i] = Field{
			Name:    name,
			Env:     EnvPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_")),
			Type:    typeName(f.Type),
			Default: f.Tag.Get("default"),
			Doc:     f.Tag.Get("doc"),
			Secret:  f.Tag.Get("secret") != "",
			index:   i,
		}
	}
	return fields
}

// Default returns the settings that hold when nothing is configured.
func Default() Config {
	var c Config
	for _, f := range Fields() {
		if f.Default == "" {
			continue
		}
		if err := c.set(f, f.Default); err != nil {
			panic("config: default of " + f.Name + ": " + err.Error()) // a mistake in the tags above; every test fails on it
		}
	}
	return c
}

// SQLitePath is the database file that is used when Database is empty.
func (c Config) SQLitePath() string { return filepath.Join(c.Data, store.SQLiteFile) }

// minReceiveMemory is the smallest request memory that leaves room for unauthenticated callers.
const minReceiveMemory ByteSize = 32 << 20

// ReceiveBudget is the memory for all requests that are being received and decoded, in bytes.
func (c Config) ReceiveBudget() int64 {
	if c.ReceiveMemory > 0 {
		return int64(c.ReceiveMemory)
	}
	return int64(max(8*c.MaxBody, 2*minReceiveMemory))
}

// ConnectionLimit is how many connections one address may have to each API port.
func (c Config) ConnectionLimit() int {
	switch {
	case c.MaxConnections > 0:
		return c.MaxConnections
	case c.BehindProxy:
		return 10_000
	}
	return 1000
}

// KeyPath is the file of the sealing key: KeyFile, or palisade.key in the data directory.
func (c Config) KeyPath() string {
	if c.KeyFile != "" {
		return c.KeyFile
	}
	return filepath.Join(c.Data, "palisade.key")
}

// SpoolDir is the directory for data that is too large for memory while it is processed.
func (c Config) SpoolDir() string { return filepath.Join(c.Data, "spool") }

// Disk describes the file systems of the data directory and of the spool, which may be a mount of its own.
func (c Config) Disk() spool.Disk {
	disk := spool.Disk{Dirs: []string{c.Data, c.SpoolDir()}, Reserve: int64(c.DiskReserve)}
	if c.Database == "" {
		disk.Growth = importGrowth
	}
	return disk
}

// importGrowth is the room that an import on SQLite needs for each byte of its report: its journal, the log and the
// file of the database. See docs/limits.md.
const importGrowth = 8

// DeleteRoom is the room for deletes on the disk of a SQLite file. It is nil on PostgreSQL.
func (c Config) DeleteRoom() *spool.Room {
	if c.Database != "" {
		return nil
	}
	disk := c.Disk()
	disk.Dirs = disk.Dirs[:1] // the spool may be a mount of its own
	return spool.NewRoom(disk, filepath.Join(c.Data, "delete-reserve"))
}

// Pace is the minimum speed of uploads.
func (c Config) Pace() pace.Rule {
	return pace.Rule{Rate: int64(c.UploadMinRate), Window: c.UploadMinRateWindow}
}

// DeploymentLabel is the display name of the first deployment: DeploymentName, or the slug.
func (c Config) DeploymentLabel() string {
	if c.DeploymentName != "" {
		return c.DeploymentName
	}
	return c.Deployment
}

// BaseURL is PublicURL without a trailing slash, or the URL of the HTTP address. A wildcard address becomes 127.0.0.1,
// since clients cannot connect to it.
func (c Config) BaseURL() string {
	if c.PublicURL != "" {
		return strings.TrimRight(c.PublicURL, "/")
	}
	u := url.URL{Scheme: "http", Host: c.HTTP}
	if c.TLSCert != "" {
		u.Scheme = "https"
	}
	if host, port, err := net.SplitHostPort(c.HTTP); err == nil && isUnspecified(host) {
		u.Host = net.JoinHostPort("127.0.0.1", port)
	}
	return u.String()
}
