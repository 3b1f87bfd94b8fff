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
	// rememberedPackages is how many rows one statement writes, of 4 parameters each.
	rememberedPackages = 1000
	// missingPackages is how many are looked for at once.
	missingPackages = 20_000
	// packagesLock is the number of the lock on PostgreSQL under which packages are deleted: scans share it until their
	// dependencies are committed, and with them seen by who looks for packages without any.
	packagesLock = 7_210_463_917
)

// pack is a package of a deployment, as it is told apart from others.
type pack struct {
	deploymentID             int64
	ecosystem, name, license string
}

func (p pack) compare(other pack) int {
	return cmp.Or(cmp.Compare(p.deploymentID, other.deploymentID), cmp.Compare(p.ecosystem, other.ecosystem),
		cmp.Compare(p.name, other.name), cmp.Compare(p.license, other.license))
}

// remember stores the packages of rows that are not known yet. On PostgreSQL they do not wait for the transaction, for
// which others that found the same package would have to wait.
func remember(ctx context.Context, st *store.Store, tx *ent.Tx, deploymentID int64, rows []entry) error {
	if len(rows) == 0 {
		return nil
	}
	list := make([]pack, len(rows))
	for i, row := range rows {
		list[i] = pack{deploymentID, row.ecosystem, row.pkg, row.license}
	}
	if st.Postgres() {
		if err := st.Exec(ctx, tx, "SELECT pg_advisory_xact_lock_shared(?)", packagesLock); err != nil {
			return fmt.Errorf("take the lock of packages: %w", err)
		}
	}
	return insertPackages(ctx, st, tx, list)
}

// insertPackages inserts those that are not there: in the transaction on SQLite, aside on PostgreSQL. They are sorted:
// two who insert the same ones do not wait for each other in turns.
func insertPackages(ctx context.Context, st *store.Store, tx *ent.Tx, list []pack) error {
	slices.SortFunc(list, pack.compare)
	for batch := range slices.Chunk(slices.Compact(list), rememberedPackages) {
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

// Tidy makes the packages of all deployments those of their dependencies: it adds what nodes of a version without that
// table have stored, and deletes what no dependency is of any more. It writes only where there is something to do, and
// on PostgreSQL deletes nothing while scans store dependencies: there is a next time. added says that there were some
// to add: such a node may be at work still.
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

// missing are packages that dependencies are of, and that are not in the table.
func missing(ctx context.Context, st *store.Store) (list []pack, err error) {
	reader, _ := st.DB()
	rows, err := reader.QueryContext(ctx, st.Placeholders(`SELECT DISTINCT d.deployment_id, d.ecosystem, d.package, COALESCE(d.license, '')
		FROM dependencies d WHERE NOT EXISTS (SELECT 1 FROM dependency_packages p WHERE p.deployment_id = d.deployment_id
		AND p.ecosystem = d.ecosystem AND p.package = d.package AND p.license = COALESCE(d.license, '')) LIMIT ?`), missingPackages)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var p pack
		if err := rows.Scan(&p.deploymentID, &p.ecosystem, &p.name, &p.license); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, rows.Err()
}

// unused is the condition on packages that no dependency is of one. The ecosystem is an expression, so that they are
// not looked up by it: PostgreSQL without statistics takes an ecosystem for as rare as a package, and reads all of npm
// for each.
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

// takeLock takes the lock of packages alone, if nobody has it.
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
