package dbcopy

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/services/internal/store"
)

// checkSchema checks that the source has exactly the schema of this program. The target was migrated by this
// program.
func checkSchema(ctx context.Context, source, target *database) error {
	exists, err := source.hasTable(ctx, "goose_db_version")
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("the source %s is empty: there is nothing to copy", source.location)
	}
	missing, err := missingMigrations(ctx, source)
	if err != nil {
		return err
	}
	theirs, err := queueVersion(ctx, source)
	if err != nil {
		return err
	}
	ours, err := queueVersion(ctx, target)
	switch {
	case err != nil:
		return err
	case theirs > ours:
		return fmt.Errorf("the job queue of %s has version %d, this version of Palisade knows %d: copy with the version that the source runs on", source.location, theirs, ours)
	case missing > 0 || theirs < ours:
		return fmt.Errorf("the source %s: %w", source.location, store.ErrPending)
	}
	return nil
}

func queueVersion(ctx context.Context, d *database) (version int, err error) {
	exists, err := d.hasTable(ctx, "river_migration")
	if err != nil || !exists {
		return 0, err
	}
	if err := d.db.QueryRowContext(ctx, "SELECT COALESCE(MAX(version), 0) FROM river_migration WHERE line = 'main'").Scan(&version); err != nil {
		return 0, fmt.Errorf("read the version of the job queue of %s: %w", d.location, err)
	}
	return version, nil
}

// missingMigrations counts the migrations that the database lacks. It returns an error when the database has one
// that this program does not know.
func missingMigrations(ctx context.Context, d *database) (int, error) {
	known, err := knownMigrations(d.postgres)
	if err != nil {
		return 0, err
	}
	rows, err := d.db.QueryContext(ctx, "SELECT version_id FROM goose_db_version WHERE is_applied AND version_id > 0")
	if err != nil {
		return 0, fmt.Errorf("read the schema of %s: %w", d.location, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var version int64
		if err := rows.Scan(&version); err != nil {
			return 0, err
		}
		if !known[version] {
			return 0, fmt.Errorf("%s has migration %d, which this version of Palisade does not know: use the version that it was made with, or a later one", d.location, version)
		}
		delete(known, version)
	}
	return len(known), rows.Err()
}

// knownMigrations returns the versions of this program's migrations.
func knownMigrations(postgres bool) (map[int64]bool, error) {
	dir := "sqlite"
	if postgres {
		dir = "postgres"
	}
	names, err := fs.Glob(migrate.Files, dir+"/*.sql")
	if err != nil {
		return nil, err
	}
	known := map[int64]bool{}
	for _, name := range names {
		number, _, _ := strings.Cut(strings.TrimPrefix(name, dir+"/"), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s has no number: %w", name, err)
		}
		known[version] = true
	}
	return known, nil
}
