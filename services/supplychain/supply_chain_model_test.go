package supplychain_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/supplychain"
	"github.com/palisade/palisade/services/supplychain/dependencies"
)

// modelled is a dependency in the model.
type modelled struct {
	dependencies.Dependency
	project, lockfile string
	archived          bool
	version           int // the part before the first dot
}

// modelFilter holds the modelled parts of a filter.
type modelFilter struct {
	Name           string         `json:"name,omitempty"`
	Version        string         `json:"version,omitempty"`
	RepositoryID   []int64        `json:"repositoryId,omitempty"`
	Transitivity   []string       `json:"transitivity,omitempty"`
	Ecosystem      []string       `json:"ecosystem,omitempty"`
	LockfilePath   string         `json:"lockfilePath,omitempty"`
	License        []string       `json:"license,omitempty"`
	PackageFilters []modelPackage `json:"packageFilters,omitempty"`
	Archived       bool           `json:"includeArchived,omitempty"`
}

type modelPackage struct {
	Name              string `json:"name"`
	ExactNameMatch    bool   `json:"exactNameMatch,omitempty"`
	ExactVersion      string `json:"exactVersion,omitempty"`
	VersionLowerBound string `json:"versionLowerBound,omitempty"`
	VersionUpperBound string `json:"versionUpperBound,omitempty"`
}

func (f modelFilter) chooses(d modelled, projects map[string]int64) bool {
	has := func(list []string, word string) bool { return len(list) == 0 || slices.Contains(list, word) }
	return (f.Archived || !d.archived) && strings.Contains(d.Package, strings.ToLower(f.Name)) &&
		(f.Version == "" || f.Version == d.Version) &&
		(len(f.RepositoryID) == 0 || slices.Contains(f.RepositoryID, projects[d.project])) &&
		has(f.Transitivity, strings.ToUpper(d.Transitivity)) && has(f.Ecosystem, d.Ecosystem) &&
		(f.LockfilePath == "" || f.LockfilePath == d.lockfile) &&
		(len(f.License) == 0 || slices.ContainsFunc(d.Licenses, func(l string) bool { return slices.Contains(f.License, l) })) &&
		(len(f.PackageFilters) == 0 || slices.ContainsFunc(f.PackageFilters, func(p modelPackage) bool { return p.chooses(d) }))
}

func (p modelPackage) chooses(d modelled) bool {
	bound := func(text string, otherwise int) (version int) {
		if text == "" {
			return otherwise
		}
		_, _ = fmt.Sscan(text, &version)
		return version
	}
	return (d.Package == p.Name || !p.ExactNameMatch && strings.Contains(d.Package, strings.ToLower(p.Name))) &&
		(p.ExactVersion == "" || p.ExactVersion == d.Version) &&
		bound(p.VersionLowerBound, 0) <= d.version && d.version <= bound(p.VersionUpperBound, 1000)
}

// modelProjects are ordered by id.
var modelProjects = []string{"acme/a", "acme/b", "acme/c", "acme/d", "acme/e", "acme/f"}

// ofTeam are the projects that team members see.
var ofTeam = []string{"acme/b", "acme/c", "acme/f"}

// TestDependencyFiltersAreTheModel: for each filter, of any selectivity, all pages of the lists equal the model, in
// order. It tests over HTTP and with low limits, for administrators and team members.
func TestDependencyFiltersAreTheModel(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s, in := caller{server}, newInventory(t, server, server.Tenant, modelProjects...)
		all := seedModel(t, server, in)
		everybody := tenant.NewContext(t.Context(), in.DeploymentID)
		windows := supplychain.NewSupplyChainOfWindows(server.Store)
		ways := map[string]listsOf{
			"over HTTP": func(_ string, path, body string) listedPage {
				page, _ := read(t, s, s.Token, in.v1(path), body)
				return page
			},
			"in windows": directly(t, windows, everybody),
			"of a team":  directly(t, windows, tenant.WithTeams(everybody, []int64{1})),
		}
		rapid.Check(t, func(r *rapid.T) {
			way := rapid.SampledFrom(slices.Sorted(maps.Keys(ways))).Draw(r, "way")
			seen := all
			if way == "of a team" {
				seen = slices.DeleteFunc(slices.Clone(all), func(d modelled) bool { return !slices.Contains(ofTeam, d.project) })
			}
			checkModel(r, in, seen, ways[way], drawFilter(r, in), rapid.SampledFrom([]int{10, 60, 300, 10_000}).Draw(r, "size"), rapid.IntRange(1, 6).Draw(r, "repositories"))
		})
		// Rare cases: several values with few entries, most of them excluded by another condition.
		for _, f := range []modelFilter{
			{Ecosystem: []string{"cargo", "gem"}, Name: "9"}, {Ecosystem: []string{"cargo", "gem"}, PackageFilters: []modelPackage{{Name: "late", VersionLowerBound: "8.0.0"}}},
		} {
			for _, size := range []int{1, 4, 10} {
				checkModel(t, in, all, ways["in windows"], f, size, 1)
			}
		}
	})
}

// seedModel inserts the model's data: 2,000 dependencies per project on the same packages, and some only in the last
// project. Ids follow the order of lockfiles, ecosystems, packages and versions.
func seedModel(t *testing.T, server *apitest.Server, in *inventory) (all []modelled) {
	t.Helper()
	const perProject, packages = 2000, 3000
	for p, project := range modelProjects {
		var list []modelled
		for i := range perProject {
			n := (i*7 + p*1000) % packages
			d := modelled{project: project, lockfile: fmt.Sprintf("s%d/go.sum", i%3), version: i / 100 % 12}
			if i%50 == 0 {
				d.lockfile = "rare.lock"
			}
			d.Dependency = dependencies.Dependency{
				Ecosystem: []string{"npm", "npm", "npm", "gomod", "hex"}[n%5], Package: fmt.Sprintf("pack-%d", n), Version: fmt.Sprintf("%d.0.0", d.version),
				Transitivity: []string{"direct", "transitive"}[i%2], Line: i + 1,
			}
			switch {
			case n%100 == 1:
				d.Licenses = []string{"WTFPL"}
			case n%100 == 2:
				d.Licenses = []string{"ISC", "WTFPL"}
			case n%3 > 0:
				d.Licenses = []string{"MIT"}
			}
			list = append(list, d)
		}
		if p == len(modelProjects)-1 {
			for i := range 600 {
				d := modelled{project: project, lockfile: "late.lock", version: i % 12}
				d.Dependency = dependencies.Dependency{
					Ecosystem: []string{"cargo", "pub", "pub", "pub"}[i%4], Package: fmt.Sprintf("late-%d", i), Version: fmt.Sprintf("%d.0.0", d.version), Transitivity: "direct",
				}
				list = append(list, d)
			}
		}
		byLockfile := map[string][]dependencies.Dependency{}
		for i, d := range list {
			list[i].archived = project == "acme/c"
			byLockfile[d.lockfile] = append(byLockfile[d.lockfile], d.Dependency)
		}
		in.scan(t, server, project, byLockfile)
		slices.SortFunc(list, func(a, b modelled) int {
			return cmp.Or(cmp.Compare(a.lockfile, b.lockfile), cmp.Compare(a.Ecosystem, b.Ecosystem), cmp.Compare(a.Package, b.Package), cmp.Compare(a.Version, b.Version))
		})
		all = append(all, list...)
	}
	in.change(t, server, "acme/c", func(u *ent.ProjectUpdateOne) { u.SetArchivedAt(lockBase) })
	err := server.Store.Write(tenant.NewContext(t.Context(), in.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		for _, project := range ofTeam {
			if err := tx.TeamProject.Create().SetTeamID(1).SetProjectID(in.projects[project]).SetCreatedAt(1).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// listsOf reads a page of one of the lists: "", "/repositories" or "/repositories/{id}/lockfiles".
type listsOf func(repositoryID, path, body string) listedPage

// directly calls a service without a server.
func directly(t *testing.T, s *supplychain.SupplyChain, ctx context.Context) listsOf { //nolint:revive // the test comes first
	t.Helper()
	return func(repositoryID, path, body string) (page listedPage) {
		t.Helper()
		var response proto.Message
		var err error
		parse := func(request proto.Message) {
			if err := protojson.Unmarshal([]byte(body), request); err != nil {
				t.Fatalf("%v in %s", err, body)
			}
		}
		switch {
		case path == "":
			var request supplychainv1.ListDependenciesRequest
			parse(&request)
			response, err = s.ListDependencies(ctx, &request)
		case path == "/repositories":
			var request supplychainv1.ListRepositoriesForDependenciesRequest
			parse(&request)
			response, err = s.ListRepositoriesForDependencies(ctx, &request)
		default:
			var request supplychainv1.ListLockfilesForDependenciesRequest
			parse(&request)
			_, _ = fmt.Sscan(repositoryID, &request.RepositoryId)
			response, err = s.ListLockfilesForDependencies(ctx, &request)
		}
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		answer, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(response)
		if err == nil {
			err = json.Unmarshal(answer, &page)
		}
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
}

// drawFilter draws a filter of the model.
func drawFilter(t *rapid.T, in *inventory) (f modelFilter) {
	maybe := rapid.Custom(func(t *rapid.T) bool { return rapid.IntRange(0, 2).Draw(t, "maybe") == 0 })
	some := func(name string, of ...string) (list []string) {
		if maybe.Draw(t, name) {
			list = rapid.SliceOfNDistinct(rapid.SampledFrom(of), 1, 2, rapid.ID).Draw(t, name)
		}
		return list
	}
	one := func(name string, of ...string) string {
		if !maybe.Draw(t, name) {
			return ""
		}
		return rapid.SampledFrom(of).Draw(t, name)
	}
	parts := []string{"PACK", "1", "77", "pack-29", "pack-2999", "nothing", "late"}
	f = modelFilter{
		Name: one("name", parts...), Version: one("version", "3.0.0", "99.0.0"), Transitivity: some("transitivity", "DIRECT", "TRANSITIVE"),
		Ecosystem: some("ecosystem", "npm", "gomod", "hex", "cargo", "pub", "gem"), LockfilePath: one("lockfile", "rare.lock", "s1/go.sum", "late.lock", "no.lock"),
		License: some("license", "MIT", "WTFPL", "GPL-3.0-only"), Archived: maybe.Draw(t, "archived"),
	}
	for _, project := range some("repositories", "acme/a", "acme/b", "acme/c", "acme/f") {
		f.RepositoryID = append(f.RepositoryID, in.projects[project])
	}
	if maybe.Draw(t, "packages") {
		f.PackageFilters = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) modelPackage {
			return modelPackage{
				Name: rapid.SampledFrom(append(parts, "pack-7")).Draw(t, "part"), ExactNameMatch: maybe.Draw(t, "exact"),
				ExactVersion:      rapid.SampledFrom([]string{"", "", "2.0.0"}).Draw(t, "only"),
				VersionLowerBound: rapid.SampledFrom([]string{"", "", "3.0.0", "8.0.0"}).Draw(t, "lower"),
				VersionUpperBound: rapid.SampledFrom([]string{"", "", "7.0.0", "0"}).Draw(t, "upper"),
			}
		}), 1, 2).Draw(t, "filters")
	}
	return f
}

// checkModel compares a filter's lists with the model. size is the page size of dependencies, or larger if there are
// many, and of repositories.
func checkModel(t interface{ Fatalf(string, ...any) }, in *inventory, all []modelled, list listsOf, f modelFilter, size, repositoriesOfPage int) {
	filter, err := json.Marshal(f)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var want []string
	counts, lockfiles := map[string]int{}, map[string]int{}
	for _, d := range all {
		if f.chooses(d, in.projects) {
			counts[d.project]++
			if d.project == "acme/b" {
				lockfiles[d.lockfile]++
			}
			want = append(want, fmt.Sprint(in.projects[d.project], " ", d.lockfile, " ", d.Ecosystem, " ", d.Package, "@", d.Version))
		}
	}
	var got []string
	size = max(size, len(want)/20)
	for cursor, more := any(0), true; more; {
		page := list("", "", fmt.Sprintf(`{"dependencyFilter":%s,"pageSize":%d,"cursor":"%v"}`, filter, size, cursor))
		for _, d := range page.Dependencies {
			got = append(got, fmt.Sprint(d.RepositoryID, " ", d.DefinedAt.Path, " ", d.Ecosystem, " ", d.Package.Name, "@", d.Package.VersionSpecifier))
		}
		if len(page.Dependencies) != size && *page.HasMore {
			t.Fatalf("%s: a page of %d, and there are more", filter, len(page.Dependencies))
		}
		cursor, more = page.Cursor, *page.HasMore
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %d dependencies, want %d:\n%s", filter, len(got), len(want), firstDifference(got, want))
	}
	var repositories, inOrder []string
	for _, project := range modelProjects {
		if counts[project] > 0 {
			inOrder = append(inOrder, fmt.Sprint(project, ":", counts[project]))
		}
	}
	size = repositoriesOfPage
	for cursor, more := any(0), true; more; {
		page := list("", "/repositories", fmt.Sprintf(`{"dependencyFilter":%s,"pageSize":%d,"cursor":"%v"}`, filter, size, cursor))
		for _, r := range page.RepositorySummaries {
			repositories = append(repositories, fmt.Sprint(r.Name, ":", r.NumDependencies))
		}
		if len(page.RepositorySummaries) != size && *page.HasMore {
			t.Fatalf("%s: a page of %d, and there are more", filter, len(page.RepositorySummaries))
		}
		cursor, more = page.Cursor, *page.HasMore
	}
	if !slices.Equal(repositories, inOrder) {
		t.Fatalf("%s: %v, want %v", filter, repositories, inOrder)
	}
	id := fmt.Sprint(in.projects["acme/b"])
	page := list(id, "/repositories/"+id+"/lockfiles", fmt.Sprintf(`{"dependencyFilter":%s}`, filter))
	for _, l := range page.LockfileSummaries {
		if lockfiles[l.LockfilePath] != l.NumDependencies {
			t.Fatalf("%s: %d dependencies in %s, want %d", filter, l.NumDependencies, l.LockfilePath, lockfiles[l.LockfilePath])
		}
	}
	if len(page.LockfileSummaries) != len(lockfiles) {
		t.Fatalf("%s: %v, want %v", filter, page.LockfileSummaries, lockfiles)
	}
}

// firstDifference is the first position where two lists differ.
func firstDifference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		a, b := "nothing", "nothing"
		if i < len(got) {
			a = got[i]
		}
		if i < len(want) {
			b = want[i]
		}
		if a != b {
			return fmt.Sprintf("at %d: got %s, want %s", i, a, b)
		}
	}
	return ""
}
