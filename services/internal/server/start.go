package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/fullstorydev/grpchan"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/certs"
	"github.com/palisade/palisade/services/internal/chain"
	"github.com/palisade/palisade/services/internal/intake"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// Start starts a server of these domains and returns when it serves on all its ports. ctx only limits the start; the
// server runs until Stop. When something is missing or wrong, nothing keeps running and the error says what to do.
func Start(ctx context.Context, cfg config.Config, stderr io.Writer, domains []Domain) (_ *Server, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	lines := telemetry.NewLogBuffer(stderr)
	log, err := telemetry.NewLogger(lines, cfg.LogFormat, cfg.LogLevel)
	if err != nil {
		return nil, err
	}
	relaxGC()
	s := &Server{config: cfg, log: log, lines: lines, stop: make(chan struct{}), done: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeAll(context.WithoutCancel(ctx)))
		}
	}()
	if err := s.open(ctx, stderr, domains); err != nil {
		return nil, err
	}
	s.run()
	return s, nil
}

// open creates all parts in the order of their dependencies.
func (s *Server) open(ctx context.Context, stderr io.Writer, domains []Domain) (err error) {
	if err := s.bind(ctx); err != nil {
		return err
	}
	build := config.BuildVersion()
	metrics := telemetry.NewMetrics(s.log, build.Version, build.Revision, build.Go)
	tracing, err := telemetry.StartTracing(ctx, s.log, build.Version)
	if err != nil {
		return err
	}
	s.onClose("tracing", tracing.Shutdown)
	tlsConfig, err := loadTLS(s.config, s.log)
	if err != nil {
		return err
	}
	room := s.config.DeleteRoom()
	if err := room.Start(); err != nil { // a start writes a little, also on a full disk
		return err
	}
	st, err := s.openMigrated(spool.WithRoom(ctx), room)
	if err != nil {
		return err
	}
	s.warnOfPermissions()
	s.warnOfBuild(ctx, st)
	metrics.WatchPools(st.Pools())
	if st.Postgres() {
		metrics.WatchTransactions(st.Waiting)
		s.keepSession(st)
	}
	s.probes = newProbes(st.Ping, s.config.Disk().State)
	st.OnFailure(func(err error) { s.probes.writeFailed(s.log, err) })
	who, err := s.openAccess(spool.WithRoom(ctx), st, stderr)
	if err != nil {
		return err
	}
	s.keepPending(ctx, who.trail)
	deps, err := s.makeDeps(st, who, metrics)
	if err != nil {
		return err
	}
	parts := makeDomains(domains, deps)
	if err := s.openQueue(deps, background(parts)); err != nil {
		return err
	}
	ports := portParts{store: st, room: room, who: who, metrics: metrics, tracing: tracing, tls: tlsConfig, documents: documents(parts)}
	ports.sites, ports.identify = sites(parts)
	if s.config.Has(config.RoleAPI) {
		if deps.Reports, err = s.openReports(ctx, st, metrics); err != nil {
			return err
		}
		groups, err := services(ctx, parts)
		if err != nil {
			return err
		}
		if err := s.openAPI(groups, ports); err != nil {
			return err
		}
	} else {
		s.openHealth(ports)
	}
	s.limitConnections(metrics)
	s.openMetricsPort(metrics)
	if err := s.startJobs(ctx); err != nil {
		return err
	}
	s.probes.serving(s.services)
	if err := room.Keep(); err != nil {
		s.log.Warn("no disk space is kept for deletes", "error", err)
	}
	s.checkPages(st)
	s.watchWrites(st, room)
	s.banner(st, build, tracing)
	return nil
}

// portParts are the dependencies of the API ports.
type portParts struct {
	store   *store.Store
	room    *spool.Room
	who     *identities
	metrics *telemetry.Metrics
	tracing *telemetry.Tracing
	tls     *tls.Config // nil for plain text
	// documents are public JSON documents by path.
	documents map[string][]byte
	sites     map[string]http.Handler
	identify  func(*http.Request) (context.Context, error)
}

// openAPI creates the servers of both API ports of a node that serves requests.
func (s *Server) openAPI(groups []Service, p portParts) error {
	handlers := collect(s.config, groups, s.probes)
	rules, links, err := s.makeChain(handlers, p)
	if err != nil {
		return err
	}
	p.metrics.GRPC.InitializeMetrics(handlers)
	s.services = serviceNames(handlers)
	s.grpc = grpcServer(s.config, handlers, links, p.tracing, p.tls)
	s.http, err = httpServer(httpParts{
		config: s.config, log: s.log, groups: groups, handlers: handlers, links: links, rules: rules,
		issuer: p.who.issuer, probes: s.probes, metrics: p.metrics, tracing: p.tracing, tls: p.tls,
		documents: p.documents, sites: p.sites, identify: p.identify,
	})
	return err
}

// makeDeps creates the dependencies of domains, without the queue, which needs their background work first.
func (s *Server) makeDeps(st *store.Store, who *identities, metrics *telemetry.Metrics) (*Deps, error) {
	guard, err := OpenGuard(s.config, s.log)
	if err != nil {
		return nil, err
	}
	files, err := openSpool(s.config, st, metrics)
	if err != nil {
		return nil, err
	}
	return &Deps{
		Config: s.config, Log: s.log, Store: st, Keyring: who.keyring, Trail: who.trail, Tokens: access.NewTokens(st), Metrics: metrics,
		Sessions: who.sessions, OIDC: who.oidc,
		Egress: guard, Model: openModel(s.config, guard, metrics), Calls: &s.calls, Spool: files, State: s.probes.state,
	}, nil
}

// openQueue opens the queue with the background work of the domains.
func (s *Server) openQueue(d *Deps, work []jobs.Work) (err error) {
	serves := func(role string) bool { return s.config.Has(cmp.Or(role, config.RoleWorker)) }
	if !s.worksInBackground() {
		serves = func(string) bool { return true } // it only adds jobs
	}
	if s.jobs, err = jobs.NewWithRoles(d.Store, s.log, serves, work...); err != nil {
		return err
	}
	s.jobs.Audited(d.Trail)
	d.Jobs = s.jobs
	d.Metrics.WatchQueue(s.jobs.Depth)
	return nil
}

// bind binds the ports. It writes the bound addresses into the configuration, so that URLs made from it work.
func (s *Server) bind(ctx context.Context) (err error) {
	if s.listeners, err = listen(ctx, s.config); err != nil {
		return err
	}
	s.onClose("listeners", func(context.Context) error { return s.listeners.close() })
	s.addresses = s.listeners.addresses()
	s.config.HTTP, s.config.GRPC, s.config.Metrics = s.addresses.HTTP, s.addresses.GRPC, s.addresses.Metrics
	return nil
}

// worksInBackground reports whether this node runs jobs. Other nodes only add them.
func (s *Server) worksInBackground() bool {
	return s.config.Has(config.RoleWorker) || s.config.Has(config.RoleScanner)
}

// startJobs starts the workers, if that is a role of this node.
func (s *Server) startJobs(ctx context.Context) error {
	if !s.worksInBackground() {
		return nil
	}
	if err := s.jobs.Start(ctx); err != nil {
		return err
	}
	s.onClose("background jobs", s.jobs.Stop) // before the database; shutdown has stopped them already, unless the start fails
	return nil
}

// loadTLS returns nil when no certificate is configured.
func loadTLS(cfg config.Config, log *slog.Logger) (*tls.Config, error) {
	if cfg.TLSCert == "" {
		return nil, nil
	}
	reloader, err := certs.Load(cfg.TLSCert, cfg.TLSKey, log)
	if err != nil {
		return nil, err
	}
	return reloader.Config(), nil
}

func (s *Server) openMigrated(ctx context.Context, room *spool.Room) (*store.Store, error) {
	st, err := OpenStore(ctx, s.config)
	if err != nil {
		return nil, err
	}
	st.Admit(room.Admit)
	s.store = st
	s.onClose("database", func(context.Context) error { return st.Close() })
	backup, err := st.MigrateOnStart(ctx)
	if err != nil {
		return nil, err
	}
	if backup != "" {
		s.log.Info("the database schema was brought up to date", "backup", backup)
	}
	return st, nil
}

// sessionInterval is how often a server tries to renew a lost PostgreSQL session. Tests shorten it.
var sessionInterval = time.Minute

// keepSession holds a session by which a copy of the database detects that this server runs.
func (s *Server) keepSession(st *store.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	every := sessionInterval
	go func() {
		defer close(done)
		st.KeepSession(ctx, every)
	}()
	s.onClose("session", func(context.Context) error {
		cancel()
		<-done
		return nil
	})
}

// identities are the parts that authenticate callers and record their actions.
type identities struct {
	keyring       *secret.Keyring
	trail         *audit.Trail
	issuer        *access.Issuer
	oidc          *access.OIDC // nil without an issuer
	sessions      *access.Sessions
	authenticator *access.Authenticator
}

func (s *Server) openAccess(ctx context.Context, st *store.Store, stderr io.Writer) (*identities, error) {
	cfg := s.config
	keyring, err := secret.OpenFor(ctx, st, cfg.KeyPath())
	if err != nil {
		return nil, err
	}
	url, err := rememberIssuer(ctx, st, cfg)
	if err != nil {
		return nil, err
	}
	issuer := access.NewIssuer(st, keyring, url)
	if err := issuer.EnsureKey(ctx); err != nil {
		return nil, err
	}
	trail, err := audit.Open(ctx, st, keyring, s.log)
	if err != nil {
		return nil, err
	}
	oidc, err := openOIDC(cfg, st, trail, s.log)
	if err != nil {
		return nil, err
	}
	first, err := access.Bootstrap(ctx, st, access.BootstrapOptions{
		Slug: cfg.Deployment, Name: cfg.DeploymentLabel(), Token: cfg.BootstrapToken, PoliciesMigrated: cfg.PoliciesMigrated,
	})
	if err != nil {
		return nil, apierr.Plain(err)
	}
	if first != nil {
		s.log.Info("first start: a deployment, an administrator and an API token were created",
			"deployment", first.Deployment.Slug, "administrator", first.Email, "token_hint", first.TokenHint)
		// Print it at once: if the start fails further on, the token exists and will never be shown again.
		if err := s.printConsoleLink(ctx, st, stderr, first.Email); err != nil {
			return nil, err
		}
		if err := printFirstToken(stderr, cfg.BaseURL(), first.TokenValue); err != nil {
			return nil, err
		}
	}
	if err := s.warnOfSignIn(ctx, st); err != nil {
		return nil, err
	}
	sessions := access.NewSessions(st, cfg.SessionIdle, cfg.SessionLifetime, s.log)
	s.onClose("sessions", sessions.Close)
	authenticator := access.NewAuthenticator(st, issuer, oidc, sessions, s.log)
	s.onClose("authenticator", authenticator.Close)
	return &identities{keyring: keyring, trail: trail, issuer: issuer, oidc: oidc, sessions: sessions, authenticator: authenticator}, nil
}

// printFirstToken shows the first API token with a working example request. token is empty when the operator chose it:
// the operator knows it, and this output ends up in logs.
func printFirstToken(w io.Writer, url, token string) error {
	if token == "" {
		return nil
	}
	_, err := fmt.Fprintf(w, `
  This is the first API token. It is shown only now; keep it:

    %[2]s

  Try it:

    curl -H 'Authorization: Bearer %[2]s' %[1]s/api/v1/deployments

`, url, token)
	if err != nil {
		return fmt.Errorf("print the first API token (it is stored; make another with: palisade token create --scopes web-api): %w", err)
	}
	return nil
}

func (s *Server) makeChain(handlers grpchan.HandlerMap, p portParts) (*access.Rules, []chain.Link, error) {
	rules, err := access.LoadRules(handlers.GetServiceInfo())
	if err != nil {
		return nil, nil, err
	}
	validator, err := chain.NewValidator(rules.Methods())
	if err != nil {
		return nil, nil, err
	}
	draining, drain := context.WithCancel(context.Background())
	s.drain = drain
	s.onClose("streams", func(context.Context) error { drain(); return nil })
	links := chain.New(chain.Deps{
		Log: s.log, Metrics: p.metrics, Rules: rules, Authenticator: p.who.authenticator, Store: p.store, Room: p.room, Trail: p.who.trail, Validator: validator,
		RateLimit: s.config.RateLimit, DeploymentRateLimit: s.config.RateLimitDeployment / float64(max(1, s.config.RateLimitNodes)),
		Uploads: chain.UploadLimits{
			AtOnce: s.config.Uploads, PerDeployment: s.config.UploadsPerDeployment, Queue: s.config.UploadQueue, Pace: s.config.Pace(),
		},
		RequestTimeout: s.config.RequestTimeout, UploadTimeout: s.config.UploadTimeout,
		Draining: draining, Calls: &s.calls,
		Corrupt: func(err error) { s.probes.damaged(context.Background(), s.log, err.Error()) },
		Intake:  intake.New(s.config.ReceiveBudget(), runtime.GOMAXPROCS(0)-1), MaxMessage: int64(s.config.MaxBody),
	})
	return rules, links, nil
}

func (s *Server) openMetricsPort(metrics *telemetry.Metrics) {
	s.metrics = metricsServer(s.config, s.log, metrics, s.probes)
	s.onClose("metrics", func(ctx context.Context) error {
		if err := s.metrics.Shutdown(ctx); err != nil {
			return s.metrics.Close() // a running scrape or profile is not worth waiting for
		}
		return nil
	})
}

func serviceNames(handlers grpchan.HandlerMap) []string {
	var names []string
	for name := range handlers.GetServiceInfo() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// banner logs versions, addresses and settings.
func (s *Server) banner(st *store.Store, build config.Build, tracing *telemetry.Tracing) {
	kind := "sqlite"
	if st.Postgres() {
		kind = "postgres"
	}
	s.log.Info("palisade is serving",
		"version", build.Version, "url", s.config.BaseURL(), "http", s.addresses.HTTP, "grpc", s.addresses.GRPC,
		"metrics", "http://"+s.addresses.Metrics+"/metrics", "tls", s.config.TLSCert != "",
		"database", kind, "location", st.Location(), "tracing", tracing.Enabled(), "roles", s.config.Roles)
	if kind == "sqlite" && !s.config.Has(config.RoleWorker) {
		s.log.Warn("no node runs background jobs: a SQLite file has one node, and this one lacks the role worker", "roles", s.config.Roles)
	}
}
