package store

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent/finding"
)

// BuildTag is the tag of a build whose SQLite knows frequent values, and not only averages, when it chooses an index.
const BuildTag = "sqlite_stat4"

// What to tell about a build without BuildTag, and what to do.
const (
	WithoutBuildTag = "this program was built without -tags=" + BuildTag + ": SQLite plans with averages, and lists of what is rare are slow"
	WithBuildTag    = "build it with make build, or with go build -tags=" + BuildTag
)

// KnowsFrequentValues says whether the planner of the database does. PostgreSQL's always does; that of SQLite, which is
// a part of this program, does when the program was built with BuildTag.
func (s *Store) KnowsFrequentValues(ctx context.Context) (knows bool, err error) {
	if s.Postgres() {
		return true, nil
	}
	err = s.readerDB.QueryRowContext(ctx, "SELECT sqlite_compileoption_used('ENABLE_STAT4')").Scan(&knows)
	if err != nil {
		return false, fmt.Errorf("ask SQLite how it was built: %w", err)
	}
	return knows, nil
}

// sampled is the table of which SQLite keeps samples of each index. A statement that looks at samples is planned anew
// each time, for the values that it is given, although it was prepared before: about 50 µs, which lists are worth and
// look-ups by a key are not.
const sampled = finding.Table

// lacksSamples says that statistics are those of an earlier build without BuildTag, or of none.
func (s *Store) lacksSamples(ctx context.Context) (lacks bool, err error) {
	if knows, err := s.KnowsFrequentValues(ctx); err != nil || !knows {
		return false, err
	}
	var there bool
	if err := s.readerDB.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat4')").Scan(&there); err != nil || !there {
		return true, err
	}
	err = s.readerDB.QueryRowContext(ctx, "SELECT NOT EXISTS (SELECT 1 FROM sqlite_stat4 WHERE tbl = '"+sampled+"')").Scan(&lacks)
	return lacks, err
}
