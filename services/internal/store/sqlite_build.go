package store

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent/finding"
)

// BuildTag is the build tag that compiles SQLite with statistics of frequent values (STAT4) and not only averages.
const BuildTag = "sqlite_stat4"

// Warning and remedy for a build without BuildTag.
const (
	WithoutBuildTag = "this program was built without -tags=" + BuildTag + ": SQLite plans queries with averages only, and lists filtered by a rare value are slow"
	WithBuildTag    = "build it with make build, or with go build -tags=" + BuildTag
)

// KnowsFrequentValues reports whether the planner has statistics of frequent values. PostgreSQL always does. SQLite
// does when this program was built with BuildTag.
func (s *Store) KnowsFrequentValues(ctx context.Context) (knows bool, err error) {
	if s.Postgres() {
		return true, nil
	}
	err = s.readerDB.QueryRowContext(ctx, "SELECT sqlite_compileoption_used('ENABLE_STAT4')").Scan(&knows)
	if err != nil {
		return false, fmt.Errorf("read the build options of SQLite: %w", err)
	}
	return knows, nil
}

// sampledTable is the only table with STAT4 samples for its indexes. A statement that uses samples is planned again
// for each set of parameters, even when it is prepared. That takes about 50 µs: worth it for lists, but not for
// lookups by key.
const sampledTable = finding.Table

// lacksSamples reports whether the statistics were written by a build without BuildTag, or do not exist.
func (s *Store) lacksSamples(ctx context.Context) (lacks bool, err error) {
	if knows, err := s.KnowsFrequentValues(ctx); err != nil || !knows {
		return false, err
	}
	var there bool
	if err := s.readerDB.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat4')").Scan(&there); err != nil || !there {
		return true, err
	}
	err = s.readerDB.QueryRowContext(ctx, "SELECT NOT EXISTS (SELECT 1 FROM sqlite_stat4 WHERE tbl = '"+sampledTable+"')").Scan(&lacks)
	return lacks, err
}
