package services_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/palisade/palisade/"
	here   = module + "services/"
)

// sharedPackages are the packages of a domain that other domains import, and whether they use the store.
var sharedPackages = map[string]bool{
	"deployments/details":       true,
	"findings/blob":             false,
	"findings/columns":          false,
	"findings/exploit":          true,
	"findings/identity":         false,
	"findings/issue":            true,
	"findings/issuefilter":      true,
	"findings/lastscan":         true,
	"findings/lifecycle":        false,
	"findings/list":             true,
	"findings/position":         true,
	"findings/snapshots":        true,
	"findings/storedfilters":    true,
	"findings/triage":           true,
	"findings/verdict":          true,
	"findings/vocabulary":       false,
	"notifications/automations": true,
	"notifications/channel":     false,
	"notifications/outbox":      true,
	"notifications/payload":     false,
	"policies/pathignore":       true,
	"policies/remediation":      true,
	"projects/branches":         true,
	"projects/byname":           true,
	"projects/codehost":         false,
	"projects/existing":         true,
	"projects/gitref":           false,
	"projects/projectname":      false,
	"reporting/cadence":         false,
	"rules/document":            false,
	"rules/ruleset":             true,
	"scans/backtest":            true,
	"scans/blocking":            true,
	"scans/feedback":            true,
	"scans/ingest":              true,
	"scans/managed":             true,
	"scans/scanstats":           false,
	"scans/vex":                 true,
	"scans/watch/judge":         false,
	"scm/clone":                 false,
	"scm/connect":               true,
	"scm/host":                  false,
	"scm/syncjob":               false,
	"supplychain/dependencies":  true,
	"supplychain/lockfiles":     false,
	"supplychain/matching":      true,
	"supplychain/osv":           false,
	"supplychain/purl":          false,
	"ticketing/filing":          true,
}

// TestImportsRunOneWay: cmd, services, domains, internal, ent. Domains import only listed packages of each other, never
// a root package.
func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	imports := importsOf(t)
	domains := map[string]bool{}
	for pkg := range imports {
		if root, _, _ := strings.Cut(pkg, "/"); root != "." && root != "internal" && root != "config" && root != "nodestest" {
			domains[root] = true
		}
	}
	if len(domains) != 16 {
		t.Errorf("the domains are %v", slices.Sorted(maps.Keys(domains)))
	}
	shared := map[string]bool{}
	for pkg, list := range imports {
		from, _, _ := strings.Cut(pkg, "/")
		for name := range list {
			target, ours := strings.CutPrefix(name, here)
			to, _, inside := strings.Cut(target, "/")
			switch {
			case name == module+"services" && pkg != ".":
				t.Errorf("%s imports services, which is above it", pkg)
			case !ours || !domains[to] || from == to || pkg == ".":
			case !domains[from]:
				t.Errorf("%s imports %s: packages below the domains must not import a domain", pkg, target)
			case !inside:
				t.Errorf("%s imports the root of the domain %s: move what it needs to a package of its own, or hand it over in server.Deps", pkg, to)
			default:
				shared[target] = touchesStore(imports[target])
			}
		}
	}
	if !maps.Equal(shared, sharedPackages) {
		t.Errorf("sharedPackages is not true any more: the packages that several domains import, and whether they touch the store, are\n%v\nwant\n%v", shared, sharedPackages)
	}
}

func touchesStore(imports map[string]bool) bool {
	for name := range imports {
		if name == here+"internal/store" || name == module+"ent" || strings.HasPrefix(name, module+"ent/") {
			return true
		}
	}
	return false
}

// importsOf reads the imports of each package below this directory, without tests.
func importsOf(t *testing.T) map[string]map[string]bool {
	t.Helper()
	imports := map[string]map[string]bool{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(name))
		if imports[pkg] == nil {
			imports[pkg] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports[pkg][imported] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}
