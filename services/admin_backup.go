package services

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/dbcopy"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// BackupReport describes a finished backup.
type BackupReport struct {
	File     string
	Database string
	KeyFile  string // not part of the backup
	Size     int64  // bytes
	Findings int64
}

// RestoreRequest describes what to restore.
type RestoreRequest struct {
	// File is the backup.
	File string
	// Force replaces an existing database, which is kept under another name.
	Force bool
	// AcceptBrokenAudit restores a backup although its audit trail was tampered with.
	AcceptBrokenAudit bool
}

// RestoreReport is the result of a restore.
type RestoreReport struct {
	// Restored is false when the audit trail of the backup is broken. Nothing was changed then.
	Restored bool
	Database string
	// Kept is the new path of the replaced database; empty when there was none.
	Kept     string
	Size     int64 // bytes
	Findings int64
	// Migrated are the migrations that were applied to the backup.
	Migrated []MigrationStatus
	Audit    []AuditReport
}

// ErrPostgres means that a command supports SQLite only. The text names PostgreSQL's own tools.
var ErrPostgres = errors.New("the database is PostgreSQL, which has its own tools")

// Backup copies the SQLite database of a configuration into a new file while servers use it. The backup contains every
// transaction that was committed before the call. It contains later transactions completely or not at all. It calls
// progress with the number of copied pages.
func Backup(ctx context.Context, cfg config.Config, file string, progress func(done, total int64)) (BackupReport, error) {
	if cfg.Database != "" {
		return BackupReport{}, postgresCommands(cfg, file)
	}
	if _, err := os.Stat(cfg.SQLitePath()); errors.Is(err, fs.ErrNotExist) {
		return BackupReport{}, fmt.Errorf("there is no database %s: name its directory with --data", cfg.SQLitePath())
	}
	contents, err := dbcopy.Backup(ctx, cfg.SQLitePath(), file, progress)
	if err != nil {
		return BackupReport{}, err
	}
	return BackupReport{
		File: file, Database: cfg.SQLitePath(), KeyFile: cfg.KeyPath(), Size: contents.Size, Findings: contents.Findings,
	}, nil
}

// Restore puts a backup into the data directory of a configuration, after it has checked the file, its schema and its
// audit trail. No server may run on the directory. A backup of an older version is migrated; the file itself is only
// read.
func Restore(ctx context.Context, cfg config.Config, req RestoreRequest, progress func(deployment string, entries int64)) (report RestoreReport, err error) {
	if cfg.Database != "" {
		return RestoreReport{}, postgresCommands(cfg, req.File)
	}
	if err := dbcopy.Replaceable(ctx, cfg.SQLitePath(), req.Force); err != nil {
		return RestoreReport{}, err
	}
	if _, err := os.Stat(cfg.Data); errors.Is(err, fs.ErrNotExist) {
		defer func() {
			if !report.Restored {
				_ = os.Remove(cfg.Data) // restore the earlier state
			}
		}()
	}
	dir, err := dbcopy.Stage(ctx, req.File, cfg.Data)
	if err != nil {
		return RestoreReport{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	staged := cfg
	staged.Data, staged.KeyFile = dir, cfg.KeyPath()
	staged.AuditAnchor = "" // a backup is older than the anchors; only the operator knows whether that is intended
	report.Database = cfg.SQLitePath()
	if report.Migrated, err = Migrate(ctx, staged); err != nil {
		return RestoreReport{}, err
	}
	whole := true
	err = VerifyAudit(ctx, staged, "", KnownAudit{}, progress, func(found AuditReport) error {
		whole = whole && len(found.Broken) == 0
		report.Audit = append(report.Audit, found)
		return nil
	})
	if err != nil || !whole && !req.AcceptBrokenAudit {
		return report, err
	}
	op := operation{method: "restore", deployments: ofAll, request: map[string]any{"file": req.File, "force": req.Force, "accept_broken_audit": req.AcceptBrokenAudit}}
	err = operate(ctx, staged, op, func(context.Context, *store.Store, *secret.Keyring) error { return nil })
	// The operator may accept a trail that can no longer be written to.
	accepted := !whole && (errors.Is(err, audit.ErrNoKey) || errors.Is(err, audit.ErrKey) || errors.Is(err, errNoDeployment))
	if err != nil && !accepted {
		return RestoreReport{}, fmt.Errorf("record the restore in the audit trail: %w", err)
	}
	contents, err := dbcopy.Inspect(ctx, staged.SQLitePath())
	if err != nil {
		return RestoreReport{}, err
	}
	report.Size, report.Findings = contents.Size, contents.Findings
	// A server may have been started in the meantime.
	if err := dbcopy.Replaceable(ctx, cfg.SQLitePath(), req.Force); err != nil {
		return RestoreReport{}, err
	}
	if report.Kept, err = dbcopy.Install(ctx, dir, cfg.SQLitePath(), time.Now()); err != nil {
		return report, err
	}
	report.Restored = true
	return report, nil
}

// postgresCommands returns an error with the commands that back up and restore the PostgreSQL database of a
// configuration. The command lines contain no password: PostgreSQL's tools read it from ~/.pgpass or PGPASSWORD.
func postgresCommands(cfg config.Config, file string) error {
	config, err := pgx.ParseConfig(cfg.Database)
	if err != nil {
		return errors.New("database: not a PostgreSQL URL; want postgres://user:password@host:5432/name")
	}
	u, err := url.Parse(cfg.Database)
	if err != nil {
		return errors.New("database: not a PostgreSQL URL; want postgres://user:password@host:5432/name") // the text of err may contain the password
	}
	u.User = url.User(config.User)
	u.RawQuery = toolParameters(u.Query()).Encode()
	return fmt.Errorf(`%w. Its password is not in these lines: give it in PGPASSWORD or ~/.pgpass.
  back up, while servers run:
    pg_dump --format=custom --no-owner --file=%[2]s '%[3]s'
  restore, with all servers stopped, into a database made by createdb:
    pg_restore --no-owner --single-transaction --exit-on-error --dbname='%[3]s' %[2]s
    palisade audit verify --database '%[3]s' --key-file %[4]s
  any moment of the last days (PITR): a base backup by pg_basebackup --checkpoint=fast --pgdata=DIR, and archive_mode=on;
  see https://www.postgresql.org/docs/current/continuous-archiving.html
Keep %[4]s apart from the backups: credentials and the audit trail are sealed with it`, ErrPostgres, quoteShell(file), u.String(), quoteShell(cfg.KeyPath()))
}

// toolParameters are the parameters of a URL that PostgreSQL's own tools accept, too, without secrets.
func toolParameters(all url.Values) url.Values {
	known := []string{"host", "port", "dbname", "user", "passfile", "service", "servicefile", "connect_timeout", "target_session_attrs"}
	maps.DeleteFunc(all, func(name string, _ []string) bool {
		return !slices.Contains(known, name) && (!strings.HasPrefix(name, "ssl") || name == "sslpassword")
	})
	return all
}

// quoteShell quotes a path for a shell if needed.
func quoteShell(path string) string {
	if path != "" && !strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("/.-_", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
