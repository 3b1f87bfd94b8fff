package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/services/internal/apierr"
)

// An import appends to the end of many groups inside an index (deployment, status, time, id). PostgreSQL fills up only the last
// page of a whole index and splits all others into halves, so that indexes of findings are half empty after large imports.

const (
	// leastIndex is how large an index must be to be worth a rebuild, in bytes.
	leastIndex = 32 << 20
	// mostBloat is how much larger than its entries need an index may be.
	mostBloat = 1.4
	// rebuildTime is what one index gets. A rebuild waits for every transaction that is older, and lets no vacuum at the table
	// meanwhile: one that was forgotten must not stop that until somebody looks.
	rebuildTime = 2 * time.Hour
	// leftoverTime is what is given to what an earlier run has left, and to statistics.
	leftoverTime = 30 * time.Minute
	// cleanUpTime is for removing what a rebuild left that was cut off. A job that is cancelled at a stop gets five seconds.
	cleanUpTime = 4 * time.Second
)

// errStuck ends the night: the next index would wait for the same transaction, and keep vacuum away for as long again.
var errStuck = errors.New("no more indexes are rebuilt this night")

// RebuiltIndex is an index that was written anew.
type RebuiltIndex struct {
	Name          string
	Before, After int64 // bytes
}

// RebuildIndexes writes those indexes of our tables anew that are large and much larger than their entries need, one by one. Reads
// and writes go on meanwhile. An error says which index failed and what to do; the others were tried, unless one could not be done
// in its time. On SQLite it does nothing.
//
// No two sessions rebuild at once, nor does one while another of ours refreshes statistics: for each index the lock of alone is
// taken, and what to rebuild is looked up under it. A migration asks for another lock; if it waits for a table whose index is being
// rebuilt, PostgreSQL ends one of both as a deadlock, as a rule the rebuild, which then cleans up like after any error.
func (s *Store) RebuildIndexes(ctx context.Context) ([]RebuiltIndex, error) {
	return s.rebuildIndexes(ctx, leastIndex)
}

func (s *Store) rebuildIndexes(ctx context.Context, least int64) (rebuilt []RebuiltIndex, err error) {
	if !s.Postgres() {
		return nil, nil
	}
	const doing = "looking after tables"
	var failed []error
	err = s.alone(ctx, upkeepLock, doing, func() error {
		limited, cancel := context.WithTimeout(ctx, leftoverTime)
		defer cancel()
		if _, err := s.dropLeftovers(limited); err != nil {
			return err
		}
		return s.refreshStatistics(limited) // what an index needs is told from them
	})
	if err != nil {
		return nil, err
	}
	tried := map[string]bool{}
	for ctx.Err() == nil {
		var index *indexSize
		err := s.alone(ctx, upkeepLock, doing, func() (err error) {
			index, err = s.bloatedIndex(ctx, least, tried)
			if err != nil || index == nil {
				return err
			}
			tried[index.quoted()] = true
			after, err := s.rebuild(ctx, index)
			if err == nil {
				rebuilt = append(rebuilt, RebuiltIndex{index.name, index.bytes, after})
			}
			return err
		})
		if err != nil {
			failed = append(failed, err)
		}
		if index == nil || errors.Is(err, errStuck) {
			return rebuilt, errors.Join(failed...)
		}
		select { // others who ask for the lock get it
		case <-ctx.Done():
		case <-time.After(2 * lookInterval):
		}
	}
	return rebuilt, errors.Join(append(failed, ctx.Err())...)
}

// rebuild returns the new size. It is one statement outside of a transaction, so that it passes a pooler.
func (s *Store) rebuild(ctx context.Context, index *indexSize) (size int64, err error) {
	statement := "REINDEX INDEX CONCURRENTLY " + index.quoted()
	limited, cancel := context.WithTimeout(ctx, rebuildTime)
	defer cancel()
	if _, err := s.patientDB.ExecContext(limited, statement); err != nil {
		err = fmt.Errorf("rebuild index %s: %w; %s", index.name, err, rebuildAdvice(limited, err, statement))
		left := s.cleanUp(ctx)
		if left != nil || limited.Err() != nil {
			left = errors.Join(left, errStuck)
		}
		return 0, errors.Join(err, left)
	}
	err = s.patientDB.QueryRowContext(ctx, "SELECT pg_relation_size(to_regclass($1))", index.quoted()).Scan(&size)
	if err != nil {
		return 0, fmt.Errorf("read the size of index %s: %w", index.name, err)
	}
	return size, nil
}

// rebuildAdvice says what to do about an error.
func rebuildAdvice(ctx context.Context, err error, statement string) string {
	state := apierr.SQLState(err)
	switch {
	case state == apierr.StateNoPrivilege:
		return "give the table to the role of the server (ALTER TABLE … OWNER TO), or let its owner run: " + statement
	case state == apierr.StateDiskFull:
		return "a rebuild needs as much free space as the index will have"
	case state == apierr.StateQueryCanceled && ctx.Err() == nil:
		return "a statement_timeout of the role or of the database's URL may end it; without one, run: " + statement
	case ctx.Err() != nil:
		return "it is tried again the next night"
	}
	return "it is tried again the next night, or run: " + statement
}

// cleanUp removes what a rebuild left behind that failed or was cut off: every write would go on filling it.
func (s *Store) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	for {
		building, err := s.dropLeftovers(ctx)
		if err != nil || !building {
			return err
		}
		select { // the statement that was cut off has not ended yet
		case <-ctx.Done():
			return fmt.Errorf("drop the unfinished copy of an index: %w; it is dropped by the next run", ctx.Err())
		case <-time.After(lookInterval):
		}
	}
}

// ourTables are those of this schema, for a query. River looks after its own.
func ourTables() string {
	names := make([]string, len(migrate.Tables))
	for i, table := range migrate.Tables {
		names[i] = "to_regclass('" + pgx.Identifier{table.Name}.Sanitize() + "')"
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// leftovers are the copies that REINDEX CONCURRENTLY makes or replaces. PostgreSQL names them after the index, which it cuts off where
// the name would get too long. Whoever builds one holds a lock on it.
const leftovers = `SELECT n.nspname, c.relname, EXISTS (
		SELECT 1 FROM pg_locks l WHERE l.relation = c.oid AND l.mode = 'ShareUpdateExclusiveLock'
			AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
	FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE NOT x.indisvalid AND c.relname ~ '_cc(new|old)[0-9]*$' AND EXISTS (
		SELECT 1 FROM pg_index o JOIN pg_class original ON original.oid = o.indexrelid
		CROSS JOIN regexp_replace(c.relname, '_cc(new|old)[0-9]*$', '') AS begin
		WHERE o.indrelid = x.indrelid AND o.indexrelid <> x.indexrelid
			AND (original.relname = begin OR octet_length(c.relname) = 63 AND starts_with(original.relname, begin)))
	AND x.indrelid IN `

// dropLeftovers drops those that nobody is building any more, and tells whether there are others.
func (s *Store) dropLeftovers(ctx context.Context) (building bool, err error) {
	rows, err := s.patientDB.QueryContext(ctx, leftovers+ourTables())
	if err != nil {
		return false, fmt.Errorf("look for unfinished copies of indexes: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var names []string
	for rows.Next() {
		var schema, name string
		var held bool
		if err := rows.Scan(&schema, &name, &held); err != nil {
			return false, fmt.Errorf("look for unfinished copies of indexes: %w", err)
		}
		if held {
			building = true
			continue
		}
		names = append(names, pgx.Identifier{schema, name}.Sanitize())
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return false, fmt.Errorf("look for unfinished copies of indexes: %w", err)
	}
	var failed []error
	for _, name := range names {
		if _, err := s.patientDB.ExecContext(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+name); err != nil {
			failed = append(failed, fmt.Errorf("drop the unfinished copy %s of an index: %w; it is tried again by the next run", name, err))
		}
	}
	return building, errors.Join(failed...)
}

// indexSize is what an index has and needs.
type indexSize struct {
	schema, name string
	bytes        int64
	entries      float64
	pageSize     float64
	fill         float64 // of a page
	nulls        bool    // entries have a bitmap
	width        float64 // of the columns of an entry
	unknown      bool    // a column has no statistics
}

func (i *indexSize) quoted() string { return pgx.Identifier{i.schema, i.name}.Sanitize() }

// needs is the size of a new index, in bytes. Where many entries have equal keys it is smaller still.
func (i *indexSize) needs() float64 {
	header := 8.0
	if i.nulls {
		header = 16
	}
	const linePointer, pageHeader, metaPage = 4, 24 + 16, 1
	onPage := (i.pageSize - pageHeader) * i.fill / (header + aligned(i.width, 8) + linePointer)
	return (math.Ceil(i.entries/onPage) + metaPage) * i.pageSize
}

func (i *indexSize) bloated() bool { return !i.unknown && float64(i.bytes) > mostBloat*i.needs() }

func aligned(width, to float64) float64 { return math.Ceil(width/to) * to }

// indexColumns are those of all indexes of a size, the smallest index first: what it no longer needs is free for the next. The shares of
// NULL are those of whole tables, so a partial index counts every value.
const indexColumns = `SELECT n.nspname, c.relname, pg_relation_size(c.oid), c.reltuples, current_setting('block_size')::float8,
		coalesce((SELECT option_value FROM pg_options_to_table(c.reloptions) WHERE option_name = 'fillfactor'), '90')::float8 / 100,
		st.avg_width * CASE WHEN x.indpred IS NULL THEN 1 - st.null_frac ELSE 1 END, coalesce(st.null_frac, 0) > 0,
		CASE a.attalign WHEN 'd' THEN 8 WHEN 'i' THEN 4 WHEN 's' THEN 2 ELSE 1 END, a.attlen < 0
	FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid JOIN pg_am am ON am.oid = c.relam JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_class t ON t.oid = x.indrelid JOIN pg_namespace tn ON tn.oid = t.relnamespace
		JOIN pg_attribute a ON a.attrelid = c.oid
		LEFT JOIN pg_attribute ta ON ta.attrelid = t.oid AND ta.attnum = x.indkey[a.attnum - 1]
		LEFT JOIN pg_stats st ON st.schemaname = tn.nspname AND st.tablename = t.relname AND st.attname = ta.attname AND NOT st.inherited
	WHERE am.amname = 'btree' AND x.indisvalid AND x.indexprs IS NULL AND c.relkind = 'i' AND c.reltuples >= 0
		AND pg_relation_size(c.oid) >= $1 AND x.indrelid IN %s
	ORDER BY pg_relation_size(c.oid), c.oid, a.attnum`

// bloatedIndex finds the smallest that is much larger than it needs to be and was not tried yet; nil: none.
func (s *Store) bloatedIndex(ctx context.Context, least int64, tried map[string]bool) (*indexSize, error) {
	rows, err := s.patientDB.QueryContext(ctx, fmt.Sprintf(indexColumns, ourTables()), least)
	if err != nil {
		return nil, fmt.Errorf("read the sizes of indexes: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var all []*indexSize
	for rows.Next() {
		var index indexSize
		var width sql.NullFloat64
		var nulls, variable bool
		var alignment float64
		if err := rows.Scan(&index.schema, &index.name, &index.bytes, &index.entries, &index.pageSize, &index.fill, &width, &nulls, &alignment, &variable); err != nil {
			return nil, fmt.Errorf("read the sizes of indexes: %w", err)
		}
		if len(all) == 0 || all[len(all)-1].quoted() != index.quoted() {
			all = append(all, &index)
		}
		if variable && width.Float64 < 127 {
			alignment = 1 // a short value has a header of one byte
		}
		current := all[len(all)-1]
		current.width = aligned(current.width, alignment) + width.Float64
		current.nulls = current.nulls || nulls
		current.unknown = current.unknown || !width.Valid
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the sizes of indexes: %w", err)
	}
	for _, index := range all {
		if index.bloated() && !tried[index.quoted()] {
			return index, nil
		}
	}
	return nil, nil
}
