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

// CopyRequest says what `palisade migrate copy` copies.
type CopyRequest struct {
	// From and To are sqlite:PATH (a file or a data directory) or postgres://…; one of each.
	From, To string
	// ReplaceText stores U+FFFD for what PostgreSQL cannot store in text: NUL and what is not UTF-8.
	ReplaceText bool
	// RequeueJobs lets background jobs run again that a server died over.
	RequeueJobs bool
}

// CopiedTable is what became of one table.
type CopiedTable struct {
	Name  string
	Rows  int64
	Bytes int64 // of the values, in the encoding that the checksum is of
	// Checksum is the SHA-256 of all rows, the same on both databases; hexadecimal.
	Checksum string
	// TargetRows and TargetChecksum are what was read back.
	TargetRows     int64
	TargetChecksum string
	OK             bool
}

// CopyReport is a copy that has come to its end.
type CopyReport struct {
	From, To string // without credentials
	KeyFile  string
	// ResumedFrom is when the copy began that this one finished; zero for a new one.
	ResumedFrom        time.Time
	Tables             []CopiedTable
	Replaced, Requeued int64 // texts and jobs that were changed, because the request said so
	OK                 bool  // all tables are the same
}

// CopyDatabase copies a whole database from SQLite to PostgreSQL or back, or goes on with a copy that was broken off.
// No server may run on either. Errors say what is in the way and what to do; a table that is not the same afterwards is
// no error but in the report.
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
	op := operation{method: "migrate.copy", homes: ofAll, request: map[string]any{"from": report.From, "to": report.To}}
	err = operate(ctx, target, op, func(context.Context, *store.Store, *secret.Keyring) error { return nil })
	if err != nil && !errors.Is(err, errNoHome) { // a database that no server has used has no trail
		return report, fmt.Errorf("the copy is complete, but its audit trail could not be continued: %w", err)
	}
	return report, nil
}

// EndpointError is a database that cannot be understood; Flag is where it was named.
type EndpointError struct {
	Flag string
	Err  error
}

func (e *EndpointError) Error() string { return "--" + e.Flag + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *EndpointError) Unwrap() error { return e.Err }
