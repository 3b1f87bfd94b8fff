package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

const (
	// inventoryDependencies is the number of dependencies per project; the last project has fifty times as many.
	inventoryDependencies = 1000
	largestInventory      = 50
	// applePart is the number of projects, the last ones, with packages of an ecosystem of their own.
	applePart = 30
	// inventoryPackages is the number of distinct packages. A few of them are in most projects, most of them are in a
	// few.
	inventoryPackages = 20_000
)

// fillDependencies stores the given number of dependencies with one statement per project; scans of a thousand projects
// would take minutes.
func (b *bench) fillDependencies(ctx context.Context, deploymentID int64, count int) error {
	content, err := proto.Marshal(&storev1.DependencyContent{
		ManifestPath: "services/api/package.json", Line: 417, ResolvedUrl: "https://registry.bench.test/package/-/package-1.0.0.tgz",
		Licenses: []string{"MIT"}, Children: []string{"left-pad@1.3.0", "lodash@4.17.21"},
	})
	if err != nil {
		return err
	}
	bytes := "x'" + hex.EncodeToString(content) + "'"
	if b.db.postgres() {
		bytes = "decode('" + hex.EncodeToString(content) + "', 'hex')"
	}
	projects := max(2, count/inventoryDependencies-largestInventory+1)
	for n := range projects {
		if n%200 == 0 {
			b.progress("fill: %d of %d dependencies", n*inventoryDependencies, count)
		}
		rows := inventoryDependencies
		if n == projects-1 {
			rows = max(1, count-n*inventoryDependencies)
		}
		if err := b.fillInventory(ctx, deploymentID, n, rows, n >= projects-projects/applePart-1, bytes); err != nil {
			return err
		}
	}
	if _, err := b.db.ExecContext(ctx, "INSERT INTO dependency_packages (deployment_id, ecosystem, package, license)"+
		" SELECT DISTINCT deployment_id, ecosystem, package, COALESCE(license, '') FROM dependencies WHERE TRUE ON CONFLICT DO NOTHING"); err != nil {
		return fmt.Errorf("fill packages: %w", err)
	}
	return b.db.settle(ctx, "dependencies", "dependency_packages", "projects")
}

// fillInventory stores a project and its dependencies.
func (b *bench) fillInventory(ctx context.Context, deploymentID int64, number, rows int, apple bool, content string) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after the commit
	var project int64
	name := fmt.Sprintf("bench/inventory-%04d", number)
	err = tx.QueryRowContext(ctx, fmt.Sprintf(`INSERT INTO projects (deployment_id, name, name_key, default_branch, created_at)
		VALUES (%d, '%s', '%s', 'refs/heads/main', 1) RETURNING id`, deploymentID, name, name)).Scan(&project)
	if err != nil {
		return err
	}
	if _, err = tx.ExecContext(ctx, inventorySQL(deploymentID, project, number, rows, apple, content)); err != nil {
		return fmt.Errorf("fill dependencies: %w", err)
	}
	return tx.Commit()
}

// inventorySQL stores the dependencies of a project. A package that a lockfile names twice is stored once.
func inventorySQL(deploymentID, project int64, number, rows int, apple bool, content string) string {
	words := strings.Split("http json log test crypto stream parser core cache router", " ")
	var word strings.Builder
	for i, w := range words {
		fmt.Fprintf(&word, " WHEN %d THEN '%s'", i, w)
	}
	packages := inventoryPackages
	ecosystem := "CASE WHEN p % 500 = 3 THEN 'hex' WHEN p % 8 < 5 THEN 'npm' WHEN p % 8 = 5 THEN 'pypi' WHEN p % 8 = 6 THEN 'gomod' ELSE 'maven' END"
	lockfile := "CASE WHEN i % 100 = 7 THEN 'go.sum' ELSE 'services/s' || (i % 4) || '/package-lock.json' END"
	license := `CASE WHEN p % 100 < 60 THEN 'MIT' WHEN p % 100 < 80 THEN 'Apache-2.0' WHEN p % 100 < 88 THEN 'BSD-3-Clause' WHEN p % 100 = 88 THEN 'Apache-2.0,MIT'
		WHEN p % 1000 = 189 THEN 'GPL-3.0-only' WHEN p % 100 = 90 THEN 'LicenseRef-' || p END`
	prefix := "CASE WHEN p % 3 = 0 THEN '@scope-' || (p % 211) || '/' ELSE '' END"
	if apple {
		ecosystem, lockfile, license, prefix = "CASE WHEN p % 5 = 0 THEN 'pub' ELSE 'swiftpm' END", "'Package.resolved'", "'EUPL-1.2'", "'apple-'"
		packages /= 10
	}
	return fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d),
		u(i, u) AS (SELECT i, ((i + %d) * CAST(7919 AS BIGINT) %% 1000003) / 1000003.0 FROM n),
		p(i, p) AS (SELECT i, CAST(%d * u * u * u AS INTEGER) %% %d FROM u)
		INSERT INTO dependencies (deployment_id, project_id, scan_id, lockfile, ecosystem, package, version, transitivity, has_paths, license, content, seen_at)
		SELECT %d, %d, 1, %s, %s, %s || CASE p %% 10%s END || '-' || p, (p %% 9) || '.' || ((p + %d) %% 4) || '.' || (i %% 23),
			CASE WHEN i %% 300 = 2 THEN 'unknown' WHEN i %% 5 = 0 THEN 'direct' ELSE 'transitive' END, i %% 2 = 0, %s, %s, 1 FROM p
		WHERE TRUE ON CONFLICT DO NOTHING`,
		rows-1, number*inventoryDependencies, inventoryPackages, packages, deploymentID, project, lockfile, ecosystem, prefix, word.String(), number, license, content)
}
