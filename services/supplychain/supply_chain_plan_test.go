package supplychain_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/supplychain"
	"github.com/palisade/palisade/services/supplychain/dependencies"
)

// onDependencies matches queries on dependencies with either database's quotes.
var onDependencies = regexp.MustCompile("FROM [`\"]dependencies[`\"]")

// plansSQL inserts 20,000 dependencies of 60 projects for a tenant. Rare values are rare.
const plansSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19999)
INSERT INTO dependencies (deployment_id, project_id, scan_id, lockfile, ecosystem, package, version, transitivity, has_paths, license, content, seen_at)
SELECT CAST(? AS BIGINT), CAST(? AS BIGINT) + i % 60, 1, CASE WHEN i % 97 = 3 THEN 'rare.lock' ELSE 'l' || (i % 600 / 60) END,
	CASE WHEN i % 200 = 1 THEN 'hex' ELSE 'npm' END, 'package' || (i % 1000), i || '.0.0',
	CASE WHEN i % 300 = 2 THEN 'unknown' ELSE 'transitive' END, FALSE,
	CASE WHEN i % 100 = 5 THEN 'MIT,ISC' WHEN i % 100 = 6 THEN 'WTFPL' END, CAST(? AS BYTES), 1 FROM n`

// Each filter uses an index in each plan: no query scans the whole table.
func TestDependencyPlansUseIndexes(t *testing.T) {
	t.Parallel()
	plain, exact := int32(100), &supplychainv1.PackageFilter{Name: "package7", ExactNameMatch: true, VersionLowerBound: "1.0.0"}
	cases := []struct {
		name, index string // an index that a query must read, if only one is good
		filter      *supplychainv1.DependencyFilter
	}{
		{"nothing", "", &supplychainv1.DependencyFilter{}},
		{"name", "", &supplychainv1.DependencyFilter{Name: "kage99"}},
		{"version", "dependencies_by_version", &supplychainv1.DependencyFilter{Version: "77.0.0"}},
		{"repository", "", &supplychainv1.DependencyFilter{RepositoryId: []int64{7}}},
		{"transitivity", "", &supplychainv1.DependencyFilter{Transitivity: []string{"UNKNOWN_TRANSITIVITY"}}},
		{"ecosystem", "", &supplychainv1.DependencyFilter{Ecosystem: []string{"hex"}}},
		{"common ecosystem", "", &supplychainv1.DependencyFilter{Ecosystem: []string{"npm", "pypi"}}},
		{"lockfile", "", &supplychainv1.DependencyFilter{LockfilePath: "rare.lock"}},
		{"license", "", &supplychainv1.DependencyFilter{License: []string{"WTFPL"}}},
		{"exact package", "dependencies_by_package", &supplychainv1.DependencyFilter{PackageFilters: []*supplychainv1.PackageFilter{exact}}},
		{"package", "", &supplychainv1.DependencyFilter{PackageFilters: []*supplychainv1.PackageFilter{{Name: "9", VersionUpperBound: "9.0.0"}}}},
		{"archived", "", &supplychainv1.DependencyFilter{IncludeArchived: true}},
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		in := seedForPlans(t, s)
		st, seen := apitest.OpenRecorded(t, s, onDependencies.MatchString)
		lists := map[string]*supplychain.SupplyChain{"": supplychain.NewSupplyChain(st), " in windows": supplychain.NewSupplyChainOfWindows(st)}
		for who, ctx := range map[string]context.Context{
			"all":    tenant.NewContext(t.Context(), s.DeploymentID),
			"a team": tenant.WithTeams(tenant.NewContext(t.Context(), s.DeploymentID), []int64{1}),
		} {
			for how, list := range lists {
				for _, c := range cases {
					index := c.index
					if who != "all" { // the team's projects may be the better index
						index = ""
					}
					if _, err := list.ListDependencies(ctx, &supplychainv1.ListDependenciesRequest{DependencyFilter: c.filter, PageSize: &plain, Cursor: 50}); err != nil {
						t.Fatalf("%s: %v", c.name, err)
					}
					requireIndexes(t, st, who+how+", dependencies by "+c.name, index, seen.Take())
					if _, err := list.ListRepositoriesForDependencies(ctx, &supplychainv1.ListRepositoriesForDependenciesRequest{DependencyFilter: c.filter}); err != nil {
						t.Fatalf("%s: %v", c.name, err)
					}
					requireIndexes(t, st, who+how+", repositories by "+c.name, "", seen.Take())
				}
			}
		}
		_, err := lists[""].ListLockfilesForDependencies(tenant.NewContext(t.Context(), s.DeploymentID),
			&supplychainv1.ListLockfilesForDependenciesRequest{RepositoryId: in.projects["acme/p07"], Cursor: "l2"})
		if err != nil {
			t.Fatal(err)
		}
		requireIndexes(t, st, "lockfiles", "", seen.Take())
	})
}

// seedForPlans inserts dependencies of a tenant and of another one, and updates the statistics.
func seedForPlans(t *testing.T, s *apitest.Server) *inventory {
	t.Helper()
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("acme/p%02d", i))
	}
	ours, theirs := newInventory(t, s, s.Tenant, names...), newInventory(t, s, s.AddTenant(t, "rival"), names...)
	insert := strings.Replace(plansSQL, "BYTES", "BLOB", 1)
	if s.Store.Postgres() {
		insert = strings.Replace(plansSQL, "BYTES", "BYTEA", 1)
	}
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		for _, in := range []*inventory{ours, theirs} {
			if err := s.Store.Exec(ctx, tx, insert, in.DeploymentID, in.projects["acme/p00"], []byte{}); err != nil {
				return err
			}
		}
		return tx.TeamProject.Create().SetDeploymentID(ours.DeploymentID).SetTeamID(1).SetProjectID(ours.projects["acme/p07"]).SetCreatedAt(1).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dependencies.Tidy(t.Context(), s.Store); err != nil {
		t.Fatal(err)
	}
	s.RefreshStatistics(t)
	return ours
}

// wholeTable matches a plan that reads dependencies without an index, or a whole index. SQLite calls both SCAN.
var wholeTable = regexp.MustCompile(`SCAN dependencies\b|Seq Scan on dependencies`)

// indexed matches a plan that reads dependencies through one of their indexes, by id, or not at all.
var indexed = regexp.MustCompile(`dependencies_|dependencies USING INTEGER PRIMARY KEY \(rowid=|One-Time Filter: false`)

func requireIndexes(t *testing.T, st *store.Store, name, index string, statements []apitest.Statement) {
	t.Helper()
	if len(statements) == 0 {
		t.Errorf("%s: no query was seen", name)
	}
	var plans strings.Builder
	for _, query := range statements {
		plan := planOf(t, st, query)
		if wholeTable.MatchString(plan) || !indexed.MatchString(plan) {
			t.Errorf("%s: want an index:\n%s\n%s", name, query.Text, plan)
		}
		plans.WriteString(plan)
	}
	if !strings.Contains(plans.String(), index) {
		t.Errorf("%s: want index %s:\n%s", name, index, &plans)
	}
}

// planOf is the plan of a query inside ReadWithFreshPlans.
func planOf(t *testing.T, st *store.Store, query apitest.Statement) string {
	t.Helper()
	reader, _ := st.DB()
	tx, err := reader.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // read-only
	if st.Postgres() {
		if _, err := tx.ExecContext(t.Context(), "SET LOCAL enable_seqscan = off"); err != nil {
			t.Fatal(err)
		}
	}
	return apitest.Explain(t, st, tx, query)
}
