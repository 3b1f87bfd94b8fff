package services

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/dbcopy"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// CopyRequest describes what `palisade migrate copy` copies.
type CopyRequest struct {
	// From and To are sqlite:PATH (a file or a data directory) or postgres://…; one of each.
	From, To string
	// ReplaceText replaces text that PostgreSQL cannot store, NUL and invalid UTF-8, by U+FFFD.
	ReplaceText bool
	// RequeueJobs requeues background jobs that were running when a server crashed.
	RequeueJobs bool
}

// CopiedTable is the result for one table.
type CopiedTable struct {
	Name  string
	Rows  int64
	Bytes int64 // of the values, in the encoding that the checksum covers
	// Checksum is the SHA-256 of all rows, the same on both databases; hexadecimal.
	Checksum string
	// TargetRows and TargetChecksum were read back from the target.
	TargetRows     int64
	TargetChecksum string
	OK             bool
}

// CopyReport describes a finished copy.
type CopyReport struct {
	From, To string // without credentials
	KeyFile  string
	// ResumedFrom is when the resumed copy was started; zero for a new one.
	ResumedFrom        time.Time
	Tables             []CopiedTable
	Replaced, Requeued int64 // texts and jobs that were changed on request
	OK                 bool  // all tables are identical
}

// CopyDatabase copies a whole database from SQLite to PostgreSQL or back, or resumes an interrupted copy. No server may
// run on either. Errors say what prevents the copy and what to do. A table that differs afterwards is reported, not an
// error.
func CopyDatabase(ctx context.Context, cfg config.Config, req CopyRequest, progress func(phase string, done, total int64)) (CopyReport, error) {
	from, err := dbcopy.ParseEndpoint(req.From)
	if err != nil {
		return CopyReport{}, &EndpointError{Flag: "from", Err: err}
	}
	to, err := dbcopy.ParseEndpoint(req.To)
	if err != nil {
		return CopyReport{}, &EndpointError{Flag: "to", Err: err}
	}
	keyFile := cfg.KeyPath()
	if cfg.KeyFile == "" && from.SQLite != "" {
		keyFile = filepath.Join(filepath.Dir(from.SQLite), filepath.Base(cfg.KeyPath()))
	}
	result, err := dbcopy.Run(ctx, dbcopy.Options{
		From: from, To: to, KeyFile: keyFile, ReplaceText: req.ReplaceText, RequeueJobs: req.RequeueJobs,
		Progress: func(phase dbcopy.Phase, _ string, done, total int64) { progress(string(phase), done, total) },
	})
	if err != nil {
		return CopyReport{}, err
	}
	report := CopyReport{
		From: result.From, To: result.To, KeyFile: keyFile, ResumedFrom: result.ResumedFrom,
		Replaced: result.Replaced, Requeued: result.Requeued, OK: result.OK,
	}
	for _, t := range result.Tables {
		report.Tables = append(report.Tables, CopiedTable(t))
	}
	if !report.OK {
		return report, nil
	}
	target := cfg
	if target.Database, target.KeyFile = to.Postgres, keyFile; to.SQLite != "" {
		target.Data = filepath.Dir(to.SQLite)
	}
	op := operation{method: "migrate.copy", deployments: ofAll, request: map[string]any{"from": report.From, "to": report.To}}
	err = operate(ctx, target, op, func(context.Context, *store.Store, *secret.Keyring) error { return nil })
	if err != nil && !errors.Is(err, errNoDeployment) { // a database that no server has used has no audit trail
		return report, fmt.Errorf("the copy is complete, but its audit trail could not be continued: %w", err)
	}
	return report, nil
}

// EndpointError is an invalid source or target. Flag names the command-line flag.
type EndpointError struct {
	Flag string
	Err  error
}

func (e *EndpointError) Error() string { return "--" + e.Flag + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *EndpointError) Unwrap() error { return e.Err }
