package supplychain_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/supplychain"
	"github.com/palisade/palisade/services/supplychain/dependencies"
)

// statement is one that a handler sent to the database.
type statement struct {
	text string
	args []any
}

// onDependencies matches queries on dependencies in the quotes of either database.
var onDependencies = regexp.MustCompile("FROM [`\"]dependencies[`\"]")

// queryRecorder is a driver that keeps the queries on dependencies.
type queryRecorder struct {
	dialect.Driver
	mu   sync.Mutex
	seen []statement
}

// Query keeps the query and passes it on.
func (r *queryRecorder) Query(ctx context.Context, query string, args, v any) error {
	r.keep(query, args)
	return r.Driver.Query(ctx, query, args, v)
}

func (r *queryRecorder) keep(query string, args any) {
	if list, ok := args.([]any); ok && onDependencies.MatchString(query) {
		r.mu.Lock()
		r.seen = append(r.seen, statement{query, list})
		r.mu.Unlock()
	}
}

// Tx begins a transaction whose queries are kept, too.
func (r *queryRecorder) Tx(ctx context.Context) (dialect.Tx, error) {
	tx, err := r.Driver.Tx(ctx)
	if err != nil {
		return nil, err
	}
	return recordedTx{tx.(*entsql.Tx), r}, nil
}

type recordedTx struct {
	*entsql.Tx
	recorder *queryRecorder
}

// Query keeps the query and passes it on.
func (t recordedTx) Query(ctx context.Context, query string, args, v any) error {
	t.recorder.keep(query, args)
	return t.Tx.Query(ctx, query, args, v)
}

func (r *queryRecorder) take() []statement {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// plansSQL gives a tenant 20,000 dependencies of 60 projects: what is rare is rare.
const plansSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19999)
INSERT INTO dependencies (deployment_id, project_id, scan_id, lockfile, ecosystem, package, version, transitivity, has_paths, license, content, seen_at)
SELECT CAST(? AS BIGINT), CAST(? AS BIGINT) + i % 60, 1, CASE WHEN i % 97 = 3 THEN 'rare.lock' ELSE 'l' || (i % 600 / 60) END,
	CASE WHEN i % 200 = 1 THEN 'hex' ELSE 'npm' END, 'package' || (i % 1000), i || '.0.0',
	CASE WHEN i % 300 = 2 THEN 'unknown' ELSE 'transitive' END, FALSE,
	CASE WHEN i % 100 = 5 THEN 'MIT,ISC' WHEN i % 100 = 6 THEN 'WTFPL' END, CAST(? AS BYTES), 1 FROM n`

// ofMany finds statements that may look at any of the tenant's rows: by a part of a name, by a list of names, to sort them, or
// to see whether there are many.
var ofMany = regexp.MustCompile(`ILIKE|"package" = ANY|OFFSET|ORDER BY \+`)

// Every filter is served by an index: no plan reads the whole table. The only other tenant here has as many rows, and PostgreSQL
// may choose the table for what any row may be, so it is asked what else it would do.
func TestDependencyPlansUseIndexes(t *testing.T) {
	t.Parallel()
	plain, exact := int32(100), &supplychainv1.PackageFilter{Name: "package7", ExactNameMatch: true, VersionLowerBound: "1.0.0"}
	cases := []struct {
		name, index string // one that a query has to read, where there is only one good choice
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
		st, db, seen := recorded(t, s)
		list := supplychain.NewSupplyChain(st)
		for who, ctx := range map[string]context.Context{
			"all":    tenant.NewContext(t.Context(), s.DeploymentID),
			"a team": tenant.WithTeams(tenant.NewContext(t.Context(), s.DeploymentID), []int64{1}),
		} {
			for _, c := range cases {
				index := c.index
				if who != "all" { // the projects of the team may be the better way in
					index = ""
				}
				if _, err := list.ListDependencies(ctx, &supplychainv1.ListDependenciesRequest{DependencyFilter: c.filter, PageSize: &plain, Cursor: 50}); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				requireIndexes(t, st, db, who+", dependencies by "+c.name, index, seen.take())
				if _, err := list.ListRepositoriesForDependencies(ctx, &supplychainv1.ListRepositoriesForDependenciesRequest{DependencyFilter: c.filter}); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				requireIndexes(t, st, db, who+", repositories by "+c.name, "", seen.take())
			}
		}
		_, err := list.ListLockfilesForDependencies(tenant.NewContext(t.Context(), s.DeploymentID),
			&supplychainv1.ListLockfilesForDependenciesRequest{RepositoryId: in.projects["acme/p07"], Cursor: "l2"})
		if err != nil {
			t.Fatal(err)
		}
		requireIndexes(t, st, db, "lockfiles", "", seen.take())
	})
}

// seedForPlans stores dependencies of a tenant beside those of another one, and refreshes the statistics.
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
	if err := dependencies.Tidy(t.Context(), s.Store); err != nil {
		t.Fatal(err)
	}
	db := s.Store.Pools()["writer"]
	if db == nil {
		db = s.Store.Pools()["main"]
	}
	if _, err := db.ExecContext(t.Context(), "ANALYZE"); err != nil {
		t.Fatal(err)
	}
	return ours
}

// recorded opens the server's database once more, with a recorder before the reader.
func recorded(t *testing.T, s *apitest.Server) (*store.Store, *sql.DB, *queryRecorder) {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{DataDir: s.Config.Data, Database: s.Config.Database, MaxOpen: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	db := st.Pools()["reader"]
	if db == nil {
		db = st.Pools()["main"]
	}
	r := &queryRecorder{Driver: entsql.OpenDB(st.Dialect(), db)}
	st.Reader = ent.NewClient(ent.Driver(r))
	return st, db, r
}

// wholeTable finds, in a plan, that dependencies are read without an index, or that all of one is. SQLite calls both SCAN.
var wholeTable = regexp.MustCompile(`SCAN dependencies\b|Seq Scan on dependencies`)

// indexed finds that dependencies are read by an index of theirs, or by their ids, or not at all.
var indexed = regexp.MustCompile(`dependencies_|dependencies USING INTEGER PRIMARY KEY \(rowid=|One-Time Filter: false`)

func requireIndexes(t *testing.T, st *store.Store, db *sql.DB, name, index string, statements []statement) {
	t.Helper()
	if len(statements) == 0 {
		t.Errorf("%s: no query was seen", name)
	}
	var plans strings.Builder
	explain := "EXPLAIN QUERY PLAN "
	if st.Postgres() {
		explain = "EXPLAIN "
	}
	for _, query := range statements {
		prepare := "SELECT 1"
		if st.Postgres() && ofMany.MatchString(query.text) {
			prepare = "SET LOCAL enable_seqscan = off"
		}
		plan := planOf(t, db, prepare, explain+query.text, query.args)
		if wholeTable.MatchString(plan) || !indexed.MatchString(plan) {
			t.Errorf("%s: want an index:\n%s\n%s", name, query.text, plan)
		}
		plans.WriteString(plan)
	}
	if !strings.Contains(plans.String(), index) {
		t.Errorf("%s: want index %s:\n%s", name, index, &plans)
	}
}

func planOf(t *testing.T, db *sql.DB, prepare, query string, args []any) string {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	if _, err := tx.ExecContext(t.Context(), prepare); err != nil {
		t.Fatal(err)
	}
	rows, err := tx.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&plan, *values[len(values)-1].(*any))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
