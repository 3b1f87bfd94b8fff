package dependencies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// packageBatch is the number of rows per insert, with 4 parameters each.
	packageBatch = 1000
	// missingLimit is the maximum number of missing packages read at once.
	missingLimit = 20_000
	// packagesLock is the number of PostgreSQL's advisory lock for deleting packages. Scans hold it shared until their
	// dependencies are committed and visible to the search for unused packages.
	packagesLock = 7_210_463_917
)

// packageKey is the key of a package in a deployment.
type packageKey struct {
	deploymentID             int64
	ecosystem, name, license string
}

func (p packageKey) compare(other packageKey) int {
	return cmp.Or(cmp.Compare(p.deploymentID, other.deploymentID), cmp.Compare(p.ecosystem, other.ecosystem),
		cmp.Compare(p.name, other.name), cmp.Compare(p.license, other.license))
}

// addPackages stores packages of rows that are not yet known. On PostgreSQL they are committed separately, so that
// other transactions with the same package do not wait for this one.
func addPackages(ctx context.Context, st *store.Store, tx *ent.Tx, deploymentID int64, rows []entry) error {
	if len(rows) == 0 {
		return nil
	}
	list := make([]packageKey, len(rows))
	for i, row := range rows {
		list[i] = packageKey{deploymentID, row.ecosystem, row.pkg, row.license}
	}
	if st.Postgres() {
		if err := st.Exec(ctx, tx, "SELECT pg_advisory_xact_lock_shared(?)", packagesLock); err != nil {
			return fmt.Errorf("take the lock of packages: %w", err)
		}
	}
	return insertPackages(ctx, st, tx, list)
}

// insertPackages inserts missing packages: in the transaction on SQLite, in a separate one on PostgreSQL. They are
// sorted, so that concurrent inserts cannot deadlock.
func insertPackages(ctx context.Context, st *store.Store, tx *ent.Tx, list []packageKey) error {
	slices.SortFunc(list, packageKey.compare)
	for batch := range slices.Chunk(slices.Compact(list), packageBatch) {
		args := make([]any, 0, 4*len(batch))
		for _, p := range batch {
			args = append(args, p.deploymentID, p.ecosystem, p.name, p.license)
		}
		query := "INSERT INTO dependency_packages (deployment_id, ecosystem, package, license) VALUES (?, ?, ?, ?)" +
			strings.Repeat(", (?, ?, ?, ?)", len(batch)-1) + " ON CONFLICT DO NOTHING"
		var err error
		if st.Postgres() {
			err = st.ExecOutside(ctx, query, args...)
		} else {
			err = st.Exec(ctx, tx, query, args...)
		}
		if err != nil {
			return fmt.Errorf("write packages: %w", err)
		}
	}
	return nil
}

// Tidy updates the packages of all deployments to match their dependencies. It adds missing packages, which nodes of an
// older version do not store, and deletes unused ones. It writes only if needed. On PostgreSQL it deletes nothing while
// scans store dependencies; the next run does. added reports that packages were missing, so an older node may still be
// running.
func Tidy(ctx context.Context, st *store.Store) (added bool, err error) {
	if added, err = addMissing(ctx, st); err != nil {
		return added, fmt.Errorf("add packages: %w", err)
	}
	if err := deleteUnused(ctx, st); err != nil {
		return added, fmt.Errorf("delete packages: %w", err)
	}
	return added, nil
}

func addMissing(ctx context.Context, st *store.Store) (added bool, err error) {
	for {
		list, err := missing(ctx, st)
		if err != nil || len(list) == 0 {
			return added, err
		}
		added = true
		err = st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error { return insertPackages(ctx, st, tx, list) })
		if err != nil {
			return added, err
		}
	}
}

// missing returns packages of dependencies that are not in the table.
func missing(ctx context.Context, st *store.Store) (list []packageKey, err error) {
	reader, _ := st.DB()
	rows, err := reader.QueryContext(ctx, st.Placeholders(`SELECT DISTINCT d.deployment_id, d.ecosystem, d.package, COALESCE(d.license, '')
		FROM dependencies d WHERE NOT EXISTS (SELECT 1 FROM dependency_packages p WHERE p.deployment_id = d.deployment_id
		AND p.ecosystem = d.ecosystem AND p.package = d.package AND p.license = COALESCE(d.license, '')) LIMIT ?`), missingLimit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var p packageKey
		if err := rows.Scan(&p.deploymentID, &p.ecosystem, &p.name, &p.license); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, rows.Err()
}

// unused selects packages without dependencies. The ecosystem is an expression, so that it is not used for the index
// lookup: PostgreSQL without statistics assumes that an ecosystem is as rare as a package, and would read all of npm
// for each package.
const unused = ` FROM dependency_packages WHERE NOT EXISTS (SELECT 1 FROM dependencies d
	WHERE d.deployment_id = dependency_packages.deployment_id AND d.package = dependency_packages.package
	AND d.ecosystem || '' = dependency_packages.ecosystem AND COALESCE(d.license, '') = dependency_packages.license)`

func deleteUnused(ctx context.Context, st *store.Store) error {
	reader, _ := st.DB()
	var found bool
	if err := reader.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1"+unused+")").Scan(&found); err != nil || !found {
		return err
	}
	return st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		if st.Postgres() {
			if free, err := takeLock(ctx, tx); err != nil || !free {
				return err
			}
		}
		return st.Exec(ctx, tx, "DELETE"+unused)
	})
}

// takeLock acquires the exclusive lock of packages, if it is free.
func takeLock(ctx context.Context, tx *ent.Tx) (free bool, err error) {
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT pg_try_advisory_xact_lock(%d)", packagesLock))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if rows.Next() {
		err = rows.Scan(&free)
	}
	return free, errors.Join(err, rows.Err())
}
