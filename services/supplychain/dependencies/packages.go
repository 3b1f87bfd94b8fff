package dependencies

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// rememberedPackages is how many rows one statement writes, of 4 parameters each.
const rememberedPackages = 1000

// remember stores packages that are not known yet. On PostgreSQL it does not wait for the transaction: others that found the
// same package would wait for it, too. A package without dependencies does no harm.
func remember(ctx context.Context, st *store.Store, tx *ent.Tx, deploymentID int64, rows []entry) error {
	type name struct{ ecosystem, pkg, license string }
	names := make([]name, len(rows))
	for i, row := range rows {
		names[i] = name{row.ecosystem, row.pkg, row.license}
	}
	slices.SortFunc(names, func(a, b name) int {
		return strings.Compare(a.ecosystem+"\x00"+a.pkg+"\x00"+a.license, b.ecosystem+"\x00"+b.pkg+"\x00"+b.license)
	})
	for batch := range slices.Chunk(slices.Compact(names), rememberedPackages) {
		args := make([]any, 0, 4*len(batch))
		for _, n := range batch {
			args = append(args, deploymentID, n.ecosystem, n.pkg, n.license)
		}
		query := "INSERT INTO dependency_packages (deployment_id, ecosystem, package, license) VALUES (?, ?, ?, ?)" +
			strings.Repeat(", (?, ?, ?, ?)", len(batch)-1) + " ON CONFLICT DO NOTHING"
		var err error
		if st.Postgres() {
			err = st.ExecAside(ctx, query, args...)
		} else {
			err = st.Exec(ctx, tx, query, args...)
		}
		if err != nil {
			return fmt.Errorf("write packages: %w", err)
		}
	}
	return nil
}

// The packages that dependencies have and the table has not, and the other way round.
const (
	missingSQL = ` FROM dependencies d WHERE NOT EXISTS (SELECT 1 FROM dependency_packages p
		WHERE p.deployment_id = d.deployment_id AND p.ecosystem = d.ecosystem AND p.package = d.package AND p.license = COALESCE(d.license, ''))`
	unusedSQL = ` FROM dependency_packages WHERE NOT EXISTS (SELECT 1 FROM dependencies d
		WHERE d.deployment_id = dependency_packages.deployment_id AND d.package = dependency_packages.package
		AND d.ecosystem = dependency_packages.ecosystem AND COALESCE(d.license, '') = dependency_packages.license)`
)

// Tidy makes the packages of all deployments those of their dependencies: it deletes what no dependency is of any more, and adds
// what nodes of a version without that table have stored. It writes only where there is something to do.
func Tidy(ctx context.Context, st *store.Store) error {
	reader, _ := st.DB()
	for _, change := range []struct{ found, write string }{
		{unusedSQL, "DELETE" + unusedSQL},
		{missingSQL, "INSERT INTO dependency_packages (deployment_id, ecosystem, package, license) SELECT DISTINCT d.deployment_id, d.ecosystem, d.package, COALESCE(d.license, '')" +
			missingSQL + " ON CONFLICT DO NOTHING"},
	} {
		var found bool
		if err := reader.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1"+change.found+")").Scan(&found); err != nil {
			return fmt.Errorf("look at packages: %w", err)
		}
		if !found {
			continue
		}
		err := st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error { return st.Exec(ctx, tx, change.write) })
		if err != nil {
			return fmt.Errorf("tidy packages: %w", err)
		}
	}
	return nil
}
