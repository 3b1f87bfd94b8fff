// Package dependencies stores the dependencies in the lockfiles of projects, as of the latest full scan of the primary
// branch. It has no RPCs: scans call Replace with the reported dependencies.
package dependencies

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/supplychain/osv"
)

// Values of transitivity.
const (
	Direct     = "direct"
	Transitive = "transitive"
	Unknown    = "unknown"
)

// NoEcosystem is the contract's word for packages of an unknown ecosystem.
const NoEcosystem = "no_package_manager"

// Maximum lengths in bytes; longer texts are cut. The columns share an index, which is limited to 2,700 bytes on
// PostgreSQL.
const (
	maxLockfile = 1024
	maxPackage  = 512
	maxVersion  = 256
	maxText     = 4096
	maxLicense  = 512
	maxList     = 10_000
)

// Dependency is one package in a lockfile.
type Dependency struct {
	// Ecosystem is a word of the contract (npm, gomod, …); others become [NoEcosystem].
	Ecosystem string
	Package   string
	Version   string
	// Transitivity is direct, transitive or unknown; anything else is unknown.
	Transitivity string
	// ManifestPath is the file that requires the package; empty if unknown.
	ManifestPath string
	// ResolvedURL is where it was resolved from; empty if unknown.
	ResolvedURL string
	// Line is the line in the lockfile, from 1; 0 if unknown.
	Line int
	// Licenses are SPDX expressions.
	Licenses []string
	// Children are its dependencies, each as package@version.
	Children []string
}

// rowKey is the key of a row in a project.
type rowKey struct{ lockfile, ecosystem, pkg, version string }

func (p rowKey) compare(other rowKey) int {
	return cmp.Or(cmp.Compare(p.lockfile, other.lockfile), cmp.Compare(p.ecosystem, other.ecosystem),
		cmp.Compare(p.pkg, other.pkg), cmp.Compare(p.version, other.version))
}

// entry is a row to be stored.
type entry struct {
	rowKey
	transitivity string
	license      string // "" for none
	hasPaths     bool
	content      []byte
}

// entries converts a scan's dependencies to rows, sorted by key. A package that occurs several times in a lockfile with
// one version becomes one row with the merged data, independent of the order.
func entries(byLockfile map[string][]Dependency, source string) ([]entry, error) {
	merged := map[rowKey]*Dependency{}
	for lockfile, list := range byLockfile {
		lockfile = clean(lockfile, maxLockfile)
		for _, d := range list {
			at := rowKey{lockfile, ecosystem(d.Ecosystem), clean(d.Package, maxPackage), clean(d.Version, maxVersion)}
			if at.pkg == "" || at.lockfile == "" {
				continue
			}
			if known := merged[at]; known != nil {
				merge(known, d)
				continue
			}
			first := Dependency{}
			merge(&first, d)
			merged[at] = &first
		}
	}
	rows := make([]entry, 0, len(merged))
	for at, d := range merged {
		row, err := newEntry(at, d, source)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b entry) int { return a.compare(b.rowKey) })
	return rows, nil
}

// merge merges d: the closest transitivity, the lowest line, and of texts the smallest by bytes.
func merge(into *Dependency, d Dependency) {
	if rank(d.Transitivity) > rank(into.Transitivity) {
		into.Transitivity = d.Transitivity
	}
	if d.Line > 0 && (into.Line == 0 || d.Line < into.Line) {
		into.Line = d.Line
	}
	into.ManifestPath = first(into.ManifestPath, clean(d.ManifestPath, maxText))
	into.ResolvedURL = first(into.ResolvedURL, clean(d.ResolvedURL, maxText))
	into.Licenses = append(into.Licenses, d.Licenses...)
	into.Children = append(into.Children, d.Children...)
}

func newEntry(at rowKey, d *Dependency, source string) (entry, error) {
	licenses, children := cleanAll(d.Licenses, maxText), cleanAll(d.Children, maxText)
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(&storev1.DependencyContent{
		ManifestPath: d.ManifestPath, Line: int32(min(d.Line, 1<<30)), ResolvedUrl: d.ResolvedURL, Licenses: licenses, Children: children, Source: source,
	})
	if err != nil {
		return entry{}, err
	}
	out := entry{rowKey: at, transitivity: Unknown, hasPaths: len(children) > 0, content: content}
	if rank(d.Transitivity) > 0 {
		out.transitivity = d.Transitivity
	}
	if joined := strings.Join(licenses, ","); len(joined) <= maxLicense {
		out.license = joined
	} else { // for filters; the content has all licences
		out.license = joined[:strings.LastIndexByte(joined[:maxLicense+1], ',')+1]
		out.license = strings.TrimSuffix(out.license, ",")
	}
	return out, nil
}

func rank(transitivity string) int {
	return slices.Index([]string{Transitive, Direct}, transitivity) + 1
}

func first(a, b string) string {
	if a == "" || b != "" && b < a {
		return b
	}
	return a
}

func ecosystem(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if slices.Contains(osv.Ecosystems, name) { // includes mix, which Ecosystem maps to hex
		return name
	}
	if word, ok := osv.Ecosystem(name); ok {
		return word
	}
	return NoEcosystem
}

// clean converts a text to a form that both databases can store, of at most most bytes.
func clean(text string, most int) string {
	text = strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", ""))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// cleanAll sorts a list and removes empty and duplicate texts.
func cleanAll(list []string, most int) []string {
	out := make([]string, 0, len(list))
	for _, text := range list {
		if text = clean(text, most); text != "" {
			out = append(out, text)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxList)]
}

// unresolved reports whether the lockfile belongs to a subproject that the scan could not resolve. A subproject is
// named by its directory, its lockfile, or the manifest in the lockfile's directory.
func unresolved(lockfile string, skipped []string) bool {
	dir := path.Dir(lockfile)
	return slices.ContainsFunc(skipped, func(subproject string) bool {
		subproject = path.Clean(strings.TrimPrefix(subproject, "/"))
		return subproject == lockfile || subproject == dir || isManifest(path.Base(subproject)) && path.Dir(subproject) == dir
	})
}

// isManifest reports whether a name is a file's (package.json, Gemfile) and not a directory's.
func isManifest(name string) bool {
	return strings.Contains(name, ".") || strings.HasSuffix(name, "file")
}
