// Package lockfiles reads lockfiles of a repository: the packages, how far each is from the project, and what it
// requires. It needs only the content of files, no network and no package manager.
//
// Lockfiles are untrusted. Each reader limits what it does by the size of its file, and refuses what would cost more.
package lockfiles

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

const (
	// MaxFile is the maximum size of a file, in bytes.
	MaxFile = 16 << 20
	// MaxPackages is the maximum number of packages in a file.
	MaxPackages = 100_000

	maxText  = 1024    // bytes of a name or version; longer ones are no packages
	maxMarks = 1 << 19 // lines of a file, and values of one that is read as a tree
)

// The values of Transitivity. They are the words of services/supplychain/dependencies, which needs the store.
const (
	Direct     = "direct"
	Transitive = "transitive"
	Unknown    = "unknown"
)

// Package is one package in a lockfile.
type Package struct {
	// Ecosystem is a word of osv.Ecosystems.
	Ecosystem string
	// Name is the name as its ecosystem writes it, such as group:artifact for maven.
	Name    string
	Version string
	// Transitivity is Direct, Transitive or Unknown.
	Transitivity string
	// Line is the line in the file, from 1; 0 if unknown.
	Line int
	// Children are the packages that it requires: name@version, as resolved in this file, sorted.
	Children []string
}

// A format is a kind of lockfile.
type format struct {
	ecosystem string
	read      func(file) ([]entry, error)
}

// formats are the lockfiles with a fixed name.
var formats = map[string]format{
	"package-lock.json":           {"npm", readNpm},
	"npm-shrinkwrap.json":         {"npm", readNpm},
	"yarn.lock":                   {"npm", readYarn},
	"pnpm-lock.yaml":              {"npm", readPnpm},
	"poetry.lock":                 {"pypi", readPoetry},
	"uv.lock":                     {"pypi", readUv},
	"pylock.toml":                 {"pypi", readPylock},
	"Pipfile.lock":                {"pypi", readPipfile},
	"go.mod":                      {"gomod", readGoMod},
	"Cargo.lock":                  {"cargo", readCargo},
	"pom.xml":                     {"maven", readPom},
	"gradle.lockfile":             {"maven", readGradle},
	"buildscript-gradle.lockfile": {"maven", readGradle},
	"Gemfile.lock":                {"gem", readBundler},
	"gems.locked":                 {"gem", readBundler},
	"composer.lock":               {"composer", readComposer},
	"packages.lock.json":          {"nuget", readNuget},
	"pubspec.lock":                {"pub", readPub},
	"mix.lock":                    {"hex", readMix},
	"Podfile.lock":                {"cocoapods", readCocoapods},
}

func formatOf(name string) (format, bool) {
	base := path.Base(name)
	if f, ok := formats[base]; ok {
		return f, true
	}
	if strings.HasPrefix(base, "requirements") && strings.HasSuffix(base, ".txt") {
		return format{"pypi", readRequirements}, true
	}
	if strings.HasPrefix(base, "pylock.") && strings.HasSuffix(base, ".toml") {
		return format{"pypi", readPylock}, true
	}
	return format{}, false
}

// Known reports whether Read can read a file, by its base name.
func Known(name string) bool {
	_, ok := formatOf(name)
	return ok
}

// A file is a lockfile and access to the manifests beside it.
type file struct {
	content []byte
	sibling func(name string) []byte
}

// Read returns the packages of a lockfile, sorted by name and version. The project itself, the members of its workspace
// and packages of local directories are not among them. sibling returns the content of another file of the same
// directory, or nil: for some formats, only the manifest says which packages are direct.
func Read(name string, content []byte, sibling func(name string) []byte) (packages []Package, err error) {
	f, ok := formatOf(name)
	if !ok {
		return nil, fmt.Errorf("%s is not a known lockfile", path.Base(name))
	}
	defer func() { // a reader must not end the process, whatever a repository contains
		if fault := recover(); fault != nil {
			packages, err = nil, fmt.Errorf("%s cannot be read: %v", path.Base(name), fault)
		}
	}()
	content, err = text(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path.Base(name), err)
	}
	entries, err := f.read(file{content, func(name string) []byte {
		manifest, err := text(sibling(name))
		if err != nil {
			return nil
		}
		return manifest
	}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path.Base(name), err)
	}
	if len(entries) > MaxPackages {
		return nil, fmt.Errorf("%s has more than %d packages", path.Base(name), MaxPackages)
	}
	return link(f.ecosystem, entries), nil
}

// text returns a file as UTF-8 without byte order mark: PowerShell redirects the output of pip as UTF-16.
func text(content []byte) ([]byte, error) {
	if len(content) > MaxFile {
		return nil, fmt.Errorf("more than %d bytes", MaxFile)
	}
	content, _, err := transform.Bytes(unicode.BOMOverride(encoding.Nop.NewDecoder()), content)
	if err != nil {
		return nil, err
	}
	return content, crowded(content, "\n")
}

var errCrowded = errors.New("too many lines or values")

// crowded refuses a file with more separators than lockfiles have. A tree of values needs a hundred times the memory of
// its text.
func crowded(content []byte, separators ...string) error {
	marks := 0
	for _, separator := range separators {
		marks += bytes.Count(content, []byte(separator))
	}
	if marks > maxMarks {
		return errCrowded
	}
	return nil
}

// An entry is what a reader finds: a package, or a root.
type entry struct {
	name, version string
	line          int
	transitivity  string // "" where it follows from the roots
	// keys are the texts by which requires of this file name the entry.
	keys     []string
	requires []string
	// root is the project, a member of its workspace or a local directory: not a package, but what it requires is direct.
	root bool
	// partial is a root that does not name everything that is direct.
	partial bool
}

func (e *entry) id() string { return e.name + "@" + e.version }

// link resolves what the entries require, and merges entries of the same package: the closest transitivity and the
// lowest line.
func link(ecosystem string, entries []entry) []Package {
	byKey := map[string][]*entry{}
	ids := make(map[*entry]string, len(entries))
	others := Unknown
	for i := range entries {
		e := &entries[i]
		for _, key := range e.keys {
			byKey[key] = append(byKey[key], e)
		}
		if e.root && others == Unknown {
			others = Transitive
		}
		if e.isPackage() {
			ids[e] = e.id() // one text for all its parents
		}
	}
	if slices.ContainsFunc(entries, func(e entry) bool { return e.partial }) {
		others = Unknown
	}
	markDirect(entries, byKey)
	merged := map[string]*Package{}
	for i := range entries {
		e := &entries[i]
		id := ids[e]
		if id == "" {
			continue
		}
		p := merged[id]
		if p == nil {
			p = &Package{Ecosystem: ecosystem, Name: e.name, Version: e.version, Transitivity: others}
			merged[id] = p
		}
		if e.transitivity == Direct || e.transitivity == Transitive && p.Transitivity == Unknown {
			p.Transitivity = e.transitivity
		}
		if e.line > 0 && (p.Line == 0 || e.line < p.Line) {
			p.Line = e.line
		}
		for _, key := range e.requires {
			if targets := byKey[key]; len(targets) > 0 && ids[targets[0]] != "" && ids[targets[0]] != id {
				p.Children = append(p.Children, ids[targets[0]])
			}
		}
	}
	return sorted(merged)
}

// markDirect marks what the roots require. The file may have several versions of what a manifest names; all are direct.
func markDirect(entries []entry, byKey map[string][]*entry) {
	required := map[string]bool{}
	for i := range entries {
		if !entries[i].root {
			continue
		}
		for _, key := range entries[i].requires {
			if required[key] {
				continue
			}
			required[key] = true
			for _, target := range byKey[key] {
				target.transitivity = Direct
			}
		}
	}
}

func (e *entry) isPackage() bool {
	return !e.root && e.name != "" && e.version != "" && len(e.name) <= maxText && len(e.version) <= maxText
}

func sorted(merged map[string]*Package) []Package {
	packages := make([]Package, 0, len(merged))
	for _, p := range merged {
		slices.Sort(p.Children)
		p.Children = slices.Compact(p.Children)
		packages = append(packages, *p)
	}
	slices.SortFunc(packages, func(a, b Package) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return packages
}
