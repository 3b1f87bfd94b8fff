package services

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/dbcopy"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/platform/checks"
)

// Check is one result of Doctor.
type Check = checks.Check

// doctorTimeout limits each request of a check to another machine.
const doctorTimeout = checks.Timeout

// Doctor checks what a server with this configuration needs: data directory, database, migrations, key, clock, TLS
// certificate, ports, OpenID Connect issuer and mail server. It changes nothing. Checks that depend on a failed one are
// skipped.
func Doctor(ctx context.Context, cfg config.Config) []Check {
	found := []Check{checkData(cfg), checkDisk(cfg)}
	found = append(found, checkPermissions(cfg)...)
	found = append(found, checkStore(ctx, cfg)...)
	if cfg.TLSCert != "" {
		found = append(found, checkCertificate(cfg, time.Now()))
	}
	found = append(found, checkPorts(ctx, cfg)...)
	if cfg.OIDCIssuer != "" {
		found = append(found, checkOIDC(ctx, cfg))
	}
	if cfg.SMTP != "" {
		found = append(found, checkMail(ctx, cfg))
	}
	return found
}

func failed(name, detail, fix string) Check { return checks.Failed(name, detail, fix) }
func passed(name, detail string) Check      { return checks.Passed(name, detail) }

// checkData checks that the data directory is writable. With PostgreSQL it holds at most the key.
func checkData(cfg config.Config) Check {
	const name = "data directory"
	info, err := os.Stat(cfg.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return passed(name, cfg.Data+" does not exist yet; the first start creates it")
	case err != nil:
		return failed(name, err.Error(), "let the server's user reach the directory, or choose another with --data")
	case !info.IsDir():
		return failed(name, cfg.Data+" is not a directory", "choose a directory with --data")
	}
	file, err := os.CreateTemp(cfg.Data, ".doctor-*")
	if err != nil {
		return failed(name, err.Error(), "let the server's user write to "+cfg.Data+", or choose another directory with --data")
	}
	if err := errors.Join(file.Close(), os.Remove(file.Name())); err != nil {
		return failed(name, err.Error(), "check the file system of "+cfg.Data)
	}
	return passed(name, cfg.Data+" can be written")
}

// checkStore checks the database, its schema, its key and its clock.
func checkStore(ctx context.Context, cfg config.Config) []Check {
	const name = "database"
	if absent(cfg) {
		return []Check{passed(name, cfg.SQLitePath()+" does not exist yet; the first start creates it")}
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	st, err := server.OpenStore(ctx, cfg)
	if errors.Is(err, dbcopy.ErrUnfinished) {
		return []Check{failed(name, err.Error(), "repeat the palisade migrate copy that was interrupted: it resumes")}
	}
	if errors.Is(err, store.ErrPooler) {
		return []Check{failed(name, err.Error(), "the database is behind a pooler: add ?default_query_exec_mode=cache_describe to --database, and configure its role as docs/scale.md says")}
	}
	if err != nil {
		return []Check{failed(name, err.Error(), "start the database, or correct --database (host, port, user, password, name)")}
	}
	defer func() { _ = st.Close() }() // nothing was written
	if err := st.Ping(ctx); err != nil {
		return []Check{failed(name, err.Error(), "check the database's log; of a SQLite file, restore a backup")}
	}
	found := []Check{passed(name, st.Location()+" answers"), checkBuild(ctx, st), checkIntegrity(ctx, st), checkClock(ctx, st)}
	schema, migrated := checkMigrations(ctx, st)
	found = append(found, schema, checkWrites(ctx, st, migrated && schema.OK))
	if migrated {
		found = append(found, checkReports(ctx, cfg, st)...)
		found = append(found, checkKey(ctx, cfg, st))
		if schema.OK {
			found = append(found, checkProjectNames(ctx, st))
			found = append(found, checkRules(ctx, st)...)
		}
		found = append(found, checkSignIn(ctx, cfg, st)...)
	}
	return found
}

// checkBuild checks the build options of the embedded SQLite.
func checkBuild(ctx context.Context, st *store.Store) Check {
	const name = "planner"
	knows, err := st.KnowsFrequentValues(ctx)
	if err != nil {
		return failed(name, err.Error(), "check the database's log")
	}
	if !knows {
		return failed(name, store.WithoutBuildTag, store.WithBuildTag)
	}
	return passed(name, "the database's planner knows frequent values")
}

// checkIntegrity runs the integrity check that a server runs at start.
func checkIntegrity(ctx context.Context, st *store.Store) Check {
	const name = "database pages"
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout/2) // leave time for the other checks
	defer cancel()
	if problem := server.Corruption(ctx, st); problem != "" {
		return failed(name, problem, "stop the server and restore a backup: palisade restore")
	}
	if ctx.Err() != nil {
		return passed(name, "no corruption was found before the timeout; a server checks the whole database when it starts")
	}
	return passed(name, "no corruption was found")
}

func checkClock(ctx context.Context, st *store.Store) Check {
	const name = "clock"
	theirs, err := st.Clock(ctx)
	if err != nil {
		return failed(name, "the clock of the database cannot be read: "+err.Error(), "check the database's log")
	}
	return checks.Clock(theirs)
}

// checkMigrations also reports whether there is a schema.
func checkMigrations(ctx context.Context, st *store.Store) (_ Check, migrated bool) {
	const name = "migrations"
	pending, total, err := pendingMigrations(ctx, st)
	switch {
	case err != nil:
		return failed(name, err.Error(), "check the permissions of the database user"), false
	case pending == total:
		return passed(name, "the database is empty; the first start fills it"), false
	case pending > 0:
		return failed(name, fmt.Sprintf("%d of %d are missing", pending, total), "back up the database, then run: palisade migrate up"), true
	}
	return passed(name, fmt.Sprintf("all %d applied", total)), true
}

// settingKeyCheck names the row of the store with which package secret verifies a key.
const settingKeyCheck = "key_check"

func checkKey(ctx context.Context, cfg config.Config, st *store.Store) Check {
	const (
		name = "key"
		fix  = "restore the key file of this database, or name it with --key-file"
	)
	row, err := st.Reader.Setting.Query().Where(setting.Name(settingKeyCheck)).Only(tenant.System(ctx))
	if ent.IsNotFound(err) {
		return passed(name, cfg.KeyPath()+": nothing is sealed yet; the first start creates the key")
	}
	if err != nil {
		return failed(name, err.Error(), "check the database's log")
	}
	keyring, err := secret.Open(cfg.KeyPath(), false)
	if err != nil {
		return failed(name, err.Error(), fix)
	}
	if err := keyring.Verify(row.Value); err != nil {
		return failed(name, err.Error(), fix)
	}
	return passed(name, cfg.KeyPath()+" fits the database")
}

func checkCertificate(cfg config.Config, now time.Time) Check {
	const name = "TLS certificate"
	pair, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
	if err != nil {
		return failed(name, err.Error(), "name the PEM files of a certificate chain and its private key with --tls-cert and --tls-key")
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return failed(name, err.Error(), "replace the certificate")
	}
	return checks.Certificate(leaf, now)
}

// checkPorts checks that each address is free, or that a Palisade server answers there.
func checkPorts(ctx context.Context, cfg config.Config) []Check {
	var found []Check
	for _, port := range []struct{ key, address string }{{"http", cfg.HTTP}, {"grpc", cfg.GRPC}, {"metrics", cfg.Metrics}} {
		name := port.key + " address"
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", port.address)
		switch {
		case err == nil:
			_ = listener.Close() // it was only a test
			found = append(found, passed(name, port.address+" is free"))
		case isRunning(ctx, cfg):
			found = append(found, passed(name, port.address+": the server runs"))
		default:
			found = append(found, failed(name, server.ListenError(port.key, port.address, err).Error(), "stop what listens there, or choose another address with --"+port.key))
		}
	}
	return found
}

// isRunning reports whether a server with this configuration is running, according to its metrics port.
func isRunning(ctx context.Context, cfg config.Config) bool {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+cfg.Metrics+"/healthz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode == http.StatusOK
}

func checkOIDC(ctx context.Context, cfg config.Config) Check {
	const name = "OIDC issuer"
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	log := slog.New(slog.DiscardHandler) // the check itself reports the reason
	var issuer *access.OIDC
	client, err := server.IssuerClient(cfg, log)
	if err == nil {
		issuer, err = access.NewOIDC(nil, access.OIDCOptions{Issuer: cfg.OIDCIssuer, Audience: cfg.OIDCAudience, Client: client, Log: log})
	}
	if err == nil {
		err = issuer.Check(ctx)
	}
	if err != nil {
		return failed(name, err.Error(), "correct --oidc-issuer (exactly as the issuer writes it), or make it reachable from here")
	}
	return passed(name, cfg.OIDCIssuer+" answers and publishes keys")
}
