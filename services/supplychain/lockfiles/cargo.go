package lockfiles

import "strings"

// readCargo reads Cargo.lock. A package without a source is a crate of the workspace, or a directory beside it.
func readCargo(f file) ([]entry, error) {
	packages, err := tomlPackages(f.content)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, len(packages))
	for i, p := range packages {
		e := entry{name: p.Name, version: p.Version, line: p.line, keys: []string{p.Name, p.Name + " " + p.Version}}
		e.root = p.Source == nil
		for _, required := range list(p.Dependencies) { // name, or name version (source) if there are several
			text, _ := required.(string)
			text, _, _ = strings.Cut(text, " (")
			e.requires = append(e.requires, text)
		}
		entries[i] = e
	}
	return entries, nil
}
