package supplychain_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/supplychain/dependencies"
)

// modelled is a dependency as the model knows it.
type modelled struct {
	dependencies.Dependency
	project, lockfile string
	version           int // before the first dot
}

// modelFilter is what the model understands of a filter.
type modelFilter struct {
	Name           string         `json:"name,omitempty"`
	Version        string         `json:"version,omitempty"`
	RepositoryID   []int64        `json:"repositoryId,omitempty"`
	Transitivity   []string       `json:"transitivity,omitempty"`
	Ecosystem      []string       `json:"ecosystem,omitempty"`
	LockfilePath   string         `json:"lockfilePath,omitempty"`
	License        []string       `json:"license,omitempty"`
	PackageFilters []modelPackage `json:"packageFilters,omitempty"`
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
	return strings.Contains(d.Package, strings.ToLower(f.Name)) &&
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

// TestDependencyFiltersAreTheModel: whatever a filter chooses, few or many of few packages or many, is what it says, on all pages.
func TestDependencyFiltersAreTheModel(t *testing.T) {
	t.Parallel()
	const perProject, packages = 2000, 3000
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s, names := caller{server}, []string{"acme/a", "acme/b", "acme/c", "acme/d", "acme/e", "acme/f"}
		in := newInventory(t, server, server.Tenant, names...)
		var all []modelled
		for p, project := range names {
			byLockfile := map[string][]dependencies.Dependency{}
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
				all = append(all, d)
				byLockfile[d.lockfile] = append(byLockfile[d.lockfile], d.Dependency)
			}
			in.scan(t, server, project, byLockfile)
		}
		rapid.Check(t, func(r *rapid.T) {
			checkModel(r, in, all, func(path, body string) listedPage { page, _ := read(t, s, s.Token, path, body); return page })
		})
	})
}

func checkModel(t *rapid.T, in *inventory, all []modelled, list func(path, body string) listedPage) {
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
	parts := []string{"PACK", "1", "77", "pack-29", "pack-2999", "nothing"}
	f := modelFilter{
		Name: one("name", parts...), Version: one("version", "3.0.0", "99.0.0"), Transitivity: some("transitivity", "DIRECT", "TRANSITIVE"),
		Ecosystem: some("ecosystem", "npm", "gomod", "hex", "cargo"), LockfilePath: one("lockfile", "rare.lock", "s1/go.sum", "no.lock"),
		License: some("license", "MIT", "WTFPL", "GPL-3.0-only"),
	}
	for _, project := range some("repositories", "acme/a", "acme/b", "acme/f") {
		f.RepositoryID = append(f.RepositoryID, in.projects[project])
	}
	if maybe.Draw(t, "packages") {
		f.PackageFilters = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) modelPackage {
			return modelPackage{
				Name: rapid.SampledFrom(append(parts, "pack-7")).Draw(t, "part"), ExactNameMatch: maybe.Draw(t, "exact"),
				ExactVersion:      rapid.SampledFrom([]string{"", "", "2.0.0"}).Draw(t, "only"),
				VersionLowerBound: rapid.SampledFrom([]string{"", "", "3.0.0"}).Draw(t, "lower"),
				VersionUpperBound: rapid.SampledFrom([]string{"", "", "7.0.0"}).Draw(t, "upper"),
			}
		}), 1, 2).Draw(t, "filters")
	}
	filter, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	counts, lockfiles, want := map[string]int{}, map[string]int{}, map[string]int{}
	for _, d := range all {
		if f.chooses(d, in.projects) {
			counts[d.project]++
			if d.project == "acme/b" {
				lockfiles[d.lockfile]++
			}
			want[d.Package+"@"+d.Version]++
		}
	}
	got := map[string]int{}
	size := rapid.SampledFrom([]int{300, 1000, 10_000}).Draw(t, "size")
	cursor, more := any(0), true
	for more {
		page := list(in.v1(""), fmt.Sprintf(`{"dependencyFilter":%s,"pageSize":%d,"cursor":"%v"}`, filter, size, cursor))
		for _, d := range page.Dependencies {
			got[d.Package.Name+"@"+d.Package.VersionSpecifier]++
		}
		if len(page.Dependencies) != size && *page.HasMore {
			t.Fatalf("%s: a page of %d, and there are more", filter, len(page.Dependencies))
		}
		cursor, more = page.Cursor, *page.HasMore
	}
	if !maps.Equal(got, want) {
		t.Fatalf("%s: %d dependencies, want %d", filter, len(got), len(want))
	}
	repositories := map[string]int{}
	size = rapid.IntRange(1, 6).Draw(t, "repositories of a page")
	for cursor, more = 0, true; more; {
		page := list(in.v1("/repositories"), fmt.Sprintf(`{"dependencyFilter":%s,"pageSize":%d,"cursor":"%v"}`, filter, size, cursor))
		for _, r := range page.RepositorySummaries {
			repositories[r.Name] += r.NumDependencies
		}
		if len(page.RepositorySummaries) != size && *page.HasMore {
			t.Fatalf("%s: a page of %d, and there are more", filter, len(page.RepositorySummaries))
		}
		cursor, more = page.Cursor, *page.HasMore
	}
	if !maps.Equal(repositories, counts) {
		t.Fatalf("%s: %v, want %v", filter, repositories, counts)
	}
	page := list(in.v1(fmt.Sprintf("/repositories/%d/lockfiles", in.projects["acme/b"])), fmt.Sprintf(`{"dependencyFilter":%s}`, filter))
	for _, l := range page.LockfileSummaries {
		if lockfiles[l.LockfilePath] != l.NumDependencies {
			t.Fatalf("%s: %d dependencies in %s, want %d", filter, l.NumDependencies, l.LockfilePath, lockfiles[l.LockfilePath])
		}
	}
	if len(page.LockfileSummaries) != len(lockfiles) {
		t.Fatalf("%s: %v, want %v", filter, page.LockfileSummaries, lockfiles)
	}
}
