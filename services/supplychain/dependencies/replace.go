package dependencies

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// written is how many rows one statement writes: 12 parameters each, of the 32,766 that SQLite takes.
	written = 1000
	// deleted is how many rows one statement deletes.
	deleted = 10_000
)

// Scan is the full scan that saw the dependencies. Only those of a project's primary branch (else its default one) are
// kept.
type Scan struct {
	DeploymentID, ProjectID, ScanID int64
	// At is when it saw them, in microseconds since 1970.
	At int64
	// Complete says that it looked for all lockfiles: those that it does not name are gone.
	Complete bool
	// Skipped are the subprojects whose dependencies it could not resolve, each named by its directory, its lockfile or
	// its manifest. Their lockfiles stay as they are where the scan does not name them.
	Skipped []string
}

// Replace makes the dependencies of a project those of a scan, lockfile by lockfile, in the transaction of tx, which
// must hold the project: scans of one project take turns. Rows that say the same already stay as they are, with the
// scan that first saw them so; the same call again writes nothing. A lockfile that is named with an empty list has no
// dependencies any more.
func Replace(ctx context.Context, st *store.Store, tx *ent.Tx, scan Scan, byLockfile map[string][]Dependency) error {
	if !scan.Complete && len(byLockfile) == 0 {
		return nil
	}
	ctx = tenant.NewContext(ctx, scan.DeploymentID)
	wanted, err := entries(byLockfile)
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for lockfile := range byLockfile {
		named[clean(lockfile, maxLockfile)] = true
	}
	rows, err := tx.Dependency.Query().Where(dependency.ProjectID(scan.ProjectID)).Select(dependency.FieldID, dependency.FieldLockfile, dependency.FieldEcosystem, dependency.FieldPackage, dependency.FieldVersion,
		dependency.FieldTransitivity, dependency.FieldHasPaths, dependency.FieldLicense, dependency.FieldContent).All(ctx)
	if err != nil {
		return fmt.Errorf("read dependencies: %w", err)
	}
	known := make(map[place]*ent.Dependency, len(rows))
	for _, row := range rows {
		known[place{row.Lockfile, row.Ecosystem, row.Package, row.Version}] = row
	}
	changed := slices.DeleteFunc(wanted, func(e entry) bool {
		row := known[e.place]
		delete(known, e.place) // what remains is gone
		return row != nil && e.equals(row)
	})
	gone := make([]int64, 0, len(known))
	for at, row := range known {
		if named[at.lockfile] || scan.Complete && !unresolved(at.lockfile, scan.Skipped) {
			gone = append(gone, row.ID)
		}
	}
	slices.Sort(gone)
	for ids := range slices.Chunk(gone, deleted) {
		_, err := tx.Dependency.Delete().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(dependency.FieldID), ids)) }).Exec(ctx)
		if err != nil {
			return fmt.Errorf("delete dependencies: %w", err)
		}
	}
	if err := remember(ctx, st, tx, scan.DeploymentID, changed); err != nil {
		return err
	}
	return write(ctx, st, tx, scan, changed)
}

func (e entry) equals(row *ent.Dependency) bool {
	license := ""
	if row.License != nil {
		license = *row.License
	}
	return e.transitivity == row.Transitivity && e.hasPaths == row.HasPaths && e.license == license && bytes.Equal(e.content, row.Content)
}

// insertSQL is followed by the rows.
const insertSQL = `INSERT INTO dependencies (deployment_id, project_id, lockfile, ecosystem, package, version,
	scan_id, transitivity, has_paths, license, content, seen_at) VALUES `

// updateSQL comes after the rows.
const updateSQL = ` ON CONFLICT (deployment_id, project_id, lockfile, ecosystem, package, version) DO UPDATE SET
	scan_id = excluded.scan_id, transitivity = excluded.transitivity, has_paths = excluded.has_paths,
	license = excluded.license, content = excluded.content, seen_at = excluded.seen_at`

// write inserts rows, or changes those of the same place.
func write(ctx context.Context, st *store.Store, tx *ent.Tx, scan Scan, rows []entry) error {
	const row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	for batch := range slices.Chunk(rows, written) {
		args := make([]any, 0, 12*len(batch))
		for _, e := range batch {
			var license any
			if e.license != "" {
				license = e.license
			}
			args = append(args, scan.DeploymentID, scan.ProjectID, e.lockfile, e.ecosystem, e.pkg, e.version,
				scan.ScanID, e.transitivity, e.hasPaths, license, e.content, scan.At)
		}
		query := insertSQL + row + strings.Repeat(", "+row, len(batch)-1) + updateSQL
		if err := st.Exec(ctx, tx, query, args...); err != nil {
			return fmt.Errorf("write dependencies: %w", err)
		}
	}
	return nil
}
