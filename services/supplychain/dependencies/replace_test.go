package dependencies

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/tenant"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// onEachStore runs a test on an empty store of each kind.
func onEachStore(t *testing.T, test func(t *testing.T, st *store.Store)) {
	storetest.Each(t, func(t *testing.T, o store.Options) { test(t, storetest.Open(t, o)) })
}

func replace(t *testing.T, st *store.Store, scan Scan, byLockfile map[string][]Dependency) {
	t.Helper()
	err := st.Write(tenant.NewContext(t.Context(), scan.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		return Replace(ctx, st, tx, scan, byLockfile)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// shown lists a project's dependencies, one per line: lockfile, package, transitivity, and the scan that reported it.
func shown(t *testing.T, st *store.Store, scan Scan) string {
	t.Helper()
	rows := st.Reader.Dependency.Query().Where(dependency.ProjectID(scan.ProjectID)).
		Order(dependency.ByLockfile(), dependency.ByPackage(), dependency.ByVersion(), dependency.ByEcosystem()).
		AllX(tenant.NewContext(t.Context(), scan.DeploymentID))
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s %s/%s@%s %s %d\n", r.Lockfile, r.Ecosystem, r.Package, r.Version, r.Transitivity, r.ScanID)
	}
	return b.String()
}

func requireShown(t *testing.T, st *store.Store, scan Scan, want ...string) {
	t.Helper()
	if got := shown(t, st, scan); got != strings.Join(append(want, ""), "\n") {
		t.Errorf("scan %d: got\n%swant\n%s", scan.ScanID, got, strings.Join(want, "\n"))
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		scan := Scan{DeploymentID: 1, ProjectID: 7, ScanID: 10, At: 1000, Complete: true}
		other := Scan{DeploymentID: 2, ProjectID: 7, ScanID: 90, At: 1000, Complete: true}
		first := map[string][]Dependency{
			"go.mod": {{Ecosystem: "gomod", Package: "github.com/acme/kit", Version: "v1.2.0", Transitivity: Direct, Line: 5}},
			"web/package-lock.json": {
				{Ecosystem: "npm", Package: "left-pad", Version: "1.3.0", Transitivity: Transitive, Licenses: []string{"MIT"}},
				{Ecosystem: "npm", Package: "lodash", Version: "4.17.21", Transitivity: Direct},
			},
		}
		replace(t, st, scan, first)
		replace(t, st, other, first)
		was := []string{
			"go.mod gomod/github.com/acme/kit@v1.2.0 direct 10", "web/package-lock.json npm/left-pad@1.3.0 transitive 10",
			"web/package-lock.json npm/lodash@4.17.21 direct 10",
		}
		requireShown(t, st, scan, was...)

		// The same dependencies again change nothing, not even the scan.
		scan.ScanID, scan.At = 11, 2000
		replace(t, st, scan, first)
		requireShown(t, st, scan, was...)

		// Changed rows are written, missing ones deleted, and unchanged ones keep their ids.
		before := st.Reader.Dependency.Query().Where(dependency.ProjectID(7), dependency.Package("left-pad")).OnlyIDX(tenant.NewContext(t.Context(), 1))
		scan.ScanID = 12
		replace(t, st, scan, map[string][]Dependency{
			"go.mod": first["go.mod"],
			"web/package-lock.json": {
				{Ecosystem: "npm", Package: "left-pad", Version: "1.3.0", Transitivity: Direct, Licenses: []string{"MIT"}},
				{Ecosystem: "npm", Package: "lodash", Version: "4.17.22", Transitivity: Direct},
			},
		})
		requireShown(t, st, scan, "go.mod gomod/github.com/acme/kit@v1.2.0 direct 10", "web/package-lock.json npm/left-pad@1.3.0 direct 12",
			"web/package-lock.json npm/lodash@4.17.22 direct 12")
		if after := st.Reader.Dependency.Query().Where(dependency.ProjectID(7), dependency.Package("left-pad")).OnlyIDX(tenant.NewContext(t.Context(), 1)); after != before {
			t.Errorf("a changed dependency got another id: %d, then %d", before, after)
		}
		requireShown(t, st, other, strings.Split(strings.TrimSpace(strings.ReplaceAll(strings.Join(was, "\n"), " 10", " 90")), "\n")...)
	})
}

func TestReplaceLockfiles(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		one := func(name string) []Dependency {
			return []Dependency{{Ecosystem: "npm", Package: name, Version: "1.0.0", Transitivity: "sideways"}}
		}
		scan := Scan{DeploymentID: 1, ProjectID: 7, ScanID: 1, At: 1, Complete: true}
		replace(t, st, scan, map[string][]Dependency{"a/yarn.lock": one("a"), "b/yarn.lock": one("b"), "c/yarn.lock": one("c"), "yarn.lock": one("d")})

		// A partial scan changes only the lockfiles that it names.
		scan.ScanID, scan.Complete = 2, false
		replace(t, st, scan, nil)
		replace(t, st, scan, map[string][]Dependency{"yarn.lock": {}, "a/yarn.lock": one("a2")})
		requireShown(t, st, scan, "a/yarn.lock npm/a2@1.0.0 unknown 2", "b/yarn.lock npm/b@1.0.0 unknown 1", "c/yarn.lock npm/c@1.0.0 unknown 1")

		// A complete scan deletes lockfiles that it does not name, except in subprojects that it could not resolve.
		scan.ScanID, scan.Complete, scan.Skipped = 3, true, []string{"b", "c/package.json"}
		replace(t, st, scan, map[string][]Dependency{"c/yarn.lock": {}})
		requireShown(t, st, scan, "b/yarn.lock npm/b@1.0.0 unknown 1")
		scan.Skipped = []string{"/b/yarn.lock"}
		replace(t, st, scan, nil)
		requireShown(t, st, scan, "b/yarn.lock npm/b@1.0.0 unknown 1")
		replace(t, st, scan, map[string][]Dependency{"Pipfile.lock": one("py"), "b/yarn.lock": one("b"), "gone/go.sum": one("g")})
		scan.Skipped = []string{"b", "Pipfile", "./gone/go.mod"}
		replace(t, st, scan, nil)
		requireShown(t, st, scan, "Pipfile.lock npm/py@1.0.0 unknown 3", "b/yarn.lock npm/b@1.0.0 unknown 1", "gone/go.sum npm/g@1.0.0 unknown 3")
		scan.Skipped = []string{"b"} // a directory does not match a manifest in the root
		replace(t, st, scan, nil)
		requireShown(t, st, scan, "b/yarn.lock npm/b@1.0.0 unknown 1")
		scan.Skipped = []string{".", "a", "bb"}
		replace(t, st, scan, nil)
		requireShown(t, st, scan)
	})
}

// Duplicate entries of a lockfile in any order become one row; invalid texts are cleaned.
func TestReplaceOddInput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 3000)
	list := []Dependency{
		{Ecosystem: "NPM", Package: "twice", Version: "1", Transitivity: Transitive, Line: 40, Children: []string{"b@2", "a@1"}, Licenses: []string{"MIT", ""}},
		{Ecosystem: "npm", Package: "twice", Version: "1", Transitivity: Direct, Line: 12, Children: []string{"a@1"}, Licenses: []string{"ISC", "MIT"}},
		{Ecosystem: "npm", Package: " twice", Version: "1", Transitivity: Unknown, ManifestPath: "package.json", ResolvedURL: "https://registry.acme.test/twice"},
		{Ecosystem: "conda", Package: "nul\x00byte", Version: "\xff1"},
		{Ecosystem: "PyPI", Package: long, Version: long, Licenses: []string{long}},
		{Ecosystem: "mix", Package: "", Version: "1"},
	}
	onEachStore(t, func(t *testing.T, st *store.Store) {
		scan, list := Scan{DeploymentID: 1, ProjectID: 7, ScanID: 1, At: 1, Complete: true}, slices.Clone(list)
		for range 5 {
			rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			replace(t, st, scan, map[string][]Dependency{long: slices.Clone(list)})
			scan.ScanID++
		}
		rows := st.Reader.Dependency.Query().AllX(tenant.NewContext(t.Context(), 1))
		if len(rows) != 3 {
			t.Fatalf("%d rows:\n%s", len(rows), shown(t, st, scan))
		}
		for _, row := range rows {
			if row.ScanID != 1 {
				t.Errorf("%s was written again by scan %d", row.Package, row.ScanID)
			}
		}
		named := func(name string) *ent.Dependency {
			return rows[slices.IndexFunc(rows, func(r *ent.Dependency) bool { return r.Package == name })]
		}
		if row := named("nulbyte"); row.Ecosystem != "no_package_manager" || row.Version != "\uFFFD1" {
			t.Errorf("odd bytes: %v", row)
		}
		content := &storev1.DependencyContent{}
		row := named("twice")
		if err := proto.Unmarshal(row.Content, content); err != nil {
			t.Fatal(err)
		}
		want := &storev1.DependencyContent{
			ManifestPath: "package.json", Line: 12, ResolvedUrl: "https://registry.acme.test/twice",
			Licenses: []string{"ISC", "MIT"}, Children: []string{"a@1", "b@2"},
		}
		if !proto.Equal(content, want) || row.Transitivity != Direct || !row.HasPaths || *row.License != "ISC,MIT" {
			t.Errorf("merged: %v %v", row, content)
		}
	})
}

// After any sequence of scans, the last one counts.
func TestReplaceProperty(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		random := rand.New(rand.NewPCG(1, 2))
		scan := Scan{DeploymentID: 1, ProjectID: 7, Complete: true}
		for range 30 {
			scan.ScanID++
			byLockfile, want := map[string][]Dependency{}, map[string]bool{}
			for range random.IntN(60) {
				lockfile, d := fmt.Sprintf("%c/go.mod", 'a'+random.IntN(4)), Dependency{
					Ecosystem: "gomod", Package: fmt.Sprintf("p%d", random.IntN(20)), Version: fmt.Sprintf("v%d", random.IntN(3)),
				}
				if random.IntN(2) == 0 {
					d.Line = random.IntN(9)
				}
				byLockfile[lockfile] = append(byLockfile[lockfile], d)
				want[lockfile+" gomod/"+d.Package+"@"+d.Version+" unknown"] = true
			}
			replace(t, st, scan, byLockfile)
			got := map[string]bool{}
			for line := range strings.Lines(shown(t, st, scan)) {
				got[line[:strings.LastIndexByte(line, ' ')]] = true
			}
			if !maps.Equal(got, want) {
				t.Fatalf("scan %d: got %v, want %v", scan.ScanID, got, want)
			}
		}
	})
}

// A large monorepo takes seconds the first time, and less if nothing changed.
func TestReplaceMany(t *testing.T) {
	testrun.Deep(t) // has very many rows
	t.Parallel()
	many := testrun.Size(10_000, 50_000)
	onEachStore(t, func(t *testing.T, st *store.Store) {
		byLockfile := map[string][]Dependency{}
		for i := range many {
			lockfile := fmt.Sprintf("services/s%02d/package-lock.json", i%50)
			byLockfile[lockfile] = append(byLockfile[lockfile], Dependency{
				Ecosystem: "npm", Package: fmt.Sprintf("@acme/package-%d", i/50), Version: fmt.Sprintf("%d.%d.0", i%7, i%13), Transitivity: Transitive,
				Line: i, Licenses: []string{"MIT"}, Children: []string{"left-pad@1.3.0"}, ResolvedURL: "https://registry.acme.test/package",
			})
		}
		scan := Scan{DeploymentID: 1, ProjectID: 7, ScanID: 1, At: 1, Complete: true}
		begun := time.Now()
		replace(t, st, scan, byLockfile)
		first := time.Since(begun)
		scan.ScanID, begun = 2, time.Now()
		replace(t, st, scan, byLockfile)
		t.Logf("%d dependencies: %v, again %v", many, first, time.Since(begun))
		ctx := tenant.NewContext(t.Context(), 1)
		if n, again := st.Reader.Dependency.Query().CountX(ctx), st.Reader.Dependency.Query().Where(dependency.ScanID(2)).CountX(ctx); n != many || again != 0 {
			t.Errorf("%d rows, %d written again", n, again)
		}
	})
}

// shownPackages lists a deployment's packages, one per line.
func shownPackages(t *testing.T, st *store.Store, deploymentID int64) (lines []string) {
	t.Helper()
	for _, row := range st.Reader.DependencyPackage.Query().AllX(tenant.NewContext(t.Context(), deploymentID)) {
		lines = append(lines, strings.TrimSpace(row.Ecosystem+"/"+row.Package+" "+row.License))
	}
	slices.Sort(lines)
	return lines
}

func requirePackages(t *testing.T, st *store.Store, deploymentID int64, want ...string) {
	t.Helper()
	if got := shownPackages(t, st, deploymentID); !slices.Equal(got, want) {
		t.Errorf("packages of deployment %d: got %q, want %q", deploymentID, got, want)
	}
}

// Packages exist as soon as a dependency uses them, and are deleted some time after the last one. Packages missing
// because of an older node are added.
func TestPackages(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		lockfile := func(list ...Dependency) map[string][]Dependency { return map[string][]Dependency{"go.sum": list} }
		kit, pad := Dependency{Ecosystem: "gomod", Package: "kit", Version: "1"}, Dependency{Ecosystem: "npm", Package: "pad", Version: "1", Licenses: []string{"MIT"}}
		newer := kit
		newer.Version = "2"
		one, other := Scan{DeploymentID: 1, ProjectID: 7, ScanID: 1, At: 1, Complete: true}, Scan{DeploymentID: 2, ProjectID: 9, ScanID: 1, At: 1, Complete: true}
		tidy := func(adds bool) {
			t.Helper()
			if added, err := Tidy(t.Context(), st); err != nil || added != adds {
				t.Fatalf("packages were added: %t, want %t: %v", added, adds, err)
			}
		}
		tidy(false)
		replace(t, st, one, lockfile(kit, newer, pad))
		replace(t, st, other, lockfile(kit))
		requirePackages(t, st, 1, "gomod/kit", "npm/pad MIT")
		requirePackages(t, st, 2, "gomod/kit")

		pad.Licenses = []string{"ISC"}
		replace(t, st, one, lockfile(newer, pad))
		replace(t, st, other, lockfile())
		requirePackages(t, st, 1, "gomod/kit", "npm/pad ISC", "npm/pad MIT")
		tidy(false)
		requirePackages(t, st, 1, "gomod/kit", "npm/pad ISC")
		requirePackages(t, st, 2)

		system := tenant.System(t.Context())
		err := st.Write(system, func(ctx context.Context, tx *ent.Tx) error {
			return st.Exec(ctx, tx, "DELETE FROM dependency_packages")
		})
		if err != nil {
			t.Fatal(err)
		}
		tidy(true)
		requirePackages(t, st, 1, "gomod/kit", "npm/pad ISC")
		ids := st.Reader.DependencyPackage.Query().IDsX(system)
		tidy(false)
		if again := st.Reader.DependencyPackage.Query().IDsX(system); !slices.Equal(ids, again) {
			t.Errorf("packages were written again: %v, then %v", ids, again)
		}
	})
}

// A package is not deleted while a scan that uses it is in progress.
func TestTidyBesideAScan(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, store.Options{Database: storetest.Postgres(t)}) // SQLite has a single writer
	scan := Scan{DeploymentID: 1, ProjectID: 7, ScanID: 1, At: 1, Complete: true}
	was := Dependency{Ecosystem: "npm", Package: "back", Version: "1"}
	replace(t, st, scan, map[string][]Dependency{"go.sum": {was}})
	replace(t, st, scan, map[string][]Dependency{"go.sum": {}}) // unused for a while
	err := st.Write(tenant.NewContext(t.Context(), 1), func(ctx context.Context, tx *ent.Tx) error {
		err := Replace(ctx, st, tx, scan, map[string][]Dependency{"go.sum": {was, {Ecosystem: "gomod", Package: "new", Version: "1"}}})
		if err != nil {
			return err
		}
		_, err = Tidy(t.Context(), st)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	requirePackages(t, st, 1, "gomod/new", "npm/back")
}

// Scans that find the same packages and the job that adds missing ones do not block each other.
func TestPackagesFromAllSides(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		var list []Dependency
		for i := range 3000 {
			list = append(list, Dependency{Ecosystem: "npm", Package: fmt.Sprintf("p%d", i*7919%3000), Version: "1"})
		}
		byLockfile := map[string][]Dependency{"yarn.lock": list}
		replace(t, st, Scan{DeploymentID: 1, ProjectID: 1, ScanID: 1, At: 1, Complete: true}, byLockfile)
		for round := range int64(3) {
			err := st.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
				return st.Exec(ctx, tx, "DELETE FROM dependency_packages") // as nodes of the previous version leave it
			})
			if err != nil {
				t.Fatal(err)
			}
			var group errgroup.Group
			group.Go(func() error { _, err := Tidy(t.Context(), st); return err })
			for project := range int64(3) {
				scan := Scan{DeploymentID: 1, ProjectID: 10*(round+1) + project, ScanID: 1, At: 1, Complete: true}
				group.Go(func() error {
					return st.Write(tenant.NewContext(t.Context(), 1), func(ctx context.Context, tx *ent.Tx) error {
						return Replace(ctx, st, tx, scan, byLockfile)
					})
				})
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
			if n := len(shownPackages(t, st, 1)); n != len(list) {
				t.Errorf("%d packages, want %d", n, len(list))
			}
		}
	})
}
