package lockfiles

import (
	pep440 "github.com/aquasecurity/go-pep440-version"
)

const (
	maxVersions    = 16     // versions of one package that are compared with a range
	maxComparisons = 20_000 // ranges that are compared for a file; later ones are of the first version
	maxRange       = 128    // bytes of a range or version that is compared
)

// readPoetry reads poetry.lock. Packages require ranges of versions there. The direct ones are in pyproject.toml.
func readPoetry(f file) ([]entry, error) {
	packages, err := tomlPackages(f.content)
	if err != nil {
		return nil, err
	}
	versions := &poetryVersions{all: map[string][]string{}, chosen: map[[2]string]string{}}
	for _, p := range packages {
		versions.all[pypi(p.Name)] = append(versions.all[pypi(p.Name)], p.Version)
	}
	entries := make([]entry, 0, len(packages)+1)
	for _, p := range packages {
		name := pypi(p.Name)
		e := entry{name: p.Name, version: p.Version, line: p.line, keys: []string{name, name + " " + p.Version}}
		e.root = field(p.Source, "type") == "directory"
		table, _ := p.Dependencies.(map[string]any)
		for required, wanted := range table {
			for _, wanted := range list(wanted) { // several with different markers
				e.requires = append(e.requires, versions.key(pypi(required), wanted))
			}
		}
		entries = append(entries, e)
	}
	return f.withPyproject(entries), nil
}

type poetryVersions struct {
	all    map[string][]string
	chosen map[[2]string]string // by name and range
}

// key returns the key of the version that is in a range. Comparison takes time, so each range is compared once.
func (v *poetryVersions) key(name string, wanted any) string {
	versions := v.all[name]
	if len(versions) < 2 || len(versions) > maxVersions {
		return name
	}
	specifier, ok := wanted.(string)
	if !ok {
		specifier = field(wanted, "version")
	}
	at := [2]string{name, specifier}
	if key, ok := v.chosen[at]; ok {
		return key
	}
	v.chosen[at] = name
	if len(specifier) > maxRange || len(v.chosen) > maxComparisons {
		return name
	}
	allowed, err := pep440.NewSpecifiers(specifier)
	if err != nil {
		return name
	}
	for _, version := range versions {
		if len(version) > maxRange {
			continue
		}
		if parsed, err := pep440.Parse(version); err == nil && allowed.Check(parsed) {
			v.chosen[at] = name + " " + version
			break
		}
	}
	return v.chosen[at]
}
