// Package lockfiles reads the packages in lockfiles.
package lockfiles

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/palisade/palisade/services/supplychain/dependencies"
)

const (
	// MaxFile is the size of the largest lockfile in bytes. Callers check it.
	MaxFile = 16 << 20
	// maxPackages is the number of packages in one lockfile.
	maxPackages = 100_000
	// maxName and maxVersion are in bytes. What is longer is no package.
	maxName, maxVersion = 512, 255
)

// Package is one version of a package in a lockfile.
type Package struct {
	// Ecosystem is a word of the contract: npm, pypi, gomod, …
	Ecosystem, Name, Version string
	// Transitivity is direct, transitive or unknown.
	Transitivity string
	// Line is its line in the lockfile, from 1; 0 if the format does not tell.
	Line int
	// Children are the packages of the lockfile that it requires, each as name@version.
	Children []string
}

// Sibling returns the content of another file in the directory of a lockfile; nil if there is none.
type Sibling func(name string) []byte

// source is a lockfile that is read.
type source struct {
	name    string
	content []byte
	sibling Sibling
}

func (s *source) reader() *bytes.Reader { return bytes.NewReader(s.content) }

type reader struct {
	ecosystem string
	read      func(context.Context, *source) ([]Package, error)
}

// readers are the readers by the name of the file.
var readers = map[string]reader{
	"package-lock.json": {"npm", npmLock}, "npm-shrinkwrap.json": {"npm", npmLock}, "yarn.lock": {"npm", yarnLock}, "pnpm-lock.yaml": {"npm", pnpmLock},
	"poetry.lock": {"pypi", poetryLock}, "uv.lock": {"pypi", uvLock}, "pylock.toml": {"pypi", pyLock}, "Pipfile.lock": {"pypi", pipfileLock},
	"go.mod": {"gomod", goMod}, "Cargo.lock": {"cargo", cargoLock}, "pom.xml": {"maven", pom}, "gradle.lockfile": {"maven", gradleLock},
	"Gemfile.lock": {"gem", gemLock}, "composer.lock": {"composer", composerLock}, "packages.lock.json": {"nuget", nugetLock},
	"pubspec.lock": {"pub", pubLock}, "mix.lock": {"hex", mixLock}, "Podfile.lock": {"cocoapods", podLock},
}

// readerOf finds the reader of a path. Requirements have many names, such as requirements-dev.txt.
func readerOf(file string) (reader, bool) {
	base := path.Base(file)
	if strings.HasPrefix(base, "requirements") && strings.HasSuffix(base, ".txt") {
		return reader{"pypi", requirements}, true
	}
	r, known := readers[base]
	return r, known
}

// Known reports whether a path is the one of a lockfile that Read reads.
func Known(file string) bool {
	_, known := readerOf(file)
	return known
}

// Read returns the packages of a lockfile by name and version, each once. The project itself is none. Siblings tell
// which packages are direct, where the lockfile does not.
func Read(ctx context.Context, file string, content []byte, sibling Sibling) (packages []Package, err error) {
	r, known := readerOf(file)
	if !known {
		return nil, fmt.Errorf("%s is not a known lockfile", path.Base(file))
	}
	defer func() { // the libraries read what strangers wrote
		if p := recover(); p != nil {
			packages, err = nil, errors.New("it has an unexpected structure")
		}
	}()
	found, err := r.read(ctx, &source{name: path.Base(file), content: content, sibling: sibling})
	if err != nil {
		return nil, err
	}
	return normalise(r.ecosystem, found)
}

// normalise sorts the packages and merges the ones that occur several times.
func normalise(ecosystem string, found []Package) ([]Package, error) {
	found = slices.DeleteFunc(found, func(p Package) bool {
		return p.Name == "" || p.Version == "" || len(p.Name) > maxName || len(p.Version) > maxVersion
	})
	slices.SortStableFunc(found, func(a, b Package) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	var out []Package
	for _, p := range found {
		p.Ecosystem, p.Transitivity = ecosystem, cmp.Or(p.Transitivity, dependencies.Unknown)
		if n := len(out); n > 0 && out[n-1].Name == p.Name && out[n-1].Version == p.Version {
			out[n-1].merge(&p)
			continue
		}
		out = append(out, p)
	}
	if len(out) > maxPackages {
		return nil, fmt.Errorf("it has more than %d packages", maxPackages)
	}
	for i := range out {
		slices.Sort(out[i].Children)
		out[i].Children = slices.Compact(out[i].Children)
	}
	return out, nil
}

// merge adds another place of the same package: the closest one counts.
func (p *Package) merge(other *Package) {
	order := []string{dependencies.Unknown, dependencies.Transitive, dependencies.Direct}
	if slices.Index(order, other.Transitivity) > slices.Index(order, p.Transitivity) {
		p.Transitivity = other.Transitivity
	}
	if p.Line == 0 || other.Line != 0 && other.Line < p.Line {
		p.Line = other.Line
	}
	p.Children = append(p.Children, other.Children...)
}

// transitivity is direct or transitive.
func transitivity(direct bool) string {
	if direct {
		return dependencies.Direct
	}
	return dependencies.Transitive
}
