package dependencies

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/tenant"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// writeBatch is the number of rows per insert: 12 parameters each, and SQLite allows 32,766.
	writeBatch = 1000
	// deleteBatch is the number of rows per delete.
	deleteBatch = 10_000
)

// Scan is the full scan that reported the dependencies. Only scans of a project's primary branch (else the default
// branch) are stored.
type Scan struct {
	DeploymentID, ProjectID, ScanID int64
	// At is the time of the report, in microseconds since 1970.
	At int64
	// Source is the tool and category of a bill of materials; empty for scanners that read lockfiles.
	Source string
	// Complete: the scan looked for all lockfiles, so one of its source that it does not name is gone.
	Complete bool
	// Skipped lists subprojects with dependencies that the scan could not resolve, each by its directory, lockfile or
	// manifest. Their lockfiles stay unchanged if the scan does not name them.
	Skipped []string
}

// Replace updates a project's dependencies to the scan's, lockfile by lockfile, in the transaction tx, which must hold
// the project's lock: scans of one project are serialized. Unchanged rows keep the scan that first reported them; a
// repeated call writes nothing. A lockfile with an empty list loses all its dependencies.
func Replace(ctx context.Context, st *store.Store, tx *ent.Tx, scan Scan, byLockfile map[string][]Dependency) error {
	if !scan.Complete && len(byLockfile) == 0 {
		return nil
	}
	ctx = tenant.NewContext(ctx, scan.DeploymentID)
	wanted, err := entries(byLockfile, scan.Source)
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
	known := make(map[rowKey]*ent.Dependency, len(rows))
	for _, row := range rows {
		known[rowKey{row.Lockfile, row.Ecosystem, row.Package, row.Version}] = row
	}
	changed := slices.DeleteFunc(wanted, func(e entry) bool {
		row := known[e.rowKey]
		delete(known, e.rowKey) // the remaining rows are deleted
		return row != nil && e.equals(row)
	})
	gone := make([]int64, 0, len(known))
	for at, row := range known {
		if named[at.lockfile] || scan.Complete && sourceOf(row) == scan.Source && !unresolved(at.lockfile, scan.Skipped) {
			gone = append(gone, row.ID)
		}
	}
	slices.Sort(gone)
	for ids := range slices.Chunk(gone, deleteBatch) {
		_, err := tx.Dependency.Delete().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(dependency.FieldID), ids)) }).Exec(ctx)
		if err != nil {
			return fmt.Errorf("delete dependencies: %w", err)
		}
	}
	if err := addPackages(ctx, st, tx, scan.DeploymentID, changed); err != nil {
		return err
	}
	return write(ctx, st, tx, scan, changed)
}

// sourceOf is the source of a stored dependency. What cannot be read belongs to scanners, which replace it.
func sourceOf(row *ent.Dependency) string {
	var content storev1.DependencyContent
	if err := proto.Unmarshal(row.Content, &content); err != nil {
		return ""
	}
	return content.GetSource()
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

// updateSQL follows the rows.
const updateSQL = ` ON CONFLICT (deployment_id, project_id, lockfile, ecosystem, package, version) DO UPDATE SET
	scan_id = excluded.scan_id, transitivity = excluded.transitivity, has_paths = excluded.has_paths,
	license = excluded.license, content = excluded.content, seen_at = excluded.seen_at`

// write upserts rows by key.
func write(ctx context.Context, st *store.Store, tx *ent.Tx, scan Scan, rows []entry) error {
	const row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	for batch := range slices.Chunk(rows, writeBatch) {
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
